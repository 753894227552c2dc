"""Conversions that the op versions' own text leaves to another page."""

import numpy as np
import pytest

from harness.core.dtypes import BY_NAME
from suites.semantics.cast import cast


@pytest.mark.parametrize(("to", "due"), [("i8", [0, 1, 2, -3]), ("i4", [0, 2, 2, -4]), ("u4", [0, 2, 2, 12])])
def test_a_float_is_rounded_to_a_4_bit_integer(to: str, due: list[int]) -> None:
    """ONNX technical/int4, int2: to the nearest integer, ties to even, and truncating; wider integers toward zero."""
    got = cast.fn(np.array([0.5, 1.75, 2.5, -3.5], np.float32), to=BY_NAME[to])
    assert got.astype(np.int64).tolist() == due
