"""The base of dialects whose instances are random graphs of another dialect's ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from harness.core.instance import Arg, Graph, Instance
from harness.declare import Call, Checks, Dialect, Draw, Evaluation, OpSchema, OpVersion, Sampling
from harness.declare.interpreter import Watch, call_of_node
from suites.graphs.bounds import GraphLanguage
from suites.graphs.draw import Kind, drawn
from suites.graphs.pool import Pool, pool
from suites.graphs.reduce import smaller
from suites.programs import ProgramDialect, Unfolded, program_schema

OUTPUTS = 40  # most outputs of a graph


class GraphDialect(ProgramDialect):
    """An instance is a random graph.  The schema has one op for each kind of graphs, all of version 1.

    base: the dialect of the nodes.
    kinds: by name.
    types: element types of inputs.
    made_types: element types of outputs that no input has.
    of_shapes: ops whose result follows from the shapes of their operands.
    """

    own = ProgramDialect.own | {
        "base",
        "kinds",
        "language",
        "leave",
        "node_attrs",
        "of_shapes",
        "made_types",
        "types",
    }
    language: GraphLanguage
    base: Dialect
    types: Mapping[str, tuple[str, ...]]
    of_shapes: tuple[str, ...] = ()
    made_types: tuple[str, ...] = ()

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
        extra = {"results": self.made_types}
        return [program_schema(name, self.opsets[0], self.opsets[-1], self.types, extra) for name in self.kinds]

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
        return Unfolded(self.language, inst, arrays, smaller, of_shapes=self.of_shapes)
