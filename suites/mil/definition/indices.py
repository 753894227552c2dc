"""Reading and writing by index, and what is selected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)
_WITH: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, u: x + u,
    "sub": lambda x, u: x - u,
    "mul": lambda x, u: x * u,
    "div": lambda x, u: x / u,
    "max": np.maximum,
    "min": np.minimum,
    "update": lambda x, u: u,
}


@reads("gather")
def _gather(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, i, b = a["x"], a["indices"].astype(int), at.get("batch_dims", 0)
    axis = at.get("axis", 0) % x.ndim
    y = np.empty((*x.shape[:axis], *i.shape[b:], *x.shape[axis + 1 :]), x.dtype)
    for k in np.ndindex(x.shape[:b]):
        y[k] = x[k].take(i[k], axis - b)
    return [y]


@reads("gather_along_axis")
def _gather_along(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, i = a["x"], a["indices"].astype(int)
    y = np.empty(i.shape, x.dtype)
    for k in np.ndindex(i.shape):
        where = list(k)
        where[at.get("axis", 0) % x.ndim] = i[k]
        y[k] = x[tuple(where)]
    return [y]


@reads("gather_nd")
def _gather_nd(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, i, b = a["x"], a["indices"].astype(int), at.get("batch_dims", 0)
    y = np.empty((*i.shape[:-1], *x.shape[b + i.shape[-1] :]), x.dtype)
    for k in np.ndindex(i.shape[:-1]):
        of_x: tuple[Any, ...] = (*k[:b], *i[k])
        y[k] = x[of_x]
    return [y]


@reads("scatter")
def _scatter(at: Attrs, a: Arrays, version: str) -> list[Any]:
    y, axis = wide(a["data"]).copy(), at.get("axis", 0)
    rows, updates = np.moveaxis(y, axis, 0), np.moveaxis(wide(a["updates"]), axis, 0)
    for n, i in enumerate(a["indices"].astype(int)):
        rows[i] = _WITH[at["mode"]](rows[i], updates[n])
    return [y]


@reads("scatter_along_axis")
def _scatter_along(at: Attrs, a: Arrays, version: str) -> list[Any]:
    y, updates = wide(a["data"]).copy(), wide(a["updates"])
    for k in np.ndindex(updates.shape):
        where = list(k)
        where[at.get("axis", 0) % y.ndim] = int(a["indices"][k])
        y[tuple(where)] = _WITH[at.get("mode", "add")](y[tuple(where)], updates[k])
    return [y]


@reads("scatter_nd")
def _scatter_nd(at: Attrs, a: Arrays, version: str) -> list[Any]:
    y, i, updates = wide(a["data"]).copy(), a["indices"].astype(int), wide(a["updates"])
    for k in np.ndindex(i.shape[:-1]):
        y[tuple(i[k])] = _WITH[at.get("mode", "add")](y[tuple(i[k])], updates[k])
    return [y]


def _overlap(p: np.ndarray, q: np.ndarray) -> float:
    """IoU of (x, y, width, height) around a centre."""
    (p0, p1), (q0, q1) = ((b[:2] - b[2:] / 2, b[:2] + b[2:] / 2) for b in (p, q))
    common = np.prod(np.maximum(np.minimum(p1, q1) - np.maximum(p0, q0), 0.0))
    return float(common / (p[2] * p[3] + q[2] * q[3] - common))


@reads("non_maximum_suppression")
def _suppress(at: Attrs, a: Arrays, version: str) -> list[Any]:
    boxes, scores = wide(a["boxes"]), wide(a["scores"])
    if version == "ios17":
        boxes, scores = boxes.transpose(0, 2, 1), scores.transpose(0, 2, 1)
    most, alone = at["max_boxes"], at.get("per_class_suppression", False)
    out = [np.zeros((len(boxes), most, n)) for n in (4, scores.shape[2])]
    index, count = np.full((len(boxes), most), -1), np.zeros(len(boxes), int)
    for b, (box, score) in enumerate(zip(boxes, scores)):
        kept: list[int] = []
        for j in sorted(range(len(box)), key=list(-score.max(1)).__getitem__):
            if version == "ios15" and kept and score[j].max() < at["score_threshold"]:
                continue  # the best one stays: one of the readings
            rivals = [k for k in kept if not alone or score[k].argmax() == score[j].argmax()]
            if len(kept) < most and all(_overlap(box[j], box[k]) <= at["iou_threshold"] for k in rivals):
                kept.append(j)
        index[b, : len(kept)], count[b] = kept, len(kept)
        out[0][b, : len(kept)], out[1][b, : len(kept)] = box[kept], score[kept]
    if version == "ios17":
        return [out[0].transpose(0, 2, 1), out[1].transpose(0, 2, 1), index]
    return [*out, index, count]
