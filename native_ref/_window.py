"""Pooling, interpolation, softmax, recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import _opconform_native as _native
import numpy as np

from native_ref import _spatial

Array = np.ndarray

ACTIVATIONS = (
    "affine",
    "relu",
    "tanh",
    "sigmoid",
    "leaky_relu",
    "thresholded_relu",
    "scaled_tanh",
    "hard_sigmoid",
    "elu",
    "softsign",
    "softplus",
)
_CELL = {"rnn": 0, "gru": 1, "lstm": 2}


def pool(
    kind: str,
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    *,
    count_include_pad: bool = False,
    p: float = 2,
    extra_end: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    positions: bool = False,
    out: Any = None,
) -> Any:
    """Slide a window over the spatial axes of x [n, c, *s].

    kind: "max" (x's type), "avg", "lp" (f64).  pads: begins then ends.  extra_end: cells beyond the declared padding
    that rounding the sizes up brings in; they hold nothing and never count.  count_include_pad: averages divide by the
    cells inside the declared padding rather than inside x.  positions: also the flat spatial index of each maximum
    (first of equals, -1 for a window that meets no element).  A window over no element: max -inf or lowest, average
    NaN.
    """
    code = {"max": 0, "avg": 2 if count_include_pad else 1, "lp": 3}[kind]
    return _spatial.pool(
        code, x, kernel, strides or None, dilations or None, pads or None, extra_end, sizes, p, positions, out
    )


def interpolate(x: Array, axis: int, index: Array, weight: Array, out: Any = None) -> Array:
    """y[o] = sum over t of weight[o, t] * x[index[o, t]] along ``axis``; taps of weight 0 are not read.  f64 or
    ``out``."""
    return _native.interpolate(
        x, axis, np.ascontiguousarray(index, np.int64), np.ascontiguousarray(weight, np.float64), out
    )


def softmax(x: Array, axis: int, log: bool = False, out: Any = None) -> Array:
    """exp(x - max) / sum along ``axis``, or its logarithm; f64 or one rounding to ``out``."""
    return _native.softmax(x, axis, log, out)


def recurrent(
    cell: str,
    x: Array,
    w: Array,
    r: Array,
    *,
    bias_w: Array | None = None,
    bias_r: Array | None = None,
    peephole: Array | None = None,
    lengths: Sequence[int] | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    activations: Sequence[tuple[str, float, float]],
    clip: float = 0.0,
    coupled: bool = False,
    reset_after: bool = False,
    backward: bool = False,
) -> tuple[Array, Array, Array | None, Array | None]:
    """One direction of a recurrent layer in f64: (y [t, b, h], last h [b, h], last c or None, all cells or None).

    x [t, b, i], w [gates * h, i], r [gates * h, h]; gates of an lstm: input output forget cell, of a gru: update reset
    hidden.  peephole [3 * h]: input output forget.  activations: (name, alpha, beta) for f, g, h.  clip bounds what
    enters f and g, 0 is none.  coupled: forget = 1 - input.  reset_after: gru's reset gate multiplies the recurrent
    product instead of the state.  lengths: steps beyond are zero in y and leave the state alone.
    """

    def f64(a: Array | None) -> Array | None:
        return None if a is None else np.ascontiguousarray(a, np.float64)

    codes = tuple((ACTIVATIONS.index(n), float(a), float(b)) for n, a, b in activations)
    return _native.rnn(
        _CELL[cell],
        f64(x),
        f64(w),
        f64(r),
        f64(bias_w),
        f64(bias_r),
        f64(peephole),
        lengths,
        f64(h0),
        f64(c0),
        codes,
        float(clip),
        coupled,
        reset_after,
        backward,
    )
