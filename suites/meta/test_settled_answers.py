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
def test_a_rounded_element_does_not_bend_the_zero_next_to_it(third: float, verdict: Verdict) -> None:
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


def attention(outs: int, attrs: dict[str, Any], **args: dict[str, Any]) -> Case:
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": "Attention",
            "version": 24,
            "opset": 24,
            "outs": outs,
            "attrs": attrs,
            "args": args,
        }
    )
    return fill(registry.version_of(inst), inst)


@pytest.mark.parametrize(
    ("heads", "verdict"), [([[0, 0.5], [1, 0.5]], Verdict.KNOWN), ([[0, 0.25], [1, 0.5]], Verdict.MISMATCH)]
)
def test_values_of_the_next_positions_are_read_for_a_shared_head(heads: list[list[float]], verdict: Verdict) -> None:
    """Attention in f16 of three axes, ONNX Runtime 1.24.4: the mean of the second key and of the next batch's first."""
    q = {"dtype": "f16", "shape": [2, 1, 2], "values": [0, 0, 0, 0]}
    k = {"dtype": "f16", "shape": [2, 2, 1], "values": [0, 0, 0, 0]}
    v = {"dtype": "f16", "shape": [2, 2, 1], "values": [0, 0, 1, 1]}
    case = attention(1, {"q_num_heads": 2, "kv_num_heads": 1}, Q=q, K=k, V=v)
    answer = np.array(heads, np.float16)[:, None]
    known = "ort-old-attention-f16-groups" if verdict is Verdict.KNOWN else None
    assert settled("onnxruntime", "1.24.4", case, answer) == (verdict, known)


@pytest.mark.parametrize(
    ("y", "verdict"), [(0.6200681056862248, Verdict.KNOWN), (0.6200691056862248, Verdict.MISMATCH)]
)
def test_the_scale_of_f32_meets_the_mask_before_the_cap(y: float, verdict: Verdict) -> None:
    """Attention in f64, ONNX Runtime 1.24.4: both are defects of the function body, and one answer shows both."""
    one = {"dtype": "f64", "shape": [1, 1, 1, 1]}
    tensors = {n: {**one, "values": [v]} for n, v in (("Q", 1), ("K", 0), ("V", 0), ("past_key", 1), ("past_value", 1))}
    case = attention(4, {"scale": 0.5, "softcap": 2.0, "qk_matmul_output_mode": 1}, **tensors)
    rows = [e.value for e in case.expected[0]]
    rows[0] = np.full((1, 1, 1, 1), y)
    rows[3] = np.array([0.4999999828857291, 0.0]).reshape(1, 1, 1, 2)
    info = BackendInfo("onnxruntime", version="1.24.4")
    assert judge_case(case, info, [Outcome(Status.VALUE, rows, "run")], load_ledger()).verdict is verdict
