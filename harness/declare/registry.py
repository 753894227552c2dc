"""Dialects, found by entry point, as pytest finds plugins; ``harness`` never imports ``suites`` itself."""

from __future__ import annotations

import difflib
from functools import cache, lru_cache
from importlib.metadata import entry_points
from typing import Any

from harness.core.errors import UsageError
from harness.core.instance import Instance
from harness.declare.dialect import Dialect
from harness.declare.op_version import OpVersion


@lru_cache(maxsize=1)
def _points() -> dict[str, Any]:
    return {p.name: p for p in entry_points(group="opconform.dialects")}


def names() -> list[str]:
    """Names of the installed dialects."""
    return sorted(_points())


@cache
def dialect(name: str) -> Dialect:
    """The dialect called ``name``; raises UsageError naming the ones there are."""
    try:
        point = _points()[name]
    except KeyError:
        told = f"unknown dialect {name!r}{near(name, names())}, expected one of {' '.join(names())}"
        raise UsageError(told) from None
    d = point.load()
    d.load()
    return d


def version_of(inst: Instance) -> OpVersion:
    """The op version of an instance; raises UsageError."""
    return dialect(inst.dialect).version_of(inst)


def near(word: str, words: list[str]) -> str:
    """`` (did you mean x?)`` or nothing."""
    hit = [w for w in words if w.casefold() == word.casefold()] or difflib.get_close_matches(word, words, 1)
    return f" (did you mean {hit[0]}?)" if hit else ""


@lru_cache(maxsize=1)
def opset_markers() -> dict[str, tuple[str, Any]]:
    """marker -> (dialect, opset or None for all of it)."""
    out: dict[str, tuple[str, Any]] = {}
    for n in names():
        d = dialect(n)
        for o in d.opsets:
            out[d.marker(o)] = (n, o)
    return out
