"""The conditions of known differences and ambiguities: expressions over an instance and its verdict, and nothing else.

``harness.ledger.facts`` defines the names, and ``docs/known-differences.md`` describes them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from harness.ledger.facts import PREDICATES

_NODES = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.Is,
    ast.IsNot,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Store,
    ast.Constant,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.IfExp,
    ast.GeneratorExp,
    ast.ListComp,
    ast.comprehension,
    ast.keyword,
)
PLAIN = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "abs": abs,
    "any": any,
    "all": all,
    "sorted": sorted,
    "set": set,
    "range": range,
    "int": int,
    "str": str,
    "zip": zip,
}


@dataclass(frozen=True)
class Condition:
    """A compiled condition and the names it asks for."""

    text: str
    code: CodeType
    names: frozenset[str]

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        # All names are globals: the scope of a generator expression sees no locals.
        scope: dict[str, Any] = {n: facts[n] for n in self.names}
        scope["__builtins__"] = {}
        return bool(eval(self.code, scope))


def condition(text: str) -> Condition:
    """Compile a condition, in as many lines as it likes.  Raises ValueError naming what it may not contain."""
    text = " ".join(text.split())
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as e:
        raise ValueError(f"no expression: {e.msg} in {text!r}") from None
    own, names = set[str](), dict[str, None]()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{type(node).__name__} is not allowed in {text!r}")
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                own.add(node.id)
            else:
                names[node.id] = None
    names = {n: None for n in names if n not in own}
    for name in names:
        if name not in PREDICATES and name not in PLAIN:
            raise ValueError(f"unknown name {name!r} in {text!r}, expected one of {' '.join(sorted(PREDICATES))}")
    return Condition(text, compile(tree, "<condition>", "eval"), frozenset(names))
