"""Listed differences of passes excuse the answer that they tell of, and no other one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.cases.result import Result
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.meta.runtimes import running

ENTRIES = [
    e
    for e in load_ledger().entries
    if e.kind_of == "known" and e.instance is not None and e.instance.dialect == "passes" and "mismatch" in e.verdicts
]


@pytest.fixture(scope="module")
def answers() -> tuple[dict[str, Result], BackendInfo]:
    """What coremltools answers to the instance of each entry."""
    with running("coremltools-passes") as handle:
        cases = [fill(registry.version_of(e.instance), e.instance, i) for i, e in enumerate(ENTRIES)]
        return {ENTRIES[r.case.index].id: r for r in Engine([handle]).judge(cases)}, handle.info


def _faults(right: list[Any], came: list[Any]) -> Iterator[tuple[int, tuple[int, ...], Any]]:
    """(output, place, another value) at an element that is wrong and at one that is right, where there is one."""
    for k, (e, a) in enumerate(zip(right, came, strict=True)):
        if e.shape != a.shape or e.dtype != a.dtype or e.dtype.kind not in "fiu":
            continue
        same = (e == a) | ((e != e) & (a != a))
        for mask in (same, ~same):
            for at in np.argwhere(mask)[:2]:
                place = tuple(int(i) for i in at)
                yield k, place, next(x for x in np.array([3, 5, 96]).astype(e.dtype) if x not in (e[place], a[place]))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_another_wrong_value_next_to_a_listed_one_is_caught(entry: Any, answers: Any) -> None:
    results, info = answers
    result = results[entry.id]
    if result.outcome.outputs is None:
        assert result.verdict.value in entry.verdicts  # a refusal, which has no element
        return
    case = result.case
    right = [np.asarray(e.value) for e in case.expected[0]]

    def judged(row: list[Any], ledger: Ledger) -> Verdict:
        return judge_case(case, info, [Outcome(Status.VALUE, row)], ledger).verdict

    came = [np.asarray(a) for a in result.outcome.outputs]
    assert judged(came, Ledger([entry])) is Verdict.KNOWN
    for k, place, value in _faults(right, came):
        alone, beside = [x.copy() for x in right], [x.copy() for x in came]
        alone[k][place] = beside[k][place] = value
        if judged(alone, Ledger([])) is Verdict.MISMATCH:  # a fault that the bound lets pass is none
            assert judged(beside, Ledger([entry])) is Verdict.MISMATCH, f"output {k} at {place}: {value}"
