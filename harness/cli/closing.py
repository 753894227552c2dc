"""The end of a run: the report, the table, the first failures and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.cli.output import MISMATCH, OK, USAGE, note, say
from harness.core.errors import UsageError


def close(out: Path, records: list[Path], baseline: Any, missing: dict[str, str], stopped: UsageError | None) -> int:
    """Report, table, first failures; the exit code of a run."""
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
    say(f"report: {result.html.resolve()}")
    if stopped is not None:
        raise stopped
    if s.interrupted:
        note("stopped before the end; the same command goes on from here")
    elif s.nothing_judged:
        note(s.nothing_judged)
    return exit_code(s)


def exit_code(s: Any) -> int:
    """The exit code of a run, or of records of one: the one place that says what fails it."""
    if not s.clean:
        return MISMATCH
    return USAGE if s.interrupted or s.nothing_judged else OK


def figures(s: Any) -> list[str]:
    """What a run comes to: listed differences that did not occur, and the line of figures."""
    gone = [f"known differences that did not occur: {' '.join(s.unused)}"] if s.unused else []
    without = f", {s.undecided:,} without verdict" if s.undecided else ""
    apart = [f"{n:,} {v}" for v, n in s.unjudged.items() if v != "unknown"]
    beside = f" ({', '.join(apart)} not counted)" if apart else ""
    return [*gone, f"{s.bad:,} unexplained of {s.judged:,} judged outcomes{beside}{without}"]
