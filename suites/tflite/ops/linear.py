"""Matrix products of plain tensors."""

from __future__ import annotations

import math
from typing import Any

from harness.declare import Call, Checks, Draw, Sampling, Slotted, Spelling, T
from suites.semantics import linear as s
from suites.tflite import op
from suites.tflite.codecs import fused, later, nan_activation
from suites.tflite.ops.sparse import draw_sparse


class Rows(Slotted):
    """The input as rows of the filter's depth; with keep_num_dims its own axes stay.

    Source: NNAPI FULLY_CONNECTED: the rows are as many as elements divided by the depth; fully_connected.cc, Prepare:
    where the filter has no depth, they are as many as the axes before the last one hold."""

    def __init__(self) -> None:
        super().__init__("input")

    def decode(self, call: Call) -> Any:
        x, depth = call.inputs["input"], call.inputs["filter"].shape[-1]
        if call.attr("keep_num_dims", False):
            return x
        return x.reshape(-1 if depth else math.prod(x.shape[:-1]), depth)


def sparse_rows(d: Draw, out: dict[str, Any]) -> None:
    """Weights kept sparse: rows dense, columns compressed, by single elements or blocks of 1 x 4."""
    block = {1: 4} if d.bool() else {}
    rows, columns = d.int(1, 4), d.int(1, 5) * (4 if block else 1)
    order, csr = ([0, 1, 2], [False, True, False]) if block else ([0, 1], [False, True])
    out["filter"], layout = draw_sparse(d, d.types["W"], (rows, columns), block, order, csr)
    out["@sparsity"] = {"filter": layout}
    out["input"] = T((*out["input"].shape[:-1], columns))


def depths(d: Draw) -> tuple[int, int]:
    """Depth of the input and of the result; one in 32 times the latter is beyond what 7 or 8 bits count."""
    i, o = d.pick((1, 2, 3, 5, 8, 16, 33)), d.pick((1, 2, 3, 4, 7, 16))
    return i, d.pick((130, 260)) if d.chance(32) else o


def extents(d: Draw) -> tuple[tuple[int, ...], int, int, bool]:
    """Leading axes of the input, its depth, that of the result, and keep_num_dims where the version has it."""
    i, o = depths(d)
    lead = d.part(1, 3, 1) if d.int(0, 3) else tuple(d.pick((1, 1, 2, 3)) for _ in range(d.int(4, 6)))
    lead = () if d.chance(24) else lead
    keep = not later(d, "keep_num_dims") and d.bool()
    if d.empty:
        how = d.int(0, 2)
        if how == 0:
            o = 0
        elif how == 1:
            i = 0
        elif lead:
            at = d.int(0, len(lead) - 1)
            lead = (*lead[:at], 0, *lead[at + 1 :])
    return lead, i, o, keep


def draw_rows(d: Draw) -> dict[str, Any]:
    """keep_num_dims and an absent bias only where the version has them."""
    lead, i, o, keep = extents(d)
    out: dict[str, Any] = {"input": T((*lead, i)), "filter": T((o, i))}
    if d.version.schema.domain == "" and not later(d, "sparse") and not d.empty and d.chance(6):
        sparse_rows(d, out)
        i, o = out["filter"].shape[1], out["filter"].shape[0]
    if keep:
        out["keep_num_dims"] = True
    if later(d, "no_bias") or d.bool():
        out["bias"] = T((o,))
    return out


PLAIN_WEIGHTS = {"weights_format": "DEFAULT"}
op(
    "FULLY_CONNECTED",
    s.linear,
    Spelling(x=Rows(), w="filter", b="bias", out=fused()),
    Sampling(draw_rows, tags=("fused",)),
    Checks(only=PLAIN_WEIGHTS, ambiguous=nan_activation(s.linear)),
)
op(
    "BATCH_MATMUL",
    s.matmul,
    Sampling(ranks=(2, 5)),
    Checks(
        ambiguous=nan_activation(s.matmul),
        breaks={"rank-at-least-1": lambda d: d.pick(({"x": T(()), "y": T((2, 2))}, {"x": T((2, 2)), "y": T(())}))},
    ),
    transpose_x="adj_x",
    transpose_y="adj_y",
)
