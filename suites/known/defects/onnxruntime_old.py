"""What comes where a difference is listed (``harness/ledger/defect_models.py``): ONNX Runtime before 1.32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near
from suites.known.defects.onnxruntime_attention import body_scale
from suites.semantics.attention import additive, allowed

Outputs = list[Any] | None


def ort_f16_gemm(g: Given) -> list[Any]:
    """Every product and every sum is rounded to f16, alpha and beta too; what goes beyond its range stays there."""
    e, alpha, beta = g.expected[0], abs(g.attr("alpha", 1.0)), abs(g.attr("beta", 1.0))
    a, b, c = (np.abs(np.asarray(0 if g[k] is None else g[k], np.float64)) for k in "ABC")
    a, b = a.T if g.attr("transA", 0) else a, b.T if g.attr("transB", 0) else b
    whole = max(alpha, 1) * (a @ b) + beta * c
    within = (a.shape[1] + 4) * (2.0**-11 * whole + 2.0**-25 * max(alpha, 1))
    return [Near(e.real, np.where(whole <= 65504, within, np.inf))]


def ort_masks(g: Given) -> Outputs:
    """Attention from 1.23 to 1.26, its function body in 1.27 too: the mask, the causal one too, is added before the
    cap, and what is masked is the lowest number: a cap makes a weight of it, and a row that sees nothing is the mean of
    all keys.  The causal mask begins at the first key that is not of the past, whatever the lengths say.  Of the stages
    of the scores 1 is the one before the cap, without the lengths, and 2 the one after it, both with the mask."""
    return _masked(g, bool(g.attr("is_causal", 0)), g["nonpad_kv_seqlen"])


def ort_masks_of_one_query(g: Given) -> Outputs:
    """The same without the causal mask, which a single query does not have."""
    return _masked(g, False, g["nonpad_kv_seqlen"]) if g["Q"].shape[-2] == 1 else None


def ort_masks_without_lengths(g: Given) -> Outputs:
    """The same in 1.24: the lengths are not looked at; of a single query, neither is the causal mask."""
    return _masked(g, bool(g.attr("is_causal", 0)) and g["Q"].shape[-2] > 1, None)


def ort_masks_after_the_cap(g: Given) -> Outputs:
    """The same in 1.27: the cap comes first, and in the stages of the scores too."""
    return _masked(g, bool(g.attr("is_causal", 0)), g["nonpad_kv_seqlen"], True)


def ort_masks_of_one_query_after_the_cap(g: Given) -> Outputs:
    """The same in 1.27, of a single query."""
    return _masked(g, False, g["nonpad_kv_seqlen"], True) if g["Q"].shape[-2] == 1 else None


def _masked(g: Given, causal: bool, lengths: Any, cap_first: bool = False, stage_with_lengths: bool = False) -> Outputs:
    past, mask, mode = g["past_key"], g["attn_mask"], g.attr("qk_matmul_output_mode", 0)
    rows, keys = g["Q"].shape[-2], g["K"].shape[-2] + (0 if past is None else past.shape[2])
    bias: Any = np.zeros((1, keys)) if mask is None else additive(mask, keys)
    seen = allowed(rows, keys, 0 if past is None else past.shape[2], causal, -1, -1)
    bias = bias if seen is None else bias + np.where(seen, 0, -np.inf)
    early = bias
    if lengths is not None:
        bias = bias + np.where(np.arange(keys) < lengths.reshape(-1, 1, 1, 1), 0, -np.inf)
    early = bias if stage_with_lengths else early
    plain: dict[str, Any] = {"is_causal": None, "softcap": None, "qk_matmul_output_mode": 0}
    if g["Q"].dtype == np.float64:  # the function body, in which the root of the scale is f32
        plain["scale"] = body_scale(g)
    scores = g.reevaluate(plain, {"attn_mask": None, "nonpad_kv_seqlen": None}, outs=4)
    if scores is None:
        return None
    e, cap = scores[3], g.attr("softcap", 0.0)
    s, off = e.real, e.error.bound(e.context())
    bias = np.broadcast_to(np.where(np.isneginf(bias).all(-1, keepdims=True), -1e30, bias), s.shape)
    if not cap:
        stages = [s, s if cap_first else s + early, s + bias]
    elif cap_first:
        capped = cap * np.tanh(s / cap)
        stages = [s, capped, capped + bias]
    else:
        stages = [s, s + early, cap * np.tanh((s + bias) / cap)]
    bias = stages[2] - s
    told = g.reevaluate({**plain, "qk_matmul_output_mode": mode}, {"attn_mask": bias, "nonpad_kv_seqlen": None}, outs=4)
    if told is None:
        return None
    # the cap has an error of its own, and the scale of f64 is one of f32 in the function body
    more = 1e-6 * (1 + np.abs(s).max(initial=0)) if g["Q"].dtype == np.float64 else 0.0
    twice = 2 if cap else 1
    y = told[0]
    out: list[Any] = told[: len(g.expected)]
    out[0] = Near(y.value, twice * y.error.bound(y.context()) + more * np.abs(g["V"].astype(np.float64)).max(initial=0))
    if len(out) == 4:
        value = told[3].real if mode == 3 else stages[mode]
        off = told[3].error.bound(told[3].context()) if mode == 3 else off
        value = np.where(value < -1e29, -np.inf, value)  # a row of which everything is masked
        finite = np.where(np.isinf(value), 0, value)
        eps, lowest = (float(getattr(ml_dtypes.finfo(e.value.dtype), n)) for n in ("eps", "min"))
        off = twice * off + 2 * eps * np.abs(finite) + more
        other = np.maximum(value, lowest).astype(e.value.dtype)
        if e.value.dtype == np.float16 and mode in (1, 2):  # the lowest number is added
            masked = np.isneginf(value)
            value = np.where(masked, np.maximum(s + lowest, lowest), value)
            off, other = np.where(masked, off + 64, off), np.where(masked, -np.inf, other).astype(e.value.dtype)
        if e.value.dtype == np.float16:
            value = np.where(np.abs(value) >= 65520, np.copysign(np.inf, value), value)  # beyond the type
        out[3] = Near(value, off, other)
    return out


def _heads_in_a_row(g: Given, then: Callable[[Given], Outputs]) -> Outputs:
    """f16 of three axes: query head h multiplies key head h modulo their number.  It reads as values what stands h
    heads after the first one of its batch in memory: the next positions, of the next batch too, or what lies beyond
    the tensor."""
    if g["past_key"] is not None or g["Q"].ndim != 3:
        return None
    heads, kept = g.attr("q_num_heads"), g.attr("kv_num_heads")
    parts = {}
    for n in "KV":
        batch, keys, width = g[n].shape
        size = width // kept
        head = np.arange(heads) % kept if n == "K" else np.arange(heads)
        rows = np.arange(batch * keys).reshape(batch, keys, 1, 1) * width
        at = rows + head[:, None] * size + np.arange(size)  # [batch, keys, heads, size]
        parts[n] = g[n].reshape(-1)[np.minimum(at, g[n].size - 1)].reshape(batch, keys, heads * size)
        beyond = (at >= g[n].size).any((1, 3))
    again = g.reevaluate({"kv_num_heads": heads}, parts, outs=len(g.expected))
    origin = again and g.origin(again[0])
    told = origin and then(Given(origin[0], 0))
    if not told:
        return None
    out: list[Any] = [*told[:1], None, None, *told[3:]][: len(g.expected)]
    for i in (0, 3) if len(out) > 3 else (0,):
        one = out[i] if isinstance(out[i], Near) else Near(out[i].value, out[i].error.bound(out[i].context()))
        lost = beyond[:, :, None, None]
        if one.value.ndim == 3:
            lost = np.repeat(beyond, one.value.shape[2] // heads, 1)[:, None]
        out[i] = one._replace(within=np.where(lost, np.inf, one.within))
    return out


def attention_16_bit_heads_in_a_row(g: Given) -> Outputs:
    """f16: query heads read the heads beside those that they share."""
    return _heads_in_a_row(g, lambda inner: inner.expected)


def attention_16_bit_heads_in_a_row_masks(g: Given) -> Outputs:
    """The same with ort_masks."""
    return _heads_in_a_row(g, ort_masks)


def attention_16_bit_heads_in_a_row_without_lengths(g: Given) -> Outputs:
    """The same with ort_masks_without_lengths."""
    return _heads_in_a_row(g, ort_masks_without_lengths)


def attention_16_bit_heads_in_a_row_of_one_query(g: Given) -> Outputs:
    """The same with ort_masks_of_one_query."""
    return _heads_in_a_row(g, ort_masks_of_one_query)


def ort_masks_of_the_body(g: Given) -> Outputs:
    """The same in the function body of f64, in whose first stage the lengths are masked too."""
    return _masked(g, bool(g.attr("is_causal", 0)), g["nonpad_kv_seqlen"], stage_with_lengths=True)
