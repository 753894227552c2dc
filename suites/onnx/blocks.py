"""What goes into the blocks of control flow: a few ops that exist at every opset for the types drawn.

Integers stay small, so that every sum is exact; what the ops of sums do not take is handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.core.dtypes import BOOL, DType
from harness.core.instance import Arg, Graph, Node
from harness.declare import Draw
from suites.onnx import schemas

PLAIN = ("f32", "f64", "i32", "i64", "f16", "bool")  # taken by most ops of most opsets
_EXACT = ("f32", "f64", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_WIDE = ("f32", "f64", "f16", "i16", "i32", "i64")  # states may be added to states for a few turns
_SIGNED = ("f32", "f64", "f16", "i32", "i64")  # what small numbers are cast to
_CAST_FROM = (*_SIGNED, "i8", "i16", "u8", "bool")


def literal(d: Draw, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """A small array of any type, for tensor attributes."""
    n = int(np.prod(shape))
    if dtype.kind == "s":
        return np.array([d.pick(("", "a", "b c", "é")) for _ in range(n)], object).reshape(shape)
    lo = 0 if dtype.kind in "ub" or dtype.name == "f8e8m0" else -2
    hi = 1 if dtype.kind == "b" or dtype.bits < 4 else 3
    return np.array([d.int(lo, hi) for _ in range(n)], np.float64).astype(dtype.np).reshape(shape)


def recipe_of(dtype: DType) -> str | None:
    """How what goes into a block is filled."""
    return "bool" if dtype is BOOL else "small" if dtype.name in _EXACT else None


def takes(op: str, opset: int, dtype: DType) -> bool:
    """Does the first input of an op take the type?"""
    schema = schemas.effective(op, opset)
    return schema is not None and dtype in schema.dtypes(schema.inputs[0].element)


def _const(dtype: DType, opset: int) -> bool:
    """Can a block hold a constant of this type?  Until opset 8 constants are floats."""
    return opset > 8 or dtype.kind == "f"


def _adds(dtype: DType, opset: int) -> bool:
    return dtype.name in _EXACT and takes("Add", opset, dtype)


def step(d: Draw, dtype: DType, shape: tuple[int, ...], source: str, out: str, consts: dict[str, Any]) -> Node:
    """One node from ``source`` to ``out`` that keeps type and shape."""
    opset = int(d.opset)
    if dtype is BOOL:
        return Node("Not", {"X": source}, [out]) if d.bool() else Node("Identity", {"input": source}, [out])
    if not _adds(dtype, opset) or not _const(dtype, opset) or d.chance(4):
        return Node("Identity", {"input": source}, [out])
    name = f"k_{out}"
    consts[name] = literal(d, dtype, shape)
    return Node("Add", {"A": source, "B": name}, [out])


class Value(NamedTuple):
    """A tensor that the nodes of a block may read.  still: it is the same in every turn, or new in it: what is added
    to it again and again stays small."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    still: bool = True


def declared(d: Draw, v: Value) -> Arg:
    """The parameter of a block that ``v`` is; now and then with extents that are not said."""
    if v.shape and d.chance(6):
        return Arg(v.dtype, tuple(-1 if d.bool() else n for n in v.shape))
    return Arg(v.dtype, v.shape)


def kind(d: Draw) -> DType:
    """A type of a value of a block: mostly one that ops take."""
    types = d.version.candidates["V"]
    return d.pick([t for t in types if t.name in PLAIN]) if d.int(0, 3) else d.pick(types)


class Block:
    """A block while it is drawn.  inputs: its parameters.  around: values of the graph around it, which it sees now and
    then.  as_is: may results be parameters and constants themselves (ONNX IR: the occurrence as a graph output is a
    use like that as a node's input)?  Either is drawn seldom, since what a runtime makes of it hides all else."""

    def __init__(self, d: Draw, inputs: Sequence[Value], around: Sequence[Value] = ()) -> None:
        self.d, self.opset = d, int(d.opset)
        self.inputs, self.around = list(inputs), list(around) if around and d.chance(4) else []
        self.as_is = d.chance(8)
        self.parameters = [(v.name, declared(d, v)) for v in inputs]
        self.nodes: list[Node] = []
        self.consts: dict[str, Any] = {}
        self.outputs: list[str] = []
        self.types: dict[str, str] = {}

    def graph(self) -> Graph:
        return Graph(self.parameters, self.nodes, self.outputs, self.consts, {"out_types": self.types})

    def returns(self, name: str, type_: str) -> None:
        self.outputs.append(name)
        self.types[name] = type_

    def node(self, op: str, inputs: dict[str, Any], out: str, **attrs: Any) -> str:
        self.nodes.append(Node(op, inputs, [out], attrs))
        return out

    def step(self, v: Value, out: str) -> str:
        self.nodes.append(step(self.d, v.dtype, v.shape, v.name, out, self.consts))
        return out

    # -- values of the same type and shape

    def carry(self, values: Sequence[Value]) -> None:
        """The next of each carried value; now and then two of one type and shape change places."""
        names = [self.next(v, f"{v.name}_out") for v in values]
        pairs = [(i, j) for j, w in enumerate(values) for i, v in enumerate(values[:j]) if v[1:3] == w[1:3]]
        if pairs and self.d.chance(4):
            i, j = self.d.pick(pairs)
            names[i], names[j] = names[j], names[i]
        for name, v in zip(names, values):
            self.returns(name, v.dtype.name)

    def next(self, v: Value, out: str) -> str:
        """What a carried value is in the next turn: itself, a step further, with another value added, chosen by a
        condition."""
        d = self.d
        how = d.int(0, 7)
        if how == 0 and self.as_is:
            return v.name
        if how == 1:
            return self.node("Identity", {"input": v.name}, out)
        if how == 2:
            return self.chosen(v, out)
        if how > 3:
            made = self.combined(v, out)
            if made is not None:
                return made
        return self.step(v, out)

    def combined(self, v: Value, out: str) -> str | None:
        """``v`` with another value of the block, cast to its type if need be; None where none goes with it."""
        d = self.d
        if v.dtype is BOOL:
            others = [x for x in self._read() if x.dtype is BOOL and x.shape == v.shape and x.name != v.name]
            op = d.pick(("And", "Or", "Xor"))
            return self.node(op, {"A": v.name, "B": d.pick(others).name}, out) if others else None
        if not _adds(v.dtype, self.opset):
            return None
        fit = [
            x
            for x in self._read()
            if x.name != v.name
            and self._broadcasts(x.shape, v.shape)
            and (x.dtype is v.dtype or self._casts(x.dtype, v.dtype))
        ]
        others = [x for x in fit if x.still or v.dtype.name in _WIDE]
        if not others:
            return None
        x = d.pick(others)
        name = x.name if x.dtype is v.dtype else self.node("Cast", {"input": x.name}, f"c_{out}", to=v.dtype)
        a, b = (name, v.name) if d.bool() else (v.name, name)
        return self.node("Add", {"A": a, "B": b}, out)

    def chosen(self, v: Value, out: str, tests: Sequence[Value] = ()) -> str:
        """A block in the block: one step or another, by a truth value in reach."""
        d = self.d
        tests = [*tests, *(x for x in self._read() if x.dtype is BOOL and x.shape == ())]
        if tests and (self.opset < 9 or d.int(0, 3)):
            cond = d.pick(tests).name
        elif self.opset > 8:
            cond = f"if_{out}"
            self.consts[cond] = np.array(d.bool())
        else:
            return self.step(v, out)
        sides = {}
        for side in ("then_branch", "else_branch"):
            name = f"{side[0]}_{out}"
            consts: dict[str, np.ndarray] = {}
            node = step(d, v.dtype, v.shape, v.name, name, consts)
            sides[side] = Graph([], [node], [name], consts, {"out_types": {name: v.dtype.name}})
        return self.node("If", {"cond": cond}, out, **sides)

    # -- a value of any type

    def made(self, out: str) -> int:
        """One more result, of whatever type and shape: of a parameter, a value around, a constant.  Its rank."""
        d = self.d
        v = d.pick(self._read()) if d.chance(3) else d.pick(self.inputs or self._read())
        how = d.int(0, 7)
        if how == 0 and self.as_is and v in self.inputs and v.name not in self.outputs:
            self.returns(v.name, v.dtype.name)
        elif how == 1 and takes("Shape", self.opset, v.dtype):
            self.returns(self.node("Shape", {"data": v.name}, out), "i64")
            return 1
        elif how == 2 and takes("Less", self.opset, v.dtype) and v.dtype.name in _EXACT and _const(v.dtype, self.opset):
            self.consts[f"k_{out}"] = literal(d, v.dtype, v.shape)
            self.returns(self.node("Less", {"A": v.name, "B": f"k_{out}"}, out), "bool")
        elif how == 3:
            to = [t for t in d.version.candidates["V"] if self._casts(v.dtype, t)]
            if to:
                t = d.pick(to)
                self.returns(self.node("Cast", {"input": v.name}, out, to=t), t.name)
            else:
                self.returns(self.step(v, out), v.dtype.name)
        elif how == 4 and self.as_is and _const(v.dtype, self.opset):
            self.consts[out] = literal(d, v.dtype, v.shape)
            self.returns(out, v.dtype.name)
        else:
            self.returns(self.step(v, out), v.dtype.name)
        return len(v.shape)

    def _read(self) -> list[Value]:
        return [*self.inputs, *self.around]

    def _broadcasts(self, a: tuple[int, ...], to: tuple[int, ...]) -> bool:
        if a == to:
            return True
        return self.opset > 6 and len(a) <= len(to) and all(n in (1, m) for n, m in zip(a[::-1], to[::-1]))

    def _casts(self, a: DType, b: DType) -> bool:
        return self.opset > 5 and a is not b and a.name in _CAST_FROM and b.name in _SIGNED
