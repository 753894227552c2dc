"""The values of a program: element type, shape, who makes each and who uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import DType, of
from harness.core.instance import Arg, Graph, Node
from harness.core.quiet import quiet
from harness.declare import T
from harness.generate.recipes import materialize
from suites.programs.language import Language


@dataclass(frozen=True)
class Use:
    """One operand: of which node, in which slot, and where in the slot if it takes several (else None)."""

    node: int
    slot: str
    position: int | None = None


@dataclass(frozen=True)
class Value:
    """One value of a program.

    producer: the node that makes it; None of an input or a constant.  const: is it a constant?  users: where it is an
    operand.  output: is it an output of the program?
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    producer: int | None
    const: bool
    users: tuple[Use, ...]
    output: bool


def operands(node: Node) -> Iterator[tuple[str, int | None, str]]:
    """(slot, position, name) of the operands that are given."""
    for slot, names in node.inputs.items():
        if isinstance(names, list):
            yield from ((slot, k, n) for k, n in enumerate(names) if n)
        elif names:
            yield slot, None, names


def values(
    language: Language, g: Graph, inputs: Sequence[T | Arg], opset: Any, strict: bool = False
) -> dict[str, Value]:
    """The values of a program by name, inputs first, then constants, then results in the order of the nodes.

    The program runs once, on zeros where an input has no literal values: where a shape depends on data, it is that of
    this run.  strict: on data of its recipe, and every node is held against its op version.  Raises what the reference
    raises on that data.
    """
    with quiet:
        if strict:
            scope = language.hold(g, [filled(x) for x in inputs], opset)
        else:
            scope = language.run(g, [_plain(x) for x in inputs], opset)
    producers = {name: i for i, node in enumerate(g.nodes) for name in node.outputs if name}
    users: dict[str, list[Use]] = {}
    for i, node in enumerate(g.nodes):
        for slot, position, name in operands(node):
            users.setdefault(name, []).append(Use(i, slot, position))
    names = [*(f"p{i}" for i in range(len(inputs))), *g.consts, *producers]
    out = {}
    for name in names:
        x = getattr(scope[name], "value", scope[name])
        array = np.asarray(x)
        out[name] = Value(
            name,
            of(array),
            array.shape,
            producers.get(name),
            name in g.consts,
            tuple(users.get(name, ())),
            name in g.outputs,
        )
    return out


def _plain(x: T | Arg) -> np.ndarray:
    assert x.dtype is not None
    if x.values is not None:
        return np.array(x.values, x.dtype.np).reshape(x.shape)
    return np.zeros(x.shape, x.dtype.np)


def filled(x: T | Arg, seed: int = 1) -> np.ndarray:
    """Data of an input, by its recipe."""
    assert x.dtype is not None
    if x.values is not None:
        return _plain(x)
    return np.asarray(materialize(Arg(x.dtype, tuple(x.shape), False, x.recipe or "unit", seed)))
