"""What comes where a difference is listed (``harness/ledger/defect_models.py``): coremltools, random graphs."""

from __future__ import annotations

from harness.core.instance import Graph, Node
from harness.ledger.defect_models import Given
from suites.programs.values import operands

# ops whose value inference looks at the rank of the value itself
_RANK_OF_VALUE = frozenset(
    {"abs", "acos", "asin", "atan", "atanh", "ceil", "cos", "cosh", "exp", "exp2", "floor", "log"}
)
_RANK_OF_VALUE |= {"round", "rsqrt", "sign", "sin", "sinh", "sqrt", "tan", "tanh"}
_HANDS_ON = frozenset({"cast", "concat", "gather", "identity", "reshape", "split", "stack"})


def _read(node: Node) -> set[str]:
    return {x for _, _, x in operands(node)}


def unary_of_a_folded_scalar(g: Given) -> bool:
    """Does one of these ops take a scalar that another of them gives?  Folded, that is a number of Python."""
    graph: Graph = g.attr("program")
    nodes = [n for n in graph.nodes if n.op in _RANK_OF_VALUE]
    made = {o for n in nodes for o in n.outputs}
    if all(made.isdisjoint(_read(n)) for n in nodes):
        return False
    scope = g.case.version.dialect.language.run(graph, g["inputs"], g.inst.opset)
    return any(scope[x].ndim == 0 for n in nodes for x in made & _read(n))


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
