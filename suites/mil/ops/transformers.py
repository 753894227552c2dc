"""Attention (iOS 18)."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import F16, F32
from harness.declare import Checks, Draw, Sampling, T
from suites.mil import op
from suites.semantics import attention as s


def _break_mask(d: Draw) -> dict[str, Any]:
    """A mask of the other float type."""
    here, other = d.shuffle((F16, F32))
    q, k, v = (T((1, 2, 4), dtype=here) for _ in range(3))
    return {"query": q, "key": k, "value": v, "attn_mask": T((1, 2, 2), dtype=other)}


op(
    "scaled_dot_product_attention",
    s.scaled_dot_product_attention,
    Sampling(ranks=(3, 5)),
    Checks(breaks={"mask-kind": _break_mask}),
    q="query",
    k="key",
    v="value",
    mask="attn_mask",
)
