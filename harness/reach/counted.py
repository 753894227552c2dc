"""What the cases of a unit cover, reach goals included: on request, since finding them takes as long as drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.cases.case import Case
from harness.cases.coverage import Cover
from harness.reach.goals import goals_of
from harness.reach.unreached import Unreached


class ReachCover(Cover):
    """Counts of one op version; every case is asked which reach goals it meets."""

    def __init__(self) -> None:
        super().__init__()
        self._met: set[str] = set()  # in all units
        self._new: list[str] = []
        self._first: dict[str, list[str]] = {}  # all goals, and those that are ruled out: told once
        self._told = False

    def meet(self, cases: Sequence[Case]) -> None:
        """Count cases."""
        super().meet(cases)
        for case in cases:
            if not case.problem:
                self._goals_of(case)

    def _goals_of(self, case: Case) -> None:
        goals = goals_of(case.version)
        if not self._told:
            clauses = Unreached(case.version.dialect, whole=False).clauses(case.version)
            self._first, self._told = {"goals": list(goals.ids), "ruled_out": list(clauses)}, True
        new = goals.also_met(case, self._met) - self._met
        self._met |= new
        self._new += sorted(new)

    def taken(self) -> dict[str, Any]:
        """What was counted since it was last asked for."""
        reach = {**self._first, **({"met": self._new} if self._new else {})}
        self._new, self._first = [], {}
        return {**super().taken(), **({"reach": reach} if reach else {})}
