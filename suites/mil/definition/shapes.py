"""Elements moved: shapes, slices, blocks, padding."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader

READ: dict[str, Read] = {}
reads = reader(READ)


@reads("reshape")
def _reshape(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, shape = a["x"], a["shape"].astype(int).tolist()
    skew = 0 if version == "ios15" else x.ndim - len(shape)  # iOS 17 counts from the right
    return [x.reshape([n or (x.shape[k + skew] if k + skew >= 0 else 1) for k, n in enumerate(shape)])]


@reads("reshape_like")
def _reshape_like(at: Attrs, a: Arrays, version: str) -> list[Any]:
    shape: list[int] = []
    for ref, b, e, whole in zip(a["ref_tensors"], at["begins"], at["ends"], at["end_masks"]):
        shape += ref.shape[b:] if whole else ref.shape[b:e]
    return [a["x"].reshape(shape)]


def _slices(at: Attrs, a: Arrays) -> tuple[Any, ...]:
    rank, stride = a["x"].ndim, a.get("stride", at.get("stride"))
    stride = [1] * rank if stride is None else [int(n) for n in stride]
    begins, ends, gone = (at.get(f"{n}_mask", [False] * rank) for n in ("begin", "end", "squeeze"))
    out: list[Any] = []
    for k in range(rank):
        lo, hi = None if begins[k] else int(a["begin"][k]), None if ends[k] else int(a["end"][k])
        out.append((lo or 0) if gone[k] else slice(lo, hi, stride[k]))
    return tuple(out)


@reads("slice_by_index")
def _slice(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [a["x"][_slices(at, a)]]


@reads("slice_update")
def _update(at: Attrs, a: Arrays, version: str) -> list[Any]:
    y = a["x"].copy()
    y[_slices(at, a)] = a["update"]
    return [y]


@reads("slice_by_size")
def _by_size(at: Attrs, a: Arrays, version: str) -> list[Any]:
    places = zip(a["x"].shape, a["begin"].astype(int), a["size"].astype(int))
    return [a["x"][tuple(slice(b, n if size == -1 else b + size) for n, b, size in places)]]


@reads("sliding_windows")
def _windows(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, size, stride = a["x"], at["size"], at.get("stride", 1)
    axis = at["axis"] % x.ndim
    starts = range(0, x.shape[axis] - size + 1, stride)
    return [np.stack([x.take(range(n, n + size), axis) for n in starts], axis)]


@reads("depth_to_space", "pixel_shuffle")
def _to_space(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, mixed = a["x"], "upscale_factor" in at
    f = at["upscale_factor" if mixed else "block_size"]
    n, c, h, w = x.shape
    y = np.empty((n, c // f // f, h * f, w * f), x.dtype)
    for k, i, j in np.ndindex(y.shape[1:]):
        inner = (i % f) * f + j % f
        y[:, k, i, j] = x[:, k * f * f + inner if mixed else inner * y.shape[1] + k, i // f, j // f]
    return [y]


@reads("space_to_depth", "pixel_unshuffle")
def _to_depth(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, mixed = a["x"], "downscale_factor" in at
    f = at["downscale_factor" if mixed else "block_size"]
    n, c, h, w = x.shape
    y = np.empty((n, c * f * f, h // f, w // f), x.dtype)
    for k, i, j in np.ndindex(x.shape[1:]):
        inner = (i % f) * f + j % f
        y[:, k * f * f + inner if mixed else inner * c + k, i // f, j // f] = x[:, k, i, j]
    return [y]


@reads("space_to_batch")
def _to_batch(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = np.pad(a["x"], [(0, 0), (0, 0), *(tuple(p) for p in a["paddings"].astype(int))])
    bh, bw = at["block_shape"]
    return [np.concatenate([x[:, :, i::bh, j::bw] for i, j in np.ndindex(bh, bw)])]


@reads("batch_to_space")
def _from_batch(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, (bh, bw) = a["x"], at["block_shape"]
    n, c, h, w = x.shape
    y = np.empty((n // bh // bw, c, h * bh, w * bw), x.dtype)
    for k, (i, j) in enumerate(np.ndindex(bh, bw)):
        y[:, :, i::bh, j::bw] = x[k * len(y) : (k + 1) * len(y)]
    (top, bottom), (left, right) = a["crops"].astype(int)
    return [y[:, :, top : h * bh - bottom, left : w * bw - right]]


@reads("pad")
def _pad(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, amounts = a["x"], a["pad"].astype(int).reshape(-1, 2)
    widths = [(0, 0)] * (x.ndim - len(amounts)) + [tuple(p) for p in amounts]
    how: Any = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}[at.get("mode", "constant")]
    more = {"constant_values": x.dtype.type(at.get("constant_val", 0.0))} if how == "constant" else {}
    return [np.pad(x, widths, how, **more)]


@reads("band_part")
def _band(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, lower, upper = a["x"], at.get("lower", -1), at.get("upper", -1)
    m, n = np.indices(x.shape[-2:])
    inside = ((lower < 0) | (m - n <= lower)) & ((upper < 0) | (n - m <= upper))
    return [np.where(inside, x, np.zeros((), x.dtype))]


@reads("concat")
def _concat(at: Attrs, a: Arrays, version: str) -> list[Any]:
    xs = [np.atleast_1d(x) for x in a["values"]]
    axis = at["axis"] % xs[0].ndim
    y = np.concatenate(xs, axis)
    if at.get("interleave", False):
        for k, x in enumerate(xs):
            y[(slice(None),) * axis + (slice(k, None, len(xs)),)] = x
    return [y]


@reads("one_hot")
def _one_hot(at: Attrs, a: Arrays, version: str) -> list[Any]:
    hit = a["indices"][..., None] == np.arange(int(a["one_hot_vector_size"]))
    return [np.moveaxis(np.where(hit, at.get("on_value", 1), at.get("off_value", 0)), -1, at.get("axis", -1))]


@reads("reverse_sequence")
def _reverse(at: Attrs, a: Arrays, version: str) -> list[Any]:
    y, seq, batch = a["x"].copy(), at.get("seq_axis", 0), at.get("batch_axis", 0)
    for k, n in enumerate(a["lengths"].astype(int)):
        where: list[Any] = [slice(None)] * y.ndim
        where[batch], where[seq] = slice(k, k + 1), slice(0, n)
        y[tuple(where)] = np.flip(a["x"][tuple(where)], seq)
    return [y]


@reads("range_1d")
def _range(at: Attrs, a: Arrays, version: str) -> list[Any]:
    start, end, step = (float(a[n]) for n in ("start", "end", "step"))
    return [np.array([start + k * step for k in range(max(0, ceil((end - start) / step)))])]
