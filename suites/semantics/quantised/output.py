"""The way out: real steps and integer accumulators become integers of the output type, a fused activation applied."""

from __future__ import annotations

from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import DType, int_range
from suites.semantics.quantised.fixed import LIMITS, Array, Quant, away, saturate

ACTIVATIONS = ("NONE", *LIMITS)


def clamp_range(q: Quant, dtype: Any, activation: str) -> tuple[int, int]:
    """Steps that a fused activation leaves: the real limits, quantised."""
    lo, hi = int_range(dtype)
    s, z = q["scale"][0], q["zero_point"][0]

    def at(r: float) -> int:
        return int(z + away(np.asarray(r / s)))

    least, most = LIMITS.get(activation, (-np.inf, np.inf))
    return max(lo, at(least)) if least > -np.inf else lo, min(hi, at(most)) if most < np.inf else hi


def finish(r: Array, q: Quant, dtype: Any, activation: str = "NONE") -> Array:
    """Steps -> integers of the type, the activation's limits applied."""
    lo, hi = clamp_range(q, dtype, activation)
    return np.clip(saturate(away(r), dtype), lo, hi).astype(dtype.np) if lo <= hi else saturate(away(r), dtype)


def back(
    acc: Array, scale: Array | float, q: Quant, dtype: DType, activation: str = "NONE", wide: bool = False
) -> Array:
    """Accumulator -> integers of the type, by one fixed-point multiplication (``native_ref.requantise``).

    wide: a 64-bit accumulator, as kernels with 16-bit activations have it."""
    lo, hi = clamp_range(q, dtype, activation)
    if lo > hi:
        lo, hi = int_range(dtype)
    return native.requantise(acc, scale, int(q["zero_point"][0]), (lo, hi), dtype, wide)
