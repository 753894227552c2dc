"""Reductions, running sums, positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from suites.nn.definition.common import Array, axis_of, check, layer


def _over(x: Array, axes: tuple[int, ...], fn: Callable[[list[float]], float], keep: bool) -> Array:
    """fn of the list of elements of every group."""
    rest = [a for a in range(x.ndim) if a not in axes]
    moved = x.transpose(*rest, *axes).reshape([x.shape[a] for a in rest] + [-1])
    flat = moved.reshape(-1, moved.shape[-1])
    out = np.array([fn(row.tolist()) for row in flat])
    return out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)] if keep else [x.shape[a] for a in rest])


def _sum(v: list[float]) -> float:
    return math.fsum(v) if all(map(math.isfinite, v)) else float(np.sum(v))


def _log(v: float) -> float:
    return float(np.log(np.float64(v)))


def _log_sum_exp(v: list[float]) -> float:
    m = max(v)
    if any(map(math.isnan, v)) or math.isinf(m):
        return m if not any(map(math.isnan, v)) else float("nan")
    return m + math.log(math.fsum(math.exp(t - m) for t in v))


def _product(v: list[float]) -> float:
    out = np.float64(1.0)
    for t in v:
        out *= t
    return float(out)


def _extreme(pick: Callable[[list[float]], float]) -> Callable[[list[float]], float]:
    return lambda v: float("nan") if any(map(math.isnan, v)) else pick(v)


_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {
    "reduceSum": _sum,
    "reduceMean": lambda v: _sum(v) / len(v),
    "reduceProd": _product,
    "reduceSumSquare": lambda v: _sum([t * t for t in v]),
    "reduceL1": lambda v: _sum([abs(t) for t in v]),
    "reduceL2": lambda v: math.sqrt(_sum([t * t for t in v])),
    "reduceMax": _extreme(max),
    "reduceMin": _extreme(min),
    "reduceLogSum": lambda v: _log(_sum(v)),
    "reduceLogSumExp": _log_sum_exp,
}


def _nd(fn: Callable[[list[float]], float]) -> Callable[..., Array]:
    def run(p: Any, x: Array) -> Array:
        check(p.reduceAll or len(p.axes) > 0, "neither axes nor reduceAll")
        axes = tuple(range(x.ndim)) if p.reduceAll else tuple(axis_of(a, x.ndim) for a in p.axes)
        check(len(set(axes)) == len(axes), "an axis twice")
        return _over(x, axes, fn, p.keepDims)

    return run


for _name, _fn in _FUNCTIONS.items():
    layer(_name)(_nd(_fn))

_OLD = (
    "reduceSum",
    "reduceMean",
    "reduceProd",
    None,
    "reduceSumSquare",
    "reduceL1",
    "reduceL2",
    "reduceMax",
    "reduceMin",
)
_REGION = ((-3, -2, -1), (-2, -1), (-3,), (-2,), (-1,))


@layer("reduce")
def reduce(p: Any, x: Array) -> Array:
    """The ten operations over CHW, HW, C, H or W; the rank stays."""
    axes = tuple(axis_of(a, x.ndim) for a in _REGION[p.axis])
    if p.mode == 9:
        check(len(axes) == 1, "argmax over more than one axis")
        return _over(x, axes, lambda v: float(v.index(max(v))), True)
    name = _OLD[p.mode]
    if name is None:
        eps = p.epsilon or float(np.float32(1e-6))
        return _over(x, axes, lambda v: _sum([_log(t + eps) for t in v]), True)
    return _over(x, axes, _FUNCTIONS[name], True)


def _position(pick: Callable[[list[float]], float]) -> Callable[..., Array]:
    def run(p: Any, x: Array) -> Array:
        a = axis_of(p.axis, x.ndim)
        return _over(x, (a,), lambda v: float(v.index(pick(v))), not p.removeDim)

    return run


layer("argMax")(_position(max))
layer("argMin")(_position(min))


@layer("cumSum")
def cum_sum(p: Any, x: Array, axis: Array | None = None) -> Array:
    """Running sum along an axis; without the final one, or from the end."""
    a = axis_of(p.axis if axis is None else int(axis.item()), x.ndim)
    y = np.moveaxis(x, a, 0)
    y = y[::-1] if p.reverse else y
    out = np.zeros_like(y)
    for i in range(len(y)):
        out[i] = y[: i if p.excludeFinalSum else i + 1].sum(0)
    return np.moveaxis(out[::-1] if p.reverse else out, 0, a)
