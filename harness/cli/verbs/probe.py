"""``opconform probe``: find by experiment what a backend can claim."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness.cli.options import place, placed, positive, selected, selection
from harness.cli.output import OK, note, say
from harness.core.errors import UsageError

HELP = "find by experiment what a backend can claim, and write it to a file"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    selection(v)
    v.add_argument("--backend", required=True, metavar="NAME", help="a name, module:Class or exec:COMMAND")
    place(v)
    v.add_argument(
        "--cases", type=positive, default=4, metavar="N", help="instances of an op version, of each of three kinds (4)"
    )
    v.add_argument("--write", type=Path, default=Path("claims.json"), metavar="FILE", help="new file (claims.json)")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session.probe import Probe
    from harness.session.session import Backends

    if args.write.exists():
        raise UsageError(f"--write: expected the name of a new file, {args.write} is there")
    with Backends(placed(args)) as bench:
        (handle,) = bench.open([args.backend], strict=True)
        found = Probe(handle, selected(args), args.cases).run(note)
    say(*found["measured"])
    args.write.parent.mkdir(parents=True, exist_ok=True)
    args.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    say("", f"claims: {args.write}; read them, then: opconform run --backend {args.backend!r} --claims {args.write}")
    return OK
