"""BitShift-28 states the result of every count; before, those below 0 or of the width and more had none."""

from __future__ import annotations

import numpy as np

from harness.gen.data import arrays_of
from harness.gen.engine import Prng, case_seed
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
