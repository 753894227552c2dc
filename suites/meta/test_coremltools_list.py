"""What is listed of coremltools says what comes instead, so that nothing else is excused by it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.entry import LedgerEntry
from harness.ledger.facts import OUTCOME
from harness.ledger.loader import load_ledger
from harness.ledger.tables import tomllib
from harness.workers.info import BackendInfo

FOLDER = Path(__file__).parent.parent / "known" / "coremltools"
# Those that say nothing of the answer, and why.
SILENT = {"ct-fold-constexpr-offset-type": "the element type of the result is what is wrong, and the kind says so"}
ledger = cache(load_ledger)


def tables() -> list[dict[str, Any]]:
    listed = [t for p in sorted(FOLDER.glob("*.toml")) for t in tomllib.loads(p.read_text("utf-8"))["known"]]
    return [t for t in listed if "mismatch" in np.atleast_1d(t.get("verdict", "mismatch"))]


def test_every_mismatch_entry_states_the_answer() -> None:
    found = tables()
    without = {
        t["id"]
        for t in found
        if not {"behaves_as", "defect_model"} & set(t) and not OUTCOME & set(re.findall(r"\w+", t.get("when", "")))
    }
    assert without == set(SILENT)
    assert len(without) <= 0.05 * len(found)


def entry(id: str) -> LedgerEntry:
    return next(e for e in ledger().entries if e.id == id)


@pytest.mark.parametrize("id", [t["id"] for t in tables() if t["id"] not in SILENT])
def test_another_wrong_answer_is_reported(id: str) -> None:
    """Of its minimal instance: every number of the last output is off by 7, or it has another axis, as a value and as
    what type inference says."""
    e = entry(id)
    inst = e.instance
    case = Case(registry.version_of(inst), inst, 0)
    assert case.expected is not None, case.problem
    right = [x.value for x in case.expected[0]]
    last = np.asarray(right[-1])
    step = np.array(7, last.dtype)
    if last.dtype.kind == "f" and np.abs(last).max(initial=0) > 1e30:
        step = last.copy()  # 7 is less than the error of a number near the highest
        step[np.isfinite(step)] *= -0.5
    off = ~last if last.dtype.kind == "b" else (last + step).astype(last.dtype)
    longer = last[..., None].repeat(3, -1)
    inferred = [TypeOnly(str(x.dtype), x.value.shape) for x in case.expected[0][:-1]]
    for backend in (b.replace("*", "fold") for b in e.backends):
        infers = backend in ("coremltools-types", "coremltools-symbolic")
        other = [x for x in (off, longer) if not np.array_equal(x, last, equal_nan=x.dtype.kind == "f")]
        typed = [*inferred, TypeOnly(str(case.expected[0][-1].dtype), longer.shape)]
        for outputs in [typed] if infers else [[*right[:-1], x] for x in other]:
            judged = judge_case(case, BackendInfo(backend), [Outcome(Status.VALUE, list(outputs), "run")], ledger())
            assert judged.known != id, (backend, outputs, judged.verdict)
            assert case.ambiguous is not None or judged.verdict is Verdict.MISMATCH, (backend, outputs, judged.verdict)
