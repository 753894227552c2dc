"""A whole run: backends started, records kept, known differences settled at the end.  What the CLI verbs call."""

from __future__ import annotations

import datetime
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.selection import Selection, units, versions
from harness.cases.wanted import beyond
from harness.core import VERSION
from harness.core.errors import UsageError
from harness.core.escape import shell_line
from harness.core.record_format import FORMAT
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.recheck import Recheck
from harness.engine.run_records import RunTotals, end
from harness.engine.two_runs import TwoRuns
from harness.evidence.attribution import Attribution
from harness.evidence.failure import Evidence, kind_of
from harness.ledger import corpus
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.mutation.sensitivity import measure
from harness.session import record_writer
from harness.session.resume import resumed
from harness.workers.pool import BackendHandle
from harness.workers.spec import HERE_ONLY, Place


@dataclass
class Plan:
    """What a run does.

    names: backends; empty: all that fit the dialects and can be had.
    cases: for each op version; 0 runs until stopped, or until ``seconds`` are over; None: as each dialect says.
    out: folder of the run; a run that is there already is resumed.
    sensitivity: plant faults into so many instances of each op version and element type; 0: none.
    saved: replay the saved instances first.
    reach: count the reach goals that the cases meet.
    known: files of the user's own lists.
    """

    selection: Selection = field(default_factory=Selection)
    names: Sequence[str] = ()
    place: Place = HERE_ONLY
    cases: int | None = None
    draws: int = 1
    seed: int = 0
    invalid: bool = True
    out: Path = Path(".opconform/run")
    seconds: float | None = None
    minimize: float = 120.0
    command: str = ""
    sensitivity: int = 0
    saved: bool = True
    reach: bool = False
    known: Sequence[Path] = ()


@dataclass
class RunOutcome:
    """What came of a run.  missing: backends that could not be had, with the reason.  unused: known differences that
    did not occur although their instances were replayed on backends that they speak of."""

    summary: RunTotals
    path: Path
    missing: dict[str, str]
    unused: list[str]


class Backends:
    """Handles by name, closed together.  until: by the monotonic clock; after it, whoever asks them gets TimeIsUp."""

    def __init__(self, place: Place = HERE_ONLY, until: float | None = None) -> None:
        self.place, self.until = place, until
        self.handles: dict[str, BackendHandle] = {}
        self.spares: dict[str, BackendHandle] = {}
        self.missing: dict[str, str] = {}
        self.pairs: list[TwoRuns] = []

    def open(self, names: Sequence[str], strict: bool) -> list[BackendHandle]:
        """Start the backends; one that cannot be had is noted, or with ``strict`` raises UsageError."""
        out = []
        for name in names:
            h = self.handles.get(name) or self._create(name)
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
            told = next((h for h in self.handles.values() if h.name == name), None)
            self.spares[name] = told.another() if told else self._create(name)
        return self.spares[name]

    def _create(self, name: str) -> BackendHandle:
        return backends.create(name, self.place, until=self.until)

    def two_runs(self, ledger: Ledger | None = None) -> TwoRuns:
        """What runs a model of these backends twice."""
        self.pairs.append(TwoRuns(lambda name: self.spare(name).spec, ledger, until=self.until))
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
    stop = None if plan.seconds is None else time.monotonic() + plan.seconds
    path = plan.out / "records.jsonl"
    with Backends(plan.place, stop) as bench, record_writer.RecordWriter(path) as writer:
        handles = bench.open(plan.names or names_for(plan.selection), strict=bool(plan.names))
        asked = {v.dialect.name for v in versions(replace(plan.selection, shard=(1, 1)))}
        if not any(_asked(handles, d) for d in asked):  # a run of nothing would pass
            whom = f"none of {' '.join(plan.names)} takes" if plan.names else "no backend here takes"
            raise UsageError(f"{whom} models of {' '.join(sorted(asked))}; `opconform list backends` tells why")
        prior_models = resumed(path, partial(_asked, handles), kind_of)
        writer.write({**_header(plan, handles), "missing": bench.missing})
        ledger = load_ledger(backends=[h.info for h in handles], own=plan.known)
        evidence = Evidence(
            bench.spare,
            plan.out / "failures",
            seconds=plan.minimize,
            seed=plan.seed,
            ledger=ledger,
            kinds=prior_models.cases,
            two_runs=bench.two_runs(ledger),
            end=stop,
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
            attribute=Attribution(bench.spare, ledger),
            reach=plan.reach,
            wanted=plan.selection.claims,
        )
        for (key, _, first), learnt in prior_models.learnt.items():
            engine.recall(key, first, learnt)
        tops = [i.opset for i in engine.infos.values() if i.opset is not None]
        work = units(
            chosen,
            plan.cases,
            plan.selection.opset,
            prior_models.done,
            plan.cases == 0,
            min(tops, default=None),
            lambda v: engine.claims_of(v.dialect.format),
        )
        instances = corpus.saved(ledger, ops={f"{v.dialect.name}/{v.op}" for v in chosen}) if plan.saved else []
        old = [
            (u, c)
            for u, c in corpus.cases(instances, chosen, plan.selection.opset)
            if not engine.claims_of(u.version.dialect.format).beyond(c.inst, u.version.schema)
        ]
        ledger.lacks.update(
            (c.inst.id, name) for _, c in old for name, claims in engine.claims.items() if beyond(c, claims)
        )
        ids = {u.name: c.inst.id for u, c in old}
        ledger.lacks.update((ids[unit], backend) for unit, backend in prior_models.lacks if unit in ids)
        left = [(u, c) for u, c in old if u.name not in prior_models.done]
        summary = engine.run(_until(work, stop), left, stop)
        replayed = set() if summary.interrupted or summary.cut else {c.inst.dumps() for _, c in old}
        if plan.sensitivity and not (summary.interrupted or summary.cut) and not record_writer.has(path, "sensitivity"):
            measured = measure(
                _until(chosen, stop),
                seed=plan.seed,
                instances=plan.sensitivity,
                ledger=ledger,
                backends=engine.infos.values(),
            )
            summary.cut = stop is not None and time.monotonic() > stop  # a later run measures all of it
            for rec in () if summary.cut else measured.records():
                writer.write(rec)
        ledger.count(prior_models.hits + engine.records.hits)
        unused = ledger.unused([v.key for v in chosen], engine.infos.values(), replayed)
        writer.write(
            end(
                summary.interrupted,
                elapsed=round(summary.seconds, 3),
                cases=summary.cases,
                unused=unused,
                gaps=dict(summary.gaps.most_common(3)),
                cut=summary.cut,
                beside={h.name: h.beside for h in handles if h.beside},
            )
        )
        return RunOutcome(summary, path, bench.missing, unused)


def _asked(handles: Sequence[BackendHandle], dialect: str) -> dict[str, str]:
    """The releases of those backends that take the models of a dialect, by name."""
    fmt = registry.dialect(dialect).format
    return {h.name: h.info.version for h in handles if fmt in h.info.formats}


def _until(work: Any, end: float | None) -> Any:
    for u in work:
        if end is not None and time.monotonic() > end:
            return
        yield u


def identity(plan: Plan) -> dict[str, Any]:
    """What two plans must have in common for one to go on with the other's records: part of the header of a run."""
    own = {"known": list(map(str, plan.known))} if plan.known else {}
    how = {"cases": plan.cases, "draws": plan.draws, "invalid": plan.invalid, **own}
    return {
        "selection": {**plan.selection.to_json(), **how},
        "seed": plan.seed,
        "asked": list(plan.names),
        "place": plan.place.to_json(),
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
