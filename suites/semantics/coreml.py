"""Meanings that only Core ML's NeuralNetwork layers have."""

from __future__ import annotations

from typing import Annotated

import numpy as np

import native_ref as native
from harness.core.errors import RuleError
from harness.declare import (
    Axes,
    Axis,
    Choice,
    Context,
    Flag,
    Float,
    Int,
    Ints,
    Real,
    T,
    accumulates,
    composed,
    semantics,
)
from harness.generate.draw import Draw
from suites.semantics.bounds import quiet, slope
from suites.semantics.indexing.scatter import MODES, SUMMED, scatter_elements
from suites.semantics.movement.common import norm_axes
from suites.semantics.norm.moments import along_channels, normalised, spread_bound

Array = np.ndarray

_FUNCTIONS = {
    "sqrt": lambda t, a, e: np.sqrt(t),
    "rsqrt": lambda t, a, e: 1.0 / np.sqrt(t + e),
    "inverse": lambda t, a, e: 1.0 / (t + e),
    "power": lambda t, a, e: np.power(t, a),
    "exp": lambda t, a, e: np.exp(t),
    "log": lambda t, a, e: np.log(t),
    "abs": lambda t, a, e: np.abs(t),
    "threshold": lambda t, a, e: np.maximum(t, a),
}


@quiet
def _shifted_bound(ctx: Context) -> Array:
    """largest change of f over scale x + shift +- 3u(|scale x| + |shift| + |epsilon|), + 4 ulp"""
    p = ctx.params
    x = np.asarray(ctx.inputs["x"], np.float64)
    f = _FUNCTIONS[p["function"]]
    t = p["scale"] * x + p["shift"]
    delta = 3 * ctx.u * (np.abs(p["scale"] * x) + abs(p["shift"]) + abs(p["epsilon"]))
    ends = [f(t + s * delta, p["alpha"], p["epsilon"]) for s in (-1, 1)]
    pole = p["function"] in ("inverse", "rsqrt", "power") and np.abs(t + p["epsilon"]) <= 2 * delta
    spread = np.maximum(*(np.abs(e - ctx.wide) for e in ends))
    special = ~np.isfinite(ctx.wide)
    return np.where(special, 0.0, np.where(pole, np.inf, spread + 4 * ctx.ulp))


@semantics(error=composed(_shifted_bound), source="NN UnaryFunctionLayerParams")
def shifted(
    x: Float[Array, "*d"],
    *,
    function: Choice[str, _FUNCTIONS],
    alpha: Annotated[float, Real(-2.0, 2.0, also=(0.0, 0.5, 1.0, 2.0))] = 0.0,
    epsilon: Annotated[float, Real(0.015625, 1.0, also=(1e-6,))] = 1e-6,
    shift: Annotated[float, Real(-2.0, 2.0, also=(0.0,))] = 0.0,
    scale: Annotated[float, Real(-2.0, 2.0, also=(1.0,))] = 1.0,
) -> Float[Array, "*d"]:
    """f(scale * x + shift); rsqrt and inverse add epsilon, power raises to alpha, threshold is max(alpha, .)."""
    with np.errstate(all="ignore"):
        return _FUNCTIONS[function](scale * x.astype(np.float64) + shift, alpha, epsilon)


@quiet
def _sum_log_bound(ctx: Context) -> Array:
    """sum of logs: gamma(K+4) sum|log(x+eps)| + K 4u + ulp"""
    x = np.asarray(ctx.inputs["x"], np.float64) + ctx.params["epsilon"]
    axes = tuple(norm_axes(ctx.params["axes"], x.ndim))
    k = x.size / max(1, ctx.wide.size)
    s = np.abs(np.log(x)).sum(axes, keepdims=True)
    return np.where(np.isfinite(ctx.wide), slope(k + 4, ctx) * s + 4 * k * ctx.acc_u + ctx.ulp, 0.0)


@semantics(error=composed(_sum_log_bound), source="NN ReduceLayerParams LOGSUM", data=("positive", "prob"))
def reduce_sum_log(
    x: Float[Array, "*d"], *, axes: Axes[Ints, "d"], epsilon: Annotated[float, Real(0.0, 1.0, also=(1e-6,))] = 1e-6
) -> Array:
    """Sum over ``axes`` of log(x + epsilon); the axes stay with extent 1."""
    with np.errstate(all="ignore"):
        y = np.log(x.astype(np.float64) + epsilon)
    return native.reduce("sum", y, norm_axes(axes, x.ndim), True)


def _turn(a: Array, flag: bool) -> Array:
    return np.swapaxes(a, -1, -2) if flag and a.ndim > 1 else a


def _depth(ctx: Context) -> float:
    """Extent of the contracted axis."""
    x = ctx.inputs["x"]
    return float(x.shape[-2 if ctx.params.get("transpose_x") and x.ndim > 1 else -1])


@semantics(error=accumulates(_depth), source="NN BatchedMatMulLayerParams")
def batched_matmul(
    x: Float[Array, "*d"],
    y: Float[Array, "*e"],
    bias: Float[Array, "n"] | None = None,
    *,
    transpose_x: Flag = False,
    transpose_y: Flag = False,
    stack: Flag = False,
) -> Array:
    """Matrix product with broadcast batches, plus ``bias`` along the last axis.

    stack: a vector ``x`` is a [1, n] matrix and a vector ``y`` an [n, 1] matrix, and the result keeps the axes of
    length 1; otherwise a vector ``x`` gives a vector.  A vector is never transposed.  Raises RuleError
    "contracted-agrees".
    """
    if stack:
        x = x.reshape(1, -1) if x.ndim == 1 else _turn(x, transpose_x)
        y = y.reshape(-1, 1) if y.ndim == 1 else _turn(y, transpose_y)
    try:
        out = native.matmul(x, y)
    except ValueError as e:
        raise RuleError("contracted-agrees", str(e)) from None
    return out if bias is None else out + bias.astype(np.float64)


@quiet
def _picked_bound(ctx: Context) -> Array:
    """exact without a bias, one addition with it: 1 ulp"""
    return 0.0 * ctx.wide if ctx.inputs.get("bias") is None else ctx.ulp


@semantics(error=composed(_picked_bound), source="NN EmbeddingLayerParams, EmbeddingNDLayerParams")
def embedding(indices: Int[Array, "*d"], w: Float[Array, "o v"], bias: Float[Array, "o"] | None = None) -> Array:
    """Column ``indices`` of ``w``, plus ``bias``: [*d, o].  Raises RuleError "index-in-range"."""
    if np.any((indices < 0) | (indices >= w.shape[1])):
        raise RuleError("index-in-range", f"index outside 0..{w.shape[1] - 1}")
    y = w.T[indices]
    return y if bias is None else y.astype(np.float64) + bias.astype(np.float64)


@quiet
def _dot_bound(ctx: Context) -> Array:
    """gamma(K+2) sum|a b| + ulp; cosine: gamma(3K+12) sum|a b| / (|a| |b|) + ulp"""
    a, b = (np.asarray(ctx.inputs[k], np.float64) for k in "ab")
    s = np.abs(a * b).sum(-3, keepdims=True)
    k = a.shape[-3]
    if not ctx.params["cosine"]:
        return slope(k + 2, ctx) * s + ctx.ulp
    n = np.sqrt((a * a).sum(-3, keepdims=True) * (b * b).sum(-3, keepdims=True))
    return np.where(n > 0, slope(3 * k + 12, ctx) * s / n, 0.0) + ctx.ulp


def _cosine_zero(inputs: dict, params: dict) -> str | None:
    if params["cosine"] and any(np.any(np.sum(np.square(inputs[k], dtype=np.float64), -3) < 1e-30) for k in "ab"):
        return "the cosine of a vector of length zero"
    return None


@semantics(
    error=composed(_dot_bound),
    source="NN DotProductLayerParams",
    ambiguous=_cosine_zero,
    data=("small", "unit", "wide"),
)
def dot_channels(a: Float[Array, "*d"], b: Float[Array, "*d"], *, cosine: Flag = False) -> Array:
    """Sum of products over axis -3, of the vectors divided by their lengths when ``cosine``; the last two axes are 1.

    Raises RuleError "trailing-ones", "rank-at-least-3".
    """
    if a.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {a.ndim}")
    if a.shape[-2:] != (1, 1) or b.shape[-2:] != (1, 1):
        raise RuleError("trailing-ones", f"{list(a.shape)} and {list(b.shape)}")
    u, v = a.astype(np.float64), b.astype(np.float64)
    if cosine:
        with np.errstate(all="ignore"):
            u, v = (w / np.sqrt((w * w).sum(-3, keepdims=True)) for w in (u, v))
    return native.reduce("sum", u * v, (a.ndim - 3,), True)


@dot_channels.draw
def _draw_dot(d: Draw) -> dict:
    shape = (*d.part(1, 3), 1, 1)
    return {"a": T(shape), "b": T(shape), "cosine": d.bool()}


@dot_channels.breaks("trailing-ones")
def _dot_wide(d: Draw) -> dict:
    shape = (*d.part(1, 3), 2, 1)
    return {"a": T(shape), "b": T(shape), "cosine": False}


@semantics(error=accumulates(lambda ctx: 2.0), source="NN ScaleLayerParams, BiasLayerParams")
def scale_bias(
    x: Float[Array, "*d"], scale: Float[Array, "*s"] | None = None, bias: Float[Array, "*b"] | None = None
) -> Float[Array, "*d"]:
    """x * scale + bias over the last three axes; both of shape [1], [C], [1, H, W] or [C, H, W].

    Raises RuleError "scale-shape".
    """
    y = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if scale is not None:
            y = y * _per_image(scale, x)
        return y if bias is None else y + _per_image(bias, x)


def _per_image(v: Array, x: Array) -> Array:
    c, h, w = x.shape[-3:]
    if v.shape not in ((1,), (c,), (1, h, w), (c, h, w)):
        raise RuleError("scale-shape", f"{list(v.shape)} for {list(x.shape)}")
    return v.astype(np.float64).reshape(-1, 1, 1) if v.ndim == 1 else v.astype(np.float64)


# -- batch normalisation in its three kinds of statistics

STATISTICS = ("given", "instance", "batch")


def _moments(x: Array, mean: Array | None, var: Array | None, statistics: str) -> tuple[Array, Array]:
    """Mean and variance laid against x [n, c, h, w]."""
    if statistics == "given":
        c = x.shape[1]
        m = np.zeros(c) if mean is None else mean
        v = np.ones(c) if var is None else var
        return along_channels(m, 4), along_channels(v, 4)
    return native.moments(x, (2, 3) if statistics == "instance" else (0, 2, 3))


@quiet
def _batch_bound(ctx: Context) -> Array:
    """first-order error of the statistics, where they are computed, and of six roundings"""
    i, how = ctx.inputs, ctx.params["statistics"]
    x = np.asarray(i["x"], np.float64)
    mean, var = _moments(x, i.get("mean"), i.get("var"), how)
    n = float(x.size // mean.size)
    scale, bias = (None if i.get(k) is None else along_channels(np.asarray(i[k]), 4) for k in ("scale", "bias"))
    b = spread_bound(ctx, x, mean, var, float(ctx.params["epsilon"]), scale, bias, n, ctx.acc_u, how == "given")
    return b.reshape(ctx.wide.shape)


@semantics(
    error=composed(_batch_bound),
    source="NN BatchnormLayerParams",
    data={"x": ("unit", "small", "uniform:-4:4"), "var": ("uniform:0.25:4", "positive")},
)
def batchnorm(
    x: Float[Array, "n c h w"],
    scale: Float[Array, "c"] | None = None,
    bias: Float[Array, "c"] | None = None,
    mean: Float[Array, "c"] | None = None,
    var: Float[Array, "c"] | None = None,
    *,
    epsilon: Real = 1e-5,
    statistics: Choice[str, STATISTICS] = "given",
) -> Array:
    """(x - mean) / sqrt(var + epsilon) * scale + bias per channel.

    statistics: the given ones, those of every image and channel, or those of every channel over the whole batch.
    """
    m, v = _moments(x, mean, var, statistics)
    scale, bias = (None if t is None else along_channels(t, 4) for t in (scale, bias))
    return normalised(x.astype(np.float64), m, v, epsilon, scale, bias)


# -- regions of interest

SAMPLING = ("strict_align", "align", "upsample", "roi_align")


def sampling_points(mode: str, start: float, end: float, count: int) -> Array:
    """``count`` points of the interval [start, end], whose length in elements is X = end - start + 1.

    Source: NN SamplingMode, stated for [0, X - 1]; MIL crop_resize iOS15.
    """
    i, x = np.arange(count, dtype=np.float64), end - start + 1
    if mode in ("strict_align", "align"):
        if count == 1:
            return np.array([start if mode == "strict_align" else (start + end) / 2])
        return start + i * ((end - start) / (count - 1))
    if mode == "upsample":
        return np.minimum(end, start + i * (x / count))
    spacing = max(1.0, x - 1) / count
    return np.minimum(end, start + (i + 0.5) * spacing)


def corners(roi: Array, form: str, normalized: bool, h: int, w: int) -> Array:
    """[n, (top, left, bottom, right)] in elements, before they are scaled."""
    b = roi[:, -4:].astype(np.float64)
    if form.endswith("width_first"):
        b = b[:, [1, 0, 3, 2]]
    if form.startswith("center"):
        b = np.concatenate([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], 1)
    return b * np.array([h - 1, w - 1, h - 1, w - 1]) if normalized else b


def outside(boxes: Array, h: int, w: int) -> Array:
    """Which boxes reach beyond [0, h - 1] or [0, w - 1], by more than their rounding to f32 does."""
    ends, slack = np.array([h - 1, w - 1, h - 1, w - 1]), 1e-5
    return np.asarray(((boxes < -slack) | (boxes > ends + slack)).any(1))


def _between(x: Array, axis: int, at: Array) -> Array:
    """Linear interpolation along ``axis``; positions are kept inside."""
    at = np.clip(at, 0, x.shape[axis] - 1)
    lo = np.floor(at).astype(np.int64)
    f = at - lo
    return native.interpolate(
        x, axis, np.stack([lo, np.minimum(lo + 1, x.shape[axis] - 1)], 1), np.stack([1 - f, f], 1)
    )


@quiet
def _crop_bound(ctx: Context) -> Array:
    """8 u (|x| + coordinate * largest difference to a neighbour) + ulp"""
    x = np.asarray(ctx.inputs["x"], np.float64)
    reach = max(x.shape[-2:]) + 1
    return 8 * ctx.acc_u * (np.abs(x).max() * (2 + 2 * reach)) + ctx.ulp


@semantics(
    error=composed(_crop_bound),
    source="NN CropResizeLayerParams",
    data={"x": ("unit", "small", "iota")},
)
def crop_resize(
    x: Float[Array, "b c h w"],
    roi: Float[Array, "n k"],
    *,
    sizes: Ints,
    mode: Choice[str, SAMPLING] = "strict_align",
    form: Choice[
        str, "corners_height_first", "corners_width_first", "center_height_first", "center_width_first"
    ] = "corners_height_first",
    normalized: Flag = False,
    scale: Real = 1.0,
) -> Array:
    """Boxes of images, each resampled bilinearly to ``sizes``: [n, b, c, *sizes], or [n, 1, c, *sizes] when k is 5 and
    the first number of a row names the image.

    normalized: coordinates are parts of (h - 1, w - 1).  scale multiplies them, as where regions are aligned that were
    found in a larger image: what must be within the image is the box as given or as scaled.  Raises RuleError
    "batch-in-range", "four-or-five", "box-inside".
    """
    if roi.shape[1] not in (4, 5):
        raise RuleError("four-or-five", f"{roi.shape[1]} numbers a box")
    h, w = x.shape[-2:]
    given, out = corners(roi, form, normalized, h, w), []
    if (outside(given, h, w) & outside(given * scale, h, w)).any():
        raise RuleError("box-inside", f"{given.tolist()} in {h} x {w}")
    for row, (top, left, bottom, right) in zip(roi, given * scale):
        images = x
        if roi.shape[1] == 5:
            if not 0 <= row[0] < len(x):
                raise RuleError("batch-in-range", f"image {row[0]} of {len(x)}")
            images = x[int(row[0])][None]
        y = _between(images, 2, sampling_points(mode, top, bottom, sizes[0]))
        out.append(_between(y, 3, sampling_points(mode, left, right, sizes[1])))
    each = (1 if roi.shape[1] == 5 else x.shape[0], x.shape[1], *sizes)
    return np.stack(out) if out else np.zeros((0, *each), x.dtype)


# -- writing along an axis


@semantics(error=SUMMED, source="NN ScatterAlongAxisLayerParams; numpy.put_along_axis")
def scatter_along_axis(
    x: Float[Array, "*d"],
    indices: Int[Array, "*e"],
    updates: Float[Array, "*e"],
    *,
    axis: Axis[int, "d"],
    reduction: Choice[str, MODES] = "none",
) -> Float[Array, "*d"]:
    """out[indices[i, j, k], j, k] combined with updates[i, j, k] for axis 0, and so on.

    In row-major order: of two updates of one place the later one stays.
    Raises RuleError "axis-in-range", "index-in-range", "indices-within-data".
    """
    return scatter_elements(x, indices, updates, axis=axis, reduction=reduction, later=True)
