"""Conversions that the op versions' own text leaves to another page."""

import numpy as np
import pytest

from harness.core.dtypes import BY_NAME, F8E8M0
from harness.declare import Underspecified
from suites.semantics.cast import cast


@pytest.mark.parametrize(("to", "due"), [("i8", [0, 1, 2, -3]), ("i4", [0, 2, 2, -4]), ("u4", [0, 2, 2, 12])])
def test_a_float_is_rounded_to_a_4_bit_integer(to: str, due: list[int]) -> None:
    """ONNX technical/int4, int2: to the nearest integer, ties to even, and truncating; wider integers toward zero."""
    got = cast.fn(np.array([0.5, 1.75, 2.5, -3.5], np.float32), to=BY_NAME[to])
    assert got.astype(np.int64).tolist() == due


def test_beyond_the_largest_of_float8e8m0() -> None:
    """Cast-24: without saturate, nearest makes NaN of x > E8M0_MAX; of down the table says nothing."""
    x = np.array([2.0**127, 1.25 * 2.0**127, 1.75 * 2.0**127], np.float32)
    nan, most = 0xFF, 0xFE
    due = {("nearest", False): [most, nan, nan], ("down", True): [most] * 3, ("down", False): [most] * 3}
    for (mode, saturate), bits in due.items():
        params = {"to": F8E8M0, "saturate": saturate, "round_mode": mode}
        assert cast.fn(x, **params).view(np.uint8).tolist() == bits
        why = cast.underspecified({"x": x}, params)
        masks = [np.asarray(p.at).tolist() for p in why.parts] if isinstance(why, Underspecified) else []
        assert [m for m in masks if np.any(m)] == ([[False, True, True]] if (mode, saturate) == ("down", False) else [])
