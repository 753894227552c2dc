"""Two readings of the NeuralNetwork specification agree: the reference, and plain loops that share nothing with it."""

from __future__ import annotations

import pytest

from harness.compare import judge
from harness.core.outcome import Outcome, Status, Verdict
from harness.run.case import draw_case
from suites.nn import dialect
from suites.nn.definition import Definition

CASES = 4


@pytest.fixture(scope="module")
def second() -> Definition:
    return Definition()


@pytest.mark.parametrize("key", sorted(dialect.versions))
def test_the_second_reading_agrees(key: str, second: Definition) -> None:
    v = dialect.versions[key]
    for i in range(CASES):
        case = draw_case(v, 1, 22, i, 1, invalid=False)
        assert not case.problem, case.problem
        if case.ambiguous is not None:
            continue
        arrays = case.draws[0]
        model = dialect.build([case.inst], [arrays])
        feeds = {n: arrays[s] if j is None else arrays[s][j] for n, s, j in model.inputs[0]}
        out = second.run(second.load(model.data, "nn"), feeds)
        judged = judge(case.expected[0], Outcome(Status.VALUE, [out[n] for n in model.outputs[0]]))
        assert judged.verdict in (Verdict.AGREE, Verdict.MISTRUSTED), (i, judged, case.inst.dumps())
