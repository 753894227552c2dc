"""Conversions between all types: exhaustive where a type is small, exact rationals for the rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import native_ref
from harness.core import dtypes as D

SMALL = [D.F16, D.BF16, D.F8E4M3FN, D.F8E4M3FNUZ, D.F8E5M2, D.F8E5M2FNUZ, D.F4E2M1, D.F6E2M3, D.F6E3M2]
NUMBERS = [*D.ALL[:23], D.F6E2M3, D.F6E3M2]


def all_values(d: D.DType) -> np.ndarray:
    n = 1 << (8 if d.bits == 8 else d.bits)
    return np.arange(n, dtype=np.uint8 if d.bits <= 8 else np.uint16).view(d.np)


@pytest.mark.parametrize("d", [*SMALL, D.F8E8M0], ids=str)
def test_decode_is_exact(d: D.DType) -> None:
    x = all_values(d)
    np.testing.assert_array_equal(native_ref.convert(x, D.F64), x.astype(np.float64))


@pytest.mark.parametrize("d", SMALL, ids=str)
@pytest.mark.parametrize("rounding", ["even", "zero", "up", "down", "away", "odd"])
def test_rounding_at_and_next_to_every_midpoint(d: D.DType, rounding: str) -> None:
    """Every pair of neighbours: the values, the midpoint, and the f64 beside each of them."""
    x = all_values(d).astype(np.float64)
    finite = np.unique(np.abs(x[np.isfinite(x)]))
    mid = (finite[:-1] + finite[1:]) / 2
    points = np.concatenate([finite, mid])
    points = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, 0)])
    points = points[points <= finite[-1]]
    points = np.concatenate([points, -points])
    got = native_ref.convert(points, d, rounding=rounding).astype(np.float64)
    order = np.searchsorted(finite, np.abs(points), side="right") - 1
    lo = finite[order]
    hi = finite[np.minimum(order + 1, finite.size - 1)]
    # all exact: a small type's midpoints are f64 numbers
    m, middle, odd = np.abs(points), (lo + hi) / 2, order % 2 == 1
    negative = np.signbit(points)
    up = {
        "even": (m > middle) | ((m == middle) & odd),
        "away": m >= middle,
        "zero": np.zeros_like(odd),
        "up": ~negative,
        "down": negative,
        "odd": ~odd,
    }[rounding]
    want = np.where((m == lo) | ~up, lo, hi)
    np.testing.assert_array_equal(np.abs(got), want)
    signed = got != 0
    np.testing.assert_array_equal(np.signbit(got[signed]), negative[signed])


@pytest.mark.parametrize("d", SMALL, ids=str)
def test_overflow(d: D.DType) -> None:
    top = D.float_max(d)
    values = all_values(d).astype(np.float64)
    below = float(np.unique(values[np.isfinite(values)])[-2])
    half = (top - below) / 2
    x = np.array([top, np.nextafter(top + half, 0), top + half, 1e300, math.inf, -math.inf])
    got = native_ref.convert(x, d).astype(np.float64)
    assert got[0] == got[1] == top
    if d in (D.F4E2M1, D.F6E2M3, D.F6E3M2):  # no inf and no NaN: saturates
        assert got[2:].tolist() == [top, top, top, -top]
    elif d in (D.F8E4M3FN, D.F8E4M3FNUZ, D.F8E5M2FNUZ):  # no inf
        # the midpoint ties to the even one, which for an odd largest value is beyond the range
        assert np.isnan(got[3:]).all()
    else:
        assert got[2:].tolist() == [math.inf, math.inf, math.inf, -math.inf]
    full = native_ref.convert(x, d, saturate=True).astype(np.float64)
    assert list(full) == [top, top, top, top, top, -top]


def test_f32_is_the_hardware_rounding_and_f64_the_identity() -> None:
    x = native_ref.fill("full", 3, (20000,), np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native_ref.convert(x, D.F32), x.astype(np.float32))
    np.testing.assert_array_equal(native_ref.convert(x, D.F64).view(np.uint64), x.view(np.uint64))


@pytest.mark.parametrize("rounding", ["even", "zero", "up", "down", "away"])
def test_f32_directed(rounding: str) -> None:
    x = native_ref.fill("wide", 3, (3000,), np.float64)
    got = native_ref.convert(x, D.F32, rounding=rounding)
    for v, g in zip(x.tolist(), got.tolist()):
        near = float(np.float32(v))
        other = float(np.nextafter(np.float32(v), np.float32(math.inf if near < v else -math.inf)))
        lo, hi = min(near, other), max(near, other)
        want = {"even": near, "away": near, "up": hi, "down": lo, "zero": lo if v > 0 else hi}[rounding]
        assert g == (near if near == v else want), (v, g)


@pytest.mark.parametrize("dst", [D.F32, D.F16, D.BF16, D.F8E5M2], ids=str)
@pytest.mark.parametrize("src", [D.I64, D.U64], ids=str)
def test_wide_integers_round_once(src: D.DType, dst: D.DType) -> None:
    """An int64 one above a midpoint must not become the midpoint on the way through f64."""
    values = []
    for e in range(55, 63 + (src is D.U64)):
        for frac in range(4):
            m = (1 << e) + (frac << (e - dst.frac)) + (1 << (e - dst.frac - 1))
            values += [m - 1, m, m + 1]
    hi = (1 << 64) - 1 if src is D.U64 else (1 << 63) - 1
    values = [v for v in values if v <= hi]
    got = native_ref.convert(np.array(values, src.np), dst).astype(np.float64)
    top = D.float_max(dst)
    for v, g in zip(values, got):
        q = Fraction(2) ** (v.bit_length() - 1 - dst.frac)
        k = Fraction(v) / q
        n = math.floor(k)
        rest = k - n
        n += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2)
        want = float(n * q)
        assert g == (want if want <= top else math.inf), (v, g, want)


@pytest.mark.parametrize("dst", [d for d in D.INTS if d.bits not in (1, 3, 6)], ids=str)
def test_float_to_integer(dst: D.DType) -> None:
    lo, hi = D.int_range(dst)
    x = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1.999,
        -1.999,
        float(hi),
        float(lo),
        float(hi) + 1,
        float(lo) - 1,
        1e30,
        -1e30,
        math.inf,
        -math.inf,
        math.nan,
    ]
    for rounding in (None, "even", "up", "down", "away"):
        got = native_ref.convert(np.array(x), dst, rounding=rounding)
        for v, g in zip(x, got):
            if v != v:
                want = 0
            elif math.isinf(v):
                want = hi if v > 0 else lo
            else:
                fn = {
                    None: math.trunc,
                    "even": round,
                    "up": math.ceil,
                    "down": math.floor,
                    "away": lambda t: int(math.copysign(math.floor(abs(t) + 0.5), t)),
                }[rounding]
                want = min(max(fn(v), lo), hi)
            assert int(g) == want, (v, rounding, int(g), want)


@pytest.mark.parametrize("src", [d for d in D.INTS if d.bits not in (1, 3, 6)], ids=str)
def test_integer_to_integer(src: D.DType) -> None:
    lo, hi = D.int_range(src)
    values = [v for v in {lo, lo + 1, -1, 0, 1, 5, hi - 1, hi, 200, -200, 2**31, 2**32 + 7} if lo <= v <= hi]
    x = np.array(values, src.np)
    for dst in D.INTS:
        dlo, dhi = D.int_range(dst)
        for saturate in (False, True):
            got = [int(v) for v in native_ref.convert(x, dst, saturate=saturate)]
            if saturate:
                want = [min(max(v, dlo), dhi) for v in values]
            else:
                want = [((v - dlo) % (1 << dst.bits)) + dlo for v in values]
            assert got == want, (src, dst, saturate)


def test_bool_and_complex() -> None:
    x = np.array([0.0, -0.0, 0.25, -1, math.nan, math.inf])
    assert native_ref.convert(x, D.BOOL).tolist() == [False, False, True, True, True, True]
    assert native_ref.convert(np.array([0, 256], np.int32), D.BOOL).tolist() == [False, True]
    for d in NUMBERS:
        if d is not D.F8E8M0:  # has no zero
            assert [float(v) for v in native_ref.convert(np.array([True, False]), d)] == [1.0, 0.0], d
    z = np.array([1.5 - 2j, 3j], np.complex128)
    assert native_ref.convert(z, D.C64).tolist() == z.tolist()
    assert native_ref.convert(z, D.F32).tolist() == [1.5, 0.0]
    assert native_ref.convert(np.array([2, -3], np.int8), D.C128).tolist() == [2, -3]


def test_e8m0() -> None:
    """ONNX Cast-25, table of FLOAT8E8M0, and the rounding modes on 1, 1.25, 1.5, 1.75."""
    x = np.array([1, 1.25, 1.5, 1.75, 2])

    def bits(v: np.ndarray, **kw: object) -> list[int]:
        return native_ref.convert(v, D.F8E8M0, **kw).view(np.uint8).tolist()

    assert bits(x, rounding="up") == [127, 128, 128, 128, 128]
    assert bits(x, rounding="zero") == [127, 127, 127, 127, 128]
    assert bits(x, rounding="away") == [127, 127, 128, 128, 128]
    for integer in (np.int32, np.uint32, np.int64, np.uint64):
        assert bits(np.array([1, 5, 6, 7, 8], integer), rounding="up") == [127, 130, 130, 130, 130], integer
    beyond = np.array([2**53, 2**53 + 1, 2**62, 2**62 + 1], np.uint64)  # f64 alone would lose the one
    assert bits(beyond, rounding="up") == [180, 181, 189, 190]
    assert bits(beyond, rounding="zero") == [180, 180, 189, 189]
    edge = np.array([0.0, 2.0**-128, 2.0**-127, 2.0**127, 2.0**127 * 1.5, 2.0**128, math.inf, math.nan])
    assert bits(edge, rounding="up", saturate=True) == [0, 0, 0, 254, 254, 254, 254, 255]
    assert bits(edge, rounding="away", saturate=False) == [255, 255, 0, 254, 255, 255, 255, 255]


@pytest.mark.parametrize("src", NUMBERS, ids=str)
@pytest.mark.parametrize("dst", NUMBERS, ids=str)
def test_every_pair_runs_and_small_integers_survive(src: D.DType, dst: D.DType) -> None:
    if D.F8E8M0 in (src, dst):  # no zero, no sign; the 2-bit integers end at 1
        x = np.array([1] if {D.I2, D.BOOL} & {src, dst} else [1, 2], np.float64)
    elif src.kind == "u" or dst.kind == "u" or D.BOOL in (src, dst):
        x = np.array([0, 1], np.float64)
    else:
        x = np.array([-1, 0, 1], np.float64)
    a = native_ref.convert(x, src)
    b = native_ref.convert(native_ref.convert(a, dst), D.F64)
    want = (x != 0).astype(float) if D.BOOL in (src, dst) else x
    assert b.tolist() == want.tolist()


def test_unknown_rounding() -> None:
    with pytest.raises(ValueError, match="unknown rounding 'nearest', expected one of even zero"):
        native_ref.convert(np.zeros(1), D.F32, rounding="nearest")


def test_agrees_with_numpy_where_numpy_is_right() -> None:
    x = native_ref.fill("special", 5, (5000,), np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native_ref.convert(x, D.F16), x.astype(np.float16))
        got, want = native_ref.convert(x, D.BF16), x.astype(ml_dtypes.bfloat16)
        nan = np.isnan(x)
        np.testing.assert_array_equal(got[~nan], want[~nan])
        assert np.isnan(got[nan].astype(np.float32)).all()


@pytest.mark.parametrize("d", [D.F16, D.BF16], ids=str)
def test_rows_of_f32_and_f64_agree_beyond_the_largest_value_and_at_every_length(d: D.DType) -> None:
    """Neighbours in f32 of every value and midpoint, overflow, infinities, NaNs: as f32, f64, strided, in parts."""
    finite = all_values(d).astype(np.float64)
    finite = np.unique(finite[np.isfinite(finite)])
    top, below = finite[-1], finite[-2]
    over = top + (top - below) / 2  # the first value that overflows: a tie whose even neighbour does not exist
    ends = [top, over, np.nextafter(over, 0), np.nextafter(over, np.inf), 2 * top, 1e300, 5e-324, 1e-310, 0.0]
    more = np.array([*ends, math.inf, math.nan])
    got = native_ref.convert(np.concatenate([more, -more]), d)
    with np.errstate(over="ignore"):
        want = [top, math.inf, top, math.inf, math.inf, math.inf, 0.0, 0.0, 0.0, math.inf, math.nan]
    wide = got.astype(np.float64)
    np.testing.assert_array_equal(wide, np.concatenate([want, np.negative(want)]))
    np.testing.assert_array_equal(np.signbit(wide), np.repeat([False, True], more.size))
    narrow = np.concatenate([finite, (finite[:-1] + finite[1:]) / 2]).astype(np.float32)
    inf = np.float32(np.inf)
    narrow = np.concatenate([narrow, np.nextafter(narrow, inf), np.nextafter(narrow, -inf)])
    narrow = np.concatenate([narrow, np.array([math.inf, -math.inf, math.nan, 3e38, 65520, 65519.996], np.float32)])
    raw = native_ref.convert(narrow, d).view(np.uint16)
    np.testing.assert_array_equal(raw, native_ref.convert(narrow.astype(np.float64), d).view(np.uint16))
    np.testing.assert_array_equal(raw, native_ref.convert(np.repeat(narrow, 2)[::2], d).view(np.uint16))
    for n in range(1, 100):
        part = narrow[n : 2 * n]
        np.testing.assert_array_equal(native_ref.convert(part, d).view(np.uint16), raw[n : 2 * n])
        np.testing.assert_array_equal(native_ref.convert(part.astype(np.float64), d).view(np.uint16), raw[n : 2 * n])
        small = raw[n : 2 * n].view(d.np)
        np.testing.assert_array_equal(native_ref.convert(small, D.F64), native_ref.convert(small[::-1], D.F64)[::-1])


@pytest.mark.parametrize("rounding", list(native_ref.ROUNDINGS))
def test_wide_integers_to_f64(rounding: str) -> None:
    """At and beside every midpoint of the three topmost binades, and where nothing is lost."""
    units = [1 << k for k in (1, 2, 5, 10, 11)]
    near = [(u << 53) + j * u // 4 for u in units for j in range(-9, 10) if u >= 4 or j % 2 == 0]
    values = [
        0,
        1,
        2**53 - 1,
        2**53,
        2**53 + 1,
        2**53 + 3,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64 - 1024,
        2**64 - 1025,
        *near,
    ]
    for dtype in (np.int64, np.uint64):
        info = np.iinfo(dtype)
        some = [v for v in [*values, *(-v for v in values)] if info.min <= v <= info.max]
        got = native_ref.convert(np.array(some, dtype), D.F64, rounding=rounding)
        assert [int(v) for v in got] == [_to_53_bits(v, rounding) for v in some]
        twice = native_ref.convert(np.array(some, dtype), np.complex128, rounding=rounding)
        np.testing.assert_array_equal(twice, got)


def _to_53_bits(v: int, rounding: str) -> int:
    unit = 1 << max(0, abs(v).bit_length() - 53)
    low = v // unit  # toward -inf
    if low * unit == v:
        return v
    twice = 2 * (v - low * unit)
    up = {
        "even": twice > unit or (twice == unit and low % 2 == 1),
        "zero": v < 0,
        "up": True,
        "down": False,
        "away": twice > unit or (twice == unit and v > 0),
        "odd": low % 2 == 0,
    }[rounding]
    return (low + up) * unit
