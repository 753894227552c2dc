"""Elementwise operators on plain tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME
from harness.declare import (
    Call,
    Checks,
    Draw,
    Fn,
    Group,
    Pattern,
    Sampling,
    Semantics,
    Spelling,
    T,
    gathered,
    underspecified,
)
from suites.semantics import elementwise as s
from suites.semantics import tensorflow as tf
from suites.tflite import op, readings
from suites.tflite.codecs import both, fused, nan_activation

# -- one operand

for _name, _meaning, _slot in (
    ("ABS", s.abs, "x"),
    ("CEIL", s.ceil, "x"),
    ("COS", s.cos, "x"),
    ("EXP", s.exp, "x"),
    ("FLOOR", s.floor, "x"),
    ("HARD_SWISH", s.hard_swish, "input"),
    ("LOG", s.log, "x"),
    ("LOGICAL_NOT", s.logical_not, "lhs"),
    ("LOGISTIC", s.sigmoid, "x"),
    ("NEG", s.neg, "x"),
    ("RELU", s.relu, "x"),
    ("RELU6", s.relu6, "x"),
    ("RELU_0_TO_1", s.relu_0_to_1, "x"),
    ("RELU_N1_TO_1", s.relu_n1_to_1, "x"),
    ("ROUND", s.round_half_even, "x"),
    ("RSQRT", s.rsqrt, "x"),
    ("SIGN", s.sign, "x"),
    ("SIN", s.sin, "x"),
    ("SQRT", s.sqrt, "x"),
    ("SQUARE", s.square, "x"),
    ("TANH", s.tanh, "input"),
):
    op(_name, _meaning, x=_slot)

op("ELU", s.elu, Spelling(fixed={"alpha": 1.0}))
op("LEAKY_RELU", s.leaky_relu, x="input")
op("GELU", tf.gelu, Checks(ambiguous=lambda call: _minus_infinity(call.inputs["input"])), x="input")
# tfl prelu: the shapes broadcast
_MISFIT = Checks(breaks={"slope-fits": lambda d: {"input": T((2, 3)), "alpha": T(d.pick(((4,), (2, 2))))}})
op("PRELU", s.prelu, _MISFIT, x="input", slope="alpha")


def _minus_infinity(x: Any) -> str | None:
    return underspecified(
        "x * Phi(x) at minus infinity: the formula gives NaN, its limit is 0",
        x == -np.inf,
        np.float32(np.nan),
        np.float32(0),
    )


def _draw_complex(d: Draw) -> dict[str, Any]:
    half = "f32" if d.types["T"].name == "c64" else "f64"
    return {"input": T(d.shape()), "@outputs": [{"dtype": half}]}


for _name, _meaning in (("COMPLEX_ABS", tf.complex_abs), ("REAL", tf.real_part), ("IMAG", tf.imaginary_part)):
    op(_name, _meaning, Sampling(_draw_complex), x="input")


# -- two operands


def arithmetic(name: str, meaning: Semantics, *groups: Group, **versions: Any) -> None:
    """Operators with a fused activation."""
    op(
        name,
        meaning,
        Spelling(x="lhs", y="rhs", out=fused()),
        Sampling(tags=("fused",)),
        Checks(ambiguous=nan_activation(meaning)),
        *groups,
        **versions,
    )


arithmetic("ADD", s.add)
arithmetic("SUB", s.sub)
arithmetic("MUL", s.mul, until=5)
arithmetic("MUL", tf.product, Checks(error=tf.product.error), since=6)  # from here on complex numbers, too
arithmetic("DIV", s.div)
for _name, _meaning in (
    ("POW", s.pow),
    ("SQUARED_DIFFERENCE", s.squared_difference),
    ("LOGICAL_AND", s.logical_and),
    ("LOGICAL_OR", s.logical_or),
    ("BITWISE_XOR", s.bitwise_xor),
):
    op(_name, _meaning, x="lhs", y="rhs")


def _by_zero(call: Call) -> str | None:
    why = "a division by zero: no document says whether it is refused"
    return gathered(underspecified(why, call.inputs["rhs"] == 0), _silent(call))


def _silent(call: Call) -> str | None:
    m = call.version.meaning
    return m.ambiguous(*call.version.decode(call)) if m is not None and m.ambiguous is not None else None


op("FLOOR_DIV", s.floor_div, Checks(ambiguous=_by_zero), x="lhs", y="rhs")
op("FLOOR_MOD", s.floor_mod, Checks(ambiguous=_by_zero), x="lhs", y="rhs")
op("RIGHT_SHIFT", s.bit_shift, Spelling(x="lhs", y="rhs", fixed={"direction": "RIGHT"}))


def _two_extents(d: Draw) -> dict[str, Any]:
    n = d.int(1, 5)
    return {"y": T((n,)), "x": T((n + 1,))}


# tfl.atan2: SameOperandsAndResultShape
op(
    "ATAN2",
    s.atan2,
    Sampling(lambda d: _same_shape(d, ("y", "x"))),
    Checks(stated={"y": "*d", "x": "*d"}, breaks={"shapes-stated": _two_extents}),
)
both("MAXIMUM", s.maximum, x="lhs", y="rhs")
both("MINIMUM", s.minimum, x="lhs", y="rhs")
for _name, _meaning, _x, _y in (
    ("EQUAL", s.equal, "x", "y"),
    ("NOT_EQUAL", s.not_equal, "lhs", "rhs"),
    ("LESS", s.less, "lhs", "rhs"),
    ("LESS_EQUAL", s.less_equal, "lhs", "rhs"),
    ("GREATER", s.greater, "lhs", "rhs"),
    ("GREATER_EQUAL", s.greater_equal, "lhs", "rhs"),
):
    op(_name, _meaning, x=_x, y=_y)


def _same_shape(d: Draw, slots: tuple[str, ...]) -> dict[str, Any]:
    shape = d.shape()
    return {name: T(shape) for name in slots}


def _draw_add_n(d: Draw) -> dict[str, Any]:
    shape = d.shape()
    return {"inputs": [T(shape) for _ in range(d.int(2, 4))]}


op("ADD_N", s.sum_n, Sampling(_draw_add_n), xs="inputs")

# -- selection


def _draw_select(d: Draw) -> dict[str, Any]:
    shape = d.shape()
    rows = shape and d.chance(3)
    return {"condition": T(shape[:1] if rows else shape, "bool"), "x": T(shape), "y": T(shape)}


def _condition(call: Call) -> str:
    """Of the shape of the operands, or along their first axis; a scalar, which the text does not name, is let pass."""
    c, x = call.inputs["condition"], call.inputs["x"]
    return "" if not c.ndim else "*d" if c.ndim == x.ndim else str(x.shape[0]) if x.ndim else ""


def _another_condition(d: Draw) -> dict[str, Any]:
    n = d.int(2, 4)
    shape = (n, n + 1)
    return {"condition": T(d.pick(((n + 1,), (n, 1), (1, *shape))), "bool"), "x": T(shape), "y": T(shape)}


both(
    "SELECT",
    tf.select_rows,
    Sampling(_draw_select),
    Checks(stated={"x": "*d", "y": "*d", "condition": _condition}, breaks={"shapes-stated": _another_condition}),
    c="condition",
)
both("SELECT_V2", s.where, c="condition")

# -- reinterpretation


def _draw_bitcast(d: Draw) -> dict[str, Any]:
    a = d.types["T"]
    b = d.pick(list(d.version.schema.dtypes("O")))
    shape = d.shape(0, d.max_rank - 1)
    if b.bits > a.bits:
        shape = (*shape, b.bits // a.bits)
    return {"input": T(shape, "full" if a.kind in "iu" else "unit"), "@outputs": [{"dtype": b.name}]}


def _misfit(d: Draw) -> dict[str, Any]:
    """Bytes under a type of four or eight, of which the last axis has another number, or there is no axis."""
    wide = BY_NAME[d.pick(("i32", "u32", "f32", "i64", "f64"))]
    n = wide.bits // 8
    shape = d.pick(((), (n - 1,), (n + 1,), (n, 1), (2, 2 * n)))
    return {"input": T(shape, "full", dtype=BY_NAME["u8"]), "@outputs": [{"dtype": wide.name}]}


def _target(call: Call) -> Any:
    d = call.declared(0)["dtype"]
    return BY_NAME[d] if isinstance(d, str) else d


op(
    "BITCAST",
    tf.bitcast,
    Spelling(x="input", dtype=Fn(_target), out_dtype=lambda call, i: _target(call)),
    Sampling(_draw_bitcast),
    Checks(breaks={"last-axis-is-ratio": _misfit}),
)

# -- arithmetic of another kind


def _lengths(slot: str) -> Fn:
    return Fn(lambda call: tuple(int(n) for n in call.inputs[slot]), lambda v, b: b.value(slot, list(v)))


def _one_an_axis(call: Call) -> str:
    """tfl.dilate: as many dilations as the input has axes."""
    return str(call.inputs["input"].ndim)


op(
    "DILATE",
    tf.dilate,
    # dilate.cc, Prepare: an input of one axis at least
    Checks(stated={"input": "_n *_d", "dilations": Pattern(_one_an_axis, (1, 1))}),
    x="input",
    value="padding_value",
    dilations=_lengths("dilations"),
)
op(
    "RFFT2D",
    tf.rfft2d,
    Checks(ambiguous=readings.transforms),
    x="input",
    lengths=_lengths("fft_length"),
)
op(
    "L2_NORMALIZATION",
    tf.l2_normalize,
    Spelling(x="input", out=fused()),
    Sampling(tags=("fused",)),
)
op("LOCAL_RESPONSE_NORMALIZATION", tf.local_response, x="input")
