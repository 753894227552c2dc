"""What versions of an op leave open and what they state: counts of shifts, signs of zero remainders, broken factors."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.gen.data import arrays_of
from harness.gen.engine import Prng, case_seed
from harness.run.case import fill
from harness.run.judged import Profile
from harness.run.results import judge_case
from suites.onnx import dialect


def _shifted(x: int, y: int, bits: int, signed: bool, left: bool) -> int:
    if not 0 <= y < bits:
        return -1 if x < 0 and not left else 0
    if not left:
        return x >> y
    kept = (x << y) & (2**bits - 1)
    return kept - 2**bits if signed and kept >= 2 ** (bits - 1) else kept


def test_every_count_has_a_result() -> None:
    v, beyond = dialect.versions["onnx/BitShift/28"], 0
    for i in range(150):
        inst = v.draw(Prng(case_seed(8, v.key, i)))
        arrays = arrays_of(inst)
        x, y = np.broadcast_arrays(arrays["X"], arrays["Y"])
        bits, left = x.dtype.itemsize * 8, inst.attrs["direction"] == "LEFT"
        want = [_shifted(a, b, bits, x.dtype.kind == "i", left) for a, b in zip(x.ravel().tolist(), y.ravel().tolist())]
        call = dialect.call_of(inst, arrays)
        assert np.ravel(v.evaluate(call)[0].value).tolist() == want, inst.dumps()
        outside = any(not 0 <= b < bits for b in y.ravel().tolist())
        beyond += outside
        assert v.silence(call) is None
    assert beyond > 20


@pytest.mark.parametrize(
    ("a", "b", "fmod", "other"),
    [
        (0.0, -3.0, 0, Verdict.MISMATCH),  # "if x is 0 and y is nonzero, 0 with the sign of y"
        (-0.0, 3.0, 0, Verdict.MISMATCH),
        (6.0, -3.0, 0, Verdict.AMBIGUOUS),  # "the same sign as B", but 6 - -2 * -3 is +0
        (0.0, -3.0, 1, Verdict.MISMATCH),
        (-6.0, 3.0, 1, Verdict.MISMATCH),  # "the same sign as A"
        (-0.0, -3.0, 1, Verdict.MISMATCH),
        (-0.0, 3.0, 1, Verdict.AMBIGUOUS),  # "either +0 or -0 may be returned"
    ],
)
def test_the_sign_of_a_zero_remainder(a: float, b: float, fmod: int, other: Verdict) -> None:
    tensors = {n: {"dtype": "f32", "shape": [1], "values": [v]} for n, v in (("A", a), ("B", b))}
    inst = Instance.from_json({"format": 1, "dialect": "onnx", "op": "Mod", "version": 28, "opset": 28, "outs": 1,
                               "attrs": {"fmod": fmod}, "args": tensors})  # fmt: skip
    case = fill(dialect.version_of(inst), inst)
    assert case.expected is not None
    want = case.expected[0][0].value
    assert want[0] == 0
    for got, verdict in ((want, Verdict.AGREE), (-want, other)):
        assert judge_case(case, Profile("x"), [Outcome(Status.VALUE, [got], "run")]).verdict is verdict


def test_a_broken_factor_is_open_in_the_first_upsample_too() -> None:
    """It gives the extents alone; versions 7 and 9 are as silent on the coordinates."""
    v, seen = dialect.versions["onnx/Upsample/1"], set()
    for i in range(60):
        inst = v.draw(Prng(case_seed(8, v.key, i)))
        broken = any(inst.attrs[n] % 1 for n in ("height_scale", "width_scale"))
        why = v.silence(dialect.call_of(inst, arrays_of(inst)))
        assert not broken or why is not None
        seen.add(broken)
    assert seen == {True, False}


@pytest.mark.parametrize("fmod", [0, 1])
def test_the_lowest_integer_modulo_minus_one_is_0(fmod: int) -> None:
    """A - floor(A / B) * B, whatever becomes of the quotient: a wrong remainder is told."""
    tensors = {n: {"dtype": "i8", "shape": [1], "values": [v]} for n, v in (("A", -128), ("B", -1))}
    inst = Instance.from_json({"format": 1, "dialect": "onnx", "op": "Mod", "version": 28, "opset": 28, "outs": 1,
                               "attrs": {"fmod": fmod}, "args": tensors})  # fmt: skip
    case = fill(dialect.version_of(inst), inst)
    for got, verdict in ((0, Verdict.AGREE), (-1, Verdict.MISMATCH)):
        outcome = Outcome(Status.VALUE, [np.array([got], np.int8)], "run")
        assert judge_case(case, Profile("x"), [outcome]).verdict is verdict
