"""Small MIL programs for graph passes: how they are written down, run, and how far a rewritten one may be off."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, DType, of
from harness.core.instance import Graph, Node
from harness.declare import Call, Context, Draw, T, Tolerance, composed, exact
from suites.mil import dialect as mil
from suites.mil.running import State, settle
from suites.semantics.programs import Language, grid

Ref = str | tuple[str, ...]
# What a program's ``meta`` may say to the backend beside ``fires``; see ``harness/backends/coremltools_passes.py``.
HEADER = ("images", "names", "options", "output_types", "function")


class Program:
    """A program under construction: ``p.input``, ``p.op`` give names; what is not a name becomes a constant."""

    def __init__(self, d: Draw, dtype: DType | None = None) -> None:
        self.d, self.g = d, Graph()
        self.dtype = dtype or (F16 if d.chance(4) else F32)
        self.tensors: list[T] = []
        self.kind = ""  # what a helper has to say about the program, for its pattern

    def input(
        self,
        shape: Any,
        recipe: str | None = None,
        dtype: DType | None = None,
        state: bool = False,
        symbols: tuple[str, ...] = (),
    ) -> str:
        """A run-time input; its data is moderate, so that nothing overflows on the way.  symbols: one for each axis,
        "" where the extent is known.
        """
        name = f"p{len(self.tensors)}"
        recipe = recipe or self.d.pick(("unit", "small", "uniform:-4:4"))
        kind = "state" if state else "tensor"
        self.tensors.append(T(tuple(shape), recipe, dtype or self.dtype, False, kind=kind))
        if symbols:
            self.g.meta.setdefault("symbols", {})[name] = list(symbols)
        return name

    def const(self, value: Any, dtype: DType | None = None, shared: bool = False, plain: bool = False) -> str:
        """A constant: an array or number, in the program's float type unless it says otherwise.  shared: one ``const``
        op for all that use it, where each would have its own.  plain: a Python number, as front ends write them, where
        it would be NumPy's, as a program read from a file has them.
        """
        a = np.asarray(value)
        if dtype is not None:
            a = a.astype(dtype.np)
        elif a.dtype.kind == "f":
            a = a.astype(self.dtype.np)
        elif a.dtype.kind == "i" and a.dtype.itemsize == 8:
            a = a.astype(np.int32)
        elif a.dtype.kind == "U":
            a = a.astype(object)
        name = f"c{len(self.g.consts)}"
        self.g.consts[name] = a
        for mark, yes in (("shared", shared), ("plain", plain)):
            if yes:
                self.g.meta.setdefault(mark, []).append(name)
        return name

    def weights(self, shape: Any, lo: int = -4, hi: int = 4, scale: float = 0.25) -> np.ndarray:
        """Values on a grid, from one draw."""
        return grid(self.d, shape, lo, hi, scale)

    def op(self, op: str, outs: int = 1, **inputs: Any) -> Any:
        """A node; returns the name of its output, or a list of names."""
        slots: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        for slot, v in inputs.items():
            if isinstance(v, Graph):
                attrs[slot] = v
            elif isinstance(v, tuple) and v and all(isinstance(x, str) for x in v):
                slots[slot] = list(v)
            elif isinstance(v, str) and (v in self.g.consts or self._made(v)):
                slots[slot] = v
            else:
                slots[slot] = self.const(v)
        names = [f"{op}_{len(self.g.nodes)}" + (f"_{i}" if outs > 1 else "") for i in range(outs)]
        self.g.nodes.append(Node(op, slots, names, attrs))
        return names[0] if outs == 1 else names

    def _made(self, name: str) -> bool:
        return any(name in n.outputs for n in self.g.nodes) or name in {f"p{i}" for i in range(len(self.tensors))}

    def done(self, *outputs: str, fires: bool = True, pattern: str = "", **header: Any) -> dict[str, Any]:
        """What the generator of an entry returns.  fires: does the program hold the pass's pattern?  header: what else
        the backend is told (``HEADER``).
        """
        self.g.outputs = list(outputs)
        self.g.meta.update(header)
        self.g.meta["fires"] = bool(fires)
        self.g.meta["states"] = [f"p{i}" for i, t in enumerate(self.tensors) if t.kind == "state"]
        return {
            "inputs": self.tensors,
            "program": self.g,
            "pattern": pattern or ("match" if fires else "near miss"),
            "@outs": 1 + len(outputs),
        }


class _Mil(Language):
    """Programs before a pass.  Constant parameters are attributes of a copy (the last few are kept); what is declared a
    state runs as one."""

    def __init__(self) -> None:
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

    def feed(self, call: Call) -> dict[str, Any]:
        states = set(call.attrs["program"].meta.get("states", ()))
        return {k: State(v) if k in states else v for k, v in super().feed(call).items()}

    def node(self, node: Node, scope: dict[str, Any], opset: Any) -> list[Any]:
        inputs = {s: [scope[n] for n in v] if isinstance(v, list) else scope[v] for s, v in node.inputs.items() if v}
        v = mil.effective(node.op, opset, node.attrs.get("@domain", ""))
        return v.evaluate(Call(v, node.attrs, inputs, opset, n_outs=len(node.outputs), run=mil.runner(opset, scope)))


LANGUAGE = _Mil()


def run(call: Call) -> list[Any]:
    """Has the pass something to do, and the outputs of the program before it."""
    program = call.attrs["program"]
    scope = LANGUAGE.run(call)
    results = [np.array(bool(program.meta["fires"])), *(np.array(scope[n]) for n in program.outputs)]
    call.outs = [{"dtype": of(r)} for r in results]
    return [r.astype(np.float64) if r.dtype.kind == "f" else r for r in results]  # wide: judged by the bound


def error_classes(narrow: bool = False, outputs: int = 4) -> tuple[Tolerance, ...]:
    """Exact for whether the pass acts; propagated roundings for every output."""

    def of_output(k: int) -> Tolerance:
        def bound(ctx: Context) -> Any:
            return LANGUAGE.bounds(ctx.call, narrow)[k]

        what = "every value rounded to f16" if narrow else "every op's own error"
        return composed(bound, f"{what}, propagated through the program, twice, + ulp")

    return (exact(), *(of_output(k) for k in range(outputs)))


Make = Callable[[Draw], dict[str, Any]]


def either(*makes: Make) -> Make:
    """One of several generators."""
    return lambda d: d.pick(makes)(d)
