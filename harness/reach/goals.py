"""The goals of an op version, and which of them a filled instance meets.

A kind of goal is one line of ``KINDS``: the function that lists its goals from the declaration, and the one that names
those that a valid instance meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import cached_property

import numpy as np

from harness.cases.case import Case
from harness.declare import OpVersion
from harness.reach import data, operands, parameters, shapes
from harness.reach.facts import Facts, Filled

Kind = tuple[Callable[[Facts], list[str]], Callable[[Facts, Filled], Iterable[str]]]

KINDS: tuple[Kind, ...] = (
    (shapes.ranks, shapes.ranks_met),
    (shapes.extents, shapes.extents_met),
    (shapes.limits, shapes.limits_met),
    (shapes.broadcasts, shapes.broadcasts_met),
    (parameters.values, parameters.values_met),
    (parameters.value_pairs, parameters.value_pairs_met),
    (parameters.axes, parameters.axes_met),
    (parameters.lists, parameters.lists_met),
    (parameters.relations, parameters.relations_met),
    (operands.dtypes, operands.dtypes_met),
    (operands.optionals, operands.optionals_met),
    (operands.givings, operands.givings_met),
    (operands.quantised, operands.quantised_met),
    (data.data, data.data_met),
    (operands.labels, operands.labels_met),
)


class Goals:
    """The goals of one op version, derived from its schema, its shape annotations and its stated rules."""

    def __init__(self, version: OpVersion) -> None:
        self.version = version
        self.facts = Facts(version)

    @cached_property
    def by_kind(self) -> tuple[tuple[Kind, frozenset[str]], ...]:
        """The kinds that apply to the op version, each with its goals."""
        listed = ((kind, frozenset(kind[0](self.facts))) for kind in KINDS)
        return tuple((kind, ids) for kind, ids in listed if ids)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """All goals, in the order of ``KINDS``."""
        out = [goal for kind in KINDS for goal in kind[0](self.facts)]
        return tuple(dict.fromkeys([*out, *operands.rules(self.facts)]))

    def met(self, case: Case) -> set[str]:
        """The goals that a case meets.  An invalid one meets the goal of its rule alone."""
        return self.also_met(case, frozenset())

    def also_met(self, case: Case, before: Set[str]) -> set[str]:
        """As ``met``; what ``before`` holds may be left out."""
        if case.inst.rule is not None:
            return {f"rule:{case.inst.rule}"} & self._all
        x = Filled.of(case, before)
        out: set[str] = set()
        with np.errstate(all="ignore"):
            for (_, found), ids in self.by_kind:
                if not ids <= before:
                    out.update(ids.intersection(found(self.facts, x)))
        return out

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self.ids)


def goals_of(version: OpVersion) -> Goals:
    """The goals of an op version, made once."""
    made: Goals | None = version.__dict__.get("_reach_goals")
    if made is None:
        made = version.__dict__["_reach_goals"] = Goals(version)
    return made
