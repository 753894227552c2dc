"""What the nodes of a program gave when they were asked one by one, and how they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cases.result import Result
from harness.ledger.defect_models import Inside


@dataclass(frozen=True)
class Query:
    """How the nodes are asked.

    folds: those without other operands than constants are asked of the backend that computes constants, where there is
    one.  loaded: operands that follow from constants or shapes are constants.  told: a listed difference of the whole
    program.  inside: what it says of its nodes.  fixed: values and how far they may be off, by name, whatever the node
    gives."""

    folds: bool = True
    loaded: bool = False
    told: Result | None = None
    inside: Inside | None = None
    fixed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


DEFAULT = Query()


@dataclass
class Nodes:
    """What the nodes gave, one after the other.

    scope: values by name, of a node that runs only as a part of the program the reference's.  given: those of all
    nodes.  off: how far the given ones may be off.  told: the results of nodes that are excused.  undefined: names of
    values that the specification says nothing of, since a listed difference gave what the op does not take.  end: the
    result of a node that settles the verdict.  mistyped: values that a listed difference gives with another type,
    and the result that says so.  folded: another backend was asked, which computes constants.  loads: has a node an
    operand that follows from constants or shapes, which a runtime may know before the program runs?  over: values that
    stand in place of others that have their names.  fixed: what nodes give as a listed difference says."""

    scope: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    told: list[Result] = field(default_factory=list)
    undefined: set[str] = field(default_factory=set)
    end: Result | None = None
    mistyped: dict[str, Result] = field(default_factory=dict)
    folded: bool = False
    loads: bool = False
    over: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def take(self, values: Mapping[str, tuple[Any, Any]]) -> None:
        """Values by name, each with how far it may be off."""
        for n, (x, b) in values.items():
            self.scope[n] = self.given[n] = x
            self.off[n] = b
