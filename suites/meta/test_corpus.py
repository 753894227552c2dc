"""Saved instances first: every known difference with an instance still stands, nothing saved fails without a reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from harness.backends import registry as backends
from harness.cases.case import fill
from harness.core.errors import FormatError
from harness.core.outcome import Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.evidence.attribution import Attribution
from harness.evidence.known_report import in_neighbours
from harness.ledger import corpus
from harness.ledger.entry import LedgerEntry
from harness.ledger.loader import load_ledger
from harness.session.session import Backends


@pytest.mark.parametrize("name", registry.names())
def test_saved_instances_are_explained_and_known_differences_occur(name: str) -> None:
    ledger = load_ledger()
    d = registry.dialect(name)
    pairs = list(corpus.cases(corpus.saved(ledger), d.versions.values()))
    assert [c.problem for _, c in pairs if c.problem] == []
    out: list[dict] = []
    with Backends() as bench:
        handles = bench.open(backends.names(d.format), strict=False)
        if not handles:
            pytest.skip(f"no backend for {d.format}: {bench.missing}")
        engine = Engine(
            handles,
            ledger=ledger,
            attribute=Attribution(bench.spare, ledger),
            sink=out.append,
            on_failure=lambda j, votes: {
                "t": "case",
                "id": j.case.inst.dumps(),
                "verdict": j.verdict,
                "backend": j.backend,
            },
        )
        engine.run([], pairs)
        here = list(engine.infos.values())
    unexplained = [
        f"{r['backend']}: {r['verdict'].value}: {r['id']}" for r in out if r["t"] == "case" and r["verdict"].bad
    ]
    assert not unexplained, "\n".join(unexplained[:20])
    ours = {i.dumps() for i in (c.inst for _, c in pairs)}
    gone = ledger.unused(d.versions, here, ours)
    assert not gone, f"these known differences no longer occur: {' '.join(gone)}"


SHY = [e for e in load_ledger().entries if e.neighbours]


@pytest.mark.parametrize("entry", SHY, ids=[e.id for e in SHY])
def test_neighbours_make_it_wrong_and_alone_it_is_right(entry: LedgerEntry) -> None:
    d = registry.version_of(entry.instance).dialect
    with Backends() as bench:
        handles = [
            h
            for h in bench.open(backends.names(d.format), strict=False)
            if any(fnmatchcase(h.name, b) for b in entry.backends) and entry.there(h.info)
        ]
        if not handles:
            pytest.skip(f"none of {' '.join(entry.backends)} of that release and processor: {bench.missing}")
        for h in handles:
            (alone,) = Engine([h]).judge([fill(registry.version_of(entry.instance), entry.instance)])
            right = alone.verdict in (Verdict.AGREE, Verdict.UNINFORMATIVE)
            assert right or (entry.intermittent and entry.matches(alone, h.info))
            beside = in_neighbours(entry, h)
            if entry.intermittent and not (right and beside.verdict.bad):
                continue  # today's memory shows it alone already, or not at all
            assert beside.verdict.bad
            assert len(beside.neighbours) > 1
            assert entry.matches(beside, h.info)
            assert entry.fails_beside_others(beside.case, h.info)


def test_a_bad_line_in_the_corpus_is_named(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text('\n{"format": 7}\n')
    with pytest.raises(FormatError, match=r"a.jsonl:2"):
        corpus.saved(load_ledger([]), [tmp_path])


def test_every_known_difference_carries_an_instance() -> None:
    bare = [e.id for e in load_ledger().entries if e.kind_of == "known" and e.instance is None]
    assert not bare, f"no instance shows that these stand: {' '.join(bare)}"
