"""Centring and fixed-point requantisation in whole numbers of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import native_ref

SCALES = (0.5, 0.25, 1.0, 2.0, 0.0078125, 1 / 3, 0.75, 1e-5, 3e-10, 1e-12, 1 - 2**-40, 1000.0, 2.0**-31)


def parts(scale: float) -> tuple[int, int]:
    f, e = math.frexp(scale)
    m = math.floor(Fraction(f) * 2**31 + Fraction(1, 2))
    if m == 2**31:
        m, e = m // 2, e + 1
    return (0, 0) if e < -31 else (m, e)


def plain_fixed(acc: int, scale: float) -> int:
    """The two roundings one after the other."""
    m, e = parts(scale)
    if not m:
        return 0
    wide = min(max(acc * 2 ** max(e, 0), -(2**31)), 2**31 - 1)
    p = 2 * wide * m
    high = (p + 2**31) // 2**32 if p >= 0 else -((-p + 2**31 - 1) // 2**32)  # nearest, ties up
    step = Fraction(high, 2 ** max(-e, 0))
    return int(abs(step) + Fraction(1, 2)) * (1 if step >= 0 else -1)


def plain_wide(acc: int, scale: float) -> int:
    """The upper half of the multiplier, one rounding, ties up."""
    m, e = parts(scale)
    reduced = (m + 2**15) >> 16 if m < 0x7FFF0000 else 0x7FFF
    return math.floor(Fraction(acc * reduced, 2 ** (15 - e)) + Fraction(1, 2))


def accumulators(bits: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    top = 2 ** (bits - 1)
    return np.concatenate([rng.integers(-top, top, 400), rng.integers(-300, 300, 400), [0, 1, -1, 2**31 - 1, -(2**31)]])


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, ml_dtypes.int4], ids=lambda d: np.dtype(d).name
)
@pytest.mark.parametrize("wide", [False, True])
def test_requantise(dtype: type, wide: bool) -> None:
    info = ml_dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    acc = accumulators(40 if wide else 32)
    one = plain_wide if wide else plain_fixed
    for scale in SCALES:
        if wide and scale >= 2**14:
            continue
        for zero, limits in ((0, (low, high)), (high // 3, (low // 2, high)), (low, (low, low))):
            got = native_ref.requantise(acc, scale, zero, limits, dtype, wide)
            assert got.dtype == dtype
            want = [min(max(one(int(a), scale) + zero, limits[0]), limits[1]) for a in acc]
            assert list(got.astype(np.int64)) == want, (scale, zero)


@pytest.mark.parametrize("wide", [False, True])
def test_a_scale_that_no_multiplier_stands_for_is_0(wide: bool) -> None:
    acc = np.array([0, 1, -1, 2**31 - 1, -(2**31)])
    for scale in (0.0, -0.0, -0.5, -np.inf, np.inf, np.nan, 2.0**-40):
        assert native_ref.requantise(acc, scale, 3, (-128, 127), np.int8, wide).tolist() == [3] * 5, scale
    mixed = np.array([np.nan, 1.0, -1.0, np.inf, 1.0])
    assert native_ref.requantise(acc, mixed, 0, (-128, 127), np.int8, wide).tolist() == [0, 1, 0, 0, -128]


def test_requantise_takes_a_scale_per_channel() -> None:
    acc = np.random.default_rng(7).integers(-(10**6), 10**6, (5, 700, 3))
    scales = np.array([1e-4, 3e-4, 0.7e-3])
    got = native_ref.requantise(acc, scales, 3, (-128, 127), np.int8)
    want = [[[min(max(plain_fixed(int(a), s) + 3, -128), 127) for a, s in zip(r, scales)] for r in p] for p in acc]
    assert got.tolist() == want
    turned = native_ref.requantise(acc.transpose(2, 1, 0), scales.reshape(3, 1, 1), 3, (-128, 127), np.int8)
    np.testing.assert_array_equal(turned, got.transpose(2, 1, 0))
    with pytest.raises(ValueError, match="limits 1 and 0"):
        native_ref.requantise(acc, 1.0, 0, (1, 0), np.int8)
    with pytest.raises(ValueError, match="to an integer type"):
        native_ref.requantise(acc, 1.0, 0, (0, 1), np.float32)


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, ml_dtypes.int4],
    ids=lambda d: np.dtype(d).name,
)
def test_centre_is_exact(dtype: type) -> None:
    info = ml_dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    x: np.ndarray = np.array([[low, high, 0], [high, 1, low]]).astype(dtype)
    for zero in (low, high, 0):
        got = native_ref.centre(x, np.array(zero).astype(dtype))
        assert got.astype(object).tolist() == [[int(v) - zero for v in row] for row in x]
        assert got.dtype == (np.int16 if info.bits <= 8 else np.int64)
    zeros: np.ndarray = np.array([[low], [high]]).astype(dtype)
    got = native_ref.centre(x, zeros)
    assert got.tolist() == [[int(v) - int(z[0]) for v in row] for row, z in zip(x, zeros)]
    with pytest.raises(ValueError, match="zero points"):
        native_ref.centre(x, np.zeros((2, 2, 3)).astype(dtype))
    with pytest.raises(ValueError, match="i64 is too wide"):
        native_ref.centre(np.zeros(1, np.int64), 0)
