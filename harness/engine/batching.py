"""Cases into models and jobs: how many travel together depends on the backend, what fails is taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.core.errors import Unsupported
from harness.core.outcome import Model, Outcome, Status
from harness.declare import Dialect, Expected, OutputType
from harness.workers.pool import BackendHandle
from harness.workers.wire import Job, JobResult, Task, Unblamed


@dataclass(slots=True)
class Chunk:
    """Cases that share a model, for the backends of one format and pack size.  again: asked once more without those
    that fail alone; their outcomes are known."""

    cases: list[Case]
    model: Model
    requeried: bool = False


@dataclass
class Pack:
    """Cases of one dialect and opset on their way through all backends.

    outcomes: backend -> id(case) -> one Outcome per data draw.
    waiting: jobs that are not answered yet.
    asked: backend -> id(case) -> the case of another dialect that the backend gets instead.  across: the packs of
        those.
    chunks: backend -> the models that it got.
    unblamed: (backend, cases of a model, a failure of it that no outcome tells).
    """

    dialect: Dialect
    opset: Any
    cases: list[Case]
    units: list[Any]
    outcomes: dict[str, dict[int, list[Outcome]]] = field(default_factory=dict)
    waiting: int = 0
    asked: dict[str, dict[int, Case]] = field(default_factory=dict)
    across: list[Pack] = field(default_factory=list)
    chunks: dict[str, list[Chunk]] = field(default_factory=dict)
    unblamed: list[tuple[str, list[Case], Unblamed]] = field(default_factory=list)
    _built: dict[Any, tuple[list[Chunk], dict[int, Outcome]]] = field(default_factory=dict)

    def jobs(
        self,
        backend: str,
        size: int,
        draws: int,
        settled: dict[int, Outcome] | None = None,
        alone: Set[int] = frozenset(),
        quarantined: Set[int] = frozenset(),
        isolate_dtypes: frozenset[str] = frozenset(),
        hanging: Set[int] = frozenset(),
        paths_every: int = 32,
    ) -> list[Job]:
        """The jobs of this pack for a backend that takes ``size`` instances a model.

        settled: id of a case -> outcomes that are known without a run.
        alone: cases that get a model of their own.
        quarantined: those of them that get a process of their own, too.
        apart: element types whose cases share no model with others.
        hanging: cases that may hang.
        paths_every: a model with one of so many cases of an op version is asked which path computed it.

        What cannot be built has its outcome at once.
        """
        settled = settled or {}
        chunks, failed = self._chunks(size, frozenset(settled), frozenset(alone), isolate_dtypes)
        answers = self.outcomes.setdefault(backend, {})
        for key, outcome in (*failed.items(), *settled.items()):
            answers[key] = [outcome]
        out = []
        self.chunks[backend] = chunks
        for chunk in chunks:
            cases, dialect = chunk.cases, self.dialect
            runs = 1 + max([len(c.inst.reruns) for c in cases])
            if runs < draws:
                runs = max(runs, min(draws, max([len(c.draws) for c in cases])))

            def rebuild(which: Sequence[int], cases: list[Case] = cases, dialect: Dialect = dialect) -> Model:
                return build(dialect, [cases[i] for i in which])

            feeds = [[feed(c, chunk.model.inputs[k], r) for k, c in enumerate(cases)] for r in range(runs)]
            corrupts_process = bool(quarantined) and any(id(c) in quarantined for c in cases)
            hangs = bool(hanging) and any(id(c) in hanging for c in cases)
            paths = dialect.asks_paths or any(c.index % paths_every == 0 for c in cases)
            out.append(Job(chunk.model, feeds, rebuild, (self, backend, chunk), corrupts_process, hangs, paths))
        self.waiting += len(out)
        return out

    def _chunks(
        self, size: int, without: frozenset[int], alone: frozenset[int], isolate_dtypes: frozenset[str]
    ) -> tuple[list[Chunk], dict[int, Outcome]]:
        got = self._built.get((size, without, alone, isolate_dtypes))
        if got is None:
            chunks: list[Chunk] = []
            failed: dict[int, Outcome] = {}
            asked = [c for c in self.cases if id(c) not in without and c.draws and not c.problem]
            groups: dict[tuple[bool, bool], list[Case]] = {}  # a model is run as often as one of its cases wants
            single: list[Case] = []
            held: dict[tuple[Any, ...], bool] = {}  # does one of these types go apart?
            for c in asked:
                if c.inst.rule is not None or id(c) in alone:
                    single.append(c)
                    continue
                types = c.types
                away = held.get(types)
                if away is None:
                    away = held[types] = any(d is not None and d.name in isolate_dtypes for d in types[1:])
                groups.setdefault((bool(c.inst.reruns), away), []).append(c)
            for some in groups.values():
                for i in range(0, len(some), size):
                    self._build(some[i : i + size], chunks, failed)
            for c in single:
                self._build([c], chunks, failed)
            got = self._built[size, without, alone, isolate_dtypes] = (chunks, failed)
        return got

    def _build(self, cases: list[Case], chunks: list[Chunk], failed: dict[int, Outcome]) -> None:
        """Build a chunk; on failure halve it until the culprit stands alone."""
        if not cases:
            return
        try:
            chunks.append(Chunk(cases, build(self.dialect, cases)))
        except Exception as e:
            if len(cases) > 1:
                half = len(cases) // 2
                self._build(cases[:half], chunks, failed)
                self._build(cases[half:], chunks, failed)
                return
            status = Status.UNSUPPORTED if isinstance(e, Unsupported) else Status.HARNESS_ERROR
            failed[id(cases[0])] = Outcome(status, None, "build", f"{type(e).__name__}: {e}")

    def cross(self, backend: str, asked: dict[int, Case], settled: dict[int, Outcome]) -> list[Pack]:
        """The packs of what a backend of another dialect is asked instead; settled: what it cannot be asked."""
        self.asked[backend] = asked
        self.outcomes[backend] = {key: [outcome] for key, outcome in settled.items()}
        by_opset: dict[Any, Pack] = {}
        for c in asked.values():
            pack = by_opset.get(c.inst.opset)
            if pack is None:
                pack = by_opset[c.inst.opset] = Pack(c.version.dialect, c.inst.opset, [], [])
            pack.cases.append(c)
        self.across += by_opset.values()
        return list(by_opset.values())

    @property
    def done(self) -> bool:
        """Are all jobs answered, those of other dialects too?"""
        return self.waiting == 0 and all(p.waiting == 0 for p in self.across)

    def answer(self, backend: str, case: Case) -> tuple[list[Outcome] | None, Case | None]:
        """Outcomes of a case on a backend, one a data draw, and what was asked instead of it."""
        asked = self.asked.get(backend, {}).get(id(case))
        if asked is None:
            return self.outcomes[backend].get(id(case)), None
        for p in self.across:
            if backend in p.outcomes and id(asked) in p.outcomes[backend]:
                return p.outcomes[backend][id(asked)], asked
        return None, asked

    def neighbours(self, backend: str, case: Case) -> list[Case]:
        """The cases of the model in which a backend was given the case, itself among them."""
        for p in (self, *self.across):
            for chunk in p.chunks.get(backend, ()):
                if any(c is case for c in chunk.cases):
                    return chunk.cases
        return [case]

    def prior_models(self, handle: BackendHandle, case: Case) -> list[list[Case]]:
        """The cases of the models that the backend's process had served when it answered for the case."""
        for p in (self, *self.across):
            for chunk in p.chunks.get(handle.name, ()):
                for k, c in enumerate(chunk.cases):
                    if c is case:
                        return served(handle.prior_models(partial(_asks, chunk, k)))
        return []

    def forget(self, cases: Sequence[Case]) -> None:
        """Let go of the arrays of cases that are judged.  The history remembers two thousand cases; with their arrays,
        which do not fit into a processor's cache, host and worker were 5 % slower."""
        for c in cases:
            c.release()
            for answers in self.outcomes.values():
                answers.pop(id(c), None)

    def release(self) -> None:
        """Let go of everything, once all is judged.  The history of a backend's processes remembers models with their
        cases, and through their jobs this pack: without it a model of one case would keep all cases of the pack."""
        for p in self.across:
            p.release()
        self.cases, self.units, self.unblamed, self.across = [], [], [], []
        self.outcomes, self.asked, self.chunks, self._built = {}, {}, {}, {}

    def take(self, result: JobResult) -> Job | None:
        """Note a finished job; another one where those that passed of a failed model are to be asked without the rest,
        since they may fail together."""
        _, backend, chunk = result.job.tag
        rows, answers = result.outcomes, self.outcomes[backend]
        if not chunk.requeried:
            for case, outcomes in zip(chunk.cases, zip(*rows, strict=True), strict=True):
                answers[id(case)] = list(outcomes[: max(1, len(case.draws))])
        if result.unblamed:
            self.unblamed += [(backend, [chunk.cases[k] for k in u.instances], u) for u in result.unblamed]
        if result.masked and not chunk.requeried:
            return self._without(result, result.masked)
        result.job.feeds = []  # the history remembers the job
        self.waiting -= 1
        return None

    def _without(self, result: JobResult, which: Sequence[int]) -> Job:
        """The job of some of the cases of a job."""
        job, (_, backend, chunk) = result.job, result.job.tag
        whole = job.rebuild
        assert whole is not None

        def rebuild(some: Sequence[int]) -> Model:
            return whole([which[k] for k in some])

        rest = Chunk([chunk.cases[k] for k in which], whole(which), requeried=True)
        feeds = [[row[k] for k in which] for row in job.feeds]
        return Job(rest.model, feeds, rebuild, (self, backend, rest), job.quarantine, job.hangs)


def served(tasks: Iterable[Task]) -> list[list[Case]]:
    """The cases of tasks of a backend, a list a model; models that break a rule are left out."""
    models = [[t.root.job.tag[2].cases[k] for k in t.instances] for t in tasks]
    return [m for m in models if all(c.inst.rule is None for c in m)]


def _asks(chunk: Chunk, k: int, task: Task) -> bool:
    return task.root.job.tag[2] is chunk and k in task.instances


def build(dialect: Dialect, cases: Sequence[Case]) -> Model:
    """One model of the cases, side by side."""
    instances, arrays = [c.inst for c in cases], [c.draws[0] for c in cases]
    if dialect.declares_results:
        return dialect.build_declared(instances, arrays, [_results(c) for c in cases])
    return dialect.build(instances, arrays)


def _results(case: Case) -> list[OutputType | None]:
    """Element type and shape of the tensors that the reference expects."""
    rows = case.expected
    if not rows:
        return []
    again = rows[1 : 1 + len(case.inst.reruns)]
    if not again:  # as most have none
        return [OutputType(e.dtype, e.value.shape) if isinstance(e.value, np.ndarray) else None for e in rows[0]]
    return [_output_type(e, [row[i] for row in again]) for i, e in enumerate(rows[0])]


def _output_type(first: Expected, again: Sequence[Expected]) -> OutputType | None:
    value = first.value
    if not isinstance(value, np.ndarray):
        return None
    shape = value.shape
    others = [e.value.shape for e in again if isinstance(e.value, np.ndarray) and e.value.ndim == value.ndim]
    return OutputType(first.dtype, shape, tuple(i for i, n in enumerate(shape) if any(o[i] != n for o in others)))


def feed(case: Case, inputs: Sequence[tuple[str, str, int | None]], draw: int) -> list[Any]:
    """Values of a case's run-time inputs for one data draw (a case with fewer draws repeats its first)."""
    draws = case.draws
    arrays = draws[draw if draw < len(draws) else 0]
    return [arrays[slot] if k is None else arrays[slot][k] for _, slot, k in inputs]
