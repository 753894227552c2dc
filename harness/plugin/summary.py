"""The closing table: verdicts by dialect and backend."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from harness.core.escape import visible
from harness.core.outcome import Verdict


def table(tally: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Lines of the table; columns that are empty everywhere are left out."""
    used = [v.value for v in Verdict if any(c[v.value] for c in tally.values())]
    rows = [["dialect", "backend", *used]]
    rows += [[d, b, *(str(c[v] or "") for v in used)] for (d, b), c in sorted(tally.items())]
    rows = [[visible(c) for c in r] for r in rows]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(x.ljust(w) if i < 2 else x.rjust(w) for i, (x, w) in enumerate(zip(r, widths))) for r in rows]


STALE = "opconform_stale"  # in what a worker of pytest-xdist hands over
IDS = pytest.StashKey[dict[str, None]]()  # entries of the user's lists that no longer occur


def note(config: pytest.Config, stale: Iterable[str]) -> None:
    """Remember entries that no longer occur."""
    config.stash.setdefault(IDS, {}).update(dict.fromkeys(stale))


def write(reporter: Any) -> None:
    """Gathered from the items' reports, so that it works under pytest-xdist too."""
    tally: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for reports in reporter.stats.values():
        for r in reports:
            for name, value in getattr(r, "user_properties", ()):
                if name == "opconform" and getattr(r, "when", "") == "call":
                    tally[value[0], value[1]].update(value[2])
    if tally:
        reporter.section("conformance")
        for line in table(tally):
            reporter.line(line)
    stale = reporter.config.stash.get(IDS, {})
    if stale:
        reporter.line(visible(f"known differences that did not occur: {' '.join(stale)}"), red=True)


def nothing_judged(reporter: Any) -> bool:
    """Were there conformance tests, and has none of all tests done more than to skip?"""
    stats = reporter.stats
    skipped = any("conformance" in getattr(r, "keywords", ()) for r in stats.get("skipped", ()))
    return skipped and not any(stats.get(k) for k in ("passed", "failed", "error", "xfailed", "xpassed"))
