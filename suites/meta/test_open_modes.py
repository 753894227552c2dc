"""Modes of which the text leaves a part open: what it decides is judged, what it leaves open has its readings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.core.instance import Arg
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo
from suites.onnx import dialect

BACKEND = BackendInfo("some", "1", formats=("onnx",))


def drawn(key: str, n: int, wanted: Callable[[Any], Any]) -> Iterator[Case]:
    v, found = dialect.versions[key], 0
    for i in range(n):
        case = Case(v, v.draw(Prng(case_seed(31, key, i))), i)
        x = case.inst.args.get("X")
        rows = not isinstance(x, Arg) or (len(x.shape) > 1 and 0 not in x.shape)  # a row to judge
        if rows and wanted(case.inst) and case.expected is not None:
            found += 1
            yield case
    assert found >= 5


def verdict(case: Case, *outputs: Any) -> Verdict:
    return judge_case(case, BACKEND, [Outcome(Status.VALUE, list(outputs))], Ledger()).verdict


def values(case: Case) -> list[Any]:
    assert case.expected is not None
    return [e.value for e in case.expected[0]]


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def scores(case: Case) -> np.ndarray:
    x, attrs = case.draws[0]["X"].astype(np.float64), case.inst.attrs
    return x @ np.array(attrs["coefficients"]).reshape(-1, x.shape[1]).T + np.array(attrs["intercepts"])


def test_multinomial_scores_are_raw_or_a_softmax_and_the_label_is_judged() -> None:
    seen = 0
    for case in drawn("onnx/LinearClassifier/1", 150, lambda i: i.attrs.get("multi_class") == 1):
        label, z = values(case)
        how = case.inst.attrs.get("post_transform", "NONE")
        assert verdict(case, label, z) is not Verdict.MISMATCH
        assert verdict(case, label, softmax(scores(case))) is not Verdict.MISMATCH
        assert verdict(case, label, z + np.float32(0.25)) is Verdict.MISMATCH
        seen += how != "SOFTMAX"
        wrong = label.copy()
        names = case.inst.attrs.get("classlabels_ints") or case.inst.attrs["classlabels_strings"]
        if len(set(names)) > 1:
            wrong[0] = next(n for n in names if n != label[0])
            assert verdict(case, wrong, z) is Verdict.MISMATCH
    assert seen


def test_scores_of_one_against_the_rest_are_no_softmax() -> None:
    for case in drawn(
        "onnx/LinearClassifier/1",
        150,
        lambda i: i.attrs.get("multi_class") == 0 and i.attrs.get("post_transform", "NONE") == "NONE",
    ):
        label, _ = values(case)
        assert verdict(case, label, softmax(scores(case))) is Verdict.MISMATCH


def test_a_one_class_machine_gives_the_sign_and_not_the_decision_function() -> None:
    seen = set()
    for case in drawn(
        "onnx/SVMRegressor/1",
        300,
        lambda i: i.attrs.get("one_class") == 1 and i.attrs.get("post_transform", "NONE") == "NONE",
    ):
        (y,) = values(case)
        seen |= set(y.ravel().tolist())
        assert verdict(case, y) is not Verdict.MISMATCH
        assert verdict(case, y * np.float32(1.5)) is Verdict.MISMATCH
        if case.ambiguous is None and case.underspecified is None:
            assert verdict(case, -y) is Verdict.MISMATCH
    assert seen == {-1.0, 1.0}


def test_a_transformed_sign_may_be_left_as_it_is() -> None:
    for case in drawn(
        "onnx/SVMRegressor/1",
        300,
        lambda i: i.attrs.get("one_class") == 1 and i.attrs.get("post_transform") == "LOGISTIC",
    ):
        (y,) = values(case)
        sign = np.where(y > 0.5, 1, -1).astype(np.float32)
        assert np.allclose(y, 1 / (1 + np.exp(-sign)))
        assert verdict(case, sign) is not Verdict.MISMATCH
        assert verdict(case, 1 - y) is Verdict.MISMATCH or case.underspecified


def unpooled(x: np.ndarray, index: np.ndarray, counted: list[int], shape: list[int]) -> np.ndarray:
    flat = np.zeros(int(np.prod(counted)), x.dtype)
    for i, v in zip(index.ravel(), x.ravel()):
        flat[i] = v
    out = np.zeros(shape, x.dtype)
    out[tuple(map(slice, counted))] = flat.reshape(counted)
    return out


def test_pads_are_ignored_where_the_output_shape_is_given() -> None:
    kinds = set()
    for case in drawn("onnx/MaxUnpool/22", 300, lambda i: "output_shape" in i.args):
        a, attrs = case.draws[0], case.inst.attrs
        strides = attrs.get("strides") or [1] * len(attrs["kernel_shape"])
        covered = [(n - 1) * t + k for n, t, k in zip(a["X"].shape[2:], strides, attrs["kernel_shape"])]
        shape = [int(v) for v in a["output_shape"]]
        counted = [*shape[:2], *map(min, covered, shape[2:])]
        # numpy.testing compares NaN of bfloat16 as numbers
        assert np.array_equal(values(case)[0], unpooled(a["X"], a["I"], counted, shape), equal_nan=True)
        assert verdict(case, unpooled(a["X"], a["I"], counted, shape)) is not Verdict.MISMATCH
        assert verdict(case, unpooled(a["X"], a["I"], shape, shape)) is not Verdict.MISMATCH  # counted in the whole
        kinds |= {(n > c) - (n < c) for n, c in zip(shape[2:], covered)}
        moved = np.roll(values(case)[0], 1)
        if counted == shape and not np.array_equal(moved, values(case)[0], equal_nan=True):
            assert verdict(case, moved) is Verdict.MISMATCH
    assert kinds == {-1, 0, 1}
