"""``opconform known``: model, data and repro.py of every known difference; or drafts of entries from a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.options import backend, folder, known, known_files, placed
from harness.cli.output import MISMATCH, OK, note, say
from harness.core.errors import UsageError

HELP = "model, data and repro.py of every known difference; or drafts of entries from a run"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*', onnx/Conv")
    backend(v)
    known(v)
    v.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="draft entries from the failures of a run, into a new file that you edit",
    )
    v.add_argument(
        "--records",
        nargs="+",
        default=[".opconform/run"],
        metavar="RECORDS",
        help="the run that --write reads: record files or folders (.opconform/run)",
    )
    v.add_argument(
        "--ranges",
        nargs="*",
        metavar="PACKAGE",
        help="compare the releases of every entry with those that show it (onnxruntime, ai-edge-litert, ...)",
    )
    v.add_argument("--from", dest="first", default="oldest", metavar="RELEASE", help="oldest release of --ranges")
    v.add_argument("--to", dest="last", default="newest", metavar="RELEASE", help="newest release of --ranges")
    v.add_argument("--out", type=folder, default=Path(".opconform/known"), metavar="DIR", help="folder of the results")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    if args.ranges is not None:
        return _ranges(args)
    if args.write is not None:
        return _write(args)
    from harness.cases.selection import Selection
    from harness.evidence import known_report
    from harness.ledger.loader import load_ledger
    from harness.session import session

    names = args.backend or session.names_for(Selection())
    with session.Backends(placed(args)) as bench:
        handles = bench.open(names, strict=bool(args.backend))
        rows = known_report.collect(load_ledger(own=known_files(args)), handles, args.out, args.op, bench.two_runs())
    if not rows:
        raise UsageError("no known difference of these ops and backends carries an instance")
    for r in (r for r in rows if r.crash):
        say(f"crash: {r.entry.id}: {r.key} on {r.backend}: {r.entry.reason}")
    for r in (r for r in rows if r.nondeterministic):
        say(f"{r.entry.id}: {r.key} on {r.backend}: {r.nondeterministic}")
    stand = sum(r.folder is not None for r in rows)
    say(f"{stand} of {len(rows)} stand; index: {(args.out / known_report.INDEX).resolve()}")
    return OK


def _write(args: argparse.Namespace) -> int:
    """Draft entries from the failures of a run."""
    import reports
    from harness.cases.selection import matches
    from harness.evidence.draft import drafted, text_of

    if args.write.exists():
        raise UsageError(f"--write: expected the name of a new file, {args.write} is there")
    s = reports.summarise(args.records)
    names = {label: str(info["name"]) for label, info in s.backends.items()}
    cases = [
        c
        for c in s.cases
        if (not args.backend or names[c["backend"]] in args.backend or c["backend"] in args.backend)
        and (not args.op or any(matches(c["key"], o) for o in args.op))
    ]
    tables = drafted(s.clusters, cases, names)
    if not tables:
        raise UsageError("--write: these records hold no failure of those ops and backends that shows alone")
    args.write.parent.mkdir(parents=True, exist_ok=True)
    args.write.write_text(text_of(tables), encoding="utf-8")
    say(f"{len(tables)} drafts: {args.write}; read and complete each of them, then: opconform run --known {args.write}")
    return OK


def _ranges(args: argparse.Namespace) -> int:
    """Say which entries are listed for other releases than those that show them."""
    from harness.releases import ranges
    from harness.releases.progress import Bar

    with Bar() as bar:
        checked, skipped = ranges.check(args.ranges or ranges.PACKAGES, args.first, args.last, bar, ops=args.op)
    for text in skipped:
        note(text)
    wrong = [c for c in checked if c.wrong]
    for c in wrong:
        say(c.line())
    say(f"{len(wrong)} of {len(checked)} entries are listed for other releases than those that show them")
    return MISMATCH if wrong else OK
