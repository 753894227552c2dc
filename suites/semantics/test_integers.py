"""Integers of floats: the same on every processor, whatever its instruction gives of NaN and of what does not fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import native_ref
from harness.core.dtypes import of
from harness.core.instance import Arg
from harness.generate.recipes import materialize
from suites.semantics.indexing.order import _equals_free, any_of_equals
from suites.semantics.integers import numbers, places, whole
from suites.semantics.quantised import fixed
from suites.semantics.reduction import _exponential_beyond, any_winner, reduce_l2

ODD = [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**63, -(2.0**63), 1.75, -1.75]
TOP, LOW = 2**63 - 1, -(2**63)


def test_places_beyond_the_type_are_its_ends() -> None:
    assert places(ODD).tolist() == [0, TOP, LOW, TOP, LOW, TOP, LOW, 1, -1]
    assert places(np.float64(np.nan)).shape == ()


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        (np.int64, [0, TOP, LOW, TOP, LOW, TOP, LOW, 1, -1]),
        (np.uint64, [0, 2**64 - 1, 2**63, 2**64 - 1, 2**63, 2**63, 2**63, 1, 2**64 - 1]),
        (np.int8, [0, -1, 0, -1, 0, -1, 0, 1, -1]),
        (np.uint8, [0, 255, 0, 255, 0, 255, 0, 1, 255]),
        (ml_dtypes.uint4, [0, 15, 0, 15, 0, 15, 0, 1, 15]),
    ],
)
def test_whole_keeps_the_low_bits_of_what_64_hold(kind: type, want: list[int]) -> None:
    assert [int(v) for v in whole(ODD, np.zeros(0, kind))] == want


def test_the_upper_half_of_u64_is_held() -> None:
    x = np.array([3 << 62, 0], np.uint64)
    assert reduce_l2.fn(x, axes=[0], keepdims=False) == 3 << 62


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_is_no_integer_is_no_index(kind: type) -> None:
    got: np.ndarray = np.array([2.0, 0.5, np.nan, np.inf, -np.inf, -1.0], kind)
    assert numbers(got).tolist() == [2, -1, -1, -1, -1, -1]
    assert numbers(np.array([2**64 - 1, 5], np.uint64)).tolist() == [-1, 5]


@pytest.mark.parametrize("bad", [np.nan, 0.5, np.inf])
@pytest.mark.parametrize("accepts", [any_winner, any_of_equals, _equals_free])
def test_a_float_that_is_no_index_is_not_accepted(accepts: Any, bad: float) -> None:
    """NaN becomes 0 on Arm, and 0.5 everywhere: here the right index."""
    ctx: Any = SimpleNamespace(inputs={"x": np.array([3.0, 2.0, 1.0])}, params={"axis": 0}, wide=np.arange(3.0))
    if accepts is any_winner:
        ctx.wide = np.array([0.0])
    right = np.asarray(ctx.wide, np.float32)
    wrong = right.copy()
    wrong[0] = bad
    assert np.all(accepts(ctx, right))
    assert not np.any(accepts(ctx, wrong)[:1])


def test_literals_that_a_retyped_instance_cannot_hold_are_the_same_everywhere() -> None:
    arg = Arg(of(np.zeros(0, np.uint8)), (4,), values=[-2.5, 300.0, np.inf, 1e30])
    assert materialize(arg).tolist() == [254, 44, 1, 255]


@pytest.mark.parametrize(
    ("kind", "rows", "free"),
    [
        (np.uint32, [[709, 0], [710, 0], [709, 709]], [False, True, False]),
        (np.int64, [[-2000, -1999], [0, 2000], [1, 2]], [False, True, False]),
        (np.float32, [[2000, 0]], None),
    ],
)
def test_exponentials_of_integers_beyond_double_are_open(
    kind: type, rows: list[list[int]], free: list[bool] | None
) -> None:
    why = _exponential_beyond({"x": np.array(rows, kind)}, {"axes": [1], "keepdims": False})
    assert (why is None) == (free is None)
    if free is not None:
        ((mask, part),) = why.masks(0)  # type: ignore[union-attr]
        assert mask.tolist() == free
        assert part.readings == ()


def test_both_sides_of_a_multiplier_say_the_same() -> None:
    none = [np.nan, np.inf, -np.inf, 0.0, -0.0, -0.5, -1e300, 2.0**-40]
    scales = np.array([*none, 2.0**-32, 1 / 3, 1 - 2.0**-40, 1.0, 3.0])
    m, e = fixed.multiplier(scales)
    assert m[:8].tolist() == e[:8].tolist() == [0] * 8
    acc = np.full(len(scales), 1000)
    got = native_ref.requantise(acc, scales, 0, (-(2**31), 2**31 - 1), np.int32)
    assert (np.abs(got - 1000 * np.ldexp(m / 2.0**31, e)) <= (m > 0)).all()  # two roundings
