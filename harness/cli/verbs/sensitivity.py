"""``opconform sensitivity``: plant faults in the answers of the reference, and count which are caught."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from harness.cli.options import backend, folder, placed, positive, selected, selection, whole
from harness.cli.output import OK, note, say
from harness.core.escape import shell_line

HELP = (
    "plant faults in the answers of the reference, and count those that the judge catches and those that known "
    "differences hide; an unfinished measurement is resumed. A fault is hidden if the entries excuse every wrong "
    "answer that shows it. If the defect models of these entries give each answer bit for bit, the fault counts apart, "
    "as the listed defect itself"
)


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    selection(v)
    backend(v)
    v.add_argument(
        "--instances",
        type=positive,
        default=16,
        metavar="N",
        help="at most so many instances per op version and type (16)",
    )
    v.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the instances (0)")
    v.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    v.add_argument(
        "--out", type=folder, default=Path(".opconform/sensitivity"), metavar="DIR", help="folder of the records"
    )


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session import sensitivity_run
    from harness.session.session import Plan

    command = "opconform " + shell_line(sys.argv[1:])
    selection = selected(args)
    selection.extra["instances"] = args.instances  # part of what makes two measurements the same
    plan = Plan(
        selection,
        list(args.backend),
        placed(args),
        cases=1,
        seed=args.seed,
        out=args.out,
        command=command,
        sensitivity=args.instances,
        saved=False,
    )

    def progress(done: int, every: int) -> None:
        if done == every or done % 100 == 0:
            note(f"{done:,} of {every:,} op versions")

    missing = sensitivity_run.run(plan, args.jobs, progress)
    say(*missing, *sensitivity_run.table(sensitivity_run.read(plan)))
    return OK
