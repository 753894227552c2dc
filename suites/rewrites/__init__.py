"""ONNX programs of several ops, such as optimisers replace by another program: the result is to be the same.

An instance is a whole program; ``pattern`` says which form of it.  Whatever a runtime makes of it (fusing, folding,
moving transposes, quantised kernels in the place of dequantise-compute-quantise), it is judged by what its nodes mean
one by one.  Versions are 1 throughout: what is tested has no version of its own, the runtime's release has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from harness.core.errors import Unsupported
from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from harness.declare import Attr, Dialect, Evaluation, OpSchema, OpVersion, Sampling, Slot
from harness.declare.dialect import Results
from harness.declare.interpreter import Watch
from suites.onnx import dialect as onnx
from suites.rewrites.build import build, text
from suites.rewrites.program import Make, either, error_classes, run

TYPES = {"T": ("f32", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "bool")}
OPSETS = tuple(o for o in onnx.opsets if o >= 13)  # axes of Squeeze and ReduceSum are operands since


class Rewrites(Dialect):
    name = "rewrites"
    title = "ONNX programs that optimisers rewrite"
    format = "onnx"
    opsets = OPSETS
    extension = ".onnx"
    allow_empty = False
    const_chance = 0
    package_size = 1  # an optimiser looks at the whole graph
    declares_results = True
    own = frozenset({"declare"})

    def unsayable_rules(self, version: OpVersion) -> tuple[str, ...]:
        """A program is not a signature: what makes one invalid is the business of the ops in it."""
        return ("required-", "unknown-attribute", "enum:", "type:", "tied-type:")

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.since: dict[str, int] = {}

    def declare(self, name: str, *makes: Make, source: str, integers: bool = False, since: int = OPSETS[0]) -> None:
        """An entry: programs of one kind, drawn evenly.  source: where the rewriting is described.  integers: is the
        first output quantised?  since: the first opset that has all of the ops."""
        self.since[name] = since
        self.op(name, Evaluation(run, error_classes(integers), source), Sampling(either(*makes)))

    @cached_property
    def schemas(self) -> list[OpSchema]:
        slot = (Slot("inputs", "T", False, True),)
        attrs = {"program": Attr("program", "graph", True), "pattern": Attr("pattern", "str", True)}
        return [
            OpSchema(
                name, 1, since, OPSETS[-1], "", False, slot, (Slot("outputs", "T", False, True),), attrs, TYPES, {}
            )
            for name, since in self.since.items()
        ]

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return self.build_declared(instances, arrays, ())

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        if len(instances) != 1:
            raise Unsupported("an optimiser sees a program of its own")
        return build(instances[0], results[0] if results else ())

    def notation(self, inst: Instance) -> str:
        return text(inst)

    def parse(self, data: Any) -> Graph:
        return onnx.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        return onnx.run_model(model, inputs, watch)


dialect = Rewrites("suites.rewrites")
declare = dialect.declare
__all__ = ["declare", "dialect"]
