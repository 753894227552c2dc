"""What a run has learnt about one op version on one backend: counts of answers, and what follows from them.

The counts do not depend on the order of the answers, and answers of other op versions do not enter them.  An answer
counts from the next *stage* of the op version on.  A stage is a range of case numbers: the saved instances, cases 0 to
15, 16 to 31, 32 to 63, 64 to 127, and so on.  When a stage begins, the engine has judged all earlier stages of the op
version.  So the choice of cases depends on the seed and on the answers of the backend alone.  Other op versions of the
run, timing and interruptions do not change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

STEP = 16  # cases of the first stage after the saved instances
EVERY = ""  # the trait of every instance
NONE_TAKEN = 6  # unsupported instances of an op version of which none was taken, before it counts as lacking
LEARNING = 4  # stages of which the traits are counted

Combination = tuple[str, tuple[str, ...], Any]  # op version that was asked where it is another one, types, opset


def stage(index: int) -> int:
    """The stage of a case number: 0 for saved instances, which have negative numbers, then 1, 2, ..."""
    return 0 if index < 0 else 1 + (index // STEP).bit_length()


@dataclass(slots=True)
class Count:
    """Counts of the answers to one combination of types.

    passed: answers with a value; for invalid instances: refusals.
    gaps: answers "unsupported".
    asked: answers that no listed difference predicted.  refused: the refusals among them; a death counts as several.
    mixed: the gaps at opsets where other instances passed, summed up when a stage begins.
    """

    passed: int = 0
    gaps: int = 0
    asked: int = 0
    refused: int = 0
    mixed: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.gaps += other.gaps
        self.asked += other.asked
        self.refused += other.refused


@dataclass(slots=True)
class Foretold:
    """asked: cases of which an end was predicted and that were asked; true: those where it came."""

    asked: int = 0
    true: int = 0

    def add(self, other: Foretold) -> None:
        self.asked += other.asked
        self.true += other.true


@dataclass
class Answers:
    """Counts of some answers.

    entries: by the id of the entry that predicted the end.
    rules: by the broken rule.
    excused: was an instance refused whose result the specification leaves open?
    traits: trait of an instance (``harness.cases.traits``) -> how many were taken and how many unsupported.  Only for
        op versions of which some early instances were unsupported.
    """

    types: dict[Combination, Count] = field(default_factory=dict)
    entries: dict[str, Foretold] = field(default_factory=dict)
    rules: dict[str, Foretold] = field(default_factory=dict)
    excused: bool = False
    traits: dict[str, list[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.types or self.entries or self.rules or self.excused or self.traits)

    def told(self, taken: Mapping[str, int], lacked: Mapping[str, int]) -> None:
        """Count the traits of instances that were taken, and of those that were unsupported."""
        for k, traits in enumerate((taken, lacked)):
            for name, n in traits.items():
                self.traits.setdefault(intern(name), [0, 0])[k] += n  # op versions have most traits in common

    def add(self, other: Answers) -> None:
        for combination, n in other.types.items():
            self.types.setdefault(combination, Count()).add(n)
        for mine, theirs in ((self.entries, other.entries), (self.rules, other.rules)):
            for name, f in theirs.items():
                mine.setdefault(name, Foretold()).add(f)
        self.excused = self.excused or other.excused
        for name, (taken, lacked) in other.traits.items():
            mine_ = self.traits.setdefault(name, [0, 0])
            mine_[0] += taken
            mine_[1] += lacked

    def to_json(self) -> dict[str, Any]:
        """Plain data, sorted: the same answers give the same text in whatever order they came."""
        out: dict[str, Any] = {}
        if self.types:
            rows = [
                [asked, ",".join(types), opset, n.passed, n.gaps, n.asked, n.refused]
                for (asked, types, opset), n in self.types.items()
            ]
            out["types"] = sorted(rows, key=lambda r: (r[0], r[1], str(r[2])))
        for name, counts in (("entries", self.entries), ("rules", self.rules)):
            if counts:
                out[name] = {k: [f.asked, f.true] for k, f in sorted(counts.items())}
        if self.excused:
            out["excused"] = True
        if self.traits:
            out["traits"] = dict(sorted(self.traits.items()))
        return out

    @classmethod
    def from_json(cls, o: dict[str, Any]) -> Answers:
        """Raises KeyError, TypeError or ValueError for what ``to_json`` has not written."""
        out = cls(excused=bool(o.get("excused")))
        for asked, types, opset, *n in o.get("types", ()):
            out.types[asked, tuple(types.split(",")) if types else (), opset] = Count(*map(int, n))
        for name, counts in (("entries", out.entries), ("rules", out.rules)):
            counts.update({k: Foretold(int(a), int(t)) for k, (a, t) in o.get(name, {}).items()})
        out.traits = {k: [int(taken), int(lacked)] for k, (taken, lacked) in o.get("traits", {}).items()}
        return out


class Knowledge:
    """What is known of one op version on one backend at the stage that it has reached."""

    def __init__(self) -> None:
        self.known = Answers()
        self._later: dict[int, Answers] = {}  # by stage: one a unit would grow as long as the stage lasts
        self._totals: dict[tuple[str, tuple[str, ...]], Count] = {}
        self._taken: set[tuple[str, str]] = set()
        self._lacking: Counter[tuple[str, str]] = Counter()
        self._combinations: dict[str, tuple[int, int]] = {}
        self._untaken: frozenset[str] | None = None  # of this stage, once asked for

    def note(self, at: int, answers: Answers) -> None:
        """Keep the answers of a stage for the stages after it."""
        if answers:
            self._later.setdefault(at, Answers()).add(answers)

    def reach(self, at: int) -> None:
        """Begin a stage: what was noted of earlier ones counts from now on."""
        earlier = [s for s in self._later if s < at]
        if not earlier:
            return
        for s in earlier:
            self.known.add(self._later.pop(s))
        self._sum_up()

    def _sum_up(self) -> None:
        self._totals, self._taken, self._lacking = {}, set(), Counter()
        self._untaken = None
        for (asked, types, _), n in self.known.types.items():
            n.mixed = n.gaps if n.passed else 0
            total = self._totals.setdefault((asked, types), Count())
            total.add(n)
            total.mixed += n.mixed
            if n.passed:
                self._taken.update((asked, d) for d in types)
            for d in set(types) - {"None"} if n.gaps else ():
                self._lacking[asked, d] += n.gaps
        self._combinations = {}
        for (asked, _), n in self._totals.items():
            passed, lacked = self._combinations.get(asked, (0, 0))
            self._combinations[asked] = passed + bool(n.passed), lacked + bool(n.gaps and not n.passed)

    def of(self, combination: Combination, alone: bool) -> Count | None:
        """The counts that tell of a combination; None where it was never asked.

        Those of all opsets together, since most gaps are the same at each; those of its own opset with ``alone``, or
        where it lacks there what passes elsewhere."""
        own = self.known.types.get(combination)
        if alone:
            return own
        every = self._totals.get(combination[:2])
        if own is not None and own.gaps and not own.passed and every is not None and every.passed:
            return own
        return every

    def lacks(self, combination: Combination, often: int) -> bool:
        """Has it a type that was unsupported so often, and never passed in any combination?"""
        asked, types, _ = combination
        lacking = self._lacking
        return bool(lacking) and any(lacking[asked, d] >= often and (asked, d) not in self._taken for d in types)

    def likely(self, combination: Combination, few: int) -> bool:
        """Is a combination that was never asked likely to pass: have all of its types passed in others, and so many
        combinations for each that lacked?"""
        asked, types, _ = combination
        passed, lacked = self._combinations.get(asked, (0, 0))
        return passed > 0 and passed >= lacked * few and all((asked, d) in self._taken for d in types)

    def untaken(self, sure: float) -> frozenset[str]:
        """The traits with which no instance was taken, although, had they no part in it, ``sure`` of them were to be
        expected.  Where none at all was taken, the opset."""
        if self._untaken is None:
            known = self.known.traits
            taken, lacked = known.get(EVERY, (0, 0))
            rate = taken / max(1, taken + lacked)
            self._untaken = frozenset(
                name
                for name, (passed, gaps) in known.items()
                if not passed
                and (gaps * rate >= sure or (not taken and name.startswith("opset=") and gaps >= NONE_TAKEN))
            )
        return self._untaken

    @property
    def excused(self) -> bool:
        return self.known.excused

    def entry(self, id: str) -> Foretold:
        return self.known.entries.get(id) or Foretold()

    def rule(self, name: str) -> Foretold:
        return self.known.rules.get(name) or Foretold()
