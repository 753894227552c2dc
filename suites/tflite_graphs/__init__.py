"""Random graphs of TFLite's builtin operators, without quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, of
from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from harness.declare import OpVersion
from suites.graphs import GraphDialect, Kind
from suites.tflite import dialect as tflite
from suites.tflite.builder import build_graph
from suites.tflite.notation import function
from suites.tflite.shapes import BY_DATA

TYPES = (*(F32,) * 20, I32, I32, I64)
FURTHER = (F64, F16, BF16, I8, U8, I16, U16, U32, U64, BOOL)
KINDS = {
    "small": Kind((3, 5), TYPES, further=FURTHER),
    "medium": Kind((6, 10), TYPES, further=FURTHER),
    "large": Kind((11, 15), TYPES, further=FURTHER),
}
ELEMENTS = ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool")


def whole(inst: Instance) -> Graph:
    """The graph with its inputs."""
    g: Graph = inst.attrs["program"]
    return replace(g, inputs=[(f"p{i}", a) for i, a in enumerate(inst.tensors("inputs"))])


class TfLiteGraphs(GraphDialect):
    name = "tflite-graphs"
    title = "Random graphs of TFLite operators"
    format = "tflite"
    opsets = tflite.opsets
    extension = ".tflite"

    def leave(self, version: OpVersion) -> bool:
        """Operators with states, custom ones, and those whose results have another shape for other data: the models
        declare all shapes.  BITCAST: no bound holds for the single bytes of a float that may be off."""
        extra = version.schema.extra
        return bool(extra.get("states") or extra.get("custom")) or version.op in BY_DATA or version.op == "BITCAST"

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        g = whole(self.alone(instances))
        heads: list[tuple[str, str, int | None]] = [(n, "inputs", i) for i, (n, _) in enumerate(g.inputs)]
        return Model("tflite", build_graph(g), [heads], [list(g.outputs)])

    def notation(self, inst: Instance) -> str:
        g = whole(inst)
        told = [f"// %{n}: {of(c)}{list(c.shape)} {c.ravel()[:16].tolist()}" for n, c in g.consts.items()]
        return "\n".join([*told, *function("main", replace(g, consts={}))])


dialect = TfLiteGraphs("suites.tflite_graphs", tflite, KINDS, ELEMENTS)
