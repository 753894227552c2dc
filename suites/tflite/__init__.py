"""TFLite (LiteRT) operators, builtin and custom: schema facts, entries, builder, parser, whole-model interpreter."""

from suites.tflite.dialect import Session, TfLite

dialect = TfLite("suites.tflite")
op = dialect.op

__all__ = ["Session", "dialect", "op"]
