"""Sums whose partial sums may leave the type: nothing binds such an element, and all others are bound as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.dtypes import BY_NAME
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.workers.info import BackendInfo

INF, NAN = float("inf"), float("nan")
HIGHEST = {"f32": float(np.finfo(np.float32).max), "f64": float(np.finfo(np.float64).max)}


def verdict(op: str, version: int, dtype: str, operands: dict[str, Any], answer: Any, **attrs: Any) -> Verdict:
    """On an answer that holds these elements."""
    v = registry.dialect("onnx").versions[f"onnx/{op}/{version}"]
    args = {k: Arg(BY_NAME[dtype], np.shape(x), values=np.ravel(x).tolist()) for k, x in operands.items()}
    case = fill(v, Instance("onnx", op, version, v.opsets[-1], attrs, args))
    assert case.expected, case.problem
    want = case.expected[0][0].value
    got = np.broadcast_to(np.asarray(answer, want.dtype), want.shape).copy()
    return judge_case(case, BackendInfo("any", "1", acc={dtype: dtype}), [Outcome(Status.VALUE, [got])]).verdict


@pytest.mark.parametrize("dtype", HIGHEST)
@pytest.mark.parametrize("op", ["Gemm", "MatMul"])
def test_a_product_may_stay_in_the_type_or_leave_it_by_its_order(op: str, dtype: str) -> None:
    m = HIGHEST[dtype]
    operands = {"A": [[1.0, -2.0]], "B": [[-m], [-m]]}  # -m + 2m, of which 2m is beyond the type
    assert verdict(op, 13, dtype, operands, m) is not Verdict.MISMATCH
    assert verdict(op, 13, dtype, operands, INF) is not Verdict.MISMATCH


@pytest.mark.parametrize("dtype", HIGHEST)
@pytest.mark.parametrize("points", [2, 3, 4, 5])
def test_a_transform_of_the_highest_numbers_binds_nothing(points: int, dtype: str) -> None:
    m = HIGHEST[dtype]
    signal = np.array([m, -m, m, m, -m, m, -m, m, m, -m][: 2 * points]).reshape(1, points, 2)
    for answer in (NAN, INF, 0.0):
        assert verdict("DFT", 17, dtype, {"input": signal}, answer, axis=1) is not Verdict.MISMATCH


@pytest.mark.parametrize("dtype", HIGHEST)
def test_sums_within_the_type_are_bound(dtype: str) -> None:
    m = HIGHEST[dtype] / 16
    signal = np.array([m, -m, m, m]).reshape(1, 2, 2)
    right = np.array([2 * m, 0, 0, -2 * m]).reshape(1, 2, 2)
    assert verdict("DFT", 17, dtype, {"input": signal}, right, axis=1) is Verdict.AGREE
    for answer in (NAN, INF, right * 1.01, right[..., ::-1]):
        assert verdict("DFT", 17, dtype, {"input": signal}, answer, axis=1) is Verdict.MISMATCH
    operands = {"A": [[1.0, -2.0]], "B": [[-m], [-m]]}
    assert verdict("Gemm", 13, dtype, operands, m) is not Verdict.MISMATCH
    for answer in (NAN, INF, m * 1.01):
        assert verdict("Gemm", 13, dtype, operands, answer) is Verdict.MISMATCH


def test_a_range_beyond_the_type_is_exact_or_infinite() -> None:
    """DynamicQuantizeLinear-11: y_scale = (max(x) - min(x)) / 255, by its function body in the type of x."""
    x = np.array([HIGHEST["f32"], -HIGHEST["f32"], 1.0])
    v = registry.dialect("onnx").versions["onnx/DynamicQuantizeLinear/11"]
    case = fill(v, Instance("onnx", v.op, 11, 13, {}, {"x": Arg(BY_NAME["f32"], (3,), values=x.tolist())}, outs=3))
    for steps, scale, zero, expected in (
        ([255, 0, 128], 2 * HIGHEST["f32"] / 255, 128, Verdict.AGREE),
        ([0, 0, 0], INF, 0, Verdict.AMBIGUOUS),
        ([0, 0, 0], 1.0, 0, Verdict.MISMATCH),
        ([255, 0, 127], 2 * HIGHEST["f32"] / 255, 127, Verdict.MISMATCH),
    ):
        got = [np.array(steps, np.uint8), np.array(scale, np.float32), np.array(zero, np.uint8)]
        assert judge_case(case, BackendInfo("any", "1"), [Outcome(Status.VALUE, got)]).verdict is expected


def test_a_convolution_over_the_past_may_overflow_beside_an_infinity() -> None:
    """CausalConvWithState-27: m + m - inf is -inf, or NaN where the first sum has overflowed."""
    m = HIGHEST["f32"]
    v = registry.dialect("onnx").versions["onnx/CausalConvWithState/27"]
    data = {"input": [[[1.0, 1.0, 1.0]]], "weight": [[[m, m, -INF]]], "past_state": [[[0.0, 0.0]]]}
    args = {k: Arg(BY_NAME["f32"], np.shape(x), values=np.ravel(x).tolist()) for k, x in data.items()}
    case = fill(v, Instance("onnx", v.op, 27, v.opsets[-1], {"activation": "none"}, args, outs=2))
    y, state = (e.value for e in case.expected[0])
    assert y.ravel()[0] == -INF  # of the past, which is 0, nothing overflows
    for at, expected in ((2, Verdict.AMBIGUOUS), (0, Verdict.MISMATCH)):
        got = y.copy()
        got[0, 0, at] = NAN
        assert judge_case(case, BackendInfo("any", "1"), [Outcome(Status.VALUE, [got, state])]).verdict is expected
