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
        help="what to list; meanings: source, tolerance and rules of each op version; bounds: how many integers beside "
        "the reference pass; providers: execution providers of ONNX Runtime; unconditioned: known differences that "
        "excuse any wrong answer; reach: what the instances of each op version must show once, and whether they do; "
        "excused: the share of valid instances of which the specification leaves something open",
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
