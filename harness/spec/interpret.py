"""Run a whole graph with the reference: node by node, each result rounded to its declared type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.core.errors import OpconformError, UsageError
from harness.core.instance import Graph, Node
from harness.spec.codec import Call
from harness.spec.fits import evaluated

if TYPE_CHECKING:
    from harness.spec.dialect import Dialect

Watch = Callable[[Node, list[Any]], None]


@contextmanager
def blamed(node: Node) -> Iterator[None]:
    """What goes wrong inside is told of a node, as an OpconformError."""
    where = f"node {node.op} -> {' '.join(filter(None, node.outputs))}"
    try:
        yield
    except OpconformError as e:
        e.args = (f"{where}: {e}",)
        raise
    except Exception as e:
        raise OpconformError(f"{where}: {type(e).__name__}: {' '.join(str(e).split())}") from e


class Scope(dict):  # type: ignore[type-arg]
    """Values by name; what is not here is looked up outside."""

    def __init__(self, outer: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        if self.outer is None:
            raise KeyError(name)
        return self.outer[name]


def run_graph(dialect: Dialect, graph: Graph, inputs: dict[str, Any] | Sequence[Any], opset: Any,
              outer: Any = None, watch: Watch | None = None) -> list[Any]:  # fmt: skip
    """Outputs of ``graph`` in order.

    inputs: by name or in order.  outer: values that a block may use.  watch: called after every node with its outputs,
    for layer-by-layer comparison.  Raises UsageError for an op that is not declared, or a missing input.
    """
    scope = Scope(outer)
    scope.update(graph.consts)
    if not isinstance(inputs, dict):
        names = [n for n, _ in graph.inputs]
        if len(inputs) > len(names):
            raise UsageError(f"graph takes {len(names)} inputs, got {len(inputs)}")
        inputs = dict(zip(names, inputs))
    for name, _ in graph.inputs:
        if name in inputs:
            scope[name] = inputs[name]
        elif name not in scope:
            raise UsageError(f"graph input {name!r} is missing; given: {sorted(inputs)}")
    for node in graph.nodes:
        with blamed(node):
            outs = [e.value for e in evaluated(call_of_node(dialect, node, scope, opset, graph.meta))]
        for name, value in zip(node.outputs, outs):
            if name:
                scope[name] = value
        if watch is not None:
            watch(node, outs)
    return [scope[n] for n in graph.outputs]


def call_of_node(dialect: Dialect, node: Node, scope: Any, opset: Any, meta: dict[str, Any]) -> Call:
    """The call that one node is, its inputs taken from ``scope`` (values by name).

    meta: the graph's: "tensors" (declared outputs and quantisation by name), "opsets" (by domain).
    """
    tensors, domains = meta.get("tensors", {}), meta.get("opsets", {})
    inputs: dict[str, Any] = {}
    quant: dict[str, Any] = {}
    for slot, name in node.inputs.items():
        if name is None:
            continue
        if isinstance(name, list):
            inputs[slot] = [None if n is None else scope[n] for n in name]
            quant[slot] = [tensors.get(n, {}).get("quant") for n in name]
        else:
            inputs[slot] = scope[name]
            q = tensors.get(name, {}).get("quant")
            if q:
                quant[slot] = q
    domain = node.attrs.get("@domain", "")
    at = domains.get(domain, opset)
    version = dialect.effective(node.op, at, domain)
    outs = None
    if tensors and all(n in tensors for n in node.outputs):
        outs = [tensors[n] for n in node.outputs]
    return Call(version, node.attrs, inputs, at, quant, outs, max(1, len(node.outputs)), dialect.runner(opset, scope))
