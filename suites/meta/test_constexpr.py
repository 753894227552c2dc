"""Compressed constants: what the text leaves open of the type in which they are computed."""

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.workers.info import BackendInfo


def case_of(op: str, data: list[float], offset: list[float]) -> Case:
    """Of f32 data and offset beside an f16 scale of 0.5, and of a mask whose second bit is 0."""
    args = {
        "data": {"dtype": "f32", "shape": [len(data)], "values": data, "const": True},
        "scale": {"dtype": "f16", "shape": [1], "values": [0.5], "const": True},
        "offset": {"dtype": "f32", "shape": [1], "values": offset, "const": True},
    }
    if "sparse" in op:
        mask = {"dtype": "u1", "shape": [len(data) + 1], "values": [1, 0, *[1] * (len(data) - 1)], "const": True}
        args = {"data_mask": mask, "nonzero_data": args.pop("data"), **args}
    outs = 1 + ("sparse" in op)
    form = {"format": 1, "dialect": "mil", "op": op, "version": "ios18", "opset": "ios18", "attrs": {}, "outs": outs}
    inst = Instance.from_json({**form, "args": args})
    return fill(registry.dialect("mil").version_of(inst), inst)


def verdict(case: Case, *values: float) -> Verdict:
    assert case.expected
    outputs = [e.value.copy() for e in case.expected[0]]
    outputs[-1] = np.array(values, outputs[-1].dtype)
    return judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, outputs, "run")]).verdict


@pytest.mark.parametrize("op", ["constexpr_blockwise_shift_scale", "constexpr_sparse_blockwise_shift_scale"])
def test_data_beyond_the_type_of_the_result_may_be_infinite_and_no_other_number(op: str) -> None:
    """MIL iOS18: "output = scale * (data - offset)" names no type but DstT, that of the result."""
    case = case_of(op, [8.0, 100000.0], [0.0])
    assert verdict(case, 4.0, 50000.0) is Verdict.AGREE
    assert verdict(case, 4.0, np.inf) is Verdict.AMBIGUOUS
    assert verdict(case, 4.0, -np.inf) is Verdict.MISMATCH
    assert verdict(case, 4.0, 40000.0) is Verdict.MISMATCH
    assert verdict(case, np.inf, 50000.0) is Verdict.MISMATCH


@pytest.mark.parametrize("op", ["constexpr_blockwise_shift_scale", "constexpr_sparse_blockwise_shift_scale"])
def test_data_of_a_wider_type_may_be_rounded_first(op: str) -> None:
    """8.003 and 8 are 8.0 in f16, of which nothing is left."""
    case = case_of(op, [8.003, 9.0], [8.0])
    assert verdict(case, 0.0015, 0.5) is Verdict.AGREE
    assert verdict(case, 0.0, 0.5) is Verdict.AGREE
    assert verdict(case, 0.03, 0.5) is Verdict.MISMATCH
