"""Random graphs of ONNX ops, at one opset each."""

from __future__ import annotations

from harness.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64
from harness.declare import OpVersion
from suites.graphs import GraphDialect, Kind
from suites.onnx import dialect as onnx
from suites.rewrites.written import OnnxPrograms

TYPES = (*(F32,) * 24, F64, F64, F16, F16, I32, I64, I64, BF16)
FURTHER = (I8, U8, I16, U16, U32, U64, BOOL)
BY_DATA = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression"})
KINDS = {
    "small": Kind((3, 5), TYPES, BY_DATA, further=FURTHER),
    "medium": Kind((6, 10), TYPES, BY_DATA, further=FURTHER),
    "large": Kind((11, 15), TYPES, BY_DATA, further=FURTHER),
}
ELEMENTS = ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool")


class OnnxGraphs(OnnxPrograms, GraphDialect):
    name = "onnx-graphs"
    title = "Random graphs of ONNX ops"
    opsets = tuple(o for o in onnx.opsets if o >= 7)
    made_types = (
        *("i4", "u4", "i2", "u2", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"),
        *("f6e2m3", "f6e3m2"),
    )

    def leave(self, version: OpVersion) -> bool:
        """Constants, which are drawn as such, and BitCast: no bound holds for the parts of a float that may be off."""
        return version.op in ("Constant", "BitCast")


dialect = OnnxGraphs("suites.onnx_graphs", onnx, KINDS, ELEMENTS)
