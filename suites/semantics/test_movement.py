"""Data movement against plain definitions: loops over positions, no slicing, no NumPy of the same name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import RuleError
from suites.semantics import movement as s

Array = np.ndarray
SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)
FULL = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def numbered(shape: Sequence[int], dtype: Any = np.int64) -> Array:
    """Every element its own flat position."""
    n = int(np.prod(shape))
    values = np.arange(n)
    return (
        np.array([f"s{v}" for v in values], object).reshape(shape)
        if dtype is object
        else values.astype(dtype).reshape(shape)
    )


def built(shape: Sequence[int], fn: Callable[[tuple[int, ...]], Any], like: Array) -> Array:
    """The array whose element at every position is fn(position)."""
    out = np.empty(shape, like.dtype)
    for at in itertools.product(*map(range, shape)):
        out[at] = fn(at)
    return out


def same(a: Array, b: Array) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tolist() == b.tolist()


def counted(n: int, begin: int, end: int, step: int) -> list[int]:
    """Positions of a strided slice, by counting from a clamped start."""
    begin, end = (v + n if v < 0 else v for v in (begin, end))
    lo, hi = (0, n) if step > 0 else (-1, n - 1)
    at, end = min(max(begin, lo), hi), min(max(end, lo), hi)
    out = []
    while (at < end) if step > 0 else (at > end):
        out.append(at)
        at += step
    return out


NUMBERS = st.integers(-6, 6) | st.sampled_from([-(2**31), 2**31 - 1, -(2**63), 2**63 - 1])
STEPS = st.sampled_from([1, 2, 3, -1, -2, -3, 2**31 - 1, -(2**31) + 1])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 5), NUMBERS, NUMBERS, STEPS)
def test_a_strided_slice_counts(n: int, begin: int, end: int, step: int) -> None:
    x = numbered((n, 2))
    want = [[2 * i, 2 * i + 1] for i in counted(n, begin, end, step)]
    assert s.strided_slice(x, begin=(begin, 0), end=(end, 2), stride=(step, 1)).tolist() == want
    assert s.slice_axes(x, starts=(begin,), ends=(end,), axes=(-2,), steps=(step,)).tolist() == want
    assert s.strided_slice_bits(x, begin=(begin,), end=(end,), strides=(step,)).tolist() == want


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5), STEPS, st.booleans(), st.booleans())
def test_masks_run_to_the_ends(n: int, step: int, from_start: bool, to_end: bool) -> None:
    x = numbered((n,))
    begin, end = (n - 1, 0) if step > 0 else (0, n - 1)  # without masks this takes next to nothing
    got = s.strided_slice(x, begin=(begin,), end=(end,), stride=(step,), begin_mask=(from_start,), end_mask=(to_end,))
    first = (0 if step > 0 else n - 1) if from_start else begin
    last = (n if step > 0 else -n - 1) if to_end else end
    assert got.tolist() == counted(n, first, last, step)


def test_squeezed_axes_and_tensorflow_masks() -> None:
    x = numbered((2, 3, 4))
    assert (
        s.strided_slice(x, begin=(-1, 0, 1), end=(0, 3, 3), squeeze_mask=(True, False, False)).tolist()
        == x[1, :, 1:3].tolist()
    )
    same(
        s.strided_slice_bits(x, begin=(0, 0, 1), end=(0, 0, 2), strides=(1, 1, 1), ellipsis_mask=2, shrink_axis_mask=1),
        x[0, :, 1:2],
    )
    same(s.strided_slice_bits(x, begin=(0, 1), end=(0, 2), strides=(1, 1), new_axis_mask=1), x[None, 1:2])
    same(s.strided_slice_bits(x, begin=(1, 1), end=(1, 2), strides=(1, 1), offset=1), x[1:2, 1:3])
    for call in (
        {"begin": (2,), "end": (3,), "strides": (1,), "shrink_axis_mask": 1},
        {"begin": (0,), "end": (1,), "strides": (0,)},
    ):
        with pytest.raises(RuleError):
            s.strided_slice_bits(x, **call)


@settings(max_examples=200, deadline=None)
@given(
    st.data(),
    st.sampled_from(["constant", "reflect", "symmetric", "edge", "wrap"]),
    st.sampled_from([np.int64, object]),
)
def test_pad(data: st.DataObject, mode: str, dtype: Any) -> None:
    shape = data.draw(FULL)
    x = numbered(shape, dtype)
    low = -1 if mode == "constant" else 0
    before, after = ([data.draw(st.integers(low, 7)) for _ in shape] for _ in "ba")
    if any(n + b + a < 0 for n, b, a in zip(shape, before, after)):
        return
    out = s.pad(x, pads=(*before, *after), mode=mode)

    def source(i: int, n: int) -> int | None:
        """Walk outside in, one mirror at a time."""
        while not 0 <= i < n:
            if mode == "constant":
                return None
            if mode == "edge" or (mode == "reflect" and n == 1):
                i = 0 if i < 0 else n - 1
            elif mode == "wrap":
                i += n if i < 0 else -n
            elif mode == "reflect":
                i = -i if i < 0 else 2 * (n - 1) - i
            else:
                i = -i - 1 if i < 0 else 2 * n - 1 - i
        return i

    def value(at: tuple[int, ...]) -> Any:
        where = [source(p - b, n) for p, b, n in zip(at, before, shape)]
        return ("" if dtype is object else 0) if None in where else x[tuple(where)]

    same(out, built([n + b + a for n, b, a in zip(shape, before, after)], value, x))


def test_pad_by_axes_and_value() -> None:
    x = numbered((2, 3))
    same(
        s.pad(x, np.array(7), pads=(1, 2), mode="constant", axes=(-1,)), np.pad(x, ((0, 0), (1, 2)), constant_values=7)
    )
    same(s.pad(x, pads=(0, -1, 0, -2), mode="constant"), x[:, 1:1])
    same(s.pad(numbered((0, 2)), pads=(-1, 0, 1, 0), mode="constant"), numbered((0, 2)))
    same(s.pad(numbered((2,)), np.array(7), pads=(-3, 4), mode="constant"), np.full(3, 7).astype(numbered((2,)).dtype))
    same(s.pad(numbered((2,)), np.array(7), pads=(5, -6), mode="constant"), np.full(1, 7).astype(numbered((2,)).dtype))
    with pytest.raises(RuleError, match="extent-nonnegative"):
        s.pad(x, pads=(0, -4, 0, 0), mode="constant")
    with pytest.raises(RuleError, match="border-has-data"):
        s.pad(numbered((0,)), pads=(1, 0), mode="edge")


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.sampled_from(["dcr", "crd"]))
def test_depth_and_space(block: int, c: int, h: int, w: int, mode: str) -> None:
    x = numbered((2, c * block * block, h, w))

    def value(at: tuple[int, ...]) -> Any:
        n, k, y, z = at
        i, j = y % block, z % block
        channel = (i * block + j) * c + k if mode == "dcr" else k * block * block + i * block + j
        return x[n, channel, y // block, z // block]

    out = s.depth_to_space(x, block=block, mode=mode)
    same(out, built((2, c, h * block, w * block), value, x))
    same(s.space_to_depth(out, block=block, mode=mode), x)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_space_and_batch(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 2))
    block = [data.draw(st.integers(1, 3)) for _ in range(k)]
    pads = [data.draw(st.integers(0, 2)) for _ in range(2 * k)]
    space = [data.draw(st.integers(1, 2)) * b * 3 - pads[2 * i] - pads[2 * i + 1] for i, b in enumerate(block)]
    if min(space) < 1:
        return
    x = numbered((2, *space, 2)) + 1
    out = s.space_to_batch(x, block=tuple(block), pads=tuple(pads))

    def value(at: tuple[int, ...]) -> Any:
        batch, offsets = at[0] % 2, at[0] // 2
        where: list[int] = []
        for i in reversed(range(k)):
            where.insert(0, at[1 + i] * block[i] + offsets % block[i] - pads[2 * i])
            offsets //= block[i]
        inside = all(0 <= p < n for p, n in zip(where, space))
        index: tuple[Any, ...] = (batch, *where, at[-1])
        return x[index] if inside else 0

    shape = (
        2 * int(np.prod(block)),
        *((n + pads[2 * i] + pads[2 * i + 1]) // block[i] for i, n in enumerate(space)),
        2,
    )
    same(out, built(shape, value, x))
    same(s.batch_to_space(out, block=tuple(block), crops=tuple(pads)), x)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([np.int64, np.float32, object, np.bool_]))
def test_transpose_reverse_tile(data: st.DataObject, dtype: Any) -> None:
    shape = data.draw(SHAPES)
    x, rank = numbered(shape, dtype), len(shape)
    perm = data.draw(st.permutations(range(rank)))
    back = [perm.index(i) for i in range(rank)]
    same(s.transpose(x, perm=perm), built([shape[p] for p in perm], lambda at: x[tuple(at[b] for b in back)], x))
    on = [data.draw(st.booleans()) for _ in range(rank)]
    axes = tuple(i - rank if data.draw(st.booleans()) else i for i in range(rank) if on[i])
    mirrored = built(shape, lambda at: x[tuple(n - 1 - i if f else i for i, n, f in zip(at, shape, on))], x)
    same(s.reverse(x, axes=axes), mirrored)
    reps = tuple(data.draw(st.integers(0, 3)) for _ in range(rank))
    same(
        s.tile(x, repeats=reps),
        built([n * r for n, r in zip(shape, reps)], lambda at: x[tuple(i % n for i, n in zip(at, shape))], x),
    )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_joining_undoes_cutting(data: st.DataObject) -> None:
    shape = list(data.draw(FULL))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    x = numbered(shape, object)
    parts = s.split(x, axis=axis, sizes=tuple(sizes))
    assert [p.shape[axis] for p in parts] == sizes
    same(s.concat(parts, axis=axis), x)
    same(s.stack(s.unstack(x, axis=axis), axis=axis), x) if shape[axis] else None
    twice = s.concat_interleaved([x, x], axis=axis)
    a = axis % len(shape)
    doubled = [*shape[:a], 2 * shape[a], *shape[a + 1 :]]
    same(twice, built(doubled, lambda at: x[tuple(i // 2 if k == a else i for k, i in enumerate(at))], x))


def test_split_into_uneven_chunks() -> None:
    assert s.chunk_sizes(7, 3) == [3, 3, 1]
    assert s.chunk_sizes(6, 3) == [2, 2, 2]
    assert s.chunk_sizes(2, 2) == [1, 1]
    with pytest.raises(RuleError, match="chunks-fit"):
        s.chunk_sizes(3, 5)


@pytest.mark.parametrize(
    ("shape", "target", "zero", "want"),
    [
        ((2, 3), (3, -1), "copy", (3, 2)),
        ((2, 3), (0, -1), "copy", (2, 3)),
        ((2, 0), (0, 0), "literal", (0, 0)),
        ((2, 0), (0, 5), "literal", (0, 5)),
        ((2, 0, 3), (0, 0, -1), "copy", None),
        ((), (1, 1), "copy", (1, 1)),
        ((1,), (), "copy", ()),
        ((2, 3), (-1, -1), "copy", None),
        ((2, 3), (4, -1), "copy", None),
        ((2,), (2, 0), "copy", None),
        ((0,), (0, -1), "literal", None),
        ((2, 3), (-2, 3), "copy", None),
    ],
)
def test_reshape(shape: Any, target: Any, zero: str, want: Any) -> None:
    x = numbered(shape)
    if want is None:
        with pytest.raises(RuleError):
            s.reshape(x, shape=target, zero=zero)
        return
    out = s.reshape(x, shape=target, zero=zero)
    assert out.shape == want
    assert out.ravel().tolist() == x.ravel().tolist()


def test_expand_goes_both_ways_and_broadcast_one() -> None:
    x = numbered((3, 1))
    assert s.expand(x, shape=(1, 4)).shape == (3, 4)
    assert s.expand(x, shape=(1,)).shape == (3, 1)
    with pytest.raises(RuleError):
        s.broadcast_to(x, shape=(1, 4))
    assert s.broadcast_to(x, shape=(2, 3, 4))[1, 2].tolist() == [2, 2, 2, 2]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(-1, 4), st.integers(-1, 4), st.integers(-5, 5))
def test_bands_and_triangles(r: int, c: int, lower: int, upper: int, k: int) -> None:
    x = numbered((2, r, c)) + 1

    def banded(keep: Callable[[int, int], bool]) -> Array:
        return built(x.shape, lambda at: x[at] if keep(at[1], at[2]) else 0, x)

    within = banded(lambda m, n: (lower < 0 or m - n <= lower) and (upper < 0 or n - m <= upper))
    same(s.band_part(x, lower=lower, upper=upper), within)
    same(s.triangle(x, k=k, upper=True), banded(lambda m, n: n - m >= k))
    same(s.triangle(x, k=k, upper=False), banded(lambda m, n: n - m <= k))
    same(s.eye_like(x[0], k=k), built((r, c), lambda at: int(at[1] - at[0] == k), x))


@settings(max_examples=100, deadline=None)
@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5))
def test_ranges(start: int, limit: int, delta: int) -> None:
    for dtype, unit in ((np.int32, 1), (np.float32, 0.5)):
        a, b, d = (np.array(v * unit, dtype) for v in (start, limit, delta))
        if delta == 0:
            with pytest.raises(RuleError):
                s.range_of(a, b, d)
            continue
        want, v = [], start
        while (v < limit) if delta > 0 else (v > limit):
            want.append(v * unit)
            v += delta
        assert s.range_of(a, b, d).tolist() == want


def test_windows_sequences_and_the_rest() -> None:
    x = numbered((7,))
    assert s.sliding_windows(x, axis=0, size=3, stride=2).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    y = numbered((2, 4))
    assert s.reverse_sequence(y, np.array([3, 0]), seq_axis=1, batch_axis=0).tolist() == [[2, 1, 0, 3], [4, 5, 6, 7]]
    assert s.repeat_axis(x[:2], axis=0, times=2, mode="each").tolist() == [0, 0, 1, 1]
    assert s.repeat_axis(x[:2], axis=0, times=2).tolist() == [0, 1, 0, 1]
    assert s.diag(x[1:3]).tolist() == [[1, 0], [0, 2]]
    assert s.set_diag(numbered((2, 3)), np.array([7, 8])).tolist() == [[7, 1, 2], [3, 8, 5]]
    assert s.shape_of(np.zeros((2, 3, 4)), start=-2, end=9).tolist() == [3, 4]
    assert s.size_of(np.zeros((2, 3))) == 6
    assert s.rank_of(np.zeros((2, 3))) == 2
    assert s.flatten(np.zeros((2, 3, 4)), axis=-1).shape == (6, 4)
    assert s.flatten(np.zeros(()), axis=0).shape == (1, 1)
    assert s.squeeze(np.zeros((1, 2, 1)), axes=(-1,)).shape == (1, 2)
    assert s.expand_dims(np.zeros((2, 3)), axes=(-1, 0)).shape == (1, 2, 3, 1)
    assert s.fill(np.array("a", object), shape=(2,)).tolist() == ["a", "a"]
    updated = s.slice_update(numbered((4,)), np.array([9, 8]), begin=(3,), end=(-5,), stride=(-2,))
    assert updated.tolist() == [0, 8, 2, 9]
