"""ReduceLogSumExp where exponentials leave their type: what may come is said element by element."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.dtypes import BY_NAME
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.workers.info import BackendInfo

INF = float("inf")


def verdict(version: int, x: list[float], answer: float, dtype: str = "f32") -> Verdict:
    """On ``answer`` for the logarithm of the sum of the exponentials of ``x``."""
    v = registry.dialect("onnx").versions[f"onnx/ReduceLogSumExp/{version}"]
    arg = Arg(BY_NAME[dtype], (len(x),), values=x)
    case = Case(v, Instance("onnx", "ReduceLogSumExp", version, v.opsets[-1], {"keepdims": 0}, {"data": arg}), 0)
    got = np.array(answer, BY_NAME[dtype].np)
    return judge_case(case, BackendInfo("any", "1", acc={dtype: dtype}), [Outcome(Status.VALUE, [got])]).verdict


@pytest.mark.parametrize(
    ("version", "x", "answer", "expected"),
    [
        (18, [1000, 1, 2], 1000, Verdict.AGREE),  # log(sum(exp(x)))
        (18, [1000, 1, 2], INF, Verdict.AMBIGUOUS),  # the function body: exp(1000) is no double
        (18, [1000, 1, 2], 5, Verdict.MISMATCH),
        (18, [1000, 1, 2], -INF, Verdict.MISMATCH),
        (18, [100, 1, 2], INF, Verdict.MISMATCH),  # exp(100) is a double
        (18, [100, 1, 2], 100, Verdict.AGREE),
        (18, [-1000, -1000], -INF, Verdict.AMBIGUOUS),
        (18, [-1000, -1000], -1000 + np.log(2), Verdict.AGREE),
        (18, [-1000, -1000], -990, Verdict.MISMATCH),
        (18, [-100, -101], -INF, Verdict.MISMATCH),
        (13, [100, 1, 2], INF, Verdict.AMBIGUOUS),  # no precision is stated until 18
        (13, [100, 1, 2], 100, Verdict.AGREE),
        (13, [100, 1, 2], 101, Verdict.MISMATCH),
        (13, [80, 1, 2], INF, Verdict.MISMATCH),
        (13, [-200, -200], -INF, Verdict.AMBIGUOUS),
        (13, [-80, -80], -INF, Verdict.MISMATCH),
    ],
)
def test_accepted_results_where_exponentials_overflow(version, x, answer, expected) -> None:
    assert verdict(version, x, answer) is expected


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("flush", [False, True])
def test_a_plain_sum_in_the_type_itself_is_no_mismatch_before_18(dtype: str, flush: bool) -> None:
    """exp, sum and log one by one, at every size, with and without subnormal numbers."""
    t = BY_NAME[dtype].np
    info = np.finfo(t)
    reach = float(np.log(float(info.max))) * 1.3
    rng = np.random.default_rng(5)
    seen = set()
    for i in range(300):
        x = (rng.uniform(-reach, reach) + rng.standard_normal(int(rng.integers(1, 6))) * rng.choice((0.1, 3))).astype(t)
        with np.errstate(all="ignore"):
            e = np.exp(x.astype(np.longdouble)).astype(t)
            if flush:
                e[e < info.smallest_normal] = 0
            y = np.log(e.astype(np.longdouble).sum().astype(t).astype(np.longdouble)).astype(t)
        got = verdict(13, x.astype(float).tolist(), float(y), dtype)
        assert got in (Verdict.AGREE, Verdict.UNINFORMATIVE, Verdict.AMBIGUOUS), (
            i,
            x,
            y,
        )  # uninformative: in a wide bound
        assert got is not Verdict.AMBIGUOUS or np.isinf(y)
        seen.add(got)
    assert {Verdict.AGREE, Verdict.AMBIGUOUS} <= seen


def test_no_bound_is_infinite() -> None:
    meaning = registry.dialect("onnx").versions["onnx/ReduceLogSumExp/13"].meaning
    assert meaning is not None
    for scale in (1, 30, 100, 1000):
        v = registry.dialect("onnx").versions["onnx/ReduceLogSumExp/13"]
        x = (np.random.default_rng(1).standard_normal((64, 3)) * scale).astype(np.float32)
        call = v.call({"axes": [1]}, {"data": x}, 13)
        (e,) = v.evaluate(call)
        assert np.isfinite(e.error.bound(e.context())).all()
