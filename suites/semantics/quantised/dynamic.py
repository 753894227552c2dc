"""Products of float activations with quantised weights: the hybrid form, or dynamic range quantisation.

The value is that of the real weights.  An implementation may first quantise the activations to 8 bits, by their range.
That adds to every activation an error of at most half a step (``step``).  The bound is what this error does to the
result.

Source: TensorFlow Lite, "Post-training dynamic range quantization" (activations stay float; operators with quantised
kernels quantise them to 8 bits dynamically before the operation); schema, asymmetric_quantize_inputs; 8-bit
quantization specification for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import smallest_normal
from harness.declare import Context, Float, Int, Opaque, composed, semantics
from harness.tolerance import gamma
from harness.tolerance.underspecified import Underspecified, underspecified
from suites.semantics.quantised.fixed import Array, Quant, real
from suites.semantics.quantised.sums import convolved, transposed, turned

_SPEC = "TensorFlow Lite dynamic range quantization"


def step(low: Array | float, high: Array | float, asymmetric: bool | str | None) -> Array:
    """How far an activation may be moved by its quantisation, where all lie in [low, high]: half a step.

    Symmetric: steps of max|x| / 127.  Asymmetric: steps of the range, zero included, / 255 (a rounded zero point moves
    the ends by half a step at most, so clamping there costs no more).  None, where the operator has no option for it:
    the former, which is never below the latter.  2**-12 of it more for scale and division in f32, of which the scale
    is no normal number, and may count as 0, where all are below 2**-119.
    """
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    e = 0.5 * ((high - low) / 255 if asymmetric else np.maximum(-low, high) / 127)
    return e * (1 + 2.0**-12) + np.where(e > 0, 2.0**-119, 0.0)


def step_of(x: Array, asymmetric: bool | str | None) -> float:
    """``step`` for a whole tensor."""
    return float(step(x.min(initial=0.0), x.max(initial=0.0), asymmetric))


def moved(
    ctx: Context,
    product: Callable[[Array, Array], Array],
    x: Array,
    w: Array,
    b: Array | None,
    terms: float,
    asymmetric: bool | None,
) -> Array:
    """|product(e, |w|)| for activations moved by e, and the roundings of a sum of ``terms`` products.

    b: already shaped to broadcast over the result.
    """
    w = np.abs(w)
    e = product(np.full(x.shape, step_of(x, asymmetric)), w)
    s = product(np.abs(x), w) + e + (0.0 if b is None else np.abs(b))
    bound = e + gamma(terms + 8, ctx.acc_u) * s + ctx.ulp + terms * smallest_normal(ctx.acc) * 2.0**-ctx.acc.frac
    return np.where(s == 0, 0.0, bound)  # nothing but zeros is added


def weights(w: Array, wq: Quant, axis: int = 0) -> Array:
    """The real weights; channels, where there are several scales, lie on ``axis`` of our layout.

    wq["block"]: so many elements of a row share a scale, rows of scales one after the other, zero points 0.
    """
    if wq.get("block"):
        return w.astype(np.float64) * np.reshape(wq["scale"], (w.shape[0], -1)).repeat(wq["block"], axis=1)
    return real(w, {**wq, "axis": axis})


def _over_channels(b: Array | None, rank: int) -> Array | None:
    return None if b is None else b.astype(np.float64).reshape(-1, *(1,) * (rank - 2))


RANGE = "activations that hold NaN or infinity have no range to be quantised by"


def _ranges(name: str) -> Callable[[dict[str, Object], dict[str, Object]], Underspecified | None]:
    """Activations that are not finite: an implementation that quantises them may give anything, one that does not the
    product.  The range may be that of the whole tensor."""

    def reason(tensors: dict[str, Object], params: dict[str, Object]) -> Underspecified | None:
        if np.isfinite(tensors["x"]).all():
            return None
        result = globals()[name].fn(**tensors, **params)
        return underspecified(RANGE, np.ones(result.shape, bool))

    return reason


# -- rows


def _linear_bound(ctx: Context) -> Array:
    """|w| e + gamma(i + 8) (|x||w| + |b|) + ulp, e: half an activation's step"""
    p, x = ctx.params, ctx.inputs["x"]
    return moved(
        ctx, lambda a, w: a @ w.T, x, weights(ctx.inputs["w"], p["wq"]), ctx.inputs["b"], x.shape[-1], p["asymmetric"]
    )


@semantics(
    error=composed(_linear_bound),
    ambiguous=_ranges("linear"),
    source=f"{_SPEC}, FULLY_CONNECTED",
)
def linear(
    x: Float[Array, "*d i"], w: Int[Array, "o i"], b: Float[Array, "o"] | None = None, *, wq: Opaque, asymmetric: Opaque
) -> Array:
    """x w' + b with the real weights."""
    y = native.matmul(x.astype(np.float64), weights(w, wq).T)
    return y if b is None else y + b.astype(np.float64)


def _matmul_bound(ctx: Context) -> Array:
    """e |y| + gamma(k + 8) |x||y| + ulp, e: half an activation's step"""
    p = ctx.params
    x = turned(ctx.inputs["x"], p["transpose_x"])
    y = turned(weights(ctx.inputs["y"], p["yq"]), p["transpose_y"])
    return moved(ctx, lambda a, w: a @ w, x, y, None, x.shape[-1], p["asymmetric"])


@semantics(
    error=composed(_matmul_bound),
    ambiguous=_ranges("matmul"),
    source=f"{_SPEC}; TFLite BATCH_MATMUL",
)
def matmul(
    x: Float[Array, "*d"],
    y: Int[Array, "*e"],
    *,
    yq: Opaque,
    transpose_x: Opaque,
    transpose_y: Opaque,
    asymmetric: Opaque,
) -> Array:
    """Matrix product with the real weights y; leading axes broadcast."""
    return native.matmul(turned(x.astype(np.float64), transpose_x), turned(weights(y, yq), transpose_y))


# -- windows


def _conv_bound(ctx: Context) -> Array:
    """conv(e, |w|) + gamma(terms + 8) (conv(|x|, |w|) + |b|) + ulp, e: half an activation's step"""
    p, x, w = ctx.params, ctx.inputs["x"], weights(ctx.inputs["w"], ctx.params["wq"])

    def product(a: Array, f: Array) -> Array:
        return convolved(a, f, None, p["strides"], p["dilations"], p["padding"], p["groups"])

    return moved(ctx, product, x, w, _over_channels(ctx.inputs["b"], x.ndim), float(np.prod(w.shape[1:])), None)


@semantics(
    error=composed(_conv_bound),
    ambiguous=_ranges("conv"),
    source=f"{_SPEC}, CONV_2D, DEPTHWISE_CONV_2D",
)
def conv(
    x: Float[Array, "n c *s"],
    w: Int[Array, "m g *k"],
    b: Float[Array, "m"] | None = None,
    *,
    wq: Opaque,
    strides: Opaque,
    dilations: Opaque,
    padding: Opaque,
    groups: Opaque,
) -> Array:
    """Convolution with the real weights, plus b."""
    bias = None if b is None else b.astype(np.float64)
    return convolved(x.astype(np.float64), weights(w, wq), bias, strides, dilations, padding, groups)


def _transposed_bound(ctx: Context) -> Array:
    """conv_transpose(e, |w|) + gamma(terms + 8) (conv_transpose(|x|, |w|) + |b|) + ulp, e: half an activation's step"""
    p, x, w = ctx.params, ctx.inputs["x"], weights(ctx.inputs["w"], ctx.params["wq"], 1)
    terms = float(w.shape[0] * np.prod(w.shape[2:]))
    return moved(
        ctx,
        lambda a, f: transposed(a, f, None, p["strides"], p["pads"]),
        x,
        w,
        _over_channels(ctx.inputs["b"], x.ndim),
        terms,
        None,
    )


@semantics(
    error=composed(_transposed_bound),
    ambiguous=_ranges("conv_transpose"),
    source=f"{_SPEC}, TRANSPOSE_CONV",
)
def conv_transpose(
    x: Float[Array, "n c *s"],
    w: Int[Array, "c m *k"],
    b: Float[Array, "m"] | None = None,
    *,
    wq: Opaque,
    strides: Opaque,
    pads: Opaque,
) -> Array:
    """Transposed convolution with the real weights, plus b.  pads: begins then ends cut off the full result."""
    y = transposed(x.astype(np.float64), weights(w, wq, 1), None, strides, pads)
    bias = _over_channels(b, x.ndim)
    return y if bias is None else y + bias
