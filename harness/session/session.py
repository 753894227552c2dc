"""A whole run: backends started, records kept, known differences settled at the end.  What the CLI verbs call."""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case
from harness.cases.result import Result
from harness.cases.selection import Selection, units, versions
from harness.core.errors import OpconformError, Unsupported, UsageError, reading
from harness.core.escape import shell_line
from harness.core.instance import Instance
from harness.core.record_format import FORMAT
from harness.core.version import VERSION
from harness.declare import OpVersion, registry
from harness.declare.invalid import invalid_generators_of
from harness.declare.validation import validation_error
from harness.engine.batching import build
from harness.engine.case_record import record
from harness.engine.engine import Engine, RunTotals
from harness.engine.recheck import Recheck
from harness.engine.requery import judge_beside
from harness.engine.two_runs import TwoRuns
from harness.evidence.budget import Budget
from harness.evidence.failure import Evidence, kind_of, load_instance, load_neighbours
from harness.ledger import corpus
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.mutation.sensitivity import measure
from harness.session import record_writer
from harness.session.resume import resumed
from harness.workers.pool import BackendHandle
from harness.workers.process import HERE_ONLY, Place


@dataclass
class Plan:
    """What a run does.  names: backends, empty for all that fit the dialects and can be had.  cases: per op version; 0
    runs until stopped or ``seconds`` are over.  out: folder of the run; an existing one is resumed.  sensitivity: plant
    faults into so many instances per op version and element type, 0 for none.  saved: replay the saved instances
    first."""

    selection: Selection = field(default_factory=Selection)
    names: Sequence[str] = ()
    place: Place = HERE_ONLY
    cases: int = 32
    draws: int = 1
    seed: int = 0
    invalid: bool = True
    out: Path = Path(".opconform/run")
    seconds: float | None = None
    minimize: float = 120.0
    command: str = ""
    sensitivity: int = 0
    saved: bool = True


@dataclass
class RunOutcome:
    """What came of a run.  missing: backends that could not be had, with the reason.  unused: known differences that
    did not occur although their instances were replayed on backends that they speak of."""

    summary: RunTotals
    path: Path
    missing: dict[str, str]
    unused: list[str]


class Backends:
    """Handles by name, closed together."""

    def __init__(self, place: Place = HERE_ONLY) -> None:
        self.place = place
        self.handles: dict[str, BackendHandle] = {}
        self.spares: dict[str, BackendHandle] = {}
        self.missing: dict[str, str] = {}
        self.pairs: list[TwoRuns] = []

    def open(self, names: Sequence[str], strict: bool) -> list[BackendHandle]:
        """Start the backends; one that cannot be had is noted, or with ``strict`` raises UsageError."""
        out = []
        for name in names:
            h = self.handles.get(name) or backends.create(name, self.place)
            why = h.missing()
            if why is None:
                self.handles[name] = h
                out.append(h)
            elif strict:
                raise UsageError(f"backend {name}: {why}")
            else:
                self.missing[name] = why
        return out

    def spare(self, name: str) -> BackendHandle:
        """Another process of the same backend, for shrinking beside a run."""
        if name not in self.spares:
            told = self.handles.get(name)
            self.spares[name] = told.another() if told else backends.create(name, self.place)
        return self.spares[name]

    def two_runs(self, ledger: Ledger | None = None) -> TwoRuns:
        """What runs a model of these backends twice."""
        self.pairs.append(TwoRuns(lambda name: self.spare(name).spec, ledger))
        return self.pairs[-1]

    def __enter__(self) -> Backends:
        return self

    def __exit__(self, *_: object) -> None:
        for h in [*self.handles.values(), *self.spares.values()]:
            h.close()
        for pair in self.pairs:
            pair.close()


def names_for(selection: Selection) -> list[str]:
    """Backends that run by default for the selected dialects."""
    out: dict[str, None] = {}
    for d in selection.dialects or registry.names():
        out.update(dict.fromkeys(backends.names(registry.dialect(d).format)))
    return list(out)


def run(plan: Plan, progress: Callable[[RunTotals], None] | None = None) -> RunOutcome:
    """Carry a plan out.  Raises UsageError for what does not exist; a full disk or Ctrl-C keeps what was judged."""
    chosen = versions(plan.selection)
    path = plan.out / "records.jsonl"
    with Backends(plan.place) as bench, record_writer.RecordWriter(path) as writer:
        handles = bench.open(plan.names or names_for(plan.selection), strict=bool(plan.names))
        asked = {v.dialect.name for v in versions(replace(plan.selection, shard=(1, 1)))}
        if not any(_asked(handles, d) for d in asked):  # a run of nothing would pass
            whom = f"none of {' '.join(plan.names)} takes" if plan.names else "no backend here takes"
            raise UsageError(f"{whom} models of {' '.join(sorted(asked))}; `opconform list backends` tells why")
        prior_models = resumed(path, partial(_asked, handles), kind_of)
        writer.write({**_header(plan, handles), "missing": bench.missing})
        ledger = load_ledger()
        evidence = Evidence(
            bench.spare,
            plan.out / "failures",
            seconds=plan.minimize,
            seed=plan.seed,
            ledger=ledger,
            kinds=prior_models.cases,
            two_runs=bench.two_runs(ledger),
        )
        engine = Engine(
            handles,
            seed=plan.seed,
            draws=plan.draws,
            invalid=plan.invalid,
            ledger=ledger,
            sink=writer.write,
            on_failure=evidence,
            progress=progress,
            recheck=Recheck(bench.spare, ledger),
        )
        for (key, _, first), learnt in prior_models.learnt.items():
            engine.recall(key, first, learnt)
        tops = [i.opset for i in engine.infos.values() if i.opset is not None]
        work = units(
            chosen, plan.cases, plan.selection.opset, prior_models.done, plan.cases == 0, min(tops, default=None)
        )
        old = list(corpus.cases(corpus.saved(ledger), chosen, plan.selection.opset)) if plan.saved else []
        ids = {u.name: c.inst.id for u, c in old}
        ledger.lacks.update((ids[unit], backend) for unit, backend in prior_models.lacks if unit in ids)
        summary = engine.run(_until(work, plan.seconds), [(u, c) for u, c in old if u.name not in prior_models.done])
        replayed = set() if summary.interrupted else {c.inst.dumps() for _, c in old}
        if plan.sensitivity and not summary.interrupted and not record_writer.has(path, "sensitivity"):
            measured = measure(
                chosen, seed=plan.seed, instances=plan.sensitivity, ledger=ledger, backends=engine.infos.values()
            )
            for rec in measured.records():
                writer.write(rec)
        ledger.count(prior_models.hits + engine.hits)
        unused = ledger.unused([v.key for v in chosen], engine.infos.values(), replayed)
        writer.write(
            {
                "t": "end",
                "elapsed": round(summary.seconds, 3),
                "cases": summary.cases,
                "interrupted": summary.interrupted,
                "unused": unused,
                "beside": {h.name: h.beside for h in handles if h.beside},
            }
        )
        return RunOutcome(summary, path, bench.missing, unused)


def _asked(handles: Sequence[BackendHandle], dialect: str) -> dict[str, str]:
    """The releases of those backends that take the models of a dialect, by name."""
    fmt = registry.dialect(dialect).format
    return {h.name: h.info.version for h in handles if fmt in h.info.formats}


def _until(work: Any, seconds: float | None) -> Any:
    import time

    end = None if seconds is None else time.monotonic() + seconds
    for u in work:
        if end is not None and time.monotonic() > end:
            return
        yield u


def identity(plan: Plan) -> dict[str, Any]:
    """What two plans must have in common for one to go on with the other's records: part of the header of a run."""
    return {
        "selection": {**plan.selection.to_json(), "cases": plan.cases, "draws": plan.draws, "invalid": plan.invalid},
        "seed": plan.seed,
        "asked": list(plan.names),
        "place": asdict(plan.place),
    }


def _header(plan: Plan, handles: Sequence[BackendHandle]) -> dict[str, Any]:
    told = header(plan.command or shell_line(sys.argv[1:]), handles, plan.selection.dialects or registry.names())
    return {**told, **identity(plan)}


def header(command: str, handles: Sequence[BackendHandle], dialects: Sequence[str]) -> dict[str, Any]:
    """What the first record of a run says of the machine and the backends."""
    import native_ref

    return {
        "t": "run",
        "format": FORMAT,
        "command": command,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "opconform": VERSION,
        "isa": native_ref.isa,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": next((h.processor for h in handles), ""),
        "backends": {h.name: h.info.told() for h in handles},
        "dialects": {d: registry.dialect(d).title for d in dialects},
        "op_versions": {d: len(registry.dialect(d).versions) for d in dialects},
    }


def parse_address(text: str) -> tuple[str, str, int, int]:
    """``onnx/Conv/11@17#seed.index`` -> key, opset, seed, index; raises UsageError."""
    try:
        key, rest = text.rsplit("@", 1)
        opset, rest = rest.split("#", 1)
        seed, index = rest.split(".", 1)
        return key, opset, int(seed), int(index)
    except ValueError:
        raise UsageError(f"case {text!r}: expected a file or dialect/op/version@opset#seed.index") from None


def find_case(text: str) -> Instance:
    """The instance named by a file or an address."""
    path = Path(text)
    if path.exists() or text.endswith(".json"):
        return checked(load_instance(path / "instance.json" if path.is_dir() else path))
    key, opset, seed, index = parse_address(text)
    d = registry.dialect(key.split("/")[0])
    if key not in d.versions:
        raise UsageError(f"no op version {key!r}{registry.near(key, list(d.versions))}")
    at = next((o for o in d.opsets if str(o) == opset), None)
    if at is None:
        raise UsageError(f"{d.name}: no opset {opset!r}, expected one of {' '.join(map(str, d.opsets))}")
    _in_force(d.versions[key], at)
    return draw_case(d.versions[key], at, seed, index).inst


def checked(inst: Instance) -> Instance:
    """Raises UsageError where somebody's instance is none of its op version, which no backend is to be blamed for."""
    v = registry.version_of(inst)
    _in_force(v, inst.opset)
    with reading(inst.key):
        why = validation_error(v, inst)
    if why is not None:
        raise UsageError(f"{v.key}: {why}")
    return inst


def _in_force(v: OpVersion, opset: Any) -> None:
    """Raises UsageError where that opset has another version of the op, or none."""
    if opset not in v.opsets:
        raise UsageError(f"{v.key} is in force at opset {v.opsets[0]} to {v.opsets[-1]}, not at {opset!r}")


def usable(inst: Instance) -> Case:
    """The case of an instance; raises UsageError where it breaks a rule after all, the reference cannot evaluate it, or
    it can be neither written nor built: then no backend is to be blamed for it."""
    v = registry.version_of(inst)
    if inst.rule is not None and inst.rule not in invalid_generators_of(v) and _valid(replace(inst, rule=None)):
        raise UsageError(f"{inst.key}: rule: expected one that the instance breaks, got {inst.rule!r}")
    case = Case(v, inst, 0)
    try:
        case.hold()
    except OpconformError as e:
        raise UsageError(f"{inst.key}: {e}") from None
    _ = case.draws
    if case.problem:
        raise UsageError(f"{inst.key}: {case.problem}")
    with suppress(Unsupported), reading(f"{inst.key}: as a model"):
        v.dialect.notation(inst)
        build(v.dialect, [case])
    return case


def _valid(inst: Instance) -> bool:
    """Has the reference an answer to it?"""
    try:
        usable(checked(inst))
    except OpconformError:
        return False
    return True


def replay(inst: Instance, names: Sequence[str], place: Place = HERE_ONLY, explain: bool = True) -> list[Result]:
    """Judge one instance again on some backends (all that fit, if none is named).  Raises UsageError when the reference
    itself cannot evaluate it."""
    case = usable(inst)
    with Backends(place) as bench:
        handles = bench.open(names or backends.names(case.version.dialect.format), strict=bool(names))
        engine = Engine(handles, ledger=load_ledger() if explain else None)
        twice = bench.two_runs(engine.ledger)
        return [twice(r, engine.infos[r.backend]) for r in engine.judge([case])]


def replay_neighbours(path: Path, names: Sequence[str], place: Place = HERE_ONLY, explain: bool = True) -> list[Result]:
    """Judge the instance of a ``neighbours.json`` beside the others in one model, after the models before it.  Raises
    UsageError and FormatError."""
    instances, at, earlier = load_neighbours(path)
    cases, *prior_models = [[usable(checked(i)) for i in some] for some in (instances, *earlier)]
    case = cases[at]
    ledger = load_ledger() if explain else None
    with Backends(place) as bench:
        handles = bench.open(names or backends.names(case.version.dialect.format), strict=bool(names))
        twice = bench.two_runs(ledger)
        return [twice(judge_beside(h, i := h.info, case, cases, ledger, prior_models), i) for h in handles]


def minimize(
    inst: Instance, backend: str, folder: Path, seconds: float = 60.0, place: Place = HERE_ONLY
) -> tuple[Result | None, dict[str, Any] | None]:
    """Make a failing instance smaller and write its folder; (None, None) if it does not fail."""
    with Backends(place) as bench:
        evidence = Evidence(bench.spare, folder)
        case = usable(inst)
        engine = Engine(bench.open([backend], strict=True))
        result = next(iter(engine.judge([case])), None)
        if result is None or not result.verdict.bad:
            return None, None
        small = evidence.shrink(result, Budget(evaluations=3000, seconds=seconds)) or result
        small = bench.two_runs()(small, engine.infos[backend])
        path = evidence.write(small)
        return small, record(result, {backend: result.verdict.value}, small, path, place=place)
