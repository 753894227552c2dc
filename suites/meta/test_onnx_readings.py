"""Where ONNX leaves a question open, each reading is accepted, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.core.dtypes import F32, I32
from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo


def floats(*values: float, shape: tuple[int, ...]) -> Arg:
    return Arg(F32, shape, values=list(values))


ONE = (1,)
NORMALISED = {
    "X": floats(0, shape=(1, 1)),
    "scale": floats(1, shape=ONE),
    "B": floats(0, shape=ONE),
    "mean": floats(1, shape=ONE),
    "var": floats(0, shape=ONE),
}
MASKED = {
    "Q": floats(0, shape=(1, 1, 1, 1)),
    "K": floats(0, 0, shape=(1, 1, 2, 1)),
    "V": floats(1, 3, shape=(1, 1, 2, 1)),
    "attn_mask": Arg(I32, (1, 2), values=[0, 1]),
}


@pytest.mark.parametrize(
    ("op", "version", "opset", "attrs", "args", "other"),
    [
        ("BatchNormalization", 6, 6, {"epsilon": 0.5}, NORMALISED, -(2**0.5)),
        ("Attention", 24, 24, {}, MASKED, 3.0),
    ],
    ids=["the mode of BatchNormalization-6", "a mask of integers"],
)
def test_each_reading_is_accepted_and_nothing_else(
    op: str, version: int, opset: int, attrs: dict[str, Any], args: dict[str, Any], other: float
) -> None:
    inst = Instance("onnx", op, version, opset, attrs, args, 1)
    case = fill(registry.version_of(inst), inst)
    assert case.expected is not None
    due = case.expected[0][0].value

    def told(answer: np.ndarray) -> Verdict:
        return judge_case(
            case, BackendInfo("somebody"), [Outcome(Status.VALUE, [answer], "run")], load_ledger()
        ).verdict

    assert told(due) is Verdict.AGREE
    assert told(np.full_like(due, other)) is Verdict.AMBIGUOUS
    assert told(due + np.float32(5)) is Verdict.MISMATCH


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_an_axis_of_the_rank_breaks_the_range_of_version_11(op: str) -> None:
    """Softmax-11, axis: "Accepted range is [-r, r-1]"; version 1 states no range."""
    x = {"input": Arg(F32, (3,), values=[1.0, 2.0, 3.0])}
    for version, opset in ((1, 7), (11, 12)):
        inst = Instance("onnx", op, version, opset, {"axis": 1}, x, 1)
        v = registry.version_of(inst)
        if version == 1:
            assert fill(v, inst).expected is not None
        else:
            with pytest.raises(RuleError, match="axis-in-range"):
                Case(v, inst, 0).hold()
