"""Comparisons, predicates, logical and bitwise operations, selection: exact for every type."""

from __future__ import annotations

from typing import Any

from harness.declare import Any as Any_
from harness.declare import Array, Bool, Choice, Flag, Float, Int, Num, Real_, exact, semantics, underspecified
from suites.semantics.elementwise.common import native, np, of

CLOSE = ("small", "ties", "special", "unit", "branch")  # data in which equal values are common


def _compare(name: str, x: Any, y: Any) -> Any:
    if of(x).kind in "sc":
        fn = {"equal": np.equal, "not_equal": np.not_equal}[name]
        return fn(x, y).astype(bool)
    return native.binary(name, x, y)


@semantics(error=exact, source="ONNX Equal-19; MIL equal iOS15; TFLite EQUAL; NN equal")
def equal(x: Any_[Array, "*#d"], y: Any_[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x == y: NaN equals nothing, the zeros each other, strings by code points."""
    return _compare("equal", x, y)


@semantics(error=exact, source="MIL not_equal iOS15; TFLite NOT_EQUAL; NN notEqual")
def not_equal(x: Any_[Array, "*#d"], y: Any_[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x != y; true with NaN."""
    return _compare("not_equal", x, y)


@semantics(error=exact, data=CLOSE, source="ONNX Less-13; MIL less iOS15; TFLite LESS; NN lessThan")
def less(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x < y; false with NaN."""
    return native.binary("less", x, y)


@semantics(error=exact, data=CLOSE, source="ONNX LessOrEqual-16; MIL less_equal iOS15; TFLite LESS_EQUAL; NN lessEqual")
def less_equal(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x <= y; false with NaN."""
    return native.binary("less_equal", x, y)


@semantics(error=exact, data=CLOSE, source="ONNX Greater-13; MIL greater iOS15; TFLite GREATER; NN greaterThan")
def greater(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x > y; false with NaN."""
    return native.binary("greater", x, y)


@semantics(
    error=exact,
    data=CLOSE,
    source="ONNX GreaterOrEqual-16; MIL greater_equal iOS15; TFLite GREATER_EQUAL; NN greaterEqual",
)
def greater_equal(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """x >= y; false with NaN."""
    return native.binary("greater_equal", x, y)


@semantics(
    error=exact, source="ONNX And-7; MIL logical_and iOS15; TFLite LOGICAL_AND; NN logicalAnd (non-zero is true)"
)
def logical_and(x: Real_[Array, "*#d"], y: Real_[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """Both are true (non-zero)."""
    return native.binary("logical_and", x, y)


@semantics(error=exact, source="ONNX Or-7; MIL logical_or iOS15; TFLite LOGICAL_OR; NN logicalOr")
def logical_or(x: Real_[Array, "*#d"], y: Real_[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """Either is true."""
    return native.binary("logical_or", x, y)


@semantics(error=exact, source="ONNX Xor-7; MIL logical_xor iOS15; NN logicalXor")
def logical_xor(x: Real_[Array, "*#d"], y: Real_[Array, "*#d"]) -> Bool[Array, "*#d"]:
    """Exactly one is true."""
    return native.binary("logical_xor", x, y)


@semantics(error=exact, source="ONNX Not-1; MIL logical_not iOS15; TFLite LOGICAL_NOT; NN logicalNot")
def logical_not(x: Real_[Array, "*d"]) -> Bool[Array, "*d"]:
    """Is it false (zero)?"""
    return native.unary("logical_not", x)


@semantics(error=exact, data=("special", "small"), source="ONNX IsNaN-20")
def is_nan(x: Float[Array, "*d"]) -> Bool[Array, "*d"]:
    """Is it NaN?"""
    return native.unary("is_nan", x)


@semantics(error=exact, data=("special", "small"), source="ONNX IsInf-20")
def is_inf(x: Float[Array, "*d"], *, detect_negative: Flag = True, detect_positive: Flag = True) -> Bool[Array, "*d"]:
    """Is it an infinity of a detected sign?"""
    return native.unary("is_inf", x, float(detect_negative), float(detect_positive))


@semantics(error=exact, data=("full", "special", "small"), source="ONNX BitwiseAnd-18; TFLite BITWISE_AND")
def bitwise_and(x: Int[Array, "*#d"], y: Int[Array, "*#d"]) -> Int[Array, "*#d"]:
    """x & y."""
    return native.binary("bitwise_and", x, y)


@semantics(error=exact, data=("full", "special", "small"), source="ONNX BitwiseOr-18; TFLite BITWISE_OR")
def bitwise_or(x: Int[Array, "*#d"], y: Int[Array, "*#d"]) -> Int[Array, "*#d"]:
    """x | y."""
    return native.binary("bitwise_or", x, y)


@semantics(error=exact, data=("full", "special", "small"), source="ONNX BitwiseXor-18; TFLite BITWISE_XOR")
def bitwise_xor(x: Int[Array, "*#d"], y: Int[Array, "*#d"]) -> Int[Array, "*#d"]:
    """x ^ y."""
    return native.binary("bitwise_xor", x, y)


@semantics(error=exact, data=("full", "special", "small"), source="ONNX BitwiseNot-18")
def bitwise_not(x: Int[Array, "*d"]) -> Int[Array, "*d"]:
    """~x."""
    return native.unary("bitwise_not", x)


def _count_out_of_range(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, y = inputs["x"], native.convert(inputs["y"], np.int64, saturate=True)
    beyond = (y < 0) | (y >= of(x).bits)
    return underspecified("a shift count below 0 or of the width and more is not defined", beyond)


@semantics(
    error=exact,
    data={"x": ("full", "special", "small"), "y": ("shift",)},
    ambiguous=_count_out_of_range,
    source="ONNX BitShift-28: left fills with zeros, right is arithmetic for signed types; TFLite RIGHT_SHIFT",
)
def bit_shift(
    x: Int[Array, "*#d"], y: Int[Array, "*#d"], *, direction: Choice[str, "LEFT", "RIGHT"]
) -> Int[Array, "*#d"]:
    """x shifted by y bits; what leaves the type is lost.  A count below 0 or of the width and more leaves the sign bits
    alone, of a shift to the right, or nothing (BitShift-28; undefined before)."""
    return native.binary("shift_left" if direction == "LEFT" else "shift_right", x, y)


@semantics(
    error=exact,
    data={"c": ("bool",)},
    source="ONNX Where-16; MIL select iOS15; TFLite SELECT_V2; NN whereBroadcastable",
)
def where(c: Real_[Array, "*#d"], x: Any_[Array, "*#d"], y: Any_[Array, "*#d"]) -> Any_[Array, "*#d"]:
    """x where c is true (non-zero), else y, all three broadcast."""
    return native.where(c if c.dtype == bool else native.convert(c, np.bool_), x, y)
