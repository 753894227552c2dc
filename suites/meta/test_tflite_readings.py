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
from suites.tflite.ops.stablehlo import body

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


def scattered(dtype: Any, fold: str, x: float, updates: list[float], answer: float) -> Verdict:
    """What is found of ``answer`` where all updates meet in the first of two elements."""
    n = len(updates)
    args = {
        "input": arg([x, 2], dtype),
        "scatter_indices": arg(np.zeros((n, 1)), np.int32),
        "updates": arg(updates, dtype),
    }
    attrs = {
        "update_window_dims": [],
        "inserted_window_dims": [0],
        "scatter_dims_to_operand_dims": [0],
        "index_vector_dim": 1,
        "update_computation_subgraph_index": body(fold, of(np.zeros((), dtype))),
    }
    return verdict("STABLEHLO_SCATTER", args, np.asarray([answer, 2], dtype), attrs)


def test_updates_of_one_element_meet_in_any_order() -> None:
    assert scattered(np.float32, "mul", 1e30, [1e30, 1e-30], INF) is Verdict.AMBIGUOUS
    assert scattered(np.float32, "mul", 1e3, [1e3, 1e-3], INF) is Verdict.MISMATCH
    assert scattered(np.float32, "mul", 1e30, [1e30], 1.0) is Verdict.MISMATCH
    assert scattered(np.float32, "minimum", NAN, [1.0], 1.0) is Verdict.AMBIGUOUS


def test_the_extreme_of_unsigned_integers_is_no_signed_one() -> None:
    assert scattered(np.uint64, "maximum", 1, [2**64 - 1], 2**64 - 1) is Verdict.AGREE


@pytest.mark.parametrize(
    ("boxes", "scores", "found"),
    [
        ([[0, 0, 1, 1], [5, 5, 6, 6]], [0.5, 0.25], Verdict.MISMATCH),
        ([[0, 0, 1, 1], [5, 5, 6, 6]], [0.5, 0.5], Verdict.AMBIGUOUS),
        ([[0, 0, 1, 1], [5, 5, 6, 6]], [0.5, NAN], Verdict.AMBIGUOUS),
        ([[0, 0, 1, 1], [5, 5, INF, 6]], [0.5, 0.25], Verdict.AMBIGUOUS),
        ([[0, 0, 1, 1], [5, 5, INF, 6]], [0.5, -1.0], Verdict.MISMATCH),
        ([[0, 0, 1e25, 1e25], [0, 0, 1e25, 1e25]], [0.5, 0.25], Verdict.AMBIGUOUS),
        ([[0, 0, 1, 1], [0, 0, 1, 2]], [0.5, 0.25], Verdict.AMBIGUOUS),
    ],
)
def test_of_boxes_only_what_no_document_says_is_open(boxes: Any, scores: Any, found: Verdict) -> None:
    """The answer takes the second box alone.  The overlap of the last two is the threshold."""
    args = {
        "boxes": arg(boxes),
        "scores": arg(scores),
        "max_output_size": arg(1, np.int32),
        "iou_threshold": arg(0.5),
        "score_threshold": arg(0.0),
    }
    inst = Instance("tflite", "NON_MAX_SUPPRESSION_V4", 1, 1, {}, args, 2)
    case = fill(registry.version_of(inst), inst)
    made = [np.int32([1]), np.int32(1)]
    assert judge_case(case, BackendInfo("toy"), [Outcome(Status.VALUE, made)]).verdict is found
