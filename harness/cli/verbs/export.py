"""``opconform export``: records as two Parquet tables, outcomes and cases, for DuckDB and similar tools."""

from __future__ import annotations

import argparse

from harness.cli.options import folder
from harness.cli.output import OK, say

HELP = "records as two Parquet tables, outcomes and cases, for DuckDB and similar tools"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them")
    v.add_argument("--out", type=folder, required=True, metavar="DIR", help="folder of the tables")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    import reports

    for path in reports.export(args.records, args.out):
        say(path)
    return OK
