"""What comes where a difference is listed (``harness/ledger/defect_models.py``): coremltools' value inference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near, Such

Outputs = list[Any] | None


def put_along_axis(g: Given) -> Outputs:
    """Updates replace whatever the mode, the last of several; an index that the text does not check is not known."""
    out, axis = np.array(g["data"]), g.attr("axis", 0)
    indices = g["indices"].astype(np.int64)
    if indices.size and not (-out.shape[axis] <= indices.min() and indices.max() < out.shape[axis]):
        return None
    np.put_along_axis(out, indices, g["updates"], axis)
    return [out]


def extents_kept_in_32_bits(g: Given) -> Outputs:
    """tile of no elements: each extent is a product of int32, which wraps; a negative one gives no result."""
    with np.errstate(over="ignore"):
        extents = np.array(g["x"].shape, np.int32) * g["reps"].astype(np.int32)
    return [np.zeros(tuple(extents), g["x"].dtype)] if (extents >= 0).all() else None


def extents_of_blocks_in_32_bits(g: Given) -> Outputs:
    """space_to_batch, as type inference tells it: an extent with its paddings wraps before it is divided by the block;
    and batch_to_space, where the extent is multiplied by the block first."""
    x, block = g["x"].shape, np.array(g.attr("block_shape"), np.int64)
    n, padded = block.size, g["paddings"] if g["paddings"] is not None else g["crops"]
    many = int(np.prod(block))
    space = np.array(x[2 : 2 + n], np.int64)
    if g["paddings"] is not None:
        shape = x[0] * many, x[1], *(_in_32_bits(space + padded.astype(np.int64).sum(1)) // block)
    else:
        shape = x[0] // many, x[1], *_in_32_bits(space * block - padded.astype(np.int64).sum(1))
    due = tuple(int(n) for n in (*shape, *x[2 + n :]))
    return [Such(lambda a: tuple(a.shape) == due, np.zeros((0,), g["x"].dtype), type_alone=True)]


def _in_32_bits(v: np.ndarray) -> np.ndarray:
    return (v + 2**31) % 2**32 - 2**31


def range_of_a_distance_in_32_bits(g: Given) -> Outputs:
    """range_1d of integers: the distance of start and end wraps in 32 bits; as many elements as follow from that."""
    start, step, count = _range_in_32_bits(g)
    return [np.array([start + k * step for k in range(count)], np.int32)] if count <= 1 << 16 else None


def extent_of_a_distance_in_32_bits(g: Given) -> Outputs:
    """The same, as type inference tells it."""
    count = _range_in_32_bits(g)[-1]
    return [Such(lambda a: a.shape == (count,), np.zeros(min(count, 1 << 16), np.int32), type_alone=True)]


def _range_in_32_bits(g: Given) -> tuple[int, int, int]:
    """First element, step and number of elements."""
    start, end, step = (int(g[n].ravel()[0]) for n in ("start", "end", "step"))
    distance = (end - start + 2**31) % 2**32 - 2**31
    return start, step, max(0, -(-distance // step))


def slice_to_the_end(g: Given) -> Outputs:
    """slice_by_size: a size of 0 is taken for the rest of the axis, as -1 is."""
    x = g["x"]
    places = []
    for n, b, size in zip(x.shape, g["begin"].tolist(), g["size"].tolist()):
        b += n if b < 0 else 0
        places.append(slice(b, b + size if size > 0 else None))
    return [x[tuple(places)]]


def clamped_twice(g: Given) -> Outputs:
    """clamped_relu: min(max(x, 0), beta) + min(alpha * min(x, 0), beta)."""
    x, (e,) = g["x"].astype(np.float64), g.expected
    alpha, beta = (float(g.attr(n)) for n in ("alpha", "beta"))
    parts = np.minimum(np.maximum(x, 0), beta), np.minimum(np.minimum(x, 0) * alpha, beta)
    eps = float(np.finfo(e.value.dtype).eps)  # three roundings
    return [Near(sum(parts), 2 * eps * (np.abs(parts[0]) + np.abs(parts[1])) + np.finfo(e.value.dtype).tiny)]


def ordered_by_what_is_negated(g: Given) -> Outputs:
    """topk, argsort: the largest first are the smallest of -x, where -x of the lowest integer, or of an unsigned 0, is
    that again.  Of equal elements any comes first."""
    x, axis = g["x"], g.attr("axis", -1)
    order = np.argsort(-x, axis=axis, kind="stable")
    wanted = np.take_along_axis(x, order, axis)
    many = (
        np.concatenate(
            [np.sum(np.take(wanted, [i], axis) == wanted, axis=axis, keepdims=True) for i in range(wanted.shape[axis])],
            axis=axis,
        )
        > 1
    )
    k = g.expected[0].value.shape[axis]
    order, wanted, many = (np.take(a, np.arange(k), axis) for a in (order, wanted, many))
    indices = Near(order.astype(np.int64), np.where(many, np.inf, 0.0))
    return ([wanted, indices] if g.inst.op == "topk" else [indices])[: len(g.expected)]


def first_axis_taken_out_alone(g: Given) -> Outputs:
    """squeeze to rank 0: all axes but the first stay."""
    return [g["x"].reshape(g["x"].shape[1:])]


def taken_along_the_wrong_axis(g: Given) -> Outputs:
    """gather: batch_dims are taken off a negative axis, too, which then counts from the wrong end."""
    x, at, b, axis = g["x"], g["indices"], g.attr("batch_dims", 0), g.attr("axis", 0)
    if axis - b < -(x.ndim - b):
        return None  # there is no such axis
    blocks = math.prod(x.shape[:b])
    rows = zip(x.reshape(blocks, *x.shape[b:]), at.reshape(blocks, *at.shape[b:]))
    taken = [np.take(p, i, axis - b) for p, i in rows]
    return [np.stack(taken).reshape(*x.shape[:b], *taken[0].shape)] if taken else None


def extents_multiplied_in_their_type(g: Given) -> list[Any] | None:
    """reshape with symbols: the extents in front of a -1 are multiplied in the type of the list, and wrap."""
    extents, volume = g["shape"], math.prod(g["x"].shape)
    at = next((k for k, n in enumerate(extents) if n == -1), None)
    if at is None or not extents[:at].size:
        return None
    with np.errstate(over="ignore"):
        front = int(np.multiply.reduce(extents[:at], dtype=extents.dtype))
    behind = math.prod(int(n) for n in extents[at + 1 :])
    if front == math.prod(int(n) for n in extents[:at]) or front * behind == 0:
        return None
    shape = [int(n) for n in extents]
    shape[at] = int(volume / (front * behind))
    if min(shape) < 0:
        return None
    shows = np.zeros(shape, g["x"].dtype)
    return [Such(lambda a: a.shape == shows.shape, shows, type_alone=True)]


def ends_added_in_their_type(g: Given) -> list[Any] | None:
    """slice_by_size: the end of a slice is begin plus size in the type of both, and wraps."""
    x, begin, size = g["x"], g["begin"], g["size"]
    with np.errstate(over="ignore"):
        ends = [None if n <= 0 else int(np.add(b, n, dtype=begin.dtype)) for b, n in zip(begin, size)]
    if all(e is None or e == int(b) + int(n) for e, b, n in zip(ends, begin, size)):
        return None
    y = x[tuple(slice(int(b), e) for b, e in zip(begin, ends))]
    return [
        y if y.shape == g.expected[0].value.shape else Such(lambda a: a.dtype == y.dtype and np.array_equal(a, y), y)
    ]


def strides_of_counted_starts(g: Given) -> Outputs:
    """slice_by_index where begin and stride are one tensor: a negative start is counted from the front in place, and so
    is the stride then another one."""
    x, places = g["x"], []
    for k, (b, e) in enumerate(zip(g["begin"].tolist(), g["end"].tolist())):
        start = step = b + x.shape[k] if b < 0 else b
        if step == 0 or any((g.attr(m) or [False] * x.ndim)[k] for m in ("begin_mask", "end_mask", "squeeze_mask")):
            return None  # not met yet
        e += x.shape[k] if e < 0 else 0
        places.append(slice(start, max(e, 0), step))
    return [x[tuple(places)]]
