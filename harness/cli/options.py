"""Options that several verbs share, and the values that they take."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from harness.cli.output import USAGE, say
from harness.core.errors import UsageError
from harness.core.escape import shell_line, visible

OUT = Path(".opconform/run")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> Any:
        self.exit(USAGE, f"{self.prog}: {visible(message)}; see `{self.prog} --help`\n")


class Once(argparse.Action):
    """Keeps a value; an option that is given again is refused, since its first value would be lost."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) != self.default:
            raise argparse.ArgumentError(self, f"expected once, got {getattr(namespace, self.dest)} and {values}")
        setattr(namespace, self.dest, values)


class Version(argparse.Action):
    """Prints the version and ends."""

    def __call__(self, parser: Any, *_: object, **__: object) -> None:
        from harness.core import VERSION

        say(f"opconform {VERSION}")
        parser.exit()


def selection(v: argparse.ArgumentParser) -> None:
    """Adds the options that select op versions."""
    g = v.add_argument_group("which ops (options may be repeated)")
    g.add_argument(
        "--dialect",
        action="append",
        default=[],
        metavar="NAME",
        help="onnx, mil, tflite, nn, passes, rewrites, tflite-programs, (onnx|tflite|mil)-graphs",
    )
    g.add_argument(
        "--opset",
        action=Once,
        metavar="OPSET",
        help="op versions of this opset, models built at it: ios17, onnx13, tflite",
    )
    g.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*', onnx/Conv")
    g.add_argument("--family", action="append", default=[], metavar="NAME", help="op family: conv, reduction")
    g.add_argument("--exclude-op", action="append", default=[], metavar="PATTERN", help="leave out these ops")
    from harness.cases.wanted import OPTIONS

    for flag, how in OPTIONS.items():
        g.add_argument(flag, **how)


def backend(v: Any) -> None:
    """Adds the options that select backends and where they run."""
    from harness.backends.providers import table as providers

    v.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one, or module:Class; repeatable (all that are installed)",
    )
    v.add_argument("--provider", **providers.OPTION)
    place(v)


def known(v: Any) -> None:
    """Adds the option that names lists of one's own."""
    v.add_argument(
        "--known",
        action="append",
        default=[],
        metavar="FILE",
        help="more known differences than those of pyproject.toml; repeatable (docs/known-differences.md)",
    )


def known_files(args: argparse.Namespace) -> list[Path]:
    """The files of the user's own lists: those that are given, those of his project and of installed packages."""
    from harness.ledger.loader import own_files

    return own_files(args.known)


def place(v: Any) -> None:
    """Adds the options that say where a backend runs, and the limits of its process."""
    from harness.workers.spec import LIMITS

    v.add_argument(
        "--backend-python",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="run the backends, or those of that name or pattern, in this Python, e.g. of another release; repeatable",
    )
    v.add_argument(
        "--claims",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="claims in place of those that the backend states, as `opconform probe` writes them; repeatable",
    )
    v.add_argument(
        "--backend-cpu",
        action=Once,
        metavar="NAME",
        help="run them on this processor, emulated by qemu-user: Haswell, EPYC-Milan, ...",
    )
    for flag, how in LIMITS.items():
        v.add_argument(flag, **how)


def engine(v: argparse.ArgumentParser) -> None:
    """Adds the options of a run."""
    g = v.add_argument_group("how")
    backend(g)
    known(g)
    g.add_argument("--draws", type=positive, default=1, metavar="N", help="data draws per model (1)")
    g.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the instances (0)")
    g.add_argument("--no-invalid", action="store_true", help="draw no instances that break a rule")
    g.add_argument(
        "--reach", action="store_true", help="count the reach goals that the instances meet, for the Coverage page"
    )
    g.add_argument(
        "--seconds",
        type=seconds,
        metavar="S",
        help="stop unfinished work after so many seconds, and write the report",
    )
    g.add_argument("--minimize", type=seconds, default=120.0, metavar="S", help="time to make failures smaller (120)")
    g.add_argument("--out", type=folder, default=OUT, metavar="DIR", help="folder of records and report (%(default)s)")
    g.add_argument("--baseline", nargs="+", metavar="RECORDS", help="records of an older run to compare with")


def positive(text: str) -> int:
    """A number from 1 on."""
    n = int(text) if text.strip().isdecimal() else 0
    if n < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return n


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def seconds(text: str) -> float:
    """Seconds from 0 on."""
    try:
        s = float(text)
    except ValueError:
        s = -1.0
    if not 0 <= s < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, got {text}")
    return s


def folder(text: str) -> Path:
    """A folder, which need not exist; no file may stand in its way."""
    path = Path(text)
    there = next((p for p in (path, *path.parents) if p.exists()), None)
    if there is not None and not there.is_dir():
        raise argparse.ArgumentTypeError(f"expected a folder, {there} is a file")
    return path


def shard(text: str) -> tuple[int, int]:
    """I/N as two numbers."""
    try:
        i, n = map(int, text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected I/N, e.g. 2/4, got {text!r}") from None
    if not 1 <= i <= n:
        raise argparse.ArgumentTypeError(f"expected 1 <= I <= N, got {text}")
    return i, n


def selected(args: argparse.Namespace) -> Any:
    """The op versions that the options select."""
    from harness.cases.selection import Selection, parse_opset
    from harness.cases.wanted import asked_for

    sel = Selection(list(args.dialect), None, list(args.op), list(args.family), getattr(args, "shard", (1, 1)))
    sel.without, sel.claims = list(args.exclude_op), asked_for(partial(getattr, args))
    if args.opset is not None:
        dialect, sel.opset = parse_opset(args.opset)
        if sel.dialects and list(sel.dialects) != [dialect]:
            raise UsageError(f"--opset {args.opset} is of dialect {dialect}, not {' '.join(sel.dialects)}")
        sel.dialects = [dialect]
    return sel


def placed(args: argparse.Namespace) -> Any:
    """Where the backends run.  Raises UsageError."""
    from harness.workers.spec import placed_at

    names = [args.backend] if isinstance(args.backend, str) else list(args.backend)
    return placed_at(args.backend_python, args.backend_cpu, args.claims, names, args.deadline, args.memory)


def check_baseline(args: argparse.Namespace) -> None:
    """Raises FormatError for a baseline that is none before anything is run for it."""
    import reports

    if args.baseline:
        reports.held(args.baseline)


def plan_of(args: argparse.Namespace) -> Any:
    """The plan of a run."""
    from harness.session.session import Plan

    command = "opconform " + shell_line(sys.argv[1:])
    return Plan(
        selected(args),
        list(args.backend),
        placed(args),
        args.cases,
        args.draws,
        args.seed,
        not args.no_invalid,
        args.out,
        args.seconds,
        args.minimize,
        command,
        getattr(args, "sensitivity", 0),
        reach=args.reach,
        known=known_files(args),
    )
