"""Faults of the output: the right answer, changed afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import float_max, int_range, smallest_normal
from harness.mutation.fault_context import FaultContext, Outputs


def output_transposed(s: FaultContext) -> Outputs | None:
    """The right numbers with two axes exchanged in memory."""

    def change(v: np.ndarray, e: Any) -> np.ndarray | None:
        if not e.error.pointwise or sum(n > 1 for n in v.shape) < 2:
            return None
        return v.T.reshape(-1).reshape(v.shape)

    return s.map(change)


def stale_memory(s: FaultContext) -> Outputs | None:
    """The last quarter was never written."""

    def change(v: np.ndarray, e: Any) -> np.ndarray:
        raw = np.array(v, order="C").reshape(-1)
        tail = raw[raw.size - max(1, raw.size // 4) :].view(np.uint8)
        tail[:] = 1 if e.dtype.kind == "b" else 0x5A & (0xF if e.dtype.bits < 8 else 0xFF)
        return raw.reshape(v.shape)

    return s.map(change, "fiubc")


def k_ulp(s: FaultContext) -> Outputs | None:
    """A low quality approximation: four ulp beyond a rounded class, 64 ulp elsewhere."""

    def change(v: np.ndarray, e: Any) -> np.ndarray | None:
        if e.error.exact or not e.error.pointwise or e.wide is None:
            return None
        k = 64.0 if e.error.fixed_ulps is None else e.error.fixed_ulps + 4
        w = np.asarray(v, np.float64)
        ok = np.isfinite(w) & (np.abs(w) >= smallest_normal(e.dtype)) & (np.abs(w) < float_max(e.dtype) / 4)
        with np.errstate(all="ignore"):
            return np.where(ok, w * (1 + (k + 1) * 2.0**-e.dtype.frac), w).astype(v.dtype)

    return s.map(change, "f")


def nan_dropped(s: FaultContext) -> Outputs | None:
    """NaN becomes zero."""
    return s.map(lambda v, e: np.where(np.isnan(v.astype(np.float64)), v.dtype.type(0), v), "f")


def infinity_clipped(s: FaultContext) -> Outputs | None:
    """Infinity becomes the largest finite number."""

    def change(v: np.ndarray, e: Any) -> np.ndarray:
        w = v.astype(np.float64)
        return np.where(np.isinf(w), np.sign(w) * float_max(e.dtype), w).astype(v.dtype)

    return s.map(change, "f")


def negative_zero_lost(s: FaultContext) -> Outputs | None:
    """-0 becomes +0, where the operator fixes the sign."""
    return s.map(lambda v, e: v + v.dtype.type(0) if e.error.signed_zero else None, "f")


def subnormals_flushed(s: FaultContext) -> Outputs | None:
    """Subnormal results become zero; where a sum's bound is wider than a subnormal, that is no fault."""

    def change(v: np.ndarray, e: Any) -> np.ndarray | None:
        if e.error.fixed_ulps is None:
            return None
        w = v.astype(np.float64)
        return np.where(np.abs(w) < smallest_normal(e.dtype), v.dtype.type(0), v)

    return s.map(change, "f")


def truncated_result(s: FaultContext) -> Outputs | None:
    """Rounded toward zero instead of to nearest, where the result must be correctly rounded."""

    def change(v: np.ndarray, e: Any) -> np.ndarray | None:
        ulps = e.error.fixed_ulps
        if ulps is None or ulps > 0.5 or e.wide is None or e.wide.shape != v.shape:
            return None
        w = v.astype(np.float64)
        with np.errstate(all="ignore"):
            over = np.isfinite(w) & (np.abs(w) > np.abs(e.wide))
            return np.where(over, _toward_zero(v), v)

    return s.map(change, "f")


def _toward_zero(v: np.ndarray) -> np.ndarray:
    """The next value of the type nearer to zero: one less in the bits of sign-and-magnitude formats."""
    bits = v.view(f"u{v.dtype.itemsize}")
    return np.where(v != 0, bits - 1, bits).astype(bits.dtype).view(v.dtype)


def through_f32(s: FaultContext) -> Outputs | None:
    """Integers carried through f32."""

    def change(v: np.ndarray, e: Any) -> np.ndarray:
        low, high = int_range(e.dtype)
        f = np.clip(v.astype(np.float32).astype(np.float64), low, high)
        inside = np.where((f > low) & (f < high), f, 0).astype(v.dtype)  # what the type does not hold is undefined
        return np.where(f >= high, v.dtype.type(high), np.where(f <= low, v.dtype.type(low), inside))

    return s.map(lambda v, e: change(v, e) if e.dtype.bits >= 32 else None, "iu")


def f16_accumulation(s: FaultContext) -> Outputs | None:
    """Partial sums kept in the 16-bit output type: the typical error of that, sqrt(K) roundings of the scale."""

    def change(v: np.ndarray, e: Any) -> np.ndarray | None:
        if not e.error.sums or e.wide is None or e.dtype.bits != 16:
            return None
        try:
            ctx = e.context()
            n, scale = ctx.count(e.error.terms), ctx.scale()
        except Exception:
            return None
        if n < 3:
            return None
        sign = np.where(np.arange(v.size) % 2, 1.0, -1.0).reshape(v.shape)
        with np.errstate(all="ignore"):
            return np.asarray(e.wide + sign * np.sqrt(n) * ctx.u * scale).astype(v.dtype)

    return s.map(change, "f")
