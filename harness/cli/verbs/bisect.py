"""``opconform bisect``: the release in which a wrong answer begins, and the one in which it ends."""

from __future__ import annotations

import argparse

from harness.cli.options import Once
from harness.cli.output import MISMATCH, OK, note, say

HELP = "find the release in which a wrong answer begins and ends"


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    what = "instance.json, its folder, onnx/Conv/11@17#0.5, or the id of a known difference"
    v.add_argument("case", metavar="CASE|ENTRY", help=what)
    packages = "package of the runtime: onnxruntime, ai-edge-litert, coremltools, onnx"
    v.add_argument("--package", required=True, metavar="NAME", help=packages)
    backends = "only this one, or module:Class; repeatable (all that the package serves)"
    v.add_argument("--backend", action="append", default=[], metavar="NAME", help=backends)
    for name, dest, default, end in (("--from", "first", "oldest", "oldest"), ("--to", "last", "newest", "newest")):
        text = f"{end} release to look at ({default})"
        v.add_argument(name, dest=dest, action=Once, default=default, metavar="RELEASE", help=text)


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.releases import bisect
    from harness.releases.progress import Bar

    subject = bisect.find(args.case)
    with Bar() as bar:
        found = bisect.bisect(subject, args.package, args.backend, args.first, args.last, bar)
    for text in found.skipped:
        note(text)
    say(*found.lines())
    return MISMATCH if found.shows_in_the_newest else OK
