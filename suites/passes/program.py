"""Small MIL programs for graph passes: how they are written down and run."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, DType
from harness.core.instance import Graph, Node
from harness.declare import Draw, Expected
from harness.tolerance import ulp
from suites import programs
from suites.mil import dialect as mil
from suites.mil.running import State, settle
from suites.programs import Language, Make

__all__ = ["HEADER", "LANGUAGE", "Make", "Program"]

# What a program's ``meta`` may say to the backend beside ``fires``; see ``harness/backends/coremltools_passes.py``.
HEADER = ("images", "names", "options", "output_types", "function")


class Program(programs.Program):
    """A program under construction: ``p.input``, ``p.op`` give names; what is not a name becomes a constant.  One in
    four has f16 for its floats."""

    def __init__(self, d: Draw, dtype: DType | None = None) -> None:
        super().__init__(d, dtype or (F16 if d.chance(4) else F32))
        self.kind = ""  # what a helper has to say about the program, for its pattern

    def input(  # type: ignore[override]
        self,
        shape: Any,
        recipe: str | None = None,
        dtype: DType | None = None,
        state: bool = False,
        symbols: tuple[str, ...] = (),
    ) -> str:
        """A run-time input.  symbols: one for each axis, "" where the extent is known."""
        name = super().input(shape, recipe, dtype, "state" if state else "tensor")
        if symbols:
            self.g.meta.setdefault("symbols", {})[name] = list(symbols)
        return name

    def literal(self, value: Any) -> np.ndarray:
        """Floats take the program's type, integers are i32, text is a string."""
        a = np.asarray(value)
        if a.dtype.kind == "f":
            return a.astype(self.dtype.np)
        if a.dtype.kind == "i" and a.dtype.itemsize == 8:
            return a.astype(np.int32)
        return a.astype(object) if a.dtype.kind == "U" else a

    def const(self, value: Any, dtype: DType | None = None, shared: bool = False, plain: bool = False) -> str:
        """A constant.  shared: one ``const`` op for all that use it, where each would have its own.  plain: a Python
        number, as front ends write them, where it would be NumPy's, as a program read from a file has them."""
        name = super().const(value, dtype)
        for mark, yes in (("shared", shared), ("plain", plain)):
            if yes:
                self.g.meta.setdefault(mark, []).append(name)
        return name

    def op(self, op: str, outs: Any = 1, **inputs: Any) -> Any:
        """A node; returns the name of its output, or a list of names."""
        slots: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        for slot, v in inputs.items():
            if isinstance(v, Graph):
                attrs[slot] = v
            elif isinstance(v, tuple) and v and all(isinstance(x, str) for x in v):
                slots[slot] = list(v)
            else:
                slots[slot] = v if isinstance(v, str) and self.made(v) else self.const(v)
        return self.node(op, slots, attrs, outs)

    def done(self, *outputs: str, fires: bool | None = True, pattern: str = "", **header: Any) -> dict[str, Any]:
        """What the generator of an entry returns.  fires: does the program hold the pass's pattern?  header: what else
        the backend is told (``HEADER``).
        """
        self.g.meta.update(header)
        self.g.meta["fires"] = fires if fires is None else bool(fires)
        self.g.meta["states"] = [f"p{i}" for i, t in enumerate(self.tensors) if t.kind == "state"]
        return self.finished(outputs, pattern or ("match" if fires else "near miss"), promises=1)


class _Mil(Language):
    """Programs before a pass.  Constant parameters are attributes of a copy (the last few are kept); what is declared a
    state runs as one."""

    def __init__(self) -> None:
        super().__init__(mil)
        self.kept: dict[int, tuple[Graph, Any, Graph]] = {}

    def settled(self, g: Graph, opset: Any) -> Graph:
        found = self.kept.get(id(g))
        if found is None or found[0] is not g or found[1] != opset:
            copy = deepcopy(g)
            found = (g, opset, settle(mil, copy, opset))
            while len(self.kept) > 64:
                self.kept.pop(next(iter(self.kept)))
            self.kept[id(g)] = found
        return found[2]

    def feed(self, g: Graph, inputs: Any) -> dict[str, Any]:
        states = set(g.meta.get("states", ()))
        return {k: State(v) if k in states else v for k, v in super().feed(g, inputs).items()}

    def between(self, node: Node, e: Expected, scope: dict[str, Any]) -> Any:
        """A linear may be a product and an addition: the product is rounded."""
        bias = scope.get(str(node.inputs.get("bias"))) if node.op == "linear" else None
        if not isinstance(bias, np.ndarray):
            return 0.0
        with np.errstate(all="ignore"):
            return ulp(e.value.astype(np.float64) - bias.astype(np.float64), e.dtype) / 2


LANGUAGE = _Mil()
