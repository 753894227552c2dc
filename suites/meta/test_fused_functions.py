"""Fused activations that are no limits, TANH and SIGN_BIT: of floats, steps, integers, and how far they may be off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case
from harness.compare.judge import judge
from harness.core.errors import RuleError
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status
from harness.engine.verdict import Verdict
from harness.generate.recipes import arrays_of
from suites.tflite import dialect


def expected(op: str, version: Any, args: dict[str, Any], **attrs: Any) -> Any:
    value = {"format": 1, "dialect": "tflite", "op": op, "version": version, "opset": 1, "outs": 1}
    inst = Instance.from_json({**value, "attrs": attrs, "args": args})
    found = Case(dialect.version_of(inst), inst, 0).expected
    return found[0] if found is not None else dialect.evaluate(inst, arrays_of(inst))


def floats(*values: float) -> dict[str, Any]:
    return {"dtype": "f32", "shape": [len(values)], "values": list(values)}


def verdict(e: Any, *values: float) -> Verdict:
    return judge(e, Outcome(Status.VALUE, [np.array(values, e[0].value.dtype)])).verdict


def test_tanh_of_a_sum_is_within_five_ulps() -> None:
    e = expected("ADD", 3, {"lhs": floats(0.5, 2.0), "rhs": floats(0.25, -3.0)}, fused_activation_function="TANH")
    due = np.tanh(np.array([0.75, -1.0])).astype(np.float32)
    np.testing.assert_array_equal(e[0].value, due)
    ulp = np.spacing(np.abs(due))
    assert verdict(e, *(due + 4 * ulp)) is Verdict.AGREE
    assert verdict(e, *(due + 12 * ulp)) is Verdict.MISMATCH
    assert verdict(e, 0.75, -1.0) is Verdict.MISMATCH  # left out


def test_the_sign_bit_is_1_below_0_and_either_where_the_sum_may_have_either_sign() -> None:
    lhs, rhs = floats(1.0, -1.0, 1e8), floats(1.0, -2.0, -1e8)
    e = expected("SUB", 3, {"lhs": lhs, "rhs": floats(3.0, 3.0, 1.0)}, fused_activation_function="SIGN_BIT")
    assert e[0].value.tolist() == [1.0, 1.0, 0.0]
    assert verdict(e, 1, 1, 0) is Verdict.AGREE
    assert verdict(e, 1, 0, 0) is Verdict.MISMATCH
    e = expected("ADD", 3, {"lhs": lhs, "rhs": rhs}, fused_activation_function="SIGN_BIT")
    assert e[0].value.tolist() == [0.0, 1.0, 0.0]
    assert verdict(e, 0, 1, 1) is Verdict.AGREE  # a zero of either sign


def test_tanh_of_steps_is_that_of_the_real_number() -> None:
    def q(scale: float, zero: int) -> dict[str, Any]:
        return {"scale": [scale], "zero_point": [zero], "axis": 0}

    x = {"dtype": "i8", "shape": [3], "values": [-128, 0, 20], "quant": q(0.05, 0)}
    y = {"dtype": "i8", "shape": [3], "values": [0, 0, 0], "quant": q(0.05, 0)}
    out = [{"dict": {"dtype": "i8", "quant": {"dict": q(1 / 128, 0)}}}]
    e = expected("ADD", "2q", {"lhs": x, "rhs": y}, fused_activation_function="TANH", **{"@outputs": out})
    due = np.round(np.tanh(np.array([-128, 0, 20]) * 0.05) * 128).tolist()
    assert e[0].value.tolist() == due
    assert verdict(e, *due) is Verdict.AGREE
    assert verdict(e, due[0] + 2, *due[1:]) is Verdict.MISMATCH


def test_integers_have_no_tanh() -> None:
    x = {"dtype": "i32", "shape": [1], "values": [1]}
    with pytest.raises(RuleError, match="TANH of integers, expected floats"):
        expected("ADD", 3, {"lhs": x, "rhs": x}, fused_activation_function="TANH")


def test_parts_of_a_concatenation_are_limited() -> None:
    e = expected("CONCATENATION", 1, {"values": [floats(-2.0, 3.0), floats(9.0)]}, axis=0)
    assert e[0].value.tolist() == [-2.0, 3.0, 9.0]
    e = expected(
        "CONCATENATION", 1, {"values": [floats(-2.0, 3.0), floats(9.0)]}, axis=0, fused_activation_function="RELU6"
    )
    assert e[0].value.tolist() == [0.0, 3.0, 6.0]
