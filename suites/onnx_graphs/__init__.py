"""Random graphs of ONNX ops, at one opset each."""

from __future__ import annotations

from harness.core.dtypes import BF16, F16, F32, F64, I32, I64
from harness.declare import OpVersion
from suites.graphs import GraphDialect, Kind
from suites.onnx import dialect as onnx
from suites.rewrites.written import OnnxPrograms

TYPES = (*(F32,) * 24, F64, F64, F16, F16, I32, I64, I64, BF16)
BY_DATA = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression"})
KINDS = {
    "small": Kind((3, 5), TYPES, BY_DATA),
    "medium": Kind((6, 10), TYPES, BY_DATA),
    "large": Kind((11, 15), TYPES, BY_DATA),
}
ELEMENTS = ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool")


class OnnxGraphs(OnnxPrograms, GraphDialect):
    name = "onnx-graphs"
    title = "Random graphs of ONNX ops"
    opsets = tuple(o for o in onnx.opsets if o >= 7)

    def leave(self, version: OpVersion) -> bool:
        """Constants, which are drawn as such, and BitCast: no bound holds for the parts of a float that may be off."""
        return version.op in ("Constant", "BitCast")


dialect = OnnxGraphs("suites.onnx_graphs", onnx, KINDS, ELEMENTS)
