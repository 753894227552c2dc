"""Reading by index and ranking against NumPy's spelling and Python's sort."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref

TYPES = [
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
    np.int8,
    np.uint16,
    np.int64,
    np.uint64,
    np.bool_,
    ml_dtypes.int4,
    np.complex64,
    np.complex128,
]


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return rng.integers(-7, 8, shape).astype(np.float64).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_gather_is_take_in_every_batch(dtype: type) -> None:
    rng = np.random.default_rng(1)
    for x_shape, axis, batch, i_shape in (
        ((5,), 0, 0, ()),
        ((4, 3), 1, 0, (2, 2)),
        ((4, 3), -2, 0, (7,)),
        ((2, 3, 4, 5), 2, 1, (2, 6)),
        ((2, 3, 4, 5), 3, 2, (2, 3, 2, 2)),
        ((2, 0, 4), 2, 1, (2, 3)),
        ((3, 4), 1, 0, (0, 2)),
        ((2, 4), 1, 1, (2,)),
    ):
        x = draw(rng, x_shape, dtype)
        a = axis % len(x_shape)
        index = rng.integers(-x_shape[a], x_shape[a], i_shape).astype(rng.choice([np.int32, np.int64, np.int8]))
        got = native_ref.gather(x, index, axis, batch)
        lead = np.ndindex(*x_shape[:batch])
        want = np.empty((*x_shape[:a], *i_shape[batch:], *x_shape[a + 1 :]), x.dtype)
        for at in lead:
            want[at] = np.take(x[at], index[at].astype(np.int64), axis=a - batch)
        assert got.dtype == x.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.astype(np.complex128), want.astype(np.complex128))
        turned = native_ref.gather(x.T.copy().T, index, axis, batch)
        np.testing.assert_array_equal(turned.astype(np.complex128), want.astype(np.complex128))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_gather_elements_is_take_along_axis(dtype: type) -> None:
    rng = np.random.default_rng(2)
    for shape, axis, i_shape in (
        ((5,), 0, (9,)),
        ((4, 3), 0, (7, 2)),
        ((4, 3), 1, (4, 8)),
        ((2, 3, 4), 1, (1, 5, 3)),
        ((2, 3), 1, (2, 0)),
        ((2, 3, 4), 0, (5, 3, 4)),
        ((3, 4), -1, (2, 4)),
    ):
        x = draw(rng, shape, dtype)
        a = axis % len(shape)
        index = rng.integers(-shape[a], shape[a], i_shape)
        cut = tuple(slice(None) if k == a else slice(n) for k, n in enumerate(i_shape))
        want = np.take_along_axis(x[cut], index, a)
        for v in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
            got = native_ref.gather_elements(v, index, axis)
            assert got.shape == i_shape
            np.testing.assert_array_equal(got.astype(np.complex128), want.astype(np.complex128))


def test_gather_nd_is_fancy_indexing() -> None:
    rng = np.random.default_rng(3)
    for shape, batch, rows, k in (
        ((5,), 0, (), 1),
        ((4, 3), 0, (6,), 2),
        ((4, 3), 0, (2, 2), 1),
        ((2, 3, 4), 1, (2, 5), 1),
        ((2, 3, 4), 1, (2,), 2),
        ((2, 3, 4, 2), 2, (2, 3, 4), 1),
        ((3, 4), 0, (0,), 1),
    ):
        x = rng.standard_normal(shape).astype(np.float32)
        index = np.stack([rng.integers(-n, n, rows) for n in shape[batch : batch + k]], -1)
        want = np.empty((*rows, *shape[batch + k :]), x.dtype)
        for r in np.ndindex(*rows):
            of_x: tuple[Any, ...] = (*r[:batch], *index[r])
            want[r] = x[of_x]
        np.testing.assert_array_equal(native_ref.gather_nd(x, index, batch), want)


def test_an_index_outside_is_named() -> None:
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(IndexError, match="index 3 for extent 3"):
        native_ref.gather(x, np.array([0, 3, 9]), 0)
    with pytest.raises(IndexError, match="index -1 for extent 4"):
        native_ref.gather_elements(x, np.array([[0, -1]]), 1, signed=False)
    with pytest.raises(IndexError, match="index -5 for extent 4"):
        native_ref.gather_nd(x, np.array([[0, 0], [2, -5]]))
    with pytest.raises(IndexError, match="index 18446744073709551615 for extent 3"):
        native_ref.gather(x, np.array([2**64 - 1], np.uint64), 0)
    with pytest.raises(ValueError, match=r"indices \[4, 4\] into \[3, 4\]"):
        native_ref.gather_elements(x, np.zeros((4, 4), int), 1)
    with pytest.raises(ValueError, match="tuples of 3"):
        native_ref.gather_nd(x, np.zeros((1, 3), int))


@pytest.mark.parametrize("dtype", [d for d in TYPES if np.dtype(d).kind != "c"], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("descending", [False, True])
def test_rank_is_a_stable_sort(dtype: type, descending: bool) -> None:
    rng = np.random.default_rng(4)
    for shape, axis in (((9,), 0), ((3, 40), 1), ((17, 3), 0), ((2, 5, 3), 1), ((2, 0), 1), ((1,), 0)):
        x = draw(rng, shape, dtype)
        if np.dtype(dtype).kind == "f":
            x.reshape(-1)[::4] = rng.choice([math.nan, math.inf, -math.inf, -0.0, 0.0], x.reshape(-1)[::4].shape)
        if dtype is np.uint64:
            x.reshape(-1)[::3] += np.uint64(2**63)
        lines = np.moveaxis(x, axis, -1)
        value = lines if np.dtype(dtype).kind in "iu" else lines.astype(np.float64)

        def key(v: np.generic) -> tuple[bool, object]:
            number = v.item()
            return (number != number, 0 if number != number else number)

        want = np.empty(lines.shape, np.int64)
        for row in np.ndindex(lines.shape[:-1]):  # Python's sort keeps equals in rising order when it falls, too
            want[row] = sorted(range(lines.shape[-1]), key=lambda i: key(value[row][i]), reverse=descending)
        for k in {x.shape[axis], min(2, x.shape[axis]), 0}:
            got = native_ref.rank(x, axis, descending, k)
            np.testing.assert_array_equal(np.moveaxis(got, axis, -1), want[..., :k])
