"""TFLite (LiteRT) builtin operators: schema facts, entries, model builder, parser, whole-model interpreter."""

from suites.tflite.dialect import TfLite

dialect = TfLite("suites.tflite")
op = dialect.op
__all__ = ["dialect", "op"]
