"""A wrong answer is asked for again before anybody hears of it: alone, in a fresh process.

Instances share a model and a process, so an answer may be wrong because of a neighbour: a kernel that writes past its
buffer spoils what lies beside it.  And a model may be run several times: what a runtime keeps of one run may spoil the
next.  What is right alone is therefore asked with the runs before it, then with the model that it came from.  Wrong
again: a true difference that takes those runs or that company, of which the fewest found go into the record.  Right
there too: ``unsteady``, which is shown, blamed on nobody and fails no run, since nobody could reproduce it.

So is a model that was refused, or ended its process, although each of its instances passes alone.  Where a fresh
process survives it, the models that the first one had served last go before it: a true difference that takes those, or
unsteady.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from harness.backends.pool import BackendHandle
from harness.backends.wire import Job, Unblamed
from harness.core.outcome import Outcome, Status, Verdict
from harness.run.case import Case
from harness.run.crossed import judge_crossed
from harness.run.known import Ledger
from harness.run.pack import build, feed
from harness.run.results import BY_STATUS, Judged, Profile, judge_case
from harness.run.runs import args_of

T = TypeVar("T")
SURE = 4  # answers of one kind that stood when asked for again; the others are taken at their word
ASKED = (Verdict.MISMATCH, Verdict.WRONGLY_REJECTED, Verdict.WRONGLY_ACCEPTED)
RIGHT = (Verdict.AGREE, Verdict.MISTRUSTED)
DEATHS = (Verdict.CRASHED, Verdict.TIMED_OUT)  # asked again by the pool already, but with all runs to the last


class Again:
    """Asks again what a run is about to call wrong.

    handle: gives a second handle of a backend by name, whose process is renewed for each question.  ledger: listed
    differences.  seconds: for all questions together; what comes later is taken at its word."""

    def __init__(self, handle: Callable[[str], BackendHandle], ledger: Ledger | None = None,
                 seconds: float = 300.0) -> None:  # fmt: skip
        self.handle, self.ledger, self.left = handle, ledger, seconds
        self._stood: Counter[tuple[Any, ...]] = Counter()
        self._until = 0.0  # when the time for what is asked now is used up

    def __call__(self, judged: Judged, profile: Profile, company: Sequence[Case] = ()) -> Judged:
        """The verdict that stands: ``judged``, the same found alone, or one that names the runs or company it takes.

        company: the cases of the model in which the answer was given, in their order, the case itself among them."""
        kind = (judged.case.version.key, judged.backend, *judged.signature, judged.run > 0)
        asked = judged.verdict in ASKED or (judged.verdict in DEATHS and judged.run > 0)
        if not asked or self._stood[kind] >= SURE or self.left <= 0:
            return whole(judged)
        with self._timed():
            found = self._settle(judged, profile, company)
        if found.verdict.bad and not found.company:
            self._stood[kind] += 1
        return found

    def unblamed(self, failure: Unblamed, profile: Profile, company: Sequence[Case],
                 origins: Mapping[int, Case]) -> tuple[Case, Judged] | None:  # fmt: skip
        """The verdict on a failure of a model whose cases pass alone, and the case that tells it; None if no fault.

        origins: by id of a case, the one of another dialect for which it was asked."""
        status = failure.outcome.status

        def said(k: int, case: Case) -> Judged:
            of = origins.get(id(company[k]))
            return Judged(of or case, profile.name, BY_STATUS[status], failure.outcome, asked=case if of else None)

        def ask(beside: Sequence[Case], which: Sequence[int], at: int) -> Judged:
            return self._ask(said(at, beside[at]), profile, [beside[k] for k in which])

        every = list(range(len(company)))
        if len(company) > 1 and self.left > 0:
            with self._timed():
                for beside in forms(company, failure.sets[0]):
                    found = ask(beside, every, every[-1])
                    if found.verdict is Verdict.UNSUPPORTED:
                        return None
                    if found.outcome.status is status:
                        return self._least(found, company, beside, ask)
        served = [[t.root.job.tag[2].cases[k] for k in t.instances] for t in failure.before]
        served = [m for m in served if all(c.inst.rule is None for c in m)]
        if served and not origins and self.left > 0:
            with self._timed():
                found_later = self._later(failure, profile, company, served)
            if found_later is not None:
                return found_later
        first = said(every[-1], company[-1])
        if len(company) == 1 and self.ledger is not None:  # a death that is listed need not come each time
            self.ledger.explain(first, profile)
        return company[-1], unsteady(first) if first.verdict.bad else first

    def _least(self, found: Judged, company: Sequence[Case], beside: Sequence[Case],
               ask: Callable[[Sequence[Case], Sequence[int], int], Judged]) -> tuple[Case, Judged]:  # fmt: skip
        """The fewest of the cases that fail together, told of the last one, or of one of which it is listed."""
        status = found.outcome.status

        def fails(which: list[int]) -> Judged | None:
            got = ask(beside, which, which[-1])
            return got if got.outcome.status is status else None

        which, found = self._fewest(list(range(len(company))), 2, fails, found)
        at = which[-1]
        for k in reversed(which[:-1]):
            if found.known is None and (got := ask(beside, which, k)).known is not None:
                at, found = k, got
        return company[at], replace(found, company=() if found.known else tuple(beside[k] for k in which))

    def _later(self, failure: Unblamed, profile: Profile, company: Sequence[Case],
               served: list[list[Case]]) -> tuple[Case, Judged] | None:  # fmt: skip
        """The death of a process that takes what it had served before: the fewest models, cases of a lone one, and
        cases beside the last one, which tells it; None if it does not come again."""
        handle, beside = self.handle(profile.name), forms(company, failure.sets[0])[0]

        def fails(which: list[int], models: list[list[Case]]) -> Judged | None:
            cases = [beside[k] for k in which]
            got = judge_beside(handle, profile, cases[-1], cases, self.ledger, models)
            return got if got.outcome.status is failure.outcome.status else None

        which = list(range(len(beside)))
        found = fails(which, served)
        if found is None:
            return None
        models, found = self._fewest(served, 1, lambda some: fails(which, some), found)
        which, found = self._fewest(which, 1, lambda some: fails(some, models), found)
        if len(models) == 1:
            _, found = self._fewest(models[0], 1, lambda some: fails(which, [some]), found)
        return company[which[-1]], found

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.monotonic()
        self._until = start + self.left
        try:
            yield
        finally:
            self.left -= time.monotonic() - start

    def _settle(self, judged: Judged, profile: Profile, company: Sequence[Case]) -> Judged:
        alone = self._ask(judged, profile, [judged.asked or judged.case])
        if alone.verdict not in RIGHT:
            return alone
        if judged.run:
            after = self._after(judged, profile)
            if after is not None:
                return after
        at = next((k for k, c in enumerate(company) if c is judged.given), None)
        if at is not None and len(company) > 1:
            for beside in forms(company, judged.run) if judged.origin is not None else [company]:
                together = self._ask(judged.about(beside[at]), profile, beside)
                if together.verdict in ASKED:
                    return self._fewer(together, profile, beside)
                if together.known is not None:  # the entry names the company that it takes
                    return replace(together, company=())
        return unsteady(judged)

    def _after(self, judged: Judged, profile: Profile) -> Judged | None:
        """What goes wrong with the runs before it, listed or not: the one among them that suffices, or all."""
        if judged.asked is not None:
            return None
        every = judged.given.up_to(judged.run)
        for case in (*(fewer(every, k) for k in range(judged.run)), every):
            got = self._ask(judged.about(case), profile, [case])
            if got.draw and got.verdict not in RIGHT:
                return got
        return None

    def _fewer(self, judged: Judged, profile: Profile, company: Sequence[Case]) -> Judged:
        """The smallest company found in which the answer is still wrong."""
        case = judged.asked or judged.case

        def among(others: list[Case]) -> list[Case]:
            return [c for c in company if c is case or any(c is o for o in others)]

        def fails(others: list[Case]) -> Judged | None:
            got = self._ask(judged, profile, among(others))
            return got if got.verdict is judged.verdict else None

        others, found = self._fewest([c for c in company if c is not case], 1, fails, judged)
        found.company = tuple(among(others))
        return found

    def _fewest(self, some: list[T], least: int, fails: Callable[[list[T]], Judged | None],
                judged: Judged) -> tuple[list[T], Judged]:  # fmt: skip
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

    def _ask(self, judged: Judged, profile: Profile, cases: Sequence[Case]) -> Judged:
        """The verdict on one of the cases, side by side in one model, in a fresh process."""
        case = judged.asked or judged.case
        handle = self.handle(judged.backend)
        if judged.asked is None:
            return judge_beside(handle, profile, case, cases, self.ledger)
        return judge_crossed(judged.case, judged.asked, profile, outcomes_of(handle, case, cases), self.ledger)


def unsteady(judged: Judged) -> Judged:
    """The verdict on what nobody could reproduce."""
    why = f"{judged.verdict.value.replace('_', ' ')} once, right when asked again in a fresh process"
    if judged.outcome.status is not Status.VALUE:
        why += f": {judged.outcome.message}"
    out = Outcome(judged.outcome.status, judged.outcome.outputs, judged.outcome.phase, why)
    return replace(judged, verdict=Verdict.UNSTEADY, outcome=out)


def forms(company: Sequence[Case], run: int) -> list[list[Case]]:
    """Cases of one model asked again: for one of their runs, then, if it is not the first, for all runs to it."""
    one = [c.at(run) for c in company]
    return [one, [c.up_to(run) for c in company]] if run else [one]


def whole(judged: Judged) -> Judged:
    """The verdict told of all runs to the one that went wrong, as long as nobody has seen it go wrong alone."""
    if not judged.run or judged.asked is not None:
        return judged
    return replace(judged.about(judged.given.up_to(judged.run)), draw=judged.run)


def fewer(case: Case, k: int) -> Case:
    """The case of two of its runs: number ``k`` and the last one."""
    first, last = args_of(case.inst, k), args_of(case.inst, len(case.inst.reruns))
    inst = replace(case.inst, args=first, reruns=({s: a for s, a in last.items() if a != first[s]},), choices=None)
    return Case(case.version, inst, case.index)


def judge_beside(handle: BackendHandle, profile: Profile, case: Case, cases: Sequence[Case],
                 ledger: Ledger | None = None, before: Sequence[Sequence[Case]] = ()) -> Judged:  # fmt: skip
    """The verdict on one of some cases in one model, in a fresh process of the backend; the others are its company.
    before: the cases of models that the process serves first."""
    company = tuple(cases) if len(cases) > 1 else ()
    judged = judge_case(case, profile, outcomes_of(handle, case, cases, before), ledger, company)
    judged.before = tuple(map(tuple, before))
    return judged


def outcomes_of(handle: BackendHandle, case: Case, cases: Sequence[Case],
                before: Sequence[Sequence[Case]] = ()) -> list[Outcome]:  # fmt: skip
    """What a fresh process of the backend does with one of some cases in one model, an outcome a data draw, after it
    has served other models.  If it ended, that is the outcome, whatever came of the same alone."""
    at = next(k for k, c in enumerate(cases) if c is case)
    handle.renew()
    *_, result = handle.run([job_of(some) for some in (*before, cases)])
    if before and result.unblamed:
        return [result.unblamed[-1].outcome]
    return [row[at] for row in result.outcomes][: max(1, len(case.draws))]


def job_of(cases: Sequence[Case]) -> Job:
    """A model of the cases, run as often as one of them wants."""
    model = build(cases[0].version.dialect, cases)
    runs = max(1, *(len(c.draws) for c in cases))
    return Job(model, [[feed(c, model.inputs[k], r) for k, c in enumerate(cases)] for r in range(runs)])
