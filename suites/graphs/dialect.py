"""The base of dialects whose instances are random graphs of another dialect's ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from harness.core.errors import OpconformError
from harness.core.instance import SAME, Arg, Graph, Instance
from harness.core.quiet import quiet
from harness.declare import Call, Checks, Dialect, Draw, Evaluation, Expected, OpSchema, OpVersion, Sampling
from harness.declare.interpreter import Watch, call_of_node
from suites.graphs.bounds import GraphLanguage, expected_at
from suites.graphs.draw import Kind, drawn
from suites.graphs.pool import Pool, pool
from suites.graphs.reduce import literal, smaller
from suites.programs import ProgramDialect, program_schema

OUTPUTS = 40  # most outputs of a graph


@dataclass(frozen=True)
class Unfolded:
    """The nodes of one instance, for whoever judges them one by one.

    names: of each node's results.  outputs: names of the outputs.  values: inputs and constants by name.
    """

    dialect: GraphDialect
    inst: Instance
    arrays: Mapping[str, Any]

    @property
    def graph(self) -> Graph:
        program: Graph = self.inst.attrs["program"]
        return program

    @property
    def names(self) -> list[list[str]]:
        return [n.outputs for n in self.graph.nodes]

    @property
    def outputs(self) -> list[str]:
        return self.graph.outputs

    @property
    def values(self) -> dict[str, Any]:
        return {**self.graph.consts, **self.dialect.language.feed(self.graph, self.arrays["inputs"])}

    def node(self, k: int, scope: Mapping[str, Any]) -> Instance:
        """Node ``k`` as an instance of its op, on the values of ``scope``."""
        return self.dialect.of_node(self.graph, k, scope, self.inst.opset)

    def expected(self, given: Mapping[str, Any], off: Mapping[str, Any] | None = None) -> list[Expected]:
        """What the reference expects of the outputs where these values stand in place of its own.  off: how far these
        may be off."""
        return self.dialect.expected_given(self.inst, self.arrays, given, off)

    def smaller(self) -> Iterator[Instance]:
        try:
            with quiet:
                scope = self.dialect.language.run(self.graph, self.arrays["inputs"], self.inst.opset)
        except OpconformError:
            return iter(())
        return smaller(self.inst, scope)


class GraphDialect(ProgramDialect):
    """An instance is a random graph.  Its schema has one op for each kind of graphs, all of version 1.

    base: the dialect of the nodes.  kinds: by name.  types: element types of inputs.
    """

    own = ProgramDialect.own | {
        "base",
        "expected_given",
        "kinds",
        "language",
        "leave",
        "node_attrs",
        "of_node",
        "types",
    }
    language: GraphLanguage
    base: Dialect
    types: Mapping[str, tuple[str, ...]]

    def __init__(self, package: str, base: Dialect, kinds: Mapping[str, Kind], types: Sequence[str]) -> None:
        super().__init__(package, GraphLanguage(base))
        self.base, self.kinds, self.types = base, kinds, {"T": tuple(types)}
        self._inputs: list[Arg] = []

    def leave(self, version: OpVersion) -> bool:
        """Is this op version left out of random graphs?"""
        return False

    def node_attrs(self, version: OpVersion, inst: Instance) -> dict[str, Any]:
        """Further attributes of the node that an instance becomes."""
        return {}

    def parse(self, data: Any) -> Graph:
        return self.base.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        return self.base.run_model(model, inputs, watch)

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return [program_schema(name, self.opsets[0], self.opsets[-1], self.types) for name in self.kinds]

    def declare(self, name: str) -> None:
        """An entry: graphs of one of the kinds."""
        errors = tuple(self.language.propagated(k) for k in range(OUTPUTS))
        evaluation = Evaluation(self.results, errors, "what each node means, one by one")
        self.op(name, evaluation, Sampling(self._drawer(self.kinds[name])), Checks(ambiguous=self._open))

    def _drawer(self, kind: Kind) -> Any:
        def draw(d: Draw) -> dict[str, Any]:
            values, self._inputs = drawn(self.base, self._pool(d.opset), kind, d, self.node_attrs)
            return values

        return draw

    def _pool(self, opset: Any) -> Pool:
        return pool(self.base, opset, self.leave)

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """The inputs as the nodes' generators drew them."""
        return replace(inst, args={"inputs": self._inputs})

    def _open(self, call: Call) -> str | None:
        """What one of the nodes leaves open on the values that it gets."""
        g = call.attrs["program"]
        scope = {**g.consts, **self.language.feed(g, call.inputs["inputs"])}
        for node in g.nodes:
            one = call_of_node(self.base, node, scope, call.opset, g.meta)
            why = one.version.underspecified(one)
            if why is not None:
                return f"{node.op}: {why}"
            scope.update(zip(node.outputs, [e.value for e in one.version.evaluate(one)]))
        return None

    # -- nodes

    def unfold(self, inst: Instance, arrays: dict[str, Any]) -> Unfolded | None:
        return Unfolded(self, inst, arrays)

    def of_node(self, g: Graph, k: int, scope: Mapping[str, Any], opset: Any) -> Instance:
        """A node as an instance of its op, its operands with the elements that ``scope`` has."""
        node = g.nodes[k]
        v = self.base.effective(node.op, opset)
        if node.version is not None:
            v = self.base.versions[f"{self.base.name}/{node.op}/{node.version}"]
        args: dict[str, Any] = {}
        for slot, given in node.inputs.items():
            if isinstance(given, list):
                args[slot] = [literal(scope[n], n in g.consts) for n in given]
            elif given is not None:
                args[slot] = literal(scope[given], given in g.consts)
        attrs, tensors = dict(node.attrs), g.meta.get("tensors", {})
        first: dict[str, str] = {}  # a value that two slots are given stays one tensor
        same = {s: first[n] for s, n in node.inputs.items() if isinstance(n, str) and first.setdefault(n, s) != s}
        if same and self.base.shares_tensors:
            attrs[SAME] = same
        if tensors:
            attrs["@outputs"] = [{"dtype": tensors[o]["dtype"].name} for o in node.outputs]
        return Instance(self.base.name, v.op, v.version, opset, attrs, args, len(node.outputs))

    def expected_given(
        self, inst: Instance, arrays: Mapping[str, Any], given: Mapping[str, Any], off: Mapping[str, Any] | None
    ) -> list[Expected]:
        """What the reference expects where some values stand in place of its own, with bounds around that."""
        call = self.call_of(inst, dict(arrays), self.version_of(inst))
        g, opset = call.attrs["program"], call.opset
        with quiet:
            scope = self.language.expected_of(g, call.inputs["inputs"], opset, given)
            bounds = self.language.carried(g, call.inputs["inputs"], opset, given, off)
        return [expected_at(scope[o], b) for o, b in zip(g.outputs, bounds)]
