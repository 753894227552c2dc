"""What is not finite, in models that give scores: what has a value is judged, what no text tells has readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.instance import Instance
from harness.declare import Call, open_at
from harness.declare.expected import open_mask
from harness.generate.recipes import arrays_of
from suites.onnx import dialect

INF, NAN = float("inf"), float("nan")


def called(op: str, x: list[Any], shape: tuple[int, ...], outs: int = 1, **attrs: Any) -> Call:
    """One use of an op of ai.onnx.ml with features of f32."""
    values = [v if np.isfinite(v) else {"f": str(v)} for v in x]
    said = {"format": 1, "dialect": "onnx", "op": op, "version": 1, "opset": 21, "attrs": attrs, "outs": outs}
    inst = Instance.from_json({**said, "args": {"X": {"dtype": "f32", "shape": list(shape), "values": values}}})
    return dialect.call_of(inst, arrays_of(inst))


def judged(c: Call, i: int) -> tuple[np.ndarray, np.ndarray]:
    """(an expected result, where it is open)."""
    y = c.version.evaluate(c)[i].value
    why = c.version.underspecified(c)
    return y, np.zeros(y.shape, bool) if why is None else open_mask(c, why, i, y.shape)


def test_scores_of_infinite_features_are_judged() -> None:
    c = called("LinearRegressor", [INF, 1.0, NAN, 1.0, 2.0, 4.0], (3, 2), coefficients=[1.0, 0.5])
    y, at = judged(c, 0)
    np.testing.assert_array_equal(y[:, 0], np.array([INF, NAN, 4.0], np.float32))
    assert not at.any()


def test_sums_that_leave_f32_are_open_and_no_others() -> None:
    c = called("LinearRegressor", [3e38, 3e38, 1.0, 3e38], (2, 2), coefficients=[1.0, -1.0])
    assert judged(c, 0)[1][:, 0].tolist() == [True, False]


@pytest.mark.parametrize("x", [NAN, INF])
def test_any_label_of_the_list_may_come_where_no_score_is_the_greatest_and_no_other(x: float) -> None:
    """Scores inf, inf and -inf, or NaN.  Of -inf, -inf and inf there is one."""
    c = called("LinearClassifier", [x], (1, 1), 2, coefficients=[1.0, 2.0, -1.0], classlabels_ints=[4, 7, 9])
    why = c.version.underspecified(c)
    assert why is not None
    taken = {k: bool(open_at(c, why, 0, np.array([k], np.int64))[0]) for k in (4, 7, 9, 0)}
    ours = int(c.version.evaluate(c)[0].value[0])
    due = {4, 7, 9} if x != x else {4, 7}
    assert {k for k, ok in taken.items() if ok or k == ours} == due
    assert not open_mask(c, why, 1, (1, 3)).any()
    c = called("LinearClassifier", [-INF], (1, 1), 2, coefficients=[1.0, 2.0, -1.0], classlabels_ints=[4, 7, 9])
    assert judged(c, 0) == (np.array([9]), np.array([False]))


def test_a_machine_without_vectors_gives_rho() -> None:
    y, at = judged(called("SVMRegressor", [1.0, 2.0], (2, 1), rho=[0.75]), 0)
    assert y.tolist() == [[0.75], [0.75]]
    assert not at.any()


def test_the_kernel_of_an_infinite_distance_is_0() -> None:
    attrs: dict[str, Any] = {"support_vectors": [1.0], "coefficients": [2.0], "n_supports": 1, "rho": [0.5]}
    c = called("SVMRegressor", [INF, NAN], (2, 1), kernel_type="RBF", kernel_params=[0.5, 0.0, 1.0], **attrs)
    y, at = judged(c, 0)
    np.testing.assert_array_equal(y[:, 0], np.array([0.5, NAN], np.float32))
    assert not at.any()


def test_rows_without_a_nan_have_a_greatest_element() -> None:
    c = called("Normalizer", [1.0, NAN, 2.0, INF], (2, 2), norm="MAX")
    y, at = judged(c, 0)
    np.testing.assert_array_equal(y[1], np.array([0.0, NAN], np.float32))
    assert at.tolist() == [[True, False], [False, False]]
    why = c.version.underspecified(c)
    assert why is not None
    assert open_at(c, why, 0, np.array([[1.0, NAN], [0.0, NAN]], np.float32))[0, 0]
    assert not open_at(c, why, 0, np.array([[0.5, NAN], [0.0, NAN]], np.float32))[0, 0]
