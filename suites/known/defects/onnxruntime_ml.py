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


def ort_squares_wrap(g: Given) -> list[Any]:
    """Normalizer: the squares of integers, and their sum, wrap in the type of X; of a sum of 0 the row stays as it is.
    The sign that a root of a square does not have is kept."""
    x = g["X"]
    with np.errstate(all="ignore"):
        squares = (x * x).astype(x.dtype)
        whole = squares.sum(-1, keepdims=True, dtype=x.dtype).astype(np.float64)
        y = np.sqrt(squares.astype(np.float64) / whole) * np.where(x < 0, -1.0, 1.0)
        y = np.where(whole == 0, x.astype(np.float64), y)
    return [Near(y, 1e-6 * np.abs(y))]
