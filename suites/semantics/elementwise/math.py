"""Unary mathematics: rounding, roots, exponentials, logarithms, trigonometry."""

from __future__ import annotations

from typing import Annotated, Any

from harness.declare import Array, Context, Float, Num, Real, exact, gathered, rounded, semantics, underspecified
from suites.semantics.elementwise.common import native, np, of, plus_absolute, x_of

# Data worth trying on a function that is defined everywhere / on positive numbers / on [-1, 1].
EVERYWHERE = ("unit", "small", "branch", "special", "wide", "full")
POSITIVE = ("positive", "prob", "wide", "special", "full", "small")
WITHIN_ONE = ("unit", "unit", "branch", "special", "small")
ANGLES = ("unit", "small", "uniform:-100:100", "special", "wide", "full")
GROWING = ("unit", "small", "uniform:-12:12", "branch", "special", "full")


@semantics(
    error=exact(signed_zero=True), data=EVERYWHERE, source="ONNX Abs-13; MIL abs iOS15; TFLite ABS; NN unary ABS"
)
def abs(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """|x|; the sign bit of a float is cleared.  The lowest signed integer wraps onto itself (two's complement)."""
    return native.unary("abs", x)


@semantics(error=exact(signed_zero=True), data=EVERYWHERE, source="ONNX Neg-13; TFLite NEG")
def neg(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """-x; integers wrap."""
    return native.unary("neg", x)


@semantics(error=exact(), data=EVERYWHERE, source="ONNX Sign-13; MIL sign iOS15; TFLite SIGN; NN sign")
def sign(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """1, -1, or 0 for x > 0, x < 0, x == 0.  NaN, which no definition names, stays NaN."""
    return native.unary("sign", x)


@semantics(
    error=exact(),
    data=("branch", "ties", "small", "wide", "special", "full"),
    source="ONNX Ceil-13; MIL ceil iOS15; TFLite CEIL; NN ceil",
)
def ceil(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Least integer not below x."""
    return native.unary("ceil", x)


@semantics(
    error=exact(),
    data=("branch", "ties", "small", "wide", "special", "full"),
    source="ONNX Floor-13; MIL floor iOS15; TFLite FLOOR; NN floor",
)
def floor(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Greatest integer not above x."""
    return native.unary("floor", x)


@semantics(
    error=exact(),
    data=("ties", "ties", "branch", "wide", "special", "full"),
    source="ONNX Round-11 (halves to the nearest even); TFLite ROUND; MIL round iOS15 (0.5 gives 0)",
)
def round_half_even(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Nearest integer, ties to even."""
    return native.unary("round_half_even", x)


@semantics(error=rounded(1), data=POSITIVE, source="ONNX Sqrt-13; MIL sqrt iOS15; TFLite SQRT; NN unary SQRT; IEEE 754")
def sqrt(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Square root; NaN below zero, -0 for -0."""
    return native.unary("sqrt", x)


@semantics(error=rounded(1), data=EVERYWHERE, source="ONNX Reciprocal-13")
def reciprocal(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """1/x; the infinity of x's sign at a zero."""
    return native.unary("reciprocal", x)


def _denominator(ctx: Context) -> object:
    """first-order error of 1/(x + eps): eps and the sum are each rounded in the output type"""
    eps = ctx.params["epsilon"]
    d = x_of(ctx) + eps
    return (2 * ctx.u * np.abs(d) + 2 * ctx.u * np.abs(eps)) / (d * d)


@semantics(
    error=plus_absolute(1, _denominator, "2u(|x+eps| + |eps|) / (x+eps)^2"),
    data=EVERYWHERE,
    source="MIL inverse iOS15; NN unary INVERSE",
)
def inverse(
    x: Float[Array, "*d"], *, epsilon: Annotated[float, Real(0.0, 1.0, also=(1e-4, 1e-6, 0.0))] = 1e-4
) -> Float[Array, "*d"]:
    """1 / (x + epsilon)."""
    return native.unary("reciprocal", native.unary("linear", x, 1.0, epsilon))


@semantics(error=rounded(2), data=POSITIVE, source="TFLite RSQRT; OpenCL C table: rsqrt 2 ulp")
def rsqrt(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """1/sqrt(x): inf at 0, NaN below."""
    return native.unary("rsqrt", x)


def _under_root(ctx: Context) -> object:
    """first-order error of (x + eps)^-1/2 from rounding eps and the sum"""
    eps = ctx.params["epsilon"]
    d = np.abs(x_of(ctx) + eps)
    return (ctx.u * d + ctx.u * np.abs(eps)) / d**1.5


@semantics(
    error=plus_absolute(2, _under_root, "u(|x+eps| + |eps|) / (x+eps)^1.5"),
    data=POSITIVE,
    source="MIL rsqrt iOS15; NN unary RSQRT",
)
def rsqrt_epsilon(
    x: Float[Array, "*d"], *, epsilon: Annotated[float, Real(0.0, 1.0, also=(1e-12, 1e-5, 0.0))] = 1e-12
) -> Float[Array, "*d"]:
    """1/sqrt(x + epsilon)."""
    return native.unary("rsqrt", native.unary("linear", x, 1.0, epsilon))


@semantics(error=rounded(1), data=EVERYWHERE, source="MIL square iOS15; TFLite SQUARE")
def square(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """x * x; integers wrap."""
    return native.unary("square", x)


@semantics(
    error=rounded(3), data=GROWING, source="ONNX Exp-13; MIL exp iOS15; TFLite EXP; NN unary EXP; OpenCL C: 3 ulp"
)
def exp(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """e**x."""
    return native.unary("exp", x)


def _power_of_two(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """As of ``pow``, which says the same of the base 2."""
    x = np.asarray(inputs["x"])
    if x.dtype.kind not in "iu":
        return None
    top = of(x).bits - (of(x).kind == "i")
    return gathered(
        underspecified("a negative power of an integer is not defined", x < 0),
        underspecified("an integer power that overflows is not defined", x >= top),
    )


@semantics(error=rounded(3), data=GROWING, ambiguous=_power_of_two, source="MIL exp2 iOS15; NN exp2; OpenCL C: 3 ulp")
def exp2(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """2**x; integers (MIL lists int32) as truncated, wrapping powers."""
    if x.dtype.kind in "iu":
        return native.binary("pow", np.array(2, x.dtype), x)
    return native.unary("exp2", x)


@semantics(error=rounded(3), data=POSITIVE, source="ONNX Log-13; TFLite LOG; OpenCL C: 3 ulp")
def log(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Natural logarithm: -inf at both zeros, NaN below."""
    return native.unary("log", x)


def _log_argument(ctx: Context) -> object:
    """error of the argument x + eps, relative, is the absolute error of its logarithm"""
    eps = ctx.params["epsilon"]
    d = np.abs(x_of(ctx) + eps)
    return ctx.u * (d + np.abs(eps)) / d


@semantics(
    error=plus_absolute(3, _log_argument, "u(|x+eps| + |eps|) / |x+eps|"),
    data=POSITIVE,
    source="MIL log iOS15; NN unary LOG",
)
def log_epsilon(
    x: Float[Array, "*d"], *, epsilon: Annotated[float, Real(0.0, 1.0, also=(1e-45, 1e-6, 0.0))] = 1e-45
) -> Float[Array, "*d"]:
    """log(x + epsilon)."""
    return native.unary("log", native.unary("linear", x, 1.0, epsilon))


@semantics(error=rounded(4), data=ANGLES, source="ONNX Sin-7; MIL sin iOS15; TFLite SIN; NN sin; OpenCL C: 4 ulp")
def sin(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Sine of radians, the argument reduced exactly; NaN at infinities."""
    return native.unary("sin", x)


@semantics(error=rounded(4), data=ANGLES, source="ONNX Cos-7; MIL cos iOS15; TFLite COS; NN cos; OpenCL C: 4 ulp")
def cos(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Cosine of radians, the argument reduced exactly; NaN at infinities."""
    return native.unary("cos", x)


@semantics(error=rounded(5), data=ANGLES, source="ONNX Tan-7; MIL tan iOS15; NN tan; OpenCL C: 5 ulp")
def tan(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Tangent of radians; NaN at infinities."""
    return native.unary("tan", x)


@semantics(error=rounded(4), data=WITHIN_ONE, source="ONNX Asin-7; MIL asin iOS15; NN asin; OpenCL C: 4 ulp")
def asin(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Arcsine; NaN outside [-1, 1]."""
    return native.unary("asin", x)


@semantics(error=rounded(4), data=WITHIN_ONE, source="ONNX Acos-7; MIL acos iOS15; NN acos; OpenCL C: 4 ulp")
def acos(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Arccosine; NaN outside [-1, 1]."""
    return native.unary("acos", x)


@semantics(error=rounded(5), data=EVERYWHERE, source="ONNX Atan-7; MIL atan iOS15; NN atan; OpenCL C: 5 ulp")
def atan(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Arctangent."""
    return native.unary("atan", x)


@semantics(error=rounded(4), data=GROWING, source="ONNX Sinh-9; MIL sinh iOS15; NN sinh; OpenCL C: 4 ulp")
def sinh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Hyperbolic sine."""
    return native.unary("sinh", x)


@semantics(error=rounded(4), data=GROWING, source="ONNX Cosh-9; MIL cosh iOS15; NN cosh; OpenCL C: 4 ulp")
def cosh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Hyperbolic cosine."""
    return native.unary("cosh", x)


@semantics(error=rounded(5), data=GROWING, source="ONNX Tanh-13; MIL tanh iOS15; TFLite TANH; NN tanh; OpenCL C: 5 ulp")
def tanh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Hyperbolic tangent."""
    return native.unary("tanh", x)


@semantics(error=rounded(4), data=EVERYWHERE, source="ONNX Asinh-9; NN asinh; OpenCL C: 4 ulp")
def asinh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Inverse hyperbolic sine."""
    return native.unary("asinh", x)


@semantics(
    error=rounded(4),
    data=("uniform:1:9", "positive", "wide", "branch", "special"),
    source="ONNX Acosh-9; NN acosh; OpenCL C: 4 ulp",
)
def acosh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Inverse hyperbolic cosine; NaN below 1."""
    y = native.unary("acosh", x)
    with np.errstate(invalid="ignore"):
        return np.where(x.astype(np.float64) < 1, np.nan, y)  # far below 1 the kernel's formula cancels to log(0)


@semantics(error=rounded(5), data=WITHIN_ONE, source="ONNX Atanh-9; MIL atanh iOS15; NN atanh; OpenCL C: 5 ulp")
def atanh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""
    return native.unary("atanh", x)


@semantics(error=rounded(16), data=EVERYWHERE, source="ONNX Erf-13; MIL erf iOS15; NN erf; OpenCL C: 16 ulp")
def erf(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """Error function."""
    return native.unary("erf", x)


def _whole_erf(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x = inputs["x"]
    if of(x).kind == "f":
        return None
    nearest = np.sign(x.astype(np.float64)).astype(x.dtype)  # 0.84 and more is nearest to 1
    why = "ONNX Erf-9 of integers has their type: the text does not say how it is rounded"
    return underspecified(why, nearest != 0, nearest)


@semantics(error=rounded(16), data=EVERYWHERE, source="ONNX Erf-9", ambiguous=_whole_erf)
def erf_of_numbers(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """Error function; of integers truncated, as a cast does."""
    return native.unary("erf", x) if of(x).kind == "f" else np.zeros_like(x)
