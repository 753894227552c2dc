"""A graph pass that does wrong is caught: one weight off, an op left out, outputs swapped, nothing done at all."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.cases.case import Case, fill
from harness.core.outcome import Verdict
from harness.engine.engine import Engine
from harness.generate.draw_engines import Prng, case_seed
from harness.workers.pool import BackendHandle
from harness.workers.spec import Spec
from suites.meta.runtimes import running
from suites.passes import dialect

DRAWN, EACH = 8, 2


def _verdicts(handle: BackendHandle, cases: list[Case]) -> dict[str, Verdict]:
    return {j.case.inst.id: j.verdict for j in Engine([handle]).judge(cases)}


@pytest.fixture(scope="module")
def right() -> list[Case]:
    """A few programs for every pass that hold its pattern and come out right."""
    with running("coremltools-passes") as handle:
        cases = []
        for v in dialect.versions.values():
            drawn = (v.draw(Prng(case_seed(11, v.key, i)), v.opsets[-1]) for i in range(40))
            cases += [fill(v, i) for i in [i for i in drawn if i.attrs["program"].meta["fires"]][:DRAWN]]
        verdicts = _verdicts(handle, cases)
    kept: dict[str, list[Case]] = {}
    for c in cases:
        if verdicts[c.inst.id] is Verdict.AGREE:
            kept.setdefault(c.version.op, []).append(c)
    return [c for some in kept.values() for c in some[:EACH]]


def test_every_pass_has_a_program_with_a_right_result(right: list[Case]) -> None:
    wrong = {v.op for v in dialect.versions.values()} - {c.version.op for c in right}
    assert wrong <= {"fuse_elementwise_to_batchnorm"}  # a known difference in every program


@pytest.mark.parametrize(("fault", "least"), [("OneWeight", 0.9), ("OneOp", 0.9), ("Swapped", 0.9), ("Idle", 1.0)])
def test_what_a_wrong_pass_does_is_seen(right: list[Case], fault: str, least: float) -> None:
    """least: the share that is caught of the faults that change a value at all; one may stay within a bound."""
    with BackendHandle(Spec(f"planted {fault}", fault, module="suites.meta.pass_backends")) as handle:
        verdicts = _verdicts(handle, right)
    planted = [c for c in right if verdicts[c.inst.id] is not Verdict.UNSUPPORTED]
    missed = Counter(c.version.op for c in planted if verdicts[c.inst.id] is Verdict.AGREE)
    assert len(planted) >= 12
    assert 1 - missed.total() / len(planted) >= least, missed
