"""A program that is being changed, the same for every dialect of programs, and what a dialect calls the ops that are
needed: the adapter between the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar

import numpy as np

from harness.core.dtypes import BOOL, F16, F32, F64, I32, I64, DType
from harness.core.instance import Graph, Node
from harness.declare import Draw, OpVersion, T
from harness.reach.facts import Parameter
from harness.reach.goals import goals_of
from suites.programs.language import Language
from suites.programs.values import Use, Value, values

Site = tuple[Any, ...]  # plain values, since it is recorded
MOST_AXES = 8


class Words:
    """The words of one dialect.  A subclass names its ops.

    commutative: ops of two operands that may be exchanged.
    ordered: further ops of two operands that broadcast.
    operands: the slots of the two.
    reshape: the op, its operand and its shape.
    keepdims: the parameter of that meaning.
    inserts_axes: ops whose axes are those of the result.
    perms: op whose permutation may have either sign -> the name of the permutation.
    wider, narrower: element types to cast to.
    input_rank: the lowest rank of an input.
    floats: types that a program may have for its floats.
    arithmetic, extremes: ops of two operands of one type, of floats, and of integers that do not overflow.
    integers: the types of the latter.
    types: element types of a further input.
    max_rank: the highest rank of a tensor.
    masks_widen: may a mask give the result of ``masked`` more axes or elements?
    open_axes: how many axes of an input may be left open.
    minus_one, zero: may the shape of a reshape hold it?
    """

    commutative: ClassVar[frozenset[str]] = frozenset()
    ordered: ClassVar[frozenset[str]] = frozenset()
    operands: ClassVar[tuple[str, str]] = ("", "")
    reshape: ClassVar[tuple[str, str, str]] = ("", "", "")
    keepdims: ClassVar[str] = ""
    inserts_axes: ClassVar[frozenset[str]] = frozenset()
    perms: ClassVar[Mapping[str, str]] = {}
    wider: ClassVar[Mapping[DType, DType]] = {F16: F32, F32: F64, I32: I64}
    narrower: ClassVar[Mapping[DType, DType]] = {F32: F16, F64: F32}
    input_rank: ClassVar[int] = 0
    floats: ClassVar[tuple[DType, ...]] = (F32, F16, F64)
    arithmetic: ClassVar[tuple[str, ...]] = ()
    extremes: ClassVar[tuple[str, ...]] = ()
    integers: ClassVar[tuple[DType, ...]] = (I32,)
    types: ClassVar[tuple[DType, ...]] = ()
    max_rank: ClassVar[int] = MOST_AXES
    masks_widen: ClassVar[bool] = True
    open_axes: ClassVar[int] = MOST_AXES
    minus_one: ClassVar[bool] = True
    zero: ClassVar[bool] = False
    absent: ClassVar[frozenset[str]] = frozenset()
    """Names of respellings that the dialect has no words for."""

    # Each writes a node before node ``at`` and returns the name of its result.

    def identity(self, v: View, at: int, x: str) -> str:
        raise NotImplementedError

    def cast(self, v: View, at: int, x: str, dtype: DType) -> str:
        raise NotImplementedError

    def transpose(self, v: View, at: int, x: str, perm: Sequence[int]) -> str:
        raise NotImplementedError

    def reshaped(self, v: View, at: int, x: str, shape: Sequence[int]) -> str:
        raise NotImplementedError

    def second(self, v: View, at: int, x: str) -> str:
        """A node that does not hand its operand on as it is, where the type has one."""
        raise NotImplementedError

    def binary(self, v: View, at: int, op: str, x: str, y: str) -> str:
        """A node of one of the ops of two operands."""
        slots = self.slots(v, op)
        assert slots is not None
        return v.node(at, op, {slots[0]: [x, y]} if slots[0] == slots[1] else {slots[0]: x, slots[1]: y})

    def masked(self, v: View, at: int, x: str, mask: str) -> str:
        """x where the mask is true, else 0."""
        raise NotImplementedError

    def total(self, v: View, at: int, x: str, axes: np.ndarray, keep: bool) -> str:
        """The sum over axes."""
        raise NotImplementedError

    # What else differs.

    def takes_op(self, v: View, name: str) -> bool:
        """May a value be an operand of an op that is added?"""
        return True

    def slots(self, v: View, op: str) -> tuple[str, str] | None:
        """The slots of the two operands of an op that broadcasts."""
        return self.operands if op in self.commutative or op in self.ordered else None

    def fixed(self, v: View, node: int, slot: str) -> bool:
        """Must the operand be a constant, or is it a parameter that is best left alone?"""
        return False

    def exposable(self, v: View, name: str) -> bool:
        """May a value be an output too?"""
        return True

    def extensible(self, v: View, name: str) -> bool:
        """May an op be put behind an output?"""
        return self.exposable(v, name)

    def exposed(self, v: View) -> None:
        """The program has one more output."""

    def movable(self, v: View, node: int, slot: str) -> bool:
        """May a constant operand be given at run time?"""
        return True

    def open(self, v: View, name: str, axes: Sequence[int]) -> None:
        """Leave extents of an input open in the model."""
        raise NotImplementedError

    def copied(self, v: View, name: str, new: str) -> None:
        """A value is made a second time: what the program states of it holds of the new one too."""

    def forget(self, v: View, name: str) -> None:
        """Drop what is stated of an input that goes."""

    def share(self, v: View, name: str) -> None:
        """One constant for all of its users, where a writer would give each its own."""

    def valid(self, v: View) -> bool:
        """Does a program obey what the reference does not check?"""
        return True

    def respelt(self, v: View) -> None:
        """Last touch on a program that was respelt."""

    def retype(self, v: View, old: DType, new: DType) -> None:
        """Replace the element type where attributes name it."""
        for node in v.g.nodes:
            for k, a in node.attrs.items():
                if a is old:
                    node.attrs[k] = new

    def shape_of(self, value: Sequence[int]) -> np.ndarray:
        """Extents as a constant operand."""
        return np.array(value, np.int64)


def plain(d: DType) -> bool:
    """A type of numbers."""
    return d.kind in "fiu" and d is not BOOL


class View:
    """g, inputs: the program, which a respelling changes.  values: type, shape, producer and users of every value of
    the program as it was before.  Raises OpconformError where the specification knows no such program."""

    def __init__(self, d: Draw, language: Language, words: Words, g: Graph, inputs: list[T]) -> None:
        self.d, self.language, self.words, self.g, self.inputs, self.opset = d, language, words, g, inputs, d.opset
        self.values: dict[str, Value] = {}
        self.look()

    def look(self) -> None:
        """Learn the values anew.  Raises OpconformError."""
        self.values = values(self.language, self.g, self.inputs, self.opset, strict=True)

    def copy(self) -> View:
        """The same program, to be changed."""
        out = copy(self)
        out.g, out.inputs = deepcopy(self.g), [_copy(t) for t in self.inputs]
        return out

    def input(self, name: str) -> T | None:
        """The run-time input of this name."""
        at = name[1:]
        known = name[:1] == "p" and at.isdigit() and name not in self.g.consts and int(at) < len(self.inputs)
        return self.inputs[int(at)] if known else None

    def uses(self, value: Value) -> list[Use]:
        """Where a value is an operand that is data, and no parameter."""
        return [u for u in value.users if not self.words.fixed(self, u.node, u.slot)]

    def operand(self, u: Use) -> str:
        """The name of the value that a node is given there."""
        given = self.g.nodes[u.node].inputs[u.slot]
        name = given[u.position or 0] if isinstance(given, list) else given
        assert name is not None
        return name

    def data(self) -> Iterator[Value]:
        """Values that are tensors and have a user, or are an output."""
        for v in self.values.values():
            given = self.input(v.name)
            if (v.users or v.output) and (given is None or given.kind == "tensor"):
                yield v

    def between(self) -> Iterator[Value]:
        """Values that a node makes and another one uses."""
        return (v for v in self.data() if v.producer is not None and v.users)

    def const_uses(self) -> Iterator[tuple[Value, Use]]:
        """Constants where they are data."""
        for v in self.values.values():
            if v.const:
                for u in self.uses(v):
                    yield v, u

    def pair(self, i: int) -> tuple[str, str] | None:
        """The two operands of a node whose op broadcasts."""
        node = self.g.nodes[i]
        slots = self.words.slots(self, node.op)
        if slots is None:
            return None
        if slots[0] == slots[1]:  # a variadic slot
            names = node.inputs.get(slots[0])
            return (names[0], names[1]) if isinstance(names, list) and len(names) == 2 else None
        a, b = node.inputs.get(slots[0]), node.inputs.get(slots[1])
        return (a, b) if isinstance(a, str) and isinstance(b, str) else None

    def exchange(self, i: int) -> None:
        """The two operands of a node, the other way round."""
        node = self.g.nodes[i]
        slots = self.words.slots(self, node.op)
        assert slots is not None
        if slots[0] == slots[1]:
            node.inputs[slots[0]] = list(reversed(list(node.inputs[slots[0]] or ())))
        else:
            node.inputs[slots[0]], node.inputs[slots[1]] = node.inputs[slots[1]], node.inputs[slots[0]]

    def give(self, use: Use, name: str) -> None:
        """Another value as an operand."""
        given = self.g.nodes[use.node].inputs[use.slot]
        if use.position is None:
            self.g.nodes[use.node].inputs[use.slot] = name
        else:
            assert isinstance(given, list)
            self.g.nodes[use.node].inputs[use.slot] = [name if k == use.position else n for k, n in enumerate(given)]

    def fresh(self, stem: str) -> str:
        """A name that no value has."""
        taken = {*self.values, *self.g.consts, *(o for n in self.g.nodes for o in n.outputs)}
        k = len(self.g.nodes) + len(self.g.consts)
        while f"{stem}_{k}" in taken:
            k += 1
        return f"{stem}_{k}"

    def const(self, value: Any) -> str:
        """A constant of its own."""
        name = self.fresh("k")
        self.g.consts[name] = np.asarray(value)
        return name

    def node(self, at: int, op: str, slots: dict[str, Any], attrs: dict[str, Any] | None = None) -> str:
        """A node before node ``at``; the name of its result."""
        name = self.fresh(op.lower())
        self.g.nodes.insert(at, Node(op, slots, [name], attrs or {}))
        return name

    def version(self, i: int) -> OpVersion | None:
        """The op version of a node; None of one of another domain."""
        node = self.g.nodes[i]
        if node.op.startswith(("complex", "coreml")):
            return None
        return self.language.dialect.effective(node.op, self.opset, node.attrs.get("@domain", ""))

    def parameters(self, i: int) -> tuple[Parameter, ...]:
        """The parameters of a node's op, with their kinds."""
        version = self.version(i)
        return () if version is None else goals_of(version).facts.parameters

    def parameter(self, i: int, name: str) -> Any:
        """What a node gives as a parameter: its value, an array where it is a constant; None where it gives none."""
        node = self.g.nodes[i]
        if name in node.attrs:
            return node.attrs[name]
        given = node.inputs.get(name)
        return self.g.consts.get(given) if isinstance(given, str) else None

    def set_parameter(self, i: int, name: str, value: Any) -> None:
        """Another value of a parameter, in the form that it has; no other user of a constant sees it."""
        node = self.g.nodes[i]
        if name in node.attrs:
            node.attrs[name] = value
            return
        given = node.inputs[name]
        assert isinstance(given, str)
        old = self.g.consts[given]
        node.inputs[name] = self.const(np.asarray(value).astype(old.dtype).reshape(np.shape(value)))

    def main(self, i: int) -> Value | None:
        """The first operand of a node that is data."""
        for given in self.g.nodes[i].inputs.values():
            name = given[0] if isinstance(given, list) and given else given
            if isinstance(name, str) and name in self.values:
                return self.values[name]
        return None

    def expose(self, name: str) -> None:
        """One more output."""
        self.g.outputs.append(name)
        self.words.exposed(self)

    def dtypes(self) -> set[DType]:
        return {v.dtype for v in self.values.values()}


def _copy(t: T) -> T:
    return T(t.shape, t.recipe, t.dtype, t.const, t.values, t.quant, t.kind, t.items)
