"""The command line.  A verb is a module of ``harness.cli.verbs`` and a name in ``VERBS``.

Each verb calls one function of ``harness.session`` or ``reports``.  Exit codes: 0 everything is explained,
1 something is not, 2 the request cannot be carried out, or not to its end (one line on stderr says why).
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from harness.cli.options import Parser, Version
from harness.cli.output import OK, fail
from harness.core.errors import OpconformError

VERBS = (
    "list",
    "run",
    "sensitivity",
    "campaign",
    "check_runner",
    "probe",
    "pack",
    "judge",
    "replay",
    "minimize",
    "known",
    "bisect",
    "report",
    "diff",
    "merge",
    "export",
)

EPILOG = """\
exit codes: 0 all explained, 1 something is unexplained, 2 bad request or cut short (one line says why)

examples:
  opconform run                                      every dialect on every installed backend
  opconform run --opset ios17 --op 'conv*'           MIL convolutions, models built at iOS17
  opconform run --backend my_module:MyBackend        a backend of your own
  opconform run --backend 'exec:node runner.mjs'     a runtime in any language (docs/runner-protocol.md)
  opconform run --backend onnxruntime --backend-python old/bin/python
  opconform replay .opconform/run/failures/X/instance.json --backend onnxruntime
  opconform report shard-*/records.jsonl --out report --baseline last-week/records.jsonl
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    args = parser().parse_args(argv)
    with stoppable():
        return _verb_of(args)


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM, and SIGHUP unless it is ignored, end the run as Ctrl-C does: what was judged is reported."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        ends = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
        before = {n: signal.signal(n, signal.default_int_handler) for n in ends}
    try:
        yield
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)


def _verb_of(args: argparse.Namespace) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show stops nothing
    try:
        code = int(args.verb(args))
        sys.stdout.flush()
        return code
    except OpconformError as e:
        return fail(str(e))
    except KeyboardInterrupt:
        return fail("interrupted")
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        return fail(f"cannot go on:{where} {e.strerror or e}")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    p = Parser(
        prog="opconform",
        description="Differential conformance tests of ML operator sets.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--version", action=Version, nargs=0, help="print the version and exit")
    verbs = p.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in VERBS:
        verb = import_module(f"harness.cli.verbs.{name}")
        v = verbs.add_parser(
            name.replace("_", "-"), help=verb.HELP, description=verb.HELP[0].upper() + verb.HELP[1:] + "."
        )
        verb.arguments(v)
        v.set_defaults(verb=verb.run)
    return p
