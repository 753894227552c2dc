"""What a backend class states in its source, read without importing its runtime, which need not be installed here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any


def stated(file: str, cls: str, attribute: str) -> Any:
    """The literal that the class, or a base of it in the same file, assigns to an attribute; a constant of the file by
    its name, too.  None where there is no such assignment, or where it is computed."""
    classes, constants = _parsed(file)
    for name in _order(cls, classes):
        for node in classes[name].body:
            if isinstance(node, ast.Assign) and attribute in _targets(node):
                value: ast.expr | None = node.value
                if isinstance(value, ast.Name):
                    value = constants.get(value.id)
                try:
                    return None if value is None else ast.literal_eval(value)
                except ValueError:
                    return None
    return None


def _order(cls: str, classes: dict[str, ast.ClassDef]) -> list[str]:
    """The class and its bases in the file, the nearest first."""
    if cls not in classes:
        return []
    bases = [b.id for b in classes[cls].bases if isinstance(b, ast.Name)]
    return [cls, *(n for b in bases for n in _order(b, classes))]


def _targets(node: ast.Assign) -> list[str]:
    return [t.id for t in node.targets if isinstance(t, ast.Name)]


@cache
def _parsed(file: str) -> tuple[dict[str, ast.ClassDef], dict[str, ast.expr]]:
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    classes = {n.name: n for n in body if isinstance(n, ast.ClassDef)}
    constants = {t: n.value for n in body if isinstance(n, ast.Assign) for t in _targets(n)}
    return classes, constants
