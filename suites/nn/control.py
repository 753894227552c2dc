"""Control flow: nested networks of an instance, in a model and evaluated.

An instance of ``branch`` or ``loop`` holds its nested networks as graphs.  They see the blobs ``captured0``,
``captured1``, ..., and leave their results in blobs named by ``@results``.  A loop's results are states ``s0``, ``s1``,
... that start as copies of the captured blobs.  ``loopBreak`` and ``loopContinue`` stand in the body of a loop that the
instance spells under private names (``@bodyNetwork``, ``@maxLoopIterations``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.core.instance import Graph, Instance, Node
from harness.declare.codec import Call
from suites.nn.interpret import Run
from suites.nn.network import Network

_INSIDE = ("loopBreak", "loopContinue")
OPS = ("branch", "loop", *_INSIDE)


def layer_of(op: str, attrs: dict[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """(layer, its parameters, result blobs) of a control-flow instance."""
    results = list(attrs["@results"])
    if op in _INSIDE:
        return "loop", {k[1:]: v for k, v in attrs.items() if k[1:] in ("bodyNetwork", "maxLoopIterations")}, results
    return op, {k: v for k, v in attrs.items() if not k.startswith("@")}, results


def states(op: str, results: list[str]) -> list[str]:
    """Blobs that must exist before the layer runs: a loop's states."""
    return [] if op == "branch" else results


def evaluate(call: Call) -> list[np.ndarray]:
    """Results of a control-flow call."""
    if call.attrs.get("@outside"):
        raise RuleError("inside-a-loop", call.version.op)
    layer, attrs, results = layer_of(call.version.op, call.attrs)
    run = Run(call.version.dialect, {})
    captured = call.inputs.get("captured", [])
    for i, x in enumerate(captured):
        run.blobs[f"captured{i}"] = x
    for name, x in zip(states(layer, results), captured):  # others are made by the body
        run.blobs[name] = x
    inputs: dict[str, Any] = {}
    for slot in ("condition", "count"):
        if slot in call.inputs:
            run.blobs[slot] = call.inputs[slot]
            inputs[slot] = slot
    run.layers([Node(layer, inputs, [], attrs)])
    missing = [n for n in results if n not in run.blobs]
    if missing:
        raise RuleError("results-are-made", f"no layer makes {missing}")
    return [run.blobs[n] for n in results]


def place(b: Network, prefix: str, inst: Instance, names: dict[str, list[str]]) -> list[str]:
    """Append the layer of a control-flow instance to a network; returns the names of its result blobs."""
    if inst.attrs.get("@outside"):
        b.add(prefix, inst.op, [], [], {})
        return names["captured"]
    layer, attrs, results = layer_of(inst.op, inst.attrs)
    captured = names.get("captured", [])
    to = {f"captured{i}": n for i, n in enumerate(captured)}

    def name(n: str) -> str:
        return to.setdefault(n, f"{prefix}_{n}")

    for i, (s, first) in enumerate(zip(states(layer, results), captured)):
        b.add(f"{prefix}_start{i}", "copy", [first], [name(s)], {})
    renamed = _renamed(attrs, name)
    given = [n for slot in ("condition", "count") for n in names.get(slot, ())]
    b.add(prefix, layer, given, [], renamed)
    return [name(r) for r in results]


def _rename(g: Graph, name: Callable[[str], str]) -> Graph:
    out = Graph()
    for n in g.nodes:
        inputs: dict[str, str | list[str] | None] = {
            k: [name(x) for x in v] if isinstance(v, list) else name(v) for k, v in n.inputs.items() if v is not None
        }
        out.nodes.append(Node(n.op, inputs, [name(o) for o in n.outputs], _renamed(n.attrs, name), n.version))
    return out


def _renamed(attrs: dict[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Parameters with the blobs renamed that they name, in nested networks too."""
    out: dict[str, Any] = {k: _rename(v, name) if isinstance(v, Graph) else v for k, v in attrs.items()}
    if out.get("conditionVar"):
        out["conditionVar"] = name(out["conditionVar"])
    return out
