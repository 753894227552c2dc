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
    Checks(breaks={"table-shape": _flat_boxes}),
    boxes=_tensor("boxes"),
    scores=_tensor("scores"),
    iou_threshold=_value("iou_threshold", "iouThreshold"),
    score_threshold=_value("score_threshold", "scoreThreshold"),
    max_boxes=Fn(
        lambda c: int(c.inputs["max_boxes"].reshape(-1)[0]) if "max_boxes" in c.inputs else c.attr("maxBoxes")
    ),
    per_class="perClassSuppression",
)
