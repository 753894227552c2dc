"""How ONNX programs of several ops are written down, for every dialect of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.instance import Instance
from harness.core.outcome import Model
from harness.declare import Results
from suites.programs import ProgramDialect
from suites.rewrites.build import build, text


class OnnxPrograms(ProgramDialect):
    """Models of one program, with the outputs that the reference says."""

    format = "onnx"
    extension = ".onnx"
    declares_results = True

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return self.build_declared(instances, arrays, ())

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        return build(self.alone(instances), results[0] if results else ())

    def notation(self, inst: Instance) -> str:
        return text(inst)
