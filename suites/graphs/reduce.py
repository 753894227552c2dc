"""Smaller graphs: fewer outputs, fewer nodes, no idle inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.core.instance import Arg, Graph, Instance, Node
from suites.programs import literal, operands


def smaller(inst: Instance, scope: Mapping[str, Any]) -> Iterator[Instance]:
    """Graphs with less in them, those with least first.  scope: all values of the graph by name, as the reference has
    them: what stood before the nodes that are kept becomes an input with these values."""
    g: Graph = inst.attrs["program"]
    n = len(g.nodes)
    for width in (n - 1, 3 * n // 4, n // 2, n // 4, 2, 1):
        if 0 < width < n:
            for at in range(0, n, max(1, width // 2)):
                kept = [k for k in range(n) if not at <= k < at + width]
                if kept and len(kept) < n:
                    yield _of_nodes(inst, scope, kept)
    for o in g.outputs if len(g.outputs) > 1 else ():
        yield _of_nodes(inst, scope, range(n), [o])
        yield _of_nodes(inst, scope, range(n), [x for x in g.outputs if x != o])
    for k, node in enumerate(g.nodes):
        yield from _without(inst, scope, k, node)
    if "open" in g.meta:
        closed = replace(g, meta={k: v for k, v in g.meta.items() if k != "open"})
        yield _of_nodes(replace(inst, attrs={**inst.attrs, "program": closed}), scope, range(n), g.outputs)


def _without(inst: Instance, scope: Mapping[str, Any], k: int, node: Node) -> Iterator[Instance]:
    """The graph without a node: its users take an operand of it that has the same type and shape."""
    g: Graph = inst.attrs["program"]
    if len(node.outputs) != 1 or node.outputs[0] in g.outputs:
        return
    out = scope[node.outputs[0]]
    for name in dict.fromkeys(x for _, _, x in operands(node)):
        x = scope[name]
        if x.shape == out.shape and x.dtype == out.dtype:
            renamed = [m if j == k else _renamed(m, {node.outputs[0]: name}) for j, m in enumerate(g.nodes)]
            other = replace(inst, attrs={**inst.attrs, "program": replace(g, nodes=renamed)})
            kept = [j for j in range(len(g.nodes)) if j != k]
            # the values before the node are right, those behind it are made by the nodes that are kept
            yield _of_nodes(other, scope, kept, g.outputs)


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    def one(x: Any) -> Any:
        return names.get(x, x)

    inputs = {s: [one(x) for x in v] if isinstance(v, list) else one(v) for s, v in node.inputs.items()}
    return replace(node, inputs=inputs)


def _of_nodes(
    inst: Instance, scope: Mapping[str, Any], kept: Sequence[int], outputs: Sequence[str] | None = None
) -> Instance:
    """The graph of some of its nodes, and of those that nothing asks for no more.  outputs: those of the graph that are
    left, by default all that a kept node makes; where none is, the results that no kept node uses."""
    g: Graph = inst.attrs["program"]
    nodes = [g.nodes[k] for k in kept]
    made = {o for n in nodes for o in n.outputs if o}
    read = {x for n in nodes for _, _, x in operands(n)}
    wanted = [o for o in (g.outputs if outputs is None else outputs) if o in made]
    if outputs is None:
        wanted += [o for n in nodes for o in n.outputs if o and o not in read and o not in wanted]
    need, live = set(wanted), list[Node]()
    for n in reversed(nodes):
        if need.intersection(n.outputs):
            live.insert(0, n)
            need.update(x for _, _, x in operands(n))
    made = {o for n in live for o in n.outputs if o}
    read = {x for n in live for _, _, x in operands(n)}
    args, names = list[Arg](), dict[str, str]()
    given, tensors = inst.tensors("inputs"), g.meta.get("tensors", {})
    for i, a in enumerate(given):
        if f"p{i}" in read:
            names[f"p{i}"] = f"p{len(args)}"
            args.append(a)
    for x in sorted(read - made - set(g.consts) - names.keys()):
        names[x] = f"p{len(args)}"
        args.append(replace(literal(scope[x]), quant=tensors.get(x, {}).get("quant")))
    meta = dict(g.meta)
    if "open" in g.meta:
        meta["open"] = {names[k]: v for k, v in g.meta["open"].items() if k in names}
    if tensors:
        stated = {names.get(k, k): t for k, t in tensors.items() if k in names or k in made or k in g.consts}
        meta["tensors"] = stated
    live = [_renamed(n, names) for n in live]
    program = Graph([], live, wanted, {k: v for k, v in g.consts.items() if k in read}, meta)
    attrs = {**inst.attrs, "program": program, "pattern": " ".join(n.op for n in live)}
    return replace(inst, attrs=attrs, args={"inputs": args}, outs=len(wanted), choices=None, reruns=())
