"""Elementwise layers.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, params, underspecified
from suites.nn import op
from suites.nn.spell import Or, Weight, several
from suites.semantics import coreml
from suites.semantics import elementwise as e
from suites.semantics.elementwise import math as m

op("ceil", m.ceil)
op("floor", m.floor)
op("sign", m.sign)


def _half(c: Call) -> str | None:
    """The text says the nearest integer, and nothing of two that are equally near."""
    with np.errstate(all="ignore"):
        x = c.inputs["x"]
        return underspecified("nearest-of-two", np.abs(x - np.floor(x)) == 0.5, np.floor(x), np.ceil(x))


op(
    "round",
    m.round_half_even,
    Sampling(data=("uniform:-8:8", "wide", "ties", "special", "unit")),
    Checks(ambiguous=_half),
)
op("exp2", m.exp2)
op("sin", m.sin)
op("cos", m.cos)
op("tan", m.tan)
op("asin", m.asin)
op("acos", m.acos)
op("atan", m.atan)
op("sinh", m.sinh)
op("cosh", m.cosh)
op("tanh", m.tanh)
op("asinh", m.asinh)
op("acosh", m.acosh)
op("atanh", m.atanh)
op("erf", m.erf)

_UNARY: dict[str, Any] = {"epsilon": Or("epsilon", 1e-6), "scale": Or("scale", 1.0)}
_POSITIVE = ("positive", "prob", "special", "small")
op("unary.SQRT", coreml.shifted, Spelling(fixed={"function": "sqrt"}, **_UNARY), Sampling(data=_POSITIVE))
op("unary.RSQRT", coreml.shifted, Spelling(fixed={"function": "rsqrt"}, **_UNARY), Sampling(data=_POSITIVE))
op("unary.INVERSE", coreml.shifted, Spelling(fixed={"function": "inverse"}, **_UNARY))
op("unary.POWER", coreml.shifted, Spelling(fixed={"function": "power"}, **_UNARY), Sampling(data=_POSITIVE))
op("unary.EXP", coreml.shifted, Spelling(fixed={"function": "exp"}, **_UNARY))
op("unary.LOG", coreml.shifted, Spelling(fixed={"function": "log"}, **_UNARY), Sampling(data=_POSITIVE))
op("unary.ABS", coreml.shifted, Spelling(fixed={"function": "abs"}, **_UNARY))
op("unary.THRESHOLD", coreml.shifted, Spelling(fixed={"function": "threshold"}, **_UNARY))

op("clip", e.clamp, lo="minVal", hi="maxVal")

# -- two operands, NumPy broadcasting

_PAIR = {"x": "a", "y": "b"}
op("addBroadcastable", e.add, **_PAIR)
op("subtractBroadcastable", e.sub, **_PAIR)
op("multiplyBroadcastable", e.mul, **_PAIR)
op("divideBroadcastable", e.div, **_PAIR)
op("floorDivBroadcastable", e.floor_div, **_PAIR)


def _two_signs(c: Call) -> str | None:
    """The text says the modular operation, and nothing of the sign of the remainder."""
    a, b = np.broadcast_arrays(c.inputs["a"], c.inputs["b"])
    with np.errstate(all="ignore"):
        rest = np.fmod(a.astype(np.float64), b)  # exact; that of floor is one rounding more
        within = 2.0**-23 * np.abs(b.astype(np.float64))
        at = ((a < 0) != (b < 0)) & (rest != 0)
        return underspecified(
            "sign-of-the-remainder", at, rest, rest + b, within=np.where(np.isfinite(within), within, 0)
        )


op(
    "modBroadcastable",
    e.floor_mod,
    Sampling(data=("positive", "uniform:0.5:64", "small", "special", "ints:1:40")),
    Checks(ambiguous=_two_signs),
    **_PAIR,
)
op("powBroadcastable", e.pow, **_PAIR)
op("maxBroadcastable", e.maximum, **_PAIR)
op("minBroadcastable", e.minimum, **_PAIR)
op("logicalAnd", e.logical_and, **_PAIR)
op("logicalOr", e.logical_or, **_PAIR)
op("logicalXor", e.logical_xor, **_PAIR)
op("logicalNot", e.logical_not)
op("whereBroadcastable", e.where, c="condition", x="a", y="b")


def _second(c: Call) -> np.ndarray:
    return c.inputs["b"] if "b" in c.inputs else np.array([c.attr("alpha")], np.float32)


_NUMBER = params.Real(-2.0, 2.0, also=(0.0, 1.0))


def _draw_compared(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    recipe = d.pick(("ties", "small", "special", "ties", "unit"))
    if d.chance(3):
        return {"a": T(shape, recipe), "alpha": _NUMBER.draw(d, {})}
    a, b = shape, d.broadcast_from(shape)
    a, b = (a, b) if d.bool() else (b, a)
    return {"a": T(a, recipe), "b": T(b, recipe)}


def _clash(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"a": T((*shape[:-1], 3)), "b": T((*shape[:-1], 2))}


_COMPARED = (
    Spelling(x="a", y=Fn(_second)),
    Sampling(_draw_compared),
    Checks(breaks={"broadcast:b": _clash}),
)
op("equal", e.equal, *_COMPARED)
op("notEqual", e.not_equal, *_COMPARED)
op("lessThan", e.less, *_COMPARED)
op("lessEqual", e.less_equal, *_COMPARED)
op("greaterThan", e.greater, *_COMPARED)
op("greaterEqual", e.greater_equal, *_COMPARED)

# -- any number of operands, in the few shapes that these older layers broadcast


def _operands(c: Call) -> list[np.ndarray]:
    """The inputs; of a single one, with alpha beside it."""
    xs = c.inputs["xs"]
    return [*xs, np.array([c.attr("alpha")], np.float32)] if len(xs) == 1 else xs


def _draw_operands(alone: bool, forms: int) -> Any:
    """[B, C, H, W] first, then forms of it: all of it, [B, C, 1, 1], and for some layers [B, 1, H, W], [B, 1, 1, 1]."""

    def draw(d: Draw) -> dict[str, Any]:
        if alone and d.chance(3):
            return {"xs": [T(d.shape(1))], "alpha": _NUMBER.draw(d, {})}
        if d.bool():
            shape = d.shape(1)
            return {"xs": [T(shape) for _ in range(d.int(2, 4))]}
        b, c, h, w = (d.dim(1, 5) for _ in range(4))
        options = ((b, c, h, w), (b, c, 1, 1), (b, 1, h, w), (b, 1, 1, 1))[:forms]
        return {"xs": [T((b, c, h, w)), *(T(d.pick(options)) for _ in range(d.int(1, 3)))]}

    return draw


def _alone(d: Draw) -> dict[str, Any]:
    return {"xs": [T(d.shape(1))]}


def _apart(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"xs": [T((*shape[:-1], 3)), T((*shape[:-1], 2))]}


_FEW = {"two-or-more": _alone, "broadcast:xs": _apart}
op("add", e.sum_n, Sampling(_draw_operands(True, 4)), Checks(breaks={"broadcast:xs": _apart}), xs=Fn(_operands))
op("multiply", e.mul_n, Sampling(_draw_operands(True, 4)), Checks(breaks={"broadcast:xs": _apart}), xs=Fn(_operands))
op("average", e.mean_n, Sampling(_draw_operands(False, 4)), Checks(breaks=_FEW), xs=several())
op("max", e.max_n, Sampling(_draw_operands(False, 2)), Checks(breaks=_FEW), xs=several())
op("min", e.min_n, Sampling(_draw_operands(False, 2)), Checks(breaks=_FEW), xs=several())

# -- stored scale and bias


def _forms(d: Draw, c: int, h: int, w: int) -> tuple[int, ...]:
    return d.pick(((1,), (c,), (1, h, w), (c, h, w)))


def _image_shape(d: Draw) -> tuple[int, ...]:
    """Now and then an axis beyond a vector, or many elements."""
    return d.pick(((16, 1, 2), (2, 130, 1), (1, 9, 257), (257, 3, 3))) if d.chance(12) else d.shape(3)


def _draw_scale(d: Draw) -> dict[str, Any]:
    shape = _image_shape(d)
    form = _forms(d, *shape[-3:])
    out: dict[str, Any] = {"x": T(shape), "scale": T(form, const=True), "shapeScale": list(form)}
    if d.bool():
        more = _forms(d, *shape[-3:])
        out.update(hasBias=True, bias=T(more, const=True), shapeBias=list(more))
    return out


def _draw_bias(d: Draw) -> dict[str, Any]:
    shape = _image_shape(d)
    form = _forms(d, *shape[-3:])
    return {"x": T(shape), "bias": T(form, const=True), "shape": list(form)}


def _scale_apart(d: Draw) -> dict[str, Any]:
    return {"x": T((2, 3, 4)), "scale": T((3,), const=True), "shapeScale": [3]}


def _bias_apart(d: Draw) -> dict[str, Any]:
    return {"x": T((2, 3, 4)), "bias": T((3,), const=True), "shape": [3]}


_RANK = {"x": "*_lead c h w"}  # at least 3
op(
    "scale",
    coreml.scale_bias,
    Sampling(_draw_scale),
    Checks(stated=_RANK, breaks={"scale-shape": _scale_apart}),
    scale=Weight("scale"),
    bias=Weight("bias", flag="hasBias"),
)
op(
    "bias",
    coreml.scale_bias,
    Sampling(_draw_bias),
    Checks(stated=_RANK, breaks={"scale-shape": _bias_apart}),
    bias=Weight("bias"),
)
