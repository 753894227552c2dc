"""Around integer products: centring on a zero point, and the fixed-point way back to few bits."""

from __future__ import annotations

from typing import Any

import _opconform_native as _native
import numpy as np

Array = np.ndarray


def centre(x: Array, zero: Array | int) -> Array:
    """x - zero, exact: i16 for 8-bit integers, else i64.

    zero broadcasts to x and is of x's type, or wider.  Raises ValueError for types of more than 32 bits."""
    return _native.centre(x, np.asarray(zero))


def requantise(
    acc: Array, scale: Array | float, zero: int, limits: tuple[int, int], dtype: Any, wide: bool = False
) -> Array:
    """acc * scale + zero within ``limits``, as ``dtype``, the way integer kernels do it.

    The product has a 31-bit multiplier, a rounded high multiplication and a rounding shift, ties away from zero; with
    ``wide`` a 64-bit accumulator and the multiplier's upper half, ties up, as with 16-bit activations.  scale
    broadcasts.  Raises ValueError for limits in the wrong order.  Source: gemmlowp fixedpoint.h, TFLite 8-bit
    quantization specification.
    """
    return _native.requantise(acc, np.asarray(scale, np.float64), zero, *limits, wide, dtype)
