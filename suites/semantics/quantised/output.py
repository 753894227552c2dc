"""The way out: real steps and integer accumulators become integers of the output type, a fused activation applied."""

from __future__ import annotations

from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import DType, int_range
from suites.semantics.quantised.fixed import Array, Quant, away, saturate

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")


def clamp_range(q: Quant, dtype: Any, activation: str) -> tuple[int, int]:
    """Steps that a fused activation leaves: the real limits, quantised."""
    lo, hi = int_range(dtype)
    s, z = q["scale"][0], q["zero_point"][0]

    def at(r: float) -> int:
        return int(z + away(np.float64(r / s)))

    if activation in ("RELU", "RELU6"):
        lo = max(lo, at(0.0))
    if activation == "RELU_N1_TO_1":
        lo = max(lo, at(-1.0))
    if activation == "RELU6":
        hi = min(hi, at(6.0))
    if activation == "RELU_N1_TO_1":
        hi = min(hi, at(1.0))
    return lo, hi


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
