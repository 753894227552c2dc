"""Non-maximum suppression as Core ML does it: padded tables of boxes, scores and indices."""

from __future__ import annotations

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Array, Flag, Float, Integer, Real, T, exact, semantics
from harness.generate.draw import Draw
from suites.semantics.indexing.boxes import corners, iou


@semantics(error=exact(), source="MIL non_maximum_suppression iOS15, iOS17; NN NonMaximumSuppressionLayerParams")
def padded_nms(
    boxes: Float[Array, "b n 4"],
    scores: Float[Array, "b n k"],
    *,
    iou_threshold: Real,
    max_boxes: Integer,
    score_threshold: Real | None = None,
    per_class: Flag = False,
) -> tuple[Array, Array, Array, Array]:
    """(boxes [b, max, 4], scores [b, max, k], indices [b, max], counts [b]) of the boxes that survive, by falling
    score.

    boxes: (centre x, centre y, width, height).  A box is judged by the largest of its class scores; one below
    ``score_threshold`` is dropped, one that overlaps a kept box (of the same best class if ``per_class``) by more than
    ``iou_threshold`` too.  Padding is 0, for indices -1.  Where nothing survives the threshold the best box stays.
    Raises RuleError "shapes-agree".
    """
    if boxes.shape[:2] != scores.shape[:2]:
        raise RuleError("shapes-agree", f"boxes {list(boxes.shape)}, scores {list(scores.shape)}")
    b, n, k = scores.shape
    out = (
        np.zeros((b, max_boxes, 4), boxes.dtype),
        np.zeros((b, max_boxes, k), scores.dtype),
        np.full((b, max_boxes), -1, np.int32),
        np.zeros(b, np.int32),
    )
    where = corners(boxes, "center")
    for i in range(b):
        best, klass = scores[i].astype(np.float64).max(-1), scores[i].argmax(-1)
        kept: list[int] = []
        for j in np.argsort(-best, kind="stable").tolist():
            if len(kept) == max_boxes or (score_threshold is not None and best[j] < score_threshold):
                break
            rivals = [m for m in kept if not per_class or klass[m] == klass[j]]
            if all(iou(where[i, j], where[i, m]) <= iou_threshold for m in rivals):
                kept.append(j)
        if not kept and n and max_boxes:
            kept = [int(best.argmax())]
        out[0][i, : len(kept)], out[1][i, : len(kept)] = boxes[i, kept], scores[i, kept]
        out[2][i, : len(kept)], out[3][i] = kept, len(kept)
    return out


@padded_nms.draw
def draw_padded(d: Draw) -> dict:
    """Distinct scores in any order, since nothing is said of ties, a threshold that no overlap of whole boxes meets,
    and half of the boxes over an earlier one."""
    b, n, k = d.int(1, 2), d.int(1, 7), d.int(1, 3)
    step = d.pick((1, 337, 511, 733, 887))
    scores = [((m * step) % 1009) / 1024 for m in range(b * n * k)]
    middle = d.pick(scores) - 0.5 / 1024  # below one of the scores
    boxes: list[list[int]] = []
    for m in range(b * n):
        if m % n and d.bool():
            x, y, w, h = boxes[m - d.int(1, m % n)]
            boxes.append([x, y, w + d.int(0, 1), h + d.int(0, 1)])
        else:
            boxes.append([d.int(0, 8), d.int(0, 8), d.int(1, 8), d.int(1, 8)])
    coords = [float(c) for box in boxes for c in box]
    return {
        "boxes": T((b, n, 4), values=coords),
        "scores": T((b, n, k), values=scores),
        "iou_threshold": (d.int(0, 60) + 0.37) / 64,
        "max_boxes": d.pick((1, 2, n, n + 2)),
        "per_class": d.bool(),
        "score_threshold": d.pick((0.0, middle, 0.0, middle, 2.0)),
    }
