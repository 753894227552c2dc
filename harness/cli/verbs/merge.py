"""``opconform merge``: several record files into one."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.output import OK, say

HELP = "several record files into one"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them")
    v.add_argument("--out", type=Path, required=True, metavar="FILE", help="the merged file")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    import reports

    n = reports.merge(args.records, args.out)
    say(f"{n:,} records in {args.out}")
    return OK
