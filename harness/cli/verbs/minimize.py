"""``opconform minimize``: make a failing instance smaller, write a folder that reproduces it."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.options import folder, place, placed, seconds
from harness.cli.output import MISMATCH, OK, say

HELP = "make a failing instance smaller, write a folder that reproduces it"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("case", metavar="CASE", help="as for replay")
    v.add_argument("--backend", required=True, metavar="NAME", help="the backend it fails on")
    place(v)
    v.add_argument(
        "--out", type=folder, default=Path(".opconform/minimized"), metavar="DIR", help="folder of the result"
    )
    v.add_argument("--seconds", type=seconds, default=60.0, metavar="S", help="time to spend (60)")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.engine import case_record
    from harness.session import replay

    inst = replay.find_case(args.case)
    small, record = replay.minimize(inst, args.backend, args.out, args.seconds, placed(args))
    if small is None or record is None:
        say(f"{inst.key} {inst.id}: {args.backend} does not fail on it")
        return OK
    say(*case_record.paragraph(record).split("\n"))
    return MISMATCH
