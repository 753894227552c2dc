"""TFLite (LiteRT) builtin operators: schema facts, entries, model builder, parser, whole-model interpreter."""

from typing import Any

from harness.declare import Entry, Semantics
from suites.tflite.dialect import Session, TfLite

dialect = TfLite("suites.tflite")
_LIMITS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")  # activations that limit a result


def op(name: str, meaning: Semantics | None, **kw: Any) -> Entry:
    """Declare one entry; see ``Entry``.

    Of the fused activations, SIGN_BIT is defined nowhere and TANH in the recurrent operators alone: the reference
    declines the others."""
    recurrent = name == "SVDF" or name.endswith(("RNN", "LSTM"))
    tanh = ("TANH",) if recurrent and kw.get("domain") != "quantised" else ()
    kw["only"] = {"fused_activation_function": (*_LIMITS, *tanh), **kw.get("only", {})}
    return dialect.op(name, meaning, **kw)


__all__ = ["Session", "dialect", "op"]
