"""Ordering: argsort, top-k, unique.  NaN has no place in an order that the specs state: where it is, that is open."""

from __future__ import annotations

import numpy as np

import native_ref as native
from harness.core.dtypes import int_range, of
from harness.core.errors import RuleError
from harness.declare import (
    Any,
    Array,
    Axis,
    Context,
    Flag,
    Integer,
    Real_,
    T,
    accepted,
    exact,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from suites.semantics.bounds import has_nan
from suites.semantics.indexing.common import fixed
from suites.semantics.integers import numbers
from suites.semantics.movement.common import norm_axis

ORDERED = ("ties", "small", "unit", "wide", "ties", "special")


def _beside_nan(inputs: dict[str, object], params: dict[str, object]) -> str | None:
    """An ``ambiguous`` predicate: the lines along the axis that hold NaN."""
    x = np.asarray(inputs["x"])
    if of(x).kind != "f":
        return None
    at = np.isnan(x.astype(np.float64)).any(norm_axis(params["axis"], x.ndim), keepdims=True)  # type: ignore[arg-type]
    return underspecified("NaN has no place in the order", at)


def winners(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """the k winners in order; with sorted off, the same winners in any order"""
    axis = ctx.params["axis"]
    want = ctx.wide
    if ctx.params["sorted"] or want.size == 0:
        return np.asarray(actual) == want
    return np.sort(np.asarray(actual, np.float64), axis=axis) == np.sort(want, axis=axis)


def any_of_equals(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """the indices of the winners in order; which of equal elements comes first is not said"""
    x, axis = ctx.inputs["x"], ctx.params["axis"]
    at, want = numbers(actual), numbers(ctx.wide)
    inside = (at >= 0) & (at < x.shape[axis])
    got = np.take_along_axis(x, np.where(inside, at, 0), axis)
    expected = np.take_along_axis(x, want, axis)
    if not ctx.params.get("sorted", True):
        got, expected = np.sort(got, axis=axis), np.sort(expected, axis=axis)
    ordered = np.sort(at, axis=axis)
    once = (np.diff(ordered, axis=axis) > 0).all(axis=axis, keepdims=True)
    return inside & (got == expected) & once


@semantics(
    error=accepted(winners),
    source="ONNX TopK-1, -10, -11, -24; MIL topk iOS15-17; TFLite TOPK_V2",
    data=ORDERED,
    ambiguous=_beside_nan,
)
def topk(
    x: Real_[Array, "*d"], *, k: Integer, axis: Axis[int, "d"] = -1, largest: Flag = True, sorted: Flag = True
) -> tuple[Array, Array]:
    """The ``k`` largest (or smallest) elements along ``axis`` and their int64 indices; among equals the lower index
    wins.

    sorted: in falling (rising) order; otherwise in any order.  Raises RuleError "axis-in-range", "k-in-range".
    """
    a = norm_axis(axis, x.ndim)
    if not 0 <= k <= x.shape[a]:
        raise RuleError("k-in-range", f"k = {k} of {x.shape[a]}")
    order = native.rank(x, a, largest, k)
    return native.gather_elements(x, order, a), order


@topk.draw
def _draw_topk(d: Draw) -> dict:
    if "zero-k" in d.version.entry.sampling.tags and "axis" in d.fixed and d.chance(24):  # as many as any, of no row
        most = int_range(d.dtype("k"))[1]
        return {"x": T((0, most)), "k": most, **{n: d.fixed[n] for n in ("axis", "largest", "sorted")}}
    shape = list(d.shape(1))
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    least = 0 if "zero-k" in d.version.entry.sampling.tags else 1
    n = shape[axis] = max(least, shape[axis])
    k = d.pick((min(1, n), n, d.int(least, n)))
    return {
        "x": T(tuple(shape)),
        "k": k,
        "axis": axis,
        "largest": fixed(d, "largest", d.bool),
        "sorted": fixed(d, "sorted", d.bool),
    }


@topk.breaks("k-in-range")
def _topk_outside(d: Draw) -> dict | None:
    v = _draw_topk(d)
    if d.chance(3):
        return {**v, "k": d.pick((-1, -2, -(2**31)))}
    k = v["x"].shape[v["axis"]] + d.int(1, 3)
    return {**v, "k": k} if k < 2**31 else None


@topk.breaks("axis-in-range")
def _topk_axis(d: Draw) -> dict | None:
    if "axis" in d.fixed:
        return None
    v = _draw_topk(d)
    r = len(v["x"].shape)
    return {**v, "axis": d.pick((r, -r - 1)), "k": 1}


def _equals_free(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """indices that put x in order; equal elements in any order"""
    x, axis = ctx.inputs["x"], ctx.params["axis"]
    a = numbers(actual)
    n = x.shape[axis] if x.ndim else 1
    once = np.all(np.sort(a, axis=axis) == np.sort(ctx.wide, axis=axis), axis=axis, keepdims=True)
    got = np.take_along_axis(x, np.clip(a, 0, max(n - 1, 0)), axis)
    return (got == np.take_along_axis(x, ctx.wide.astype(np.int64), axis)) & once


@semantics(error=accepted(_equals_free), source="MIL argsort iOS15; NN argSort", data=ORDERED, ambiguous=_beside_nan)
def argsort(x: Real_[Array, "*d"], *, axis: Axis[int, "d"] = -1, descending: Flag = False) -> Real_[Array, "*d"]:
    """Indices (int32) that put ``x`` in order along ``axis``; equal elements may come in any order."""
    return native.rank(x, norm_axis(axis, x.ndim), descending).astype(np.int32)


@semantics(
    error=exact(),
    source="ONNX Unique-11; TFLite UNIQUE (first occurrence, rank 1)",
    data=ORDERED,
    ambiguous=has_nan("x"),
)
def unique(
    x: Any[Array, "*d"], *, axis: Integer | None = None, sorted: Flag = True
) -> tuple[Array, Array, Array, Array]:
    """Distinct elements (axis None: of the flattened tensor) or slices along ``axis``.

    Returns (values, index of each first occurrence, index into values of every element, counts), indices int64.
    sorted: rising, slices lexicographically; otherwise in order of first occurrence.  Raises RuleError "axis-in-range".
    """
    a = None if axis is None else norm_axis(axis, x.ndim)
    numbers = x
    if of(x).kind == "s":  # texts are ranked first
        place = {r: i for i, r in enumerate(np.sort(x, axis=None).tolist())}
        numbers = np.array([place[r] for r in x.reshape(-1).tolist()], np.int64).reshape(x.shape)
    index, inverse, counts = native.unique(numbers, a, sorted)
    values = x.reshape(-1)[index] if a is None else np.take(x, index, axis=a)
    return values, index, inverse, counts


@unique.draw
def _draw_unique(d: Draw) -> dict:
    shape = d.shape(0)
    axis = d.axis(len(shape)) if shape and "axis" in d.version.param_codecs and d.bool() else None
    if axis is not None and 0 in shape:
        shape = tuple(max(1, n) for n in shape)
    ordered = d.dtype("x").kind != "c"  # complex numbers have no order
    return {"x": T(shape), "axis": axis, "sorted": fixed(d, "sorted", lambda: ordered and d.bool())}


@unique.breaks("axis-in-range")
def _unique_axis(d: Draw) -> dict:
    shape = d.shape(1, lo=1)
    return {"x": T(shape), "axis": d.pick((len(shape), -len(shape) - 1)), "sorted": True}
