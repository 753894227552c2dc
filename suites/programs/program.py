"""Programs under construction: how the generator of an entry writes one down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import F32, DType
from harness.core.instance import Graph, Node
from harness.declare import Draw, T

Make = Callable[[Draw], dict[str, Any]]
RECIPES = ("unit", "small", "uniform:-4:4")  # moderate, so that nothing overflows on the way


def either(*makes: Make) -> Make:
    """One of several generators."""
    return lambda d: d.pick(makes)(d)


def grid(d: Draw, shape: Any, lo: int, hi: int, scale: float) -> np.ndarray:
    """Numbers between lo and hi times scale, from one draw."""
    n = int(np.prod(shape))
    start, step = d.int(0, 16), d.pick((1, 3, 5, 7))
    span = hi - lo + 1
    return (np.array([lo + (start + k * step) % span for k in range(n)]) * scale).reshape(shape)


class Program:
    """A program under construction: ``p.input``, ``p.const`` and ``p.op`` give names of values, ``p.done`` ends it.

    d: what it is drawn from.  g: nodes, constants and outputs so far.  tensors: the inputs, called p0, p1, ...
    dtype: of its floats.  A dialect's subclass says what its literals are (``literal``), how an op is written (``op``)
    and what ends a program (``done``).
    """

    def __init__(self, d: Draw, dtype: DType = F32) -> None:
        self.d, self.g = d, Graph()
        self.dtype = dtype
        self.tensors: list[T] = []

    def input(
        self, shape: Sequence[int], recipe: str | None = None, dtype: DType | None = None, kind: str = "tensor"
    ) -> str:
        """A run-time input."""
        recipe = recipe or self.d.pick(RECIPES)
        self.tensors.append(T(tuple(shape), recipe, dtype or self.dtype, False, kind=kind))
        return f"p{len(self.tensors) - 1}"

    def literal(self, value: Any) -> np.ndarray:
        """The array that a constant is: of the program's type, where Python or NumPy has another default."""
        raise NotImplementedError

    def const(self, value: Any, dtype: DType | None = None) -> str:
        """A constant: a number, a list or an array."""
        name = f"c{len(self.g.consts)}"
        self.g.consts[name] = self.literal(value) if dtype is None else np.asarray(value).astype(dtype.np)
        return name

    def weights(self, shape: Any, lo: int = -4, hi: int = 4, scale: float = 0.25) -> np.ndarray:
        """Values on a grid, from one draw."""
        return grid(self.d, shape, lo, hi, scale)

    def given(self, value: np.ndarray, recipe: str = "unit") -> str:
        """Most often a constant, which an optimiser may compute with; else an input of that shape."""
        return self.input(value.shape, recipe) if self.d.chance(8) else self.const(value)

    def node(self, op: str, slots: dict[str, Any], attrs: dict[str, Any], outs: int = 1) -> Any:
        """A node on named values.  Returns the name of its output, or a list of names."""
        names = [f"{op.lower()}_{len(self.g.nodes)}" + (f"_{i}" if outs > 1 else "") for i in range(outs)]
        self.g.nodes.append(Node(op, slots, names, attrs))
        return names[0] if outs == 1 else names

    def made(self, name: str) -> bool:
        """Is there a value of this name?"""
        at = name[1:]
        given = name[:1] == "p" and at.isdigit() and int(at) < len(self.tensors)
        return given or name in self.g.consts or any(name in n.outputs for n in self.g.nodes)

    def finished(self, outputs: Sequence[str], pattern: str, promises: int = 0) -> dict[str, Any]:
        """What the generator of an entry returns.  pattern: what the program is to show, for the report.  promises:
        outputs of the instance that stand before those of the program."""
        self.g.outputs = list(outputs)
        return {
            "inputs": self.tensors,
            "program": self.g,
            "pattern": pattern,
            "@outs": promises + len(self.g.outputs),
        }
