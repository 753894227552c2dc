"""Attention and what goes with it."""

from __future__ import annotations

from harness.spec import Draw
from suites.onnx import op
from suites.onnx.codecs import ToType
from suites.semantics import attention as s


def _outs(d: Draw, values: dict) -> int:
    """The updated caches come with the old ones."""
    return d.pick((3, 4)) if values.get("past_k") is not None else 1


op("Attention", s.attention, q="Q", k="K", v="V", mask="attn_mask", past_k="past_key", past_v="past_value",
   lengths="nonpad_kv_seqlen", causal="is_causal", q_heads="q_num_heads", kv_heads="kv_num_heads",
   qk_mode="qk_matmul_output_mode", softmax_type=ToType("softmax_precision"), left="left_window_size",
   right="right_window_size", outs=_outs)  # fmt: skip
