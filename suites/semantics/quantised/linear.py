"""Convolutions and matrix products of quantised tensors.

The accumulator is an exact integer: sum of (x - x_zero)(w - w_zero) plus the bias, whose scale is the product of the
others and whose zero point is 0.  It returns to the output type by one fixed-point multiplier per channel,
x_scale * w_scale / o_scale.  Source: TFLite 8-bit quantization specification (CONV_2D, DEPTHWISE_CONV_2D,
FULLY_CONNECTED: weights symmetric, per channel along the output axis allowed); gemmlowp for the multiplication.
"""

from __future__ import annotations

from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import I64, of
from harness.declare import Choice, Int, Opaque, semantics
from suites.semantics.quantised.fixed import Array, Quant, factor, rounding, window
from suites.semantics.quantised.output import ACTIVATIONS, back
from suites.semantics.window import geometry

_SPEC = "TFLite 8-bit quantization specification"


def channel_scales(xq: Quant, wq: Quant, oq: Quant, rank: int, axis: int) -> Array:
    """Multiplier per output channel, shaped for an output of ``rank`` with channels on ``axis``."""
    s = np.asarray(wq["scale"], np.float64) * xq["scale"][0] / oq["scale"][0]
    if s.size == 1:
        return s.reshape(())
    shape = [1] * rank
    shape[axis] = s.size
    return s.reshape(shape)


def accumulate_conv(
    x: Array,
    w: Array,
    b: Array | None,
    xq: Quant,
    wq: Quant,
    strides: Object,
    dilations: Object,
    padding: str,
    groups: int,
) -> Array:
    """Exact accumulator as int64, channels last as TFLite has them; padding stands for the zero point."""
    g = geometry(x.shape[2:], w.shape[2:], strides, dilations, None, padding)
    acc = native.conv(factor(x, xq), factor(w, wq, 0), b, g.strides, g.dilations, g.pads, groups, out=I64)
    return np.moveaxis(acc, 1, -1)


def _back(acc: Array, wq: Quant, xq: Quant, oq: Quant, x: Array, activation: str) -> Array:
    """Accumulator, channels last -> output steps, clamped."""
    scale = channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1)
    return back(acc, scale, oq, of(x), activation, wide=x.dtype.itemsize == 2)


def freedom(scale: Array, acc: Array, x: Array) -> Array:
    """Width of the rounding window; with 16-bit activations the multiplier may lose its lower half."""
    if x.dtype.itemsize == 2:
        return window(scale) + np.abs(acc * scale) * 2.0**-15 + 2.0**-8
    return window(scale) + np.abs(acc * scale) * 2.0**-22


def _conv_real(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    xq: Quant,
    wq: Quant,
    oq: Quant,
    strides: Object,
    dilations: Object,
    padding: str,
    groups: int,
    activation: str,
) -> Array:
    acc = accumulate_conv(x, w, b, xq, wq, strides, dilations, padding, groups)
    return acc * channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1) + oq["zero_point"][0]


def _conv_tie(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    xq: Quant,
    wq: Quant,
    oq: Quant,
    strides: Object,
    dilations: Object,
    padding: str,
    groups: int,
    activation: str,
) -> Array:
    acc = accumulate_conv(x, w, b, xq, wq, strides, dilations, padding, groups)
    return freedom(channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1), acc, x)


@semantics(error=rounding(_conv_real, _conv_tie), source=f"{_SPEC}, CONV_2D, DEPTHWISE_CONV_2D")
def conv(
    x: Int[Array, "n c *s"],
    w: Int[Array, "m g *k"],
    b: Int[Array, "m"] | None = None,
    *,
    xq: Opaque,
    wq: Opaque,
    oq: Opaque,
    strides: Opaque,
    dilations: Opaque,
    padding: Choice[str, "same_upper", "valid"],
    groups: Opaque,
    activation: Choice[str, ACTIVATIONS],
) -> Array:
    """Convolution of the real values, requantised.  Operands as for the plain one: [n, c, *s], [m, c // groups, *k];
    the result has its channels last."""
    acc = accumulate_conv(x, w, b, xq, wq, strides, dilations, padding, groups)
    return _back(acc, wq, xq, oq, x, activation)


def _transposed_acc(x: Array, w: Array, b: Array | None, xq: Quant, wq: Quant, strides: Object, pads: Object) -> Array:
    n = x.ndim - 2
    sizes = tuple(strides[i] * (x.shape[2 + i] - 1) + w.shape[2 + i] - pads[i] - pads[n + i] for i in range(n))
    acc = native.conv_transpose(factor(x, xq), factor(w, wq, 1), b, strides, (1,) * n, pads, sizes=sizes)
    return np.moveaxis(acc, 1, -1)


def _transposed_real(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    xq: Quant,
    wq: Quant,
    oq: Quant,
    strides: Object,
    pads: Object,
    activation: str,
) -> Array:
    acc = _transposed_acc(x, w, b, xq, wq, strides, pads)
    return acc * channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1) + oq["zero_point"][0]


def _transposed_tie(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    xq: Quant,
    wq: Quant,
    oq: Quant,
    strides: Object,
    pads: Object,
    activation: str,
) -> Array:
    acc = _transposed_acc(x, w, b, xq, wq, strides, pads)
    return freedom(channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1), acc, x)


@semantics(error=rounding(_transposed_real, _transposed_tie), source=f"{_SPEC}, TRANSPOSE_CONV")
def conv_transpose(
    x: Int[Array, "n c *s"],
    w: Int[Array, "c m *k"],
    b: Int[Array, "m"] | None = None,
    *,
    xq: Opaque,
    wq: Opaque,
    oq: Opaque,
    strides: Opaque,
    pads: Opaque,
    activation: Choice[str, ACTIVATIONS],
) -> Array:
    """Transposed convolution of the real values, requantised.  pads: begins then ends cut off the full result."""
    acc = _transposed_acc(x, w, b, xq, wq, strides, pads)
    return _back(acc, wq, xq, oq, x, activation)


def _linear_acc(x: Array, w: Array, b: Array | None, xq: Quant, wq: Quant) -> Array:
    acc = native.matmul(factor(x, xq), factor(w, wq, 0).T, out=I64)
    return acc if b is None else acc + b.astype(np.int64)


def _linear_real(
    x: Array, w: Array, b: Array | None = None, *, xq: Quant, wq: Quant, oq: Quant, activation: str
) -> Array:
    acc = _linear_acc(x, w, b, xq, wq)
    return acc * channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1) + oq["zero_point"][0]


def _linear_tie(
    x: Array, w: Array, b: Array | None = None, *, xq: Quant, wq: Quant, oq: Quant, activation: str
) -> Array:
    acc = _linear_acc(x, w, b, xq, wq)
    return freedom(channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1), acc, x)


@semantics(error=rounding(_linear_real, _linear_tie), source=f"{_SPEC}, FULLY_CONNECTED")
def linear(
    x: Int[Array, "*d i"],
    w: Int[Array, "o i"],
    b: Int[Array, "o"] | None = None,
    *,
    xq: Opaque,
    wq: Opaque,
    oq: Opaque,
    activation: Choice[str, ACTIVATIONS],
) -> Array:
    """x w' + b of the real values, requantised."""
    acc = _linear_acc(x, w, b, xq, wq)
    return _back(acc, wq, xq, oq, x, activation)


def _turn(a: Array, flag: bool) -> Array:
    return np.swapaxes(a, -1, -2) if flag else a


def _matmul_acc(x: Array, y: Array, xq: Quant, yq: Quant, tx: bool, ty: bool) -> Array:
    return native.matmul(_turn(factor(x, xq), tx), _turn(factor(y, yq), ty), out=I64)


def _matmul_real(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, transpose_x: bool, transpose_y: bool) -> Array:
    return (
        _matmul_acc(x, y, xq, yq, transpose_x, transpose_y) * (xq["scale"][0] * yq["scale"][0] / oq["scale"][0])
        + oq["zero_point"][0]
    )


def _matmul_tie(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, transpose_x: bool, transpose_y: bool) -> Array:
    s = xq["scale"][0] * yq["scale"][0] / oq["scale"][0]
    return freedom(np.asarray(s), _matmul_acc(x, y, xq, yq, transpose_x, transpose_y), x)


@semantics(error=rounding(_matmul_real, _matmul_tie), source=f"{_SPEC}; TFLite BATCH_MATMUL")
def matmul(
    x: Int[Array, "*d"],
    y: Int[Array, "*e"],
    *,
    xq: Opaque,
    yq: Opaque,
    oq: Opaque,
    transpose_x: Opaque,
    transpose_y: Opaque,
) -> Array:
    """Matrix product of the real values, requantised; leading axes broadcast."""
    acc = _matmul_acc(x, y, xq, yq, transpose_x, transpose_y)
    return _back(acc, yq, xq, oq, x, "NONE")
