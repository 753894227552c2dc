"""What TFLite calls the ops that respelling a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I8, I16, I32, U8, DType
from harness.core.errors import UsageError
from suites.programs.respell import View, Words
from suites.tflite import dialect as tflite
from suites.tflite_programs.program import declare_tensors

_BESIDE = ("filter", "bias")  # whose shapes belong to those of other operands


class _Tflite(Words):
    commutative = frozenset({"ADD", "MUL", "MAXIMUM", "MINIMUM", "EQUAL", "NOT_EQUAL", "SQUARED_DIFFERENCE"})
    ordered = frozenset({"SUB", "DIV", "FLOOR_MOD", "FLOOR_DIV", "POW", "LESS", "GREATER"})
    operands = ("lhs", "rhs")
    reshape = ("RESHAPE", "input", "shape")
    keepdims = "keep_dims"
    inserts_axes = frozenset({"PACK", "EXPAND_DIMS"})
    wider = {}
    narrower = {}
    floats = (F32,)
    arithmetic = ("ADD", "MUL", "SUB", "MAXIMUM")
    extremes = ("MAXIMUM", "MINIMUM")
    types = (BOOL, BOOL, I8, U8, I16, I32)
    max_rank = 8
    open_axes = 0
    absent = frozenset(
        {
            "identity",  # no op hands its operand on as it is
            "cast wider and back",
            "cast narrower and back",
            "another element type",
            "extent left open",
            "0 in a shape",
            "-1 in a shape",  # no program has a RESHAPE of its own
        }
    )

    def identity(self, v: View, at: int, x: str) -> str:
        return self.reshaped(v, at, x, v.values[x].shape)

    def transpose(self, v: View, at: int, x: str, perm: Sequence[int]) -> str:
        return self._alike(v, at, "TRANSPOSE", x, {"input": x, "perm": v.const(self.shape_of(perm))})

    def reshaped(self, v: View, at: int, x: str, shape: Sequence[int]) -> str:
        return self._alike(v, at, "RESHAPE", x, {"input": x, "shape": v.const(self.shape_of(shape))})

    def second(self, v: View, at: int, x: str) -> str:
        if _quant(v, x) is None and v.values[x].dtype is F32:
            return self._alike(v, at, "NEG", x, {"x": x})
        return self.identity(v, at, x)

    def takes_op(self, v: View, name: str) -> bool:
        """Quantised values have a scale, which an op would have to state."""
        return _quant(v, name) is None and v.values[name].dtype in (F32, I32)

    def binary(self, v: View, at: int, op: str, x: str, y: str) -> str:
        known = x if x in v.values or x in v.g.meta["tensors"] else y  # one may be a new input
        return self._alike(v, at, op, known, {"lhs": x, "rhs": y})

    def cast(self, v: View, at: int, x: str, dtype: DType) -> str:
        name = v.node(at, "CAST", {"input": x})
        v.g.nodes[at].version = tflite.effective("CAST", 1, "").version
        v.g.meta["tensors"][name] = {"dtype": dtype}
        return name

    def masked(self, v: View, at: int, x: str, mask: str) -> str:
        zero = v.const(np.zeros((), v.values[x].dtype.np))
        return self._alike(v, at, "SELECT_V2", x, {"condition": mask, "x": x, "y": zero})

    def total(self, v: View, at: int, x: str, axes: np.ndarray, keep: bool) -> str:
        name = self._alike(v, at, "SUM", x, {"input": x, "axes": v.const(axes.astype(np.int32))})
        v.g.nodes[at].attrs["keep_dims"] = keep
        return name

    def _alike(self, v: View, at: int, op: str, x: str, slots: dict[str, Any]) -> str:
        """A node whose result has the scale of its operand."""
        quant, told = _quant(v, x), v.g.meta["tensors"]
        domain = "quantised" if quant else ""
        dtype = told[x]["dtype"] if x in told else v.values[x].dtype
        name = v.node(at, op, slots, {"@domain": domain} if domain else {})
        v.g.nodes[at].version = tflite.effective(op, 1, domain).version
        told[name] = {"dtype": dtype, **({"quant": quant} if quant else {})}
        return name

    def copied(self, v: View, name: str, new: str) -> None:
        v.g.meta["tensors"][new] = dict(v.g.meta["tensors"][name])

    def forget(self, v: View, name: str) -> None:
        v.g.meta["tensors"].pop(name, None)

    def shape_of(self, value: Sequence[int]) -> np.ndarray:
        return np.array(value, np.int32)

    def fixed(self, v: View, node: int, slot: str) -> bool:
        """Weights, and operands that hold a parameter."""
        n = v.g.nodes[node]
        try:
            schema = tflite.effective(n.op, 1, n.attrs.get("@domain", "")).schema
        except UsageError:
            return True
        found = schema.input(slot)
        return found is None or found.type in ("i32", "I") or slot in _BESIDE

    def movable(self, v: View, node: int, slot: str) -> bool:
        given = v.g.nodes[node].inputs[slot]
        return isinstance(given, str) and _quant(v, given) is None

    def valid(self, v: View) -> bool:
        """The depth multiplier states how often each channel is used (schema.fbs, DepthwiseConv2DOptions)."""
        for n in v.g.nodes:
            if n.op == "DEPTHWISE_CONV_2D":
                x, w = v.values[n.value("input")], v.values[n.value("filter")]
                if x.shape[3] * n.attrs["depth_multiplier"] != w.shape[3]:
                    return False
        return True

    def respelt(self, v: View) -> None:
        """The shapes that the model declares are those of the program as it is now."""
        declare_tensors(v.g, v.inputs)


def _quant(v: View, name: str) -> Any:
    return v.g.meta["tensors"].get(name, {}).get("quant")


WORDS = _Tflite()
__all__ = ["WORDS", "DType"]
