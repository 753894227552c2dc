"""TFLite results that leave the range of f32 on their way: the readings count there, and nothing else is open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.dtypes import of
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.workers.info import BackendInfo

INF, NAN = np.inf, np.nan


def arg(x: Any, dtype: Any = np.float32, const: bool = False) -> Arg:
    a = np.asarray(x, dtype)
    return Arg(of(a), a.shape, const, values=a.ravel().tolist())


def verdict(op: str, args: dict[str, Arg], answer: Any, attrs: dict[str, Any] | None = None) -> Verdict:
    inst = Instance("tflite", op, 1, 1, attrs or {}, args, 1)
    case = fill(registry.version_of(inst), inst)
    assert case.expected, case.problem
    with quiet:
        made = np.asarray(answer).astype(case.expected[0][0].value.dtype)
        return judge_case(case, BackendInfo("toy"), [Outcome(Status.VALUE, [made])]).verdict


PRODUCT = {
    "input": arg([[1e30, 2.0], [1e30, 3.0], [1e-30, 4.0]]),
    "segment_ids": arg([0, 0, 0], np.int32),
    "num_segments": arg(1, np.int32),
}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([[1e30, 24]], Verdict.AGREE),
        ([[INF, 24]], Verdict.AMBIGUOUS),
        ([[NAN, 24]], Verdict.MISMATCH),
        ([[2e30, 24]], Verdict.MISMATCH),
        ([[INF, 25]], Verdict.MISMATCH),
    ],
)
def test_a_product_is_exact_or_rounded_after_each_row(answer: Any, found: Verdict) -> None:
    assert verdict("UNSORTED_SEGMENT_PROD", PRODUCT, answer) is found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([[1.0], [2.0]], Verdict.AGREE),
        ([[INF], [2.0]], Verdict.AMBIGUOUS),
        ([[0.0], [2.0]], Verdict.MISMATCH),
        ([[INF], [INF]], Verdict.MISMATCH),
    ],
)
def test_weighted_rows_are_exact_or_rounded_after_each_operation(answer: Any, found: Verdict) -> None:
    """The square of the first weight is too small for f32."""
    args = {
        "ids": arg([0, 1], np.int32),
        "indices": arg([[0, 0], [1, 0]], np.int32),
        "dense_shape": arg([2, 1], np.int32),
        "weights": arg([1e-30, 1.0]),
        "value": arg([[1.0], [2.0]]),
    }
    assert verdict("EMBEDDING_LOOKUP_SPARSE", args, answer, {"combiner": "SQRTN"}) is found


def complexes(*parts: tuple[float, float]) -> np.ndarray:
    out = np.zeros(len(parts), np.complex64)
    out.real, out.imag = zip(*parts)
    return out


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (((INF, NAN), (INF, NAN)), ((3, 0), (-1, 0)), Verdict.AMBIGUOUS),
        (((INF, 0), (INF, 0)), ((3, 0), (-1, 0)), Verdict.AGREE),
        (((INF, 0), (INF, 1)), ((3, 0), (-1, 0)), Verdict.MISMATCH),
        (((5, 0), (INF, 0)), ((3, 0), (-1, 0)), Verdict.MISMATCH),
        (((INF, 0), (INF, 0)), ((4, 0), (-1, 0)), Verdict.MISMATCH),
    ],
)
def test_a_transform_with_an_infinity_opens_its_own_window(first: Any, second: Any, found: Verdict) -> None:
    args = {"input": arg([[[INF, 2.0]], [[1.0, 2.0]]]), "fft_length": arg([1, 2], np.int32, True)}
    answer = np.stack([complexes(*first), complexes(*second)])[:, None]
    assert verdict("RFFT2D", args, answer) is found
