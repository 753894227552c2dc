"""``opconform list``: what there is: dialects, opsets, ops, what they mean, backends, known differences."""

from __future__ import annotations

import argparse

from harness.cli.options import selected, selection
from harness.cli.output import OK, say

HELP = "what there is: dialects, opsets, ops, what they mean, backends, known differences"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    kinds = ("dialects", "opsets", "families", "ops", "meanings", "bounds", "backends", "known", "unconditioned")
    v.add_argument(
        "what",
        choices=kinds,
        help="what to list; meanings: source, tolerance and rules of each op "
        "version; bounds: how many integers beside the reference pass; unconditioned: known differences "
        "that excuse any wrong answer",
    )
    selection(v)


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session import listings, terminal

    say(*terminal.columns(listings.LISTS[args.what](selected(args))))
    return OK
