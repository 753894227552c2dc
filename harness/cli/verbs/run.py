"""``opconform run``: draw instances, run and judge them, report; an unfinished run is resumed."""

from __future__ import annotations

import argparse

from harness.cli.closing import close
from harness.cli.options import Once, check_baseline, engine, plan_of, positive, selection, shard
from harness.cli.output import note
from harness.core.errors import UsageError

HELP = "draw instances, run and judge them, report; an unfinished run is resumed"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    selection(v)
    engine(v)
    v.add_argument(
        "--cases", type=positive, metavar="N", help="instances per op version (32; 256 of each kind of program)"
    )
    v.add_argument(
        "--shard", action=Once, type=shard, default=(1, 1), metavar="I/N", help="only the I-th of N parts of the ops"
    )
    v.add_argument("--fresh", action="store_true", help="never resume; an older run in the folder is set aside")
    v.add_argument(
        "--sensitivity",
        nargs="?",
        type=positive,
        const=200,
        default=0,
        metavar="N",
        help="also plant faults in up to N instances per op and type, and count (200)",
    )


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session import run_folder, session, terminal

    check_baseline(args)
    plan = plan_of(args)
    kept = run_folder.prepare(plan, fresh=args.fresh)
    if kept.resumed:
        note(f"resuming the run in {plan.out} (--fresh starts anew)")
    stopped: UsageError | None = None
    missing: dict[str, str] = {}
    with terminal.Progress() as show:
        try:
            missing = session.run(plan, show).missing
        except UsageError as e:  # the disk is full: what was judged until then is reported; or nothing ever began
            if not run_folder.has_records(plan.out):
                raise
            stopped = e
    baseline = args.baseline or ([str(kept.previous)] if kept.previous else None)
    return close(plan.out, [plan.out / run_folder.RECORDS], baseline, missing, stopped, asked=bool(args.baseline))
