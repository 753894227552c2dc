"""``opconform list``: what there is: dialects, opsets, ops, what they mean, backends, known differences."""

from __future__ import annotations

import argparse

from harness.cli.options import positive, selected, selection
from harness.cli.output import OK, say

HELP = "what there is: dialects, opsets, ops, what they mean, backends, known differences"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    kinds = (
        "dialects",
        "opsets",
        "families",
        "ops",
        "meanings",
        "bounds",
        "backends",
        "providers",
        "known",
        "unconditioned",
        "reach",
        "excused",
    )
    v.add_argument(
        "what",
        choices=kinds,
        help="what to list. meanings: source, tolerance and rules of each op version. bounds: how many integers near "
        "the reference pass. providers: execution providers of ONNX Runtime. unconditioned: known differences that "
        "excuse any wrong answer. reach: the reach goals of each op version, and whether its instances meet them. "
        "excused: the share of valid instances that are underspecified",
    )
    v.add_argument(
        "--draws",
        type=positive,
        default=400,
        metavar="N",
        help="reach, excused: instances drawn of each op version (400)",
    )
    selection(v)


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session import listings, terminal

    sel = selected(args)
    drawn = listings.DRAWN.get(args.what)
    say(*terminal.columns(listings.LISTS[args.what](sel) if drawn is None else drawn(sel, args.draws)))
    return OK
