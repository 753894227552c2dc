"""Tests whether a result depends on memory that the kernel never wrote: one model runs in two fresh processes, whose
unwritten memory holds two patterns (``harness.workers.unwritten``).

If the two results differ, a third process holds the first pattern again.  If it repeats the first result, the
difference comes from the memory.  If not, the result differs for another reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.result import Result
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from harness.engine.cross_dialect import judge_cross_dialect
from harness.engine.requery import hanging, outcomes_of
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.tolerance import Accepted, Statistical
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from harness.workers.spec import BackendError, Spec
from harness.workers.unwritten import compared

DIFFERS = "the result differs between two runs of the same model"
MEMORY = f"{DIFFERS}: memory that is never written"
OTHERWISE = f"{DIFFERS}, and not because of what memory held"
RIGHT = (Verdict.AGREE, Verdict.UNINFORMATIVE)
RANDOM = (Statistical, Accepted)  # classes of results of which the specification allows many


class TwoRuns:
    """Runs models twice.  Its processes start when the first model of a backend is asked; ``close`` ends them.

    spec: where a backend is, by name.  ledger: listed differences, for a verdict that changes.  deadline: of a run.
    until: by the monotonic clock; after it, whoever asks gets TimeIsUp."""

    def __init__(
        self,
        spec: Callable[[str], Spec],
        ledger: Ledger | None = None,
        deadline: float | None = None,
        until: float | None = None,
    ) -> None:
        self._spec, self._ledger, self._deadline, self._until = spec, ledger, deadline, until
        self._handles: dict[tuple[str, int], BackendHandle] = {}

    def close(self) -> None:
        for h in self._handles.values():
            h.close()
        self._handles.clear()

    def __enter__(self) -> TwoRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, result: Result, info: BackendInfo) -> Result:
        """The result, with ``nondeterministic`` and ``second`` filled in where two runs differ.  A right answer that is
        wrong in one of the two runs gets the verdict of that run."""
        if result.verdict is Verdict.UNSUPPORTED or _statistical(result):
            return result
        runs = [self._outcomes(result, info, self._handle(result.backend, k)) for k in (0, 1)]
        at = difference(*runs)
        if at is None:
            return result
        with self._new(self._compared(result.backend, 0)) as another:
            follows = difference(runs[0], self._outcomes(result, info, another)) is None
        if not follows and _random(result):
            return result
        said = f"{MEMORY if follows else OTHERWISE} ({at})"
        if result.verdict in RIGHT:
            judged = [self._judge(result, info, run) for run in runs]
            result = next((j for j in judged if j.verdict not in RIGHT), result)
        return replace(result, nondeterministic=said, second=runs[1][min(result.run or result.draw, len(runs[1]) - 1)])

    def _compared(self, backend: str, k: int) -> Spec:
        spec = self._spec(backend)
        return replace(spec, env={**spec.env, **compared(k)}, unwritten=k)

    def _handle(self, backend: str, k: int) -> BackendHandle:
        if (backend, k) not in self._handles:
            self._handles[backend, k] = self._new(replace(self._spec(backend), unwritten=k))
        return self._handles[backend, k]

    def _new(self, spec: Spec) -> BackendHandle:
        return BackendHandle(spec, deadline=self._deadline, until=self._until)

    def _outcomes(self, result: Result, info: BackendInfo, handle: BackendHandle) -> list[Outcome]:
        case, listed = result.asked or result.case, hanging(self._ledger, info)

        def hangs(c: Case) -> bool:  # what has just hung says nothing if it hangs again (``difference``)
            return (c is case and result.outcome.status is Status.TIMED_OUT) or listed(c)

        try:
            return outcomes_of(handle, case, result.neighbours or [case], result.prior_models, hangs)
        except BackendError as e:
            return [Outcome(Status.CRASHED, None, "start", str(e))]

    def _judge(self, result: Result, info: BackendInfo, outcomes: list[Outcome]) -> Result:
        if result.asked is not None:
            return judge_cross_dialect(result.case, result.asked, info, outcomes, self._ledger)
        return judge_case(result.case, info, outcomes, self._ledger, result.neighbours)


def _statistical(result: Result) -> bool:
    return any(e.error.random for row in result.case.expected or () for e in row)


def _random(result: Result) -> bool:
    return any(isinstance(e.error, RANDOM) for row in result.case.expected or () for e in row)


def difference(first: Sequence[Outcome], second: Sequence[Outcome]) -> str | None:
    """Where the outcomes of two runs differ first, in words; None where they do not, or where a process had no time or
    could not be had, which says nothing of the model."""
    for r, (a, b) in enumerate(zip(first, second)):
        if Status.TIMED_OUT in (a.status, b.status) or "start" in (a.phase, b.phase):
            return None
        run = f"run {r + 1}, " if r else ""
        if a.status is not b.status:
            return f"{run}{a.status.value}, then {b.status.value}"
        for i, (x, y) in enumerate(zip(a.outputs or (), b.outputs or ())):
            n, size = unequal(x, y)
            if n:
                return f"{run}output {i}, {n} of {size} elements" if size else f"{run}output {i}, its type or extents"
    return None


def unequal(x: Any, y: Any) -> tuple[int, int]:
    """Elements of two values that differ in their bits, of how many; (1, 0) where type or shape differ."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if x.dtype != y.dtype or x.shape != y.shape:
            return 1, 0
        if x.dtype.kind in "OSU":
            return int(np.count_nonzero(x != y)), x.size
        u, v = (np.frombuffer(a.tobytes(), np.uint8).reshape(a.size, a.dtype.itemsize) for a in (x, y))
        return int(np.count_nonzero((u != v).any(axis=1))), x.size
    if isinstance(x, TypeOnly) and isinstance(y, TypeOnly):
        return int((x.dtype, x.shape) != (y.dtype, y.shape)), 0
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        x, y = [*x, *x.values()], [*y, *y.values()]
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        pairs = [unequal(a, b) for a, b in zip(x, y)]
        return (1, 0) if len(x) != len(y) else (sum(n for n, _ in pairs), sum(s for _, s in pairs))
    return int(type(x) is not type(y) or x != y), 1
