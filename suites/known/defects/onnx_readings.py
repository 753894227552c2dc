"""What comes where a difference is listed (``harness/ledger/defect_models.py``): other readings of the ONNX op set."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import of
from harness.ledger.edits import Near
from suites.semantics import qdq
from suites.semantics.attention import additive, allowed, terms

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


def onnx_sum_of_32_bits(g: Given) -> Outputs:
    """QLinearConv: the sum of the products and the bias modulo 2^32, as ConvInteger's may be."""
    e = g.expected[0]
    ctx = e.context()
    steps = qdq.conv_of(ctx, lambda total, *scales: qdq.exactly(np.mod(total + 2.0**31, 2.0**32) - 2.0**31, *scales))
    near_tie = np.abs(np.abs(steps - np.floor(steps)) - 0.5) <= (np.abs(steps) + 1) * 2.0**-20
    y = qdq.to_steps(steps, np.asarray(ctx.inputs["out_zero"]).reshape(()), of(e.value))
    return [Near(y, near_tie.astype(np.float64))]


def seen_keys(g: Given, offset: Any = None) -> np.ndarray:
    """Attention: the keys that the causal rule, a window and the lengths let a query see.  offset: of the first query;
    that of the text by default."""
    rows, past, lengths = g["Q"].shape[-2], g["past_key"], g["nonpad_kv_seqlen"]
    keys = g["K"].shape[-2] + (0 if past is None else past.shape[2])
    if offset is None:
        offset = lengths - rows if past is None and lengths is not None else 0 if past is None else past.shape[2]
    left, right = (int(g.attr(f"{side}_window_size", -1)) for side in ("left", "right"))
    seen = allowed(rows, keys, offset, bool(g.attr("is_causal", 0)), left, right)
    seen = np.ones((rows, keys), bool) if seen is None else seen
    return seen if lengths is None else seen & (np.arange(keys) < lengths.reshape(-1, 1, 1, 1))


def _mask(g: Given, keys: int) -> np.ndarray:
    """Attention: the mask of floats or truth values as terms."""
    mask = g["attn_mask"]
    found = terms(mask, keys) if g.inst.version == 23 else additive(mask, keys)
    assert found is not None
    return found


def bias_of(g: Given) -> np.ndarray | None:
    """Attention: the sum of all biases, as the text has it; None without a mask."""
    if g["attn_mask"] is None:
        return None
    seen = seen_keys(g)
    total: np.ndarray = _mask(g, seen.shape[-1]) + np.where(seen, 0, -np.inf)
    return total


def onnx_forbidden_keys_take_no_part(g: Given) -> Outputs:
    """Attention: what a mask of floats has for a key that another rule forbids is not looked at."""
    seen = seen_keys(g)
    return g.reevaluate(inputs={"attn_mask": np.where(seen, _mask(g, seen.shape[-1]), -np.inf)})
