"""Convolutions and matrix products of quantised tensors.

The accumulator is an exact integer: sum of (x - x_zero)(w - w_zero) plus the bias, whose scale is the product of the
others and whose zero point is 0.  It returns to the output type by one fixed-point multiplier per channel,
x_scale * w_scale / o_scale.  Source: TFLite 8-bit quantization specification (CONV_2D, DEPTHWISE_CONV_2D,
FULLY_CONNECTED: weights symmetric, per channel along the output axis allowed); gemmlowp for the multiplication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import I64, DType, of
from harness.declare import Choice, Int, Opaque, Tolerance, semantics
from suites.semantics.quantised.fixed import Array, Quant, factor, rounding, window
from suites.semantics.quantised.output import Activation, back
from suites.semantics.quantised.sums import convolved, transposed, turned

_SPEC = "TFLite 8-bit quantization specification"


def channel_scales(xq: Quant, wq: Quant, oq: Quant, rank: int, axis: int) -> Array:
    """Multiplier per output channel, shaped for an output of ``rank`` with channels on ``axis``."""
    s = np.asarray(wq["scale"], np.float64) * xq["scale"][0] / oq["scale"][0]
    if s.size == 1:
        return s.reshape(())
    shape = [1] * rank
    shape[axis] = s.size
    return s.reshape(shape)


def freedom(scale: Array, acc: Array, x: Array) -> Array:
    """Width of the rounding window; with 16-bit activations the multiplier may lose its lower half."""
    if x.dtype.itemsize == 2:
        return window(scale) + np.abs(acc * scale) * 2.0**-15 + 2.0**-8
    return window(scale) + np.abs(acc * scale) * 2.0**-22


def requantised(accumulate: Callable[..., Array], factor_quant: str = "wq") -> Tolerance:
    """QUANT of an exact sum: ``accumulate(**operands, **parameters)``, channels last.

    factor_quant: the parameter with the quantisation of the second factor."""

    def scaled(given: dict[str, Object]) -> tuple[Array, Array]:
        acc = accumulate(**given)
        return acc, channel_scales(given["xq"], given[factor_quant], given["oq"], acc.ndim, acc.ndim - 1)

    def real(**given: Object) -> Array:
        acc, scale = scaled(given)
        return acc * scale + given["oq"]["zero_point"][0]

    def tie(**given: Object) -> Array:
        acc, scale = scaled(given)
        return freedom(scale, acc, given["x"])

    return rounding(real, tie)


def _back(acc: Array, wq: Quant, xq: Quant, oq: Quant, x: Array, activation: str, dtype: DType | None = None) -> Array:
    """Accumulator, channels last -> output steps, clamped.  dtype: where the result has not the type of x."""
    scale = channel_scales(xq, wq, oq, acc.ndim, acc.ndim - 1)
    return back(acc, scale, oq, dtype or of(x), activation, wide=x.dtype.itemsize == 2)


def _conv_sums(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    xq: Quant,
    wq: Quant,
    strides: Object,
    dilations: Object,
    padding: str,
    groups: int,
    **_: Object,
) -> Array:
    """Exact accumulator as int64, channels last as TFLite has them; padding stands for the zero point."""
    acc = convolved(factor(x, xq), factor(w, wq, 0), b, strides, dilations, padding, groups, out=I64)
    return np.moveaxis(acc, 1, -1)


@semantics(error=requantised(_conv_sums), source=f"{_SPEC}, CONV_2D, DEPTHWISE_CONV_2D")
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
    activation: Activation,
) -> Array:
    """Convolution of the real values, requantised.  Operands as for the plain one: [n, c, *s], [m, c // groups, *k];
    the result has its channels last."""
    acc = _conv_sums(x, w, b, xq=xq, wq=wq, strides=strides, dilations=dilations, padding=padding, groups=groups)
    return _back(acc, wq, xq, oq, x, activation)


def _transposed_sums(
    x: Array, w: Array, b: Array | None = None, *, xq: Quant, wq: Quant, strides: Object, pads: Object, **_: Object
) -> Array:
    return np.moveaxis(transposed(factor(x, xq), factor(w, wq, 1), b, strides, pads), 1, -1)


@semantics(error=requantised(_transposed_sums), source=f"{_SPEC}, TRANSPOSE_CONV")
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
    activation: Activation,
) -> Array:
    """Transposed convolution of the real values, requantised.  pads: begins then ends cut off the full result."""
    acc = _transposed_sums(x, w, b, xq=xq, wq=wq, strides=strides, pads=pads)
    return _back(acc, wq, xq, oq, x, activation)


def _linear_sums(x: Array, w: Array, b: Array | None = None, *, xq: Quant, wq: Quant, **_: Object) -> Array:
    acc = native.matmul(factor(x, xq), factor(w, wq, 0).T, out=I64)
    return acc if b is None else acc + b.astype(np.int64)


@semantics(error=requantised(_linear_sums), source=f"{_SPEC}, FULLY_CONNECTED")
def linear(
    x: Int[Array, "*d i"],
    w: Int[Array, "o i"],
    b: Int[Array, "o"] | None = None,
    *,
    xq: Opaque,
    wq: Opaque,
    oq: Opaque,
    activation: Activation,
    dtype: Opaque,
) -> Array:
    """x w' + b of the real values, requantised; dtype: of the result."""
    acc = _linear_sums(x, w, b, xq=xq, wq=wq)
    return _back(acc, wq, xq, oq, x, activation, dtype)


def _matmul_sums(
    x: Array, y: Array, *, xq: Quant, yq: Quant, transpose_x: bool, transpose_y: bool, **_: Object
) -> Array:
    return native.matmul(turned(factor(x, xq), transpose_x), turned(factor(y, yq), transpose_y), out=I64)


@semantics(error=requantised(_matmul_sums, "yq"), source=f"{_SPEC}; TFLite BATCH_MATMUL")
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
    acc = _matmul_sums(x, y, xq=xq, yq=yq, transpose_x=transpose_x, transpose_y=transpose_y)
    return _back(acc, yq, xq, oq, x, "NONE")


_SUMS: dict[str, Callable[..., Array]] = {
    "CONV_2D": _conv_sums,
    "DEPTHWISE_CONV_2D": _conv_sums,
    "TRANSPOSE_CONV": _transposed_sums,
    "FULLY_CONNECTED": _linear_sums,
    "BATCH_MATMUL": _matmul_sums,
}


def accumulated(op: str, given: dict[str, Object]) -> tuple[Array, Array]:
    """The exact accumulator of an op of TFLite, channels last, and its multiplier per channel.  given: the operands and
    the parameters of its meaning by name."""
    acc = _SUMS[op](**given)
    scale = channel_scales(given["xq"], given["wq" if "wq" in given else "yq"], given["oq"], acc.ndim, acc.ndim - 1)
    return acc, scale
