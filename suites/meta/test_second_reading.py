"""Two readings of a specification that nothing here executes agree: the reference, and plain loops that share nothing
with it.  Of NeuralNetwork every layer, of MIL the ops that say more than a function's name."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases.case import draw_case
from harness.compare import judge
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from suites.mil import dialect as mil
from suites.mil.definition import READINGS
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
        held = [n for v in case.inst.attrs.values() for n in (v if isinstance(v, list) else [v]) if type(n) is int]
        if case.ambiguous is not None or max(map(abs, held), default=0) > 1 << 20:  # it takes memory by the step
            continue
        arrays = case.draws[0]
        model = dialect.build([case.inst], [arrays])
        feeds = {n: arrays[s] if j is None else arrays[s][j] for n, s, j in model.inputs[0]}
        out = second.run(second.load(model.data, "nn"), feeds)
        judged = judge(case.expected[0], Outcome(Status.VALUE, [out[n] for n in model.outputs[0]]))
        assert judged.verdict in (Verdict.AGREE, Verdict.UNINFORMATIVE), (i, judged, case.inst.dumps())


@pytest.mark.parametrize("key", [v.key for v in mil.versions.values() if v.op in READINGS])
def test_the_second_reading_of_mil_agrees(key: str) -> None:
    v, compared = mil.versions[key], 0
    for i in range(40):
        case = draw_case(v, None, 22, i, 1, invalid=False)
        assert not case.problem, case.problem
        arrays = case.draws[0]
        flat = [x for a in arrays.values() for x in (a if isinstance(a, list) else [a])]
        most = 80 if v.op == "random_categorical" else 1e30  # its logits are exponents
        finite = all((np.abs(x) < most).all() for x in flat if x.dtype.kind in "fc")
        if case.ambiguous is not None or not (finite and all(x.size for x in flat)):
            continue
        with quiet:
            told = READINGS[v.op](case.inst.attrs, arrays, v.version)
            values = [np.asarray(x).astype(e.value.dtype) for x, e in zip(told, case.expected[0])]
        judged = judge(case.expected[0], Outcome(Status.VALUE, values))
        assert judged.verdict in (Verdict.AGREE, Verdict.UNINFORMATIVE), (i, judged, case.inst.dumps())
        compared += 1
    assert compared > 10
