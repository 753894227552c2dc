"""One tensor in, one out, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, gathered, underspecified
from suites.mil import op
from suites.mil.codecs import Held, need, overflowing, scalar, typed
from suites.semantics import cast as s_cast
from suites.semantics import elementwise as s

for name in (
    "acos",
    "asin",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "floor",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "logical_not",
):
    op(name, getattr(s, name))
op(
    "sign",
    s.sign,
    Checks(
        ambiguous=lambda c: underspecified(
            '"either -1 or 1, or zero if x is zero": NaN is none', np.isnan(c.inputs["x"])
        )
    ),
)
for name, exact in (("abs", np.abs), ("square", np.square)):
    op(name, getattr(s, name), Checks(ambiguous=overflowing(exact)))
op("round", s.round_half_even)
op("inverse", s.inverse, epsilon=Held("epsilon"))
op("log", s.log_epsilon, epsilon=Held("epsilon"))
op("rsqrt", s.rsqrt_epsilon, epsilon=Held("epsilon"))
op("threshold", s.threshold)


def _draw_clip(d: Draw) -> dict[str, Any]:
    """Limits on either side of 0; before iOS 17 they may be equal."""
    strict = d.version.version == "ios17"
    low = d.int(-64, 64) / 16
    gap = 0 if not strict and d.chance(8) else d.int(1, 96)
    return {"x": T(d.shape()), "alpha": low, "beta": low + gap / 16}


def _beta(call: Call) -> float:
    """ "Strict validation to ensure that alpha < beta" is of iOS 17."""
    low, high = scalar(call, "alpha"), scalar(call, "beta")
    need(call.version.version == "ios15" or low < high, "limits-in-order", f"[{low}, {high}]")
    return high


def _limits_open(call: Call) -> str | None:
    tensors, params = call.version.decode(call)
    crossed = "limits that cross: a value between them is below one and above the other"
    return crossed if params["lo"] > params["hi"] else s.clamp.underspecified(tensors, params)


def _break_limits(d: Draw) -> dict[str, Any]:
    low = d.int(-64, 64) / 16
    return {"x": T(d.shape(1)), "alpha": low, "beta": low - d.int(0, 32) / 16}


_CLIP = (
    Spelling(lo="alpha", hi=Fn(_beta)),
    Sampling(_draw_clip),
    Checks(ambiguous=_limits_open),
)
op("clip", s.clamp, *_CLIP, until="ios15")
op("clip", s.clamp, *_CLIP, Checks(breaks={"limits-in-order": _break_limits}), since="ios17")


# -- cast


def _target(call: Call, i: int = 0) -> Any:
    d = call.attr("dtype")
    return BY_NAME[d] if isinstance(d, str) else d


def _fraction(call: Call) -> str | None:
    """Range comes with the meaning; the rounding of a fraction is not stated either."""
    x, d = call.inputs["x"], _target(call)
    own: str | None = None
    if of(x).kind == "f" and d.kind in "iu":
        own = underspecified("float to integer: the rounding is not stated", ~(np.isfinite(x) & (x == np.trunc(x))))
    if d.kind == "b" and of(x).kind == "f":
        own = underspecified("the truth of NaN", np.isnan(x))
    return gathered(own, s_cast.cast_in_range.underspecified({"x": x}, {"to": d}))


def _draw_cast(d: Draw) -> dict[str, Any]:
    target, source = typed(d, "O"), d.dtype("x")
    recipe = None
    if target.kind in "iu":
        recipe = "ints:0:100" if target.kind == "u" or source.kind == "u" else "ints:-100:100"
        recipe = "bool" if source.kind == "b" else recipe
    return {"x": T(d.shape(), recipe=recipe), "dtype": target}


op(
    "cast",
    s_cast.cast_in_range,
    Spelling(to=Fn(_target), out_dtype=_target),
    Sampling(_draw_cast),
    Checks(ambiguous=_fraction),
)
