"""What MIL calls the ops that respelling a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F16, F32, I8, I32, U8, DType
from harness.core.errors import UsageError
from suites.mil import dialect as mil
from suites.passes.validity import valid
from suites.programs.respell import View, Words

_MOVABLE = {("matmul", "x"), ("matmul", "y"), ("conv", "bias"), ("concat", "values"), ("stack", "values")}
_NAMES = {F16: "fp16", F32: "fp32"}


def _functions(v: View) -> list[dict[str, Any]]:
    """The inputs whose shapes a pass is told, by function that it is to make."""
    told = v.g.meta.get("options", {}).get("materialize_symbolic_shape_program", {})
    return list(told.get("function_name_to_materialization_map", {}).values())


class _Mil(Words):
    commutative = frozenset(
        {"add", "mul", "maximum", "minimum", "equal", "not_equal", "logical_and", "logical_or", "logical_xor"}
    )
    ordered = frozenset(
        {"sub", "real_div", "floor_div", "mod", "pow", "greater", "greater_equal", "less", "less_equal", "select"}
    )
    operands = ("x", "y")
    reshape = ("reshape", "x", "shape")
    keepdims = "keep_dims"
    inserts_axes = frozenset({"expand_dims", "stack"})
    perms = {"transpose": "perm"}
    wider = {F16: F32}
    narrower = {F32: F16}
    input_rank = 1  # "Rank-0 (input) is unsupported" (coremltools 9.0, Placeholder)
    floats = (F32, F16)
    open_axes = 1  # the first: a type check is to prove the others equal to extents of constants (prelu, conv, linear)
    zero = True
    arithmetic = ("add", "mul", "sub", "maximum")
    extremes = ("maximum", "minimum")
    types = (BOOL, BOOL, I32, I8, U8, F32, F16)
    max_rank = 5
    masks_widen = False  # coremltools' type of select leaves out cond, as mil/select shows (ct-select-shape)

    def slots(self, v: View, op: str) -> tuple[str, str] | None:
        return ("a", "b") if op == "select" else super().slots(v, op)

    def identity(self, v: View, at: int, x: str) -> str:
        return v.node(at, "identity", {"x": x})

    def cast(self, v: View, at: int, x: str, dtype: DType) -> str:
        return v.node(at, "cast", {"x": x, "dtype": v.const(np.array(_NAMES[dtype], object))})

    def transpose(self, v: View, at: int, x: str, perm: Sequence[int]) -> str:
        return v.node(at, "transpose", {"x": x, "perm": v.const(self.shape_of(perm))})

    def reshaped(self, v: View, at: int, x: str, shape: Sequence[int]) -> str:
        return v.node(at, "reshape", {"x": x, "shape": v.const(self.shape_of(shape))})

    def masked(self, v: View, at: int, x: str, mask: str) -> str:
        zero = v.const(np.zeros((), v.values[x].dtype.np))
        return v.node(at, "select", {"cond": mask, "a": x, "b": zero})

    def total(self, v: View, at: int, x: str, axes: np.ndarray, keep: bool) -> str:
        slots = {"x": x, "axes": v.const(axes.astype(np.int32)), "keep_dims": v.const(np.array(keep))}
        return v.node(at, "reduce_sum", slots)

    def second(self, v: View, at: int, x: str) -> str:
        """abs, or identity of what has none."""
        return v.node(at, "abs" if v.values[x].dtype in _NAMES else "identity", {"x": x})

    def shape_of(self, value: Sequence[int]) -> np.ndarray:
        return np.array(value, np.int32)

    def fixed(self, v: View, node: int, slot: str) -> bool:
        """Parameters, and operands that have to be constants; those of ops of other domains."""
        n = v.g.nodes[node]
        try:
            schema = mil.effective(n.op, v.opset).schema
        except UsageError:
            return True
        found = schema.input(slot)
        return found is None or bool(found.const)

    def exposable(self, v: View, name: str) -> bool:
        """No complex values; none whose name, or whose type as an output, the program states.  The caller asks for what
        such a cast takes."""
        casts = v.g.meta.get("casts", ())
        taken = {n.value("x") for n in v.g.nodes if n.outputs[0] in casts}
        return name not in taken and name not in v.g.meta.get("names", ()) and self.extensible(v, name)

    def extensible(self, v: View, name: str) -> bool:
        """No complex values, and none that is cast to the type that the program states of an output."""
        return v.values[name].dtype.kind != "c" and name not in v.g.meta.get("casts", ())

    def exposed(self, v: View) -> None:
        """Nothing is asked of its type."""
        if "output_types" in v.g.meta:
            v.g.meta["output_types"].append(None)

    def movable(self, v: View, node: int, slot: str) -> bool:
        """Operands of elementwise ops and products, and the bias of a convolution; no scalars: a function has no inputs
        of rank 0."""
        n = v.g.nodes[node]
        given = n.inputs[slot]
        scalar = isinstance(given, str) and not v.values[given].shape
        return not scalar and (self.slots(v, n.op) is not None or (n.op, slot) in _MOVABLE)

    def valid(self, v: View) -> bool:
        return valid(v)

    def open(self, v: View, name: str, axes: Sequence[int]) -> None:
        shape = v.values[name].shape
        symbols: dict[str, Any] = v.g.meta.setdefault("symbols", {})
        row = list(symbols.get(name, [""] * len(shape)))
        for k in axes:
            row[k] = row[k] or f"n{shape[k]}"
        symbols[name] = row
        for told in _functions(v):
            told[name] = "@shape"

    def forget(self, v: View, name: str) -> None:
        for told in (v.g.meta.get("symbols", {}), *_functions(v)):
            told.pop(name, None)

    def share(self, v: View, name: str) -> None:
        shared = v.g.meta.setdefault("shared", [])
        if name not in shared and name not in v.g.meta.get("plain", ()):
            shared.append(name)

    def retype(self, v: View, old: DType, new: DType) -> None:
        """Casts name a type by a constant; those stay, so that a program may get a cast that changes nothing."""

    def respelt(self, v: View) -> None:
        """Nothing says whether the pass has still something to do."""
        v.g.meta["fires"] = None


WORDS = _Mil()
