"""The end of a run: the report, the table, the first failures and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.cli.output import MISMATCH, OK, USAGE, note, say
from harness.core.errors import UsageError


def close(
    out: Path,
    records: list[Path],
    baseline: Any,
    missing: dict[str, str],
    stopped: UsageError | None,
    asked: bool = False,
) -> int:
    """Report, table, first failures; the exit code of a run.  asked: by what is new against the baseline."""
    import reports
    from harness.session import terminal

    result = reports.render(list(records), out, baseline)
    s = result.summary
    for name, text in s.beside.items():
        note(f"note: {name}: {text}")
    say(*terminal.table(s.cube, s.backends))
    for text in terminal.failures(s.cases, s.clusters, s.backends):
        say("", *text.split("\n"))
    say("")
    for text in terminal.undecided(s.cases):
        say(text)
    for name, why in missing.items():
        say(f"not run: {name}: {why}")
    say(*terminal.uninformative(s.uninformative), *figures(s))
    say(*first_causes(s))
    say(f"report: {result.html.resolve()}")
    if stopped is not None:
        raise stopped
    if s.interrupted:
        note("stopped before the end; the same command resumes here")
    elif s.nothing_judged:
        note(s.nothing_judged)
    if asked and result.diff is not None:
        say(*news(result.diff))
    return exit_code(s, result.diff if asked else None)


def news(diff: Any) -> list[str]:
    """What is new against a baseline, in lines."""
    rows = [
        f"  {e['key']} on {e['backend']}: {e['verdict'].replace('_', ' ')}, {e['n']:,} of {e['of']:,}"
        for e in (*diff["new"], *diff["first_run"])
    ]
    n, seldom = len(rows), len(diff["seldom"])
    more = [f"  ... and {n - 10} more, see the report"] if n > 10 else []
    rare = f"; {seldom} seen only now, too rare to call new" if seldom else ""
    return [
        f"against the baseline: {n} new, {len(diff['still'])} still there, {len(diff['gone'])} gone{rare}",
        *rows[:10],
        *more,
    ]


def exit_code(s: Any, diff: Any = None) -> int:
    """The exit code of a run or of its records.  diff: against a baseline, if one was requested; then only new failures
    count."""
    if s.undecided or s.unused or (s.bad if diff is None else diff["new"] or diff["first_run"]):
        return MISMATCH
    return USAGE if s.interrupted or s.nothing_judged else OK


def first_causes(s: Any) -> list[str]:
    """The causes that settle most, in lines."""
    from reports.causes import sentence

    first = [c for c in s.causes if c["first"]]
    if len(s.causes) < 2:
        return []
    share = sum(c["share"] for c in first)
    lines = [f"  {c['class']:11}  {c['failed']:6,}  {sentence(c)[-200:]}" for c in first]
    return [f"what to do first ({len(first)} of {len(s.causes)} causes, {share:.0%} of the failures):", *lines]


def figures(s: Any) -> list[str]:
    """What a run comes to: listed differences that did not occur, and the line of figures."""
    gone = [f"known differences that did not occur: {' '.join(s.unused)}"] if s.unused else []
    without = f", {s.undecided:,} without verdict" if s.undecided else ""
    apart = [f"{n:,} {v}" for v, n in s.unjudged.items() if v != "unknown"]
    apart += [f"{s.not_asked:,} unasked"] if s.not_asked else []
    beside = f" ({', '.join(apart)} not counted)" if apart else ""
    return [*gone, f"{s.bad:,} unexplained of {s.judged:,} judged outcomes{beside}{without}"]
