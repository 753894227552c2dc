"""What a backend makes of an op version and its types: learnt from its answers, so that packs seldom fail.

One refused instance fails the model that it shares, and finding it takes several models more; one that ends the process
costs a fork besides.  So a case travels alone where that is likely, and some cases are not asked at all:

* A combination of op version and types goes alone until it has passed once, or, where all of its types passed in others
  and few combinations of that op version were unsupported, from the first.
* One that was unsupported ``GAP`` times before it ever passed is asked only once in ``ASK_AGAIN`` cases; so is each
  with a type that, of this op version, was unsupported ``LACK`` times and never passed in any combination.
* One that is refused now and then goes alone while that happens more often than once in ``SELDOM`` cases.
* A case that a listed difference says may damage the process, whatever it answers, gets a process of its own.
* A case that a listed difference (or the op version's own ambiguity) says will be refused goes alone and counts for
  nothing in that rate.  Once that has come true again and again it is asked only now and then, the less if it ends the
  process.
* A case that a listed difference says goes wrong beside others goes alone.
* A case that breaks a rule is asked only now and then, where breaking that rule of that op has ended the process as
  listed again and again.

Every learnt habit is checked again with the cases that are still asked, so that a mended runtime is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.core.outcome import Outcome, Status, Verdict
from harness.run.case import Case
from harness.run.judged import Judged, Profile
from harness.run.known import Entry, Ledger, Listed

GAP = 3
LACK = 4
FEW = 8  # combinations that passed for each that was unsupported
ASK_AGAIN = 32
ASK_REFUSED = 8
SELDOM = 40
CRASH_WEIGHT = 10  # a death costs as much as so many refusals
SURE = 4  # times that a foreseen end must have come true before most such cases are left out
UNASKED = "unasked"  # phase of an outcome that stands for an answer that nobody asked for


@dataclass(slots=True)
class _Habit:
    passed: bool = False
    gaps: int = 0  # unsupported in a row, before it ever passed
    asked: int = 0
    refused: int = 0

    @property
    def doubtful(self) -> bool:
        return not self.passed or self.refused * SELDOM > self.asked


@dataclass(slots=True)
class _Foresight:
    asked: int = 0
    true: int = 0
    left_out: int = 0

    @property
    def sure(self) -> bool:
        return self.true >= SURE and self.true * 8 >= self.asked * 7


class Habits:
    """The habits of one backend in one run.  ledger: listed differences, which foretell refusals."""

    def __init__(self, profile: Profile, ledger: Ledger | None = None) -> None:
        self.profile, self.ledger = profile, ledger
        oldest = profile.info.get("oldest_opset")
        self._oldest: int | None = oldest if isinstance(oldest, int) else None
        self._listed: dict[str, Listed | None] = {}  # by op version
        self._own: set[tuple[Any, ...]] = set()  # types and opset that have a habit of their own
        self._by: dict[tuple[Any, ...], _Habit] = {}  # types, or types and opset where that differs from the rest
        self._foreseen: dict[int, str] = {}  # id of a case under way -> what foretold its end
        self._came: dict[str, _Foresight] = {}
        self._broken: dict[tuple[str, ...], _Foresight] = {}  # a rule of an op in a domain: deaths of what breaks it
        self._lacking: Counter[tuple[Any, ...]] = Counter()  # op version and type -> gaps, while it never passed
        self._combinations: dict[str, tuple[int, int]] = {}  # op version -> combinations that passed, those that lacked
        self._taken: set[tuple[Any, ...]] = set()  # op version and type that passed
        self._excused: set[str] = set()  # op versions of which ambiguous instances were refused

    def plan(self, cases: Sequence[Case]) -> tuple[dict[int, Outcome], set[int]]:
        """Outcomes that need no asking, by id of the case, and the cases that go alone."""
        settled: dict[int, Outcome] = {}
        alone: set[int] = set()
        for c in cases:
            if c.problem:
                continue
            if c.inst.rule is not None:
                if c.index >= 0 and self._deadly(c):
                    settled[id(c)] = _unasked("as before: what breaks this rule ends the process")
                continue
            if c.index < 0:  # a saved instance is asked whatever is known
                alone.add(id(c))
                continue
            listed = self._listed_of(c)
            spoils = None if listed is None else _spoils(listed, c)
            if spoils is not None:
                self._came.setdefault(spoils.id, _Foresight())
                self._foreseen[id(c)] = spoils.id
                alone.add(id(c))
                continue
            h = self._of(c)
            passed = h is not None and h.passed
            if not passed and c.index % ASK_AGAIN and ((h is not None and h.gaps >= GAP) or self._lacks(c)):
                settled[id(c)] = _unasked("as before: the op lacks these types")
                continue
            if listed is not None and listed.shuns(c):
                alone.add(id(c))
                continue
            why = None if listed is None and not self._excused else self._foretold(listed, c)
            if why is None:
                if h is None:
                    known_to_pass = self._likely(c)
                else:
                    known_to_pass = passed and not (h.refused and h.doubtful)
                if not known_to_pass:
                    alone.add(id(c))
                continue
            name, ends = why
            seen = self._came.setdefault(name, _Foresight())
            if passed and seen.asked >= SELDOM and seen.true * SELDOM < seen.asked:
                continue  # a condition that is much wider than what happens
            if seen.sure and c.index % (ASK_AGAIN if ends else ASK_REFUSED):
                settled[id(c)] = _unasked(f"as before: {name} {'ends the process' if ends else 'refuses it'}")
                continue
            self._foreseen[id(c)] = name
            alone.add(id(c))
        return settled, alone

    def spoilers(self, cases: Sequence[Case]) -> set[int]:
        """Ids of the cases after which their process serves nobody."""
        told = self._with_listed(cases)
        return {id(c) for c, listed in told if c.inst.rule is None and _spoils(listed, c) is not None}

    def hanging(self, cases: Sequence[Case]) -> set[int]:
        """Ids of the cases of which a listed difference says that they may hang."""
        return {id(c) for c, listed in self._with_listed(cases) if _may_hang(listed, c)}

    def _with_listed(self, cases: Sequence[Case]) -> list[tuple[Case, Listed]]:
        """The cases of which something may be listed, with that."""
        return [(c, listed) for c in cases if (listed := self._listed_of(c)) is not None and not c.problem]

    def _listed_of(self, case: Case) -> Listed | None:
        """What is listed of the op version; of most there is nothing, which is found out once."""
        if self.ledger is None:
            return None
        key = case.version.key
        if key not in self._listed:
            self._listed[key] = self.ledger.listed(key, self.profile)
        return self._listed[key]

    def _breaking(self, case: Case) -> _Foresight:
        """What came of the cases that break the same rule."""
        key = case.inst.dialect, case.inst.op, case.version.schema.domain, str(case.inst.rule)
        return self._broken.setdefault(key, _Foresight())

    def _deadly(self, case: Case) -> bool:
        """Need the case not be asked, since its like ended the process each time?  One in a few is."""
        seen = self._breaking(case)
        if not seen.sure:
            return False
        seen.left_out += 1
        return seen.left_out % ASK_AGAIN != 0

    def _likely(self, case: Case) -> bool:
        """Is a combination that was never asked likely to pass?"""
        key = case.types[0]
        passed, gaps = self._combinations.get(key, (0, 0))
        return passed >= gaps * FEW and passed > 0 and all((key, d) in self._taken for d in case.types[1:])

    def _lacks(self, case: Case) -> bool:
        """Has the case a type that the op version never took?"""
        key = case.types[0]
        return any(self._lacking.get((key, d), 0) >= LACK for d in case.types[1:])

    def _key(self, case: Case) -> tuple[Any, ...]:
        """Types; with the opset where a gap of that opset was found, and where the backend's makers promise nothing,
        since other gaps may open there."""
        types, opset, oldest = case.types, case.inst.opset, self._oldest
        if (types, opset) in self._own or (oldest is not None and isinstance(opset, int) and opset < oldest):
            return types, opset
        return types

    def _of(self, case: Case) -> _Habit | None:
        return self._by.get(self._key(case))

    def _foretold(self, listed: Listed | None, case: Case) -> tuple[str, bool] | None:
        """What says that the case will be refused, and does it end the process?"""
        if listed is not None:
            entry = listed.foretells(case)
            if entry is not None:
                return entry.id, Verdict.WRONGLY_REJECTED.value not in entry.verdicts
        key = case.version.key
        return (f"ambiguous {key}", False) if key in self._excused and case.ambiguous is not None else None

    # -- learning

    def _count(self, key: str, passed: int, gaps: int) -> None:
        p, g = self._combinations.get(key, (0, 0))
        self._combinations[key] = p + passed, g + gaps

    def agreed(self, case: Case) -> None:
        """The case came back with the right value, or was rightly refused."""
        if case.inst.rule is not None:
            self._breaking(case).asked += 1
            return
        h = self._of(case)
        if h is None:
            h = self._by[self._key(case)] = _Habit()
        if not h.passed:
            h.passed = True
            h.gaps = 0
            self._count(case.types[0], 1, 0)
            for d in case.types[1:]:
                self._taken.add((case.types[0], d))
                self._lacking.pop((case.types[0], d), None)
        name = self._foreseen.pop(id(case), None) if self._foreseen else None
        if name is None:
            h.asked += 1
        else:
            self._came[name].asked += 1

    def learn(self, judged: Judged) -> None:
        """Take in anything else than plain agreement."""
        case, status = judged.given, judged.outcome.status
        if judged.outcome.phase == UNASKED:
            return
        if case.inst.rule is not None:
            seen = self._breaking(case)
            seen.asked += 1
            seen.true += status in (Status.CRASHED, Status.TIMED_OUT) and judged.verdict is Verdict.KNOWN
            return
        name = self._foreseen.pop(id(case), None)
        if status is Status.VALUE:
            if name is not None:
                self._foreseen[id(case)] = name
            self.agreed(case)
            return
        h = self._of(case)
        lacking = judged.verdict is Verdict.UNSUPPORTED and (h is None or not h.passed)  # a gap, whatever was foretold
        if name is not None and not lacking:
            self._came[name].asked += 1
            self._came[name].true += 1
            return
        if judged.verdict is Verdict.AMBIGUOUS:
            self._excused.add(case.version.key)
        if judged.verdict is Verdict.UNSUPPORTED:
            if h is None:
                h = self._by[self._key(case)] = _Habit()
            elif h.passed and h is self._by.get(case.types):  # elsewhere it passes: a gap of this opset
                self._own.add((case.types, case.inst.opset))
                h = self._by[self._key(case)] = _Habit()
            if not h.passed:
                h.gaps += 1
                self._count(case.types[0], 0, h.gaps == 1)
                self._lacking.update({(case.types[0], d) for d in case.types[1:] if d is not None} - self._taken)
                return
        elif h is None:
            h = self._by[self._key(case)] = _Habit()
        h.gaps = 0
        h.asked += 1
        h.refused += CRASH_WEIGHT if status in (Status.CRASHED, Status.TIMED_OUT) else 1


def _spoils(listed: Listed, case: Case) -> Entry | None:
    """The listed difference that says that the case may damage its process."""
    if not listed.spoils:
        return None
    entry = listed.foretells(case)
    return entry if entry is not None and entry.spoils else None


def _may_hang(listed: Listed, case: Case) -> bool:
    """Does a listed difference say so?"""
    if not listed.hangs:
        return False
    entry = listed.foretells(case)
    return entry is not None and entry.may_hang


def _unasked(why: str) -> Outcome:
    return Outcome(Status.UNSUPPORTED, None, UNASKED, why)
