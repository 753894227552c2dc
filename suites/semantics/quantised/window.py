"""Pools, reductions, normalisations, resizing and comparison of quantised tensors."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import int_range, of
from harness.declare import (
    Bool,
    Context,
    Float,
    Int,
    Integer,
    Opaque,
    Semantics,
    T,
    Variadic,
    accepted,
    bounded,
    composed,
    semantics,
)
from harness.generate.draw import Draw
from harness.tolerance import ulp
from suites.semantics.indexing.common import resolve
from suites.semantics.movement.join import concat
from suites.semantics.quantised.fixed import (
    Array,
    Quant,
    away,
    draw_parameters,
    real,
    rounding,
    saturate,
    steps,
    window,
    within,
    within_one_of,
)
from suites.semantics.quantised.output import Activation, draw_activation, finish
from suites.semantics.resize import resize
from suites.semantics.window import geometry, trimmed

_SPEC = "TFLite 8-bit quantization specification"


# -- pools: [n, c, h, w]; input and output share their parameters


def _averages(x: Array, *, q: Quant, kernel: Object, strides: Object, padding: str, activation: str) -> Array:
    g = geometry(x.shape[2:], tuple(kernel), strides, None, None, padding)
    k, pads = trimmed(x.shape[2:], tuple(kernel), g)
    wide = x.astype(np.float64)
    y = native.pool("avg", wide, k, g.strides, g.dilations, pads, sizes=g.sizes, count_include_pad=False)
    return np.moveaxis(y, 1, -1)


@semantics(error=rounding(_averages, 2.0**-12), source=f"{_SPEC}, AVERAGE_POOL_2D: one scale and zero point")
def avg_pool(
    x: Int[Array, "n c *s"],
    *,
    q: Opaque,
    kernel: Opaque,
    strides: Opaque,
    padding: Opaque,
    activation: Activation,
) -> Array:
    """Mean of the steps of every window, ties away from zero; channels last."""
    r = _averages(x, q=q, kernel=kernel, strides=strides, padding=padding, activation=activation)
    return finish(r, q, of(x), activation)


def _largest(x: Array, *, q: Quant, kernel: Object, strides: Object, padding: str, activation: str) -> Array:
    g = geometry(x.shape[2:], tuple(kernel), strides, None, None, padding)
    k, pads = trimmed(x.shape[2:], tuple(kernel), g)
    y = native.pool("max", x.astype(np.float64), k, g.strides, g.dilations, pads, sizes=g.sizes)
    return np.moveaxis(y[0] if isinstance(y, tuple) else y, 1, -1)


@semantics(error=rounding(_largest, 0.0), source=f"{_SPEC}, MAX_POOL_2D: one scale and zero point")
def max_pool(
    x: Int[Array, "n c *s"],
    *,
    q: Opaque,
    kernel: Opaque,
    strides: Opaque,
    padding: Opaque,
    activation: Activation,
) -> Array:
    """Largest step of every window; channels last."""
    r = _largest(x, q=q, kernel=kernel, strides=strides, padding=padding, activation=activation)
    return finish(r, q, of(x), activation)


# -- parts one after another; they and the result share their parameters


def _joined(xs: list[Array], *, q: Quant, axis: int, activation: str) -> Array:
    return concat.fn(xs, axis=axis).astype(np.float64)


@semantics(error=rounding(_joined, 0.0), source=f"{_SPEC}, CONCATENATION: one scale and zero point; {concat.source}")
def joined(xs: Variadic[Int[Array, "*_d"]], *, q: Opaque, axis: Integer, activation: Activation) -> Array:
    """The parts one after another along ``axis``.  Raises RuleError as ``concat`` does."""
    return finish(_joined(xs, q=q, axis=axis, activation=activation), q, of(xs[0]), activation)


@joined.draw
def _draw_joined(d: Draw) -> dict[str, Object]:
    return {**concat.derive(d), "activation": draw_activation(d)}


# -- reductions


def _folded(x: Array, *, xq: Quant, oq: Quant, axes: Object, keepdims: bool, mean: bool) -> Array:
    r = real(x, xq)
    fold = np.mean if mean else np.sum
    return steps(fold(r, axis=tuple(axes), keepdims=keepdims) if len(axes) else r, oq)


def _fold_freedom(x: Array, *, xq: Quant, oq: Quant, axes: Object, keepdims: bool, mean: bool) -> Object:
    n = np.prod([x.shape[a] for a in axes], dtype=np.int64) if mean else 1
    # the division by the count is folded into the multiplier, which may then be one bit short of its normal range
    return 2 * max(
        float(window(xq["scale"][0] / oq["scale"][0])), float(window(xq["scale"][0] / oq["scale"][0] / max(1, n)))
    ) + (2.0**-8 if x.dtype.itemsize == 1 else 1.0)


@semantics(
    error=within(_folded, _fold_freedom, "|steps - real| <= 0.5 + multiplier window"),
    source=f"{_SPEC}, MEAN; TFLite SUM",
)
def fold(x: Int[Array, "*d"], *, xq: Opaque, oq: Opaque, axes: Opaque, keepdims: Opaque, mean: Opaque) -> Array:
    """Sum or mean of the real values over ``axes``, requantised.  Raises RuleError "axes-in-range", "axes-distinct"
    (where they are decoded)."""
    return finish(_folded(x, xq=xq, oq=oq, axes=axes, keepdims=keepdims, mean=mean), oq, of(x))


# -- normalisations with fixed output parameters


def _softmax(x: Array, *, xq: Quant, oq: Quant, beta: float) -> Array:
    r = real(x, xq) * np.float32(beta)
    e = np.exp(r - r.max(-1, keepdims=True, initial=-np.inf))
    return steps(e / e.sum(-1, keepdims=True), oq)


def _log_softmax(x: Array, *, xq: Quant, oq: Quant) -> Array:
    r = real(x, xq)
    m = r.max(-1, keepdims=True, initial=-np.inf)
    return steps(r - m - np.log(np.exp(r - m).sum(-1, keepdims=True)), oq)


def _l2(x: Array, *, xq: Quant, oq: Quant, activation: str = "NONE") -> Array:
    r = real(x, xq)
    return steps(r / np.maximum(np.sqrt((r * r).sum(-1, keepdims=True)), 1e-6), oq)


def _wide(free8: float, free16: float) -> Object:
    return lambda x, **kw: free8 if x.dtype.itemsize == 1 else free16


def _softmax_freedom(x: Array, *, xq: Quant, oq: Quant, beta: float) -> Object:
    """One step of 8 bits.  Of 16, exp comes from 513 points over [-10, 0] in steps of 2**-15: in proportion to exp it
    is off by 0.8 between them, 0.5 for their rounding, and 2.5 for that of the position (2**-16 of 10).  A share p is
    the quotient of two such: p * 8, and 2 steps where exp itself vanishes.  Source: LiteRT, kernels/activations.cc,
    SoftmaxPrepare; reference/softmax.h."""
    if x.dtype.itemsize == 1:
        return 1.0
    return 2.0 + 8 * _softmax(x, xq=xq, oq=oq, beta=beta) * oq["scale"][0]


def _last_axis(scale: Object, zero: Object) -> Object:
    def draw(d: Draw) -> dict[str, Object]:
        dt = d.dtype("x")
        lo, hi = int_range(dt)
        xq = draw_parameters(d, dt, scale=d.pick((0.01, 0.05, 0.1)) / (1 if dt.bits == 8 else 256))
        out = {"scale": [scale(dt)], "zero_point": [0 if dt.bits > 8 else zero(lo, hi)], "axis": 0}
        shape: tuple[int, ...] = d.shape(1, 4, 1)
        if len(shape) > 1 and d.chance(24):
            shape = (*shape[:-1], 0)
        v = {"x": T(shape, d.pick(("full", "small"))), "xq": xq, "oq": out}
        if d.version.op == "SOFTMAX":
            v["beta"] = d.pick((1.0, 1.0, 0.5, 2.0))
        if d.version.op == "L2_NORMALIZATION":
            v["activation"] = draw_activation(d)
        return v

    return draw


@semantics(
    error=within(_softmax, _softmax_freedom, "1.5 steps; 16 bits: 2.5 + 8 p, p the share itself"),
    draw=_last_axis(lambda dt: 1 / 256 if dt.bits == 8 else 1 / 32768, lambda lo, hi: lo),
    source=f"{_SPEC}, SOFTMAX: output scale 1/256, zero point lowest; 16 bits 1/32768",
)
def softmax(x: Int[Array, "*d n"], *, xq: Opaque, oq: Opaque, beta: Opaque) -> Int[Array, "*d n"]:
    """Softmax of the real values over the last axis."""
    return finish(_softmax(x, xq=xq, oq=oq, beta=beta), oq, of(x))


@semantics(
    error=within(_log_softmax, _wide(1.0, 8.0), "one step"),
    draw=_last_axis(lambda dt: 16 / 256, lambda lo, hi: hi),
    source=f"{_SPEC}, LOG_SOFTMAX: output scale 16/256, zero point highest",
)
def log_softmax(x: Int[Array, "*d n"], *, xq: Opaque, oq: Opaque) -> Int[Array, "*d n"]:
    """Logarithm of the softmax of the real values over the last axis."""
    return finish(_log_softmax(x, xq=xq, oq=oq), oq, of(x))


@semantics(
    error=within(_l2, _wide(1.0, 8.0), "one step"),
    draw=_last_axis(lambda dt: 1 / 128, lambda lo, hi: (lo + hi + 1) // 2),
    source=f"{_SPEC}, L2_NORMALIZATION: output scale 1/128, zero point middle",
)
def l2_normalize(x: Int[Array, "*d n"], *, xq: Opaque, oq: Opaque, activation: Activation) -> Int[Array, "*d n"]:
    """x over its norm along the last axis, of the real values."""
    return finish(_l2(x, xq=xq, oq=oq), oq, of(x), activation)


# -- resizing


def _interpolated(x: Array, *, sizes: Object, coordinates: str) -> Array:
    return resize(x.astype(np.float64), sizes=sizes, axes=(1, 2), mode="linear", coordinates=coordinates)


def _weights(x: Array, *, sizes: Object, coordinates: str) -> Object:
    """Two weights of 11 fraction bits, and half a step of the rounding between the axes; f32 takes less of 16 bits."""
    spread = float(x.max()) - float(x.min()) if x.size else 0.0
    return 1.0 + (0.0 if x.dtype.itemsize == 2 else spread * 2.0**-11)


def _fixed_position(n: int, size: int, coordinates: str) -> tuple[Array, Array]:
    """Left neighbour and how far behind it an output position lies, in 2**-10 cells, along an axis of n to size cells.

    Source: LiteRT, kernels/internal/reference/resize_bilinear.h, ComputeInterpolationValuesInteger."""
    aligned = coordinates == "align_corners" and size > 1
    scale = ((n - 1) * 1024 + (size - 1) // 2) // (size - 1) if aligned else (n * 1024 + size // 2) // size
    at = np.arange(size) * scale
    if coordinates.startswith("half_pixel") or coordinates.endswith("half_pixel"):
        at = at + scale // 2 - 512
    left = np.clip(at // 1024, 0, n - 1)
    return left, np.maximum(at - left * 1024, 0)


def _in_fixed_point(x: Array, *, sizes: Object, coordinates: str) -> Array:
    """The source position is index * scale with the scale rounded to 2**-10."""
    out = np.asarray(x).astype(np.float64)
    if not out.size:
        return np.zeros((x.shape[0], *map(int, sizes), x.shape[3]))
    for axis, size in zip((1, 2), sizes):
        n = out.shape[axis]
        left, part = _fixed_position(n, int(size), coordinates)
        shape = [1] * out.ndim
        shape[axis] = int(size)
        w = (part / 1024).reshape(shape)
        out = out.take(left, axis) * (1 - w) + out.take(np.minimum(left + 1, n - 1), axis) * w
    return out


def _one(x: Array, **kw: Object) -> float:
    return 0.5


@semantics(
    error=within_one_of(
        (_interpolated, _weights),
        (_in_fixed_point, _one),
        what="1.5 steps, of 8 bits + spread * 2**-11, or 1 from what positions in 10 fraction bits give",
    ),
    source=f"{_SPEC}, RESIZE_BILINEAR",
)
def resize_bilinear(x: Int[Array, "n h w c"], *, sizes: Opaque, coordinates: Opaque) -> Array:
    """Steps interpolated, since input and output share their parameters."""
    return saturate(away(_interpolated(x, sizes=sizes, coordinates=coordinates)), of(x))


# -- comparison

_COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def compare(name: str) -> Semantics:
    """Comparison of the real values of two quantised tensors."""

    def close(ctx: Context, actual: Array) -> Array:
        """either answer where the real values differ by less than 2**-8 steps of the finer scale but are not equal
        steps"""
        a, b = real(ctx.inputs["x"], ctx.params["xq"]), real(ctx.inputs["y"], ctx.params["yq"])
        near = np.abs(a - b) <= 2.0**-20 * np.maximum(np.abs(a), np.abs(b))
        return (actual == _COMPARE[name](a, b)) | near

    def body(x: Array, y: Array, *, xq: Quant, yq: Quant) -> Array:
        return _COMPARE[name](real(x, xq), real(y, yq))

    from suites.semantics.quantised.fixed import Parameters, SameOrOther

    body.__name__ = f"quantised_{name}"
    body.__doc__ = f"{name} of the real values."
    body.__annotations__ = {
        "x": Int[Array, "*#d"],
        "y": Int[Array, "*#d"],
        "xq": Parameters("x"),
        "yq": SameOrOther("y", like="xq"),
        "return": Bool[Array, "*#d"],
    }
    # few steps, so that some are equal
    return semantics(
        error=accepted(close),
        source=f"TFLite {name.upper()} on quantised operands",
        data=("ints:0:4", "ints:0:4", "small", "full"),
    )(body)


# -- fake quantisation, tables


def nudged(low: float, high: float, bits: int, narrow: bool) -> tuple[float, float, float]:
    """Scale and the limits moved so that 0 is a step.  Source: TF fake_quant_with_min_max_args."""
    qmin, qmax = (1 if narrow else 0), (1 << bits) - 1
    lo, hi = np.float32(low), np.float32(high)
    scale = np.float32((hi - lo) / np.float32(qmax - qmin))
    zero = np.float32(qmin) - lo / scale
    z = qmin if zero < qmin else qmax if zero > qmax else int(np.float32(np.floor(np.float64(zero) + 0.5)))
    return float(scale), float(np.float32(qmin - z) * scale), float(np.float32(qmax - z) * scale)


def _fake(x: Array, low: float, high: float, bits: int, narrow: bool) -> tuple[Array, float]:
    scale, lo, hi = nudged(low, high, bits, narrow)
    return (np.clip(np.asarray(x, np.float64), lo, hi) - lo) / scale, scale


def _fake_bound(ctx: Context) -> Array:
    """2 ulp, and one step where the quotient is within 2**-20 of a tie"""
    p = ctx.params
    t, scale = _fake(ctx.inputs["x"], p["low"], p["high"], p["bits"], p["narrow"])
    near = np.abs(t - np.floor(t) - 0.5) <= 2.0**-20 * np.maximum(t, 1)
    return 2 * ulp(np.maximum(np.abs(ctx.wide), max(abs(p["low"]), abs(p["high"]))), ctx.out) + near * scale


@semantics(
    error=bounded(_fake_bound),
    source="TFLite FAKE_QUANT; TF fake_quant_with_min_max_args",
    data=("uniform:-8:8", "small", "unit", "wide"),
)
def fake_quant(x: Float[Array, "*d"], *, low: Opaque, high: Opaque, bits: Opaque, narrow: Opaque) -> Float[Array, "*d"]:
    """The number that ``x`` becomes when it is quantised to ``bits`` between low and high and back: a multiple of the
    step, of which 0 is one."""
    t, scale = _fake(x, low, high, bits, narrow)
    lo = nudged(low, high, bits, narrow)[1]
    return (np.floor(t + 0.5) + np.rint(lo / scale)) * scale


def _row_bound(ctx: Context) -> Array:
    """1 ulp"""
    return ulp(ctx.wide, ctx.out)


@semantics(
    error=composed(_row_bound),
    source="TFLite EMBEDDING_LOOKUP of quantised rows: dequantised, one scale for all or for each row",
)
def embedding_rows(table: Int[Array, "r *d"], indices: Int[Array, "n"], *, q: Opaque) -> Array:
    """Rows of the table as real numbers.  Raises RuleError "index-in-range"."""
    return real(table, q)[resolve(indices, len(table), False)]
