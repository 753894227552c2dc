"""What the specifications leave open of a resize: the elements, and what may stand there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError
from harness.declare import Part, Underspecified, beside, gathered, underspecified
from harness.tolerance import unit
from suites.semantics.resize.coordinates import Axis, rounded_index, taps
from suites.semantics.resize.plan import apply, filter_of, identity, margin, plan, positional, unsettled

Array = np.ndarray
Axes = dict[int, Axis]
_NO_WEIGHT = "exclude_outside and a nearest element outside"


def silent(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Coordinates that a text states in two ways, integers that it does not round, and what is not finite."""
    x, p = inputs["x"], params
    if of(x).kind not in "fiu":
        places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
        loose = silent({**inputs, "x": places}, params)
        if p["coordinates"] == "tf_crop_and_resize":  # what is filled in outside is no place
            return underspecified(str(loose), np.True_) if loose else None
        return _by_places(x, loose) if isinstance(loose, Underspecified) else None
    roi = inputs.get("roi") if p["coordinates"] == "tf_crop_and_resize" else None
    try:
        axes = plan(x.shape, p["sizes"], p["scales"], p["axes"], p["coordinates"], roi, p["policy"])
    except RuleError:
        return None
    if any(axes[a].m == 0 if a in axes else n == 0 for a, n in enumerate(x.shape)):
        return None  # no element of which something is open
    with np.errstate(all="ignore"):
        return gathered(
            *(open_(x, p, axes) for open_ in (_coordinates, _boundaries, _not_finite, _overflow, _excluded))
        )


def _by_places(x: Array, loose: Underspecified) -> Underspecified | None:
    """What is open of elements that are no numbers: each reading names a place in ``x``."""

    def part(p: Part) -> Underspecified | None:
        places = p.readings[:1] if p.why == _NO_WEIGHT else p.readings  # the others of that are numbers
        held = [x.reshape(-1)[np.clip(np.asarray(r), 0, x.size - 1).astype(np.int64)] for r in places]
        if p.why == _NO_WEIGHT:
            held.append(np.zeros_like(held[0]))
        return underspecified(p.why, np.True_ if p.at is None else p.at, *held)

    return gathered(*(part(p) for p in loose.parts)) if x.size else None


def _resampled(x: Array, p: dict[str, Object], axes: Axes) -> Array:
    return apply(x, axes, p["coordinates"], p["extrapolation"], **filter_of(p))


def _coordinates(x: Array, p: dict[str, Object], axes: Axes) -> str | None:
    """The factor of an axis, or that of its extents after rounding; antialias need not share that of the coordinates.

    Source: ONNX Resize-18: "scale = length_resized / length_original" is said of coordinates; antialias stretches the
    filter "by a factor max(1, 1 / scale)".
    """
    if p["policy"] != "stretch" and any(v.n and v.scale != v.m / v.n for v in axes.values()):
        why = "keep_aspect_ratio_policy: common factor or ratio of the rounded extents"
    elif p["coordinates"] == "align_corners" and any(v.m > 1 and v.length != v.m for v in axes.values()):
        why = "align_corners by a factor: corners of the extent before or after rounding down"
    else:
        return None
    other = {a: replace(v, scale=v.m / v.n) if v.n and v.m else v for a, v in axes.items()}  # 0 comes of no element
    if p["coordinates"] == "tf_crop_and_resize":  # by the extents, as the reference has it, or by the factor
        other = {a: replace(v, end=_end(v)) for a, v in axes.items()}
    if p["mode"] == "nearest":
        return underspecified(why, np.True_, *_choices(x, p, other))
    mixed = {a: replace(v, filter_scale=axes[a].scale) for a, v in other.items()}
    readings = [_resampled(x, p, r) for r in ([other, mixed] if p["antialias"] else [other])]
    if of(x).kind in "iu":
        return gathered(*(beside(why, real, 2.0**-12, of(x)) for real in readings))
    return underspecified(why, np.True_, *readings, within=_blur(x, p, other))


def _end(axis: Axis) -> float:
    """The end of a region of which the extent before rounding is the length of the result."""
    length = axis.n * axis.scale
    return axis.start + (axis.end - axis.start) * (axis.m - 1) / (length - 1) if length != 1 else axis.end


def _excluded(x: Array, p: dict[str, Object], axes: Axes) -> str | None:
    """The nearest element lies outside, where it weighs 0: no other is there "so that their sum is 1.0" (Resize-11)."""
    if p["mode"] != "nearest" or not p["exclude_outside"]:
        return None
    out: Object = np.False_
    for k, v in axes.items():
        at = v.positions(p["coordinates"])
        off = margin(v, at)
        low, high = rounded_index(at - off, p["nearest"]), rounded_index(at + off, p["nearest"])
        outside = np.asarray((low < 0) | (high >= v.n))
        out = out | outside.reshape(*(1,) * k, -1, *(1,) * (x.ndim - 1 - k))
    if not np.any(out):
        return None
    held = _resampled(x, {**p, "exclude_outside": False}, axes)  # the nearest has no weight to set to 0
    readings = [held, np.zeros_like(held)]  # or nothing is weighed
    if of(x).kind == "f":
        readings.append(np.full_like(held, np.nan))  # 0 / 0
    return underspecified(_NO_WEIGHT, out, *readings)


def _boundaries(x: Array, p: dict[str, Object], axes: Axes) -> str | None:
    """Integers, of which the nearest has no bound, and infinities, which no bound covers."""
    if of(x).kind == "f" and (p["mode"] != "nearest" or np.isfinite(x.astype(np.float64)).all()):
        return None
    if p["mode"] != "nearest":
        why = "integers interpolated: the op set names no rounding"
        return beside(why, _resampled(x.astype(np.float64), p, axes), 2.0**-12, of(x))
    at: Object = np.False_
    for k, v in axes.items():
        near = np.asarray(unsettled(v, p["coordinates"], p["nearest"]) >= 0)
        at = at | near.reshape(*(1,) * k, -1, *(1,) * (x.ndim - 1 - k))
    if not np.any(at):
        return None
    return underspecified("a coordinate next to a rounding boundary", at, *_choices(x, p, axes))


def _choices(x: Array, p: dict[str, Object], axes: Axes) -> Iterator[Array]:
    """The nearest elements, with every choice along the axes of which a coordinate lies next to a rounding boundary."""
    moved = {a: v for a, v in axes.items() if not identity(v, p["coordinates"])}
    others = {a: unsettled(v, p["coordinates"], p["nearest"]) for a, v in moved.items()}
    loose = [a for a, o in others.items() if (o >= 0).any()]
    outside = _outside(x, p, axes)
    for choice in range(1 << len(loose)):
        y = x
        for a, v in moved.items():
            at = np.clip(rounded_index(v.positions(p["coordinates"]), p["nearest"]), 0, v.n - 1).astype(np.int64)
            if a in loose and choice >> loose.index(a) & 1:
                at = np.where(others[a] >= 0, others[a], at)
            y = np.take(y, at, axis=a)
        fill = p["extrapolation"] if of(x).kind == "f" else int(p["extrapolation"])
        yield np.where(outside, np.asarray(fill).astype(y.dtype), y)


def _outside(x: Array, p: dict[str, Object], axes: Axes) -> Array:
    """Mask of the elements outside of what a crop has."""
    return apply(np.zeros(x.shape), axes, p["coordinates"], 1.0, **{**filter_of(p), "mode": "nearest"}) != 0


def _not_finite(x: Array, p: dict[str, Object], axes: Axes) -> str | None:
    """Elements that an infinity or a NaN is weighed into with a weight that is 0, or that a rounding makes 0."""
    if of(x).kind != "f" or p["mode"] == "nearest":
        return None
    finite = np.isfinite(x.astype(np.float64))
    if finite.all():
        return None
    reached, reach = (~finite).astype(np.float64), 1 if p["mode"] == "linear" else 2
    for a, v in axes.items():  # an axis that stays has neighbours of weight 0, too
        at = v.positions(p["coordinates"])
        index, _ = taps(v, at, **filter_of(p))
        around = np.floor(at).astype(np.int64)[:, None] + np.arange(-reach, reach + 2)
        near = np.clip(np.concatenate([index - 1, index, index + 1, around], 1), 0, v.n - 1)
        reached = native.interpolate(reached, a, near, np.ones(near.shape))
    without = _resampled(np.where(finite, x, 0).astype(x.dtype), p, axes)
    at = (reached > 0) & ~_outside(x, p, axes)
    why = "inf or NaN next to an element of weight 0"
    ends = (np.full(at.shape, v) for v in (np.nan, np.inf, -np.inf))
    return underspecified(why, at, *ends, without, within=_blur(x, p, axes))


def _overflow(x: Array, p: dict[str, Object], axes: Axes) -> str | None:
    if of(x).kind != "f" or p["mode"] != "cubic":
        return None
    reach = (1 + abs(p["cubic_a"]) / 2) ** len(axes)  # the weights of an axis sum to 1, their sizes to 1 + |a| / 2
    wide = np.abs(x.astype(np.float64))
    if float(wide[np.isfinite(wide)].max(initial=0.0)) * reach < float_max(of(x)):
        return None
    why = "cubic weights reach beyond the type on the way to a sum within it"
    shape = _outside(x, p, axes).shape
    return underspecified(why, np.True_, *(np.full(shape, v) for v in (np.nan, np.inf, -np.inf)))


def _blur(x: Array, p: dict[str, Object], axes: Axes) -> Array:
    """How far apart two ways to interpolate elements of ``x`` may end: coordinates are those of f32 in every type."""
    wide = np.abs(x.astype(np.float64))
    finite = np.where(np.isfinite(wide), wide, 0.0)
    return positional(finite, axes, p)[0] + 64 * unit(of(x)) * float(finite.max(initial=0.0))
