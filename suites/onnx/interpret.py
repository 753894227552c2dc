"""Run an ONNX graph with the reference: nested blocks see the names around them, model-local functions are called.

Each node runs at the op version that its model's opset imports mean; each result is rounded once to its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.core.errors import UsageError
from harness.core.instance import Graph, Node
from harness.core.quiet import quiet
from harness.declare import Expected, OpVersion
from harness.declare.codec import Call
from harness.declare.interpreter import Scope, Watch, blamed
from harness.declare.validation import evaluated
from suites.onnx.builder import AROUND
from suites.onnx.decode import Ref


class Run:
    """One execution: ``Onnx.at``, the opset for nodes that carry no version, local functions, the observer."""

    def __init__(
        self,
        at: Callable[[str, Any, int], OpVersion],
        opset: int,
        functions: Mapping[Any, Any] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.at, self.opset, self.functions, self.watch = at, opset, functions or {}, watch
        self.around: Graph | None = None  # the graph whose nodes are run, which Gradient differentiates

    def graph(
        self,
        g: Graph,
        inputs: Mapping[str, Any] | Sequence[Any],
        outer: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Outputs of ``g`` in order.  inputs: by name or in order.  outer: what a block may use of its surroundings.
        values: attributes of the function whose body this is.  Raises UsageError for a missing input or op."""
        scope = Scope(outer)
        scope.update(g.consts)
        names = [n for n, _ in g.inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) > len(names):
                raise UsageError(f"graph takes {len(names)} inputs, got {len(inputs)}")
            inputs = dict(zip(names, inputs))
        for name in names:
            if name in inputs:
                scope[name] = inputs[name]
            else:
                raise UsageError(f"graph input {name!r} is missing; given: {sorted(inputs)}")
        for name in g.meta.get("defaulted", ()):  # an initializer that is also an input may be overridden
            if name in inputs:
                scope[name] = inputs[name]
        before, self.around = self.around, g
        for node in g.nodes:
            self.node(node, scope, values)
        self.around = before
        return [scope[n] for n in g.outputs]

    def node(self, node: Node, scope: Scope, values: Mapping[str, Any] | None) -> None:
        with quiet, blamed(node):
            outs = self._outputs(node, scope, values)
        for name, value in zip(node.outputs, outs):
            if name:
                scope[name] = value
        if self.watch is not None:
            self.watch(node, outs)

    def _outputs(self, node: Node, scope: Scope, values: Mapping[str, Any] | None) -> list[Any]:
        attrs = self._attrs(node, values)
        if ":" in node.op:
            return self._call(node, attrs, scope)
        return [e.value for e in self._expect(node, attrs, scope, values)]

    def expect(self, node: Node, scope: Scope) -> list[Expected]:
        """What the reference says of one node on the values of ``scope``, with tolerances.  Raises UsageError for an
        op that is not declared, or a function of the model itself."""
        if ":" in node.op:
            raise UsageError(f"no meaning here for {node.op.replace(':', '.')}")
        return self._expect(node, self._attrs(node, None), scope, None)

    def _attrs(self, node: Node, values: Mapping[str, Any] | None) -> dict[str, Any]:
        attrs = node.attrs
        if values is not None:
            attrs = {k: values.get(v.name) if isinstance(v, Ref) else v for k, v in attrs.items()}
            attrs = {k: v for k, v in attrs.items() if v is not None}
        return attrs

    def _expect(
        self, node: Node, attrs: dict[str, Any], scope: Scope, values: Mapping[str, Any] | None
    ) -> list[Expected]:
        inputs: dict[str, Any] = {}
        for slot, name in node.inputs.items():
            if isinstance(name, list):
                inputs[slot] = [None if n is None else scope[n] for n in name]
            elif name is not None:
                inputs[slot] = scope[name]
        version = self.at(node.op, node.version, self.opset)
        if node.op == "Gradient" and AROUND not in attrs:
            attrs = {**attrs, AROUND: self.around}

        def run(g: Graph, args: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
            return self.graph(g, args, scope, values)

        call = Call(version, attrs, inputs, self.opset, None, None, max(1, len(node.outputs)), run)
        return evaluated(call, strict=False)  # published models give scalars as tensors of one element

    def _call(self, node: Node, attrs: dict[str, Any], scope: Scope) -> list[Any]:
        domain, op, overload = [*node.op.split(":"), ""][:3]
        f = self.functions.get((domain, op, overload))
        if f is None:
            raise UsageError(f"no op or local function {domain}.{op} in this model")
        given = [node.inputs.get(str(i)) for i in range(len(f.inputs))]
        inner = Scope(None)
        for formal, name in zip(f.inputs, given):
            inner[formal] = None if name is None else scope[name]
        values = {**f.defaults, **attrs}
        for n in f.body.nodes:
            self.node(n, inner, values)
        return [inner[o] for o in f.outputs]
