"""Values at the edges of what a page states: scalars, axes named twice, extents of 0, lists as long as i32 counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import F32, I32
from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from harness.generate.recipes import arrays_of
from suites.mil import dialect
from suites.mil.running import Items

FAR = 2**31 - 1


def _result(op: str, attrs: dict[str, Any], **args: Any) -> np.ndarray:
    inst = Instance("mil", op, "ios15", "ios15", attrs, args, 1)
    v = dialect.versions[f"mil/{op}/ios15"]
    y: np.ndarray = v.evaluate(dialect.call_of(inst, arrays_of(inst), v))[0].value
    return y


def _x(*values: float) -> Arg:
    return Arg(F32, (len(values),), values=list(values))


def test_rows_of_a_scalar_that_is_not_zero() -> None:
    assert _result("non_zero", {}, x=Arg(F32, (), values=[2.0])).shape == (1, 0)
    assert _result("non_zero", {}, x=Arg(F32, (), values=[0.0])).shape == (0, 0)


def test_axis_that_is_named_twice_is_one_dimension() -> None:
    x = Arg(F32, (2, 3), recipe="small", seed=3)
    twice, once = (_result("layer_norm", {"axes": axes}, x=x) for axes in ([1, -1], [1]))
    assert (twice == once).all()


def test_fill_has_no_extent_of_0_but_in_a_program() -> None:
    shape = Arg(I32, (2,), values=[3, 0])
    with pytest.raises(RuleError, match="extents-positive"):
        _result("fill", {"value": 1.0, "@T": "f32"}, shape=shape)
    v = dialect.versions["mil/fill/ios15"]
    inst = Instance("mil", "fill", "ios15", "ios15", {"value": 1.0, "@T": "f32"}, {"shape": shape}, 1)
    call = dialect.call_of(inst, arrays_of(inst), v)
    call.args = None  # as of a node
    assert v.evaluate(call)[0].value.shape == (3, 0)


def test_list_as_long_as_i32_counts_costs_nothing() -> None:
    attrs = {"elem_shape": [4, 3], "@read": "length"}
    assert _result("make_list", attrs, init_length=Arg(I32, (), values=[FAR])) == FAR


def test_tensor_at_a_far_place_of_a_list() -> None:
    ls = Arg(F32, (1,), kind="list", items=[_x(1.0), _x(2.0)])
    attrs: dict[str, Any] = {"@places": [2**24 + 1, 0], "@length": 2**24 + 2}
    at = Arg(I32, (), values=[2**24 + 1])
    assert _result("list_read", attrs, ls=ls, index=at).tolist() == [1.0]
    written = _result("list_write", {**attrs, "@read": "places"}, ls=ls, index=at, value=_x(5.0))
    assert written.tolist() == [5.0]
    with pytest.raises(RuleError, match="index-in-list"):
        _result("list_read", attrs, ls=ls, index=Arg(I32, (), values=[2**24 + 2]))


def test_list_of_dynamic_length_grows() -> None:
    ls = Items({}, 1, fixed=False, blank=np.zeros(2)).with_items({3: np.ones(2)})
    assert len(ls) == 4
    assert np.stack(ls).sum(1).tolist() == [0.0, 0.0, 0.0, 2.0]
    assert len(Items({}, 4, fixed=True, blank=np.zeros(2)).with_items({2: np.ones(2)})) == 4
