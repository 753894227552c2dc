"""What comes where a difference is listed (``harness/run/defects.py``): ONNX Runtime before 1.32."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.run.defects import Given, Near


def ort_f16_gemm(g: Given) -> list[Any]:
    """Every product and every sum is rounded to f16, alpha and beta too; what goes beyond its range stays there."""
    e, alpha, beta = g.expected[0], abs(g.attr("alpha", 1.0)), abs(g.attr("beta", 1.0))
    a, b, c = (np.abs(np.asarray(0 if g[k] is None else g[k], np.float64)) for k in "ABC")
    a, b = a.T if g.attr("transA", 0) else a, b.T if g.attr("transB", 0) else b
    whole = max(alpha, 1) * (a @ b) + beta * c
    within = (a.shape[1] + 4) * (2.0**-11 * whole + 2.0**-25 * max(alpha, 1))
    return [Near(e.wide, np.where(whole <= 65504, within, np.inf))]


def ort_causal_from_the_first(g: Given) -> list[Any] | None:
    """The causal mask lets query i see the keys up to i, however many of them the lengths leave; what is masked is the
    lowest number, so that a row that sees nothing is the mean of all."""
    n, total, mask = g["Q"].shape[-2], g["K"].shape[-2], g["attn_mask"]
    seen = np.tri(n, total, dtype=bool)
    valid = np.arange(total) < np.reshape(g["nonpad_kv_seqlen"], (-1, 1, 1, 1))
    whole = np.zeros((1, total))
    if mask is not None:
        whole = np.full((*mask.shape[:-1], total), -np.inf)
        bias = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        whole[..., : mask.shape[-1]] = bias[..., :total]
    whole = np.where(seen & valid, whole, -np.inf)
    if np.isneginf(whole).all(-1).any():
        whole = np.maximum(whole, -1e30)
        return g.again({"is_causal": None}, {"attn_mask": whole, "nonpad_kv_seqlen": None})
    return g.again({"is_causal": None}, {"attn_mask": whole})
