"""Conversion of the element type; the options repeat what the tensors' types say."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, int_range
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, gathered, underspecified
from suites.semantics import cast as s
from suites.tflite import op

_SMALL = ("i2", "i4", "u4")


def _draw_cast(d: Draw) -> dict[str, Any]:
    have = d.types["T"]
    small = [t for t in d.version.schema.dtypes("O") if t.name in _SMALL]
    options = [t for t in d.version.schema.dtypes("O") if t.name not in _SMALL]
    if have.kind == "c":
        small = []
    to = BY_NAME["f32"] if have.name in _SMALL else d.pick(small) if small and d.chance(4) else d.pick(options)
    recipe = "full" if have.name in _SMALL else d.pick(("small", "unit", "special")) if have.kind == "c" else None
    if have.kind == "f" and to.kind in "iu" and d.bool():
        recipe = "uniform:-100:100" if to.kind == "i" else "uniform:0:200"
    if to.name in _SMALL:
        lo, hi = int_range(to)
        recipe = f"uniform:{lo}:{hi}" if have.kind == "f" else f"ints:{max(lo, 0) if have.kind != 'i' else lo}:{hi}"
        recipe = "bool" if have.kind == "b" else recipe
    out: dict[str, Any] = {
        "input": T(d.shape(), recipe, const=True if have.bits == 2 else None),
        "@outputs": [{"dtype": to.name}],
    }
    if d.bool():
        out |= {"in_data_type": have.name, "out_data_type": to.name}
    return out


def _to(call: Call) -> Any:
    t = call.outs[0]["dtype"] if call.outs else call.attr("out_data_type")
    return BY_NAME[t] if isinstance(t, str) else t


def _open(call: Call) -> str | None:
    """tf.cast: "from complex types (complex64, complex128) to real types, only the real part of x is returned"; a truth
    value is none of these."""
    x, silent = call.inputs["input"], s.cast_complex.underspecified(*call.version.decode(call))
    if x.dtype.kind != "c" or _to(call).kind != "b":
        return silent
    one = (x.real == 0) & (x.imag != 0)
    why = "what makes a complex number true: its real part alone, or either part"
    return gathered(underspecified(why, one, np.zeros(x.shape, bool), np.ones(x.shape, bool)), silent)


op(
    "CAST",
    s.cast_complex,
    Spelling(x="input", to=Fn(_to), out_dtype=lambda call, i: _to(call)),
    Sampling(_draw_cast),
    Checks(ambiguous=_open),
)
