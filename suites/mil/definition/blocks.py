"""Blocks, lists and states.  A block holds ops of one line each, which are computed in the type of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader

READ: dict[str, Read] = {}
reads = reader(READ)
_TWO: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "maximum": lambda x, y: np.where(x > y, x, y),
    "minimum": lambda x, y: np.where(x < y, x, y),
    "less": lambda x, y: x < y,
    "greater": lambda x, y: x > y,
    "logical_and": lambda x, y: x & y,
}
_ONE: dict[str, Callable[..., Any]] = {
    "relu": lambda x: np.where(x > 0, x, x - x),
    "abs": lambda x: np.where(x < 0, -x, x),
    "square": lambda x: x * x,
    "identity": lambda x: x,
    "logical_not": lambda x: ~x,
    "reduce_max": lambda x: sorted(x.ravel())[-1],
    "squeeze": lambda x: x.reshape([n for n in x.shape if n != 1]),
}


def _block(graph: Any, around: dict[str, Any], given: list[Any]) -> list[Any]:
    """Its results; it sees the values around it."""
    seen = {**around, **graph.consts, **{name: v for (name, _), v in zip(graph.inputs, given)}}
    for node in graph.nodes:
        if node.op == "cond":
            results = _block(node.attrs["_true_fn" if seen[node.inputs["pred"]] else "_false_fn"], seen, [])
        elif node.op in _TWO:
            results = [_TWO[node.op](seen[node.inputs["x"]], seen[node.inputs["y"]])]
        else:
            results = [_ONE[node.op](seen[node.inputs["x"]])]
        seen.update(zip(node.outputs, results))
    return [seen[name] for name in graph.outputs]


@reads("cond")
def _cond(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return _block(at["_true_fn" if a["pred"] else "_false_fn"], a, [])


@reads("while_loop")
def _while(at: Attrs, a: Arrays, version: str) -> list[Any]:
    values = a["loop_vars"]
    while _block(at["_cond"], a, values)[0]:
        values = _block(at["_body"], a, values)
    return list(values)


@reads("list_read")
def _read(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [a["ls"][int(a["index"])]]


@reads("list_gather")
def _gather(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [[a["ls"][int(k)] for k in a["indices"]]]


@reads("list_write")
def _write(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """Read out whole, as an instance does."""
    return [[a["value"] if k == int(a["index"]) else v for k, v in enumerate(a["ls"])]]


@reads("list_scatter")
def _scatter(at: Attrs, a: Arrays, version: str) -> list[Any]:
    new = {int(k): v for k, v in zip(a["indices"], a["value"])}
    return [[new.get(k, v) for k, v in enumerate(a["ls"])]]


@reads("read_state")
def _state(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [a["input"]]


@reads("coreml_update_state")
def _update(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """What it returns, and the state read again."""
    return [a["value"], a["value"]]
