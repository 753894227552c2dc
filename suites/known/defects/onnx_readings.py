"""What comes where a difference is listed (``harness/ledger/defect_models.py``): other readings of the ONNX op set."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.ledger.defect_models import Given

Outputs = list[Any] | None


def onnx_normalised_as_in_test(g: Given) -> Outputs:
    """BatchNormalization before 7 without is_test and with one output: by the mean and variance that are given."""
    return g.reevaluate({"is_test": 1})


def onnx_mask_of_truth_values(g: Given) -> Outputs:
    """Attention with a mask of integers: what is not 0 takes part."""
    return g.reevaluate(inputs={"attn_mask": g["attn_mask"] != 0})


def onnx_peepholes_of_zero(g: Given) -> Outputs:
    """LSTM without P: what a P of zeros gives, NaN of an infinite cell."""
    dirs, rows, _ = g["W"].shape
    return g.reevaluate(inputs={"P": np.zeros((dirs, rows // 4 * 3), g["W"].dtype)})
