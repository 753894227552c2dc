"""What comes where a difference is listed (``harness/ledger/defect_models.py``): other readings of the ONNX op set."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given

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


def onnx_turned_in_the_type(g: Given) -> Outputs:
    """RotaryEmbedding: both products and their sum are rounded to the type of X, as in the function body."""
    x, at, size = g["X"], g["position_ids"], g.attr("rotary_embedding_dim", 0)
    cos, sin = (np.expand_dims(g[n] if at is None else g[n][at], 2) for n in ("cos_cache", "sin_cache"))
    heads = x.transpose(0, 2, 1, 3) if x.ndim == 4 else x.reshape(*x.shape[:2], g.attr("num_heads"), -1)
    turned, rest = np.split(heads, [size or heads.shape[-1]], -1)
    pairs = (turned[..., 0::2], turned[..., 1::2]) if g.attr("interleaved", 0) else np.split(turned, 2, -1)
    both = cos * pairs[0] - sin * pairs[1], sin * pairs[0] + cos * pairs[1]
    new = np.stack(both, -1).reshape(turned.shape) if g.attr("interleaved", 0) else np.concatenate(both, -1)
    y = np.concatenate([new, rest], -1)
    return [y.transpose(0, 2, 1, 3) if x.ndim == 4 else y.reshape(x.shape)]


def onnx_nan_is_the_best_score(g: Given) -> Outputs:
    """NonMaxSuppression: a score of NaN is above every number."""
    s = g["scores"]
    return g.reevaluate(inputs={"scores": np.where(np.isnan(s), np.array(np.inf, s.dtype), s)})
