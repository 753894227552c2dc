"""Writing by index against the definition: one update after the other, in Python numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
INTS = [np.int8, np.uint8, np.int16, np.uint32, np.int32, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4]
COMPLEX = [np.complex64, np.complex128]
ALL = [*FLOATS, *INTS, *COMPLEX, np.bool_]

STEPS: dict[str, Any] = {
    "none": lambda c, v: v,
    "add": lambda c, v: c + v,
    "sub": lambda c, v: c - v,
    "mul": lambda c, v: c * v,
    "div": lambda c, v: np.divide(c, v),
    "max": lambda c, v: c if c != c or c > v else v,
    "min": lambda c, v: c if c != c or c < v else v,
}


def name_of(d: Any) -> str:
    return np.dtype(d).name


def hows(dtype: type) -> tuple[str, ...]:
    kind = np.dtype(dtype).kind
    if dtype is np.bool_:
        return ("none", "add", "mul", "max", "min")
    if kind == "c":
        return ("none", "add", "mul", "sub")
    return ("none", "add", "mul", "max", "min", "sub", *(("div",) if dtype in FLOATS else ()))


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    if dtype in (np.int64, np.uint64, np.int32, np.uint32):  # the whole range: sums wrap, signs matter
        width = np.dtype(dtype).itemsize
        return rng.integers(0, 256, (*shape, width), np.uint8).view(dtype).reshape(shape)
    x = rng.integers(-7, 8, shape)
    if np.dtype(dtype).kind == "c":
        return (x + 1j * rng.integers(-7, 8, shape)).astype(dtype)
    return x.astype(np.float64).astype(dtype)


def number(v: Any, dtype: type) -> Any:
    """As a Python number, or an f64 where division by zero has a meaning."""
    if dtype is np.bool_:
        return bool(v)
    if dtype in INTS:
        return int(v)
    return np.complex128(v) if np.dtype(dtype).kind == "c" else np.float64(v)


def wrapped(v: Any, dtype: type) -> Any:
    if dtype is np.bool_:
        return bool(v)
    if dtype not in INTS:
        return v
    info = ml_dtypes.iinfo(dtype)
    span = int(info.max) - int(info.min) + 1
    return (int(v) - int(info.min)) % span + int(info.min)


def check(x: np.ndarray, got: np.ndarray, writes: Iterator[tuple[tuple[int, ...], Any]], how: str) -> None:
    dtype = x.dtype.type
    want = {p: number(x[p], dtype) for p in np.ndindex(x.shape)}
    step = STEPS[how]
    if dtype is np.bool_:
        step = {"add": lambda c, v: c or v, "mul": lambda c, v: c and v}.get(how, step)
    with np.errstate(all="ignore"):
        for p, v in writes:
            want[p] = wrapped(step(want[p], number(v, dtype)), dtype)
    combined = {"f": np.float64, "c": np.complex128}
    kind = "f" if dtype in FLOATS else np.dtype(dtype).kind
    assert got.dtype == (x.dtype if how == "none" or kind not in combined else combined[kind])
    assert got.shape == x.shape
    for p, w in want.items():
        g = number(got[p], got.dtype.type if dtype not in INTS else dtype)
        assert g == w or (g != g and w != w), (p, g, w)


CASES = [((5,), 0), ((4, 3), 0), ((4, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((3, 0), 0), ((2, 1, 3), 1)]


def views(x: np.ndarray) -> Iterator[np.ndarray]:
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(x, 2, 0)[::2]


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_slices(dtype: type) -> None:
    rng = np.random.default_rng(1)
    for (shape, axis), how in itertools.product(CASES, hows(dtype)):
        a, n = axis % len(shape), shape[axis]
        for index_shape in ((), (3,), (2, 2), (0,)):
            many = int(np.prod(index_shape, dtype=int))
            if how == "none" and many > n:
                continue
            flat = rng.permutation(n)[:many] if how == "none" else rng.integers(0, n, many)
            index = (flat - n * rng.integers(0, 2, many)).reshape(index_shape).astype(rng.choice([np.int32, np.int64]))
            x, updates = draw(rng, shape, dtype), draw(rng, (*shape[:a], *index_shape, *shape[a + 1 :]), dtype)

            def writes(
                updates: np.ndarray = updates, index: np.ndarray = index, a: int = a, n: int = n
            ) -> Iterator[tuple[tuple[int, ...], Any]]:
                r = index.ndim
                for p in np.ndindex(updates.shape):
                    yield (*p[:a], int(index[p[a : a + r]]) % n, *p[a + r :]), updates[p]

            for v, u in zip(views(x), views(updates) if updates.ndim else itertools.repeat(updates)):
                check(x, native_ref.scatter(v, index, u, axis, how), writes(), how)


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_elements(dtype: type) -> None:
    rng = np.random.default_rng(2)
    for (shape, axis), how in itertools.product(CASES, hows(dtype)):
        a, n = axis % len(shape), shape[axis]
        for extent in (n, 2 * n + 1, 0):
            e = tuple(extent if k == a else max(0, m - (extent == 0)) for k, m in enumerate(shape))
            if how == "none" and extent > n:
                continue
            grid = np.moveaxis(np.argsort(rng.random((*e[:a], *e[a + 1 :], n)), axis=-1)[..., :extent], -1, a)
            index = grid if how == "none" else rng.integers(-n, n, e)
            x, updates = draw(rng, shape, dtype), draw(rng, e, dtype)

            def writes(
                updates: np.ndarray = updates, index: np.ndarray = index, a: int = a, n: int = n
            ) -> Iterator[tuple[tuple[int, ...], Any]]:
                for p in np.ndindex(updates.shape):
                    yield (*p[:a], int(index[p]) % n, *p[a + 1 :]), updates[p]

            for v, u in zip(views(x), views(updates)):
                check(x, native_ref.scatter_elements(v, index, u, axis, how), writes(), how)


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_tuples(dtype: type) -> None:
    rng = np.random.default_rng(3)
    shapes = [((5,), 1), ((4, 3), 1), ((4, 3), 2), ((2, 3, 4), 2), ((2, 3), 0), ((3, 0), 1)]
    for (shape, k), rows, how in itertools.product(shapes, ((), (4,), (2, 3), (0,)), hows(dtype)):
        many, places = int(np.prod(rows, dtype=int)), int(np.prod(shape[:k], dtype=int))
        if how == "none" and many > places:
            continue
        flat = rng.permutation(places)[:many] if how == "none" else rng.integers(0, places, many)
        index = np.stack(np.unravel_index(flat, shape[:k]), -1) if k else np.zeros((many, 0), np.int64)
        index = index.reshape((*rows, k))
        x, updates = draw(rng, shape, dtype), draw(rng, (*rows, *shape[k:]), dtype)

        def writes(
            updates: np.ndarray = updates, index: np.ndarray = index, r: int = len(rows)
        ) -> Iterator[tuple[tuple[int, ...], Any]]:
            for p in np.ndindex(updates.shape):
                yield (*(int(i) for i in index[p[:r]]), *p[r:]), updates[p]

        check(x, native_ref.scatter_nd(x, index, updates, how), writes(), how)


def test_many_blocks_and_special_values() -> None:
    rng = np.random.default_rng(4)
    x = np.zeros((3, 700), np.float32)
    updates = rng.standard_normal((40, 700)).astype(np.float32)
    updates[::3, ::5] = np.nan
    updates[::4, ::7] = -np.inf
    index = rng.integers(0, 3, 40)
    for how in ("max", "min", "add"):
        want = x.astype(np.float64)
        ufunc = {"max": np.maximum, "min": np.minimum, "add": np.add}[how]
        with np.errstate(all="ignore"):
            ufunc.at(want, index, updates.astype(np.float64))
        np.testing.assert_array_equal(native_ref.scatter(x, index, updates, 0, how), want)
    zeros = native_ref.scatter(np.array([-0.0, 0.0]), np.array([0, 1]), np.array([0.0, -0.0]), 0, "max")
    assert np.signbit(zeros).tolist() == [False, False]
    kept = native_ref.scatter(np.zeros(2, np.float32), np.array([1]), np.array([-0.0], np.float32), 0)
    assert np.signbit(kept).tolist() == [False, True]


def test_what_is_refused() -> None:
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(IndexError, match="index 3 for extent 3"):
        native_ref.scatter(x, np.array([0, 3]), np.zeros((2, 4), np.float32), 0)
    with pytest.raises(IndexError, match="index -1 for extent 4"):
        native_ref.scatter_elements(x, np.array([[-1]]), np.zeros((1, 1), np.float32), 1, signed=False)
    with pytest.raises(IndexError, match="index -5 for extent 4"):
        native_ref.scatter_nd(x, np.array([[0, -5]]), np.zeros(1, np.float32))
    with pytest.raises(KeyError, match="two updates of one place"):
        native_ref.scatter(x, np.array([1, -2]), np.zeros((2, 4), np.float32), 0)
    with pytest.raises(KeyError, match="two updates of one place"):
        native_ref.scatter_nd(x, np.array([[1, 1], [1, 1]]), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match=r"indices \[2\], updates \[2, 3\] into \[3, 4\]"):
        native_ref.scatter(x, np.array([0, 1]), np.zeros((2, 3), np.float32), 0)
    with pytest.raises(ValueError, match="f64 updates of f32"):
        native_ref.scatter(x, np.array([0]), np.zeros((1, 4)), 0)
    with pytest.raises(ValueError, match="no division of integers"):
        native_ref.scatter(np.zeros(2, int), np.array([0]), np.ones(1, int), 0, "div")
    with pytest.raises(ValueError, match="no order"):
        native_ref.scatter(np.zeros(2, complex), np.array([0]), np.ones(1, complex), 0, "max")


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_unique_is_a_dictionary(dtype: type) -> None:
    rng = np.random.default_rng(5)
    for shape, axis in (
        ((30,), None),
        ((5, 4), None),
        ((9, 2), 0),
        ((2, 12), 1),
        ((4, 3, 3), -2),
        ((0,), None),
        ((0, 3), 1),
        ((3, 0), 0),
        ((), None),
        ((600,), None),
    ):
        x = rng.integers(-1, 2, shape).astype(np.float64).astype(dtype) if rng.integers(2) else draw(rng, shape, dtype)
        if dtype in (np.float32, np.float16) and x.size:
            x.reshape(-1)[:1] = -0.0
        a = 0 if axis is None else axis % len(shape)
        lines = np.moveaxis(x.reshape(-1) if axis is None else x, a, 0)

        def key(v: Any) -> Any:
            n = number(v, dtype)
            return (n.real, n.imag) if np.dtype(dtype).kind == "c" else n

        rows = [tuple(key(v) for v in line.reshape(-1)) for line in lines]
        seen: dict[Any, int] = {}
        for i, r in enumerate(rows):
            seen.setdefault(r, i)
        for rising in (True, False):
            names = sorted(seen) if rising else list(seen)
            for v in (x, np.asfortranarray(x)):
                first, inverse, counts = native_ref.unique(v, axis, rising)
                assert first.tolist() == [seen[r] for r in names]
                assert inverse.tolist() == [names.index(r) for r in rows]
                assert counts.tolist() == [rows.count(r) for r in names]


def test_unique_takes_nan_as_one() -> None:
    x = np.array([np.nan, 1, -np.nan, np.inf, np.nan], np.float32)
    first, inverse, counts = native_ref.unique(x)
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3, 0], [2, 0, 2, 1, 2], [1, 1, 3])
