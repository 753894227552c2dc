"""Matrix products and convolutions: sums of products, accumulated in twice the width of what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import _opconform_native as _native
import numpy as np

from native_ref import _spatial

Array = np.ndarray


def matmul(a: Array, b: Array, out: Any = None) -> Array:
    """Product of ``a`` [..., m, k] and ``b`` [..., k, n], leading axes broadcast; vectors as in ``numpy.matmul``.

    Floats: f64, or one rounding to ``out``.  Integers: exact modulo 2**64 as i64 (u64 when only unsigned 64-bit comes
    in); an integer ``out`` keeps the low bits.  Raises ValueError where shapes do not fit.
    """
    return _native.matmul(a, b, out)


def window_sizes(
    s: Sequence[int], k: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]
) -> tuple[int, ...]:
    """Positions of a window of ``k`` over ``s`` per axis; pads = begins then ends."""
    n = len(s)
    return tuple(
        max(0, (s[i] + pads[i] + pads[n + i] - dilations[i] * (k[i] - 1) - 1) // strides[i] + 1) for i in range(n)
    )


def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    groups: int = 1,
    out: Any = None,
) -> Array:
    """Cross-correlation of x [n, c, *s] with w [m, c // groups, *k] plus b [m], any number of spatial axes.

    pads: begins then ends, zero padding, negative ones crop.  Result [n, m, *o]; types as in ``matmul``.
    """
    return _spatial.conv(x, w, b, strides, dilations, pads, groups, out)


def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    out: Any = None,
) -> Array:
    """Transposed convolution of x [n, c, *s] with w [c, m // groups, *k] plus b [m].

    sizes: spatial extents of the result where ``pads`` and ``output_padding`` do not give them already.
    """
    return _spatial.conv_transpose(x, w, b, strides, dilations, pads, groups, output_padding, sizes, out)
