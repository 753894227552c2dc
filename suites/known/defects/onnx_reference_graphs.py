"""What comes where a difference is listed (``harness/ledger/defect_models.py``): onnx.reference, random graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.given import Given
from harness.core.instance import SKIPPED, Graph, Node
from harness.core.quiet import quiet
from harness.declare import registry
from harness.ledger.defect_models import Near, NodeAnswer, PerNode, Such

Outputs = list[Any] | None


def _left_out(node: Node, opset: Any) -> list[str]:
    """Slots in front of the last one given that a node leaves out: the empty name stands in their place."""
    slots = registry.dialect("onnx").effective(node.op, opset).schema.inputs
    given = [node.inputs.get(s.name) not in (None, []) for s in slots]
    last = max((k for k, there in enumerate(given) if there), default=-1)
    return [s.name for s, there in zip(slots[:last], given) if not there]


def _touched(g: Given) -> tuple[dict[int, str], set[str]]:
    """The node that leaves out an operand behind one that leaves out a result, with what is taken for it: the number of
    the node, the name of a value.  And all names of values that follow from such a node."""
    graph: Graph = g.attr("program")
    held, taken, names = "", dict[int, str](), set[str]()
    for k, node in enumerate(graph.nodes):
        read = {x for v in node.inputs.values() for x in (v if isinstance(v, list) else [v])}
        if held and _left_out(node, g.inst.opset):
            taken[k] = held
            names.update(node.outputs)
        elif names & read:
            names.update(node.outputs)
        if "" in node.outputs:
            held = f"{k}:{len(node.outputs) - 1 - node.outputs[::-1].index('')}"
    return taken, names


def unnamed_result_is_an_operand(g: Given) -> bool:
    """Does a node leave out an operand that a result without a name stands for?"""
    return bool(_touched(g)[0])


def _limits(g: Given, k: int, held: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Of a Clip whose lower limit is the result without a name: its data, the lower limit, the upper one."""
    graph: Graph = g.attr("program")
    dialect = g.case.version.dialect
    with quiet:
        scope = dialect.language.run(graph, g["inputs"], g.inst.opset)
        at, i = map(int, held.split(":"))
        whole = {k: v for k, v in graph.nodes[at].attrs.items() if k != SKIPPED}
        row = dialect.language.node(graph, replace(graph.nodes[at], attrs=whole), scope, g.inst.opset)
    node = graph.nodes[k]
    if node.op != "Clip" or _left_out(node, g.inst.opset) != ["min"]:
        return None
    try:
        data, low, high = np.broadcast_arrays(scope[node.inputs["input"]], row[i].value, scope[node.inputs["max"]])
    except ValueError:
        return None
    return data, low, high


def _limited(g: Given, k: int, held: str) -> np.ndarray | None:
    """The result of a Clip whose lower limit is the result without a name."""
    found = _limits(g, k, held)
    return None if found is None else np.asarray(np.clip(*found))


def unnamed_result_taken(g: Given) -> Outputs:
    """An operand that is left out is the result without a name of an earlier node."""
    graph: Graph = g.attr("program")
    taken, names = _touched(g)
    if not taken:
        return None
    out = list[Any]()
    for name, e in zip(graph.outputs, g.expected):
        k = next((k for k in taken if name in graph.nodes[k].outputs), None)
        value = _limited(g, k, taken[k]) if k is not None else None
        if name not in names:
            out.append(None)
        elif value is not None and value.dtype == e.value.dtype:
            out.append(Near(value, np.abs(value.astype(np.float64)) * 2.0**-10))
        else:
            out.append(_of_the_rank(e.value))
    return out


def unnamed_result_inside(g: Given) -> PerNode | None:
    """The same where the result without a name is itself that of a node with a listed difference: a Clip's lower limit
    may be any number, so each element lies between the data and the upper limit, or is that."""
    taken, _ = _touched(g)
    if not taken:
        return None

    def node(k: int, one: Given) -> NodeAnswer | None:
        found = _limits(g, k, taken[k]) if k in taken else None
        if found is None:
            return None
        data, _, high = (x.astype(np.float64) for x in found)
        least = np.minimum(data, high)
        middle = ((least + high) / 2).astype(found[0].dtype)
        return NodeAnswer([(middle, (high - least) / 2 + np.abs(high) * 2.0**-10)], {})

    return PerNode(node)


def _of_the_rank(due: np.ndarray) -> Such:
    return Such(lambda a: a.dtype == due.dtype and a.ndim == due.ndim, due)
