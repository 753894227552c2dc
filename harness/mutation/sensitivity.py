"""How many planted faults the suite catches, for each op version, element type and fault.

A fault counts as planted if an instance shows it, that is, if the faulty answer differs from the right one.  It counts
as caught if the judge calls one of the first ``instances`` such instances a mismatch.  No backend runs.

A known difference may excuse what the judge catches.  So for every backend with known differences of an op version, the
ledger gets the faulty answers as answers of that backend.  ``hidden`` are faults of which it excuses every answer.  A
planted fault may be the defect that an entry lists, such as ties of a cast, or an attribute that is ignored.  It counts
as ``identified``, and not as hidden, if the entry's defect model gives every excused answer bit for bit.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.cases.case import Case, draw_case
from harness.compare import judge
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import OpVersion
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.mutation.exact_answers import reproduces
from harness.mutation.fault_context import FaultContext, Outputs, differs
from harness.mutation.faults import FAULTS
from harness.workers.info import BackendInfo

INSTANCES = 200  # tried per op version and element type
LEAST = 32  # tried even when everything planted so far is caught: rarer faults want their chance
BEHIND = 16  # answers that the list excuses before a fault counts as hidden


@dataclass
class Sight:
    """One fault in one op version at one type.

    shown: instances on which the answer differed.
    caught: number of the instance at which it was caught, -1 while there is none.
    behind: backend (name and release) with known differences here -> the faulty answers that the list excused, by the
        id of the entry; None once it let one through.
    inexact: backends with an excused answer that the entry's defect model does not give bit for bit.
    """

    key: str
    dtype: str
    fault: str
    shown: int = 0
    caught: int = -1
    missed: str = ""
    behind: dict[str, Counter[str] | None] = field(default_factory=dict)
    inexact: set[str] = field(default_factory=set)

    @property
    def hidden(self) -> dict[str, list[str]]:
        """Backends whose known differences excused every such answer, and the entries that did."""
        return {b: sorted(ids) for b, ids in self.behind.items() if ids and b in self.inexact}

    @property
    def identified(self) -> dict[str, list[str]]:
        """Backends on which the fault is the listed defect itself, and the entries that list it."""
        return {b: sorted(ids) for b, ids in self.behind.items() if ids and b not in self.inexact}

    @property
    def open(self) -> bool:
        """Is there more to find out?"""
        return self.caught < 0 or any(ids is not None and ids.total() < BEHIND for ids in self.behind.values())


@dataclass
class Sensitivity:
    """The whole measurement."""

    sights: list[Sight] = field(default_factory=list)

    @property
    def planted(self) -> int:
        return sum(s.shown > 0 for s in self.sights)

    @property
    def caught(self) -> int:
        return sum(s.caught >= 0 for s in self.sights)

    @property
    def share(self) -> float:
        return self.caught / self.planted if self.planted else 1.0

    def missed(self) -> list[Sight]:
        return [s for s in self.sights if s.shown and s.caught < 0]

    def records(self) -> Iterator[dict[str, Any]]:
        """ "sensitivity" records, one per op version, type and fault that was planted."""
        for s in self.sights:
            if s.shown:
                behind = {b: s.hidden.get(b, []) for b in s.behind} if s.caught >= 0 else {}
                identified = s.identified if s.caught >= 0 else {}
                rec: dict[str, Any] = {
                    "t": "sensitivity",
                    "key": s.key,
                    "dtype": s.dtype,
                    "fault": s.fault,
                    "planted": 1,
                    "caught": int(s.caught >= 0),
                    "instances": s.shown,
                    "at": s.caught,
                    "missed": [s.missed] if s.caught < 0 else [],
                }
                if behind:
                    rec["behind"] = behind
                if identified:
                    rec["identified"] = identified
                yield rec


def measure(
    versions: Iterable[OpVersion],
    *,
    seed: int = 0,
    instances: int = INSTANCES,
    least: int = LEAST,
    faults: Iterable[str] | None = None,
    ledger: Ledger | None = None,
    backends: Iterable[BackendInfo] = (),
    progress: Callable[[OpVersion, Sensitivity], None] | None = None,
) -> Sensitivity:
    """Plant all faults in all op versions.  faults: names out of ``FAULTS``, all when None.  ledger, backends: look
    what the known differences of these backends would excuse, too."""
    chosen = {n: FAULTS[n] for n in (faults if faults is not None else FAULTS)}
    ledger, backends = (ledger or Ledger()).unmarked(), list(backends)
    out = Sensitivity()
    for v in versions:
        fmt = v.dialect.format
        behind = [p for p in backends if fmt in (p.formats or (fmt,)) and ledger.excuses(v.key, p)]
        met: set[str] = set()
        for typed, name in by_type(v):
            with quiet:
                out.sights += _one(v, typed, name, chosen, seed, instances, least, ledger, behind, met)
        if progress is not None:
            progress(v, out)
    return out


def by_type(v: OpVersion) -> Iterator[tuple[OpVersion, str]]:
    """The op version with its first type name pinned to one element type after the other."""
    names = [t for t, options in v.weighted.items() if options]
    if not names:
        yield v, ""
        return
    for d in dict.fromkeys(v.weighted[names[0]]):
        clone = copy.copy(v)
        clone.weighted = {**v.weighted, names[0]: (d,)}
        yield clone, str(d)


def _one(
    v: OpVersion,
    typed: OpVersion,
    dtype: str,
    faults: dict[str, Any],
    seed: int,
    instances: int,
    least: int,
    ledger: Ledger,
    behind: list[BackendInfo],
    met: set[str],
) -> list[Sight]:
    """met: instances of other types, which are left out: a program is the same under every type that it is asked in."""
    sights = {n: Sight(v.key, dtype, n) for n in faults}
    open_, drawn = set(faults), set()
    for i in range(instances):
        if i >= least and not any(sights[n].shown for n in open_):
            break
        case = draw_case(typed, v.opsets[-1 - i % min(2, len(v.opsets))], seed, i, 1, invalid=False)
        if case.problem or case.expected is None or case.ambiguous is not None or case.inst.id in met:
            continue
        drawn.add(case.inst.id)
        context = FaultContext(case)
        for n in sorted(open_):
            outputs = faults[n](context)
            if outputs is None or not differs(context, outputs):
                continue
            s = sights[n]
            s.shown += 1
            if not found(context, outputs):
                s.missed = case.inst.id
                continue
            s.caught = i if s.caught < 0 else s.caught
            for p in behind:
                _listed(s, case, p, outputs, ledger)
            if not s.open:
                open_.discard(n)
    met |= drawn
    return list(sights.values())


def _listed(sight: Sight, case: Case, info: BackendInfo, outputs: Outputs, ledger: Ledger) -> None:
    """Put a faulty answer before the list, as a backend's."""
    who = f"{info.name} {info.version}".strip()
    ids = sight.behind.setdefault(who, Counter())
    if ids is None:
        return
    judged = judge_case(case, info, [Outcome(Status.VALUE, outputs)], ledger)
    if judged.verdict is Verdict.MISMATCH:
        sight.behind[who] = None
    elif judged.known is not None:
        ids[judged.known] += 1
        if not any(reproduces(model, case, outputs) for model in ledger.by_id[judged.known].defect_model):
            sight.inexact.add(who)


def plant(context: FaultContext, name: str, fault: Any) -> bool | None:
    """None where the instance cannot show the fault, else: was it caught?"""
    outputs = fault(context)
    return None if outputs is None or not differs(context, outputs) else found(context, outputs)


def found(context: FaultContext, outputs: Outputs) -> bool:
    """Does the judge call these outputs wrong?"""
    return judge(context.expected, Outcome(Status.VALUE, outputs)).verdict is Verdict.MISMATCH


class FaultyHandle:
    """Looks like a ``BackendHandle`` and answers with the reference's results and one fault planted: shows that what
    ``measure`` says of the judge holds of the engine as a whole."""

    def __init__(self, fault: str, formats: tuple[str, ...] = ("onnx", "tflite", "mil", "nn"), pack: int = 16) -> None:
        self.name, self.fault = f"faulty ({fault})", FAULTS[fault]
        self.info = BackendInfo(self.name, "0", formats=formats, pack=pack)
        self.pending = 0
        self.beside = ""
        self.planted: set[str] = set()
        self._done: list[Any] = []
        self.channel = None

    def start(self) -> BackendInfo:
        return self.info

    def missing(self) -> None:
        return None

    def submit(self, job: Any) -> None:
        from harness.workers.wire import JobResult

        cases = job.tag[2].cases
        rows = [[self._answer(c, r) for c in cases] for r in range(len(job.feeds))]
        self._done.append(JobResult(job, rows))

    def collect(self, wait: bool = False) -> list[Any]:
        out, self._done = self._done, []
        return out

    def pump(self, timeout: float) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to end."""

    def _answer(self, case: Case, r: int) -> Outcome:
        if case.expected is None:
            return Outcome(Status.REJECTED, None, "load", "invalid")
        context = FaultContext(case, min(r, len(case.expected) - 1))
        outputs = self.fault(context)
        if outputs is None or not differs(context, outputs):
            return Outcome(Status.VALUE, [e.value for e in context.expected])
        self.planted.add(case.inst.id)
        return Outcome(Status.VALUE, outputs)
