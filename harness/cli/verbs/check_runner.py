"""``opconform check-runner``: checks a program against the runner protocol."""

from __future__ import annotations

import argparse

from harness.cli.output import MISMATCH, OK, say

HELP = "check a runner against the protocol, and report what it does wrong"
SMOKE = ("Relu", "Add", "Mul", "MatMul", "Conv", "MaxPool", "Softmax", "Reshape", "Transpose", "Concat")


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("command", metavar="COMMAND", help="what starts the runner, such as 'node runner.mjs'")
    v.add_argument("--smoke", action="store_true", help="if the checks pass, run ten ops through it (ONNX)")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.session.check_runner import check

    steps = []
    for step in check(args.command):
        say(f"{'wrong' if step.wrong else 'right'}  {step.name}" + (f": {step.wrong}" if step.wrong else ""))
        steps.append(step)
    wrong = sum(bool(s.wrong) for s in steps)
    say("", f"{len(steps) - wrong} of {len(steps)} steps are right")
    if wrong:
        return MISMATCH
    return smoke(args.command) if args.smoke else OK


def smoke(command: str) -> int:
    """Ten ops with ten instances each, as ``opconform run`` has them."""
    from harness.cli import main

    ops = [x for op in SMOKE for x in ("--op", op)]
    return main(["run", "--dialect", "onnx", *ops, "--cases", "10", "--backend", f"exec:{command}"])
