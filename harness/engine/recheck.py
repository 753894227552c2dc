"""Asks a backend again about a wrong answer, alone in a fresh process, before the answer is reported.

Instances share a model and a process, so a neighbour may be the cause of a wrong answer: a kernel that writes past its
buffer damages the data next to it.  A model may also run several times, and state that a runtime keeps from one run may
damage the next.  So an answer that is right alone is asked for in four steps:

1. with the earlier runs of the instance,
2. in the model where it was wrong, with its neighbours,
3. in a process that has served the same models before,
4. if the answer is right every time, the verdict is ``flaky``: it is shown, and it fails no run.

If the answer is wrong in a step, it is a true difference.  The record names the fewest runs, neighbours or prior models
with which it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.cases.case import Case
from harness.cases.result import Result
from harness.core.outcome import Verdict
from harness.engine.requery import Requery, fewer, flaky, forms, whole
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle

# Answers of one kind that stood when asked for again: the others are taken at their word.  Or that were right alone:
# what the others take is not looked for any more.
SURE = 4
ASKED = (Verdict.MISMATCH, Verdict.WRONGLY_REJECTED, Verdict.WRONGLY_ACCEPTED)
RIGHT = (Verdict.AGREE, Verdict.UNINFORMATIVE)
DEATHS = (Verdict.CRASHED, Verdict.TIMED_OUT)  # asked again by the pool already, but with all runs to the last


class Recheck(Requery):
    """The verdicts that stand, of answers that seem wrong."""

    def __init__(
        self, handle: Callable[[str], BackendHandle], ledger: Ledger | None = None, seconds: float = 300.0
    ) -> None:
        super().__init__(handle, ledger, seconds)
        self._stood: Counter[tuple[Any, ...]] = Counter()  # by kind
        self._wavered: Counter[tuple[Any, ...]] = Counter()  # those that were right alone

    def __call__(
        self,
        result: Result,
        info: BackendInfo,
        neighbours: Sequence[Case] = (),
        prior_models: Callable[[], list[list[Case]]] = list,
    ) -> Result:
        """The verdict that stands: ``judged``, or the same found alone, or one that names the runs, neighbours or prior
        models that it takes.

        neighbours: the cases of the model that gave the answer, in order, the case itself among them.
        before: gives the cases of the models that the process had served.
        """
        kind = (result.case.version.key, result.backend, *result.signature, result.run > 0)
        asked = result.verdict in ASKED or (result.verdict in DEATHS and result.run > 0)
        if not asked or self._stood[kind] >= SURE or (self.left <= 0 and not self._wavered[kind]):
            return whole(result)
        deep = self.left > 0 and self._wavered[kind] < SURE
        with self.timed():
            found = self._settle(result, info, neighbours, prior_models) if deep else self._alone(result, info)
        if found.verdict is Verdict.FLAKY or found.neighbours or found.prior_models:
            self._wavered[kind] += 1
        elif found.verdict.bad:
            self._stood[kind] += 1
        return found

    def _alone(self, result: Result, info: BackendInfo) -> Result:
        alone = self.ask(result, info, [result.asked or result.case])
        if alone.outcome.phase == "start":  # no second process can be had
            return result
        return alone if alone.verdict not in RIGHT else flaky(result)

    def _settle(
        self,
        result: Result,
        info: BackendInfo,
        neighbours: Sequence[Case],
        prior_models: Callable[[], list[list[Case]]],
    ) -> Result:
        alone = self._alone(result, info)
        if alone.verdict is not Verdict.FLAKY:
            return alone
        if result.run:
            after = self._after(result, info)
            if after is not None:
                return after
        at = next((k for k, c in enumerate(neighbours) if c is result.given), None)
        if at is None:
            return alone
        shapes = forms(neighbours, result.run) if result.origin is not None else [neighbours]
        for beside in shapes if len(neighbours) > 1 else ():
            together = self.ask(result.about(beside[at]), info, beside)
            if together.verdict in ASKED:
                return self._fewer(together, info, beside)
            if together.known is not None:  # the entry names the neighbours that it takes
                return replace(together, neighbours=())
        models = prior_models() if result.asked is None else []
        used = self.used(info, shapes[0], models, at, lambda got: got.verdict in ASKED) if models else None
        return alone if used is None else used[1]

    def _after(self, result: Result, info: BackendInfo) -> Result | None:
        """What goes wrong with the runs before it, listed or not: the one among them that suffices, or all."""
        if result.asked is not None:
            return None
        every = result.given.up_to(result.run)
        for case in (*(fewer(every, k) for k in range(result.run)), every):
            got = self.ask(result.about(case), info, [case])
            if got.draw and got.verdict not in RIGHT:
                return got
        return None

    def _fewer(self, result: Result, info: BackendInfo, neighbours: Sequence[Case]) -> Result:
        """The smallest neighbours found in which the answer is still wrong."""
        case = result.asked or result.case

        def among(others: list[Case]) -> list[Case]:
            return [c for c in neighbours if c is case or any(c is o for o in others)]

        def fails(others: list[Case]) -> Result | None:
            got = self.ask(result, info, among(others))
            return got if got.verdict is result.verdict else None

        others, found = self.fewest([c for c in neighbours if c is not case], 1, fails, result)
        found.neighbours = tuple(among(others))
        return found
