"""ONNX programs of several ops, such as optimisers replace by another program: the result is to be the same.

An instance is a whole program; ``pattern`` says which form of it.  Whatever a runtime makes of it (fusing, folding,
moving transposes, quantised kernels in the place of dequantise-compute-quantise), it is judged by what its nodes mean
one by one.  Versions are 1 throughout: what is tested has no version of its own, the runtime's release has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from harness.core.instance import Graph
from harness.declare import OpSchema
from harness.declare.interpreter import Watch
from suites.onnx import dialect as onnx
from suites.programs import Make, program_schema
from suites.rewrites.program import LANGUAGE, error_classes
from suites.rewrites.words import WORDS
from suites.rewrites.written import OnnxPrograms

TYPES = {"T": ("f32", "f16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "bool")}
OPSETS = tuple(o for o in onnx.opsets if o >= 13)  # axes of Squeeze and ReduceSum are operands since


class Rewrites(OnnxPrograms):
    name = "rewrites"
    title = "ONNX programs that optimisers rewrite"
    opsets = OPSETS
    asks_nodes = True

    def __init__(self, package: str) -> None:
        super().__init__(package, LANGUAGE, WORDS)
        self._since: dict[str, int] = {}

    def declare(self, name: str, *makes: Make, source: str, integers: bool = False, since: int = OPSETS[0]) -> None:
        """An entry: programs of one kind, drawn evenly.  source: where the rewriting is described.  integers: is the
        first output quantised?  since: the first opset that has all of the ops."""
        self._since[name] = since
        self.programs(name, makes, error_classes(integers), source)

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return [program_schema(name, since, OPSETS[-1], TYPES) for name, since in self._since.items()]

    def parse(self, data: Any) -> Graph:
        return onnx.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        return onnx.run_model(model, inputs, watch)


dialect = Rewrites("suites.rewrites")
declare = dialect.declare
__all__ = ["declare", "dialect"]
