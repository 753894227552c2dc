"""Matrix products of plain tensors."""

from __future__ import annotations

from typing import Any

from harness.spec import Call, Draw, Slotted, T
from suites.semantics import linear as s
from suites.tflite import op
from suites.tflite.codecs import fused, later, nan_activation


class Rows(Slotted):
    """The input as rows of the filter's depth; with keep_num_dims its own axes stay."""

    def __init__(self) -> None:
        super().__init__("input")

    def decode(self, call: Call) -> Any:
        x = call.inputs["input"]
        return x if call.attr("keep_num_dims", False) else x.reshape(-1, call.inputs["filter"].shape[-1])


def draw_rows(d: Draw) -> dict[str, Any]:
    """keep_num_dims and an absent bias only where the version has them."""
    i, o = d.pick((1, 2, 3, 5, 8, 16, 33)), d.pick((1, 2, 3, 4, 7, 16))
    lead = d.part(1, 3, 1)
    out: dict[str, Any] = {"input": T((*lead, i)), "filter": T((o, i))}
    if not later(d, "keep_num_dims") and d.bool():
        out["keep_num_dims"] = True
    if later(d, "no_bias") or d.bool():
        out["bias"] = T((o,))
    return out


op("FULLY_CONNECTED", s.linear, x=Rows(), w="filter", b="bias", draw=draw_rows, out=fused(), tags=("fused",),
   ambiguous=nan_activation(s.linear))  # fmt: skip
op("BATCH_MATMUL", s.matmul, transpose_x="adj_x", transpose_y="adj_y", ranks=(2, 5), ambiguous=nan_activation(s.matmul))
