"""One line of a dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.core.dtypes import DType
from harness.declare.codec import Call
from harness.declare.semantics import Semantics
from harness.generate.draw import Draw


@dataclass
class Entry:
    """One line of a dialect: which meaning, under which name, with which spelling differences.

    since, until: op versions (inclusive) that this line serves; None is open.  names: semantic name -> dialect name or
    Codec.  fixed: semantic parameters this spelling pins.  draw: ``fn(d)`` at the dialect's level (slot -> T,
    attribute -> value) instead of the derived one.
    out: ``fn(call, results) -> results`` (layout, fused activation); its
    attribute ``linear``, if it has one, is the same without what clamps, for the error scale.
    out_dtype: ``fn(call, i) -> DType`` where the schema's types do not tell.  error: overrides the meaning's class.
    types: restricts a type name to some dtypes, with the reason in ``why``.  const: how inputs may be given.
    evaluate: ``fn(call) -> results`` replaces decode + meaning (control flow).  breaks: extra invalid draws.
    ranks: lowest and highest rank of its tensors where the op asks for other than the dialect's.
    alike: type names that may be the same type are so in half of the instances: what mixes them is what most
    backends lack, and would be most of what is drawn.
    agrees: attributes that say again what the operands show -> ``fn(call)``, what that is: one that says something else
    is invalid.
    stated: slots whose shape the op states beyond what its meaning says (or that has none) -> a pattern of ``dims``, or
    ``fn(call)`` that gives one; names are shared.  Another shape breaks the rule "shapes-stated".
    only: attributes of which this line computes one value alone, or those of a tuple; where a model has another, the
    reference says so.
    """

    op: str
    meaning: Semantics | None
    since: Any = None
    until: Any = None
    names: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    draw: Callable[[Draw], dict[str, Any]] | None = None
    out: Callable[[Call, list[Any]], list[Any]] | None = None
    out_dtype: Callable[[Call, int], DType] | None = None
    error: Any = None
    types: dict[str, tuple[str, ...]] | None = None
    evaluate: Callable[[Call], Any] | None = None
    breaks: dict[str, Callable[[Draw], dict[str, Any]]] = field(default_factory=dict)
    outs: Callable[[Draw, dict[str, Any]], int] | int | None = None
    data: Any = None
    domain: str = ""
    family: str = ""
    why: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    ambiguous: Callable[[Call], str | None] | None = None
    ranks: tuple[int, int] | None = None
    alike: bool = True
    agrees: dict[str, Callable[[Call], Any]] = field(default_factory=dict)
    stated: dict[str, str | Callable[[Call], str]] = field(default_factory=dict)
    only: dict[str, Any] = field(default_factory=dict)


def agreement(attr: str) -> str:
    """The rule that an attribute of ``Entry.agrees`` may break."""
    return f"{attr}-agrees"
