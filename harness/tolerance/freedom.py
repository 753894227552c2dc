"""Elements that nothing binds: their bound is infinite, or what adds up to them left the range of f64."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.tolerance.base import Tolerance
from harness.tolerance.context import Context


def left_range(ctx: Context, wide: np.ndarray) -> np.ndarray:
    """Where our own partial sums left the range of f64: other orders, or fused ones, may have stayed in it."""
    return ~np.isfinite(wide) & np.isfinite(_smaller(ctx))


def free_of(error: Tolerance, ctx: Context, wide: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Mask of the elements that may be anything: their bound is infinite, or our partial sums left the range of f64."""
    free = np.isinf(bound) & (np.isfinite(wide) | (not error.binds_infinities))
    if error.sums and not np.isfinite(wide).all():
        free = free | left_range(ctx, wide)
    return free


def _smaller(ctx: Context) -> np.ndarray:
    """The result for inputs 2^-200 times as large: infinite where an input is, not where finite ones add up to it."""
    return np.asarray(ctx.reevaluate(**{k: _times_tiny(v) for k, v in ctx.inputs.items()}), np.float64)


def _times_tiny(v: Any) -> Any:
    if isinstance(v, (list, tuple)):
        return [_times_tiny(x) for x in v]
    return v * 2.0**-200 if isinstance(v, np.ndarray) and v.dtype == np.float64 else v
