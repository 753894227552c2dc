"""Answers of onnx.reference that follow from several of its listed defects at once are explained, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.dtypes import F32, F64, I64
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.tolerance.underspecified import Underspecified
from harness.workers.info import BackendInfo
from suites.onnx import dialect

INF, NAN = float("inf"), float("nan")
TOP = float(np.finfo(np.float32).max)


def _floats(shape: tuple[int, ...], *values: float) -> Arg:
    return Arg(F32, shape, values=list(values))


def _resize(x: Arg, **attrs: Any) -> Instance:
    args = {"X": x}
    for name, of in (("roi", F32), ("scales", F32), ("sizes", I64)):
        if (given := attrs.pop(name, None)) is not None:
            args[name] = Arg(of, (len(given),), True, values=given)
    return Instance("onnx", "Resize", 19, 19, attrs, args)


def _verdict(inst: Instance, answer: np.ndarray) -> Verdict:
    case = fill(dialect.version_of(inst), inst)
    told = [Outcome(Status.VALUE, [answer])]
    return judge_case(case, BackendInfo("onnx-reference", "1.23.2"), told, load_ledger()).verdict


TORCH = {"coordinate_transformation_mode": "pytorch_half_pixel"}
KEPT = {"keep_aspect_ratio_policy": "not_larger"}
CASES = {
    # (1 + 1e24) squared is infinite in f32, and a batch of one has sums for the first channel alone
    "powers of LRN that overflow": (
        Instance("onnx", "LRN", 13, 13, {"size": 1, "alpha": 1.0, "beta": 2.0}, {"X": _floats((1, 2, 1, 1), 1e12, 2)}),
        [0.0, 2.0],
    ),
    # from row 0.75 instead of 0: the second row, with the first and NaN of it multiplied by 0
    "one row of pytorch_half_pixel beside NaN": (
        _resize(_floats((4, 3), 4, NAN, 6, 7, 8, 9, *range(6)), **TORCH, scales=[0.4, 1.0]),
        [7.0, NAN, 9.0],
    ),
    "an infinite element of pytorch_half_pixel": (
        _resize(_floats((4,), 1.0, INF, 2.0, 3.0), **TORCH, scales=[0.4]),
        [TOP],
    ),
    # 0.5 * 2 is 1, from -0.5; 0.4 * 4 is not, from 0.75
    "one row of a whole product, one element of a broken one": (
        _resize(_floats((2, 4), *range(8)), **TORCH, mode="linear", scales=[0.5, 0.4]),
        [0.75],
    ),
    # a fifth of both axes: of 7 elements one, from the coordinate 2
    "one element that a ratio leaves": (
        _resize(
            _floats((5, 7), *range(35)), **TORCH, mode="linear", keep_aspect_ratio_policy="not_larger", sizes=[1, 5]
        ),
        [2.0],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_listed_defects_explain_an_answer_together(name: str) -> None:
    inst, answer = CASES[name]
    due = fill(dialect.version_of(inst), inst).expected
    assert due
    came = np.array(answer, np.float32).reshape(due[0][0].value.shape)
    assert _verdict(inst, came) is Verdict.KNOWN
    came.flat[0] = 12345
    assert _verdict(inst, came) is Verdict.MISMATCH


def test_a_reading_of_a_resize_in_f64_has_the_coordinates_of_f32() -> None:
    """As its expected result: factors and regions are f32."""
    x = Arg(F64, (2, 4), values=[0.1, 0.7, -0.4, 0.2, 0.9, -0.3, 0.5, 0.6])
    attrs = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    inst = _resize(x, **attrs, **KEPT, roi=[0.0, 0.0, 0.5, 0.25], sizes=[6, 11])
    case = fill(dialect.version_of(inst), inst)
    why = case.underspecified[0]
    assert isinstance(why, Underspecified)
    (reading,) = why.parts[0].readings
    for off, verdict in ((1e-7, Verdict.AMBIGUOUS), (1e-3, Verdict.MISMATCH)):
        assert _verdict(inst, np.asarray(reading) + off) is verdict
