"""Layers that read or write at indices, and those that order."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.nn.definition.common import Array, axis_of, check, layer


def _at(i: float, n: int, negative: bool = True) -> int:
    k = int(i)
    check((-n if negative else 0) <= k < n, f"index {k} of {n}")
    return k % n


@layer("gather")
def gather(p: Any, data: Array, indices: Array) -> Array:
    """Slices along the axis."""
    a = axis_of(p.axis, data.ndim)
    rows = [data[(slice(None),) * a + (_at(i, data.shape[a]),)] for i in indices.ravel()]
    y = np.stack(rows, a)
    return y.reshape(*data.shape[:a], *indices.shape, *data.shape[a + 1 :])


@layer("gatherND")
def gather_nd(p: Any, data: Array, indices: Array) -> Array:
    """Slices at index tuples."""
    k = indices.shape[-1]
    check(k <= data.ndim, "tuple")
    rows = [data[tuple(_at(i, n) for i, n in zip(t, data.shape))] for t in indices.reshape(-1, k)]
    return np.array(rows).reshape((*indices.shape[:-1], *data.shape[k:]))


@layer("gatherAlongAxis")
def gather_along(p: Any, data: Array, indices: Array) -> Array:
    """Element by element along the axis."""
    a = axis_of(p.axis, data.ndim)
    check(
        all(n == m for i, (n, m) in enumerate(zip(data.shape, indices.shape)) if i != a) and data.ndim == indices.ndim,
        "shape",
    )
    y = np.zeros(indices.shape)
    for at in np.ndindex(*indices.shape):
        of_data: tuple[Any, ...] = (*at[:a], _at(indices[at], data.shape[a]), *at[a + 1 :])
        y[at] = data[of_data]
    return y


_MODE = (
    lambda old, new: new,
    lambda old, new: old + new,
    lambda old, new: old - new,
    lambda old, new: old * new,
    lambda old, new: old / new,
    lambda old, new: np.maximum(old, new),
    lambda old, new: np.minimum(old, new),
)


@layer("scatter")
def scatter(p: Any, container: Array, indices: Array, updates: Array) -> Array:
    """Slices along the axis combined with the container."""
    a = axis_of(p.axis, container.ndim)
    y = container.copy()
    check(updates.shape == (*y.shape[:a], *indices.shape, *y.shape[a + 1 :]), "shape")
    for where in np.ndindex(*indices.shape):
        at = (slice(None),) * a + (_at(indices[where], y.shape[a]),)
        y[at] = _MODE[p.mode](y[at], updates[(slice(None),) * a + where])
    return y


@layer("scatterND")
def scatter_nd(p: Any, container: Array, indices: Array, updates: Array) -> Array:
    """Slices at index tuples combined with the container."""
    y, k = container.copy(), indices.shape[-1]
    check(k <= y.ndim, "a tuple of more axes than there are")
    check(updates.shape == (*indices.shape[:-1], *y.shape[k:]), "updates of another shape")
    rows = updates.reshape(-1, *container.shape[k:])
    for t, row in zip(indices.reshape(-1, k), rows):
        at = tuple(_at(i, n, False) for i, n in zip(t, y.shape))
        y[at] = _MODE[p.mode](y[at], row)
    return y


@layer("scatterAlongAxis")
def scatter_along(p: Any, container: Array, indices: Array, updates: Array) -> Array:
    """Element by element along the axis."""
    a, y = axis_of(p.axis, container.ndim), container.copy()
    check(indices.shape == updates.shape and indices.ndim == y.ndim, "shapes")
    check(all(n == m for i, (n, m) in enumerate(zip(y.shape, indices.shape)) if i != a), "shapes")
    for at in np.ndindex(*indices.shape):
        to = (*at[:a], _at(indices[at], y.shape[a]), *at[a + 1 :])
        y[to] = _MODE[p.mode](y[to], updates[at])
    return y


def _order(row: list[float], falling: bool) -> list[int]:
    return sorted(range(len(row)), key=lambda i: (-row[i] if falling else row[i], i))


@layer("topK")
def top_k(p: Any, x: Array, k: Array | None = None) -> list[Array]:
    """The largest, or smallest, and where they were."""
    a, n = axis_of(p.axis, x.ndim), int(p.K if k is None else k.item())
    check(0 < n <= x.shape[a], "K")
    at = np.apply_along_axis(lambda r: np.array(_order(r.tolist(), not p.useBottomK)[:n], np.float64), a, x)
    return [np.take_along_axis(x, at.astype(int), a), at]


@layer("argSort")
def arg_sort(p: Any, x: Array) -> Array:
    """Positions in order."""
    check(0 <= p.axis < x.ndim, "axis")
    return np.apply_along_axis(lambda r: np.array(_order(r.tolist(), p.descending), np.float64), p.axis, x)


@layer("whereNonZero")
def where_non_zero(p: Any, x: Array) -> Array:
    """Indices of what is not zero, row by row."""
    return np.array([at for at in np.ndindex(*x.shape) if x[at] != 0], np.float64).reshape(-1, x.ndim)


@layer("oneHot")
def one_hot(p: Any, x: Array, given: Array | None = None) -> Array:
    """A new axis with one value on."""
    size = int(p.oneHotVectorSize if given is None else given.item())
    check(size >= 0, "a vector of a size")
    y = np.full((*x.shape, size), p.offValue, np.float64)
    for at in np.ndindex(*x.shape):
        if 0 <= x[at] < size:
            of_y: tuple[Any, ...] = (*at, int(x[at]))
            y[of_y] = p.onValue
    return np.moveaxis(y, -1, axis_of(p.axis, x.ndim + 1))


def _overlap(a: Array, b: Array) -> float:
    """Intersection over union of boxes (centre x, centre y, width, height)."""
    lo = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    hi = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    inter = float(np.prod(np.maximum(hi - lo, 0)))
    union = float(a[2] * a[3] + b[2] * b[3]) - inter
    return inter / union if union > 0 else 0.0


@layer("NonMaximumSuppression")
def non_maximum_suppression(
    p: Any, boxes: Array, scores: Array, iou: Any = None, least: Any = None, limit: Any = None
) -> list[Array]:
    """Greedy by the best score over classes; nothing left means the best box alone."""
    check(boxes.ndim == scores.ndim == 3 and boxes.shape[2] == 4, "boxes [n, b, 4] and scores [n, b, classes]")
    check(boxes.shape[:2] == scores.shape[:2], "boxes and scores of other extents")
    given = [(iou, p.iouThreshold), (least, p.scoreThreshold), (limit, p.maxBoxes)]
    check(all(v is None or v.size == 1 for v, _ in given), "a threshold of more than one element")
    iou, least, limit = (float(other if v is None else v.item()) for v, other in given)
    limit = int(limit)
    n, classes = boxes.shape[0], scores.shape[2]
    out = [np.zeros((n, limit, 4)), np.zeros((n, limit, classes)), np.full((n, limit), -1.0), np.zeros(n)]
    for b in range(n):
        best, label = scores[b].max(1), scores[b].argmax(1)
        order = [i for i in _order(best.tolist(), True) if best[i] >= least]
        kept: list[int] = []
        for i in order:
            rivals = [j for j in kept if not p.perClassSuppression or label[i] == label[j]]
            if all(_overlap(boxes[b, i], boxes[b, j]) <= iou for j in rivals):
                kept.append(i)
        kept = kept[:limit] or [int(best.argmax())]
        for k, i in enumerate(kept):
            out[0][b, k], out[1][b, k], out[2][b, k] = boxes[b, i], scores[b, i], i
        out[3][b] = len(kept)
    return out
