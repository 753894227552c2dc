"""Boxes: overlap and greedy suppression."""

from __future__ import annotations

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Array, Choice, Float, Integer, Real, T, any_order, semantics
from harness.generate.draw import Draw
from suites.semantics.indexing.common import prod


def corners(boxes: np.ndarray, form: str) -> np.ndarray:
    """f64 [..., 4] as (low, low, high, high): ``corners`` are any diagonal pair, ``center`` is (x, y, width,
    height)."""
    b = boxes.astype(np.float64)
    if form == "center":
        half = b[..., 2:] / 2
        return np.concatenate([b[..., :2] - half, b[..., :2] + half], -1)
    return np.concatenate([np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])], -1)


def iou(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes in low-high form; 0 where both are empty."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    inter = np.prod(np.maximum(high - low, 0), -1)
    union = np.prod(a[..., 2:] - a[..., :2], -1) + np.prod(b[..., 2:] - b[..., :2], -1) - inter
    return np.where(union > 0, inter / np.where(union > 0, union, 1), 0.0)


def greedy(boxes: np.ndarray, scores: np.ndarray, limit: int, threshold: float) -> list[int]:
    """Kept boxes by falling score; a box that overlaps a kept one by more than ``threshold`` goes."""
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if len(kept) >= limit:
            break
        if all(iou(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    return kept


@semantics(error=any_order(0), source="ONNX NonMaxSuppression-10, -11")
def non_max_suppression(
    boxes: Float[Array, "b n 4"],
    scores: Float[Array, "b c n"],
    *,
    limit: Integer = 0,
    iou_threshold: Real = 0.0,
    score_threshold: Real | None = None,
    form: Choice[str, "corners", "center"] = "corners",
) -> Array:
    """Rows (batch, class, box) of the boxes that survive, int64 [count, 3].

    A score below ``score_threshold`` removes a box, an overlap above ``iou_threshold`` with a kept one too; at most
    ``limit`` stay per batch and class (0: none).  Raises RuleError "shapes-agree", "threshold-in-range".
    """
    if boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]:
        raise RuleError("shapes-agree", f"boxes {list(boxes.shape)}, scores {list(scores.shape)}")
    if not 0 <= iou_threshold <= 1:
        raise RuleError("threshold-in-range", f"iou_threshold {iou_threshold}")
    where = corners(boxes, form)
    rows = []
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            s = scores[b, c].astype(np.float64)
            live = np.arange(s.size) if score_threshold is None else np.flatnonzero(s >= score_threshold)
            for i in greedy(where[b][live], s[live], limit, iou_threshold):
                rows.append((b, c, int(live[i])))
    return np.array(rows, np.int64).reshape(-1, 3)


@non_max_suppression.draw
def _draw_nms(d: Draw) -> dict:
    b, c, n = d.dim(hi=2), d.dim(hi=3), d.dim(hi=8)
    if d.chance(16):  # more boxes than a vector has elements, or 8 bits count
        b, c, n = 1, 1, d.pick((16, 65, 130, 257))
    # distinct scores: among equals the spec names no winner; thresholds lie between the steps
    size = prod((b, c, n))
    step = d.pick((1, 5, 7, 11, 13))
    scores = [((k * step) % 1009) / 1024 for k in range(size)]
    thresholds = (None, -0.5, (d.int(0, 1009) - 0.5) / 1024)
    if d.chance(8):  # of either sign
        scores = [(-1) ** k * ((k // 2 + 1) * step % 1009) / 1024 for k in range(size)]
        thresholds = (None, -0.5 - 1 / 2048, thresholds[2])
    form = d.pick(("corners", "center"))
    coords = [d.int(0, 8) if form == "corners" or k % 4 < 2 else d.int(1, 8) for k in range(b * n * 4)]
    return {
        "boxes": T((b, n, 4), values=[float(v) for v in coords]),
        "scores": T((b, c, n), values=scores),
        "limit": d.pick((0, 1, 2, n, n + 2, (1 << 31) - 1)),
        "iou_threshold": d.int(0, 64) / 64,
        "form": form,
        "score_threshold": d.pick(thresholds),
    }
