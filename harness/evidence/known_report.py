"""The known differences as evidence.  Each minimal instance runs again, and each one that still differs gets a
folder with ``repro.py``.  An index lists them, crashes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.cases.case import fill
from harness.cases.result import Result
from harness.cases.selection import matches
from harness.core.escape import file_name, markdown, markdown_code
from harness.core.outcome import Status, Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.requery import judge_beside
from harness.engine.two_runs import TwoRuns
from harness.evidence.repro_folder import write_folder
from harness.ledger.entry import LedgerEntry
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle

INDEX = "index.md"


@dataclass
class KnownReportRow:
    """A known difference on one backend.  verdict: what its minimal instance gets today; folder: of the evidence, None
    where it does not occur any more.  elsewhere: it speaks of another release or processor.  nondeterministic: how two
    runs of its model differ."""

    entry: LedgerEntry
    backend: str
    key: str
    verdict: str
    folder: Path | None
    elsewhere: bool = False
    nondeterministic: str = ""

    @property
    def crash(self) -> bool:
        return self.verdict in (Verdict.CRASHED.value, Verdict.TIMED_OUT.value)


def concerned(ledger: Ledger, info: BackendInfo, ops: Iterable[str] = ()) -> Iterator[LedgerEntry]:
    """The known differences of a backend that carry an instance, of all ops or of those that a pattern names."""
    ops = list(ops)
    for e in ledger.entries:
        if e.kind_of != "known" or e.instance is None or not e.about(info):
            continue
        key = e.instance.key
        if not ops or any(matches(key, o) for o in ops):
            yield e


def collect(
    ledger: Ledger,
    handles: Iterable[BackendHandle],
    out: Path,
    ops: Iterable[str] = (),
    two_runs: TwoRuns | None = None,
) -> list[KnownReportRow]:
    """Judge the instances, write ``out/<id>/<folder>`` and ``out/index.md``.  two_runs: tells which results differ from
    run to run."""
    rows = []
    for h in handles:
        info = h.info
        engine = Engine([h])
        for e in concerned(ledger, info, ops):
            version = registry.version_of(e.instance)
            if version.dialect.format not in h.info.formats:
                continue
            result = (
                in_neighbours(e, h)
                if e.neighbours or e.may_hang
                else next(iter(engine.judge([fill(version, e.instance)])), None)
            )
            if result is None:
                continue
            if result.verdict is Verdict.AMBIGUOUS and result.outcome.status is Status.REJECTED:
                # a refusal has a cause, whatever the spec leaves open about the data (``judge_case``)
                result = replace(result, verdict=Verdict.WRONGLY_REJECTED, ambiguity=None)
            if two_runs is not None:
                result = two_runs(result, info)
            folder = None
            if result.verdict.bad:
                folder = write_folder(out / file_name(e.id), result, info.version, h.processor, h.spec.place.python)
            rows.append(
                KnownReportRow(
                    e, h.name, version.key, result.verdict.value, folder, not e.there(info), result.nondeterministic
                )
            )
    out.mkdir(parents=True, exist_ok=True)
    (out / INDEX).write_text(index(rows, out), encoding="utf-8")
    return rows


def in_neighbours(e: LedgerEntry, handle: BackendHandle) -> Result:
    """The verdict on an entry's instance beside those that it goes wrong with, in one model.  One that hangs at times
    is not waited for as long as others are."""
    cases = [fill(registry.version_of(i), i) for i in (*e.neighbours, e.instance)]
    return judge_beside(handle, handle.info, cases[-1], cases, hangs=lambda _: e.may_hang)


def index(rows: list[KnownReportRow], out: Path) -> str:
    """Markdown: crashes, then the other differences by backend, then what no longer occurs."""
    stands = [r for r in rows if r.folder is not None]
    gone = [r for r in rows if r.folder is None]
    text = ["# Known differences", "", f"{len(stands)} stand, {len(gone)} do not occur with these releases.", ""]
    text += _section("Crashes and hangs", [r for r in stands if r.crash], out)
    for backend in dict.fromkeys(r.backend for r in stands):
        text += _section(backend, [r for r in stands if r.backend == backend and not r.crash], out)
    if gone:
        other = ", listed for another release or processor"
        told = [f"{r.entry.id} ({r.key} on {r.backend}): {r.verdict}{other * r.elsewhere}" for r in gone]
        lines = [f"* {markdown(t)}" for t in told]
        text += ["## Not seen", "", *lines, ""]
    return "\n".join(text)


def _section(title: str, rows: list[KnownReportRow], out: Path) -> list[str]:
    if not rows:
        return []
    text = [
        f"## {markdown(title)}",
        "",
        "| id | op version | backend | verdict | what, and the clause | run |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        assert r.folder is not None
        what = f"{r.entry.reason} ({r.entry.clause})" + (f"; {r.nondeterministic}" if r.nondeterministic else "")
        words = (r.entry.id, r.key, r.backend, r.verdict.replace("_", " "), what)
        link = markdown_code((r.folder / "repro.py").relative_to(out).as_posix(), cell=True)
        text.append(f"| {' | '.join(map(markdown, words))} | {link} |")
    return [*text, ""]
