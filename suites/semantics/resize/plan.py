"""Which axes a resize changes, and how a tensor is resampled along them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import F32, of
from harness.core.errors import RuleError
from harness.tolerance import unit
from suites.semantics.movement.common import norm_axes
from suites.semantics.resize.coordinates import Axis, rounded_index, taps

Array = np.ndarray

POLICIES = ("stretch", "not_larger", "not_smaller")


def plan(
    shape: tuple[int, ...],
    sizes: Object,
    scales: Object,
    axes: Object,
    coordinates: str,
    roi: Object,
    policy: str,
) -> dict[int, Axis]:
    """The resized axes of ``shape``; sizes, scales and roi speak of ``axes`` (None: all).

    Raises RuleError "sizes-or-scales", "one-per-axis", "scales-positive", "axes-in-range", "axes-distinct".
    """
    where = norm_axes(axes, len(shape))
    if (sizes is None) == (scales is None):
        raise RuleError("sizes-or-scales", f"sizes {sizes}, scales {scales}")
    given = list(sizes if sizes is not None else scales)
    if len(given) != len(where) or (roi is not None and len(roi) != 2 * len(where)):
        raise RuleError("one-per-axis", f"{len(given)} numbers for {len(where)} axes")
    if any(v <= 0 for v in given) and scales is not None:
        raise RuleError("scales-positive", f"scales {given}")
    extents = [shape[a] for a in where]
    common = None
    if sizes is not None and policy != "stretch":
        ratios = [s / n for s, n in zip(given, extents)]
        common = min(ratios) if policy == "not_larger" else max(ratios)
    out = {}
    for k, (a, n) in enumerate(zip(where, extents)):
        start, end = (float(roi[k]), float(roi[k + len(where)])) if roi is not None else (0.0, 1.0)
        if scales is not None:
            span = end - start if coordinates == "tf_crop_and_resize" else 1.0
            scale = float(given[k])
            m = int(np.floor(n * span * scale))
        elif common is not None:
            scale, m = common, int(np.floor(common * n + 0.5))
        else:
            m = int(given[k])
            scale = m / n if n else 1.0
        out[a] = Axis(n, m, scale, start, end)
    return out


def identity(axis: Axis, coordinates: str) -> bool:
    """Is each element its own sample along an axis: no scale, and coordinates that stay?"""
    return (
        axis.n == axis.m
        and axis.scale == 1
        and coordinates != "tf_crop_and_resize"
        and (coordinates not in ("tf_half_pixel_for_nn", "offset_corners"))
    )


def apply(x: Array, axes: dict[int, Axis], coordinates: str, extrapolation: float, **filter_: Object) -> Array:
    """``x`` resampled along ``axes``; outside the region of a crop the given value."""
    wide = filter_["mode"] != "nearest"
    shape = tuple(axes[a].m if a in axes else n for a, n in enumerate(x.shape))
    if 0 in shape:  # whatever the coordinates: there may be as many as 32 bits count
        return np.zeros(shape, np.float64 if wide else x.dtype)
    y = x
    outside: Array | None = None
    for a, axis in axes.items():
        if identity(axis, coordinates):
            continue
        at = axis.positions(coordinates)
        index, weight = taps(axis, at, **filter_)
        y = native.interpolate(y, a, index, weight) if wide else np.take(y, index[:, 0], axis=a)
        if coordinates == "tf_crop_and_resize":
            off = ((at < 0) | (at > axis.n - 1)).reshape([-1 if k == a else 1 for k in range(x.ndim)])
            outside = off if outside is None else outside | off
    if wide and y is x:
        y = x.astype(np.float64)
    if outside is None:
        return y
    fill = np.asarray(extrapolation if of(y).kind == "f" else int(extrapolation)).astype(y.dtype)
    return np.where(outside, fill, y)


def filter_of(p: Mapping[str, Object]) -> Mapping[str, Object]:
    """The parameters that say how samples are weighted."""
    return {k: p[k] for k in ("mode", "nearest", "cubic_a", "exclude_outside", "antialias")}


def margin(axis: Axis, at: Array) -> Array:
    """How far a coordinate computed in f32 may be off: six roundings at its magnitude."""
    return 6 * unit(F32) * (np.abs(at) + 2 + axis.n * 1e-3)


def positional(x: Array, axes: dict[int, Axis], p: Mapping[str, Object]) -> tuple[Array, Array, float]:
    """Of an interpolation of ``x``, which is positive f64: by how much coordinates within their margin move a result,
    the sum of its sizes, and its terms and one more."""
    total, moved, count = x, np.zeros_like(x), 1.0
    for a, axis in axes.items():
        if identity(axis, p["coordinates"]):
            continue
        at = axis.positions(p["coordinates"])
        index, weight = taps(axis, at, **filter_of(p))
        near = np.clip(np.concatenate([index - 1, index, index + 1], 1), 0, axis.n - 1)
        slope = 2.0 * margin(axis, at)[:, None]
        spread = native.interpolate(total, a, near, np.broadcast_to(slope, near.shape) * 1.0)
        moved = native.interpolate(moved, a, index, np.abs(weight)) + spread
        total = native.interpolate(total, a, index, np.abs(weight))
        count += index.shape[1]
    return moved, total, count


def unsettled(axis: Axis, coordinates: str, how: str) -> Array:
    """Per output position the other element that a coordinate off by its margin would choose; -1 for none."""
    at = axis.positions(coordinates)
    base = np.clip(rounded_index(at, how), 0, axis.n - 1)
    out: Array = np.full(axis.m, -1, np.int64)
    if axis.exact(coordinates):
        return out
    for sign in (-1, 1):
        other = np.clip(rounded_index(at + sign * margin(axis, at), how), 0, axis.n - 1)
        out = np.where(other != base, other.astype(np.int64), out)
    return out
