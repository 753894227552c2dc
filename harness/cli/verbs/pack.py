"""``opconform pack``: frozen instances as files, for devices and other harnesses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.cli.options import Once, positive, whole
from harness.cli.output import OK, note, say
from harness.core.errors import UsageError

HELP = "write frozen instances with models, expected values and bounds, for devices and other harnesses"
SHOWN = 10  # op versions that fell short


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("--dialect", action=Once, required=True, metavar="NAME", help="onnx, mil, tflite, nn")
    v.add_argument(
        "--opset", action=Once, metavar="SPAN", help="op versions of these opsets: 17, 17.., ..20, ios16..ios17"
    )
    v.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*'; repeatable")
    v.add_argument("--family", action="append", default=[], metavar="NAME", help="op family: conv, reduction")
    v.add_argument("--format", action=Once, required=True, metavar="FORM", help="onnx-node, ort-jsonc or native")
    v.add_argument("--each", type=positive, default=10, metavar="N", help="instances of an op version (10)")
    v.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the instances (0)")
    v.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder, or a new file *.tar.xz")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    from harness.packs.writing import PackPlan, pack

    span = _span(args.dialect, args.opset)
    plan = PackPlan(args.dialect, args.format, args.out, args.op, args.family, span, args.each, args.seed)
    made = pack(plan)
    for key, (n, why) in list(made.short.items())[:SHOWN]:
        note(f"{key}: {n} of {args.each} instances: {why}")
    if len(made.short) > SHOWN:
        note(f"{len(made.short) - SHOWN} more op versions have fewer than {args.each}; the manifest has the reasons")
    size = args.out.stat().st_size if args.out.is_file() else made.size
    versions = made.op_versions - sum(n == 0 for n, _ in made.short.values())
    say(f"{len(made.entries):,} instances of {versions} op versions, {size / 1e6:.1f} MB: {args.out}")
    say(f"manifest sha256 {made.sum}")
    return OK


def _span(dialect: str, text: str | None) -> tuple[Any, Any]:
    """First and last opset of FIRST..LAST, either of which may be left out; one opset alone is both."""
    from harness.declare import registry

    d = registry.dialect(dialect)
    known = {str(o): o for o in d.opsets} | {d.marker(o).removeprefix("opset_"): o for o in d.opsets}
    if text is None:
        return None, None
    first, dots, last = text.partition("..")
    for name in (first, last):
        if name and name not in known:
            raise UsageError(f"--opset {text}: no opset {name} of {dialect}{registry.near(name, list(known))}")
    if not dots:
        last = first
    a, b = known.get(first), known.get(last)
    if a is None and b is None:
        raise UsageError(f"--opset {text}: expected OPSET, FIRST.., ..LAST or FIRST..LAST")
    order = list(d.opsets)
    if a is not None and b is not None and order.index(a) > order.index(b):
        raise UsageError(f"--opset {text}: {first} comes after {last}")
    return a, b
