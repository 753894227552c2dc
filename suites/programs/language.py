"""How programs run: node by node, with the reference of the dialect's declared ops, and how far an output may be off.

The expected value of a program follows from its nodes, whatever steps a runtime makes of it.  Its tolerance is the
first-order propagation of what each node may be off on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.core.instance import Graph, Node
from harness.declare import Call, Context, Dialect, Expected, Tolerance
from harness.declare.expected import open_mask
from harness.declare.interpreter import blamed, call_of_node
from harness.declare.validation import evaluated, misfit_of_call
from harness.tolerance import propagated
from harness.tolerance.underspecified import Underspecified
from suites.programs.bounds import bounds
from suites.programs.carried import carried, values_given


class Language:
    """How programs of one dialect run.  Their inputs are called p0, p1, ... in the order in which they are given.

    dialect: whose declared ops the nodes are.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def settled(self, g: Graph, opset: Any) -> Graph:
        """The program as ``node`` takes it, where the dialect holds it in another form."""
        return g

    def feed(self, g: Graph, inputs: Sequence[Any]) -> dict[str, Any]:
        """The program's inputs by name."""
        return {f"p{i}": x for i, x in enumerate(inputs)}

    def node(self, g: Graph, node: Node, scope: dict[str, Any], opset: Any) -> list[Expected]:
        """What the reference expects of one node on the values of ``scope``."""
        call = call_of_node(self.dialect, node, scope, opset, g.meta)
        return call.version.evaluate(call)

    def open(self, g: Graph, node: Node, scope: dict[str, Any], opset: Any, shapes: Sequence[Any]) -> list[Any] | None:
        """Of each result of one node on the values of ``scope``, a mask of the elements that the specification leaves
        open; None where it leaves none.  shapes: of the results."""
        call = call_of_node(self.dialect, node, scope, opset, g.meta)
        why = call.version.underspecified(call)
        if why is None:
            return None
        if not isinstance(why, Underspecified) or why.masks(0) is None:
            return [np.ones(s, bool) for s in shapes]
        return [open_mask(call, why, i, s) for i, s in enumerate(shapes)]

    def between(self, node: Node, e: Expected, scope: dict[str, Any]) -> Any:
        """How much more a result may be off where the node runs as several ops, which round what lies between them."""
        return 0.0

    def hold(self, program: Graph, inputs: Sequence[Any], opset: Any) -> dict[str, Any]:
        """As ``run``, of a program that no generator drew.  Raises OpconformError where a node is none of its op
        version: types, shapes, stated rules."""
        g = self.settled(program, opset)
        scope = {**g.consts, **self.feed(g, inputs)}
        for node in g.nodes:
            with blamed(node):
                call = call_of_node(self.dialect, node, scope, opset, g.meta)
                why = misfit_of_call(call)
                if why is not None:
                    raise RuleError("operands-fit", why)
                results = [e.value for e in evaluated(call)]
                if len(results) < len(node.outputs):  # a Split of one length, say
                    raise RuleError("operands-fit", f"{len(results)} results for {len(node.outputs)} names")
                scope.update(zip(node.outputs, results))
        return scope

    def run(self, program: Graph, inputs: Sequence[Any], opset: Any) -> dict[str, Any]:
        """All values of a program by name."""
        g = self.settled(program, opset)
        scope = {**g.consts, **self.feed(g, inputs)}
        for node in g.nodes:
            scope.update(zip(node.outputs, [e.value for e in self.node(g, node, scope, opset)]))
        return scope

    def run_call(self, call: Call) -> dict[str, Any]:
        """All values of the program of a call by name."""
        return self.run(call.attrs["program"], call.inputs["inputs"], call.opset)

    def tolerance(self, k: int, narrow: bool = False, merges: bool = False) -> Tolerance:
        """Of output ``k``: the errors of all nodes, propagated.  narrow: every value is rounded to f16.  merges: and a
        rounding of each constant, as of one that others are merged into."""

        def bound(ctx: Context) -> Any:
            return self.bounds(ctx.call, narrow, merges=merges)[k]

        what = "every value rounded to f16" if narrow else "every op's own error"
        what += " and a rounding of each constant" if merges else ""
        return propagated(bound, f"{what}, propagated through the program, twice, + ulp", unlimited=True)

    def bounds(self, call: Call, narrow: bool = False, names: Sequence[str] = (), merges: bool = False) -> list[Any]:
        """How far outputs of the program of a call may be off (``suites.programs.bounds``).  names: of these values.
        narrow: every value is rounded to f16.  merges: and each constant once more."""
        return bounds(self, call, narrow, names, merges)

    def values_given(self, g: Graph, inputs: Any, opset: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """As ``run``, with ``given`` in place of what the reference computes."""
        return values_given(self, g, inputs, opset, given)

    def carried(
        self,
        g: Graph,
        inputs: Any,
        opset: Any,
        given: Mapping[str, Any] | None = None,
        off: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """How far outputs may be off where all nodes are off at once (``suites.programs.carried``).  given: values in
        place of the reference's.  off: how far these may be off."""
        return carried(self, g, inputs, opset, given, off)
