"""The engine: units -> cases -> models -> outcomes -> verdicts -> records, with the backends working meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from harness.cases.case import Case, draw_case
from harness.cases.result import Result
from harness.cases.selection import Unit
from harness.cases.wanted import beyond, draw_within
from harness.core.errors import TimeIsUp
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import few_collections, quiet
from harness.engine import joint_failure
from harness.engine.batching import Pack
from harness.engine.cross_dialect import judge_cross_dialect, translate_all
from harness.engine.learned_support import LearnedSupport
from harness.engine.learning_stages import Answers, stage
from harness.engine.recheck import Recheck
from harness.engine.run_records import OnFailure, RunRecords, RunTotals, Sink, UnitCounts
from harness.engine.verdict import judge_case, plainly_agrees
from harness.ledger.ledger import Ledger
from harness.workers.claims import EVERYTHING, Claims, common
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.watch import wait_all

# Cases drawn together (what a backend takes of them in one model is the backend's to say): few as long as most types
# are new to the backends, so that what one pack teaches serves the next.
PACK_EARLY, PACK, EARLY = 64, 192, 20_000
IN_FLIGHT = 3
UNCLAIMED = Outcome(Status.UNSUPPORTED, None, "load", "not claimed")


class Engine:
    """Runs units through backends.

    handles: started backends.  draws: data draws per model.  sink: takes records.
    on_failure: (bad verdict, votes of all backends on the case) -> "case" record, or None to leave it out.
    progress: called now and then with the summary.  recheck: asks for a wrong answer once more before it counts.
    reach: count the reach goals that the cases meet, which takes about as long as drawing them.
    wanted: what the user asks for; None: whatever is given.  Instances beyond it, or beyond the claims of all backends,
        are neither drawn nor counted.  A backend is asked within its own claims.
    attribute: looks for the cause of a bad verdict on a program in its nodes, and gives the verdict that stands."""

    def __init__(
        self,
        handles: Sequence[BackendHandle],
        *,
        seed: int = 0,
        draws: int = 1,
        invalid: bool = True,
        ledger: Ledger | None = None,
        sink: Sink | None = None,
        on_failure: OnFailure | None = None,
        progress: Callable[[RunTotals], None] | None = None,
        recheck: Recheck | None = None,
        reach: bool = False,
        wanted: Claims | None = EVERYTHING,
        attribute: Callable[[Result, BackendInfo], Result] | None = None,
    ) -> None:
        self.handles = list(handles)
        self.seed, self.draws, self.invalid = seed, draws, invalid
        self.ledger, self.progress, self.recheck, self.attribute = ledger, progress, recheck, attribute
        self.infos = {info.name: info for info in [h.info for h in self.handles]}
        told = {name: info.claims for name, info in self.infos.items()}
        self.claims = {name: EVERYTHING if wanted is None else c.both(wanted) for name, c in told.items()}
        self.records = RunRecords(self.handles, self.infos, seed, ledger, sink, on_failure, reach)
        self.summary = self.records.summary
        self.learned_support = {h.name: LearnedSupport(self.infos[h.name], ledger) for h in self.handles}
        self._last = 0.0
        self._end: float | None = None

    def recall(self, key: str, first: int, learnt: Mapping[str, Answers]) -> None:
        """Take in what an earlier process of the same run learnt from a unit, by backend."""
        for name, answers in learnt.items():
            if name in self.learned_support:
                self.learned_support[name].recall(key, first, answers)

    # -- one pass

    def run(
        self, units: Iterable[Unit], saved: Iterable[tuple[Unit, Case]] = (), end: float | None = None
    ) -> RunTotals:
        """Judge the saved cases, then all units.  end: when to give up what is under way (``cut``), monotonic clock."""
        start, self._end = time.monotonic(), end
        waiting: list[Pack] = []
        try:
            with few_collections(), quiet:  # NaN and infinities are what is drawn
                work = chain(((u, [c]) for u, c in saved), self._drawn(units))
                for pack in self._packs(work):
                    if pack is None:
                        self._harvest(waiting, 0)
                        continue
                    self._submit(pack)
                    waiting.append(pack)
                    waiting = self._harvest(waiting, IN_FLIGHT - 1)
                    self._tick(start)
                self._harvest(waiting, 0)
        except KeyboardInterrupt:
            self.summary.interrupted = True
        except TimeIsUp:
            self.summary.cut = True
        self.summary.seconds += time.monotonic() - start
        self.records.pooled()
        return self.summary

    def judge(self, cases: Sequence[Case]) -> Iterator[Result]:
        """Judge some cases of one dialect and opset right away."""
        if not cases:
            return iter(())
        pack = Pack(cases[0].version.dialect, cases[0].inst.opset, list(cases), [])
        with quiet:
            self._submit(pack)
            self._harvest([pack], 0, record=False)
            names = [h.name for h in self._for(pack.dialect.format)]
            found = [self._verdict(pack, name, case) for case in cases for name in names]
        return iter([judged for judged in found if judged is not None])

    def _verdict(self, pack: Pack, backend: str, case: Case) -> Result | None:
        outcomes, asked = pack.answer(backend, case)
        if not outcomes:
            return None
        info = self.infos[backend]
        if asked is not None:
            judged = judge_cross_dialect(case, asked, info, outcomes, self.ledger)
        else:
            judged = judge_case(case, info, outcomes, self.ledger)
        if judged.verdict.bad and self.recheck is not None:
            handle = next(h for h in self.handles if h.name == backend)
            given = asked or case
            judged = self.recheck(
                judged, info, pack.neighbours(backend, given), partial(pack.prior_models, handle, given)
            )
        return self.attribute(judged, info) if judged.verdict.bad and self.attribute is not None else judged

    def _for(self, fmt: str) -> list[BackendHandle]:
        return [h for h in self.handles if fmt in h.info.formats]

    def _drawn(self, units: Iterable[Unit]) -> Iterator[tuple[Unit, list[Case]]]:
        for u in units:
            claims = self.claims_of(u.version.dialect.format)
            numbers = range(u.first, u.first + u.count)
            given = u.version, u.opset, self.seed
            if claims:
                drawn = [draw_within(claims, *given, i, self.draws, self.invalid, lazy=True) for i in numbers]
                cases = [c for c in drawn if c is not None]
            else:
                cases = [draw_case(*given, i, self.draws, self.invalid, lazy=True) for i in numbers]
            if cases:
                yield u if len(cases) == u.count else replace(u, count=len(cases)), cases

    def claims_of(self, fmt: str) -> Claims:
        """What is outside of the claims of all backends that take models of a format is outside of these."""
        return common(self.claims[h.name] for h in self._for(fmt))

    def _packs(self, work: Iterable[tuple[Unit, list[Case]]]) -> Iterator[Pack | None]:
        """Consecutive units of one dialect and opset, with so many cases that models are full although some cases go
        alone and those run again go together.  None: all that is under way must be judged first, since the next unit
        begins a stage of its op version (``harness.engine.learning_stages``)."""
        open_: dict[tuple[str, Any], Pack] = {}
        reached: dict[str, int] = {}  # stage of the op versions that have units not judged yet
        for u, cases in work:
            at = stage(u.first)
            if reached.get(u.version.key, at) < at:
                yield from open_.values()
                yield None
                open_.clear()
                reached.clear()
            reached[u.version.key] = at
            key = (u.version.dialect.name, u.opset)
            pack = open_.get(key)
            if pack is None:
                pack = open_[key] = Pack(u.version.dialect, u.opset, [], [])
            pack.cases += cases
            pack.units.append(u)
            if len(pack.cases) >= (PACK_EARLY if self.summary.cases < EARLY else PACK):
                yield open_.pop(key)
        yield from open_.values()

    def _submit(self, pack: Pack) -> None:
        """Ask all backends.  The reference answers meanwhile, unless nobody is asked."""
        unasked: set[int] | None = None
        across = []
        for h in self._for(pack.dialect.format):
            if self.infos[h.name].target_dialect is not None:
                across.append(h)
                continue
            settled = self._send(h, pack)
            unasked = settled if unasked is None else unasked & settled
        for c in pack.cases:
            if not c.evaluated and (unasked is None or id(c) not in unasked):
                self._in_time()
                _ = c.expected
        for h in across:  # last, since the way to another dialect is proved by the reference's answer
            translated = translate_all(pack.cases, self.infos[h.name])
            sources = {id(a): c.version.key for c in pack.cases if (a := translated[0].get(id(c))) is not None}
            for other in pack.cross(h.name, *translated):
                self._send(h, other, sources)

    def _send(self, h: BackendHandle, pack: Pack, sources: Mapping[int, str] | None = None) -> set[int]:
        """Submit a pack to one backend; ids of the cases that need no asking.  sources: see ``LearnedSupport.plan``."""
        info = self.infos[h.name]
        size = min(info.pack_size(pack.dialect.format), pack.dialect.package_size)
        settled, alone = self._above(info, pack), set[int]()
        claims = self.claims[h.name]
        unclaimed = {id(c) for c in pack.cases if beyond(c, claims)} if claims and sources is None else set[int]()
        if not settled:
            settled, alone = self.learned_support[h.name].plan(pack.cases, sources)
        quarantined, hanging = self.learned_support[h.name].dangers(pack.cases)
        apart = info.isolate_dtypes
        left_out = {**settled, **dict.fromkeys(unclaimed, UNCLAIMED)}
        for job in pack.jobs(h.name, size, self.draws, left_out, alone, quarantined, apart, hanging, info.paths_every):
            h.submit(job)
        for i in unclaimed:  # not counted
            pack.outcomes[h.name].pop(i, None)
        return set(left_out)

    @staticmethod
    def _above(info: BackendInfo, pack: Pack) -> dict[int, Outcome]:
        """All cases, if the opset is above the highest one that the backend knows."""
        if not info.beyond(pack.opset):
            return {}
        out = Outcome(Status.UNSUPPORTED, None, "load", f"opset {pack.opset} is above the backend's {info.opset}")
        return {id(c): out for c in pack.cases if not c.problem}

    def _harvest(self, waiting: list[Pack], leave: int, record: bool = True) -> list[Pack]:
        """Take answers until at most ``leave`` packs are open; finished ones are judged in order."""
        while True:
            for h in self.handles:
                for result in h.collect():
                    more = result.job.tag[0].take(result)
                    if more is not None:
                        h.submit(more)
            while waiting and waiting[0].done:
                pack = waiting.pop(0)
                if record:
                    self._judge(pack)
                    pack.release()
            if len(waiting) <= leave:
                return waiting
            self._in_time()
            wait_all(self.handles)

    def _in_time(self) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise TimeIsUp

    # -- verdicts

    def _judge(self, pack: Pack) -> None:
        backends = [h.name for h in self._for(pack.dialect.format)]
        together = self._joint_failure(pack)
        # What a backend was given as it is, in models that show no failure of their own, by id of the case.
        own = {name: pack.outcomes[name] for name in backends if name not in pack.asked and not together}
        at = 0
        for unit in pack.units:
            key = unit.version.key
            counts = UnitCounts()
            agreed: dict[str, list[Case]] = {name: [] for name in backends}  # plainly
            answered: dict[str, list[Case]] = {name: [] for name in backends}  # otherwise, and judged
            cases = pack.cases[at : at + unit.count]
            self.records.cover[key].meet(cases)
            for case in cases:
                if self._end is not None:
                    self._in_time()
                if case.problem:
                    self.records.problem(case)
                    counts.verdicts["native_ref", case.dtype_name, Verdict.UNKNOWN] += 1
                    continue
                votes: dict[str, Result | None] = {}  # None: plain agreement
                notable = False
                for name in backends:
                    outcomes = own[name].get(id(case)) if name in own else None
                    if first := outcomes[0] if outcomes else None:
                        if first.phase and self.records.left_out(name, case, first, counts):
                            continue
                        if first.path:
                            counts.took(name, case, first.path)
                        if first.status is Status.VALUE and plainly_agrees(case, self.infos[name], outcomes or []):
                            agreed[name].append(case)
                            votes[name] = None
                            continue
                    judged = self._verdict(pack, name, case)
                    if judged is None or self.records.left_out(name, case, judged.outcome, counts):
                        continue
                    if together and not judged.verdict.bad:
                        judged = together.get((name, id(case)), judged)
                    votes[name] = judged
                    counts.count(judged)
                    if judged.verdict.decided and judged.verdict is not Verdict.UNSUPPORTED:
                        answered[name].append(judged.case)
                    if judged.judgement is not None and judged.judgement.sample is not None:
                        self.records.pool.add((key, case.dtype_name, name), judged.judgement.sample, case)
                        counts.pooled = True
                    if judged.verdict is Verdict.AGREE:
                        self.learned_support[name].agreed([judged.given], key)
                    else:
                        notable = True
                if notable:
                    words = {n: (j.verdict if j is not None else Verdict.AGREE).value for n, j in votes.items()}
                    for j in votes.values():
                        if j is not None and j.verdict is not Verdict.AGREE:
                            self._note_verdict(j, words)
            at += unit.count
            for name, plain in agreed.items():
                counts.agreed(name, plain)
                if self.ledger is not None:
                    self.ledger.saw([*plain, *answered[name]], self.infos[name])
                self.learned_support[name].agreed(plain, key)
            learnt = {n: self.learned_support[n].closed(key, unit.first).to_json() for n in backends}
            self.records.unit(unit, counts, learnt)
            pack.forget(cases)

    def _joint_failure(self, pack: Pack) -> dict[tuple[str, int], Result]:
        """Verdicts on failures of models that no case shows alone, by backend and id of the case that tells them."""
        out: dict[tuple[str, int], Result] = {}
        if self.recheck is None:
            return out
        for p in (pack, *pack.across):
            for backend, cases, failure in p.unblamed:
                of = {id(a): c for c in pack.cases if (a := pack.asked.get(backend, {}).get(id(c))) is not None}
                found = joint_failure.settle(self.recheck, failure, self.infos[backend], cases, of)
                if found is not None:
                    key = backend, id(of.get(id(found[0]), found[0]))
                    if key not in out or found[1].verdict.bad:
                        out[key] = found[1]
        return out

    def _note_verdict(self, judged: Result, votes: dict[str, str]) -> None:
        """Learn from a verdict that is more than agreement, and put it on record."""
        if judged.verdict is Verdict.UNSUPPORTED:
            self.records.gap(judged)
            if judged.case.index < 0 and self.ledger is not None:
                self.ledger.lacks.add((judged.case.inst.id, judged.backend))
        if not self.infos[judged.backend].beyond(judged.case.inst.opset):  # else it says nothing about the types
            self.learned_support[judged.backend].learn(judged)
        self.records.verdict(judged, votes)

    def _tick(self, start: float) -> None:
        now = time.monotonic()
        if self.progress is not None and now - self._last > 0.5:
            self._last, self.summary.seconds = now, now - start
            self.progress(self.summary)
            self.summary.seconds = 0.0
