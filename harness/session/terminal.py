"""What a run says on the terminal: live progress, the closing table, the first failures in words."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.cases.result import first_words
from harness.core.escape import one_line, visible
from harness.core.outcome import Verdict
from harness.engine.case_record import paragraph
from harness.engine.run_records import RunTotals

BAD = tuple(v.value for v in Verdict if v.bad)
JUDGED = tuple(v.value for v in Verdict if v.judged)
SHOWN = 5  # failures told on the terminal; the report has them all


def columns(rows: Sequence[Sequence[str]], right: int = 99) -> list[str]:
    """Lines with aligned columns, those from number ``right`` on to the right."""
    if not rows:
        return []
    rows = [[visible(c) for c in r] for r in rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = []
    for r in rows:
        cells = [c.rjust(w) if i >= right else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def table(cube: Mapping[tuple[str, Any, str, str, str], int], backends: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Verdicts by dialect and backend; ``cube`` as in a report's summary.  Columns empty everywhere are left out."""
    tally: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (key, _, backend, _, verdict), n in cube.items():
        tally[key.split("/")[0], backend][verdict] += n
    used = [v.value for v in Verdict if any(t[v.value] for t in tally.values())]
    rows = [["dialect", "backend", "version", *(v.replace("_", " ") for v in used)]]
    for (dialect, backend), t in sorted(tally.items()):
        version = str((backends.get(backend) or {}).get("version") or "")
        rows.append([dialect, backend, version, *(f"{t[v]:,}" if t[v] else "." for v in used)])
    return columns(rows, right=3)


def failures(
    cases: Sequence[dict[str, Any]], clusters: Sequence[Mapping[str, Any]], backends: Mapping[str, Mapping[str, Any]]
) -> Iterable[str]:
    """One paragraph for the first failure of each of the largest clusters, one op at a time; then how many are left."""
    first: dict[int, dict[str, Any]] = {}
    for c in sorted(cases, key=lambda c: c.get("minimal") is None):  # those made smaller are easier to read
        if c["verdict"] in BAD and c.get("cluster_index") is not None:
            first.setdefault(c["cluster_index"], c)
    ops: dict[str, int] = {}
    for i in sorted(first):
        ops.setdefault(first[i]["key"], i)
    for i in list(ops.values())[:SHOWN]:
        version = str((backends.get(first[i]["backend"]) or {}).get("version") or "")
        text = paragraph(first[i], version)
        cluster = clusters[i]
        if cluster["separates"]:
            when = visible(cluster["predicate"])
            text += f"\n  fails when {when}: {cluster['failed']:,} fail, {cluster['passed']:,} pass"
        yield text
    if len(first) > min(SHOWN, len(ops)):
        yield f"... and {len(first) - min(SHOWN, len(ops))} more kinds of failure, see the report"


def undecided(cases: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A line for the first case of each reason why there was no verdict; then how many reasons are left."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for c in cases:
        if c["verdict"] == Verdict.UNKNOWN.value:
            first.setdefault((c["backend"], first_words(c["message"])), c)
    for c in list(first.values())[:SHOWN]:
        why = one_line(c["message"])[:300]
        yield visible(f"without verdict: {c['key']} at opset {c['opset']} on {c['backend']}: {c['phase']}: {why}")
    if len(first) > SHOWN:
        yield f"... and {len(first) - SHOWN} more reasons, see the report"


def uninformative(found: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Lines for the op versions whose valid instances say mostly too little to count; then how many are left."""
    for e in found[:SHOWN]:
        told = ", ".join(f"{b} {n:,} of {of:,}" for b, (n, of) in e["backends"].items())
        yield f"mostly uninformative: {e['key']}: {told}"
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more op versions, see the report's page on coverage"


class Progress:
    """Called with the engine's summary: one line rewritten on a terminal, a line every half minute elsewhere."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.next = time.monotonic() + (0.0 if self.live else 30.0)
        self.width = 0

    def __call__(self, s: RunTotals) -> None:
        self.show(s.cases, s.seconds, s.tally.values(), s.failures)

    def show(self, cases: int, seconds: float, tally: Iterable[Counter[str]], failures: int) -> None:
        """Show figures that are not one engine's."""
        now = time.monotonic()
        if not self.live and now < self.next:
            return
        self.next = now + 30.0
        judged = sum(c[v] for c in tally for v in JUDGED)
        rate = f", {cases / seconds:,.0f}/s" if seconds > 0 else ""
        text = f"{cases:,} instances{rate}, {judged:,} judged outcomes, {failures:,} unexplained, {seconds:.0f} s"
        if self.live:
            print("\r" + text.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line, so that what follows starts on its own."""
        if self.live and self.width:
            print(file=sys.stderr)
