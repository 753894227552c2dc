"""Attention over slices of the queries, from iOS 18 on."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _sliced(d: Draw, long: bool = True) -> dict[str, Any]:
    """min_seq_length at, below or above the number of queries; a divider that need not divide it."""
    p = Program(d, F32)
    name = "scaled_dot_product_attention_sliced_q"
    if d.opset != "ios18":
        more = {name: {"min_seq_length": 0, "seq_length_divider": 2}}
        return p.done(p.op("relu", x=p.input((2, 3, 4))), fires=False, pattern="near miss op set", options=more)
    batch = [d.dim(1, 3) for _ in range(d.int(1, 2))]
    n, m, e = d.int(1, 7), d.int(1, 5), d.dim(1, 4)
    args: dict[str, Any] = {
        "query": p.input((*batch, n, e), "unit"),
        "key": p.input((*batch, m, e), "unit"),
        "value": p.input((*batch, m, d.dim(1, 3)), "unit"),
    }
    mask = d.pick(("none", "added", "boolean", "one row", "per batch"))
    if mask == "boolean":
        seen = (np.arange(n * m).reshape(n, m) * 7 + d.int(0, 5)) % 3 > 0
        seen[:, 0] = True  # a row without any key has no defined result
        args["attn_mask"] = p.const(seen, BOOL)
    elif mask != "none":
        rows = {"added": (n, m), "one row": (1, m), "per batch": (*batch, n, m)}[mask]
        args["attn_mask"] = p.input(rows, "unit")
    least = d.pick((0, n, max(0, n - 1))) if long else n + d.int(1, 3)
    options = {"min_seq_length": least, "seq_length_divider": d.pick((1, 2, 3, 16))}
    y = p.op("scaled_dot_product_attention", **args)
    return p.done(
        p.op("relu", x=y), fires=long, pattern=f"match {mask}" if long else "near miss short", options={name: options}
    )


declare("scaled_dot_product_attention_sliced_q", _sliced, _sliced, lambda d: _sliced(d, False))
