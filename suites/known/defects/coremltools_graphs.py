"""What comes where a difference is listed (``harness/ledger/defect_models.py``): coremltools, random graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.given import Given
from harness.core.dtypes import F16
from harness.core.errors import RuleError
from harness.core.instance import Graph, Node
from harness.declare import registry
from harness.ledger.defect_models import NodeAnswer, PerNode
from suites.programs.values import operands

# ops whose value inference looks at the rank of the value itself
_RANK_OF_VALUE = frozenset(
    {"abs", "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "exp", "exp2", "floor", "log"}
)
_RANK_OF_VALUE |= {"round", "rsqrt", "sign", "sin", "sinh", "sqrt", "tan", "tanh"}
# ops that give a number of Python for a scalar, and ops that ask such a number for what only an array has
_GIVES_NUMBER = _RANK_OF_VALUE | {"elu", "erf", "gelu", "inverse", "leaky_relu"}
_NEEDS_ARRAY = _RANK_OF_VALUE | {"identity", "reshape"}
# ops that compute with two such numbers what is one again, and no value of a program
_OF_TWO_NUMBERS = frozenset({"add", "floor_div", "mod", "mul", "pow", "real_div", "sub"})
_HANDS_ON = frozenset({"cast", "concat", "gather", "identity", "reshape", "split", "stack"})
# ops that take from it what they are told to, in the type that it has
_TAKES = frozenset({"gather", "slice_by_index", "slice_by_size", "split"})


def _read(node: Node) -> set[str]:
    return {x for _, _, x in operands(node)}


def _numbers(g: Given) -> tuple[set[str], dict[str, Any]]:
    """Names of the scalars that one of these ops gives, which are numbers of Python once folded; all values by name."""
    graph: Graph = g.attr("program")
    makers = [n for n in graph.nodes if n.op in _GIVES_NUMBER and n.attrs.get("mode", "EXACT") == "EXACT"]
    made = {o for n in makers for o in n.outputs}
    if not made:
        return set(), {}
    scope = g.case.version.dialect.language.run(graph, g["inputs"], g.inst.opset)
    return {x for x in made if scope[x].ndim == 0}, scope


def array_op_of_a_folded_scalar(g: Given) -> bool:
    """Does an op that needs an array take a number of Python, or one that needs a single array two numbers?"""
    graph: Graph = g.attr("program")
    numbers, _ = _numbers(g)
    return any(
        (n.op in _NEEDS_ARRAY and numbers & _read(n)) or (n.op in _OF_TWO_NUMBERS and numbers >= _read(n))
        for n in graph.nodes
    )


def folded_scalar_beside_f16(g: Given) -> list[Any] | None:
    """A scalar of f32 that is a number of Python has no type of its own: beside parameters of f16 it computes in
    that."""
    graph: Graph = g.attr("program")
    numbers, scope = _numbers(g)
    program = g.case.version.dialect.unfold(g.inst, g.arrays)
    given, off = dict[str, Any](), dict[str, Any]()
    for k, node in enumerate(graph.nodes):
        types = node.attrs.get("@types", {})
        if not numbers & _read(node) or (types.get("T"), types.get("U")) != ("f32", "f16"):
            continue
        inst = program.node(k, scope)
        args = {s: replace(a, dtype=F16) if a.dtype.name == "f32" else a for s, a in inst.args.items()}
        inst = replace(inst, args=args, attrs={a: x for a, x in inst.attrs.items() if a[0] != "@"})
        case = Case(registry.version_of(inst), inst, 0)
        for name, e in zip(node.outputs, (case.expected or [[]])[0]):
            bound = np.asarray(e.error.bound(e.context()), np.float64)
            given[name] = e.value.astype(scope[name].dtype)
            off[name] = 4 * bound + 2.0**-9 * np.abs(e.value.astype(np.float64))
    if not given:
        return None
    expected: list[Any] = program.expected(given, off)
    return expected


def op_of_what_was_known_in_part(g: Given) -> bool:
    """Does an op take what others took from a concat or a stack, some elements of which are symbols?  What is wholly
    known of it is an array of objects still."""
    symbols, taken = set[str](), set[str]()
    graph: Graph = g.attr("program")
    for node in graph.nodes:
        read = _read(node)
        if taken & read and node.op not in _HANDS_ON | _TAKES:
            return True
        if node.op in _TAKES and (symbols | taken) & read:
            taken.update(node.outputs)
        if node.op in ("concat", "stack") or (node.op in _HANDS_ON and symbols & read):
            symbols.update(node.outputs)
        if node.op in _HANDS_ON and taken & read:
            taken.update(node.outputs)
    return False


def reshaped_select(g: Given) -> bool:
    """Does an op that makes its shape of the inferred one take what follows from a select that the condition widens?"""
    graph: Graph = g.attr("program")
    selects = [n for n in graph.nodes if n.op == "select"]
    if not selects:
        return False
    scope = g.case.version.dialect.language.run(graph, g["inputs"], g.inst.opset)
    selected = set[str]()
    for n in selects:
        a, b = (scope[str(n.inputs[s])].shape for s in "ab")
        if np.broadcast_shapes(a, b) != scope[n.outputs[0]].shape:
            selected.add(n.outputs[0])
    for n in graph.nodes:
        if selected & _read(n):
            if n.op in ("expand_dims", "flatten2d", "reshape", "squeeze", "transpose"):
                return True
            selected.update(n.outputs)
    return False


def flatten2d_of_what_is_known_in_part(g: Given) -> bool:
    """Does a flatten2d take what follows from a concat or a stack, some elements of which are symbols?"""
    symbols = set[str]()
    graph: Graph = g.attr("program")
    for node in graph.nodes:
        if node.op == "flatten2d" and symbols & _read(node):
            return True
        if node.op in ("concat", "stack") or (node.op in _HANDS_ON and symbols & _read(node)):
            symbols.update(node.outputs)
    return False


def extents_left_at_zero(g: Given) -> list[Any] | None:
    """Integers where an entry of 0 in the shape of a reshape is an extent of 0, and not that of its operand."""
    program, inputs, opset = g.attr("program"), g["inputs"], g.inst.opset
    language = g.case.version.dialect.language
    right = language.run(program, inputs, opset)
    scope = {**program.consts, **language.feed(program, inputs)}
    for node in program.nodes:
        if node.op == "reshape":
            entries, y = scope[str(node.inputs["shape"])], right[node.outputs[0]]
            if y.size and np.any(entries == 0):
                scope[node.outputs[0]] = np.zeros(np.where(entries == 0, 0, y.shape), y.dtype)
                continue
        try:
            made = [e.value for e in language.node(program, node, scope, opset)]
        except RuleError:  # of elements that are not there
            made = [right[o] for o in node.outputs]
        scope.update(zip(node.outputs, made, strict=True))
    known = [right[o].dtype.kind in "iu" and scope[o].shape == right[o].shape for o in program.outputs]
    return [scope[o] if k else None for o, k in zip(program.outputs, known, strict=True)]


def _thresholded_in_place(g: Given, shared: bool) -> PerNode:
    """shared: have the nodes before thresholded_relu kept the memory of its operand, as a slice does?"""
    graph = g.inst.attrs["program"]
    operands = {k: str(n.inputs["x"]) for k, n in enumerate(graph.nodes) if n.op == "thresholded_relu"}

    def node(k: int, one: Given) -> NodeAnswer | None:
        if k in operands:
            y = one.expected[0].value
            return NodeAnswer([(y, np.zeros(y.shape))], {operands[k]: y})
        later = {x for n, x in operands.items() if n > k}
        if shared or not later.intersection(map(str, graph.nodes[k].inputs.values())):
            return None
        return NodeAnswer([(e.value, e.error.bound(e.context())) for e in one.expected], {})

    return PerNode(node)


def thresholded_in_place(g: Given) -> PerNode:
    """thresholded_relu sets elements of its operand to 0, for all that share its memory."""
    return _thresholded_in_place(g, True)


def thresholded_in_place_late(g: Given) -> PerNode:
    """The same where the nodes before it had read the operand."""
    return _thresholded_in_place(g, False)
