"""Known differences and the ambiguity ledger, matched against outcomes.

What the files that list them may say stands at the top of ``harness.ledger.loader``.  Entries match outcomes, not
tests; one whose instance a run replays and that never matches in it is reported, so that the list shrinks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.cases.case import Case
from harness.cases.result import Profile, Result
from harness.core.dtypes import int_range, of
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import Underspecified, gathered, registry, underspecified
from harness.ledger.defect_models import Model, explains
from harness.ledger.facts import OUTCOME, Facts
from harness.ledger.predicate import PLAIN, Condition

ELEMENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nan": lambda x: np.isnan(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "inf": lambda x: np.isinf(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "lowest": lambda x: x == int_range(of(x))[0] if of(x).kind == "i" else np.zeros(x.shape, bool),
}
_REFUSALS = {Verdict.WRONGLY_REJECTED.value, Verdict.CRASHED.value, Verdict.TIMED_OUT.value}
Range = tuple[str, SpecifierSet]  # name of a package and a space, or nothing; its releases


@dataclass
class LedgerEntry:
    """One table of a file; see ``harness.ledger.loader`` for the fields."""

    id: str
    source: str
    kind_of: str
    backends: tuple[str, ...]
    ops: tuple[str, ...]
    clause: str
    reason: str = ""
    versions: tuple[Range, ...] = ()
    op_versions: tuple[Any, ...] = ()
    opsets: tuple[Any, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: Condition | None = None
    verdicts: tuple[str, ...] = (Verdict.MISMATCH.value,)
    kinds: tuple[str, ...] = ()
    message: re.Pattern[str] | None = None
    link: str = ""
    instance: Any = None
    readings: tuple[str, ...] = ()
    hits: int = 0
    corrupts_process: bool = False
    neighbours: tuple[Any, ...] = ()
    cpu: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    elements: str = ""
    defect_model: tuple[Model, ...] = ()
    wide: str = ""
    status: str = ""
    _there: dict[tuple[str, frozenset[str]], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def told(self) -> dict[str, Any]:
        """What a record says of it, so that a report needs no list."""
        return {
            "id": self.id,
            "reason": self.reason,
            "clause": self.clause,
            "link": self.link,
            "status": self.status,
            "kind": self.kind_of,
            "readings": list(self.readings),
        }

    def matches(self, result: Result, profile: Profile) -> bool:
        inst = result.case.inst
        if self.elements or result.verdict.value not in self.verdicts:
            return False
        if not any(fnmatchcase(profile.name, b) for b in self.backends):
            return False
        if not any(fnmatchcase(f"{inst.dialect}/{inst.op}", o) for o in self.ops):
            return False
        if self.op_versions and inst.version not in self.op_versions:
            return False
        if self.opsets and inst.opset not in self.opsets:
            return False
        if self.dtypes and str(result.case.dtype) not in self.dtypes:
            return False
        if self.neighbours and len(result.neighbours) < 2:
            return False
        if self.kinds and (result.judgement is None or result.judgement.kind not in self.kinds):
            return False
        if self.message is not None and not self.message.search(result.outcome.message):
            return False
        facts = Facts(result.case, PLAIN, result)
        if not self.there(profile):
            return False
        if self.when is not None and self.when.names & {"wrong_pairs", "wrong_at"} and not facts["wrong_pairs"]:
            return False  # what is said of wrong elements does not hold of an answer that has none to compare
        if not self._holds(facts):
            return False
        return result.verdict is not Verdict.MISMATCH or not self.defect_model or self._given(result, profile)

    def _given(self, result: Result, profile: Profile) -> bool:
        """Is the answer what one of the models of the defect says?  Draws that are pooled over a run are no single
        answer that a model could tell.  Raises FormatError, naming the entry, where a model fails."""
        if result.outcome.outputs is None:
            return True
        try:
            return any(explains(told, result, profile) for told in self.defect_model)
        except Exception as e:
            raise FormatError(
                f"{self.source}: {self.kind_of} {self.id}: defect_model: {type(e).__name__}: {e}"
            ) from None

    def underspecified(self, case: Case, profile: Profile) -> Underspecified | None:
        """Of an instance of one run: the elements of its first operand that the entry says are open."""
        if not (
            any(fnmatchcase(profile.name, b) for b in self.backends) and self._fits(case, profile) and self._told(case)
        ):
            return None
        x = case.draws[0].get(case.version.schema.inputs[0].name) if case.draws else None
        return underspecified(self.id, ELEMENTS[self.elements](x)) if isinstance(x, np.ndarray) else None

    def _holds(self, facts: Facts) -> bool:
        """Does the condition hold?  Raises FormatError, naming the entry, where it cannot be evaluated."""
        try:
            return self.when is None or self.when(facts)
        except Exception as e:
            raise FormatError(f"{self.source}: {self.kind_of} {self.id}: when: {type(e).__name__}: {e}") from None

    def _told(self, case: Case) -> bool:
        """Does the condition hold of an instance that has no outcome yet?  One that cannot be evaluated foretells
        nothing; ``matches`` tells of it."""
        try:
            return self._holds(Facts(case, PLAIN))
        except FormatError:
            return False

    def shuns(self, case: Case, profile: Profile) -> bool:
        """Is this one of the instances that go wrong in neighbours?"""
        return self._fits(case, profile) and self._told(case)

    def there(self, profile: Profile) -> bool:
        """Are release and processor those of the entry?  An unknown processor may be any."""
        at = profile.version, profile.cpu
        known = self._there.get(at)
        if known is None:
            known = self._there[at] = _within(profile.version, self.versions) and (
                not profile.cpu or all((w.lstrip("!") in profile.cpu) != w.startswith("!") for w in self.cpu)
            )
        return known

    def _fits(self, case: Case, profile: Profile) -> bool:
        """Are version, opset, type, release and processor those of the entry?"""
        return (
            (not self.op_versions or case.inst.version in self.op_versions)
            and (not self.opsets or case.inst.opset in self.opsets)
            and (not self.dtypes or case.dtype_name in self.dtypes)
            and self.there(profile)
        )

    @cached_property
    def foretelling(self) -> bool:
        """Does the instance alone tell that it will be refused, end the process, or damage it?"""
        return (
            self.when is not None
            and not self.neighbours
            and not self.when.names & OUTCOME
            and (self.corrupts_process or all(v in _REFUSALS for v in self.verdicts))
        )

    @property
    def of_answers(self) -> bool:
        """Does it excuse wrong answers?"""
        return self.kind_of == "known" and Verdict.MISMATCH.value in self.verdicts

    @property
    def unconditioned(self) -> bool:
        """Does it excuse wrong answers of the instances that it speaks of, whatever they are?  What is of the wrong
        type or shape (``kinds``) is no narrower: the values are not looked at."""
        told = self.when is not None and bool(self.when.names & OUTCOME)
        return self.of_answers and not (self.defect_model or self.elements or told)

    @property
    def may_hang(self) -> bool:
        return Verdict.TIMED_OUT.value in self.verdicts

    def foretells(self, case: Case, profile: Profile) -> bool:
        """Will the backend refuse this instance in one of its runs, as far as its condition says?"""
        if self.when is None or not self._fits(case, profile):
            return False
        runs = len(case.inst.reruns)
        return any(self._told(case.at(r)) for r in range(1 + runs)) if runs else self._told(case)

    def concerns(self, keys: Iterable[str], backends: Iterable[Profile]) -> bool:
        """Could it have matched in a run over these op versions and backends?"""
        if not any(
            fnmatchcase(b.name, p) and self.there(b) and (b.cpu or not self.cpu)
            for b in backends
            for p in self.backends
        ):
            return False
        for key in keys:
            op, version = key.rsplit("/", 1)
            if any(fnmatchcase(op, o) for o in self.ops) and (
                not self.op_versions or version in {str(v) for v in self.op_versions}
            ):
                return True
        return False


def in_releases(version: str, text: str) -> bool:
    """Does the release of a version text lie in a range like those of an entry?  Raises InvalidSpecifier."""
    return _within(version, (releases(text),))


def _within(version: str, allowed: tuple[Range, ...]) -> bool:
    """Does the first thing in a version text that is a release lie in one of the ranges, or are there none?
    ("coremltools 9.0, macOS 15.1")"""
    if not allowed:
        return True
    found = re.search(r"\d+(\.\d+)*\w*", version)
    try:
        return found is not None and any(
            version.startswith(name) and r.contains(Version(found[0]), prereleases=True) for name, r in allowed
        )
    except InvalidVersion:
        return False


def releases(text: str) -> Range:
    """Of ``<1.24``, or with the name of a package before it.  Raises InvalidSpecifier."""
    name, space, rest = text.rpartition(" ")
    if not re.fullmatch(r"[a-z][\w-]*", name):
        name, space, rest = "", "", text
    return name + space, SpecifierSet(rest)


class Listed:
    """The differences of an op version and a backend that its instances tell before they are asked.

    foretelling: the backend refuses them, or they end or damage its process; those that damage it first.  shy: they go
    wrong beside others.  corrupts_process, hangs: does one of them damage the process, or hang at times?"""

    def __init__(self, profile: Profile, foretelling: list[LedgerEntry], shy: list[LedgerEntry]) -> None:
        self.profile, self.foretelling, self.shy = profile, foretelling, shy
        self.corrupts_process = any(e.corrupts_process for e in foretelling)
        self.hangs = any(e.may_hang for e in foretelling)

    def foretells(self, case: Case) -> LedgerEntry | None:
        """The first known difference that says the backend will not take this instance; one that corrupts_process
        before all."""
        for e in self.foretelling:
            if e.foretells(case, self.profile):
                return e
        return None

    def shuns(self, case: Case) -> bool:
        """Does a known difference say that the instance goes wrong beside others, and right alone?"""
        return any(e.shuns(case, self.profile) for e in self.shy)


@dataclass
class Ledger:
    """All entries.  ``explain`` turns a bad verdict into a known or ambiguous one where an entry says so.  lacks: saved
    instances, by id, and backends that do not take them."""

    entries: list[LedgerEntry] = field(default_factory=list)
    lacks: set[tuple[str, str]] = field(default_factory=set)

    def explain(self, result: Result, profile: Profile) -> LedgerEntry | None:
        """The first entry that matches, known differences before ambiguities; counts the hit.  An entry that cannot be
        evaluated leaves no verdict, and says why."""
        for e in self._candidates(result.case.inst.dialect, result.case.inst.op):
            try:
                matches = e.matches(result, profile)
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

    def underspecified(self, case: Case, profile: Profile) -> Underspecified | None:
        """What entries say is open of single elements of an instance of one run."""
        here = [e for e in self._candidates(case.inst.dialect, case.inst.op) if e.elements]
        return gathered(*(e.underspecified(case, profile) for e in here)) if here else None

    def met(self, id: str) -> None:
        """An entry, by its id, has explained an answer; a reason that is no entry's is counted nowhere."""
        e = self.by_id.get(id)
        if e is not None:
            e.hits += 1

    def listed(self, key: str, profile: Profile) -> Listed | None:
        """What is listed of an op version and a backend that an instance alone tells; None where nothing is."""
        dialect, op, version = key.split("/")
        here = [
            e
            for e in self._candidates(dialect, op)
            if any(fnmatchcase(profile.name, b) for b in e.backends)
            and (not e.op_versions or version in map(str, e.op_versions))
            and e.there(profile)
        ]
        foretelling = sorted(
            (e for e in here if e.kind_of == "known" and e.foretelling), key=lambda e: not e.corrupts_process
        )
        shy = [e for e in here if e.neighbours]
        return Listed(profile, foretelling, shy) if foretelling or shy else None

    def excuses(self, key: str, profile: Profile) -> bool:
        """Is a wrong answer of this op version and backend listed?"""
        return any(
            e.kind_of == "known" and Verdict.MISMATCH.value in e.verdicts and e.concerns([key], [profile])
            for e in self._candidates(*key.split("/")[:2])
        )

    def _candidates(self, dialect: str, op: str) -> list[LedgerEntry]:
        key = f"{dialect}/{op}"
        if key not in self._by_op:
            self._by_op[key] = [e for e in self._ordered if any(fnmatchcase(key, o) for o in e.ops)]
        return self._by_op[key]

    @cached_property
    def by_id(self) -> dict[str, LedgerEntry]:
        return {e.id: e for e in self.entries}

    @cached_property
    def _by_op(self) -> dict[str, list[LedgerEntry]]:
        return {}

    @cached_property
    def _ordered(self) -> list[LedgerEntry]:
        return sorted(self.entries, key=lambda e: e.kind_of != "known")

    def unused(
        self, keys: Iterable[str], backends: Iterable[Profile], replayed: Container[str] | None = None
    ) -> list[str]:
        """Ids of known differences that a run over these op versions and backends did not meet.  Of a backend that does
        not take the instance of an entry, or its models, nothing is known.

        replayed: the instances that the run did replay, of other entries it says nothing; all, where it is omitted."""
        keys, backends = list(keys), list(backends)

        def took(e: LedgerEntry) -> list[Profile]:
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
            and not e.neighbours
            and (replayed is None or (e.instance is not None and e.instance.dumps() in replayed))
            and e.concerns(keys, took(e))
        ]

    def unmarked(self) -> Ledger:
        """The same entries, none of them met yet: what is explained by this copy is not counted in the original."""
        return Ledger([replace(e, hits=0) for e in self.entries])

    def count(self, hits: Mapping[str, int]) -> None:
        """Take these for the numbers of verdicts that the entries explain, by id."""
        for e in self.entries:
            e.hits = hits.get(e.id, 0)

    def counts(self) -> Counter[str]:
        return Counter({e.id: e.hits for e in self.entries if e.hits})
