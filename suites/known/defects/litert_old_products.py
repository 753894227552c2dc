"""What comes where a difference is listed (``harness/ledger/defect_models.py``): products and
convolutions of older releases of LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near
from suites.semantics.quantised import fixed

Outputs = list[Any] | None
_LIMITS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def _bound(e: Any) -> np.ndarray:
    return np.broadcast_to(np.asarray(e.error.bound(e.context()), np.float64), e.value.shape)


def product_without_the_second_zero_point(g: Given) -> Outputs:
    """The zero point of the second operand counts as 0; one step for the rounding of the multiplier."""
    x, y = fixed.centred(g["x"], g.inst.tensor("x").quantised), g["y"].astype(np.int64)
    x = np.swapaxes(x, -1, -2) if g.attr("adj_x", False) else x
    y = np.swapaxes(y, -1, -2) if g.attr("adj_y", False) else y
    out, due = g.attr("@outputs")[0]["quant"], g.expected[0].value
    by = g.inst.tensor("x").quantised["scale"][0] * g.inst.tensor("y").quantised["scale"][0] / out["scale"][0]
    real = np.asarray(x, np.float64) @ y.astype(np.float64) * by + out["zero_point"][0]
    info = np.iinfo(due.dtype)
    given = np.clip(np.rint(real), info.min, info.max).astype(due.dtype)
    return [Near(given, 1)] if given.shape == due.shape else None


def first_product_of_the_batch(g: Given) -> Outputs:
    """Only the first matrix of the batch is read from where it is."""
    (e,) = g.expected
    free, first = np.full(e.value.shape, np.inf), (0,) * (e.value.ndim - 2)
    if not free.size:
        return None
    free[first] = _bound(e)[first]
    return [Near(e.value, free)]


def only_the_activated_bias(g: Given) -> Outputs:
    """The weights count for nothing, the activation is applied; a subnormal one is 0, of either sign."""
    due, bias = g.expected[0].value, 0 if g["bias"] is None else g["bias"]
    low, high = _LIMITS.get(g.attr("fused_activation_function", "NONE"), (-np.inf, np.inf))
    return [Near(np.clip(bias + np.zeros(due.shape), low, high).astype(due.dtype), 2.0**-126)]
