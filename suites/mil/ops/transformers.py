"""Attention (iOS 18)."""

from __future__ import annotations

from suites.mil import op
from suites.semantics import attention as s

op(
    "scaled_dot_product_attention",
    s.scaled_dot_product_attention,
    q="query",
    k="key",
    v="value",
    mask="attn_mask",
    ranks=(3, 5),
)
