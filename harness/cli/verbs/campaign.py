"""``opconform campaign``: run on all cores until the time is up or Ctrl-C, then report."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from harness.cli.closing import close
from harness.cli.options import check_baseline, engine, plan_of, positive, seconds, selection

HELP = "run on all cores until the time is up or Ctrl-C, then report"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    selection(v)
    engine(v)
    v.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="processes (one per core)")
    v.add_argument("--fresh", action="store_true", help="never resume from the records in the folder")
    v.add_argument(
        "--ray", nargs="?", const="local", metavar="ADDRESS", help="on a Ray cluster: auto, ray://host:10001"
    )
    v.add_argument("--slice", type=seconds, default=300.0, metavar="S", help="with --ray: seconds of a task (300)")
    v.set_defaults(cases=0, out=Path(".opconform/campaign"))


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session import campaign, cluster

    check_baseline(args)
    plan = plan_of(args)
    if args.ray is not None:
        outcome = cluster.run(plan, args.ray, args.jobs, args.slice, args.fresh)
    else:
        outcome = campaign.run(plan, args.jobs, args.fresh)
    asked = bool(args.baseline)
    return close(plan.out, outcome.records, args.baseline, outcome.missing, outcome.problem, asked)
