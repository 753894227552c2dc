"""``opconform known``: model, data and repro.py of every known difference; crashes are listed apart."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.options import backend, folder, placed
from harness.cli.output import OK, say
from harness.core.errors import UsageError

HELP = "model, data and repro.py of every known difference; crashes are listed apart"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*', onnx/Conv")
    backend(v)
    v.add_argument("--out", type=folder, default=Path(".opconform/known"), metavar="DIR", help="their place")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.cases.selection import Selection
    from harness.evidence import known_report
    from harness.ledger.loader import load_ledger
    from harness.session import session

    names = args.backend or session.names_for(Selection())
    with session.Backends(placed(args)) as bench:
        handles = bench.open(names, strict=bool(args.backend))
        rows = known_report.collect(load_ledger(), handles, args.out, args.op, bench.two_runs())
    if not rows:
        raise UsageError("no known difference of these ops and backends carries an instance")
    for r in (r for r in rows if r.crash):
        say(f"crash: {r.entry.id}: {r.key} on {r.backend}: {r.entry.reason}")
    for r in (r for r in rows if r.nondeterministic):
        say(f"{r.entry.id}: {r.key} on {r.backend}: {r.nondeterministic}")
    stand = sum(r.folder is not None for r in rows)
    say(f"{stand} of {len(rows)} stand; index: {(args.out / known_report.INDEX).resolve()}")
    return OK
