"""Which op versions the nodes of random graphs are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from harness.core.dtypes import BY_NAME, DType
from harness.declare import Dialect, OpVersion
from harness.tolerance import AnyOrder, Tolerance

PLAIN = "fiub"  # kinds of element types that values of a graph have
BLOCKS = ("graph", "graphs", "sparse_tensor", "type_proto")  # types of attributes that a node of a graph has not


def _plain_slots(v: OpVersion) -> bool:
    """Are operands and results tensors of numbers?"""
    s = v.schema
    if any(x.container for x in (*s.inputs, *s.outputs)) or any(o.variadic for o in s.outputs):
        return False
    return bool(s.outputs) and all(
        any(d in BY_NAME and BY_NAME[d].kind in PLAIN for d in s.types.get(x.element, (x.element,)))
        for x in (*s.inputs, *s.outputs)
        if not x.optional
    )


def _pointwise(v: OpVersion) -> bool:
    """Has each element of its results one expected value, in its own place?"""
    error: Any = v.entry.error if v.entry.error is not None else v.meaning.error if v.meaning is not None else None
    given = error if isinstance(error, tuple) else (error,)
    return all(isinstance(e, Tolerance) and e.pointwise and not e.random and not isinstance(e, AnyOrder) for e in given)


def serves(v: OpVersion) -> bool:
    """Can instances of this op version be nodes of a random graph?  Not those with blocks, with containers or strings,
    random ones, those whose elements come in any order, and those that may be refused."""
    return (
        not v.schema.domain
        and not v.schema.refusable
        and not any(a.type in BLOCKS for a in v.schema.attrs.values())
        and _plain_slots(v)
        and _pointwise(v)
    )


Taker = tuple[OpVersion, tuple[str, ...]]


class Pool:
    """The op versions of a dialect that are in force at an opset and can be nodes.

    leave: which of them are left out, as the dialect of graphs says and why.
    """

    def __init__(self, dialect: Dialect, opset: Any, leave: Callable[[OpVersion], bool]) -> None:
        self.all = [v for v in dialect.versions.values() if opset in v.opsets and serves(v) and not leave(v)]
        self._taking: dict[DType, list[list[Taker]]] = {}

    def taking(self, d: DType) -> list[list[Taker]]:
        """By op, the versions that take a tensor of this type at run time, oldest first, with the slots in which they
        do.  Where a model says the version of each node, several of one op are in force."""
        if d not in self._taking:
            rows: dict[str, list[Taker]] = {}
            for v in self.all:
                slots = tuple(s.name for s in v.schema.inputs if not s.const and d in v.candidates.get(s.element, ()))
                if slots:
                    rows.setdefault(v.op, []).append((v, slots))
            self._taking[d] = list(rows.values())
        return self._taking[d]


@cache
def pool(dialect: Dialect, opset: Any, leave: Callable[[OpVersion], bool]) -> Pool:
    """The pool of a dialect at an opset, made once."""
    return Pool(dialect, opset, leave)
