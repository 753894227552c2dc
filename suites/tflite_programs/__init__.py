"""TFLite programs of several ops: fused activations, quantised chains, borders between a delegate and the kernels.

An instance is a whole program.  Its nodes are judged by what the declared ops of the TFLite dialect mean, one by one:
each value of a quantised chain is rounded to its own scale.  Versions are 1 throughout: what is tested has no version
of its own, the runtime's release has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from harness.declare import Draw, OpSchema, OpVersion, Results
from harness.declare.interpreter import Watch
from suites.graphs.reduce import smaller
from suites.programs import MOST, Make, ProgramDialect, Unfolded, program_schema
from suites.tflite import dialect as tflite
from suites.tflite_programs.build import build, text
from suites.tflite_programs.program import LANGUAGE, quantised_inputs
from suites.tflite_programs.words import WORDS

TYPES = {"T": ("f32", "i8", "u8", "i16", "i32", "bool")}


class TflitePrograms(ProgramDialect):
    name = "tflite-programs"
    title = "TFLite programs of several ops"
    format = "tflite"
    opsets = (1,)
    extension = ".tflite"
    declares_results = True
    asks_nodes = True
    max_rank = 5

    def __init__(self, package: str) -> None:
        super().__init__(package, LANGUAGE, WORDS)
        self._names: list[str] = []

    def declare(self, name: str, *makes: Make, source: str) -> None:
        """An entry: programs of one kind, drawn evenly.  source: where it is stated what a runtime may do with them."""
        self._names.append(name)
        self.programs(name, makes, tuple(self.language.tolerance(k) for k in range(MOST)), source)

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return [program_schema(name, 1, 1, TYPES) for name in self._names]

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Inputs carry the scales that the program states of them."""
        return quantised_inputs(inst)

    def unfold(self, inst: Instance, arrays: dict[str, Any]) -> Unfolded:
        return Unfolded(self.language, inst, arrays, smaller, sums_errors=True)

    def misquantised(self, a: Any) -> str | None:
        return tflite.misquantised(a)

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return build(self.alone(instances))

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        return build(self.alone(instances))

    def notation(self, inst: Instance) -> str:
        return text(inst)

    def parse(self, data: Any) -> Graph:
        return tflite.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        return tflite.run_model(model, inputs, watch)


dialect = TflitePrograms("suites.tflite_programs")
declare = dialect.declare
__all__ = ["declare", "dialect"]
