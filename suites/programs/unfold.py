"""The nodes of a program as instances of their ops, for whoever judges them one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import OpconformError
from harness.core.instance import SAME, Arg, Graph, Instance
from harness.core.quiet import quiet
from harness.declare import Expected
from suites.programs.carried import expected_at
from suites.programs.language import Language
from suites.programs.values import operands

Smaller = Callable[[Instance, Mapping[str, Any]], Iterator[Instance]]


@dataclass(frozen=True)
class Unfolded:
    """The nodes of one instance.  All results that the instance has are those of its program.

    language: how its program runs.  arrays: the data of its inputs.  fewer: smaller programs of the same kind, by an
    instance and all values of its program.  sums_errors: does the bound of the program add up the errors of all nodes?
    of_shapes: ops whose result follows from the shapes of their operands.
    """

    language: Language
    inst: Instance
    arrays: Mapping[str, Any]
    fewer: Smaller
    sums_errors: bool = False
    of_shapes: Collection[str] = ()

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
        return {**self.graph.consts, **self.language.feed(self.graph, self.arrays["inputs"])}

    def reads(self, k: int) -> list[str]:
        return [x for _, _, x in operands(self.graph.nodes[k])]

    def node(self, k: int, scope: Mapping[str, Any]) -> Instance:
        """Node ``k`` as an instance of its op, its operands with the elements that ``scope`` has and the scales that
        the program states of them."""
        return _of_node(self.language, self.graph, k, scope, self.inst.opset, self.graph.consts)

    def at_load(self, k: int, scope: Mapping[str, Any]) -> Instance:
        """As ``node``, but what a runtime may compute before the program runs is constant, too."""
        return _of_node(self.language, self.graph, k, scope, self.inst.opset, self._known)

    @cached_property
    def _known(self) -> set[str]:
        """Names of the values that follow from constants and shapes."""
        known = set(self.graph.consts)
        for k, node in enumerate(self.graph.nodes):
            if node.op in self.of_shapes or known.issuperset(self.reads(k)):
                known.update(node.outputs)
        return known

    def expected(self, given: Mapping[str, Any], off: Mapping[str, Any] | None = None) -> list[Expected]:
        """What the reference expects of the outputs where these values stand in place of its own.  off: how far these
        may be off."""
        g, opset, inputs = self.graph, self.inst.opset, self.arrays["inputs"]
        with quiet:
            scope = self.language.values_given(g, inputs, opset, given)
            bounds = self.language.carried(g, inputs, opset, given, off)
        return [expected_at(scope[o], b) for o, b in zip(g.outputs, bounds)]

    def smaller(self) -> Iterator[Instance]:
        try:
            with quiet:
                scope = self.language.run(self.graph, self.arrays["inputs"], self.inst.opset)
        except OpconformError:
            return iter(())
        return self.fewer(self.inst, scope)


def _of_node(
    language: Language, g: Graph, k: int, scope: Mapping[str, Any], opset: Any, known: Collection[str]
) -> Instance:
    base, node = language.dialect, g.nodes[k]
    v = base.effective(node.op, opset, node.attrs.get("@domain", ""))
    if node.version is not None:
        v = base.versions[f"{base.name}/{node.op}/{node.version}"]
    tensors = g.meta.get("tensors", {})

    def operand(name: str) -> Arg:
        return replace(literal(scope[name], name in known), quant=tensors.get(name, {}).get("quant"))

    args: dict[str, Any] = {}
    for slot, given in node.inputs.items():
        if given is not None:
            args[slot] = [operand(n) for n in given] if isinstance(given, list) else operand(given)
    attrs = {a: x for a, x in node.attrs.items() if a != "@domain"}  # which the version tells
    first: dict[str, str] = {}  # a value that two slots are given stays one tensor
    same = {s: first[n] for s, n in node.inputs.items() if isinstance(n, str) and first.setdefault(n, s) != s}
    if same and base.shares_tensors:
        attrs[SAME] = same
    if tensors:
        attrs["@outputs"] = [_stated(tensors[o]) for o in node.outputs]
    return Instance(base.name, v.op, v.version, opset, attrs, args, len(node.outputs))


def _stated(tensor: Mapping[str, Any]) -> dict[str, Any]:
    """What an instance says of a result that a program states of it."""
    quant = tensor.get("quant")
    return {"dtype": tensor["dtype"].name, **({"quant": quant} if quant else {})}


def literal(x: np.ndarray, const: bool = False) -> Arg:
    """An argument with these elements."""
    d = of(x)
    values = [float(v) for v in x.ravel()] if d.kind == "f" else x.ravel().tolist()
    return Arg(d, x.shape, const, values=values)
