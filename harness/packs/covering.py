"""One rtol and atol that cover the per-element bounds of an instance, for formats that know nothing finer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.quiet import quiet
from harness.declare import Expected
from harness.packs.bounds import BETWEEN, EXACT, POINTWISE, WITHIN, Rule, overflow
from native_ref import MOST

Array = np.ndarray
WIDER = 1.0 + 2.0**-9  # steps in which a tolerance grows until the reader's own arithmetic accepts every bound
STEPS = 256
SAYS = 10  # a bound above so small a part of the value says nothing, as in a run
COMPARED = frozenset(["f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "str"])


@dataclass(frozen=True)
class Covering:
    """|a - expected| <= atol + rtol * |expected| holds for every element within its derived bound.

    typical, loosest: the median and the largest factor by which the tolerance exceeds the bound of an element with a
        bound.
    exact: number of elements that must be exact, but with this tolerance others pass there, too.
    """

    rtol: float
    atol: float
    typical: float = 1.0
    loosest: float = 1.0
    exact: int = 0


@dataclass
class Uncoverable(Exception):
    """Why no rtol and atol say what is required."""

    why: str


def covering(outputs: Sequence[tuple[Expected, Rule]]) -> Covering:
    """The tightest line above the bounds of all elements, at their mean.  Raises Uncoverable."""
    sizes, bounds = [np.zeros(0)], [np.zeros(0)]
    for e, rule in outputs:
        with quiet:
            size, bound = _points(e, rule)
        sizes.append(size)
        bounds.append(bound)
    x, b = np.concatenate(sizes), np.concatenate(bounds)
    if not b.any():
        return Covering(0.0, 0.0)
    rtol, atol = _line(x, b)
    for _ in range(STEPS):
        if all(_holds(e, rule, rtol, atol) for e, rule in outputs):
            break
        rtol, atol = rtol * WIDER, atol * WIDER
    else:
        raise Uncoverable("no rtol and atol cover the bounds in the arithmetic of the element type")
    with quiet:
        allowed = atol + rtol * x
        factors = allowed[b > 0] / b[b > 0]
        blurred = (allowed > x / SAYS) & (b <= x / SAYS)
    if np.count_nonzero(blurred) > MOST * x.size:
        raise Uncoverable("one rtol and atol would say too little: the bounds differ too much")
    exact = int(np.count_nonzero((b == 0) & (allowed > 0)))
    return Covering(rtol, atol, float(np.median(factors)), float(factors.max()), exact)


def _points(e: Expected, rule: Rule) -> tuple[Array, Array]:
    """|expected| and the distance from it that is allowed, of the elements that have one."""
    if rule.name not in POINTWISE and rule.name != "container":
        raise Uncoverable(f"no bound for each element: {rule.name}")
    if rule.open is not None:
        raise Uncoverable("some elements are underspecified")
    if rule.name == "container":
        return _inside(e)
    if e.dtype.name not in COMPARED:
        raise Uncoverable(f"readers compare no {e.dtype} within a tolerance")
    value = e.value
    if rule.name == EXACT:
        x = np.zeros(value.shape) if value.dtype.kind not in "fiu" else np.abs(value.astype(np.float64))
        return x[np.isfinite(x)].ravel(), np.zeros(int(np.isfinite(x).sum()))
    wide = value.astype(np.float64)
    if rule.name == BETWEEN:
        assert rule.low is not None
        assert rule.high is not None
        return np.abs(wide).ravel(), np.maximum(wide - rule.low, rule.high - wide).ravel()
    assert rule.reference is not None
    assert rule.bound is not None
    finite = np.isfinite(rule.reference)
    near = finite & (np.abs(rule.reference) + rule.bound >= overflow(e))
    if near.any():
        raise Uncoverable("a result may be finite or infinite")
    if not np.isfinite(rule.bound).all():
        raise Uncoverable("the bound of an element is infinite")
    at = finite & np.isfinite(wide)
    return np.abs(wide[at]).ravel(), (rule.bound + np.abs(wide - rule.reference))[at].ravel()


def _inside(e: Expected) -> tuple[Array, Array]:
    """Containers are compared exactly, where their class is exact."""
    if not e.error.exact:
        raise Uncoverable("a container of rounded results")
    return np.zeros(0), np.zeros(0)


def _line(x: Array, b: Array) -> tuple[float, float]:
    """Slope and intercept, not negative, of the lowest line above all points, measured at the mean of ``x``."""
    order = np.lexsort((-b, x))
    hull: list[tuple[float, float]] = []
    for px, pb in zip(x[order].tolist(), b[order].tolist()):
        if hull and hull[-1][0] == px:
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], (px, pb)):
            hull.pop()
        hull.append((px, pb))
    mean = float(x.mean())
    slope = 0.0
    for (x0, b0), (x1, b1) in pairwise(hull):
        if x0 <= mean <= x1:
            slope = (b1 - b0) / (x1 - x0)
            break
    # an intercept below zero is none: then the steepest ray through the origin
    slope = max(slope, 0.0)
    atol = max((pb - slope * px for px, pb in hull), default=0.0)
    if atol < 0:
        atol, slope = 0.0, max(pb / px for px, pb in hull if px)
    return slope, atol


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Does b lie on or below the line from a to c?"""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def _holds(e: Expected, rule: Rule, rtol: float, atol: float) -> bool:
    """Does ``np.isclose``, in the element type, accept the results that lie at the very bounds?"""
    if rule.name not in (WITHIN, BETWEEN):
        return True
    value: Any = e.value
    if e.dtype.name == "bf16":  # which readers widen
        value = value.astype(np.float32)
    with quiet:
        return all(
            bool(np.isclose(end.astype(value.dtype), value, rtol=rtol, atol=atol, equal_nan=True).all())
            for end in edges(e, rule)
        )


def edges(e: Expected, rule: Rule) -> tuple[Array, Array]:
    """The lowest and the highest results that pass, in the element type; the expected one where it is not finite."""
    if rule.name == BETWEEN:
        assert rule.low is not None
        assert rule.high is not None
        low, high = rule.low, rule.high
        exact = np.abs(e.value.astype(np.float64)) < 2.0**53
        least, most = (np.where(exact & (x != e.value), x, e.value).astype(e.value.dtype) for x in (low, high))
        return least, most
    assert rule.reference is not None
    assert rule.bound is not None
    finite = np.isfinite(rule.reference) & np.isfinite(e.value.astype(np.float64))
    out = []
    for sign in (-1.0, 1.0):
        limit = rule.reference + sign * rule.bound
        out.append(np.where(finite, _inward(limit, sign, e.dtype), e.value).astype(e.dtype.np))
    return out[0], out[1]


def _inward(limit: Array, sign: float, d: DType) -> Array:
    """The number of the type nearest to ``limit`` that is not beyond it."""
    with quiet:
        near = limit.astype(d.np)
        beyond = (near.astype(np.float64) - limit) * sign > 0
        step = np.nextafter(near, np.asarray(-sign * np.inf, d.np))
    return np.where(beyond, step, near).astype(d.np)
