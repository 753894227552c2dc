"""Asking a backend once more: cases side by side in one model, in a fresh process, within a time for all questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from harness.cases.case import Case
from harness.cases.reruns import args_of
from harness.cases.result import Result
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.batching import build, feed
from harness.engine.cross_dialect import judge_cross_dialect
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.wire import Job

T = TypeVar("T")


class Requery:
    """Asks again what a run is about to call wrong, with fewer and fewer cases.

    handle: name of a backend -> a second handle of it, whose process is renewed for each question.
    ledger: listed differences.
    seconds: for all questions together.  After that, no answer is asked again.
    """

    def __init__(
        self, handle: Callable[[str], BackendHandle], ledger: Ledger | None = None, seconds: float = 300.0
    ) -> None:
        self.handle, self.ledger, self.left = handle, ledger, seconds
        self._until = 0.0  # when the time for what is asked now is used up

    @contextmanager
    def timed(self) -> Iterator[None]:
        start = time.monotonic()
        self._until = start + self.left
        try:
            yield
        finally:
            self.left -= time.monotonic() - start

    def ask(self, judged: Result, info: BackendInfo, cases: Sequence[Case]) -> Result:
        """The verdict on one of the cases, side by side in one model, in a fresh process."""
        case = judged.asked or judged.case
        handle = self.handle(judged.backend)
        if judged.asked is None:
            return judge_beside(handle, info, case, cases, self.ledger)
        outcomes = outcomes_of(handle, case, cases, hangs=hanging(self.ledger, info))
        return judge_cross_dialect(judged.case, judged.asked, info, outcomes, self.ledger)

    def used(
        self,
        info: BackendInfo,
        beside: Sequence[Case],
        served: list[list[Case]],
        told: int | None,
        wrong: Callable[[Result], bool],
    ) -> tuple[int, Result] | None:
        """The fewest models, served before by the same process, with which the answer goes wrong again.

        Returns the number of the case that shows it, and its result; None if nothing goes wrong again.  If one model is
        enough, its cases become fewer, too.  So do the cases beside the one that shows it.

        told: the number of that case, if it is given; otherwise it is the last that is left.
        """
        handle, kept = self.handle(info.name), [] if told is None else [told]

        def fails(others: list[int], models: list[list[Case]]) -> Result | None:
            which = sorted(others + kept)
            case = beside[which[-1] if told is None else told]
            got = judge_beside(handle, info, case, [beside[k] for k in which], self.ledger, models)
            return got if wrong(got) else None

        others = [k for k in range(len(beside)) if k != told]
        found = fails(others, served)
        if found is None:
            return None
        models, found = self.fewest(served, 1, lambda some: fails(others, some), found)
        others, found = self.fewest(others, 1 - len(kept), lambda some: fails(some, models), found)
        if len(models) == 1:
            _, found = self.fewest(models[0], 1, lambda some: fails(others, [some]), found)
        return max(others) if told is None else told, found

    def fewest(
        self, some: list[T], least: int, fails: Callable[[list[T]], Result | None], judged: Result
    ) -> tuple[list[T], Result]:
        """What suffices for a failure, left out by halves, then singly, so many kept; ``judged`` is that of all."""
        step = max(1, len(some) // 2)
        while step:
            at = 0
            while at < len(some) > least and time.monotonic() < self._until:
                rest = some[:at] + some[at + step :]
                got = fails(rest) if len(rest) >= least else None
                if got is not None:
                    judged, some = got, rest
                else:
                    at += step
            step //= 2
        return some, judged


def flaky(judged: Result) -> Result:
    """The verdict on what nobody could reproduce."""
    why = f"{judged.verdict.value.replace('_', ' ')} once, right when asked again in a fresh process"
    if judged.outcome.status is not Status.VALUE:
        why += f": {judged.outcome.message}"
    out = Outcome(judged.outcome.status, judged.outcome.outputs, judged.outcome.phase, why)
    return replace(judged, verdict=Verdict.FLAKY, outcome=out)


def forms(neighbours: Sequence[Case], run: int) -> list[list[Case]]:
    """Cases of one model asked again: for one of their runs, then, if it is not the first, for all runs to it."""
    one = [c.at(run) for c in neighbours]
    return [one, [c.up_to(run) for c in neighbours]] if run else [one]


def whole(judged: Result) -> Result:
    """The verdict told of all runs to the one that went wrong, as long as nobody has seen it go wrong alone."""
    if not judged.run or judged.asked is not None:
        return judged
    return replace(judged.about(judged.given.up_to(judged.run)), draw=judged.run)


def fewer(case: Case, k: int) -> Case:
    """The case of two of its runs: number ``k`` and the last one."""
    first, last = args_of(case.inst, k), args_of(case.inst, len(case.inst.reruns))
    inst = replace(case.inst, args=first, reruns=({s: a for s, a in last.items() if a != first[s]},), choices=None)
    return Case(case.version, inst, case.index)


def judge_beside(
    handle: BackendHandle,
    info: BackendInfo,
    case: Case,
    cases: Sequence[Case],
    ledger: Ledger | None = None,
    prior_models: Sequence[Sequence[Case]] = (),
    hangs: Callable[[Case], bool] | None = None,
) -> Result:
    """The verdict on one of some cases in one model, in a fresh process of the backend; the others are its neighbours.
    prior_models: the cases of models that the process serves first.  hangs: is a case known to hang at times?  Without
    it the ledger tells."""
    neighbours = tuple(cases) if len(cases) > 1 else ()
    outcomes = outcomes_of(handle, case, cases, prior_models, hangs or hanging(ledger, info))
    judged = judge_case(case, info, outcomes, ledger, neighbours)
    judged.prior_models = tuple(map(tuple, prior_models))
    return judged


def hanging(ledger: Ledger | None, info: BackendInfo) -> Callable[[Case], bool]:
    """Tells whether a known difference of the backend says that a case hangs at times."""
    return lambda case: ledger is not None and ledger.may_hang(case, info)


def outcomes_of(
    handle: BackendHandle,
    case: Case,
    cases: Sequence[Case],
    prior_models: Sequence[Sequence[Case]] = (),
    hangs: Callable[[Case], bool] = lambda case: False,
) -> list[Outcome]:
    """What a fresh process does with one of some cases in one model, after it has served other models: an outcome for
    each data draw.

    If the process ended, that is the outcome, whatever the same case gave alone.

    hangs: is a case known to hang at times?  Its model gets a part of the deadline, as in a run.
    """
    at = next(k for k, c in enumerate(cases) if c is case)
    handle.renew()
    *_, result = handle.run([job_of(some, any(map(hangs, some))) for some in (*prior_models, cases)])
    if prior_models and result.unblamed:
        return [result.unblamed[-1].outcome]
    return [row[at] for row in result.outcomes][: max(1, len(case.draws))]


def job_of(cases: Sequence[Case], hangs: bool = False) -> Job:
    """A model of the cases, run as often as one of them wants.  hangs: see ``Job``."""
    model = build(cases[0].version.dialect, cases)
    runs = max(1, *(len(c.draws) for c in cases))
    feeds = [[feed(c, model.inputs[k], r) for k, c in enumerate(cases)] for r in range(runs)]
    return Job(model, feeds, hangs=hangs)
