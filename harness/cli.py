"""The command line: list, run, campaign, replay, minimize, known, report, diff, merge, export.

Each verb calls one function of ``harness.run`` or ``reports``.  Exit codes: 0 everything is explained, 1 something is
not, 2 the request itself cannot be carried out, or not to its end (one line on stderr says why).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.core.errors import OpconformError, UsageError
from harness.core.escape import one_line, shell, shell_line, visible

OK, MISMATCH, USAGE = 0, 1, 2
OUT = Path(".opconform/run")

EPILOG = """\
exit codes: 0 all explained, 1 something is not, 2 bad request or cut short (one line says why)

examples:
  opconform run                                      every dialect against every backend that is here
  opconform run --opset ios17 --op 'conv*'           MIL convolutions, models built at iOS17
  opconform run --backend my_module:MyBackend        a backend of your own
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
        return _fail(str(e))
    except KeyboardInterrupt:
        return _fail("interrupted")
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        return _fail(f"cannot go on:{where} {e.strerror or e}")


def _fail(text: str) -> int:
    _note(one_line(text))
    return USAGE


def _say(*lines: object) -> None:
    """Print lines; no part of one can begin another, or rule the terminal."""
    for line in lines:
        print(visible(line))


def _note(text: str) -> None:
    print(visible(f"opconform: {text}"), file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> Any:
        self.exit(USAGE, f"{self.prog}: {visible(message)}; see `{self.prog} --help`\n")


class _Once(argparse.Action):
    """Keeps a value; an option that is given again is refused, since its first value would be lost."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) != self.default:
            raise argparse.ArgumentError(self, f"expected once, got {getattr(namespace, self.dest)} and {values}")
        setattr(namespace, self.dest, values)


class _Version(argparse.Action):
    """Prints the version and ends."""

    def __call__(self, parser: Any, *_: object, **__: object) -> None:
        from harness.core.version import VERSION

        _say(f"opconform {VERSION}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    p = _Parser(
        prog="opconform",
        description="Differential conformance tests of ML operator sets.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = p.add_subparsers(title="verbs", metavar="VERB", required=True)

    v = _verb(verbs, "list", _list, "what there is: dialects, opsets, ops, what they mean, backends, known differences")
    kinds = ("dialects", "opsets", "families", "ops", "meanings", "bounds", "backends", "known", "unconditioned")
    v.add_argument(
        "what",
        choices=kinds,
        help="what to list; meanings: source, tolerance and rules of each op "
        "version; bounds: how many integers beside the reference pass; unconditioned: known differences "
        "that excuse any wrong answer",
    )
    _selection(v)

    v = _verb(verbs, "run", _run, "draw instances, run and judge them, report; an unfinished run is resumed")
    _selection(v)
    _engine(v)
    v.add_argument("--cases", type=_positive, default=32, metavar="N", help="instances per op version (32)")
    v.add_argument(
        "--shard", action=_Once, type=_shard, default=(1, 1), metavar="I/N", help="only the I-th of N parts of the ops"
    )
    v.add_argument("--fresh", action="store_true", help="never resume; an older run in the folder is set aside")
    v.add_argument(
        "--sensitivity",
        nargs="?",
        type=_positive,
        const=200,
        default=0,
        metavar="N",
        help="also plant faults in up to N instances per op and type, and count (200)",
    )

    v = _verb(
        verbs,
        "sensitivity",
        _sensitivity,
        "plant faults in the reference's answers: how many are caught, how "
        "many the known differences would hide; an unfinished measurement is resumed",
    )
    _selection(v)
    _backend(v)
    v.add_argument(
        "--instances",
        type=_positive,
        default=16,
        metavar="N",
        help="at most so many instances per op version and type (16)",
    )
    v.add_argument("--seed", type=_whole, default=0, metavar="N", help="seed of the instances (0)")
    v.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    v.add_argument("--out", type=_folder, default=Path(".opconform/sensitivity"), metavar="DIR", help="their records")

    v = _verb(verbs, "campaign", _campaign, "run on all cores until the time is up or Ctrl-C, then report")
    _selection(v)
    _engine(v)
    v.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="processes (one per core)")
    v.add_argument("--fresh", action="store_true", help="do not go on from the records in the folder")
    v.add_argument(
        "--ray", nargs="?", const="local", metavar="ADDRESS", help="on a Ray cluster: auto, ray://host:10001"
    )
    v.add_argument("--slice", type=_seconds, default=300.0, metavar="S", help="with --ray: seconds of a task (300)")
    v.set_defaults(cases=0, out=Path(".opconform/campaign"))

    v = _verb(verbs, "replay", _replay, "judge one instance again")
    v.add_argument("case", metavar="CASE", help="instance.json, its folder, neighbours.json, or onnx/Conv/11@17#0.5")
    _backend(v)
    v.add_argument("--raw", action="store_true", help="ignore the known differences")

    v = _verb(verbs, "minimize", _minimize, "make a failing instance smaller, write a folder that reproduces it")
    v.add_argument("case", metavar="CASE", help="as for replay")
    v.add_argument("--backend", required=True, metavar="NAME", help="the backend it fails on")
    _place(v)
    v.add_argument("--out", type=_folder, default=Path(".opconform/minimized"), metavar="DIR", help="its place")
    v.add_argument("--seconds", type=_seconds, default=60.0, metavar="S", help="time to spend (60)")

    v = _verb(verbs, "known", _known, "model, data and repro.py of every known difference; crashes are listed apart")
    v.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*', onnx/Conv")
    _backend(v)
    v.add_argument("--out", type=_folder, default=Path(".opconform/known"), metavar="DIR", help="their place")

    v = _verb(verbs, "report", _report, "records of one or many runs -> HTML, JSON, Markdown, JUnit")
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them; shards are merged")
    v.add_argument("--out", type=_folder, metavar="DIR", help="folder of the report (beside the first record file)")
    v.add_argument("--baseline", nargs="+", metavar="RECORDS", help="an older run to compare with")

    v = _verb(verbs, "diff", _diff, "what is new and what is gone between two runs; 1 when something is new")
    v.add_argument("old", metavar="OLD", help="record file or folder")
    v.add_argument("new", metavar="NEW", help="record file or folder")
    v.add_argument("--json", action="store_true", help="print the whole comparison as JSON")

    v = _verb(verbs, "merge", _merge, "several record files into one")
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them")
    v.add_argument("--out", type=Path, required=True, metavar="FILE", help="the merged file")

    v = _verb(verbs, "export", _export, "records as two Parquet tables, outcomes and cases, for DuckDB and the like")
    v.add_argument("records", nargs="+", metavar="RECORDS", help="record files, or folders of them")
    v.add_argument("--out", type=_folder, required=True, metavar="DIR", help="folder of the tables")
    return p


def _verb(verbs: Any, name: str, function: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    v: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    v.set_defaults(verb=function)
    return v


def _selection(v: argparse.ArgumentParser) -> None:
    g = v.add_argument_group("which ops (options may be repeated)")
    g.add_argument(
        "--dialect", action="append", default=[], metavar="NAME", help="onnx, mil, tflite, nn, passes, rewrites"
    )
    g.add_argument(
        "--opset", action=_Once, metavar="OPSET", help="ops in force there, models built there: ios17, onnx13, tflite"
    )
    g.add_argument("--op", action="append", default=[], metavar="PATTERN", help="Conv, 'Reduce*', onnx/Conv")
    g.add_argument("--family", action="append", default=[], metavar="NAME", help="op family: conv, reduction")


def _backend(v: Any) -> None:
    v.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one, or module:Class; repeatable (all that are here)",
    )
    _place(v)


def _place(v: Any) -> None:
    v.add_argument(
        "--backend-python",
        action=_Once,
        metavar="PATH",
        help="run the backends in this Python, e.g. of another release",
    )
    v.add_argument(
        "--backend-cpu",
        action=_Once,
        metavar="NAME",
        help="run them on this processor, emulated by qemu-user: Haswell, EPYC-Milan, ...",
    )


def _placed(args: argparse.Namespace) -> Any:
    from harness.backends.process import Place

    return Place(args.backend_python, args.backend_cpu)


def _engine(v: argparse.ArgumentParser) -> None:
    g = v.add_argument_group("how")
    _backend(g)
    g.add_argument("--draws", type=_positive, default=1, metavar="N", help="data draws per model (1)")
    g.add_argument("--seed", type=_whole, default=0, metavar="N", help="seed of the instances (0)")
    g.add_argument("--no-invalid", action="store_true", help="draw no instances that break a rule")
    g.add_argument("--seconds", type=_seconds, metavar="S", help="stop after so many seconds")
    g.add_argument("--minimize", type=_seconds, default=120.0, metavar="S", help="time to make failures smaller (120)")
    g.add_argument("--out", type=_folder, default=OUT, metavar="DIR", help="folder of records and report (%(default)s)")
    g.add_argument("--baseline", nargs="+", metavar="RECORDS", help="an older run to compare with")


def _positive(text: str) -> int:
    n = int(text) if text.strip().isdecimal() else 0
    if n < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return n


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def _seconds(text: str) -> float:
    try:
        s = float(text)
    except ValueError:
        s = -1.0
    if not 0 <= s < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, got {text}")
    return s


def _folder(text: str) -> Path:
    path = Path(text)
    there = next((p for p in (path, *path.parents) if p.exists()), None)
    if there is not None and not there.is_dir():
        raise argparse.ArgumentTypeError(f"expected a folder, {there} is a file")
    return path


def _shard(text: str) -> tuple[int, int]:
    try:
        i, n = map(int, text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected I/N, e.g. 2/4, got {text!r}") from None
    if not 1 <= i <= n:
        raise argparse.ArgumentTypeError(f"expected 1 <= I <= N, got {text}")
    return i, n


def _select(args: argparse.Namespace) -> Any:
    from harness.cases.selection import Selection, parse_opset

    sel = Selection(list(args.dialect), None, list(args.op), list(args.family), getattr(args, "shard", (1, 1)))
    if args.opset is not None:
        dialect, sel.opset = parse_opset(args.opset)
        if sel.dialects and list(sel.dialects) != [dialect]:
            raise UsageError(f"--opset {args.opset} is of dialect {dialect}, not {' '.join(sel.dialects)}")
        sel.dialects = [dialect]
    return sel


def _list(args: argparse.Namespace) -> int:
    from harness.session import listings, terminal

    _say(*terminal.columns(listings.LISTS[args.what](_select(args))))
    return OK


def _run(args: argparse.Namespace) -> int:
    from harness.session import run_folder, session, terminal

    _compared(args)
    plan = _plan(args)
    kept = run_folder.prepare(plan, fresh=args.fresh)
    if kept.resumed:
        _note(f"resuming the run in {plan.out} (--fresh starts anew)")
    stopped: UsageError | None = None
    missing: dict[str, str] = {}
    with terminal.Progress() as show:
        try:
            missing = session.run(plan, show).missing
        except UsageError as e:  # the disk is full: what was judged until then is reported; or nothing ever began
            if not run_folder.has_records(plan.out):
                raise
            stopped = e
    baseline = args.baseline or ([str(kept.previous)] if kept.previous else None)
    return _close(plan.out, [plan.out / run_folder.RECORDS], baseline, missing, stopped)


def _campaign(args: argparse.Namespace) -> int:
    from harness.session import campaign, cluster

    _compared(args)
    plan = _plan(args)
    if args.ray is not None:
        outcome = cluster.run(plan, args.ray, args.jobs, args.slice, args.fresh)
    else:
        outcome = campaign.run(plan, args.jobs, args.fresh)
    return _close(plan.out, outcome.records, args.baseline, outcome.missing, outcome.problem)


def _sensitivity(args: argparse.Namespace) -> int:
    from harness.session import sensitivity_run
    from harness.session.session import Plan

    command = "opconform " + shell_line(sys.argv[1:])
    selection = _select(args)
    selection.extra["instances"] = args.instances  # part of what makes two measurements the same
    plan = Plan(
        selection,
        list(args.backend),
        _placed(args),
        cases=1,
        seed=args.seed,
        out=args.out,
        command=command,
        sensitivity=args.instances,
        saved=False,
    )

    def progress(done: int, every: int) -> None:
        if done == every or done % 100 == 0:
            _note(f"{done:,} of {every:,} op versions")

    missing = sensitivity_run.run(plan, args.jobs, progress)
    _say(*missing, *sensitivity_run.table(sensitivity_run.read(plan)))
    return OK


def _compared(args: argparse.Namespace) -> None:
    """Raises FormatError for a baseline that is none before anything is run for it."""
    import reports

    if args.baseline:
        reports.held(args.baseline)


def _plan(args: argparse.Namespace) -> Any:
    from harness.session.session import Plan

    command = "opconform " + shell_line(sys.argv[1:])
    return Plan(
        _select(args),
        list(args.backend),
        _placed(args),
        args.cases,
        args.draws,
        args.seed,
        not args.no_invalid,
        args.out,
        args.seconds,
        args.minimize,
        command,
        getattr(args, "sensitivity", 0),
    )


def _close(out: Path, records: list[Path], baseline: Any, missing: dict[str, str], stopped: UsageError | None) -> int:
    """Report, table, first failures; the exit code of a run."""
    import reports
    from harness.session import terminal

    result = reports.render(list(records), out, baseline)
    s = result.summary
    for name, text in s.beside.items():
        _note(f"note: {name}: {text}")
    _say(*terminal.table(s.cube, s.backends))
    for text in terminal.failures(s.cases, s.clusters, s.backends):
        _say("", *text.split("\n"))
    _say("")
    for text in terminal.undecided(s.cases):
        _say(text)
    for name, why in missing.items():
        _say(f"not run: {name}: {why}")
    _say(*terminal.uninformative(s.uninformative), *_figures(s))
    _say(f"report: {result.html.resolve()}")
    if stopped is not None:
        raise stopped
    if s.interrupted:
        _note("stopped before the end; the same command goes on from here")
    return _code(s)


def _code(s: Any) -> int:
    """The exit code of a run, or of records of one: the one place that says what fails it."""
    if not s.clean:
        return MISMATCH
    return USAGE if s.interrupted else OK


def _figures(s: Any) -> list[str]:
    """What a run comes to: listed differences that did not occur, and the line of figures."""
    gone = [f"known differences that did not occur: {' '.join(s.unused)}"] if s.unused else []
    without = f", {s.undecided:,} without verdict" if s.undecided else ""
    apart = [f"{n:,} {v}" for v, n in s.unjudged.items() if v != "unknown"]
    beside = f" ({', '.join(apart)} not counted)" if apart else ""
    return [*gone, f"{s.bad:,} unexplained of {s.judged:,} judged outcomes{beside}{without}"]


def _replay(args: argparse.Namespace) -> int:
    from harness.engine import case_record
    from harness.engine.case_record import NEIGHBOURS
    from harness.session import session, terminal

    if Path(args.case).name == NEIGHBOURS:
        judged = session.replay_neighbours(Path(args.case), args.backend, _placed(args), explain=not args.raw)
    else:
        inst = session.find_case(args.case)
        judged = session.replay(inst, args.backend, _placed(args), explain=not args.raw)
    if not judged:
        raise UsageError(f"no backend here takes the models of {args.case}; `opconform list backends` tells why")
    votes = {j.backend: j.verdict.value for j in judged}
    for j in judged:
        if j.verdict.bad:
            place = _placed(args)
            line = f"opconform replay {shell(args.case)} --backend {shell(j.backend)}{place.options}"
            _say(*case_record.paragraph(case_record.record(j, votes, place=place, replay=line)).split("\n"), "")
    why = {
        j.backend: one_line(j.outcome.message)[:100] for j in judged if j.verdict.value in ("unsupported", "unknown")
    }
    rows = [[j.backend, j.verdict.value, j.known or j.ambiguity or why.get(j.backend, "")] for j in judged]
    _say(*terminal.columns(rows))
    return MISMATCH if any(j.verdict.bad or j.verdict.value == "unknown" for j in judged) else OK


def _minimize(args: argparse.Namespace) -> int:
    from harness.engine import case_record
    from harness.session import session

    inst = session.find_case(args.case)
    small, record = session.minimize(inst, args.backend, args.out, args.seconds, _placed(args))
    if small is None or record is None:
        _say(f"{inst.key} {inst.id}: {args.backend} does not fail on it")
        return OK
    _say(*case_record.paragraph(record).split("\n"))
    return MISMATCH


def _known(args: argparse.Namespace) -> int:
    from harness.cases.selection import Selection
    from harness.evidence import known_report
    from harness.ledger.loader import load_ledger
    from harness.session import session

    names = args.backend or session.names_for(Selection())
    with session.Backends(_placed(args)) as bench:
        rows = known_report.collect(load_ledger(), bench.open(names, strict=bool(args.backend)), args.out, args.op)
    if not rows:
        raise UsageError("no known difference of these ops and backends carries an instance")
    for r in (r for r in rows if r.crash):
        _say(f"crash: {r.entry.id}: {r.key} on {r.backend}: {r.entry.reason}")
    stand = sum(r.folder is not None for r in rows)
    _say(f"{stand} of {len(rows)} stand; index: {(args.out / known_report.INDEX).resolve()}")
    return OK


def _report(args: argparse.Namespace) -> int:
    import reports

    first = Path(args.records[0])
    out = args.out or (first if first.is_dir() else first.parent)
    result = reports.render(args.records, out, args.baseline)
    for note in result.summary.told:
        _note(f"note: {note}")
    _say(*_figures(result.summary))
    for path in (result.html, result.json, result.markdown, result.junit):
        _say(path)
    return _code(result.summary)


_CHANGES = {"new": "new", "first_run": "new, not run before", "gone": "gone", "not_run": "not run now"}
_LISTED = {"listed_new": "listed differences that occur only now", "listed_gone": "that no longer occur"}
_TAKEN = {"taken": "types that are taken only now", "dropped": "that are no longer taken"}


def _diff(args: argparse.Namespace) -> int:
    import reports
    from reports.compare import processors

    d = reports.diff(args.old, args.new)
    for side, notes in d["notes"].items():
        for note in notes:
            _note(f"note: {side}: {note}")
    if args.json:
        _say(*json.dumps(d, indent=1).split("\n"))
        return MISMATCH if d["new"] or d["first_run"] else OK
    now, before = d["versions"]["now"], d["versions"]["before"]
    for backend in sorted(now.keys() | before.keys()):
        was, is_ = before.get(backend), now.get(backend)
        _say(f"{backend} {is_}" if was == is_ else f"{backend} {was or '(absent)'} -> {is_ or '(absent)'}")
    moved = processors(d)
    if moved:
        _say(f"the processors differ: {moved}")
    for kind, title in _CHANGES.items():
        _table(
            title,
            [
                ["", e["key"], e["backend"], e["verdict"], f"{e['was']} of {e['was_of']} -> {e['n']} of {e['of']}"]
                for e in d[kind]
            ],
        )
    _say(f"still there: {len(d['still'])}")
    for kind, title in _LISTED.items():
        _table(title, [["", e["id"], e["backend"], _some(e["keys"]), e["reason"]] for e in d[kind]])
    for kind, title in _TAKEN.items():
        _table(title, [["", e["key"], e["backend"], " ".join(e["dtypes"])] for e in d[kind]])
    return MISMATCH if d["new"] or d["first_run"] else OK


def _table(title: str, rows: list[list[str]]) -> None:
    from harness.session import terminal

    _say(f"{title}: {len(rows)}")
    _say(*terminal.columns(rows))


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:2]) + (f" and {len(keys) - 2} more" if len(keys) > 2 else "")


def _merge(args: argparse.Namespace) -> int:
    import reports

    n = reports.merge(args.records, args.out)
    _say(f"{n:,} records in {args.out}")
    return OK


def _export(args: argparse.Namespace) -> int:
    import reports

    for path in reports.export(args.records, args.out):
        _say(path)
    return OK


if __name__ == "__main__":
    sys.exit(main())
