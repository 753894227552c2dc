"""Random graphs of MIL ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.dtypes import BOOL, BY_NAME, F16, F32, I8, I16, I32, U8, U16, DType
from harness.core.instance import Graph, Instance, Node
from harness.core.outcome import Model
from harness.declare import OpVersion
from suites.graphs import GraphDialect, Kind
from suites.mil import dialect as mil
from suites.mil import notation
from suites.mil.builder import Writer, letter_types

TYPES = (*(F32,) * 12, F16, F16, I32)
FURTHER = (I8, U8, I16, U16, BOOL)
BY_DATA = frozenset({"non_zero", "non_maximum_suppression", "range_1d"})
KINDS = {"graph": Kind((3, 15), TYPES, BY_DATA, scalar_inputs=False, further=FURTHER)}  # one, since coremltools is slow
# u32 is an element type of resize's shape alone, and what a shape follows from is a constant of a graph
ELEMENTS = ("f32", "f16", "i8", "u8", "i16", "u16", "i32", "bool")
LETTERS = "@types"  # attribute of a node: the element type of each type letter, which its parameters are written in


class _Writer(Writer):
    """Writes the parameters of each node in the types that its instance had."""

    def node_types(self, node: Node) -> dict[str, DType]:
        return {k: BY_NAME[v] for k, v in node.attrs.get(LETTERS, {}).items()}


class MilGraphs(GraphDialect):
    name = "mil-graphs"
    title = "Random graphs of MIL ops"
    format = "mil"
    opsets = mil.opsets
    extension = ".milp"
    max_rank = 5
    of_shapes = ("shape",)

    def marker(self, opset: Any) -> str:
        return f"opset_{self.name}_{opset}"

    def leave(self, version: OpVersion) -> bool:
        """Constants, which a graph has without an op."""
        return version.op.startswith(("constexpr", "const"))

    def node_attrs(self, version: OpVersion, inst: Instance) -> dict[str, Any]:
        types = letter_types(version.schema, inst)
        return {LETTERS: {k: d.name for k, d in types.items()}} if types else {}

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        inst = self.alone(instances)
        g: Graph = inst.attrs["program"]
        w = _Writer(lambda op, at: mil.effective(op, at).schema, str(inst.opset))
        heads: list[tuple[str, str, int | None]] = []
        for i, a in enumerate(inst.tensors("inputs")):
            w.prog.inputs.append([f"p{i}", a.dtype.name, list(a.shape), "tensor"])
            heads.append((f"p{i}", "inputs", i))
        w.prog.ops = w.block(g, {})["ops"]
        w.prog.outputs = list(g.outputs)
        return Model("mil", w.prog.dumps(), [heads], [list(g.outputs)])

    def notation(self, inst: Instance) -> str:
        return notation.program(inst.attrs["program"], inst.tensors("inputs"), inst.opset)


dialect = MilGraphs("suites.mil_graphs", mil, KINDS, ELEMENTS)
