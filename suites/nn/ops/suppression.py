"""Non-maximum suppression.  Source: NeuralNetwork.proto, NonMaximumSuppressionLayerParams."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, T
from suites.nn import op
from suites.semantics import suppression as s


def _value(slot: str, name: str) -> Fn:
    return Fn(lambda c: float(c.inputs[slot].reshape(-1)[0]) if slot in c.inputs else float(c.attr(name)))


def _tensor(name: str) -> Fn:
    def read(c: Call) -> np.ndarray:
        x = c.inputs[name]
        if x.ndim != 3 or (name == "boxes" and x.shape[2] != 4):
            raise RuleError("table-shape", f"{name} {list(x.shape)}")
        return x

    return Fn(read)


_MAX = 3.4028234663852886e38
_COORDINATES = (-0.0, 0.5, 2.0**-140, 2.0**24 + 2, 4.0, -4.0, _MAX, -_MAX, np.nan, np.inf, -np.inf, 1.5)


def _unusual(d: Draw, b: int, n: int, k: int) -> dict[str, Any]:
    """Coordinates or scores that no image has, in one place or at either end; or one table for both."""
    if d.chance(4):
        values = [float(i * 7 % 11) + 0.25 * i for i in range(b * n * 4)]
        both = T((b, n, 4), values=values, const=False)
        return {"boxes": both, "scores": both, "@same": {"scores": "boxes"}}
    name, last = d.pick((("boxes", 4), ("scores", k)))
    values = [float(i * 7 % 11) + i / 64 for i in range(b * n * last)]
    for at in d.pick(((0,), (-1,), (0, -1))):
        values[at] = d.pick(_COORDINATES)
    if d.bool() and len(values) > 2:
        values[1] = -values[0] if np.isfinite(values[0]) else 4.0
    return {name: T((b, n, last), values=values)}


def _open(c: Call) -> str | None:
    """Where an area or an order is not a number, or overflows, the text says nothing; nor of equal scores."""
    boxes, scores = c.inputs["boxes"], c.inputs["scores"]
    if not np.isfinite(boxes).all() or np.abs(boxes).max(initial=0.0) > 1e15:
        return "boxes-without-an-area"
    best = scores.max(-1, initial=-np.inf) if scores.size else scores
    if np.isnan(scores).any() or any(len(set(row)) < len(row) for row in best.reshape(len(best), -1).tolist()):
        return "scores-without-an-order"
    return None


def _apart(d: Draw) -> dict[str, Any]:
    out = _draw(d)
    b, n, k = out["scores"].shape
    return {**out, "scores": T((b, n + 1, k)), "@same": {}}


def _draw(d: Draw) -> dict[str, Any]:
    """The first extra inputs override, the rest are parameters."""
    v = s.padded_nms.derive(d)
    numbers = (
        ("iou_threshold", "iouThreshold", float(v["iou_threshold"])),
        ("score_threshold", "scoreThreshold", float(v["score_threshold"])),
        ("max_boxes", "maxBoxes", v["max_boxes"]),
    )
    out: dict[str, Any] = {
        "boxes": v["boxes"],
        "scores": v["scores"],
        "perClassSuppression": v["per_class"],
        "@outs": 4,
    }
    if d.chance(6):
        b, n, k = out["scores"].shape
        out.update(_unusual(d, b, n, k))
    given = d.int(0, 3)
    for i, (slot, name, n) in enumerate(numbers):
        out.update({slot: T((1,), values=[float(n)])} if i < given else {name: n})
    return out


def _flat_boxes(d: Draw) -> dict[str, Any]:
    out = _draw(d)
    return {**out, "boxes": T(out["boxes"].shape[1:]), "scores": T(out["scores"].shape[1:])}


op(
    "NonMaximumSuppression",
    s.padded_nms,
    Sampling(_draw),
    Checks(ambiguous=_open, breaks={"table-shape": _flat_boxes, "shapes-agree": _apart}),
    boxes=_tensor("boxes"),
    scores=_tensor("scores"),
    iou_threshold=_value("iou_threshold", "iouThreshold"),
    score_threshold=_value("score_threshold", "scoreThreshold"),
    max_boxes=Fn(
        lambda c: int(c.inputs["max_boxes"].reshape(-1)[0]) if "max_boxes" in c.inputs else c.attr("maxBoxes")
    ),
    per_class="perClassSuppression",
)
