"""The share of valid instances that are compared with nothing, since the specification leaves something open.

Above one tenth, ``suites/<dialect>/excused.toml`` states the reason:

    [above_a_tenth]
    "onnx/MatMul/*" = "..."

Each key is a pattern of dialect/op/version; ``*`` is the only wildcard.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.cases.case import Case, draw_case
from harness.core.errors import FormatError, reading
from harness.core.quiet import quiet
from harness.declare import Dialect, OpVersion, gathered
from harness.reach.unreached import Patterns, tomllib
from harness.tolerance.underspecified import Openness, openness

SEED = 0
MOST = 0.1  # the share above which a sentence is needed
TABLE = "above_a_tenth"
Listed = Callable[[Case], str | None]


@dataclass
class Share:
    """Of the valid instances of an op version, how many leave what open, and why, the most frequent reason first."""

    version: OpVersion
    valid: int = 0
    counts: Counter[Openness] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def excused(self) -> float:
        """The share of which something is compared with nothing; readings that are enumerated are compared."""
        return (self.counts[Openness.WHOLLY] + self.counts[Openness.PARTLY]) / max(1, self.valid)


def share_of(version: OpVersion, draws: int, listed: Listed | None = None) -> Share:
    """The share among the instances 0 to ``draws - 1``, in the opsets of the op version by turns.

    listed: what a ledger leaves open of single elements, whatever the backend."""
    out = Share(version)
    asked = version.entry.checks.ambiguous or (version.meaning is not None and version.meaning.ambiguous)
    if not asked and listed is None:
        out.valid = draws
        return out
    every = len(version.opsets)
    with quiet:
        for i in range(draws):
            case = draw_case(version, version.opsets[i % every], SEED, i, invalid=False, lazy=True)
            if case.problem or not case.draws:
                continue
            out.valid += 1
            call = version.dialect.call_of(case.inst, case.draws[0], version)
            own = version.underspecified(call) if asked else None
            why = gathered(own, listed(case.at(0)) if listed is not None else None)
            if why is not None:
                found = openness(why)
                out.counts[found] += 1
                if found is not Openness.READINGS:
                    out.reasons[next((p.why for p in why.parts if not p.compared), str(why))] += 1
    return out


class Sentences:
    """The file of one dialect; raises FormatError where it is not as described above."""

    def __init__(self, dialect: Dialect) -> None:
        module = importlib.import_module(dialect.package)
        assert module.__file__ is not None
        self.path = Path(module.__file__).parent / "excused.toml"
        table: dict[str, str] = {}
        if self.path.exists():
            with reading(str(self.path)):
                tables = tomllib.loads(self.path.read_text())
            if set(tables) != {TABLE}:
                raise FormatError(f"{self.path}: expected the table {TABLE}, got {' '.join(sorted(tables)) or 'none'}")
            table = tables[TABLE]
        for pattern, sentence in table.items():
            if not isinstance(sentence, str) or len(sentence.split()) < 5 or not sentence.endswith("."):
                raise FormatError(f"{self.path}: {pattern}: expected a sentence, got {sentence!r}")
        self.table = {pattern: (Patterns([pattern]), sentence) for pattern, sentence in table.items()}

    def patterns(self, key: str) -> list[str]:
        """The patterns that take in an op version."""
        return [p for p, (patterns, _) in self.table.items() if patterns.take(key)]

    def of(self, key: str) -> str:
        """The sentence of an op version; empty where there is none."""
        return next((self.table[p][1] for p in self.patterns(key)), "")
