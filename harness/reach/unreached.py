"""The ledger of goals that no instance meets: ``suites/<dialect>/unreached.toml``.

    [[ruled_out]]
    ops = ["onnx/Conv/*"]
    goals = ["rank:X=2"]
    clause = "Conv-11, input X: 'dimensions are (N x C x H x W)'; ..."

    [[open]]
    ops = ["onnx/Conv/11"]
    goals = ["rank:X=6"]

``ops`` are patterns of dialect/op/version, ``goals`` patterns of goals; ``*`` is the only wildcard in either.  A clause
is the sentence of the specification that rules the goals out.  ``open`` are goals that nothing rules out and that no
draw, or few draws, meet yet.  ``scripts/reach.py`` writes them below a line that marks the generated part.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import FormatError, reading
from harness.declare import Dialect, OpVersion
from harness.reach.goals import goals_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WRITTEN_BELOW = "# Written by scripts/reach.py: goals that nothing rules out and that no draw meets yet.\n"
_NO_CLAUSE = re.compile(r"\b(no|any|every|all) (runtime|backend)s?\b|\bagreed?\b|\bsafe(ly|r)?\b|\brare(ly)?\b", re.I)
_LEAST_WORDS = 5


class Patterns:
    """Names and patterns, of which ``*`` is the wildcard."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._plain = {p for p in self.patterns if "*" not in p}
        wild = [".*".join(map(re.escape, p.split("*"))) for p in self.patterns if "*" in p]
        self._wild = re.compile("|".join(f"(?:{w})" for w in wild)) if wild else None

    def take(self, name: str) -> bool:
        """Is it one of the names, or does a pattern take it in?"""
        return name in self._plain or (self._wild is not None and self._wild.fullmatch(name) is not None)


class Unmet(NamedTuple):
    """A table of the ledger.  clause: empty of what is open."""

    ops: Patterns
    goals: Patterns
    clause: str


class Unreached:
    """The ledger of one dialect; raises FormatError where the file is not as described above."""

    def __init__(self, dialect: Dialect, whole: bool = True) -> None:
        """whole: read the open goals too."""
        module = importlib.import_module(dialect.package)
        assert module.__file__ is not None
        self.dialect = dialect
        self.path = Path(module.__file__).parent / "unreached.toml"
        tables: dict[str, Any] = {}
        if self.path.exists():
            with reading(str(self.path)):
                text = self.path.read_text()
                tables = tomllib.loads(text if whole else text.partition(WRITTEN_BELOW)[0])
        strange = tables.keys() - {"ruled_out", "open"}
        if strange:
            raise FormatError(f"{self.path}: expected tables ruled_out and open, got {' '.join(sorted(strange))}")
        self.ruled_out = [self._table(t, "ruled_out", {"ops", "goals", "clause"}) for t in tables.get("ruled_out", ())]
        self.open = [self._table(t, "open", {"ops", "goals"}) for t in tables.get("open", ())]

    def _table(self, t: Any, kind: str, fields: set[str]) -> Unmet:
        if not isinstance(t, dict) or t.keys() != fields:
            had = sorted(t) if isinstance(t, dict) else t
            raise FormatError(f"{self.path}: {kind}: expected the fields {' '.join(sorted(fields))}, got {had}")
        for name in ("ops", "goals"):
            if not isinstance(t[name], list) or not t[name] or not all(isinstance(x, str) for x in t[name]):
                raise FormatError(f"{self.path}: {kind}: {name}: expected a list of names, got {t[name]!r}")
        clause = t.get("clause", "")
        why = wrong_clause(clause) if kind == "ruled_out" else None
        if why is not None:
            raise FormatError(f"{self.path}: {kind} of {t['ops'][0]} {t['goals'][0]}: {why}")
        return Unmet(Patterns(t["ops"]), Patterns(t["goals"]), clause)

    @cached_property
    def _open_of(self) -> dict[str, list[Unmet]]:
        """The open tables by op, those with a wildcard there under ``*``."""
        out: dict[str, list[Unmet]] = {}
        for e in self.open:
            for op in {"*" if "*" in p.split("/")[1] else p.split("/")[1] for p in e.ops.patterns}:
                out.setdefault(op, []).append(e)
        return out

    def clauses(self, version: OpVersion) -> dict[str, str]:
        """Each goal of an op version that is ruled out, with its clause."""
        mine = [e for e in self.ruled_out if e.ops.take(version.key)]
        out = {}
        for goal in goals_of(version).ids:
            e = next((e for e in mine if e.goals.take(goal)), None)
            if e is not None:
                out[goal] = e.clause
        return out

    def open_goals(self, version: OpVersion) -> set[str]:
        """The goals of an op version that nothing rules out and that are not met yet."""
        near = [*self._open_of.get(version.op, ()), *self._open_of.get("*", ())]
        mine = [e for e in near if e.ops.take(version.key)]
        return {g for g in goals_of(version).ids if any(e.goals.take(g) for e in mine)} if mine else set()

    def problems(self) -> Iterator[str]:
        """Entries that name no op version, or no goal of one, in words."""
        versions = list(self.dialect.versions.values())
        for kind, tables in (("ruled_out", self.ruled_out), ("open", self.open)):
            for e in tables:
                mine = [v for v in versions if e.ops.take(v.key)]
                for p in e.ops.patterns:
                    if not any(Patterns([p]).take(v.key) for v in mine):
                        yield f"{self.path.name}: {kind}: {p} names no op version of {self.dialect.name}"
                ids = {g for v in mine for g in goals_of(v).ids}
                for p in e.goals.patterns:
                    if p not in ids and not any(map(Patterns([p]).take, ids)):
                        yield f"{self.path.name}: {kind} of {e.ops.patterns[0]}: {p} names no goal"


def wrong_clause(clause: Any) -> str | None:
    """Why a text is no clause: what was expected and what came."""
    if not isinstance(clause, str) or len(clause.split()) < _LEAST_WORDS or ":" not in clause:
        return f"clause: expected where it stands, a colon and the sentence that rules this out, got {clause!r}"
    found = _NO_CLAUSE.search(clause.replace("'", " "))
    if found is not None:
        return f"clause: expected the specification's sentence, got {found.group()!r}, which is no clause"
    return None


def written(open_goals: dict[str, set[str]], versions: Sequence[OpVersion]) -> str:
    """The tables of open goals, op version key -> goals, in as few lines as patterns allow."""
    by_op: dict[str, list[OpVersion]] = {}
    for v in versions:
        by_op.setdefault(v.op, []).append(v)
    alike: dict[tuple[str, ...], list[str]] = {}
    for vs in by_op.values():
        prefix = vs[0].key.rpartition("/")[0]
        shared = set.intersection(*(open_goals[v.key] for v in vs))
        tables = [(f"{prefix}/*", shared, vs)] if shared else []
        tables += [(v.key, open_goals[v.key] - shared, [v]) for v in vs]
        for ops, goals, mine in tables:
            if goals:
                told = _patterns(goals, mine, [v for v in versions if Patterns([ops]).take(v.key)], open_goals)
                alike.setdefault(told, []).append(ops)
    out = []
    for told, names in sorted(alike.items(), key=lambda x: x[1]):
        out.append(f"[[open]]\nops = {_list(names)}\ngoals = {_list(told)}\n")
    return "\n".join(out)


def _patterns(
    goals: set[str], mine: list[OpVersion], touched: list[OpVersion], open_goals: dict[str, set[str]]
) -> tuple[str, ...]:
    """Goals; a pattern where all goals of the op versions that begin alike, up to a sign, are open."""
    order = {g: i for i, g in enumerate(dict.fromkeys(g for v in mine for g in goals_of(v).ids))}
    left = sorted(goals, key=order.__getitem__)
    out = []
    while left:
        g = left[0]
        ends = [m.end() for m in re.finditer("[:=,]", g)]
        for end in ends:
            pattern = Patterns([g[:end] + "*"])
            held = [(v, x) for v in touched for x in goals_of(v).ids if pattern.take(x)]
            if len({x for _, x in held}) > 1 and all(x in open_goals[v.key] for v, x in held):
                out.append(g[:end] + "*")
                left = [x for x in left if not pattern.take(x)]
                break
        else:
            out.append(g)
            left = left[1:]
    return tuple(out)


def _list(names: Iterable[str]) -> str:
    """A TOML list, wrapped at 120 columns."""
    quoted = [f'"{n}"' for n in names]
    one = "[" + ", ".join(quoted) + "]"
    if len(one) < 110:
        return one
    lines, line = [], "   "
    for n in quoted:
        if len(line) + len(n) + 2 > 120:
            lines.append(line)
            line = "   "
        line += f" {n},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"
