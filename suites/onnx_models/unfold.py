"""Control flow laid flat for the given inputs, so that every layer is a node of one graph and has a name.

An If becomes the branch that was taken, a Loop as many copies of its body as it ran, a call of a model's own function
its body.  Which branch and how many times is asked of the reference.  What cannot be laid flat stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper

from harness.core.errors import OpconformError, reading
from harness.core.instance import Node
from harness.core.limits import bounded
from suites.onnx import dialect
from suites.onnx.interpret import Run

DEPTH = 8  # blocks in blocks in blocks
LIMIT = 512  # copies of a body at most


class Kept(Exception):
    """This node cannot be laid flat; the message says why."""


def unfold(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> onnx.ModelProto:
    """A model of the same results on these ``inputs``, with as little control flow as possible.  Raises FormatError for
    a model that cannot be read."""
    with reading("the model"), bounded():
        return _unfolded(model, inputs)


def _unfolded(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> onnx.ModelProto:
    if model.functions:
        model = inliner.inline_local_functions(model)
    flat = onnx.ModelProto()
    flat.CopyFrom(model)
    kept: set[str] = set()
    for _ in range(DEPTH):
        blocks = [n for n in flat.graph.node if _blocks(n) and n.output[0] not in kept]
        if not blocks:
            break
        values, runs = _observe(flat, inputs, blocks)
        nodes = list(flat.graph.node)
        del flat.graph.node[:]
        for n in nodes:
            if not any(n is b for b in blocks):
                flat.graph.node.append(n)
                continue
            try:
                flat.graph.node.extend(_flatten(flat, n, values, runs))
            except Kept:
                kept.add(n.output[0])
                flat.graph.node.append(n)
    del flat.graph.value_info[:]
    return flat


def opset(model: onnx.ModelProto) -> int:
    """Of the default domain."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def _blocks(n: onnx.NodeProto) -> list[onnx.GraphProto]:
    if n.domain not in ("", "ai.onnx"):
        return []
    return [a.g for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]


def _observe(model: onnx.ModelProto, inputs: Mapping[str, Any], blocks: list[onnx.NodeProto]) -> tuple[dict, dict]:
    """What the reference says: values by name, and first result of a Loop -> turns it took.  Where the reference lacks
    an op, what it computed before."""
    wanted = {name for n in blocks for name in n.input}
    values: dict[str, Any] = {}
    values.update((t.name, numpy_helper.to_array(t)) for t in model.graph.initializer if t.name in wanted)
    values.update((k, v) for k, v in inputs.items() if k in wanted)
    g = dialect.parse(model.SerializeToString())
    # names inside blocks repeat from block to block, so the first node of each body is what is counted
    firsts = {id(n.attrs["body"].nodes[0]): n.outputs[0] for n in g.nodes if n.op == "Loop" and n.attrs["body"].nodes}
    turns = dict.fromkeys(firsts.values(), 0)
    outer = {id(n) for n in g.nodes}

    def watch(node: Node, outs: list[Any]) -> None:
        if id(node) in firsts:
            turns[firsts[id(node)]] += 1
        if id(node) in outer:
            values.update((name, v) for name, v in zip(node.outputs, outs) if name in wanted)

    with suppress(OpconformError):  # the blocks that were reached can be laid flat, the others stay
        Run(dialect.at, opset(model), g.meta["functions"], watch).graph(g, inputs)
    return values, turns


def _flatten(model: onnx.ModelProto, n: onnx.NodeProto, values: dict, runs: dict) -> list[onnx.NodeProto]:
    if n.op_type == "If":
        return _branch(model, n, values)
    if n.op_type == "Loop":
        return _turns(model, n, runs)
    raise Kept(f"{n.op_type} is no If and no Loop")


def _branch(model: onnx.ModelProto, n: onnx.NodeProto, values: dict) -> list[onnx.NodeProto]:
    if n.input[0] not in values:
        raise Kept("its condition was not reached")
    taken = "then_branch" if bool(np.reshape(values[n.input[0]], -1)[0]) else "else_branch"
    body = next(a.g for a in n.attribute if a.name == taken)
    nodes, names = _copy(model, body, f"{n.name or n.output[0]}/", {})
    return nodes + [_same(names.get(o.name, o.name), out) for o, out in zip(body.output, n.output) if out]


def _turns(model: onnx.ModelProto, n: onnx.NodeProto, runs: dict) -> list[onnx.NodeProto]:
    body = next(a.g for a in n.attribute if a.name == "body")
    if n.output[0] not in runs:
        raise Kept("a body without nodes")
    turns = runs[n.output[0]]
    carried = len(n.input) - 2
    scanned = len(body.output) - 1 - carried
    if turns > LIMIT or (turns == 0 and scanned):
        raise Kept(f"{turns} turns")
    prefix = n.name or n.output[0]
    now = [_constant(model, f"{prefix}/cond", np.array(True)), *n.input[2:]]
    rows: list[list[str]] = [[] for _ in range(scanned)]
    nodes: list[onnx.NodeProto] = []
    for turn in range(turns):
        given = [_constant(model, f"{prefix}#{turn}/turn", np.array(turn, np.int64)), *now]
        more, names = _copy(model, body, f"{prefix}#{turn}/", dict(zip([i.name for i in body.input], given)))
        nodes += more
        outs = [names.get(o.name, o.name) for o in body.output]
        now = outs[: 1 + carried]
        for row, name in zip(rows, outs[1 + carried :]):
            row.append(name)
    nodes += [_same(a, b) for a, b in zip(now[1:], n.output) if b]
    for row, out in zip(rows, n.output[carried:]):
        if out:
            nodes += _stack(model, row, out)
    return nodes


def _stack(model: onnx.ModelProto, row: list[str], out: str) -> list[onnx.NodeProto]:
    """Values as slices along a new first axis."""
    nodes, parts = [], []
    for i, name in enumerate(row):
        parts.append(f"{out}#{i}")
        if opset(model) < 13:
            nodes.append(helper.make_node("Unsqueeze", [name], [parts[-1]], axes=[0]))
        else:
            axes = _constant(model, f"{out}#axes", np.array([0], np.int64))
            nodes.append(helper.make_node("Unsqueeze", [name, axes], [parts[-1]]))
    return [*nodes, helper.make_node("Concat", parts, [out], axis=0)]


def _copy(model: onnx.ModelProto, body: onnx.GraphProto, prefix: str, names: dict[str, str]) -> tuple[list, dict]:
    """Nodes of a body under names of their own, its initializers moved to the model; also the new name of each old
    one.  names: what its inputs are called outside."""
    names = dict(names)
    own = [t.name for t in body.initializer] + [o for x in body.node for o in x.output if o]
    names.update((o, prefix + o) for o in own)
    for t in body.initializer:
        model.graph.initializer.add().CopyFrom(t)
        model.graph.initializer[-1].name = names[t.name]
    return [_renamed(x, names, prefix) for x in body.node], names


def _renamed(n: onnx.NodeProto, names: Mapping[str, str], prefix: str) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(n)
    if out.name:
        out.name = prefix + out.name
    for field in (out.input, out.output):
        field[:] = [names.get(x, x) for x in field]
    for a in out.attribute:
        for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
            _rename_inside(g, names)
    return out


def _rename_inside(g: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """What a nested block uses of its surroundings follows; what it makes itself keeps its name."""
    own = {v.name for v in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
    seen = {k: v for k, v in names.items() if k not in own}
    for n in g.node:
        n.input[:] = [seen.get(x, x) for x in n.input]
        for a in n.attribute:
            for inner in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
                _rename_inside(inner, seen)
    for o in g.output:
        o.name = seen.get(o.name, o.name)


def _same(a: str, b: str) -> onnx.NodeProto:
    return helper.make_node("Identity", [a], [b], name=f"{b}/out")


def _constant(model: onnx.ModelProto, name: str, value: np.ndarray) -> str:
    if all(t.name != name for t in model.graph.initializer):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return name
