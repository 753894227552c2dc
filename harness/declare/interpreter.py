"""Run a whole graph with the reference: node by node, each result rounded to its declared type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import OpconformError, UsageError
from harness.core.instance import Arg, Graph, Instance, Node
from harness.declare.codec import Call
from harness.declare.expected import Expected
from harness.declare.op_version import OpVersion
from harness.declare.validation import evaluated

Watch = Callable[[Node, list[Any]], None]


class Ops(Protocol):
    """What a graph asks of its dialect."""

    def effective(self, op: str, opset: Any, domain: str = "") -> OpVersion: ...

    def runner(self, opset: Any, outer: dict[str, Any]) -> Callable[..., list[Any]]: ...


class Unfolded(Protocol):
    """The nodes of an instance that is a program, to be run one by one.

    names: of the results of each node, in order.
    outputs: names of the outputs of the program.
    values: its inputs and constants by name.
    sums_errors: does the bound of the program add up the errors of all nodes?  Then an answer beyond it is wrong,
        unless a node is.
    """

    @property
    def names(self) -> Sequence[Sequence[str]]: ...

    @property
    def outputs(self) -> Sequence[str]: ...

    @property
    def values(self) -> Mapping[str, Any]: ...

    @property
    def sums_errors(self) -> bool: ...

    def reads(self, k: int) -> Sequence[str]:
        """Names of the values that node ``k`` reads."""
        ...

    def node(self, k: int, scope: Mapping[str, Any]) -> Instance:
        """Node ``k`` as an instance of its op, its operands as ``scope`` has them."""
        ...

    def at_load(self, k: int, scope: Mapping[str, Any]) -> Instance:
        """As ``node``, but operands that a runtime may know before the program runs are constants."""
        ...

    def expected(self, given: Mapping[str, Any], off: Mapping[str, Any] | None = None) -> list[Expected]:
        """What the reference expects of the outputs with these values in place of its own.  off: how far these may be
        off.  Elements that may be anything are open."""
        ...

    def smaller(self) -> Iterator[Instance]:
        """Smaller programs of the same kind, those with the fewest nodes first."""
        ...


@contextmanager
def blamed(node: Node) -> Iterator[None]:
    """What goes wrong inside is told of a node, as an OpconformError."""
    where = " ".join(f"node {node.op} -> {' '.join(filter(None, node.outputs))}".split())
    try:
        yield
    except OpconformError as e:
        text = str(e)
        if "\n" in text:  # a name of a damaged model
            text = " ".join(text.split())
        e.args = (f"{where}: {text}" if len(text) < 1000 else text,)  # blocks of blocks
        raise
    except Exception as e:
        raise OpconformError(f"{where}: {type(e).__name__}: {' '.join(str(e).split())}") from e


class Scope(dict):
    """Values by name; what is not here is looked up outside."""

    def __init__(self, outer: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        if self.outer is None or (not isinstance(self.outer, Scope) and name not in self.outer):
            raise UsageError(f"value {name!r} is used before it is made")
        return self.outer[name]


def fed(
    graph: Graph, inputs: Mapping[str, Any] | Sequence[Any], cast: bool = False, free: Collection[str] = ()
) -> dict[str, Any]:
    """The inputs of a model, given by name or in order, as arrays of the declared types by name.

    cast: arrays of other numbers are converted.
    free: inputs of any type, or that need not be given.

    Raises UsageError for an input that is missing, unknown or of another type.
    """
    known = dict(graph.inputs)
    if not isinstance(inputs, Mapping):
        if len(inputs) > len(known):
            raise UsageError(f"graph takes {len(known)} inputs, got {len(inputs)}")
        inputs = dict(zip(known, inputs))
    for name in known:
        if name not in inputs and name not in free and name not in graph.consts:
            raise UsageError(f"graph input {name!r} is missing; given: {sorted(map(str, inputs))}")
    for name in inputs:
        if name not in known and name not in free and name not in graph.consts:
            raise UsageError(f"no graph input {name!r}, expected {' '.join(map(repr, known)) or 'none'}")
    return {n: x if n in free or n not in known else _fed(n, known[n], x, cast) for n, x in inputs.items()}


def _map_of(a: Arg, x: Mapping[Any, Any]) -> dict[Any, Any]:
    """A map with values of the declared type, which a number of Python, or one that travelled, does not tell."""
    assert a.items is not None
    values = a.items[1].dtype
    plain = {k: v.item() if isinstance(v, (np.ndarray, np.generic)) else v for k, v in x.items()}
    return plain if values.kind == "s" else {k: values.np.type(v) for k, v in plain.items()}


def _fed(name: str, a: Arg, x: Any, cast: bool) -> Any:
    if a.kind == "map" and isinstance(x, Mapping):
        return _map_of(a, x)
    if a.kind != "tensor" or a.items is not None:
        inner = a.items[0] if a.items else None
        maps = inner is not None and inner.kind == "map" and isinstance(x, (list, tuple))
        return [_fed(name, inner, v, cast) for v in x] if maps and inner is not None else x
    want = a.dtype
    try:
        if x is None:
            raise TypeError("no value")
        array = x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x, want.np)
        array = np.asarray(array)
        got = of(array)
        if got.kind == "s" and not all(isinstance(e, (str, bytes)) for e in array.ravel()):
            raise ValueError("an array of objects")
    except (TypeError, ValueError, OverflowError) as e:
        raise UsageError(f"input {name}: expected {want}, got {type(x).__name__}: {' '.join(str(e).split())}") from None
    if array.dtype == want.np or got is want:
        return array
    if not cast or "s" in (got.kind, want.kind):
        raise UsageError(f"input {name}: expected {want}, got {got}")
    return array.astype(want.np)


def run_graph(
    dialect: Ops,
    graph: Graph,
    inputs: dict[str, Any] | Sequence[Any],
    opset: Any,
    outer: Any = None,
    watch: Watch | None = None,
) -> list[Any]:
    """Outputs of ``graph`` in order.

    inputs: by name or in order.  outer: values that a block may use.  watch: called after every node with its outputs,
    for layer-by-layer comparison.  Raises UsageError for an op that is not declared, or a missing input.
    """
    scope = Scope(outer)
    scope.update(graph.consts)
    if not isinstance(inputs, Mapping):
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


def call_of_node(dialect: Ops, node: Node, scope: Any, opset: Any, meta: dict[str, Any]) -> Call:
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
