"""``opconform judge``: verdicts on outputs of a pack that were computed elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.closing import close
from harness.cli.options import check_baseline, folder, known, known_files
from harness.cli.output import note

HELP = "judge outputs of a pack that were computed elsewhere, and report"
OUT = Path(".opconform/judge")


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("pack", type=Path, metavar="PACK", help="what `opconform pack` wrote: a folder or *.tar.xz")
    v.add_argument("results", type=Path, metavar="RESULTS", help="folder with results.json and the outputs")
    v.add_argument("--partial", action="store_true", help="leave out instances without outputs or status")
    v.add_argument("--out", type=folder, default=OUT, metavar="DIR", help="folder of records and report (%(default)s)")
    known(v)
    v.add_argument("--baseline", nargs="+", metavar="RECORDS", help="records of an older run to compare with")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.packs.judging import judge_pack

    check_baseline(args)
    judged = judge_pack(args.pack, args.results, args.out, partial=args.partial, known=known_files(args))
    if judged.changed:
        first = judged.changed[0]
        note(f"the reference has changed since the pack was made, for {len(judged.changed)} instances such as {first}")
    return close(args.out, [judged.path], args.baseline, {}, None)
