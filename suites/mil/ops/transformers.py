"""Attention (iOS 18)."""

from __future__ import annotations

from harness.declare import Sampling
from suites.mil import op
from suites.semantics import attention as s

op(
    "scaled_dot_product_attention",
    s.scaled_dot_product_attention,
    Sampling(ranks=(3, 5)),
    q="query",
    k="key",
    v="value",
    mask="attn_mask",
)
