"""``opconform report``: records of one or many runs -> HTML, JSON, Markdown, JUnit."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.closing import exit_code, figures
from harness.cli.options import folder
from harness.cli.output import note, say

HELP = "records of one or many runs -> HTML, JSON, Markdown, JUnit"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them; shards are merged")
    v.add_argument("--out", type=folder, metavar="DIR", help="folder of the report (that of the first record file)")
    v.add_argument("--baseline", nargs="+", metavar="RECORDS", help="records of an older run to compare with")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    import reports

    first = Path(args.records[0])
    out = args.out or (first if first.is_dir() else first.parent)
    result = reports.render(args.records, out, args.baseline)
    for text in result.summary.told:
        note(f"note: {text}")
    say(*figures(result.summary))
    for path in (result.html, result.json, result.markdown, result.junit):
        say(path)
    if result.summary.nothing_judged:
        note(result.summary.nothing_judged)
    return exit_code(result.summary, result.diff)
