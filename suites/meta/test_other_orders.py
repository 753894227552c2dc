"""What an implementation may give that rounds, multiplies or divides in another order or type than the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.compare import judge
from harness.core.dtypes import BF16, F16, F32, I64, U16
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import Underspecified
from harness.generate.recipes import arrays_of
from suites.onnx import dialect as onnx
from suites.semantics.cast import cast_complex
from suites.semantics.stablehlo import reduce_window
from suites.tflite import dialect as tflite


def expected_of(dialect: Any, inst: Instance) -> Any:
    with np.errstate(all="ignore"):
        return dialect.evaluate(inst, arrays_of(inst))


def verdict(expected: Any, values: Any) -> Verdict:
    return judge(expected, Outcome(Status.VALUE, [values])).verdict


@pytest.mark.parametrize(("x", "free"), [([4.0, 3e38, 0.25, 0.5], True), ([2.0, 1e38, 0.25, 0.5], False)])
def test_a_product_of_a_window_may_overflow_on_its_way(x: list[float], free: bool) -> None:
    """StableHLO reduce: the order of the reductions is left to the implementation."""
    args: Any = {
        "input": Arg(F32, (4,), values=x),
        "init_value": Arg(F32, (), values=[1.0], const=True),
        **{
            name: Arg(I64, (1,), values=[n], const=True)
            for name, n in (("window_shape", 4), ("window_strides", 1), ("window_dilations", 1))
        },
    }
    inst = Instance("tflite", "REDUCE_WINDOW", 1, 1, {"reduce_function": "MUL"}, args, 1)
    (e,) = expected_of(tflite, inst)
    assert np.isfinite(e.value).all()
    assert (verdict([e], np.full_like(e.value, np.inf)) is Verdict.MISMATCH) != free


def test_zero_meets_an_infinity_in_a_window() -> None:
    """0 * inf on the way is NaN, where a product overflows before the 0 has its turn."""
    p = {"fold": "mul", "size": [3], "strides": [1], "base": [1], "dilations": [1], "pads": [(0, 0)]}
    start = np.ones((), np.float32)
    for x, open_ in (([0.0, 3e38, 2.0], True), ([0.0, 3e38, 1.0], False)):
        why = reduce_window.underspecified({"x": np.array(x, np.float32), "start": start}, p)
        assert (why is not None) == open_


@pytest.mark.parametrize(("version", "free"), [("21", True), ("23", False)])
def test_the_type_of_a_division_is_stated_from_version_23_on(version: str, free: bool) -> None:
    """2152 / 0.625 is 3443.2: f16 holds 3444, f32 gives 3443.  QuantizeLinear-23: "The type of y_scale determines the
    precision of the division operation"."""
    args: Any = {
        "x": Arg(F16, (1,), values=[2152.0]),
        "y_scale": Arg(F16, (), values=[0.625]),
        "y_zero_point": Arg(U16, (), values=[0]),
    }
    inst = Instance("onnx", "QuantizeLinear", int(version), int(version), {}, args, 1)
    (e,) = expected_of(onnx, inst)
    assert e.value.tolist() == [3444]
    why = onnx.versions[f"onnx/QuantizeLinear/{version}"].underspecified(onnx.call_of(inst, arrays_of(inst)))
    assert (why is not None) == free
    if isinstance(why, Underspecified):
        assert [r.tolist() for p in why.parts for r in p.readings] == [[3443]]


def test_a_weight_that_underflows_may_come_back() -> None:
    """Scores of 3.55e9 that differ by 2.8e3 are one number in bfloat16: each may get the weight 0.5, and none 1.5."""
    q = Arg(F32, (1, 1, 1, 1), values=[1.0])
    k = Arg(F32, (1, 1, 2, 1), values=[3.55211589e9, 3.55211306e9])
    v = Arg(F32, (1, 1, 2, 1), values=[1.0, 0.0])
    attrs = {"qk_matmul_output_mode": 3, "scale": 1.0, "softmax_precision": BF16}
    inst = Instance("onnx", "Attention", 23, 23, attrs, {"Q": q, "K": k, "V": v}, 4)
    expected = expected_of(onnx, inst)
    y, weights = expected[0], expected[3]
    assert weights.value.ravel().tolist() == [1.0, 0.0]
    for half, fits in ((0.5, True), (1.5, False)):
        given = [np.full_like(y.value, half), expected[1].value, expected[2].value, np.full_like(weights.value, half)]
        assert (judge(expected, Outcome(Status.VALUE, given)).verdict is Verdict.MISMATCH) != fits


def test_a_cast_to_bfloat16_by_way_of_f32() -> None:
    """-8773011869540076335 is just below the middle of two numbers, f32 rounds it to the middle."""
    x = np.array([-8773011869540076335, 3804218925426246282], np.int64)
    why = cast_complex.underspecified({"x": x}, {"to": BF16})
    assert isinstance(why, Underspecified)
    assert [np.asarray(p.at).tolist() for p in why.parts] == [[True, False]]
