"""What a run has learnt about the op versions and types that a backend takes, so that few packs fail.

One rejected instance fails the model that it shares, and several more models are needed to find it.  One that ends the
process also costs a fork.  So a case that will probably fail runs alone, and some cases are not run:

* A combination of op version and types runs alone until it has passed once.  It may share a model from the first case
  if all of its types passed in other combinations and few combinations of that op version were unsupported.
* A combination that was unsupported ``GAP`` times and never passed runs in one of ``ASK_AGAIN`` cases.
* So does a type that was unsupported ``LACK`` times in an op version and never passed in any combination.
* A trait (``harness.cases.traits``) may be one with which no instance passed, although chance would have let
  ``SURE_OF_TRAIT`` of them pass.  Cases with it run one in ``ASK_UNTAKEN``.  So do cases at an opset at which no
  instance of an op version passed.  Traits are counted up to case 128, if some of the first 16 cases were unsupported.
* A combination that is sometimes rejected or unsupported runs alone while that happens more often than once in
  ``SELDOM`` cases.
* If a known difference says that a case may damage its process, the case gets a process of its own.
* If a known difference or an ambiguity says that a case will be rejected, the case runs alone and does not count in
  that rate.  Once this has happened many times, such cases run rarely, and more rarely if they end the process.
* A case with a far extent beside no element runs alone, since a runtime may need seconds for it.
* If a known difference says that a case fails next to other instances, the case runs alone.
* An invalid instance runs rarely if breaking that rule of that op version has ended the process many times, as listed.

The cases that still run check what was learnt, so a fixed runtime is noticed.  Each op version learns from its own
cases, stage by stage (``harness.engine.learning_stages``).  So the same cases run in every run of a seed, in shards and
after an interruption.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.cases.case import Case
from harness.cases.result import Result
from harness.cases.selection import hash_key
from harness.cases.traits import far, kind, traits
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import OpVersion
from harness.engine.learning_stages import (
    EVERY,
    LEARNING,
    STEP,
    Answers,
    Combination,
    Count,
    Foretold,
    Knowledge,
    stage,
)
from harness.generate.draw_engines import mix
from harness.ledger.ledger import Ledger, Listed
from harness.workers.info import BackendInfo

GAP = 3
LACK = 4
FEW = 8  # combinations that passed for each that was unsupported
ASK_AGAIN = 32
ASK_REFUSED = 8
ASK_UNTAKEN = 20
SURE_OF_TRAIT = 2.0
SELDOM = 40
CRASH_WEIGHT = 10  # a death costs as much as so many refusals
SURE = 4  # times that a foreseen end must have come true before most such cases are left out
UNASKED = "unasked"  # phase of an outcome that stands for an answer that nobody asked for


class LearnedSupport:
    """What a run has learnt about one backend.

    ledger: listed differences, which predict refusals.

    It is kept by op version: that of the case.  A backend of another dialect gets a translated case; there ``source``
    names the op version that it was translated from.
    """

    def __init__(self, info: BackendInfo, ledger: Ledger | None = None) -> None:
        self.info, self.ledger = info, ledger
        self._listed: dict[str, Listed | None] = {}  # by op version
        self._names: dict[tuple[Any, ...], tuple[str, ...]] = {}  # of the types of a case
        self._of: defaultdict[str, Knowledge] = defaultdict(Knowledge)
        self._foreseen: dict[int, tuple[Case, str]] = {}  # by id: a case under way, and what predicted its end
        self._told: defaultdict[str, list[tuple[Case, bool]]] = defaultdict(list)  # valid cases of that unit
        self._new: defaultdict[str, Answers] = defaultdict(Answers)  # answers of the unit that is being judged

    def plan(
        self, cases: Sequence[Case], sources: Mapping[int, str] | None = None
    ) -> tuple[dict[int, Outcome], set[int]]:
        """Outcomes that need no asking, by id of the case, and the cases that go alone.  sources: by id of the case."""
        settled: dict[int, Outcome] = {}
        alone: set[int] = set()
        reached: tuple[OpVersion, str, Any, int] | None = None
        known = Knowledge()
        standing: dict[tuple[Any, ...], Standing] = {}  # by the types of a case
        listed: Listed | None = None
        below = False  # is it an opset of which the backend's makers promise nothing?
        untaken, kinds = frozenset[str](), set[str]()  # traits with which nothing was taken, and their kinds
        for c in cases:
            if c.problem:
                continue
            source = sources[id(c)] if sources is not None else c.version.key
            at = c.version, source, c.inst.opset, c.index // STEP
            if at != reached:  # cases of one op version stand together
                reached, known, listed = at, self._of[source], self._listed_of(c)
                below = self.info.below(c.inst.opset)
                standing = {}
                known.reach(stage(c.index))
                untaken = known.untaken(SURE_OF_TRAIT)
                kinds = set(map(kind, untaken))
            if c.inst.rule is not None:
                if c.index >= 0 and self._deadly(known, c):
                    settled[id(c)] = _unasked("as before: what breaks this rule ends the process")
                continue
            if c.index < 0:  # a saved instance is asked whatever is known
                alone.add(id(c))
                continue
            corrupts_process = None if listed is None else listed.corrupter(c)
            if corrupts_process is not None:
                self._foreseen[id(c)] = c, corrupts_process.id
                alone.add(id(c))
                continue
            types = c.types
            here = standing.get(types)
            if here is None:
                combination = self._combination(types, c.inst.opset, source)
                here = standing[types] = _standing(known, combination, below)
            if here.lacking and c.index % ASK_AGAIN:
                settled[id(c)] = _unasked("as before: the op lacks these types")
                continue
            if untaken and mix(hash_key(source) + c.index) % ASK_UNTAKEN:
                trait = next((t for t in traits(c, kinds) if t in untaken), None)
                if trait is not None:
                    settled[id(c)] = _unasked(f"as before: none was taken with {trait}")
                    continue
            if listed is not None and listed.fails_beside_others(c):
                alone.add(id(c))
                continue
            why = None if listed is None and not known.excused else self._foretold(listed, known, c)
            if why is None:
                if not here.trusted or far(c):
                    alone.add(id(c))
                continue
            name, ends = why
            seen = known.entry(name)
            if here.passed and seen.asked >= SELDOM and seen.true * SELDOM < seen.asked:
                continue  # a condition that is much wider than what happens
            if _sure(seen) and c.index % (ASK_AGAIN if ends else ASK_REFUSED):
                settled[id(c)] = _unasked(f"as before: {name} {'ends the process' if ends else 'refuses it'}")
                continue
            self._foreseen[id(c)] = c, name
            alone.add(id(c))
        return settled, alone

    def dangers(self, cases: Sequence[Case]) -> tuple[set[int], set[int]]:
        """Ids of the cases after which their process serves nobody, and of those that may hang, by what is listed."""
        spoilers, hanging = set[int](), set[int]()
        version: OpVersion | None = None
        listed: Listed | None = None
        for c in cases:
            if c.version is not version:  # cases of one op version stand together
                version, listed = c.version, self._listed_of(c)
            if listed is None or not (listed.corrupts_process or listed.hangs) or c.problem:
                continue
            if c.inst.rule is None and listed.corrupter(c) is not None:
                spoilers.add(id(c))
            if listed.may_hang(c):
                hanging.add(id(c))
        return spoilers, hanging

    def _listed_of(self, case: Case) -> Listed | None:
        """What is listed of the op version; of most there is nothing, which is found out once."""
        if self.ledger is None:
            return None
        key = case.version.key
        if key not in self._listed:
            self._listed[key] = self.ledger.listed(key, self.info)
        return self._listed[key]

    def _deadly(self, known: Knowledge, case: Case) -> bool:
        """Need the case not be asked, since its like ended the process each time?  One in a few is."""
        if not _sure(known.rule(str(case.inst.rule))):
            return False
        return mix(hash_key(case.version.key) + case.index) % ASK_AGAIN != 0

    def _combination(self, types: tuple[Any, ...], opset: Any, source: str) -> Combination:
        """The combination of a case with these ``Case.types``."""
        names = self._names.get(types)
        if names is None:
            names = self._names[types] = tuple(map(str, types[1:]))
        return "" if types[0] == source else types[0], names, opset

    def _foretold(self, listed: Listed | None, known: Knowledge, case: Case) -> tuple[str, bool] | None:
        """What says that the case will be refused, and does it end the process?"""
        if listed is not None:
            entry = listed.predicts(case)
            if entry is not None:
                return entry.id, Verdict.WRONGLY_REJECTED.value not in entry.verdicts
        return (f"ambiguous {case.version.key}", False) if known.excused and case.ambiguous is not None else None

    # -- learning

    def agreed(self, cases: Sequence[Case], source: str = "") -> None:
        """These cases of one opset came back with a value, or were rightly refused.  source: the op version of the run,
        where they were asked in the place of its cases."""
        if not cases:
            return
        source, opset = source or cases[0].version.key, cases[0].inst.opset
        new, told = self._new[source], self._told[source]
        counts: dict[tuple[Any, ...], Count] = {}  # by the types of a case
        for case in cases:
            if case.inst.rule is not None:
                new.rules.setdefault(str(case.inst.rule), Foretold()).asked += 1
                continue
            told.append((case, True))
            types = case.types
            count = counts.get(types)
            if count is None:
                count = counts[types] = new.types.setdefault(self._combination(types, opset, source), Count())
            count.passed += 1
            name = self._foretold_by(case) if self._foreseen else None
            if name is None:
                count.asked += 1
            else:
                new.entries.setdefault(name, Foretold()).asked += 1

    def learn(self, result: Result) -> None:
        """Take in anything else than plain agreement."""
        case, status, key = result.given, result.outcome.status, result.case.version.key
        if result.outcome.phase == UNASKED:
            return
        new = self._new[key]
        if case.inst.rule is not None:
            seen = new.rules.setdefault(str(case.inst.rule), Foretold())
            seen.asked += 1
            seen.true += status in (Status.CRASHED, Status.TIMED_OUT) and result.verdict is Verdict.KNOWN
            return
        if status is Status.VALUE:
            self.agreed([case], key)
            return
        name = self._foretold_by(case)
        if result.verdict is Verdict.UNSUPPORTED:  # a gap, whatever was predicted
            new.types.setdefault(self._combination(case.types, case.inst.opset, key), Count()).gaps += 1
            self._told[key].append((case, False))
            return
        if name is not None:
            seen = new.entries.setdefault(name, Foretold())
            seen.asked += 1
            seen.true += 1
            return
        if result.verdict is Verdict.AMBIGUOUS:
            new.excused = True
        n = new.types.setdefault(self._combination(case.types, case.inst.opset, key), Count())
        n.asked += 1
        n.refused += CRASH_WEIGHT if status in (Status.CRASHED, Status.TIMED_OUT) else 1

    def _foretold_by(self, case: Case) -> str | None:
        """What predicted the end of the case when it was planned."""
        found = self._foreseen.pop(id(case), None)
        return found[1] if found is not None and found[0] is case else None

    def closed(self, key: str, first: int) -> Answers:
        """The unit of an op version that begins with case ``first`` is judged: its answers, which count from the next
        stage on."""
        answers = self._new.pop(key, None) or Answers()
        told, known, at = self._told.pop(key, ()), self._of[key], stage(first)
        if known.known.traits or (at == 1 and any(not taken for _, taken in told)):
            told = told if at <= LEARNING else ()
            taken, lacked = Counter[str](), Counter[str]()
            for case, passed in told:
                (taken if passed else lacked).update((EVERY, *traits(case)))
            answers.told(taken, lacked)
        known.note(at, answers)
        return answers

    def recall(self, key: str, first: int, answers: Answers) -> None:
        """Take in what an earlier process of the same run learnt from a unit."""
        self._of[key].note(stage(first), answers)


class Standing(NamedTuple):
    """What is known of a combination in a stage.

    passed: has it passed?
    lacking: was it, or one of its types, unsupported whenever it was asked?
    trusted: may it share a model?
    """

    passed: bool
    lacking: bool
    trusted: bool


def _standing(known: Knowledge, combination: Combination, alone: bool) -> Standing:
    """alone: see ``Knowledge.of``."""
    n = known.of(combination, alone)
    if n is None:
        return Standing(False, known.lacks(combination, LACK), known.likely(combination, FEW))
    if not n.passed:
        return Standing(False, (n.gaps >= GAP and n.gaps > n.refused) or known.lacks(combination, LACK), False)
    return Standing(True, False, not (n.refused + n.mixed) * SELDOM > n.asked + n.mixed)


def _sure(seen: Foretold) -> bool:
    """Did the predicted end come often enough, and nearly always?"""
    return seen.true >= SURE and seen.true * 8 >= seen.asked * 7


def _unasked(why: str) -> Outcome:
    return Outcome(Status.UNSUPPORTED, None, UNASKED, why)
