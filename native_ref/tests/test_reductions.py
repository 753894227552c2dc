"""Reductions, arg-max and running sums against exact loops, over every set of axes and every memory order."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref as native
from native_ref.tests import plain

SETS = [s for r in range(4) for s in itertools.combinations(range(3), r)]
EXACT = ("sum", "mean", "prod", "max", "min", "sum_square", "l1")


def data(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    if d.kind in "iu":
        return rng.integers(0 if d.kind == "u" else -9, 9, shape).astype(d)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-8, 8, shape)).astype(d)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64],
    ids=lambda d: np.dtype(d).name,
)
def test_exact_names(name: str, dtype: Any) -> None:
    x = data((3, 2, 5), dtype)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        y = x.transpose(order)
        want_from = plain.exact(y)
        for axes in SETS:
            keep = len(axes) % 2 == 0
            got, want = native.reduce(name, y, axes, keep), plain.reduce(name, want_from, axes, keep)
            assert got.shape == want.shape
            if got.dtype.kind in "iu":
                assert got.astype(object).tolist() == want.tolist()
            else:
                ulp = 1 if name in ("prod", "mean", "sum_square") else 0
                np.testing.assert_array_max_ulp(got, plain.as_float(want), max(ulp, 1))
                if not ulp:
                    np.testing.assert_array_equal(got, plain.as_float(want))


def test_integer_mean() -> None:
    x = data((3, 4), np.int32)
    np.testing.assert_array_equal(native.reduce("mean", x, (1,)), x.mean(1))


@pytest.mark.parametrize("n", [1, 15, 16, 17, 31, 511, 512, 513, 1025, 5000])
def test_long_runs(n: int) -> None:
    """Through blocks and lanes, along the run and across it."""
    for dtype in (np.float32, np.float64):
        x = data((n, 3), dtype, n)
        exact = plain.exact(x)
        for name in ("sum", "l1", "max"):
            want = plain.as_float(plain.reduce(name, exact, (0,), False))
            np.testing.assert_array_equal(native.reduce(name, x, (0,)), want)
            np.testing.assert_array_equal(native.reduce(name, np.asfortranarray(x), (0,)), want)
        whole = plain.as_float(plain.reduce("sum", exact, (0, 1), False))
        np.testing.assert_array_equal(native.reduce("sum", x), whole)


def test_cancellation() -> None:
    """A sum of a million of the value left over: plain summation has no digit right."""
    x = np.array([1e16, 1.0, -1e16, 2.0**-30] * 50)
    assert native.reduce("sum", x) == float(sum(plain.exact(x).tolist()))
    assert native.reduce("mean", x) == float(sum(plain.exact(x).tolist()) / 200)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("l2", lambda v: np.sqrt((v * v).sum(1))),
        ("log_sum", lambda v: np.log(v.sum(1))),
        ("log_sum_exp", lambda v: np.log(np.exp(v).sum(1))),
    ],
)
def test_composed_names(name: str, formula: object) -> None:
    x = abs(data((7, 40), np.float32)) / 50
    np.testing.assert_allclose(native.reduce(name, x, (1,)), formula(x.astype(np.longdouble)).astype(float), rtol=4e-16)
    np.testing.assert_allclose(
        native.reduce(name, x.T, (0,)), formula(x.astype(np.longdouble)).astype(float), rtol=4e-16
    )


def test_log_sum_exp_does_not_overflow() -> None:
    assert native.reduce("log_sum_exp", np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2), rel=1e-15)
    assert native.reduce("log_sum_exp", np.array([-np.inf, -np.inf])) == -np.inf
    assert native.reduce("log_sum_exp", np.array([-np.inf, np.inf, 0])) == np.inf
    assert np.isnan(native.reduce("log_sum_exp", np.array([1.0, np.nan, np.inf])))


def test_product_does_not_overflow_on_its_way() -> None:
    x = np.array([1e200, 1e200, 1e-200, 1e-200, 3.0])
    np.testing.assert_allclose(native.reduce("prod", x), 3.0, rtol=1e-15)
    assert native.reduce("prod", np.array([1e-200] * 5)) == 0
    assert native.reduce("prod", np.array([1e200, -1e200])) == -np.inf
    assert native.reduce("prod", np.array([-0.0, 5.0])) == 0
    assert np.signbit(native.reduce("prod", np.array([-0.0, 5.0])))


@pytest.mark.parametrize(
    ("shape", "axes"), [((0,), (0,)), ((2, 0), (1,)), ((2, 0), (0,)), ((0, 3), (0, 1)), ((0, 3), ())]
)
def test_over_no_element(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    for name, value in {
        "sum": 0,
        "prod": 1,
        "mean": np.nan,
        "max": -np.inf,
        "min": np.inf,
        "sum_square": 0,
        "l1": 0,
        "l2": 0,
        "log_sum": -np.inf,
        "log_sum_exp": -np.inf,
    }.items():
        got = native.reduce(name, x, axes, False)
        want = np.sum(x, axes or ()).shape if axes else shape
        assert got.shape == want
        np.testing.assert_array_equal(got, np.full(want, value))
    assert not native.reduce("any", np.zeros((2, 0), bool), (1,)).any()
    assert native.reduce("all", np.zeros((2, 0), bool), (1,)).all()


def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    for row, total, top, low in [
        ((1, nan, 2), nan, nan, nan),
        ((inf, 1, -inf), nan, inf, -inf),
        ((inf, 1, 2), inf, inf, 1),
        ((-0.0, -0.0), 0, 0, 0),
        ((1e308, 1e308), inf, 1e308, 1e308),
    ]:
        for x in (np.array([row] * 20), np.array([row] * 20).T.copy().T):
            np.testing.assert_array_equal(native.reduce("sum", x, (1,)), [total] * 20)
            np.testing.assert_array_equal(native.reduce("max", x, (1,)), [top] * 20)
            np.testing.assert_array_equal(native.reduce("min", x, (1,)), [low] * 20)
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0]])
    assert not np.signbit(native.reduce("max", zeros, (1,))).any()
    assert np.signbit(native.reduce("min", zeros, (1,))).all()


def test_integers_wrap_and_bools() -> None:
    x = np.array([2**63 - 1, 1], np.int64)
    assert int(native.reduce("sum", x)) == -(2**63)
    assert int(native.reduce("sum", np.array([200, 100], np.uint8), out=np.dtype(np.uint8))) == 44
    assert int(native.reduce("max", np.array([1, 2**64 - 1], np.uint64))) == 2**64 - 1
    b = np.array([[True, False], [False, False]])
    assert native.reduce("any", b, (1,)).tolist() == [True, False]
    assert native.reduce("all", b, (1,)).tolist() == [False, False]


@pytest.mark.parametrize("axes", [(3,), (-4,)])
def test_axis_out_of_range(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        native.reduce("sum", np.zeros((2, 2, 2)), axes)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", ["max", "min"])
def test_arg_reduce(name: str, last: bool) -> None:
    for dtype in (np.float32, np.int8, np.uint64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        x = np.random.default_rng(1).integers(0, 3, (4, 5, 6)).astype(dtype)
        for axis in (-3, 0, 1, 2):
            moved = np.moveaxis(x, axis, -1)
            best = moved.astype(np.float64).max(-1) if name == "max" else moved.astype(np.float64).min(-1)
            got = native.arg_reduce(name, x, axis, False, last)
            for i in np.ndindex(best.shape):
                at = [k for k, v in enumerate(moved[i].astype(float)) if v == best[i]]
                assert got[i] == at[-1 if last else 0]
            assert (
                native.arg_reduce(name, x, axis, True, last).shape == np.sum(x.astype(float), axis, keepdims=True).shape
            )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_cumulative(name: str, exclusive: bool, reverse: bool) -> None:
    for dtype in (np.float32, np.float64, np.int32, np.uint8):
        x = data((3, 4, 2), dtype)
        for axis in (0, 1, -1):
            got = native.cumulative(name, x, axis, exclusive, reverse)
            line = np.moveaxis(plain.exact(x), axis, -1)
            line = line[..., ::-1] if reverse else line
            want = np.empty(line.shape, object)
            for i in np.ndindex(line.shape[:-1]):
                for k in range(line.shape[-1]):
                    part = list(line[i][: k if exclusive else k + 1])
                    of_want: tuple[Any, ...] = (*i, k)
                    want[of_want] = plain.FOLDS[name](part)
            want = np.moveaxis(want[..., ::-1] if reverse else want, -1, axis)
            if got.dtype.kind in "iu":
                assert got.astype(object).tolist() == want.tolist()
            else:
                np.testing.assert_array_max_ulp(got, plain.as_float(want), 1)


def test_moments() -> None:
    x = data((4, 3, 50), np.float32) + 100
    mean, var = native.moments(x, (0, 2))
    e = plain.exact(x)
    for c in range(3):
        v = e[:, c].ravel().tolist()
        m = sum(v) / len(v)
        assert mean[0, c, 0] == float(m)
        assert var[0, c, 0] == pytest.approx(float(sum((a - m) ** 2 for a in v) / len(v)), rel=1e-13)


def stray(kind: str, shape: tuple[int, int], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Rows of plain numbers with what a quick fold must not take: see the names."""
    x = rng.standard_normal(shape)
    if kind == "spread":  # one element far above the others, which then share no unit with it
        x[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] *= 2.0 ** rng.integers(0, 60, shape[0])
    elif kind == "zeros":
        x *= rng.integers(0, 2, shape)
        x[0] = -0.0
        x[1] = 0.0 * rng.choice([-1.0, 1.0], shape[1])
    elif kind == "cancelling":
        x[:, 1::2] = -x[:, : 2 * (shape[1] // 2) : 2]
        x[:, 0] += 2.0**-20
    elif kind == "special":
        x.reshape(-1)[rng.integers(0, x.size, x.size // 20)] = rng.choice(
            [np.nan, np.inf, -np.inf, -0.0, 0.0], x.size // 20
        )
    return x.astype(dtype)


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, ml_dtypes.float8_e5m2],
    ids=lambda d: np.dtype(d).name,
)
@pytest.mark.parametrize("kind", ["plain", "spread", "zeros", "cancelling", "special"])
def test_many_short_rows(dtype: type, kind: str) -> None:
    """Every row as one long reduction of its own columns would have it: bits, signs of zero, NaN."""
    rng = np.random.default_rng(5)
    for rows, n in ((40, 64), (9, 7), (300, 8), (5, 100), (3, 512), (50, 16), (70, 33), (4, 1)):
        x = stray(kind, (rows, n), np.dtype(dtype), rng)
        if dtype is ml_dtypes.float8_e5m2 and kind == "spread":
            continue
        for view in (x, np.repeat(x, 2, 0)[::2], np.repeat(x, 2, 1)[:, ::2], x[::-1]):
            for name in ("sum", "mean", "l1", "max", "min"):
                got = native.reduce(name, view, (1,))
                wide = view.astype(np.float64)
                if name in ("max", "min"):
                    want = (np.max if name == "max" else np.min)(wide, 1)
                    np.testing.assert_array_equal(got, want)
                    even = np.signbit(wide).all(1) if name == "max" else np.signbit(wide).any(1)
                    zero = want == 0
                    np.testing.assert_array_equal(
                        np.signbit(got[zero]), (even if name == "max" else _low_zero(wide))[zero]
                    )
                    continue
                for r, g in enumerate(got):
                    v = abs(wide[r]) if name == "l1" else wide[r]
                    if not np.isfinite(v).all():
                        with np.errstate(all="ignore"):
                            np.testing.assert_array_equal(g, v.sum())
                        continue
                    exact = sum(plain.exact(v).tolist())
                    assert g == float(exact / n if name == "mean" else exact), (name, r)


def _low_zero(x: np.ndarray) -> np.ndarray:
    """Is the lowest zero of each row a negative one?"""
    return ((x == 0) & np.signbit(x)).any(1)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "planted",
    [(), (np.nan,), (np.inf,), (-np.inf,), (np.inf, -np.inf), (0.0, -0.0), (-0.0, -0.0), (0.0, np.nan)],
    ids=str,
)
def test_extremes_of_long_rows(name: str, planted: tuple[float, ...]) -> None:
    """What needs care in one of the blocks and lanes of a row, the rest of it on the far side of zero."""
    rng = np.random.default_rng(len(planted))
    far = -1 if name == "max" else 1
    for n in (17, 512, 513, 1040, 2048, 5003):
        x = far * (1 + rng.random((8, n)))
        for row in x:
            row[rng.choice(n, len(planted), replace=False)] = planted
        want = (np.max if name == "max" else np.min)(x, 1)
        for view in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x.reshape(8, n, 1)[:, ::-1, 0]):
            got = native.reduce(name, view, (1,))
            np.testing.assert_array_equal(got, want)
            if (want == 0).all():
                sign = any(np.signbit(planted)) if name == "min" else all(np.signbit(planted))
                assert (np.signbit(got) == sign).all()
        np.testing.assert_array_equal(native.reduce(name, x), (np.max if name == "max" else np.min)(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64], ids=lambda d: d.__name__)
def test_squares_of_long_rows(dtype: type) -> None:
    rng = np.random.default_rng(3)
    for n in (5, 100, 513, 3000):
        x: np.ndarray = (rng.standard_normal((4, n)) * 2.0 ** rng.integers(-7, 7, (4, n))).astype(dtype)
        want = [float(sum(v * v for v in row)) for row in plain.exact(x)]
        for view in (x, np.asfortranarray(x)):
            np.testing.assert_array_equal(native.reduce("sum_square", view, (1,), out=np.dtype(float)), want)
            got = native.reduce("l2", view, (1,), out=np.dtype(float))
            np.testing.assert_array_max_ulp(got, np.sqrt(np.array(want)), 1)
    x[1, 7], x[2, 7], x[3, 7] = np.inf, -np.inf, np.nan
    assert native.reduce("sum_square", x, (1,))[1:3].tolist() == [np.inf] * 2
    assert native.reduce("l2", x, (1,))[1:3].tolist() == [np.inf] * 2
    assert np.isnan(native.reduce("l2", x, (1,))[3])


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.bool_], ids=lambda d: np.dtype(d).name
)
def test_many_short_rows_of_integers(dtype: type) -> None:
    rng = np.random.default_rng(6)
    for rows, n in ((40, 64), (9, 7), (300, 8), (3, 512), (4, 1)):
        raw = rng.integers(0, 256, (rows, n * np.dtype(dtype).itemsize), np.uint8)
        x = raw.astype(bool) if dtype is np.bool_ else raw.view(dtype)
        for view in (x, np.repeat(x, 2, 1)[:, ::2], x[::-1]):
            for name in ("max", "min", "sum"):
                got = native.reduce(name, view, (1,))
                fold = {"max": max, "min": min, "sum": sum}[name]
                want = [fold(int(v) for v in row) for row in view]
                wrap = 2**64
                assert [int(g) % wrap for g in got] == [w % wrap for w in want], (name, rows, n)
