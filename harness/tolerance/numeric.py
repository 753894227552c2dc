"""Spacing, roundoff and the classic bound on roundings, by element type."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from harness.core.dtypes import F32, DType, float_max, smallest_normal

Array = np.ndarray
_EXPONENT = np.int64(0x7FF << 52)


def ulp(h: Any, out: DType) -> Array:
    """Spacing of ``out`` at |h|, never below that of the smallest normal; the spacing at the top beyond the range.

    NaN and inf give the top spacing, so that nobody has to filter them first."""
    least, top, step = _scale_of(out)
    m = np.fmin(np.maximum(np.abs(h, dtype=np.float64), least), top)  # fmin turns NaN into the top
    return (m.view(np.int64) & _EXPONENT).view(np.float64) * step  # the power of two at or below m


@cache
def _scale_of(out: DType) -> tuple[np.float64, np.float64, np.float64]:
    """Smallest normal, largest finite value, spacing at 1."""
    return np.float64(smallest_normal(out)), np.float64(float_max(out)), np.float64(2.0**-out.frac)


def unit(out: DType) -> float:
    """Unit roundoff of a float type; 0 for the others."""
    return 2.0 ** -(out.frac + 1) if out.kind in "fc" else 0.0


def gamma(k: Any, u: float) -> Any:
    """k*u / (1 - k*u), the classic bound on k roundings; inf once k*u reaches one half."""
    if isinstance(k, (int, float)):  # no array: without the price of one
        one = k * u
        return np.float64(one / (1.0 - one) if one < 0.5 else np.inf)
    ku = np.asarray(k, np.float64) * u
    return np.where(ku < 0.5, ku / (1.0 - np.minimum(ku, 0.5)), np.inf)


def default_acc(out: DType) -> DType:
    """f32 for everything narrower; the type itself from f32 on."""
    return F32 if out.kind == "f" and out.bits < 32 else out


def widened(v: Any) -> Array:
    """An array of f64, or of complex128 where the elements are complex."""
    v = np.asarray(v)
    return v.astype(np.complex128 if v.dtype.kind == "c" else np.float64, copy=False)


def absolute(v: Any) -> Any:
    """|v| of float and complex arrays (lists element by element); everything else, such as indices, unchanged."""
    if isinstance(v, (list, tuple)):
        return [absolute(x) for x in v]
    return np.abs(v) if isinstance(v, np.ndarray) and v.dtype.kind in "fc" else v
