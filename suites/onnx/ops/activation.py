"""Activations and the other functions of one tensor."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from harness.core.dtypes import float_max, int_range, of, smallest_normal
from harness.core.errors import RuleError
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Sampling,
    Slotted,
    Spelling,
    T,
    beside,
    bounded,
    gathered,
    underspecified,
)
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.onnx.schemas import first_slot
from suites.semantics import elementwise as s
from suites.semantics import variants
from suites.semantics.integers import whole

for _name, _fn in {
    "Abs": s.abs,
    "Acos": s.acos,
    "Acosh": s.acosh,
    "Asin": s.asin,
    "Asinh": s.asinh,
    "Atan": s.atan,
    "Atanh": s.atanh,
    "Ceil": s.ceil,
    "Cos": s.cos,
    "Cosh": s.cosh,
    "Exp": s.exp,
    "Floor": s.floor,
    "Log": s.log,
    "Neg": s.neg,
    "Reciprocal": s.reciprocal,
    "Relu": s.relu,
    "Sigmoid": s.sigmoid,
    "Sin": s.sin,
    "Sinh": s.sinh,
    "Softplus": s.softplus,
    "Softsign": s.softsign,
    "Sqrt": s.sqrt,
    "Tan": s.tan,
    "Mish": s.mish,
    "HardSwish": s.hard_swish,
    "HardSigmoid": s.hard_sigmoid,
    "Elu": s.elu,
    "Selu": s.selu,
    "LeakyRelu": s.leaky_relu,
    "ThresholdedRelu": s.thresholded_relu,
    "Celu": s.celu,
    "Round": s.round_half_even,
    "Swish": s.swish,
    "Sign": s.sign,
    "Erf": s.erf,
    "Tanh": s.tanh,
    "IsNaN": s.is_nan,
    "Not": s.logical_not,
    "BitwiseNot": s.bitwise_not,
}.items():
    if _name == "Erf":  # version 9 takes integers too
        op(_name, s.erf_of_numbers, until=9, x=first_slot(_name))
        op(_name, _fn, since=13, x=first_slot(_name))
        continue
    if _name == "Tanh":  # "1-D input tensor", says version 1
        op(_name, _fn, Sampling(ranks=(1, 1)), until=1, x=first_slot(_name))
        op(_name, _fn, since=6, x=first_slot(_name))
        continue
    op(_name, _fn, x=first_slot(_name))

op("Clip", s.clamp, until=5, x="input", lo=Default("min", -inf), hi=Default("max", inf))
op("Clip", s.clamp, since=6, until=10, x="input", lo="min", hi="max")


class Limit(Slotted):
    """A bound; an absent one is the lowest or highest finite value of the type."""

    def __init__(self, slot: str, sign: int) -> None:
        super().__init__(slot)
        self.sign = sign

    def decode(self, call: Call) -> Any:
        v = call.inputs.get(self.slot)
        if v is None and of(call.inputs["input"]).kind == "f":
            return np.array(self.sign * float_max(of(call.inputs["input"]))).astype(call.inputs["input"].dtype)
        return v


def _open_end(call: Call) -> str | None:
    meant = s.clip.underspecified(*call.version.decode(call))
    if of(call.inputs["input"]).kind != "f":
        return meant
    x: Any
    low: Any
    high: Any
    x, low, high = (None if v is None else v.astype(np.float64) for v in map(call.inputs.get, ("input", "min", "max")))
    at: Any = np.isneginf(x) if low is None else np.False_
    if high is None:
        at = at | np.isposinf(x) | (low is not None and np.isposinf(low).any())
    why = "an infinite element and an absent bound: the prose says the largest finite value, the body no bound"
    return gathered(underspecified(why, at), meant)


def _empty_interval(call: Call) -> str | None:
    """Clip-11 and -12 say nothing of a min above max; Clip-13 says max, with a sentence of its own."""
    args, params = call.version.decode(call)
    meant, x, low, high = s.clip.underspecified(args, params), args["x"], args.get("lo"), args.get("hi")
    if low is None or high is None:
        return meant
    crossed = np.broadcast_to(np.greater(low, high), x.shape)
    why = "min is greater than max: the interval is empty, and no order of the two bounds is stated"
    return gathered(underspecified(why, crossed, *(np.broadcast_to(v, x.shape) for v in (high, low))), meant)


op(
    "Clip",
    s.clip,
    Checks(ambiguous=_empty_interval),
    since=11,
    until=12,
    x="input",
    lo=Limit("min", -1),
    hi=Limit("max", 1),
)
op("Clip", s.clip, Checks(ambiguous=_open_end), since=13, x="input", lo="min", hi="max")


def _slopes(d: Draw) -> dict:
    """Versions 1 and 6: one slope for all, or one a channel."""
    shape: tuple[int, ...] = (d.dim(), d.dim(), *d.shape(0, d.max_rank - 2 if d.chance(8) else 3))
    if d.chance(16) and not d.breaking:
        shape = (1, d.pick((17, 130, 300, 2049)))
    n = shape[1] if d.bool() else 1
    return {"X": T(shape), "slope": T((n,))}


def _slopes_apart(d: Draw) -> dict:
    c = d.int(2, 4)
    return {"X": T((1, c, 2)), "slope": T((c + d.int(1, 2),))}


op(
    "PRelu",
    s.prelu_channels,
    Sampling(_slopes),
    Checks(breaks={"alpha-per-channel": _slopes_apart}),
    until=6,
    x="X",
    alpha="slope",
)
op("PRelu", s.prelu, since=7, x="X", slope="slope")

op("Gelu", variants.gelu, x="X")


def _whole(call: Call, results: list[Any]) -> list[Any]:
    x = call.inputs["input"]
    return [whole(results[0], x)] if of(x).kind in "iu" and of(results[0]).kind == "f" else results


def _fraction(call: Call) -> str | None:
    bias = float(call.attr("bias", 0.0))
    x = call.inputs["input"]
    if of(x).kind not in "iu" or (bias == int(bias) and (not x.size or in_type(x, bias))):
        return None
    tensors, params = call.version.decode(call)
    real = np.asarray(call.version.meaning.fn(**tensors, **params), np.float64)
    return beside("integers and a bias that the type does not hold", real, np.abs(real) * 2.0**-23, of(x))


def in_type(x: np.ndarray, bias: float) -> bool:
    """Do x + bias and x - bias stay in the type, and x within the integers a double holds?"""
    lo, hi = int_range(of(x))
    low, high = int(x.min()), int(x.max())
    return max(abs(low), abs(high)) < 2**53 and lo <= low - abs(int(bias)) and high + abs(int(bias)) <= hi


op("Shrink", s.shrink, Spelling(x="input", out=_whole), Checks(ambiguous=_fraction))


def _swiglu(c: Call) -> np.ndarray:
    a, b = (c.inputs[n].astype(np.float64) for n in "AB")
    if a.shape != b.shape:
        raise RuleError("same-shape", f"{list(a.shape)} and {list(b.shape)}: broadcasting is not applied")
    with np.errstate(all="ignore"):
        return a / (1 + np.exp(-c.attr("alpha") * a)) * b


def _swiglu_bound(ctx: Context) -> np.ndarray:
    """Three roundings and that of alpha a, which e^x makes a relative error; the function body rounds each to the
    type."""
    c = ctx.call
    a, b = (np.abs(c.inputs[n].astype(np.float64)) for n in "AB")
    with np.errstate(all="ignore"):
        lost = smallest_normal(ctx.out) * (1 + a) * (1 + b)
        return ctx.u * (12 + 4 * abs(c.attr("alpha")) * a) * np.abs(ctx.wide) + lost + 2 * ctx.ulp


def _draw_swiglu(d: Draw) -> dict:
    shape = d.shape(0, 4)
    return {
        "A": T(shape, "unit" if d.bool() else None),
        "B": T(shape),
        **({"alpha": d.pick((0.5, 1.702, -1.0))} if d.bool() else {}),
    }


def _break_swiglu(d: Draw) -> dict:
    """Shapes of which one would broadcast to the other."""
    n, m = d.int(2, 5), d.int(2, 5)
    other = d.pick(((n, 1), (1, m), (m,), ()))
    return {"A": T((n, m)), "B": T(other)} if d.bool() else {"A": T(other), "B": T((n, m))}


op(
    "SwiGLU",
    Evaluation(_swiglu, bounded(_swiglu_bound, "u (12 + 4 |alpha a|) |y| + 2 ulp"), "ONNX SwiGLU-28"),
    Spelling(out_dtype=lambda c, i: of(c.inputs["A"])),
    Sampling(_draw_swiglu),
    Checks(breaks={"same-shape": _break_swiglu}),
)
