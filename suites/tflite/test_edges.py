"""Long, empty and extreme instances of operators that are drawn as a whole, and what their reference says."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.instance import Instance
from harness.declare import Call, registry
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.semantics.quantised.dynamic_recurrent import FLOAT, Numbers, around, error_of, rnn_error
from suites.semantics.tensorflow_recurrent import rnn as tensorflow_rnn
from suites.tflite.ends import MOST
from suites.tflite.extents import LONG
from suites.tflite.ops import recurrent

TFLITE = registry.dialect("tflite")
DRAWS = 300


def drawn(key: str) -> list[Instance]:
    return [TFLITE.versions[key].draw(Prng(case_seed(5, key, i))) for i in range(DRAWS)]


@pytest.mark.parametrize("key", ["tflite/LSTM/4", "tflite/BIDIRECTIONAL_SEQUENCE_RNN/3", "tflite/SVDF/3q"])
def test_sequences_are_empty_and_long_too(key: str) -> None:
    shapes = [inst.tensor("input").shape for inst in drawn(key)]
    assert any(0 in s for s in shapes)
    assert any(max(s) in LONG for s in shapes)


@pytest.mark.parametrize("key", ["tflite/ADD/1", "tflite/LSTM/1", "tflite/CONV_2D/1"])
def test_special_elements_stand_first_and_last(key: str) -> None:
    given = [a for inst in drawn(key) for a in inst.args.values() if not isinstance(a, list)]
    listed = [a.values for a in given if a.values is not None and 1 < len(a.values) <= MOST]
    special = [[x != x or abs(x) == np.inf for x in v] for v in listed if all(isinstance(x, float) for x in v)]
    assert any(s[0] and not s[-1] for s in special)
    assert any(s[-1] and not s[0] for s in special)


def call(key: str, **inputs: np.ndarray) -> Call:
    inst = drawn(key)[0]
    attrs = {"fused_activation_function": "RELU"}
    return TFLITE.call_of(Instance("tflite", inst.op, inst.version, 1, attrs, inst.args, 1), inputs)


def rnn(x: float, w: float) -> Call:
    one = np.ones((1, 1), np.float32)
    given = {"input": one * x, "input_weights": one * w, "recurrent_weights": one, "bias": np.zeros(1, np.float32)}
    return call("tflite/RNN/1", **given, hidden_state=np.zeros((1, 1), np.float32))


def test_the_limit_of_nan_is_open_and_a_finite_cell_is_not() -> None:
    reason = recurrent.opened(recurrent._rnn_errors)
    assert reason(rnn(np.nan, 1.0)) == recurrent.CLAMPED_NAN
    assert reason(rnn(3e38, 3e38)) == recurrent.OVERFLOWING
    assert reason(rnn(2.0, 3.0)) is None


def test_a_sum_that_may_overflow_on_its_way_has_no_bound() -> None:
    x, w = np.array([[3e38, 3e38]]), np.array([[1.0, -1.0]])
    assert np.isinf(Numbers(x).times(w, 2.0**-24).error).all()
    assert np.isinf(Numbers(x).times(w, 2.0**-24).gate(2.0**-24).error).all()
    assert Numbers(x / 1e20).times(w, 2.0**-24).error.max() < 1e13


def test_an_infinite_sum_of_one_sign_is_exact() -> None:
    y = Numbers(np.array([[np.inf, 1.0]])).times(np.array([[1.0, 2.0]]), 2.0**-24)
    assert y.value[0, 0] == np.inf
    assert y.error[0, 0] == 0


def test_the_sign_bit_is_exact_but_where_either_sign_may_be() -> None:
    z = np.zeros((1, 1, 1))
    one = np.ones((1, 1))
    assert error_of(rnn_error(z + 2.0, one, one, np.zeros(1), "SIGN_BIT", FLOAT, 2.0**-24)) == 0
    assert error_of(rnn_error(z, one, one, np.zeros(1), "SIGN_BIT", FLOAT, 2.0**-24)) == 1


def test_a_steep_recurrence_is_bounded_around_the_reference() -> None:
    """Two runs in f64 part as well, so either end of the activation's range has to lie within the bound."""
    rng = np.random.default_rng(7)
    x, w, r = rng.uniform(-1, 1, (128, 3, 2)), rng.uniform(-1, 1, (33, 2)), rng.uniform(-1, 1, (33, 33))
    start = np.zeros((3, 33))
    wide, _ = tensorflow_rnn(x, w, r, np.zeros(33), start, "RELU_N1_TO_1", np.zeros((128, 3, 1)), np.zeros((33, 1)))
    moved, _ = tensorflow_rnn(x, w, r, np.full(33, 2.0**-52), start, "RELU_N1_TO_1")
    assert np.abs(moved - wide).max() > 0.1
    found = rnn_error(x, w, r, np.full(33, 2.0**-52), "RELU_N1_TO_1", FLOAT, 2.0**-24)
    bound = around(wide, found)
    assert (np.abs(moved - wide) <= bound)[-32:].all()
    assert (np.maximum(1 - wide, wide + 1) <= bound)[-32:].all()
    assert (np.abs(moved - wide) <= 1e-6).all(axis=(1, 2))[:8].all()
    assert bound[:3].max() < 0.1


def test_weights_behind_the_memory_count_when_they_are_not_finite() -> None:
    args = {
        "input": np.ones((1, 1), np.float32),
        "feature_weights": np.ones((1, 1), np.float32),
        "time_weights": np.array([[np.nan, 1.0]], np.float32),
    }
    v = TFLITE.versions["tflite/SVDF/1"]
    made = call("tflite/SVDF/1", **args, activation_state=np.zeros((1, 2), np.float32))
    made.attrs["rank"] = 1
    tensors, params = v.decode(made)
    assert v.meaning is not None
    assert np.isnan(v.meaning.fn(**{**tensors, **params, "activation": "NONE"})).all()


def test_operands_of_many_axes_have_one_shape_and_do_not_broadcast() -> None:
    shapes = [(inst.tensor("lhs").shape, inst.tensor("rhs").shape) for inst in drawn("tflite/ADD/5")]
    assert max(len(a) for a, _ in shapes) == TFLITE.max_rank
    assert all(a == b for a, b in shapes if max(len(a), len(b)) > 5)
    assert any(a != b for a, b in shapes)


def test_the_quantised_filter_of_an_empty_batch_is_empty() -> None:
    empty = [i for i in drawn("tflite/SVDF/3q") if i.tensor("input").shape[0] == 0]
    assert empty
    assert {TFLITE.evaluate(i, arrays_of(i))[0].value.shape[0] for i in empty} == {0}


@pytest.mark.parametrize("key", ["ADD/4q", "SUB/5q", "MUL/4q", "RELU/2q", "QUANTIZE/3q"])
def test_output_scales_are_equal_and_far_apart(key: str) -> None:
    ratios = []
    for inst in drawn(f"tflite/{key}"):
        (out,) = inst.attrs["@outputs"]
        operands = [a.quant["scale"][0] for a in inst.args.values() if not isinstance(a, list) and a.quant]
        ratios.append(out["quant"]["scale"][0] / max(operands))
    near = float(np.median(ratios))
    assert 1 in ratios
    assert min(ratios) < near / 200
    assert max(ratios) > near * 50


def test_a_sum_of_several_products_may_overflow_on_its_way() -> None:
    """2e38 + 1.6e38 - 1.6e38: in one order of the terms infinite.  Of two numbers there is one order."""
    u, x, ones = 2.0**-24, Numbers(np.array([[2e38]])).times(np.array([[1.0]]), 2.0**-24), np.array([[1.0, 1.0]])
    beside = Numbers(np.array([[1.6e38, -1.6e38]])).times(ones, u)
    assert np.isfinite(beside.error).all()
    both = x.plus(beside, u)
    assert both.value[0, 0] == 2e38
    assert np.isinf(both.error).all()
    assert np.isfinite(x.plus(Numbers(np.array([[6e37, -6e37]])).times(ones, u), u).error).all()
    assert np.isfinite(Numbers(np.array([[2e38]])).plus(Numbers(np.array([[-2.5e38]])), u).error).all()
