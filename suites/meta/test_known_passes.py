"""Listed differences of passes excuse the answer that they tell of, and no other one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.cases.result import Result
from harness.core.dtypes import F32
from harness.core.instance import Arg, Graph, Instance, Node
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


@pytest.mark.parametrize("computed", [False, True], ids=["at run time", "of constants"])
def test_a_second_factor_is_merged_as_the_first(computed: bool) -> None:
    """The pass comes again, and finds what it made itself.  A convolution of constants is not folded before."""
    x = np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3)
    weight, each = np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1, 1), np.arange(2, 8, dtype=np.float32)
    consts = {"w": weight, "half": np.array(0.5, np.float32), "each": each.reshape(1, 6, 1, 1), "x": x}
    consts |= {"groups": np.array(2, np.int32)}
    nodes = [
        Node("conv_transpose", {"x": "x" if computed else "p0", "weight": "w", "groups": "groups"}, ["c"], {}),
        Node("mul", {"x": "c", "y": "half"}, ["d"], {}),
        Node("mul", {"x": "d", "y": "each"}, ["e"], {}),
        Node("add", {"x": "e", "y": "p1"}, ["y"], {}),
    ]
    program = Graph([], nodes, ["y"], consts, {"fires": None})
    args = [Arg(F32, a.shape, values=a.ravel().tolist()) for a in (x, np.zeros((2, 6, 3, 3), np.float32))]
    attrs = {"pattern": "match mul", "program": program}
    inst = Instance("passes", "fuse_conv_scale", 1, "ios18", attrs, {"inputs": args}, 2)
    with running("coremltools-passes") as handle:
        ledger = load_ledger(backends=[handle.info])
        result = next(iter(Engine([handle], ledger=ledger).judge([fill(registry.version_of(inst), inst)])))
    assert (result.verdict, result.known) == (Verdict.KNOWN, "ct-pass-transposed-groups")
