"""Which goals the drawn instances of an op version meet."""

from __future__ import annotations

from collections.abc import Set

from harness.cases.case import draw_case
from harness.core.quiet import quiet
from harness.declare import OpVersion
from harness.reach.goals import goals_of

DRAWS = 4000  # in which each goal is met (the law)
OFTEN = 400  # a goal that is met in so many is no open one
SEED = 0


def met_in(
    version: OpVersion, draws: int = DRAWS, seed: int = SEED, first: int = 0, needed: Set[str] | None = None
) -> set[str]:
    """The goals that some of the instances ``first`` to ``first + draws - 1`` meets.

    needed: it ends as soon as these are met; None: all goals.  An instance that could not be drawn meets nothing.
    """
    goals = goals_of(version)
    wanted = frozenset(goals.ids) if needed is None else needed
    met: set[str] = set()
    every = len(version.opsets)
    with quiet:
        for i in range(first, first + draws):
            if wanted <= met:
                break
            case = draw_case(version, version.opsets[i // 2 % every], seed, i, lazy=True)
            if not case.problem:
                met |= goals.also_met(case, met)
    return met
