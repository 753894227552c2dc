"""What ONNX calls the ops that respelling a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, DType
from suites.onnx import schemas
from suites.programs.respell import View, Words


class _Onnx(Words):
    commutative = frozenset({"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean"})
    ordered = frozenset({"Sub", "Div", "Pow", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "PRelu", "Where"})
    reshape = ("Reshape", "data", "shape")
    keepdims = "keepdims"
    inserts_axes = frozenset({"Unsqueeze"})
    perms = {"": "perm"}  # Transpose-13, perm: nothing states that a value may be negative
    floats = (F32, F16, F64)
    arithmetic = ("Add", "Mul", "Sub")
    extremes = ("Max", "Min")
    integers = (I32, I64)
    types = (BOOL, BOOL, I8, U8, I16, U16, I32, U32, I64, F32, F64, F16)
    zero = True

    def slots(self, v: View, op: str) -> tuple[str, str] | None:
        if op not in self.commutative and op not in self.ordered:
            return None
        schema = schemas.effective(op, int(v.opset))
        assert schema is not None
        names = [s.name for s in schema.inputs]
        return (names[0], names[0]) if len(names) == 1 else (names[-2], names[-1])  # of Where the last two

    def identity(self, v: View, at: int, x: str) -> str:
        return v.node(at, "Identity", {"input": x})

    def cast(self, v: View, at: int, x: str, dtype: DType) -> str:
        return v.node(at, "Cast", {"input": x}, {"to": dtype})

    def transpose(self, v: View, at: int, x: str, perm: Sequence[int]) -> str:
        return v.node(at, "Transpose", {"data": x}, {"perm": list(perm)})

    def reshaped(self, v: View, at: int, x: str, shape: Sequence[int]) -> str:
        return v.node(at, "Reshape", {"data": x, "shape": v.const(self.shape_of(shape))})

    def masked(self, v: View, at: int, x: str, mask: str) -> str:
        zero = v.const(np.zeros((), v.values[x].dtype.np))
        return v.node(at, "Where", {"condition": mask, "X": x, "Y": zero})

    def total(self, v: View, at: int, x: str, axes: np.ndarray, keep: bool) -> str:
        slots = {"data": x, "axes": v.const(axes.astype(np.int64))}
        return v.node(at, "ReduceSum", slots, {"keepdims": int(keep)})

    def second(self, v: View, at: int, x: str) -> str:
        kind = v.values[x].dtype.kind
        return v.node(at, "Neg", {"X": x}) if kind == "f" else self.identity(v, at, x)

    def valid(self, v: View) -> bool:
        """A pool over all of an image has one: "the dimensions are in the form of (N x C x D1 x D2 ... Dn)"
        (GlobalAveragePool-1)."""
        return all(len(v.values[n.value("X")].shape) > 2 for n in v.g.nodes if n.op == "GlobalAveragePool")

    def open(self, v: View, name: str, axes: Sequence[int]) -> None:
        opened: dict[str, Any] = v.g.meta.setdefault("open", {})
        opened[name] = sorted({*opened.get(name, ()), *axes})

    def forget(self, v: View, name: str) -> None:
        v.g.meta.get("open", {}).pop(name, None)


WORDS = _Onnx()
