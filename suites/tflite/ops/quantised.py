"""Quantised forms of elementwise operators; those that only move elements are in their own families."""

from __future__ import annotations

import math
from typing import Any

from harness.core.dtypes import BY_NAME, I8, U8, int_range
from harness.declare import Build, Call, Checks, Draw, Fn, Group, Sampling, Spelling, T
from suites.semantics.quantised import convert, functions, products
from suites.semantics.quantised import elementwise as q
from suites.semantics.quantised.fixed import draw_parameters, f32, near_or_apart
from suites.tflite import op
from suites.tflite.codecs import AxesInput, OutQ, Q, axes_breaks, later

_ACTIVATION: dict[str, Any] = {"activation": "fused_activation_function"}
_FEW = 64  # elements that an instance states one by one


def binary(name: str, meaning: Any, *groups: Group, x: str = "lhs", y: str = "rhs", activation: bool = True) -> None:
    """lhs, rhs and output each with parameters of their own."""
    names = dict(_ACTIVATION) if activation else {}
    op(name, meaning, *groups, domain="quantised", x=x, y=y, xq=Q(x), yq=Q(y), oq=OutQ(x), **names)


class _SumQ(OutQ):
    """Of 16 bits: the option for scales that are powers of two.  One time in three they are; then the result has the
    larger of the operands' scales where the option is set, as fixed-point arithmetic without a multiplier needs it."""

    def encode(self, value: Any, b: Build) -> None:
        d = b.draw
        if d.types["T"].bits == 16:
            general = d.bool()
            if general:
                b.attrs["pot_scale_int16"] = False
            if d.chance(3):
                x, y = -d.int(4, 14), -d.int(4, 14)
                o = max(x, y) + (d.int(-1, 2) if general else 0)
                scales = [{"scale": [2.0**e], "zero_point": [0], "axis": 0} for e in (x, y, o)]
                b.values["xq"], b.values["yq"], value = scales
                b.args["lhs"].quant, b.args["rhs"].quant = scales[:2]
        super().encode(value, b)


for _name, _meaning in (("ADD", q.add), ("SUB", q.sub)):
    op(_name, _meaning, domain="quantised", x="lhs", y="rhs", xq=Q("lhs"), yq=Q("rhs"), oq=_SumQ("lhs"), **_ACTIVATION)


class _ProductQ(OutQ):
    """The product's scale; one time in four no coarser than the factors' together, and never so where the version
    does not take that."""

    def encode(self, value: Any, b: Build) -> None:
        narrow, product = b.draw.types["T"].bits == 8, b.values["xq"]["scale"][0] * b.values["yq"]["scale"][0]
        if later(b.draw, "rescale_above_one"):
            value = {**value, "scale": [max(value["scale"][0], f32(product * (1 + 2**-20)))]}
        elif narrow and b.draw.chance(4):  # a fine 16-bit scale only saturates
            fine = product / b.draw.pick((1, 1.5, 3, 8))
            value = {**value, "scale": [f32(fine * (1 - 2**-20))]}
        super().encode(value, b)


op("MUL", q.mul, domain="quantised", x="lhs", y="rhs", xq=Q("lhs"), yq=Q("rhs"), oq=_ProductQ("lhs"), **_ACTIVATION)


class _DivisorQ(Q):
    """The divisor's parameters.  Its elements lie below the zero point or above it, or on either side, and never at it:
    they stand for no 0.  One dividend in eight that has the same shape is as its divisor, which may be the same tensor.
    """

    def encode(self, value: Any, b: Build) -> None:
        super().encode(value, b)
        d, x, y = b.draw, b.args["lhs"], b.args["rhs"]
        (lo, hi), zero = int_range(y.dtype), value["zero_point"][0]
        sides = [(m, n) for m, n in ((lo, zero - 1), (zero + 1, hi), (zero + 1, min(zero + 9, hi))) if m <= n]
        if 0 < math.prod(y.shape) <= _FEW and d.chance(4):
            y.values = [d.int(*d.pick(sides)) for _ in range(math.prod(y.shape))]
        else:
            y.recipe = "ints:{}:{}".format(*d.pick(sides))
        if x.shape == y.shape and d.chance(8):
            x.quant, x.recipe, x.values, b.values["xq"] = y.quant, y.recipe, y.values, value


op(
    "DIV",
    q.div,
    Sampling(types={"T": "u8"}, why="only uint8 has a quantised form"),
    domain="quantised",
    x="lhs",
    y="rhs",
    xq=Q("lhs"),
    yq=_DivisorQ("rhs"),
    oq=OutQ("lhs"),
    **_ACTIVATION,
)
binary("SQUARED_DIFFERENCE", q.squared_difference, activation=False)
_MISFIT = Checks(breaks={"slope-fits": lambda d: {"input": T((2, 3)), "alpha": T(d.pick(((4,), (2, 2))))}})
binary("PRELU", functions.prelu, _MISFIT, x="input", y="alpha", activation=False)

for _name, _meaning, _slot in (
    ("LOGISTIC", functions.logistic, "x"),
    ("TANH", functions.tanh, "input"),
    ("EXP", functions.exp, "x"),
    ("LOG", functions.log, "x"),
    ("SQRT", functions.sqrt, "x"),
    ("RSQRT", functions.rsqrt, "x"),
    ("ELU", functions.elu, "x"),
    ("HARD_SWISH", functions.hard_swish, "input"),
    ("ABS", functions.absolute, "x"),
    ("RELU", functions.relu, "x"),
    ("RELU6", functions.relu6, "x"),
    ("RELU_N1_TO_1", functions.relu_n1_to_1, "x"),
    ("RELU_0_TO_1", functions.relu_0_to_1, "x"),
):
    op(_name, _meaning, domain="quantised", x=_slot, xq=Q(_slot), oq=OutQ(_slot))

op("LEAKY_RELU", functions.leaky_relu, domain="quantised", x="input", xq=Q("input"), oq=OutQ("input"))
op(
    "GELU",
    functions.gelu,
    Sampling(lambda d: _draw_gelu(d)),
    domain="quantised",
    x="input",
    xq=Q("input"),
    oq=OutQ("input"),
    approximate=Fn(lambda call: bool(call.attr("approximate"))),
)


def _draw_gelu(d: Draw) -> dict[str, Any]:
    dt = d.types["T"]
    xq = draw_parameters(d, dt, scale=d.pick((0.01, 0.03, 0.05, 0.1)))
    oq = draw_parameters(d, dt, scale=near_or_apart(d, xq["scale"][0] * (0.5 + d.int(0, 16) / 16), xq))
    return {
        "input": T(d.shape(), d.pick(("full", "small")), quant=xq),
        "approximate": d.bool(),
        "@outputs": [{"dtype": dt.name, "quant": oq}],
    }


op(
    "REDUCE_PROD",
    products.reduce_prod,
    axes_breaks("axes"),
    domain="quantised",
    x="input",
    axes=AxesInput("axes"),
    keepdims="keep_dims",
    xq=Q("input"),
    oq=OutQ("input"),
)


# -- QUANTIZE, DEQUANTIZE


def _declared_type(call: Call) -> Any:
    return call.declared(0)["dtype"]


def _channels(d: Draw, q: dict[str, Any], shape: tuple[int, ...], dt: Any) -> dict[str, Any]:
    """Per-channel parameters (symmetric) where the version knows them, one time in three."""
    if later(d, "per_channel") or dt is not I8 or not shape or 0 in shape or not d.chance(3):
        return q
    axis = d.int(0, len(shape) - 1)
    if shape[axis] < 2:
        return q
    return {
        "scale": [draw_parameters(d, dt)["scale"][0] for _ in range(shape[axis])],
        "zero_point": [0] * shape[axis],
        "axis": axis,
    }


def _draw_quantize(d: Draw) -> dict[str, Any]:
    shape = d.shape()
    dt = BY_NAME[d.pick([t.name for t in d.version.schema.dtypes("O")])]
    oq = _channels(d, draw_parameters(d, dt), shape, dt)
    lo, hi = int_range(dt)
    reach = max(abs(lo), hi) * max(oq["scale"]) * 1.3
    recipe = d.pick(("small", f"uniform:{-reach:.6g}:{reach:.6g}", f"uniform:{-reach:.6g}:{reach:.6g}", "wide", "ties"))
    return {"input": T(shape, recipe), "@outputs": [{"dtype": dt.name, "quant": oq}]}


def _scales_beyond(d: Draw) -> dict[str, Any]:
    """A scale more than the axis has positions."""
    v, n = _draw_quantize(d), d.int(2, 4)
    many = n + d.int(1, 3)
    oq = {"scale": [0.5] * many, "zero_point": [0] * many, "axis": 0}
    return v | {"input": T((n, 2)), "@outputs": [{"dtype": "i8", "quant": oq}]}


_OUT: dict[str, Any] = {"oq": Fn(lambda call: call.declared(0)["quant"]), "dtype": Fn(_declared_type)}
op(
    "QUANTIZE",
    convert.quantize,
    Spelling(x="input", out_dtype=lambda call, i: _declared_type(call), **_OUT),
    Sampling(_draw_quantize),
    Checks(breaks={"scale-per-position": _scales_beyond}),
)


def _draw_requantize(d: Draw) -> dict[str, Any]:
    dt = BY_NAME[d.pick([t.name for t in d.version.schema.dtypes("O")])]
    have = d.types["T"]
    if have.bits == 16 and dt is U8:  # the specification has 16-bit activations beside int8 only
        dt = I8
    xq = draw_parameters(d, have)
    ratio = 2.0 ** (have.bits - dt.bits) * (0.3 + d.int(0, 32) / 16)
    oq = draw_parameters(d, dt, scale=near_or_apart(d, xq["scale"][0] * ratio, xq))
    return {
        "input": T(d.shape(), d.pick(("full", "small")), dtype=have, quant=xq),
        "@outputs": [{"dtype": dt.name, "quant": oq}],
    }


op(
    "QUANTIZE",
    convert.requantize,
    Spelling(x="input", xq=Q("input"), out_dtype=lambda call, i: _declared_type(call), **_OUT),
    Sampling(_draw_requantize),
    domain="quantised",
)


def _draw_dequantize(d: Draw) -> dict[str, Any]:
    dt = d.types["T"]
    shape = d.shape()
    return {
        "input": T(
            shape, "full", quant=_channels(d, draw_parameters(d, dt), shape, dt), const=True if dt.bits == 2 else None
        )
    }


op("DEQUANTIZE", convert.dequantize, Sampling(_draw_dequantize), domain="quantised", x="input", xq=Q("input"))
op("DEQUANTIZE", convert.widen, x="input")
