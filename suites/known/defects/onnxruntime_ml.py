"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ai.onnx.ml in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near

_LOWEST = -float(np.finfo(np.float32).max)


def ort_greatest_of_finite(g: Given) -> list[Any]:
    """Normalizer: the greatest element of a row is at least the lowest number of f32; NaN is passed over."""
    x = g["X"].astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        top = np.fmax.reduce(x, -1, keepdims=True, initial=_LOWEST)
        y = np.where(top == 0, x, x / top)
    return [Near(y, 1e-6 * np.abs(y))]
