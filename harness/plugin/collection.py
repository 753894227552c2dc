"""Items: one op version on one backend, collected from a dialect's ``schema.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cases.case import Case
from harness.cases.selection import known, matches
from harness.cases.wanted import draw_within
from harness.core.escape import visible
from harness.core.outcome import Verdict
from harness.declare import Dialect, OpVersion, registry
from harness.engine.case_record import paragraph
from harness.engine.run_records import batch
from harness.plugin import markers
from harness.plugin.options import BENCH
from harness.workers.claims import Claims

GENERATED = pytest.StashKey[frozenset[str]]()  # the words of ``-m``, where it asks for generated tests alone
_OURS = Path(__file__).resolve().parents[2] / "suites"


def collect_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A dialect's schema.json stands for its generated tests."""
    if path.name != "schema.json":
        return None
    for name in registry.names():
        d = registry.dialect(name)
        if path.parent.name == name and d.package == f"{path.parent.parent.name}.{name}":
            file: DialectFile = DialectFile.from_parent(parent, path=path)
            file.dialect = d
            return file
    return None


def ignored(path: Path, config: pytest.Config) -> bool | None:
    """True of our own test modules, where ``-m`` asks for generated tests alone and the module has none of its words:
    to import them takes many times as long as to collect the rest."""
    words = config.stash.get(GENERATED, frozenset())
    if not words or path.suffix != ".py" or _OURS not in path.parents:
        return None
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return True if not any(f"mark.{w}" in text for w in words) else None


class DialectFile(pytest.File):
    """All op versions of a dialect, each with every backend that takes its format."""

    dialect: Dialect

    def collect(self) -> Iterator[pytest.Item]:
        bench = self.config.stash[BENCH]
        names = bench.names_for(self.dialect.format)
        without = self.config.getoption("--exclude-op")
        for v in self.dialect.versions.values():
            if any(matches(v.key, p) for p in without):
                continue
            for backend in names:
                item: ConformanceItem = ConformanceItem.from_parent(self, name=f"{v.op}/{v.version}/{backend}")
                item.version, item.backend = v, backend
                for m in markers.of(v, backend):
                    item.add_marker(m)
                yield item


class ConformanceFailure(Exception):
    """Carries the case records of a failing item."""

    def __init__(self, records: list[dict[str, Any]], total: int, problems: list[str]) -> None:
        super().__init__(f"{total} failures")
        self.records, self.total, self.problems = records, total, problems


_last: tuple[Any, list[Case]] | None = None


def _cases(v: OpVersion, opset: Any, n: int, seed: int, draws: int, top: Any, claims: Claims) -> list[Case]:
    """Drawn cases within the claims, with expected results; neighbours share them, since items of one op version follow
    each other."""
    global _last
    within = claims.opsets_of(v.opsets if opset is None else [opset])
    opsets = tuple(known(within, top)) if opset is None and within else tuple(within)
    if not opsets or not claims.takes(v.key):
        return []
    key = (v.key, opsets, n, seed, draws, claims)
    if _last is None or _last[0] != key:
        found = (draw_within(claims, v, _opset(opsets, i), seed, i, draws) for i in range(n))
        _last = key, [c for c in found if c is not None]
    return _last[1]


def _opset(opsets: tuple[Any, ...], i: int) -> Any:
    """Groups of eight cases share an opset: the last one, the first one, then others in turn."""
    turn = i // 8
    return opsets[-1 if turn % 3 == 0 else 0 if turn % 3 == 1 else turn * 7 % len(opsets)]


class ConformanceItem(pytest.Item):
    """Draws cases of an op version, runs them on a backend, fails on the first unexplained difference of each kind."""

    version: OpVersion
    backend: str

    def runtest(self) -> None:
        bench = self.config.stash[BENCH]
        engine = bench.engine(self.backend)
        option = self.config.getoption
        fixed = markers.chosen_opset(self.config, self.version.dialect.name)
        cases = _cases(
            self.version,
            fixed,
            option("--cases"),
            option("--case-seed"),
            option("--draws"),
            bench.handle(self.backend).info.opset,
            engine.claims_of(self.version.dialect.format),
        )
        if not cases:
            pytest.skip(f"{self.version.key}: nothing of it is claimed or asked for")
        by_opset: dict[Any, list[Case]] = {}
        for c in cases:
            by_opset.setdefault(c.inst.opset, []).append(c)
        problems = [f"case {c.index}: {c.problem}" for c in cases if c.problem]
        tally: Counter[str] = Counter()
        records: list[dict[str, Any]] = []
        seen: set[Any] = set()
        bad = 0
        for group in by_opset.values():
            results = list(engine.judge(group))
            bench.judged(results)
            for judged in results:
                tally[judged.verdict.value] += 1
                if judged.verdict is Verdict.UNKNOWN:
                    problems.append(f"case {judged.case.index}: {judged.outcome.message}")
                if not judged.verdict.bad:
                    continue
                bad += 1
                if judged.signature not in seen and len(records) < 5:
                    seen.add(judged.signature)
                    rec = bench.evidence(judged, bench.votes(judged))
                    if rec is not None:
                        records.append(rec)
                        bench.sink(rec)
        bench.summary.tally[self.version.dialect.name, self.backend].update(tally)
        self.user_properties.append(("opconform", [self.version.dialect.name, self.backend, dict(tally)]))
        bench.sink(
            batch(
                self.version.key,
                fixed,
                0,
                len(cases),
                {(self.backend, str(cases[0].dtype), k): n for k, n in tally.items()},
            )
        )
        if bad or problems:
            raise ConformanceFailure(records, bad, problems)
        if tally and set(tally) == {"unsupported"}:
            pytest.skip(f"{self.backend} does not support {self.version.key} (all {tally['unsupported']} cases)")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        e = excinfo.value
        if not isinstance(e, ConformanceFailure):
            return super().repr_failure(excinfo, style)
        version = self.config.stash[BENCH].handle(self.backend).info.version
        parts = [paragraph(r, version) for r in e.records]
        if e.total > len(parts):
            parts.append(f"({e.total} failing cases in all)")
        parts += [visible(f"{self.version.key}: {p}") for p in e.problems[:3]]
        return "\n\n".join(parts)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.version.dialect.name}/{self.name}"
