"""Known differences and the ambiguity ledger, matched against outcomes.

``docs/known-differences.md`` lists the fields of an entry.  Entries match outcomes, not tests.  If a run replays the
instance of an entry and the entry matches nothing in the run, the run reports it, so that the list shrinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from harness.cases.case import Case
from harness.cases.given import Given
from harness.cases.result import Result
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import OpVersion, Underspecified, gathered, registry
from harness.ledger.defect_models import PerNode, answered, outputs_told
from harness.ledger.edits import followed
from harness.ledger.entry import LedgerEntry
from harness.ledger.folders import Folder
from harness.workers.info import BackendInfo

ENOUGH = 8  # instances that an entry without one describes: from then on it is stale if none of them went wrong


class Listed:
    """What is listed of an op version and a backend, as far as an instance alone tells it, before it runs.

    predictive: the backend refuses the instance, or the instance ends or damages its process; entries of damage come
        first.
    beside_others: the instance goes wrong beside others.
    corrupts_process, hangs: does an entry say that it damages the process, or hangs at times?
    """

    def __init__(self, info: BackendInfo, predictive: list[LedgerEntry], beside_others: list[LedgerEntry]) -> None:
        self.info, self.predictive, self.beside_others = info, predictive, beside_others
        self.corrupts_process = any(e.corrupts_process for e in predictive)
        self.hangs = any(e.may_hang for e in predictive)

    def predicts(self, case: Case) -> LedgerEntry | None:
        """The first known difference that says the backend will not take this instance; one that corrupts_process
        before all."""
        for e in self.predictive:
            if e.predicts(case, self.info):
                return e
        return None

    def corrupter(self, case: Case) -> LedgerEntry | None:
        """The known difference that says that the instance may damage its process."""
        entry = self.predicts(case) if self.corrupts_process else None
        return entry if entry is not None and entry.corrupts_process else None

    def may_hang(self, case: Case) -> bool:
        """Does a known difference say that the instance hangs at times?"""
        entry = self.predicts(case) if self.hangs else None
        return entry is not None and entry.may_hang

    def fails_beside_others(self, case: Case) -> bool:
        """Does a known difference say that the instance goes wrong beside others, and right alone?"""
        return any(e.fails_beside_others(case, self.info) for e in self.beside_others)


@dataclass
class Ledger:
    """The entries that were read.  ``explain`` turns a bad verdict into a known or ambiguous one where an entry says
    so.

    lacks: saved instances, by id, and the backends that do not take them.
    unread: folders of the list that no question has needed.  A question about a backend reads those that speak of it.
    """

    entries: list[LedgerEntry] = field(default_factory=list)
    lacks: set[tuple[str, str]] = field(default_factory=set)
    unread: list[Folder] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set, init=False, repr=False)

    def read_for(self, info: BackendInfo) -> None:
        """Read the folders that speak of a backend.  Raises FormatError naming file, line, entry and field."""
        name = info.name, info.version
        if self.unread and name not in self._seen:
            self._read(f for f in self.unread if f.concerns(info))
            self._seen.add(name)

    def read_all(self) -> None:
        """Read every folder.  Raises FormatError."""
        self._read(self.unread)

    def _read(self, folders: Iterable[Folder]) -> None:
        for f in list(folders):
            self.add(f.read())
            self.unread.remove(f)

    def add(self, entries: Iterable[LedgerEntry]) -> None:
        """More entries, tried after those there are.  Raises FormatError for an id that is taken."""
        for cached in ("by_id", "_by_op", "_ordered", "_watched"):
            self.__dict__.pop(cached, None)
        there = {e.id: e.source for e in self.entries}
        for e in entries:
            if e.id in there:
                raise FormatError(f"{e.source}: id {e.id!r} is already taken in {there[e.id]}")
            there[e.id] = e.source
            self.entries.append(e)

    def explain(self, result: Result, info: BackendInfo) -> LedgerEntry | None:
        """The first entry that matches, known differences before ambiguities; counts the hit.  An entry that cannot be
        evaluated leaves no verdict, and says why."""
        for e in self._candidates(result.case.inst.dialect, result.case.inst.op, info):
            try:
                matches = e.matches(result, info)
            except FormatError as error:
                result.verdict, result.judgement = Verdict.UNKNOWN, None
                result.outcome = Outcome(Status.HARNESS_ERROR, result.outcome.outputs, "judge", str(error))
                return None
            if matches:
                e.hits += 1
                if e.kind_of == "known":
                    result.verdict, result.known = Verdict.KNOWN, e.id
                else:
                    result.verdict, result.ambiguity = Verdict.AMBIGUOUS, e.id
                return e
        return None

    def shares(self, result: Result, info: BackendInfo) -> Iterator[tuple[LedgerEntry, list[Any]]]:
        """The known differences that may explain a part of a wrong answer, and which part: of each output a mask, True
        for all of it, or False.  Raises FormatError, naming the entry, where a model fails."""
        for e in self._candidates(result.case.inst.dialect, result.case.inst.op, info):
            if e.kind_of == "known" and e.of_answers and e.defect_model and e.describes(result.case, info):
                yield from ((e, masks) for masks in e.shares(result))

    def one_after_another(self, result: Result, info: BackendInfo) -> list[LedgerEntry]:
        """Of a wrong program, the known differences that explain it together: all but the last edit the program, and
        the next one speaks of the edited one.  Empty where none do."""
        here = [
            (e, told)
            for e in self._candidates(result.case.inst.dialect, result.case.inst.op, info)
            if e.of_answers and e.defect_model and e.describes(result.case, info)
            if not e.of_outcome or e.speaks_of(result, info)
            for told in e.defect_model
        ]
        given = Given(result.case, result.draw)
        with quiet:
            for entries, outputs in followed(here, given, outputs_told):
                if answered(outputs, given, result, info):
                    return entries
        return []

    def per_node(self, result: Result, info: BackendInfo) -> Iterator[tuple[LedgerEntry, PerNode]]:
        """The known differences that may speak of a wrong program, and what each says of its nodes.  Raises
        FormatError."""
        for e in self._candidates(result.case.inst.dialect, result.case.inst.op, info):
            if e.kind_of == "known" and e.defect_model and e.speaks_of(result, info):
                yield from ((e, said) for said in e.per_node(result))

    def underspecified(self, case: Case, info: BackendInfo, run: int = 0) -> Underspecified | None:
        """What entries say is open of single elements of an instance in one of its runs."""
        here = [e for e in self._candidates(case.inst.dialect, case.inst.op, info) if e.elements]
        if not here:
            return None
        one = case.at(run)
        return gathered(*(e.underspecified(one, info) for e in here))

    def met(self, id: str) -> None:
        """An entry, by its id, has explained an answer; a reason that is no entry's is counted nowhere."""
        e = self.by_id.get(id)
        if e is not None:
            e.hits += 1

    def listed(self, key: str, info: BackendInfo) -> Listed | None:
        """What is listed of an op version and a backend that an instance alone tells; None where nothing is."""
        dialect, op, version = key.split("/")
        here = [
            e for e in self._candidates(dialect, op, info) if not e.op_versions or version in map(str, e.op_versions)
        ]
        predictive = sorted(
            (e for e in here if e.kind_of == "known" and e.predictive), key=lambda e: not e.corrupts_process
        )
        beside_others = [e for e in here if e.neighbours]
        return Listed(info, predictive, beside_others) if predictive or beside_others else None

    def may_hang(self, case: Case, info: BackendInfo) -> bool:
        """Does a known difference of the backend say that the instance hangs at times?"""
        listed = self.listed(case.version.key, info)
        return listed is not None and not case.problem and listed.may_hang(case)

    def excuses(self, key: str, info: BackendInfo) -> bool:
        """Is a wrong answer of this op version and backend listed?"""
        dialect, op, _ = key.split("/")
        return any(
            e.kind_of == "known" and Verdict.MISMATCH.value in e.verdicts and e.concerns([key], [info])
            for e in self._candidates(dialect, op, info)
        )

    def _candidates(self, dialect: str, op: str, info: BackendInfo) -> list[LedgerEntry]:
        """The entries that speak of an op and of a backend, its release and its processor."""
        self.read_for(info)
        key = dialect, op, info.name, info.version, info.cpu, info.known_as, info.front_end
        found = self._by_op.get(key)
        if found is None:
            name = f"{dialect}/{op}"
            found = self._by_op[key] = [
                e
                for e in self._ordered
                if any(fnmatchcase(name, o) for o in e.ops) and (e.about(info) or e.of_loading(info)) and e.there(info)
            ]
        return found

    @cached_property
    def by_id(self) -> dict[str, LedgerEntry]:
        return {e.id: e for e in self.entries}

    @cached_property
    def _by_op(self) -> dict[tuple[Any, ...], list[LedgerEntry]]:
        return {}

    @cached_property
    def _ordered(self) -> list[LedgerEntry]:
        return sorted(self.entries, key=lambda e: e.kind_of != "known")

    @cached_property
    def _watched(self) -> list[LedgerEntry]:
        return [e for e in self.entries if e.own and e.instance is None and e.kind_of == "known"]

    def saw(self, cases: Sequence[Case], info: BackendInfo) -> None:
        """A backend has answered for these instances: count them for the entries of a user's list that describe them
        and have no instance of their own."""
        for e in self._watched:
            for case in cases:
                if e.drawn < ENOUGH and e.describes(case, info):
                    e.drawn += 1

    def unused(
        self, keys: Iterable[str], backends: Iterable[BackendInfo], replayed: Container[str] | None = None
    ) -> list[str]:
        """Ids of known differences that a run over these op versions and backends did not meet.

        Nothing is known about a backend that does not take the instance of an entry, or its models.

        replayed: ids of the instances that the run replayed.  It says nothing of other entries.  Without it: all.

        An entry of a user's list without an instance is not met if it describes ``ENOUGH`` of the instances that were
        asked.
        """
        keys, backends = list(keys), list(backends)
        for b in backends:
            self.read_for(b)

        def took(e: LedgerEntry) -> list[BackendInfo]:
            if e.instance is None:
                return backends
            fmt = registry.dialect(e.instance.dialect).format
            return [
                b
                for b in backends
                if (e.instance.id, b.name) not in self.lacks
                and fmt in (b.formats or (fmt,))
                and any(fnmatchcase(b.name, p) for p in e.shown_by or ("*",))
            ]

        return [
            e.id
            for e in self.entries
            if e.kind_of == "known"
            and not e.hits
            and not (e.neighbours or e.intermittent)
            and (
                e.drawn >= ENOUGH
                if e.own and e.instance is None
                else (replayed is None or (e.instance is not None and e.instance.dumps() in replayed))
            )
            and e.concerns(keys, took(e))
        ]

    def unmarked(self) -> Ledger:
        """The same entries, none of them met yet: what is explained by this copy is not counted in the original."""
        return Ledger([replace(e, hits=0) for e in self.entries], unread=list(self.unread))

    def count(self, hits: Mapping[str, int]) -> None:
        """Take these for the numbers of verdicts that the entries explain, by id."""
        for e in self.entries:
            e.hits = hits.get(e.id, 0)

    def counts(self) -> Counter[str]:
        return Counter({e.id: e.hits for e in self.entries if e.hits})


def elements_of(ledger: Ledger, version: OpVersion) -> Callable[[Case], Underspecified | None] | None:
    """What the entries of an op version leave open of single elements, whatever the backend; None where none does."""
    op = f"{version.dialect.name}/{version.op}"
    here = [e for e in ledger.entries if e.elements and "*" in e.backends and any(fnmatchcase(op, o) for o in e.ops)]
    if not here:
        return None
    anybody = BackendInfo("*")
    return lambda case: gathered(*(e.underspecified(case, anybody) for e in here))
