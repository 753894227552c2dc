"""``opconform replay``: judge one instance again."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.options import backend, known, known_files, placed
from harness.cli.output import MISMATCH, OK, say
from harness.core.errors import UsageError
from harness.core.escape import one_line, shell

HELP = "judge one instance again"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("case", metavar="CASE", help="instance.json, its folder, neighbours.json, or onnx/Conv/11@17#0.5")
    backend(v)
    known(v)
    v.add_argument("--raw", action="store_true", help="ignore the known differences")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.backends import registry as backends
    from harness.engine import case_record
    from harness.engine.case_record import NEIGHBOURS
    from harness.session import replay, terminal

    own = known_files(args)
    if Path(args.case).name == NEIGHBOURS:
        judged = replay.replay_neighbours(Path(args.case), args.backend, placed(args), not args.raw, own)
    else:
        inst = replay.find_case(args.case)
        judged = replay.replay(inst, args.backend, placed(args), not args.raw, own)
    if not judged:
        raise UsageError(f"no backend here takes the models of {args.case}; `opconform list backends` tells why")
    votes = {j.backend: j.verdict.value for j in judged}
    for j in judged:
        if j.verdict.bad:
            place = placed(args)
            line = f"opconform replay {shell(args.case)} --backend {shell(backends.asked(j.backend))}{place.options}"
            say(*case_record.paragraph(case_record.record(j, votes, place=place, replay=line)).split("\n"), "")
        elif j.nondeterministic:
            say(f"{j.backend}: {j.nondeterministic}", "")
    why = {
        j.backend: one_line(j.outcome.message)[:100] for j in judged if j.verdict.value in ("unsupported", "unknown")
    }
    rows = [[j.backend, j.verdict.value, j.known or j.ambiguity or why.get(j.backend, "")] for j in judged]
    say(*terminal.columns(rows))
    return MISMATCH if any(j.verdict.bad or j.verdict.value == "unknown" for j in judged) else OK
