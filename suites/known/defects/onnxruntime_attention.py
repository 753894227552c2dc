"""What comes where a difference is listed (``harness/ledger/defect_models.py``): the body of Attention in ONNX
Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from harness.cases.given import Given
from harness.ledger.defect_models import Near
from suites.known.defects.onnx_readings import bias_of, seen_keys
from suites.semantics.attention import additive, allowed

Array = np.ndarray
Outputs = list[Any] | None

# What the cast of -inf to an integer gives: on x86-64 (of u32 it depends on the place), and where it saturates.
_LOWEST = {"int8": 0, "uint8": 0, "int16": 0, "uint16": 0, "int32": -(2**31), "int64": -(2**63)}
_X86 = {**_LOWEST, "uint64": 2**63}
_SATURATED = {**_LOWEST, "uint32": 0, "uint64": 0}
_HUGE = 2.0**20  # beyond it a term swallows bits of the score that it is added to


def _bias(g: Given, low: int) -> Array:
    """The terms in the type of the mask: what ends early is filled up with ``low``, and where the causal mask, a window
    or the lengths leave a key out it is added, wrapping."""
    mask, rows, past, lengths = np.atleast_1d(g["attn_mask"]), g["Q"].shape[-2], g["past_key"], g["nonpad_kv_seqlen"]
    keys = g["K"].shape[-2] + (0 if past is None else past.shape[2])
    offset: Any = 0 if past is None else past.shape[2]
    if past is None and lengths is not None:
        offset = lengths - rows
    left, right = (int(g.attr(f"{side}_window_size", -1)) for side in ("left", "right"))
    seen = [
        allowed(rows, keys, offset, bool(g.attr("is_causal", 0)), -1, -1),
        allowed(rows, keys, offset, False, left, right),
        None if lengths is None else np.arange(keys) < lengths.reshape(-1, 1, 1, 1),
    ]
    ends = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1] if mask.shape[-1] > 1 else 0)]
    bias: Array = np.pad(mask, ends, constant_values=low)
    for ok in seen:
        if ok is not None:
            bias = bias + np.where(ok, 0, low).astype(mask.dtype)
    return bias


def body_scale(g: Given) -> float:
    """Queries and keys are multiplied with its root, in f32."""
    size = g["Q"].shape[-1] if g["Q"].ndim == 4 else g["Q"].shape[-1] // g.attr("q_num_heads")
    given = np.float32(1) / np.sqrt(np.float32(size)) if g.attr("scale") is None else np.float32(g.attr("scale"))
    return float(np.sqrt(given)) ** 2


def attention_scaled_in_f32(g: Given) -> Outputs:
    """f64 goes through the function body, in which the root of the scale is f32."""
    return g.reevaluate({"scale": body_scale(g)})


def _attended(g: Given, lowest: dict[str, int]) -> Outputs:
    """Attention with these terms, f16 computed in f32 without a cast between two steps.  Where the largest term of a
    row is huge, scores vanish in the sum."""
    mask, q = g["attn_mask"], g["Q"]
    if mask.dtype.name not in lowest:
        return None
    types = q.dtype, getattr(g.attr("softmax_precision"), "np", q.dtype)
    kind, stage = (np.dtype(np.float32) if t == np.float16 else np.dtype(t) for t in types)
    bias = _bias(g, lowest[mask.dtype.name]).astype(kind).astype(np.float64)
    plain: dict[str, Any] = {
        "is_causal": None,
        "left_window_size": None,
        "right_window_size": None,
        "scale": body_scale(g),
    }
    inputs: dict[str, Any] = {"attn_mask": bias, "nonpad_kv_seqlen": None}
    told = g.reevaluate(plain, inputs, outs=4)
    scores = g.reevaluate({**plain, "qk_matmul_output_mode": 1}, {**inputs, "attn_mask": None}, outs=4)
    if told is None or scores is None:
        return None
    capped, off = scores[3].real, scores[3].error.bound(scores[3].context())
    bias = np.broadcast_to(bias, capped.shape)
    top = bias.max(-1, keepdims=True)
    huge = np.isfinite(top) & (np.abs(top) >= _HUGE)
    if huge.any():
        steps = [(capped + d + bias).astype(kind).astype(stage).astype(np.float64) for d in (0, -off, off)]
        unsure = (np.diff(steps, axis=0) != 0).any((0, -1))[..., None]
        e = np.exp(steps[0] - steps[0].max(-1, keepdims=True))
        weights = e / e.sum(-1, keepdims=True)
        values = np.repeat(told[2].value.astype(np.float64), capped.shape[1] // told[2].value.shape[1], axis=1)
        unit = capped.shape[-1] * 16 * max(float(ml_dtypes.finfo(t).eps) for t in (q.dtype, stage))
        within = unit * (weights @ np.abs(values)) + 1e-37 * np.abs(values).max(initial=0)  # weights may underflow
        told[0] = _rows(told[0], huge, weights @ values, np.where(unsure, np.inf, within))
        if g.attr("qk_matmul_output_mode", 0) == 3:
            told[3] = _rows(told[3], huge, weights, np.where(unsure, np.inf, unit * weights + 1e-37))
    return [None if e.value is None else t for t, e in zip(told, g.expected)]


def _rows(e: Any, huge: Array, value: Array, within: Array) -> Any:
    """An output with other values, and errors, in some rows of [batch, heads, rows, size]."""
    within = np.where(np.isnan(value), 0.0, within)
    mine = [value, within, np.broadcast_to(huge, value.shape)]
    if e.value.ndim == 3:
        mine = [m.transpose(0, 2, 1, 3).reshape(e.value.shape) for m in mine]
    value, within, there = mine
    return Near(np.where(there, value, e.value), np.where(there, within, e.error.bound(e.context())))


def attention_by_integers(g: Given) -> Outputs:
    """A mask of integers goes through the function body, in which -inf is cast to its type: as x86-64 does."""
    return _attended(g, _X86)


def attention_by_integers_saturated(g: Given) -> Outputs:
    """As conversions of Arm do."""
    return _attended(g, _SATURATED)


def _body_of_1_23(g: Given, moved: bool) -> Outputs:
    rows = g["Q"].shape[-2]
    parts, attrs = [g[n] for n in ("Q", "K", "V")], dict.fromkeys(("q_num_heads", "kv_num_heads", "is_causal"))
    if g["Q"].ndim == 3:
        counts = [g.attr("q_num_heads"), *[g.attr("kv_num_heads")] * 2]
        parts = [x.reshape(len(x), n, x.shape[1], -1) for x, n in zip(parts, counts)]
    q, k, v = parts
    if g["past_key"] is not None:
        k, v = np.concatenate([g["past_key"], k], 2), np.concatenate([g["past_value"], v], 2)
    k, v = (np.tile(x, (1, q.shape[1] // x.shape[1], 1, 1)) for x in (k, v))
    mask = g["attn_mask"]
    bias: Any = np.zeros((1, k.shape[2])) if mask is None else additive(mask, k.shape[2])
    if g.attr("is_causal", 0):
        bias = bias + np.where(np.arange(k.shape[2]) <= np.arange(rows)[:, None], 0, -np.inf)
    inputs = {"Q": q, "K": k, "V": v, "past_key": None, "past_value": None}
    masks = None if mask is None and not g.attr("is_causal", 0) else bias.astype(q.dtype)
    told = g.reevaluate({**attrs, "scale": body_scale(g)}, {**inputs, "attn_mask": masks}, outs=4)
    if told is None:
        return None
    y, within = told[0].value, told[0].error.bound(told[0].context())
    within = within + 1e-7 * np.abs(v).max(initial=0)  # 1e-7: the scale is one of f32
    if g["Q"].ndim == 3:
        y, within = (x.swapaxes(1, 2) if moved else x for x in (y, within))
        y, within = (x.reshape(g.expected[0].value.shape) for x in (y, within))
    else:
        y, within = np.squeeze(y), np.squeeze(within)
    return [Near(y, within), *[None] * (len(g.expected) - 1)][:3] + told[3 : len(g.expected)]


def attention_body_of_1_23(g: Given) -> Outputs:
    """The function body in 1.23: key heads are repeated in turn, the causal mask does not count the past, operands of
    three axes are split into heads without moving the axis of heads, and extents of 1 are squeezed away."""
    return _body_of_1_23(g, False)


def attention_body_of_1_23_moved(g: Given) -> Outputs:
    """The same where the heads of the result are moved."""
    return _body_of_1_23(g, True)


def _causal_from(g: Given, offset: Any) -> Outputs:
    """Attention whose causal mask begins at an offset; of a row that sees no key, NaN too."""
    mask, seen = g["attn_mask"], seen_keys(g, offset)
    bias = (0.0 if mask is None else additive(mask, seen.shape[-1])) + np.where(seen, 0, -np.inf)
    plain: dict[str, Any] = {"is_causal": None, "left_window_size": None, "right_window_size": None}
    if g["Q"].dtype == np.float64 or (mask is not None and mask.dtype not in (np.bool_, g["Q"].dtype)):
        plain["scale"] = body_scale(g)
    told = g.reevaluate(plain, {"attn_mask": bias, "nonpad_kv_seqlen": None}, outs=4)
    if told is None:
        return None
    blind = np.broadcast_to(np.isneginf(bias).all(-1, keepdims=True), (*told[3].value.shape[:3], 1))
    out: list[Any] = told[: len(g.expected)]
    for i in (0, 3) if len(out) > 3 else (0,):
        value, none = told[i].value, blind
        if value.ndim == 3:
            none = np.repeat(blind.transpose(0, 2, 1, 3), value.shape[2] // blind.shape[1], 3).reshape(value.shape)
        within = told[i].error.bound(told[i].context())
        out[i] = Near(value, within, np.where(none, np.nan, value).astype(value.dtype))
    return out


def attention_begins_at_the_first_key(g: Given) -> Outputs:
    """The causal mask begins at the first key, whatever the lengths say."""
    return _causal_from(g, 0)


def attention_offset_from_0(g: Given) -> Outputs:
    """Where there are more queries than valid keys the causal mask begins at the first key."""
    return _causal_from(g, np.maximum(g["nonpad_kv_seqlen"] - g["Q"].shape[-2], 0))


def lowest_for_masked(g: Given) -> Outputs:
    """The lowest finite number where the fourth output, the scores with the mask, is -inf; in f16 the sum of
    the capped score with it may be."""
    e = g.expected[3]
    plain = dict.fromkeys(("is_causal", "left_window_size", "right_window_size"))
    scores = g.reevaluate({**plain, "qk_matmul_output_mode": 1}, {"attn_mask": None, "nonpad_kv_seqlen": None}, outs=4)
    if scores is None:
        return None
    capped, off = np.asarray(scores[3].wide, np.float64), scores[3].error.bound(scores[3].context())
    masked, lowest = np.isneginf(e.value.astype(np.float64)), float(ml_dtypes.finfo(e.value.dtype).min)
    low, value, high = (np.maximum(lowest, lowest + capped + d).astype(e.value.dtype) for d in (-off, 0, off))
    unsure = np.where(low != high, np.abs(high.astype(np.float64) - lowest), 0)
    within = np.where(masked, unsure, e.error.bound(e.context()))
    lost, shown = (np.where(masked, v, e.value).astype(e.value.dtype) for v in (lowest, value))
    return [None, None, None, Near(lost, within, shown)]


def ort_keys_for_values(g: Given) -> Outputs:
    """Attention of nothing: Y has the keys for its last axis."""
    keys = g["K"].shape[2] + (0 if g["past_key"] is None else g["past_key"].shape[2])
    return [np.zeros((*g["Q"].shape[:3], keys), g["Q"].dtype), *[None] * (len(g.expected) - 1)]


def nan_beside_masked_keys(g: Given) -> Outputs:
    """The largest bias of a row passes NaN over, unless it comes first: a row of NaN and -inf alone may be taken for
    one without keys."""
    bias = bias_of(g)
    if bias is None or not np.isnan(bias).any():
        return None
    blind = (np.isnan(bias) | np.isneginf(bias)).all(-1, keepdims=True) & np.isneginf(bias).any(-1, keepdims=True)
    told = g.reevaluate({"scale": body_scale(g)}, {"attn_mask": np.where(blind, -np.inf, bias)})
    if told is None:
        return None
    asked = zip(told, g.expected)  # of which some may be left out
    return [None if e.value is None else Near(t.value, t.error.bound(t.context()), e.value) for t, e in asked]
