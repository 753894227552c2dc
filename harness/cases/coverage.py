"""What the cases of a unit cover: part of the record of its batch, so that an interruption loses none of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.cases.case import Case
from harness.core.features import Pairs, features

# Cases whose features are counted: the first ones, then one in so many.  The case's own number decides, so that an
# interrupted run, resumed, counts the same cases.
COVER_FIRST, COVER_EVERY = 64, 64


class Cover:
    """Counts of one op version, unit by unit."""

    def __init__(self) -> None:
        self.cases = 0  # in all units
        self._pairs = Pairs()
        self._clear()

    def _clear(self) -> None:
        self._dtypes: Counter[str] = Counter()
        self._choices: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._sets: list[list[str]] = []
        self._valid = self._counted = 0

    def meet(self, cases: Sequence[Case]) -> None:
        """Count cases."""
        self.cases += len(cases)
        self._dtypes.update([c.dtype_name for c in cases])
        self._rules.update([c.inst.rule for c in cases if c.inst.rule is not None])
        valid = [c for c in cases if c.inst.rule is None]
        self._valid += len(valid)
        for case in valid:
            if case.index < COVER_FIRST or not case.index % COVER_EVERY:
                self._features_of(case)

    def _features_of(self, case: Case) -> None:
        schema = case.version.schema
        found = sorted(features(case.inst.to_json(), schema.attrs, [x.name for x in schema.inputs]))
        self._counted += 1
        self._choices.update(found)
        if self._pairs.meet(found):
            self._sets.append(found)

    def taken(self) -> dict[str, Any]:
        """What was counted since it was last asked for.  ``sets``: of the cases that showed a new pair of features,
        these as places in ``choices``."""
        at = {name: i for i, name in enumerate(self._choices)}
        out = {
            "dtype": dict(self._dtypes),
            "choices": dict(self._choices),
            "rules": dict(self._rules),
            "sets": [[at[name] for name in found] for found in self._sets],
            "valid": self._valid,
            "counted": self._counted,
        }
        self._clear()
        return {name: value for name, value in out.items() if value}
