"""The sum of an average may leave the type where the average does not."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.dtypes import F32
from harness.core.instance import Arg, Instance
from harness.declare import registry


@pytest.mark.parametrize(("padding", "large", "free"), [(1, 2e38, True), (1, 1e38, False), (0, 1.5e38, False)])
def test_a_window_whose_sum_leaves_the_type_is_free(padding: int, large: float, free: bool) -> None:
    """Of two elements of 2e38 and a cell of padding that counts: 4e38 is beyond f32, a third of it is not."""
    x = Arg(F32, (1, 1, 2), values=[large, large])
    attrs = {"kernel_shape": [3], "pads": [1, 0], "count_include_pad": padding}
    v = registry.dialect("onnx").versions["onnx/AveragePool/7"]
    (e,) = Case(v, Instance("onnx", "AveragePool", 7, 7, attrs, {"X": x}), 0).expected[0]
    assert bool(np.isinf(e.error.bound(e.context())).all()) is free
