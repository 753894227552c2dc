"""What the command line prints, and its exit codes."""

from __future__ import annotations

import sys

from harness.core.escape import one_line, visible

OK, MISMATCH, USAGE = 0, 1, 2


def say(*lines: object) -> None:
    """Print lines; no part of one can begin another, or rule the terminal."""
    for line in lines:
        print(visible(line))


def note(text: str) -> None:
    """Print a line on stderr."""
    print(visible(f"opconform: {text}"), file=sys.stderr)


def fail(text: str) -> int:
    """Print why the request cannot be carried out; returns the exit code for it."""
    note(one_line(text))
    return USAGE
