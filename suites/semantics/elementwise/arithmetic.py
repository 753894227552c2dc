"""Two and more operands: arithmetic, division in its variants, powers, extremes.

Integer overflow wraps in two's complement, as every operator set's runtime does and ONNX Cast states for conversions.
"""

from __future__ import annotations

import functools
from typing import Any

from harness.core.dtypes import float_max
from harness.declare import (
    Array,
    Context,
    Float,
    Num,
    Variadic,
    accumulates,
    exact,
    gathered,
    rounded,
    semantics,
    underspecified,
)
from suites.semantics.elementwise.common import native, np, of, open_at_nan, plus_absolute

DIVISORS = {"y": ("nonzero", "nonzero", "positive", "special", "small", "wide")}


@semantics(error=rounded(0.5), source="ONNX Add-14; MIL add iOS15; TFLite ADD; NN addBroadcastable; IEEE 754")
def add(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x + y."""
    return native.binary("add", x, y)


@semantics(error=rounded(0.5), source="ONNX Sub-14; MIL sub iOS15; TFLite SUB; NN subtractBroadcastable; IEEE 754")
def sub(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x - y."""
    return native.binary("sub", x, y)


@semantics(error=rounded(0.5), source="ONNX Mul-14; MIL mul iOS15; TFLite MUL; NN multiplyBroadcastable; IEEE 754")
def mul(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x * y."""
    return native.binary("mul", x, y)


def _zero_modulus(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """The lowest integer modulo -1 is 0, although the quotient overflows."""
    y = np.asarray(inputs["y"])
    return underspecified("integer division by zero is not defined", y == 0) if of(y).kind in "iu" else None


def _zero_divisor(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, y = np.asarray(inputs["x"]), np.asarray(inputs["y"])
    d = of(y)
    if d.kind not in "iu":
        return None
    lowest = (y == -1) & (x == np.array(-(2 ** (d.bits - 1))).astype(x.dtype)) if d.kind == "i" else np.False_
    return gathered(
        underspecified("integer division by zero is not defined", y == 0),
        underspecified("the lowest integer divided by -1 overflows: no result is defined", lowest),
    )


@semantics(
    error=rounded(1),
    data=DIVISORS,
    ambiguous=_zero_divisor,
    source="ONNX Div-14: integers toward zero; TFLite DIV; MIL real_div iOS15; NN divideBroadcastable; IEEE 754",
)
def div(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x / y; integers truncate toward zero."""
    return native.binary("div", x, y)


def _next_to_integer(ctx: Context) -> Any:
    # the printed formula rounds x / y before the floor: next to an integer it may land on the other side
    q = np.divide(ctx.inputs["x"], ctx.inputs["y"])
    return np.where(np.abs(q - np.round(q)) <= 2 * ctx.u * np.abs(q), 1.0, 0.0)


@semantics(
    error=plus_absolute(0.5, _next_to_integer, "1 where x/y is within 2u|x/y| of an integer"),
    data=DIVISORS,
    ambiguous=_zero_divisor,
    source="MIL floor_div iOS15; TFLite FLOOR_DIV; NN floorDivBroadcastable: largest integer not above x/y",
)
def floor_div(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """floor(x / y) of the exact quotient."""
    return native.binary("floor_div", x, y)


def _floor_mod_error(ctx: Context) -> Any:
    # x - floor(x/y) y evaluated as printed: the product is rounded, and floor may be one off
    x, y = np.abs(ctx.inputs["x"]), np.abs(ctx.inputs["y"])
    q = np.divide(ctx.inputs["x"], ctx.inputs["y"])
    jump = np.where(np.abs(q - np.round(q)) <= 2 * ctx.u * np.abs(q), y, 0.0)
    return 2 * ctx.u * x + jump


@semantics(
    error=plus_absolute(1, _floor_mod_error, "2u|x|, + |y| where x/y is within 2u|x/y| of an integer"),
    data=DIVISORS,
    ambiguous=_zero_modulus,
    source="ONNX Mod-28 fmod=0 (sign of y); MIL mod iOS15; TFLite FLOOR_MOD; NN modBroadcastable",
)
def floor_mod(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x - floor(x / y) * y exactly; it has y's sign."""
    return native.binary("floor_mod", x, y)


@semantics(error=exact(), data=DIVISORS, ambiguous=_zero_modulus, source="ONNX Mod-13 fmod=1, C fmod: exact, sign of x")
def fmod(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x - trunc(x / y) * y exactly; it has x's sign."""
    return native.binary("fmod", x, y)


def _integer_power(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, y = np.asarray(inputs["x"]), np.asarray(inputs["y"])
    d = of(x)
    if d.kind not in "iu":
        return None
    below = native.convert(y, np.int64) < 0 if of(y).kind == "i" else np.False_
    wide = np.abs(native.binary("pow", native.convert(x, np.float64), native.convert(y, np.float64)))
    many = wide > 2.0**53 if of(y).kind == "f" else np.False_
    why = "an integer to a float power, beyond what a double counts: how it is rounded is not stated"
    return gathered(
        underspecified("a negative power of an integer is not defined", below),
        underspecified("an integer power that overflows is not defined", wide >= 2.0 ** (d.bits - (d.kind == "i"))),
        underspecified(why, many),
    )


@semantics(
    error=rounded(16),
    data={
        "x": ("positive", "unit", "small", "special", "wide"),
        "y": ("small", "unit", "uniform:-3:3", "ints:0:4", "special"),
    },
    ambiguous=_integer_power,
    source=(
        "ONNX Pow-15 (result has x's type); MIL pow iOS15; TFLite POW; NN powBroadcastable; "
        "OpenCL C: 16 ulp; C99 F.10.4.4 special values"
    ),
)
def pow(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """x ** y in x's type; an integer base with a float exponent: the f64 power, truncated."""
    dx, dy = of(x), of(y)
    if dx.kind in "iu" and dy.kind in "iu" and dx is not dy:
        if dx.kind == "u":
            y = native.convert(y, np.uint64, saturate=True)  # negative exponents are ambiguous anyway
        elif dy.kind == "u":
            y = native.convert(y, np.int64, saturate=True)
    return native.binary("pow", x, y)


@open_at_nan("x", "y", ends=(-np.inf,))
@semantics(
    error=exact(),
    source="MIL maximum iOS15; TFLite MAXIMUM; ONNX Max-13; NN maxBroadcastable",
)
def maximum(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """The larger; NaN if either is."""
    return native.binary("maximum", x, y)


@open_at_nan("x", "y", ends=(np.inf,))
@semantics(
    error=exact(),
    source="MIL minimum iOS15; TFLite MINIMUM; ONNX Min-13; NN minBroadcastable",
)
def minimum(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """The smaller; NaN if either is."""
    return native.binary("minimum", x, y)


@semantics(error=rounded(3), source="TFLite SQUARED_DIFFERENCE: (x - y)^2, three roundings")
def squared_difference(x: Num[Array, "*#d"], y: Num[Array, "*#d"]) -> Num[Array, "*#d"]:
    """(x - y)**2; integers wrap."""
    return native.binary("squared_difference", x, y)


@semantics(error=rounded(6), source="TFLite ATAN2; OpenCL C: 6 ulp")
def atan2(y: Float[Array, "*#d"], x: Float[Array, "*#d"]) -> Float[Array, "*#d"]:
    """Angle of the point (x, y) in -pi..pi, the C99 table for zeros and infinities."""
    return native.binary("atan2", y, x)


def _fold(name: str, xs: list[Any]) -> Any:
    out = xs[0] if of(xs[0]).kind in "iu" else native.convert(xs[0], np.float64)
    for x in xs[1:]:
        out = native.binary(name, out, x)
    return out.copy() if out is xs[0] else out


def _count(ctx: Context) -> float:
    """Number of operands."""
    return float(len(ctx.inputs["xs"]))


def _overflows_on_the_way(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """A sum of absolute values beyond the type: a partial sum may be infinite."""
    xs = [np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0) for x in inputs["xs"] if of(x).kind == "f"]
    if not xs:
        return None
    zero: Any = np.zeros(())
    total = functools.reduce(np.add, xs, zero)
    return underspecified("a partial sum beyond the range of the type", total > float_max(of(inputs["xs"][0])))


@semantics(
    error=accumulates(_count, extra=0.0),
    ambiguous=_overflows_on_the_way,
    source="ONNX Sum-13; TFLite ADD_N; NN add: any order",
)
def sum_n(xs: Variadic[Num[Array, "*#d"]]) -> Num[Array, "*#d"]:
    """Sum of one or more tensors, broadcast together."""
    return _fold("add", xs)


@semantics(error=rounded(3), source="NN multiply: product of its inputs")
def mul_n(xs: Variadic[Num[Array, "*#d"]]) -> Num[Array, "*#d"]:
    """Product of one or more tensors, broadcast together (up to four: three roundings)."""
    return _fold("mul", xs)


@open_at_nan("xs", ends=(-np.inf,))
@semantics(error=exact(), source="ONNX Max-13; NN max")
def max_n(xs: Variadic[Num[Array, "*#d"]]) -> Num[Array, "*#d"]:
    """Elementwise maximum of one or more tensors."""
    return _fold("maximum", xs)


@open_at_nan("xs", ends=(np.inf,))
@semantics(error=exact(), source="ONNX Min-13; NN min")
def min_n(xs: Variadic[Num[Array, "*#d"]]) -> Num[Array, "*#d"]:
    """Elementwise minimum of one or more tensors."""
    return _fold("minimum", xs)


@semantics(error=accumulates(_count, extra=1.0), ambiguous=_overflows_on_the_way, source="ONNX Mean-13; NN ave")
def mean_n(xs: Variadic[Float[Array, "*#d"]]) -> Float[Array, "*#d"]:
    """Sum of one or more tensors divided by their number."""
    return native.binary("div", _fold("add", xs), np.array(float(len(xs))))
