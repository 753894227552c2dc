"""A failure becomes evidence: a smaller instance, a folder that reproduces it, a record."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.cases.case import Case, fill
from harness.cases.result import Result, first_words
from harness.core.errors import FormatError, TimeIsUp, UsageError
from harness.core.instance import Instance
from harness.core.outcome import Verdict
from harness.engine.case_record import NEIGHBOURS, address, record
from harness.engine.engine import Engine
from harness.engine.two_runs import TwoRuns
from harness.evidence.attribution import Attribution
from harness.evidence.budget import Budget
from harness.evidence.minimize import minimize
from harness.evidence.repro_folder import write_folder
from harness.ledger.ledger import Ledger
from harness.workers.pool import BackendHandle


def kind_of(rec: Mapping[str, Any]) -> tuple[str, ...]:
    """The kind of a "case" record: failures of one kind are told a few times only."""
    why = rec["kind"] if rec["diff"] else first_words(rec["message"])
    return rec["key"], rec["backend"], rec["verdict"], rec["status"], why, rec["known"] or ""


class Evidence:
    """Makes the "case" record of a bad verdict.

    handle: name of a backend -> a second handle of it, so that shrinking does not disturb the run.
    folder: where the folders of failures go; None: none are written.
    per_kind: how many failures of one (op version, backend, signature) are made smaller.  The others are recorded as
        they are.
    seconds: for all shrinking together.
    end: by the monotonic clock; nothing is made smaller after it.
    ledger: a smaller instance must not be one that the ledger explains already.
    kinds: by ``kind_of`` their records, how many of each kind an interrupted run has recorded.
    two_runs: tells whether the first failure of a kind differs from run to run.
    """

    def __init__(
        self,
        handle: Callable[[str], BackendHandle],
        folder: Path | None,
        *,
        per_kind: int = 1,
        seconds: float = 120.0,
        seed: int = 0,
        recorded: int = 20,
        ledger: Ledger | None = None,
        kinds: Mapping[tuple[str, ...], int] | None = None,
        two_runs: TwoRuns | None = None,
        end: float | None = None,
    ) -> None:
        self.ledger = ledger.unmarked() if ledger is not None else None
        self.handle, self.folder, self.per_kind, self.left = handle, folder, per_kind, seconds
        self.seed, self.recorded, self.two_runs = seed, recorded, two_runs
        self.attribute = Attribution(handle, self.ledger)
        self._kinds: Counter[tuple[str, ...]] = Counter(kinds)
        self._end = end

    def __call__(self, result: Result, votes: dict[str, str]) -> dict[str, Any] | None:
        verdict, status, why = result.signature
        kind = (result.case.version.key, result.backend, verdict.value, status.value, why, result.known or "")
        self._kinds[kind] += 1
        if self._kinds[kind] > self.recorded:
            return None
        small: Result | None = None
        lonely = not result.neighbours and not result.prior_models
        first = self._kinds[kind] <= self.per_kind
        if self._end is not None:
            self.left = min(self.left, self._end - time.monotonic())
        if first and (result.verdict.bad or result.verdict is Verdict.FLAKY) and self.left > 0:
            start = time.monotonic()
            with suppress(TimeIsUp):  # what is known is recorded
                if result.verdict.bad and lonely:
                    small = self.shrink(result, Budget(seconds=min(6.0, self.left)))
                if self.two_runs is not None:
                    twice = self.two_runs(small or result, self.handle(result.backend).info)
                    small, result = (None, twice) if small is None else (twice, result)
            self.left -= time.monotonic() - start
        folder = None
        told = lonely and address(result.case, self.seed) is not None  # else known to its folder alone
        if result.verdict.bad and self.folder is not None and (first or not told):
            folder = self.write(small or result)
        return record(result, votes, small, folder, self.seed, self.handle(result.backend).spec.place)

    def shrink(self, result: Result, budget: Budget) -> Result | None:
        """The same failure on a smaller instance, or None if none was found."""
        case, want = result.case, result.signature
        engine = Engine([self.handle(result.backend)], ledger=self.ledger, attribute=self.attribute)
        found: dict[str, Result] = {}

        def fails(inst: Instance) -> bool:
            candidate = fill(case.version, inst)
            if candidate.problem or (inst.rule is None) != (case.inst.rule is None):
                return False
            if complete(case) and not complete(candidate):
                return False
            got = next(iter(engine.judge([candidate])), None)
            if got is None or got.signature != want:
                return False
            found[inst.dumps()] = got
            return True

        small = minimize(case.version, case.inst, fails, budget)
        return found.get(small.dumps())

    def write(self, result: Result) -> Path | None:
        assert self.folder is not None
        handle = self.handle(result.backend)
        try:
            python = handle.spec.place.python
            return write_folder(self.folder, result, handle.info.version, handle.processor, python)
        except OSError as e:
            where = e.filename or self.folder
            raise UsageError(f"failures: cannot write {where}: {e.strerror}; what was judged before is kept") from e


def complete(case: Case) -> bool:
    """Does the reference give as many outputs as the instance asks for?"""
    return all(len(outs) == case.inst.outs for outs in case.expected or ())


def load_instance(path: Path) -> Instance:
    """An instance from a file: ``instance.json`` or a line of JSON.  Raises FormatError or UsageError."""
    try:
        return Instance.from_json(_json(path))
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{path}: not a case file: {e}") from None


def load_neighbours(path: Path) -> tuple[list[Instance], int, list[list[Instance]]]:
    """The instances of a ``neighbours.json``, the place of the one that goes wrong beside the others, and the
    instances of the models that the process serves first.  Raises FormatError or UsageError."""
    try:
        form = _json(path)
        instances, at = [Instance.from_json(x) for x in form["instances"]], form["at"]
        instances[at]
        prior_models = [[Instance.from_json(x) for x in model] for model in form.get("prior_models", [])]
    except (FormatError, ValueError, KeyError, TypeError, IndexError, RecursionError) as e:
        raise FormatError(f"{path}: expected {{at, instances}} as in {NEIGHBOURS}: {type(e).__name__}: {e}") from None
    return instances, at, prior_models


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as e:
        raise UsageError(f"cannot read {path}: {e.strerror}") from None
