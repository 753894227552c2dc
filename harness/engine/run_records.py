"""What a run says of its units: counts for the terminal, records for the file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.backends import registry as backends
from harness.cases.case import Case
from harness.cases.coverage import Cover
from harness.cases.result import Result
from harness.cases.selection import Unit
from harness.compare import Judgement
from harness.compare.statistics import Pool
from harness.core.escape import one_line, shell
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.case_record import blank, record
from harness.engine.learned_support import UNASKED
from harness.ledger.ledger import Ledger
from harness.reach.counted import ReachCover
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle

Sink = Callable[[dict[str, Any]], None]
OnFailure = Callable[[Result, dict[str, str]], "dict[str, Any] | None"]
MOST_GAPS = 200  # reasons that are counted
POOLED = -(1 << 30)  # first case, as it were, of what all draws of a run say together


@dataclass
class RunTotals:
    """Counts of a run.  tally: (dialect, backend) -> verdict -> cases.  gaps: why backends called cases unsupported.
    unasked: backend -> cases that it was not asked.  cut: was it ended by the clock?"""

    tally: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cases: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    failures: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    gaps: Counter[str] = field(default_factory=Counter)
    unasked: Counter[str] = field(default_factory=Counter)
    cut: bool = False

    def note(self, kind: str, text: str) -> None:
        """Count a problem of the harness itself, and keep the first one of its like as an example."""
        self.problems[kind] += 1
        self.examples.setdefault(text.split(":")[0] + text.split(":")[-1][:40], text)


def _zeros() -> defaultdict[Any, int]:
    """A Counter without its methods, at a tenth of the cost: every unit has several, and few of them count anything."""
    return defaultdict(int)


@dataclass
class UnitCounts:
    """What is counted while the cases of a unit are judged.

    verdicts: by backend, element type and verdict.
    hits: verdicts by backend and id of the entry that explains them.
    elements: by backend four numbers: elements that were not judged, all elements, answers to valid instances that were
        compared, and those among them that say too little.
    pooled: did a case draw from a distribution that is judged over the whole run?
    paths: number of instances by backend and by what computed them, of the instances that were asked for it.
    labels: the same for each label of an instance (``Dialect.labels``), by the kind of path alone.
    unasked: cases that were not run, by backend, element type and reason.
    """

    verdicts: defaultdict[tuple[str, str, Verdict], int] = field(default_factory=_zeros)
    hits: defaultdict[tuple[str, str], int] = field(default_factory=_zeros)
    elements: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    pooled: bool = False
    paths: defaultdict[tuple[str, str], int] = field(default_factory=_zeros)
    labels: defaultdict[tuple[str, str, str], int] = field(default_factory=_zeros)
    unasked: defaultdict[tuple[str, str, str], int] = field(default_factory=_zeros)

    def left_out(self, backend: str, case: Case, why: str) -> None:
        """Take in a case that a backend was not asked."""
        self.unasked[backend, case.dtype_name, why] += 1

    def took(self, backend: str, case: Case, path: str) -> None:
        """Take in what computed an instance."""
        self.paths[backend, path] += 1
        kind = path.partition(":")[0]
        for label in case.version.dialect.labels(case.inst):
            self.labels[backend, label, kind] += 1

    def agreed(self, backend: str, cases: Sequence[Case]) -> None:
        """Take in cases on which a backend plainly agrees."""
        if not cases:
            return
        seen = self.elements[backend]
        seen[1] += sum([c.size for c in cases])
        seen[2] += len(cases)
        for dtype, n in Counter([c.dtype_name for c in cases]).items():
            self.verdicts[backend, dtype, Verdict.AGREE] += n

    def count(self, result: Result) -> None:
        """Take in a verdict that is more than plain agreement."""
        self.verdicts[result.backend, result.case.dtype_name, result.verdict] += 1
        j = result.judgement
        if j is not None and j.verdict is not Verdict.UNKNOWN:
            seen = self.elements[result.backend]
            seen[0] += j.unjudged
            seen[1] += result.case.size
            seen[2] += 1
            seen[3] += result.verdict is Verdict.UNINFORMATIVE
        entry = result.known or result.ambiguity
        if entry is not None and result.verdict in (Verdict.KNOWN, Verdict.AMBIGUOUS):
            self.hits[result.backend, entry] += 1


def batch(
    key: str, opset: Any, first: int, count: int, tally: Mapping[tuple[str, str, str], int], **more: Any
) -> dict[str, Any]:
    """The "batch" record of ``count`` cases of an op version at an opset.  tally: by backend, type and verdict.  more:
    the other fields of the record (``harness.core.forms``); those that say nothing are left out."""
    return {
        "t": "batch",
        "key": key,
        "opset": opset,
        "first": first,
        "count": count,
        "tally": [[*which, n] for which, n in tally.items()],
        **{name: value for name, value in more.items() if value},
    }


def _rows(counts: Mapping[Any, int]) -> list[list[Any]]:
    """Counts as rows of a record, sorted; of most units there are none."""
    return [[*which, n] for which, n in sorted(counts.items())] if counts else []


def end(interrupted: bool, **more: Any) -> dict[str, Any]:
    """The "end" record, the last one of a file.  more: its other fields."""
    return {"t": "end", **more, "interrupted": interrupted}


class RunRecords:
    """Counts and writes what an engine has judged.

    infos: what the backends declare, by name.  sink: takes records.  on_failure, reach: see ``Engine``.
    hits: verdicts that listed entries explain, by the entry's id.  pool: draws of random ops over the whole run.
    """

    def __init__(
        self,
        handles: Sequence[BackendHandle],
        infos: Mapping[str, BackendInfo],
        seed: int = 0,
        ledger: Ledger | None = None,
        sink: Sink | None = None,
        on_failure: OnFailure | None = None,
        reach: bool = False,
    ) -> None:
        self.handles, self.infos, self.seed, self.ledger = handles, infos, seed, ledger
        self.on_failure = on_failure
        self.summary = RunTotals()
        self.pool = Pool()
        self.hits: Counter[str] = Counter()
        self.cover: dict[str, Cover] = defaultdict(ReachCover if reach else Cover)
        self._sink = sink
        self._told: set[str] = set()  # entries and backends' remarks that the records hold already

    def gap(self, result: Result) -> None:
        """Count why a backend called a case unsupported."""
        gaps, why = self.summary.gaps, one_line(f"{result.backend}: {result.outcome.message}")[:200]
        if why in gaps or len(gaps) < MOST_GAPS:
            gaps[why] += 1

    def left_out(self, backend: str, case: Case, outcome: Outcome, counts: UnitCounts) -> bool:
        """Was the backend not asked?  Such a case has no verdict; it is counted apart."""
        if outcome.phase != UNASKED:
            return False
        counts.left_out(backend, case, outcome.message)
        if case.index < 0 and self.ledger is not None:
            self.ledger.lacks.add((case.inst.id, backend))
        return True

    def unit(self, unit: Unit, counts: UnitCounts, learnt: Mapping[str, dict[str, Any]]) -> None:
        """Write the record of a unit: all that a report, or the same run when it is resumed, needs to know of it.

        It is one line, so it is on disk as a whole or not at all.
        """
        key = unit.version.key
        self.summary.cases += unit.count
        for (name, _, verdict), n in counts.verdicts.items():
            if name != "native_ref":
                self.summary.tally[unit.version.dialect.name, name][verdict.value] += n
        for (name, _, _), n in counts.unasked.items():
            self.summary.unasked[name] += n
        alike: list[tuple[list[str], dict[str, Any]]] = []
        for name, told in learnt.items():
            same = next((names for names, other in alike if other == told), None)
            if same is not None:
                same.append(name)
            elif told:
                alike.append(([name], told))
        beside = {h.name: h.beside for h in self.handles if h.beside and h.beside not in self._told}
        self._told.update(beside.values())
        more = {
            "elements": [[name, *n] for name, n in sorted(counts.elements.items())],
            "paths": _rows(counts.paths),
            "labels": _rows(counts.labels),
            "unasked": _rows(counts.unasked),
            "cover": self.cover[key].taken(),
            "learnt": [[names, told] for names, told in alike],
            "pooled": counts.pooled,
            "beside": beside,
            **(self._explained(counts.hits) if counts.hits else {}),
        }
        tally = {(b, d, v.value): n for (b, d, v), n in sorted(counts.verdicts.items())}
        self._write(batch(key, unit.opset, unit.first, unit.count, tally, **more))

    def _explained(self, hits: Mapping[tuple[str, str], int]) -> dict[str, Any]:
        """The fields ``explained`` and ``listed`` of a batch."""
        entries = {} if self.ledger is None else self.ledger.by_id
        rows, new = list[list[Any]](), list[dict[str, Any]]()
        for (name, id), n in sorted(hits.items()):
            if id not in entries:  # the op version's own ambiguity, or that of a slot
                continue
            rows.append([name, id, n])
            self.hits[id] += n
            if id not in self._told:
                self._told.add(id)
                new.append(entries[id].told())
        return {"explained": rows, "listed": new}

    def verdict(self, result: Result, votes: dict[str, str]) -> None:
        """Count and write a verdict that is more than agreement.  votes: of all backends on that case."""
        verdict, key = result.verdict, result.case.version.key
        if result.outcome.status is Status.HARNESS_ERROR:
            self.summary.note("harness", f"{key} on {result.backend}: {result.outcome.message}")
        elif verdict is Verdict.UNKNOWN and result.judgement is not None:
            self.summary.note("bound", f"{key} {result.case.inst.id}: {result.judgement.detail}")
        if verdict.bad:
            self.summary.failures += 1
        if verdict.bad or verdict in (Verdict.KNOWN, Verdict.AMBIGUOUS, Verdict.FLAKY, Verdict.UNKNOWN):
            found = self.on_failure(result, votes) if self.on_failure is not None else None
            if found is not None:
                self._write(found)

    def problem(self, case: Case) -> None:
        """Count and write a case of which the reference has no answer."""
        self.summary.note(case.problem.split(":")[0], f"{case.version.key} case {case.index}: {case.problem}")
        self._write(
            blank(
                case,
                backend="native_ref",
                verdict=Verdict.UNKNOWN.value,
                status=Status.HARNESS_ERROR.value,
                phase="reference",
                message=case.problem,
            )
        )

    def pooled(self) -> None:
        """Draws of random ops, pooled over the run: what no single case could show.  Told of the first of the cases,
        unless it is listed."""
        found: defaultdict[tuple[str, str], list[Result]] = defaultdict(list)
        for (key, dtype, backend), why in self.pool.failures().items():
            case = self.pool.examples[key, dtype, backend]
            formula = f"STATISTICAL, all draws of the run: {why}"
            wrong = Judgement(Verdict.MISMATCH, 0, "distribution", "statistical", formula)
            result = Result(case, backend, Verdict.MISMATCH, Outcome(Status.VALUE, None, "run"), wrong)
            if self.ledger is not None:
                self.ledger.explain(result, self.infos[backend])
            found[key, backend].append(result)
        for (key, backend), all_ in found.items():
            self.summary.failures += sum(r.verdict.bad for r in all_)
            self.summary.tally[key.split("/")[0], backend].update(r.verdict.value for r in all_)
            tally = {(backend, r.case.dtype_name, r.verdict.value): 1 for r in all_}
            explained = self._explained(Counter((backend, r.known) for r in all_ if r.known is not None))
            self._write(batch(key, all_[0].case.inst.opset, POOLED, 0, tally, **explained))
            place = next(h.spec.place for h in self.handles if h.name == backend)
            again = f"opconform run --op {shell(key.rpartition('/')[0])} --backend {shell(backends.asked(backend))}"
            again += f"{place.options} --cases {self.cover[key].cases} --seed {self.seed}"
            for r in all_:
                self._write(record(r, {backend: r.verdict.value}, replay=again))

    def _write(self, rec: dict[str, Any]) -> None:
        if self._sink is not None:
            self._sink(rec)
