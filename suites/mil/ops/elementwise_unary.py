"""One tensor in, one out, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, int_range, of
from harness.spec import Call, Draw, T, bounded
from suites.mil import op
from suites.mil.codecs import typed
from suites.semantics import elementwise as s

for name in ("abs", "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "floor", "sign",
             "sin", "sinh", "sqrt", "square", "tan", "tanh", "logical_not"):  # fmt: skip
    op(name, getattr(s, name))
op("round", s.round_half_even)
op("inverse", s.inverse)
op("log", s.log_epsilon)
op("rsqrt", s.rsqrt_epsilon)
op("threshold", s.threshold)
op("clip", s.clamp, lo="alpha", hi="beta")


# -- cast


def _target(call: Call, i: int = 0) -> Any:
    d = call.attr("dtype")
    return BY_NAME[d] if isinstance(d, str) else d


def _cast(call: Call) -> np.ndarray:
    x, d = call.inputs["x"], _target(call)
    if d.kind == "f":
        return x.astype(np.float64)  # rounded once by the framework
    if d.kind == "b":
        return x.astype(np.bool_)
    with np.errstate(all="ignore"):
        return np.trunc(x.astype(np.float64)).astype(np.int64).astype(d.np) if of(x).kind == "f" else x.astype(d.np)


def _cast_open(call: Call) -> str | None:
    """What a cast to an integer does with a fraction, or with a value out of its range, is not stated."""
    x, d = call.inputs["x"], _target(call)
    if d.kind not in "iu":
        return "truth of NaN" if d.kind == "b" and of(x).kind == "f" and np.isnan(x).any() else None
    if of(x).kind == "f" and not (np.isfinite(x).all() and np.all(x == np.trunc(x))):
        return "float to integer: the rounding is not stated"
    lo, hi = int_range(d)
    if x.size and (x.min() < lo or x.max() > hi):
        return "out of the integer's range: not stated"
    return None


def _draw_cast(d: Draw) -> dict[str, Any]:
    target, source = typed(d, "O"), d.dtype("x")
    recipe = None
    if target.kind in "iu":
        recipe = "ints:0:100" if target.kind == "u" or source.kind == "u" else "ints:-100:100"
        recipe = "bool" if source.kind == "b" else recipe
    return {"x": T(d.shape(), recipe=recipe), "dtype": target}


op("cast", evaluate=_cast, error=bounded(lambda ctx: 0.5 * ctx.ulp, "correct rounding"), draw=_draw_cast,
   out_dtype=_target, ambiguous=_cast_open)  # fmt: skip
