"""Backends that run ONNX graphs of a few ops by the reference, and do one thing wrong on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

import suites.onnx
from suites.onnx import parse


class Right:
    """No fault."""

    name = "graphs-right"
    formats = ("onnx",)

    def version(self) -> str:
        return "1"

    def load(self, model: bytes, format: str) -> Any:
        return model, [(n.op, n.outputs) for n in parse.parse(model).nodes], parse.parse(model).outputs

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        model, nodes, outputs = handle
        results = suites.onnx.run_model(model, inputs)
        return {o: self.spoilt(x, [op for op, _ in nodes]) for o, x in zip(outputs, results)}

    def spoilt(self, x: Any, ops: list[str]) -> Any:
        """The answer for an output of a model of these ops."""
        return x


class OneOp(Right):
    """A model with a Neg has its outputs shifted."""

    name = "graphs-one-op"

    def spoilt(self, x: Any, ops: list[str]) -> Any:
        return x + np.float32(1) if "Neg" in ops and x.dtype == np.float32 else x


class TwoOps(Right):
    """A model in which a Relu stands somewhere behind an Add has its outputs shifted, as by a wrong fusion."""

    name = "graphs-two-ops"

    def spoilt(self, x: Any, ops: list[str]) -> Any:
        wrong = "Add" in ops and "Relu" in ops[ops.index("Add") :]
        return x + np.float32(1) if wrong and x.dtype == np.float32 else x
