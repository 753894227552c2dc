"""The compare kernel against its definition, one element at a time in Python, and the holes that comparators have
had."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref
from harness.core import dtypes as D
from harness.tolerance import ulp as ulp_of
from native_ref import compare

FLOATS = [D.F64, D.F32, D.F16, D.BF16, D.F8E4M3FN, D.F8E4M3FNUZ, D.F8E5M2, D.F4E2M1, D.F6E2M3, D.F6E3M2]
INF = math.inf


def overflow(d: D.DType) -> float:
    if d is D.F64:
        return D.float_max(d)
    top = D.float_max(d)
    return top + float(ulp_of(top, d)) / 2


def passes(a: float, w: float, bound: float, ulps: float, d: D.DType, signed_zero: bool, flush: bool) -> bool:
    """The rules of kernels/compare/compare.h, plainly."""
    t = bound + (ulps * float(ulp_of(w, d)) if ulps else 0.0)
    if w != w:
        return a != a
    if t == INF and a == a:
        return True
    if a != a:
        return d.name in NO_INF and math.isfinite(w) and abs(w) + t >= overflow(d)
    if math.isinf(a) or math.isinf(w):
        if math.isinf(a) and math.copysign(1, a) == math.copysign(1, w):
            return math.isinf(w) or abs(w) + t >= overflow(d)
        return False
    if a == 0 and w == 0:
        return not signed_zero or math.copysign(1, a) == math.copysign(1, w)
    if abs(a - w) <= t:
        return True
    return flush and a == 0 and abs(w) < D.smallest_normal(d)


NO_INF = {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f4e2m1", "f6e2m3", "f6e3m2"}


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("ulps", "bound", "signed_zero", "flush"),
    [
        (0, 0.0, False, False),
        (1, 0.0, True, False),
        (0.5, 1e-3, False, True),
        (2, None, False, False),
    ],
)
def test_definition(d: D.DType, ulps: float, bound: float | None, signed_zero: bool, flush: bool) -> None:
    n = 1500  # several blocks, the last one short
    w = native_ref.fill("special", 1, (n,), D.F64)
    w = np.where(np.abs(w) < 1e9, native_ref.convert(native_ref.fill("special", 1, (n,), d), D.F64), w)
    a = native_ref.convert(w, d).copy()
    other = native_ref.fill("special", 2, (n,), d)
    pick = native_ref.fill("ints:0:9", 3, (n,), D.I64)
    a[pick == 0] = other[pick == 0]
    raw = a.view(f"u{d.np.itemsize}")
    if d is not D.F4E2M1:
        raw[pick == 1] ^= 1  # one ulp off
    limit = np.abs(native_ref.fill("special", 4, (n,), D.F64)) * 1e-3 if bound is None else bound
    if bound is None:
        limit = np.where(np.isnan(limit), 0.0, limit)
    got = compare(a, w, limit, ulps=ulps, signed_zero=signed_zero, flush=flush, detail=True)
    quick = compare(a, w, limit, ulps=ulps, signed_zero=signed_zero, flush=flush)
    each = np.broadcast_to(limit, (n,))
    wide = a.astype(np.float64)
    want = np.array(
        [not passes(float(x), float(y), float(b), ulps, d, signed_zero, flush) for x, y, b in zip(wide, w, each)]
    )
    np.testing.assert_array_equal(got.mask, want)
    assert 0 < want.sum() < n
    for r in (got, quick):
        assert (r.size, r.bad, r.first) == (n, int(want.sum()), int(np.flatnonzero(want)[0]))
        assert r.nan_bad == got.nan_bad
        assert r.inf_bad == got.inf_bad
        assert r.zero_sign == got.zero_sign
        assert r.max_abs == got.max_abs
        assert r.max_ratio == got.max_ratio
        assert r.zeros == int((w == 0).sum())
    fine = np.isfinite(wide) & np.isfinite(w)
    with np.errstate(all="ignore"):
        assert got.max_abs == np.abs(wide[fine] - w[fine]).max()
        ulp = np.abs(wide[fine] - w[fine]) / ulp_of(w[fine], d)
        assert got.max_ulp == pytest.approx(ulp.max())
        assert quick.max_ulp == pytest.approx(ulp.max())
    assert want[got.worst] if got.max_ratio > 1 else True


def one(a: object, w: object, dtype: Any = np.float32, **kw: Any) -> int:
    return compare(np.array([a]).astype(dtype), np.array([w]).astype(dtype), **kw).bad


def test_classes() -> None:
    for dtype in (np.float16, np.float32, ml_dtypes.bfloat16, np.float64):
        assert one(1.0, np.nan, dtype, ulps=1e9) == 1
        assert one(np.nan, 1.0, dtype, bound=1e9) == 1
        assert one(np.nan, np.nan, dtype) == 0
        assert one(np.inf, 1.0, dtype, ulps=4) == 1
        assert one(1.0, np.inf, dtype, ulps=4) == 1
        assert one(-np.inf, np.inf, dtype, ulps=4) == 1
        assert one(np.inf, np.inf, dtype) == 0
    top = np.finfo(np.float32).max
    assert one(np.inf, top) == 1
    assert one(top, np.inf) == 1
    assert one(np.inf, top, ulps=1) == 0  # one ulp above the largest value overflows
    assert one(0.0, -0.0) == 0
    assert one(0.0, -0.0, signed_zero=True) == 1
    assert one(0.0, 1e-45) == 1
    assert one(0.0, 1e-45, flush=True) == 0
    assert one(1e-45, 0.0, flush=True) == 1


def test_integers_are_integers() -> None:
    assert one(2**53 + 1, 2**53, np.int64) == 1
    assert one(2**64 - 1, 2**64 - 2, np.uint64) == 1
    assert one(100050, 100000, np.int32) == 1
    assert one(0, 1, np.uint8) == 1
    assert one(0, 5, np.uint32, bound=4) == 1
    assert one(1, 5, np.uint32, bound=4) == 0
    lo, hi = -(2**63), 2**63 - 1
    r = compare(np.array([lo]), np.array([hi]), 1e18)
    assert r.bad == 1
    assert r.max_abs == 2.0**64
    assert one(True, False, np.bool_) == 1
    assert one(-1, 7, ml_dtypes.int4) == 1


@pytest.mark.parametrize("d", [D.F32, D.F16, D.BF16, D.F64], ids=str)
def test_at_the_bound_and_beyond(d: D.DType) -> None:
    w = np.array([1.0])
    step = float(ulp_of(1.0, d))
    a = native_ref.convert(np.array([1.0 + step]), d)
    assert compare(a, w, ulps=1).bad == 0
    assert compare(a, w, ulps=0.999).bad == 1
    assert compare(a, w, step).bad == 0
    assert compare(a, w, float(np.nextafter(step, 0))).bad == 1
    assert compare(a, w, np.array([step])).bad == 0
    r = compare(a, w, step / 2)
    assert (r.max_ratio, r.max_ulp, r.worst, r.first) == (2.0, 1.0, 0, 0)


def test_one_wrong_in_a_million() -> None:
    w = native_ref.fill("unit", 1, (1_000_000,), np.float32)
    a = w.copy()
    a[777_777] = np.nextafter(a[777_777], np.float32(9))
    r = compare(a, w.astype(np.float64), ulps=0.5)
    assert (r.bad, r.first, r.worst) == (1, 777_777, 777_777)
    assert compare(w, w).bad == 0


def test_strides_scalars_empties_and_errors() -> None:
    x = native_ref.fill("small", 1, (7, 9), np.float32)
    assert compare(x.T, np.ascontiguousarray(x.T)).bad == 0
    assert compare(x[::2, ::-1], x[::2, ::-1].astype(np.float64)).bad == 0
    assert compare(np.float32(3), np.array(3.0)).bad == 0
    assert compare(np.zeros((0, 3), np.float32), np.zeros((0, 3))).size == 0
    assert compare(x, x + 1, np.ones((1, 9))).bad == 0
    assert compare(x, x + 1, np.full((7, 1), 0.5)).bad == 63
    with pytest.raises(ValueError, match=r"shapes \[7, 9\] and \[9, 7\] differ"):
        compare(x, x.T)
    with pytest.raises(ValueError, match="cannot judge f32 by i64"):
        compare(x, x.astype(np.int64))
    with pytest.raises(ValueError, match="bound must be f64"):
        compare(x, x, x)
    with pytest.raises(ValueError, match="bound"):
        compare(x, x, np.ones(8))


def test_uninformative_counts_wide_tolerances() -> None:
    w = np.array([1.0, 100.0, 0.0, np.inf])
    assert compare(w.astype(np.float32), w, 1.0).uninformative == 2
    assert compare(w.astype(np.float32), w, 1.0, detail=True).uninformative == 2


@pytest.mark.parametrize("d", [D.F64, D.F32, D.F16, D.BF16, D.F8E4M3FN, D.F8E5M2], ids=str)
def test_ulp_diff_counts_values(d: D.DType) -> None:
    x = np.sort(native_ref.fill("full", 1, (300,), d).astype(np.float64))
    x = native_ref.convert(x[np.isfinite(x)], d)
    raw = x.view(f"u{d.np.itemsize}").astype(object)
    top = 1 << (d.bits - 1)
    key = [-(int(r) & (top - 1)) if int(r) & top else int(r) for r in raw]
    got = native_ref.ulp_diff(x[:-1], x[1:])
    assert got.tolist() == [float(b - a) for a, b in pairwise(key)]


def test_ulp_diff_special() -> None:
    a = np.array([0.0, np.nan, np.nan, np.inf], np.float32)
    b = np.array([-0.0, np.nan, 1.0, np.finfo(np.float32).max], np.float32)
    assert native_ref.ulp_diff(a, b).tolist() == [0.0, 0.0, INF, 1.0]
    assert native_ref.ulp_diff(np.array([-(2**63)]), np.array([2**63 - 1])).tolist() == [2.0**64]


def looked_at(
    actual: np.ndarray, value: np.ndarray, wide: np.ndarray | None, how: int, ulps: float, signed: bool
) -> int:
    """What one look may say, from whole comparisons."""
    if wide is None or how == 1:
        ok = not native_ref.compare(actual, value, ulps=ulps if how == 2 else 0.0, signed_zero=signed).bad
        return int(ok)
    c = native_ref.compare(actual, wide, ulps=ulps, signed_zero=signed)
    if c.bad:
        return 0
    if how == 2:
        return 2 if c.size >= native_ref.SMALL and c.uninformative > native_ref.MOST * c.size else 1
    one = value.dtype.kind == "f" and (value.ravel()[0] == value).all()
    few = np.count_nonzero(np.isfinite(wide)) < (1 - native_ref.DULL) * c.size
    return 2 if c.size >= native_ref.SMALL and (c.zeros > native_ref.DULL * c.size or one or few) else 1


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2],
    ids=lambda d: np.dtype(d).name,
)
def test_a_brief_look_agrees_with_whole_comparisons(dtype: type) -> None:
    rng = np.random.default_rng(3)
    said = set()
    for n in (1, 31, 32, 600):
        for data in ("plain", "zeros", "one", "special", "subnormal"):
            wide = rng.standard_normal(n) * {"subnormal": 1e-40}.get(data, 1.0)
            if data == "zeros":
                wide[: n - n // 20] = 0.0
            elif data == "one":
                wide[:] = 1.5
            elif data == "special":
                wide[: n - n // 16] = rng.choice([np.nan, np.inf, -np.inf], n - n // 16)
            with np.errstate(all="ignore"):
                value: np.ndarray = wide.astype(dtype)
                other: np.ndarray = (wide * (1 + 2.0**-7)).astype(dtype)
            some: np.ndarray = np.where(rng.random(n) < 0.1, other, value).astype(dtype)
            for actual in (value.copy(), -value, other, some):
                for how in (1, 2, 3):
                    for ulps, signed, w in (
                        (0.0, False, wide),
                        (1.0, True, wide),
                        (3.0, False, None),
                        (0.5, False, wide),
                    ):
                        got = native_ref.brief(actual, value, w, how, ulps, signed, False)
                        assert got == looked_at(actual, value, w, how, ulps, signed), (n, data, how, ulps, signed)
                        said.add(got)
    assert said == {0, 1, 2}


def test_a_brief_look_leaves_open_what_it_does_not_know() -> None:
    x = np.ones(3, np.float32)
    for actual, value in (
        (None, x),
        (x, None),
        ([1, 1, 1], x),
        (x, x.astype(np.float64)),
        (x, x.reshape(1, 3)),
        (x.astype(complex), x.astype(complex)),
        (np.array(["a"], object), np.array(["a"], object)),
        (x.astype(ml_dtypes.float8_e8m0fnu), x.astype(ml_dtypes.float8_e8m0fnu)),
    ):
        assert native_ref.brief(actual, value, None, 1, 0.0, False, False) == 0
    assert native_ref.brief(np.zeros((0, 2)), np.zeros((0, 2)), None, 1, 0.0, False, False) == 1
    i = np.arange(5)
    assert native_ref.brief(i, i, None, 3, 0.5, False, False) == 1
    assert native_ref.brief(i, i + 1, None, 2, 9.0, False, False) == 0
    tiny = np.array([1e-40, 0.0], np.float32)
    flushed = np.zeros(2, np.float32)
    assert native_ref.brief(flushed, tiny, tiny.astype(np.float64), 2, 1.0, False, True) == 0
    assert native_ref.brief(tiny, tiny, tiny.astype(np.float64), 2, 1.0, False, True) == 1
