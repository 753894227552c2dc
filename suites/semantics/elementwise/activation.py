"""Activations, each as a function of x alone with number parameters, or with parameters per channel."""

from __future__ import annotations

from typing import Annotated

from harness.core.errors import RuleError
from harness.declare import Array, Context, Float, Num, Real, T, exact, params, rounded, semantics, underspecified
from harness.generate.draw import Draw
from suites.semantics.elementwise.common import NAN_UNDERSPECIFIED, native, np, open_at_nan, plus_absolute, x_of
from suites.semantics.elementwise.math import EVERYWHERE, GROWING

SLOPES = params.Real(-2.0, 2.0, also=(0.01, 0.3, 1.0, 0.0))


@open_at_nan("x", ends=(-np.inf,))
@semantics(
    error=exact(),
    data=EVERYWHERE,
    source="ONNX Relu-14; MIL relu iOS15; TFLite RELU; NN ReLU: max(0, x)",
)
def relu(x: Num[Array, "*d"]) -> Num[Array, "*d"]:
    """max(x, 0)."""
    return native.unary("relu", x)


@open_at_nan("x")
@semantics(
    error=exact(),
    data=("uniform:-2:9", "small", "branch", "special"),
    source="MIL relu6 iOS15; TFLite RELU6",
)
def relu6(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """min(max(x, 0), 6)."""
    return native.unary("clamp", x, 0.0, 6.0)


@open_at_nan("x")
@semantics(error=exact(), data=("unit", "small", "branch", "special"), source="TFLite RELU_N1_TO_1")
def relu_n1_to_1(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """min(max(x, -1), 1)."""
    return native.unary("clamp", x, -1.0, 1.0)


@open_at_nan("x")
@semantics(error=exact(), data=("unit", "small", "branch", "special"), source="TFLite RELU_0_TO_1")
def relu_0_to_1(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """min(max(x, 0), 1)."""
    return native.unary("clamp", x, 0.0, 1.0)


def _lossless(x: Array, *limits: float) -> list[float]:
    """Limits as the type of x holds them: they are constants of that type."""
    return [float(native.convert(native.convert(np.array(v), x.dtype), np.float64)) for v in limits]


@open_at_nan("x")
@semantics(error=exact(), data=EVERYWHERE, source="MIL clip iOS15 (alpha, beta); NN clip")
def clamp(
    x: Float[Array, "*d"], *, lo: Annotated[float, Real(-4.0, 0.0)], hi: Annotated[float, Real(0.125, 4.0)]
) -> Float[Array, "*d"]:
    """min(max(x, lo), hi); lo and hi are held in x's type."""
    return native.unary("clamp", x, *_lossless(x, lo, hi))


@open_at_nan("x", "lo", "hi")
@semantics(
    error=exact(),
    data=EVERYWHERE,
    source="ONNX Clip-13: Min(max, Max(input, min)), so max wins when min > max",
)
def clip(x: Num[Array, "*d"], lo: Num[Array, ""] | None = None, hi: Num[Array, ""] | None = None) -> Num[Array, "*d"]:
    """Limits as optional scalar tensors of x's type; an absent one does not limit."""
    y = x
    if lo is not None:
        y = native.binary("maximum", y, lo)
    if hi is not None:
        y = native.binary("minimum", y, hi)
    return y if y is not x else x.copy()


@open_at_nan("x", ends=(-np.inf,))
@semantics(error=exact(), data=EVERYWHERE, source="MIL threshold iOS15; NN unary THRESHOLD")
def threshold(x: Num[Array, "*d"], *, alpha: Annotated[float, Real(-4.0, 4.0, also=(0.0, 1.0))]) -> Num[Array, "*d"]:
    """max(x, alpha), alpha held in x's type."""
    return native.binary("maximum", x, native.convert(np.array(alpha), x.dtype))


@open_at_nan("x")
@semantics(
    error=rounded(1.5),
    data=EVERYWHERE,
    source="MIL clamped_relu iOS15: the upper bound caps the negative branch, too",
)
def clamped_relu(
    x: Float[Array, "*d"], *, alpha: Annotated[float, SLOPES], beta: Annotated[float, Real(-1.0, 8.0, also=(6.0, 1.0))]
) -> Float[Array, "*d"]:
    """min(beta, x) for x >= 0, min(beta, alpha * x) below."""
    return native.binary("minimum", native.unary("leaky_relu", x, alpha), np.array(beta))


@semantics(
    error=rounded(1.5),
    data=EVERYWHERE,
    source="ONNX LeakyRelu-16; MIL leaky_relu iOS15; TFLite LEAKY_RELU; NN leakyReLU",
)
def leaky_relu(x: Float[Array, "*d"], *, alpha: Annotated[float, SLOPES] = 0.01) -> Float[Array, "*d"]:
    """alpha * x for x < 0, else x.  Error: alpha may be rounded to the output type before the product."""
    return native.unary("leaky_relu", x, alpha)


@semantics(error=rounded(1), data=EVERYWHERE, source="ONNX PRelu-16 (slope broadcasts to x); TFLite PRELU")
def prelu(x: Num[Array, "*d"], slope: Num[Array, "*#d"]) -> Num[Array, "*d"]:
    """slope * x for x < 0, else x; slope broadcasts one way, to x's shape.  Integers wrap.  Raises RuleError
    "slope-fits"."""
    if slope.ndim > x.ndim or any(a not in (1, b) for a, b in zip(slope.shape[::-1], x.shape[::-1])):
        raise RuleError("slope-fits", f"{list(slope.shape)} to {list(x.shape)}")
    return native.binary("prelu", x, slope)


@prelu.draw
def _draw_prelu(d: Draw) -> dict[str, T]:
    shape = d.shape()
    return {"x": T(shape), "slope": T(d.broadcast_from(shape))}


@prelu.breaks("slope-fits")
def _long_slope(d: Draw) -> dict[str, T]:
    n = d.int(2, 4)
    return {"x": T((n,)), "slope": T((n + d.int(1, 2),))}


def per_channel(v: Array, rank: int, axis: int = 1) -> Array:
    """[C] or [1] as an array that broadcasts along ``axis`` of a tensor of that rank."""
    a = np.asarray(v)
    return a.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


@semantics(
    error=rounded(1),
    data=EVERYWHERE,
    min_rank=1,
    max_rank=3,
    source="MIL prelu iOS15: alpha over axis 1; NN PReLU (channel axis -3)",
)
def prelu_channels(x: Float[Array, "n c *s"], alpha: Float[Array, "*_c"]) -> Float[Array, "n c *s"]:
    """alpha[c] * x for x < 0, else x.  Raises RuleError "alpha-per-channel"."""
    if alpha.size not in (1, *x.shape[1:2]):
        raise RuleError("alpha-per-channel", f"{alpha.size} values for {list(x.shape)}")
    return native.binary("prelu", x, per_channel(alpha, x.ndim))


@semantics(error=exact(), data=EVERYWHERE, source="ONNX ThresholdedRelu-22: x for x > alpha, else 0")
def thresholded_relu(
    x: Float[Array, "*d"], *, alpha: Annotated[float, Real(-1.0, 3.0, also=(1.0, 0.0))] = 1.0
) -> Float[Array, "*d"]:
    """x where x > alpha, else 0; alpha held in x's type."""
    return native.unary("thresholded_relu", x, *_lossless(x, alpha))


@semantics(
    error=exact(), data=EVERYWHERE, source="MIL thresholded_relu iOS15, NN thresholdedReLU: x for x >= alpha, else 0"
)
def thresholded_relu_inclusive(
    x: Float[Array, "*d"], *, alpha: Annotated[float, Real(-1.0, 3.0, also=(1.0, 0.0))]
) -> Float[Array, "*d"]:
    """x where x >= alpha, else 0 (alpha itself is kept); alpha held in x's type."""
    return native.unary("thresholded_relu_inclusive", x, *_lossless(x, alpha))


@semantics(error=rounded(1.5), data=EVERYWHERE, source="ONNX Shrink-9")
def shrink(
    x: Num[Array, "*d"],
    *,
    lambd: Annotated[float, Real(0.0, 3.0, also=(0.5,))] = 0.5,
    bias: Annotated[float, Real(-2.0, 2.0, also=(0.0,))] = 0.0,
) -> Num[Array, "*d"]:
    """x + bias for x < -lambd, x - bias for x > lambd, else 0.  Integers: the f64 value truncated to the type."""
    wide = native.convert(x, np.float64)
    low, high = wide < -lambd, wide > lambd
    return np.where(low, wide + bias, np.where(high, wide - bias, 0.0))


@semantics(
    error=rounded(6),
    data=GROWING,
    source="ONNX Sigmoid-13; MIL sigmoid iOS15; TFLite LOGISTIC; NN sigmoid: 1/(1+e^-x), exp 3 ulp and two steps",
)
def sigmoid(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """1 / (1 + e**-x)."""
    return native.unary("sigmoid", x)


def _softplus(ctx: Context) -> object:
    # the sum 1 + e^x is rounded: relative error u, absolute in the logarithm
    return 2 * ctx.u


@semantics(
    error=plus_absolute(6, _softplus, "2u"),
    data=GROWING,
    source="ONNX Softplus-22: ln(e^x + 1); MIL softplus iOS15; NN softplus",
)
def softplus(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """log(1 + e**x)."""
    return native.unary("softplus", x)


def _softplus_channels(ctx: Context) -> object:
    a = per_channel(np.asarray(ctx.inputs["alpha"], np.float64), x_of(ctx).ndim)
    b = per_channel(np.asarray(ctx.inputs["beta"], np.float64), x_of(ctx).ndim)
    return np.abs(a) * ctx.u * (3 + 2 * np.abs(b * x_of(ctx)))


@semantics(
    error=plus_absolute(8, _softplus_channels, "|alpha| u (3 + 2|beta x|)"),
    data=GROWING,
    min_rank=1,
    max_rank=3,
    source="MIL softplus_parametric iOS15; NN parametricSoftplus: alpha * log(1 + e^(beta x))",
)
def softplus_parametric(
    x: Float[Array, "n c *s"], alpha: Float[Array, "c"], beta: Float[Array, "c"]
) -> Float[Array, "n c *s"]:
    """alpha[c] * log(1 + e**(beta[c] * x))."""
    bx = native.binary("mul", x, per_channel(beta, x.ndim))
    return native.binary("mul", native.unary("softplus", bx), per_channel(alpha, x.ndim))


@semantics(error=rounded(3), data=EVERYWHERE, source="ONNX Softsign-22; MIL softsign iOS15; NN softsign: x / (1 + |x|)")
def softsign(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x / (1 + |x|); at an infinity the limit, where the formula gives NaN."""
    return native.unary("softsign", x)


softsign.ambiguous = lambda inputs, params: underspecified(
    "at infinity the formula is inf/inf, its limit is 1", native.unary("is_inf", inputs["x"], 1, 1), np.float32(np.nan)
)


def _exponential_part(scale: float, inner: float, ctx: Context) -> object:
    """scale * (e^(x/inner) - 1) evaluated literally: exp to 3 ulp, the difference and the scale each rounded once"""
    x = x_of(ctx)
    e = np.exp(np.minimum(x / inner, 0.0))
    return np.where(x > 0, 0.0, abs(scale) * ctx.u * (6 * e + 2 + 2 * np.abs(x / inner) * e))


@semantics(
    error=plus_absolute(3, lambda c: _exponential_part(c.params["alpha"], 1.0, c), "|alpha| u (8 e^x + 2)"),
    data=GROWING,
    source="ONNX Elu-22; MIL elu iOS15; TFLite ELU (alpha 1); NN ELU: alpha (e^x - 1) below 0",
)
def elu(
    x: Float[Array, "*d"], *, alpha: Annotated[float, Real(-2.0, 4.0, also=(1.0, 0.0))] = 1.0
) -> Float[Array, "*d"]:
    """alpha * (e**x - 1) for x <= 0, else x."""
    return native.unary("elu", x, alpha)


@semantics(
    error=plus_absolute(
        3,
        lambda c: _exponential_part(c.params["alpha"], c.params["alpha"], c),
        "|alpha| u (6e + 2 + 2|x/alpha| e), e = e^(x/alpha)",
    ),
    data=GROWING,
    source="ONNX Celu-12: max(0,x) + min(0, alpha (e^(x/alpha) - 1))",
)
def celu(
    x: Float[Array, "*d"], *, alpha: Annotated[float, Real(0.125, 4.0, also=(1.0, 2.0))] = 1.0
) -> Float[Array, "*d"]:
    """max(0, x) + min(0, alpha * (e**(x / alpha) - 1))."""
    return native.unary("celu", x, alpha)


@semantics(
    error=plus_absolute(
        4, lambda c: _exponential_part(c.params["alpha"] * c.params["gamma"], 1.0, c), "|alpha gamma| u (8 e^x + 2)"
    ),
    data=GROWING,
    source="ONNX Selu-22: gamma (alpha e^x - alpha) for x <= 0, gamma x above; the defaults are f32 values",
)
def selu(
    x: Float[Array, "*d"],
    *,
    alpha: Annotated[float, Real(-2.0, 4.0, also=(1.67326319217681884765625,))] = 1.67326319217681884765625,
    gamma: Annotated[float, Real(-2.0, 4.0, also=(1.05070102214813232421875,))] = 1.05070102214813232421875,
) -> Float[Array, "*d"]:
    """gamma * alpha * (e**x - 1) for x <= 0, else gamma * x."""
    return native.unary("selu", x, alpha, gamma)


def _line(ctx: Context) -> object:
    """alpha * x + beta with alpha, beta, product and sum rounded"""
    a, b = ctx.params["alpha"], ctx.params["beta"]
    return ctx.u * (3 * np.abs(a * x_of(ctx)) + 2 * abs(b))


def _no_line(inputs: dict[str, object], params: dict[str, float]) -> str | None:
    """max and min of a NaN: x is one, or 0 * inf."""
    with np.errstate(all="ignore"):
        at = np.isnan(params["alpha"] * np.asarray(inputs["x"], np.float64) + params["beta"])
    return underspecified(NAN_UNDERSPECIFIED, at, *map(np.float32, (np.nan, 0, 1)))


@semantics(
    error=plus_absolute(1, _line, "u (3|alpha x| + 2|beta|)"),
    data=EVERYWHERE,
    ambiguous=_no_line,
    source="ONNX HardSigmoid-22; MIL sigmoid_hard iOS15; NN sigmoidHard",
)
def hard_sigmoid(
    x: Float[Array, "*d"],
    *,
    alpha: Annotated[float, Real(-1.0, 1.0, also=(0.2, 1 / 6))] = 0.2,
    beta: Annotated[float, Real(-1.0, 1.0, also=(0.5,))] = 0.5,
) -> Float[Array, "*d"]:
    """max(0, min(1, alpha * x + beta))."""
    return native.unary("hard_sigmoid", x, alpha, beta)


@semantics(
    error=plus_absolute(1, _line, "u (3|alpha x| + 2|beta|)"),
    data=EVERYWHERE,
    source="MIL linear_activation iOS15; NN linear; ONNX Affine-1",
)
def linear_activation(
    x: Float[Array, "*d"], *, alpha: Annotated[float, SLOPES], beta: Annotated[float, Real(-4.0, 4.0, also=(0.0,))]
) -> Float[Array, "*d"]:
    """alpha * x + beta."""
    return native.unary("linear", x, alpha, beta)


def _sixth(ctx: Context) -> object:
    # x/6 + 1/2 cancels next to -3: the sum is off by u(|x/6| + 1/2) and multiplied by x
    x = x_of(ctx)
    return np.where(np.abs(x) <= 4, np.abs(x) * 2 * ctx.u, 0.0)


@semantics(
    error=plus_absolute(3, _sixth, "2u|x| for |x| <= 4"),
    data=("uniform:-5:5", "small", "branch", "wide", "special"),
    source="ONNX HardSwish-22: x max(0, min(1, x/6 + 1/2)); TFLite HARD_SWISH: x relu6(x + 3) / 6",
)
def hard_swish(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x * clamp(x + 3, 0, 6) / 6, with the exact sixth."""
    return native.unary("hard_swish6", x)


def _gelu_exact(ctx: Context) -> object:
    # 0.5 x (1 + erf): erf to 16 ulp (an ulp of numbers below 1 is at most u), and the sum rounded
    x = x_of(ctx)
    return np.where(np.abs(x) < 40, 0.5 * np.abs(x) * 18 * ctx.u, 0.0)


@semantics(
    error=plus_absolute(3, _gelu_exact, "9 u |x|"),
    data=GROWING,
    source="ONNX Gelu-20 none; MIL gelu EXACT; TFLite GELU; NN GELU EXACT: x/2 (1 + erf(x / sqrt 2))",
)
def gelu_exact(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x * Phi(x), by erfc: no cancellation in the left tail; -0 at -inf, where the formula gives NaN."""
    return native.unary("gelu_exact", x)


def _gelu_tanh(ctx: Context) -> object:
    # tanh to 5 ulp, its argument off by some 5 u relative, and the sum rounded
    x = x_of(ctx)
    t = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    slope = 1.0 / np.cosh(np.clip(t, -300, 300)) ** 2
    return np.where(np.abs(x) < 40, 0.5 * np.abs(x) * ctx.u * (7 + 8 * np.abs(t) * slope), 0.0)


@semantics(
    error=plus_absolute(3, _gelu_tanh, "|x|/2 u (7 + 8|t|/cosh(t)^2)"),
    data=GROWING,
    source="ONNX Gelu-20 tanh; MIL gelu TANH_APPROXIMATION; TFLite GELU approximate",
)
def gelu_tanh(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3)))."""
    return native.unary("gelu_tanh", x)


@semantics(
    error=plus_absolute(8, lambda c: 4 * c.u * np.abs(1.702 * x_of(c) * c.wide), "4u|1.702 x h|"),
    data=GROWING,
    source="MIL gelu SIGMOID_APPROXIMATION; NN GELU SIGMOID_APPROXIMATION",
)
def gelu_sigmoid(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x * sigmoid(1.702 x)."""
    return native.unary("gelu_sigmoid", x)


def _mish(ctx: Context) -> object:
    # softplus to 6 ulp + 2u, tanh of it to 5 ulp: its slope is at most 1
    x = x_of(ctx)
    return np.abs(x) * 3 * ctx.u


@semantics(error=plus_absolute(16, _mish, "3u|x|"), data=GROWING, source="ONNX Mish-22: x tanh(ln(1 + e^x))")
def mish(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """x * tanh(log(1 + e**x))."""
    return native.unary("mish", x)


@semantics(
    error=plus_absolute(8, lambda c: 2 * c.u * np.abs(c.params["alpha"] * x_of(c) * c.wide), "2u|alpha x h|"),
    data=GROWING,
    source="ONNX Swish-24: x sigmoid(alpha x); MIL silu iOS15 (alpha 1)",
)
def swish(
    x: Float[Array, "*d"], *, alpha: Annotated[float, Real(-2.0, 2.0, also=(1.0, 0.0))] = 1.0
) -> Float[Array, "*d"]:
    """x * sigmoid(alpha * x)."""
    return native.unary("swish", x, alpha)


@semantics(
    error=plus_absolute(
        8,
        lambda c: (
            abs(c.params["alpha"])
            * 2
            * c.u
            * np.abs(c.params["beta"] * x_of(c))
            / np.cosh(np.clip(c.params["beta"] * x_of(c), -300, 300)) ** 2
        ),
        "2u |alpha beta x| / cosh(beta x)^2",
    ),
    data=GROWING,
    source="MIL scaled_tanh iOS15; NN scaledTanh; ONNX ScaledTanh-1",
)
def scaled_tanh(
    x: Float[Array, "*d"], *, alpha: Annotated[float, SLOPES], beta: Annotated[float, SLOPES]
) -> Float[Array, "*d"]:
    """alpha * tanh(beta * x)."""
    return native.unary("scaled_tanh", x, alpha, beta)
