"""Layers that only move or make elements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from suites.nn.definition.common import Array, axis_of, check, layer, weights


def _fresh(shape: tuple[int, ...]) -> Array:
    return np.full(shape, np.nan)


def _whole(x: Array) -> list[int]:
    return [int(v) for v in x.ravel()]


@layer("transpose")
def transpose(p: Any, x: Array) -> Array:
    """y[i...] with the axes of x in the given order."""
    check(sorted(p.axes) == list(range(x.ndim)), "no permutation")
    y = _fresh(tuple(x.shape[a] for a in p.axes))
    for at in np.ndindex(*y.shape):
        source = [0] * x.ndim
        for i, a in enumerate(p.axes):
            source[a] = at[i]
        y[at] = x[tuple(source)]
    return y


@layer("permute")
def permute(p: Any, x: Array) -> Array:
    """Over [Seq, C, H, W] of a rank-5 blob; the batch stays."""
    check(x.ndim == 5, "rank")
    order = list(p.axis) or [0, 1, 2, 3]
    check(sorted(order) == [0, 1, 2, 3], "no permutation")
    without = np.moveaxis(x, 1, -1)  # Seq C H W B
    return np.moveaxis(without.transpose(*order, 4), -1, 1)


@layer("reshape")
def reshape(p: Any, x: Array) -> Array:
    """Rank 5 to rank 5, the elements taken channel first or channel last."""
    check(x.ndim == 5, "rank")
    t = list(p.targetShape)
    check(len(t) in (3, 4), "target of another length")
    seq, c, h, w = t if len(t) == 4 else [x.shape[0], *t]
    check(seq * x.shape[1] * c * h * w == x.size, "count")
    if p.mode == 0:
        return x.ravel().reshape(seq, x.shape[1], c, h, w)
    flat = x.transpose(0, 1, 3, 4, 2).ravel()
    return flat.reshape(seq, x.shape[1], h, w, c).transpose(0, 1, 4, 2, 3)


@layer("flatten")
def flatten(p: Any, x: Array) -> Array:
    """[..., C, H, W] to [..., C*H*W, 1, 1]."""
    check(x.ndim >= 3, "rank")
    rows = x.reshape(-1, *x.shape[-3:])
    if p.mode == 1:
        rows = rows.transpose(0, 2, 3, 1)
    return rows.reshape(*x.shape[:-3], -1, 1, 1)


def _target(x: Array, wish: list[int]) -> list[int]:
    check(wish.count(-1) <= 1 and min(wish, default=0) >= -1, "shape")
    known = 1
    for n in wish:
        known *= n if n != -1 else 1
    if -1 in wish:
        check(known > 0 and x.size % known == 0, "count")
        wish = [x.size // known if n == -1 else n for n in wish]
    check(int(np.prod(wish)) == x.size, "count")
    return wish


@layer("reshapeStatic")
def reshape_static(p: Any, x: Array) -> Array:
    """To targetShape."""
    return x.ravel().reshape(_target(x, list(p.targetShape)))


@layer("reshapeDynamic")
def reshape_dynamic(p: Any, x: Array, shape: Array) -> Array:
    """To the shape in the second input."""
    return x.ravel().reshape(_target(x, _whole(shape)))


@layer("reshapeLike")
def reshape_like(p: Any, x: Array, like: Array) -> Array:
    """To the shape of the second input."""
    return x.ravel().reshape(_target(x, list(like.shape)))


@layer("rankPreservingReshape")
def rank_preserving(p: Any, x: Array) -> Array:
    """0 keeps an extent, -1 is what remains."""
    check(len(p.targetShape) == x.ndim, "rank")
    return x.ravel().reshape(_target(x, [n or x.shape[i] for i, n in enumerate(p.targetShape)]))


@layer("flattenTo2D")
def flatten2d(p: Any, x: Array) -> Array:
    """Rows before the axis, columns from it on."""
    check(-x.ndim <= p.axis <= x.ndim, "axis")
    a = p.axis + x.ndim if p.axis < 0 else p.axis
    return x.reshape(int(np.prod(x.shape[:a])), -1)


@layer("squeeze")
def squeeze(p: Any, x: Array) -> Array:
    """Without axes of extent 1."""
    gone = [i for i, n in enumerate(x.shape) if n == 1] if p.squeezeAll else [axis_of(a, x.ndim) for a in p.axes]
    check(all(x.shape[a] == 1 for a in gone) and len(set(gone)) == len(gone), "axes")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in gone])


@layer("expandDims")
def expand_dims(p: Any, x: Array) -> Array:
    """The axes get extent 1 in the output."""
    rank = x.ndim + len(p.axes)
    ones = {axis_of(a, rank) for a in p.axes}
    check(len(ones) == len(p.axes), "an axis twice")
    rest = list(x.shape)
    return x.reshape([1 if i in ones else rest.pop(0) for i in range(rank)])


@layer("concat")
def concat(p: Any, *xs: Array) -> Array:
    """Along the channels, or along the sequence."""
    axis = -5 if p.sequenceConcat else -3
    return _join(_several(xs), axis_of(axis, xs[0].ndim))


@layer("concatND")
def concat_nd(p: Any, *xs: Array) -> Array:
    """Along any axis; interleaved: element after element of equally shaped parts."""
    if p.interleave:
        a = axis_of(p.axis, xs[0].ndim)
        check(all(x.shape == xs[0].shape for x in _several(xs)), "shapes")
        return _join([np.take(x, [i], axis=a) for i in range(xs[0].shape[a]) for x in xs], a)
    return _join(_several(xs), axis_of(p.axis, xs[0].ndim))


def _several(xs: Any) -> Any:
    check(len(xs) > 1, "more than one input")
    return xs


def _join(xs: Any, axis: int) -> Array:
    for x in xs:
        check(
            x.ndim == xs[0].ndim and all(n == m for i, (n, m) in enumerate(zip(x.shape, xs[0].shape)) if i != axis),
            "shapes",
        )
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    y, at = _fresh(tuple(shape)), 0
    for x in xs:
        y[(slice(None),) * axis + (slice(at, at + x.shape[axis]),)] = x
        at += x.shape[axis]
    return y


@layer("stack")
def stack(p: Any, *xs: Array) -> Array:
    """Along a new axis."""
    axis = axis_of(p.axis, xs[0].ndim + 1)
    check(all(x.shape == xs[0].shape for x in _several(xs)), "shapes")
    return _join([x.reshape(*x.shape[:axis], 1, *x.shape[axis:]) for x in xs], axis)


def _parts(x: Array, axis: int, sizes: list[int]) -> list[Array]:
    check(sum(sizes) == x.shape[axis], "sizes")
    out, at = [], 0
    for n in sizes:
        out.append(x[(slice(None),) * axis + (slice(at, at + n),)])
        at += n
    return out


@layer("split")
def split(p: Any, x: Array) -> list[Array]:
    """Equal parts along the channels."""
    axis = axis_of(-3, x.ndim)
    check(x.shape[axis] % p.nOutputs == 0, "uneven")
    return _parts(x, axis, [x.shape[axis] // p.nOutputs] * p.nOutputs)


@layer("splitND")
def split_nd(p: Any, x: Array) -> list[Array]:
    """Equal or given parts along any axis."""
    axis = axis_of(p.axis, x.ndim)
    n, k = x.shape[axis], int(p.numSplits)
    if p.splitSizes:
        return _parts(x, axis, list(p.splitSizes))
    check(0 < k <= n, "more parts than elements")
    return _parts(x, axis, [(n + k - 1 - i) // k for i in range(k)])


@layer("sequenceRepeat")
def sequence_repeat(p: Any, x: Array) -> Array:
    """The sequence axis several times over."""
    return _join([x] * (p.nRepetitions or 1), axis_of(-5, x.ndim))


@layer("tile")
def tile(p: Any, x: Array, reps: Array | None = None) -> Array:
    """Repetitions of every axis; missing leading ones are 1."""
    r = list(p.reps) if reps is None else _whole(reps)
    check(1 <= len(r) <= x.ndim, "repetitions")
    r = [1] * (x.ndim - len(r)) + r
    for axis, n in enumerate(r):
        x = _join([x] * n, axis)
    return x


@layer("reverse")
def reverse(p: Any, x: Array) -> Array:
    """Backwards along the marked axes."""
    check(len(p.reverseDim) == x.ndim, "entries")
    return x[tuple(slice(None, None, -1) if on else slice(None) for on in p.reverseDim)]


@layer("reverseSeq")
def reverse_seq(p: Any, x: Array, lengths: Array) -> Array:
    """The first elements of every batch entry backwards."""
    b, s = axis_of(p.batchAxis, x.ndim), axis_of(p.sequenceAxis, x.ndim)
    check(b < s, "the batch axis comes first")
    check(lengths.shape == (x.shape[b],), "a length for each element of the batch")
    y = x.copy()
    for at in np.ndindex(*x.shape):
        n = int(lengths[at[b]])
        check(n <= x.shape[s], "length")
        if at[s] < n:
            of_x: tuple[Any, ...] = (*at[:s], n - 1 - at[s], *at[s + 1 :])
            y[at] = x[of_x]
    return y


def _taken(n: int, begin: int, end: int, step: int, from_start: bool, to_end: bool) -> list[int]:
    """Positions of a slice by counting."""
    check(step != 0, "stride 0")
    first = begin + n if begin < 0 else begin
    last = end + n if end < 0 else end
    if from_start:
        first = 0 if step > 0 else n - 1
    if to_end:
        last = n if step > 0 else -1
    if step > 0:
        first, last = min(max(first, 0), n), min(last, n)
    else:
        first, last = min(first, n - 1), max(last, -1)
    out = []
    while (step > 0 and first < last) or (step < 0 and first > last):
        out.append(first)
        first += step
    return out


def _sliced(x: Array, begin: Any, end: Any, step: Any, bm: Any, em: Any, sm: Any) -> Array:
    check(len(begin) == len(end) == len(step) == x.ndim, "entries")
    for a in reversed(range(x.ndim)):
        n = x.shape[a]
        if len(sm) and sm[a]:
            check(-n <= begin[a] < n, "index")
            x = x[(slice(None),) * a + (int(begin[a]) % n,)]
        else:
            at = _taken(n, int(begin[a]), int(end[a]), int(step[a]), bool(len(bm) and bm[a]), bool(len(em) and em[a]))
            x = np.take(x, at, axis=a)
    return x


@layer("sliceStatic")
def slice_static(p: Any, x: Array) -> Array:
    """Begin, end, stride and masks of every axis."""
    return _sliced(x, p.beginIds, p.endIds, p.strides, p.beginMasks, p.endMasks, p.squeezeMasks)


@layer("sliceDynamic")
def slice_dynamic(p: Any, x: Array, begin: Array, *rest: Array) -> Array:
    """As sliceStatic; the inputs after the begin override the parameters in order."""
    check(len(rest) <= 5, f"expected 2 to 7 inputs, got {len(rest) + 2}")
    values = [list(v)[: x.ndim] for v in (p.endIds, p.strides, p.beginMasks, p.endMasks, p.squeezeMasks)]
    for i, r in enumerate(rest):
        values[i] = _whole(r)
    return _sliced(x, _whole(begin), *values)


@layer("slice")
def slice_one(p: Any, x: Array) -> Array:
    """One axis, a positive step."""
    axis = axis_of(-3 + p.axis, x.ndim)
    check(p.stride > 0, "stride")
    return np.take(x, _taken(x.shape[axis], p.startIndex, p.endIndex, int(p.stride), False, False), axis=axis)


@layer("sliceBySize")
def slice_by_size(p: Any, x: Array, begin: Array) -> Array:
    """Some elements of one axis."""
    axis, b = axis_of(p.axis, x.ndim), int(begin.item())
    check(b >= 0 and b + p.size <= x.shape[axis], "outside")
    return np.take(x, range(b, b + p.size), axis=axis)


@layer("slidingWindows")
def sliding_windows(p: Any, x: Array) -> Array:
    """Windows along an axis as two axes."""
    axis, w, s = axis_of(p.axis, x.ndim), p.windowSize, p.step
    check(0 < w <= x.shape[axis] and s > 0, "window")
    count = (x.shape[axis] - w) // s + 1
    parts = [np.take(x, range(i * s, i * s + w), axis=axis) for i in range(count)]
    return _join([t.reshape(*t.shape[:axis], 1, *t.shape[axis:]) for t in parts], axis)


@layer("loadConstant")
def load_constant(p: Any) -> Array:
    """[1, 1, C, H, W]."""
    check(len(p.shape) == 3, "shape")
    return weights(p.data, 1, 1, *p.shape)


@layer("loadConstantND")
def load_constant_nd(p: Any) -> Array:
    """Any shape."""
    return weights(p.data, *p.shape)


@layer("fillLike")
def fill_like(p: Any, x: Array) -> Array:
    """One value, shaped like the input."""
    return x * 0 + p.value if np.isfinite(x).all() else np.full(x.shape, p.value)


def _extents(shape: Any) -> tuple[int, ...]:
    check(all(0 <= n < 2**31 for n in shape), f"extents {list(shape)}")
    return tuple(shape)


@layer("fillStatic")
def fill_static(p: Any) -> Array:
    """One value."""
    return np.full(_extents(p.targetShape), p.value)


@layer("fillDynamic")
def fill_dynamic(p: Any, shape: Array) -> Array:
    """One value, the shape an input."""
    return np.full(_extents(_whole(shape)), p.value)


def _stretch(x: Array, shape: list[int]) -> Array:
    check(len(shape) >= x.ndim, "rank")
    x = x.reshape([1] * (len(shape) - x.ndim) + list(x.shape))
    check(all(n in (1, m) for n, m in zip(x.shape, shape)), "extents")
    y = _fresh(tuple(shape))
    for at in np.ndindex(*shape):
        y[at] = x[tuple(i if n > 1 else 0 for i, n in zip(at, x.shape))]
    return y


@layer("broadcastToStatic")
def broadcast_static(p: Any, x: Array) -> Array:
    """To targetShape."""
    return _stretch(x, list(p.targetShape))


@layer("broadcastToDynamic")
def broadcast_dynamic(p: Any, x: Array, shape: Array) -> Array:
    """To the shape in the second input."""
    return _stretch(x, _whole(shape))


@layer("broadcastToLike")
def broadcast_like(p: Any, x: Array, like: Array) -> Array:
    """To the shape of the second input."""
    return _stretch(x, list(like.shape))


@layer("getShape")
def get_shape(p: Any, x: Array) -> Array:
    """Extents."""
    return np.array(x.shape, np.float64)


def _range(start: float, end: float, step: float) -> Array:
    check(step != 0, "step 0")
    out, i = [], 0
    while (start + i * step < end) if step > 0 else (start + i * step > end):
        out.append(start + i * step)
        i += 1
    return np.array(out)


@layer("rangeStatic")
def range_static(p: Any) -> Array:
    """startValue, startValue + stepSizeValue, ... before endValue."""
    return _range(p.startValue, p.endValue, p.stepSizeValue)


@layer("rangeDynamic")
def range_dynamic(p: Any, end: Array, start: Array | None = None, step: Array | None = None) -> Array:
    """The same from inputs."""
    return _range(
        p.startValue if start is None else start.item(), end.item(), p.stepSizeValue if step is None else step.item()
    )


def _band(x: Array, keep: Any) -> Array:
    check(x.ndim >= 2, "rank")
    y = x.copy()
    for i, j in itertools.product(range(x.shape[-2]), range(x.shape[-1])):
        if not keep(i, j):
            y[..., i, j] = 0
    return y


@layer("matrixBandPart")
def matrix_band_part(p: Any, x: Array) -> Array:
    """(numLower < 0 or m - n <= numLower) and (numUpper < 0 or n - m <= numUpper)."""
    return _band(x, lambda m, n: (p.numLower < 0 or m - n <= p.numLower) and (p.numUpper < 0 or n - m <= p.numUpper))


@layer("upperTriangular")
def upper_triangular(p: Any, x: Array) -> Array:
    """Zero below diagonal k."""
    return _band(x, lambda m, n: n - m >= p.k)


@layer("lowerTriangular")
def lower_triangular(p: Any, x: Array) -> Array:
    """Zero above diagonal k."""
    return _band(x, lambda m, n: n - m <= p.k)


@layer("reorganizeData")
def reorganize_data(p: Any, x: Array) -> Array:
    """Blocks of space and channels exchanged.

    SPACE_TO_DEPTH: the element at offset (i, j) of its block goes to channel (i * block + j) * C + c.  DEPTH_TO_SPACE
    is its inverse; PIXEL_SHUFFLE reads channel c * block**2 + i * block + j instead.
    """
    check(x.ndim >= 3, "rank")
    b, (c, h, w) = int(p.blockSize), x.shape[-3:]
    check(b > 1, "block")
    lead, x = x.shape[:-3], x.reshape(-1, c, h, w)
    if p.mode == 0:
        check(h % b == 0 and w % b == 0, "block")
        y = _fresh((len(x), c * b * b, h // b, w // b))
        for i, j, k in itertools.product(range(b), range(b), range(c)):
            y[:, (i * b + j) * c + k] = x[:, k, i::b, j::b]
    else:
        check(c % (b * b) == 0, "block")
        m = c // (b * b)
        y = _fresh((len(x), m, h * b, w * b))
        for i, j, k in itertools.product(range(b), range(b), range(m)):
            y[:, k, i::b, j::b] = x[:, k * b * b + i * b + j if p.mode == 2 else (i * b + j) * m + k]
    return y.reshape(*lead, *y.shape[1:])
