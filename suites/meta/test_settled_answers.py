"""Answers that a run met and no entry explained, although the defect was listed: its model says them, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo


def settled(backend: str, release: str, case: Case, answer: Any) -> tuple[Verdict, str | None]:
    info = BackendInfo(backend, version=release)
    result = judge_case(case, info, [Outcome(Status.VALUE, [answer], "run")], load_ledger())
    return result.verdict, result.known


def tflite(op: str, version: int | str, attrs: dict[str, Any], **args: dict[str, Any]) -> Case:
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": op,
            "version": version,
            "opset": 1,
            "outs": 1,
            "attrs": attrs,
            "args": args,
        }
    )
    return fill(registry.version_of(inst), inst)


@pytest.mark.parametrize(("third", "verdict"), [(1.7780001, Verdict.KNOWN), (1.76, Verdict.MISMATCH)])
def test_a_rounded_element_does_not_bend_the_zero_beside_it(third: float, verdict: Verdict) -> None:
    """BATCH_MATMUL 4h: a row with the scale of another row is 127 times itself; a fit of all elements alike left
    1e-8 where 0 is due."""
    y = [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 7]
    case = tflite(
        "BATCH_MATMUL",
        "4h",
        {"adj_x": False, "adj_y": False},
        x={"dtype": "f32", "shape": [2, 2, 1, 1], "values": [0, 0, 0, 1]},
        y={
            "dtype": "i8",
            "shape": [2, 2, 1, 3],
            "const": True,
            "values": y,
            "quant": {"scale": [0.002], "zero_point": [0], "axis": 0},
        },
    )
    answer = np.zeros((2, 2, 1, 3), np.float32)
    answer[1, 1, 0] = (0.254, 0.0, third)
    known = "litert-hybrid-batch-matmul-two-batch-axes" if verdict is Verdict.KNOWN else None
    assert settled("litert-opt", "2.3.0", case, answer) == (verdict, known)


@pytest.mark.parametrize(("steps", "verdict"), [(0, Verdict.AGREE), (4, Verdict.KNOWN), (6, Verdict.MISMATCH)])
def test_cosine_of_a_small_argument_is_off_by_two_steps_of_1(steps: int, verdict: Verdict) -> None:
    """COS: XNNPACK is off by 4.06 ulp here, where the polynomial and the argument are each rounded."""
    x = float.fromhex("-0x1.e9b5f8p-1")
    case = tflite("COS", 1, {}, x={"dtype": "f32", "shape": [1], "values": [x]})
    answer = np.array([np.float32(float.fromhex("0x1.271f5ap-1"))]) + np.float32(steps * 2.0**-24)
    known = "xnnpack-sin-cos-large-arguments" if verdict is Verdict.KNOWN else None
    assert settled("litert-xnnpack", "2.3.0", case, answer) == (verdict, known)
