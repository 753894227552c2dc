"""Resize by factors or to sizes."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import Unsupported
from harness.declare import Any, Choice, Flag, Float, Ints, Real, Reals, T, composed, semantics
from harness.generate.draw import Draw
from harness.tolerance import Context
from suites.semantics.bounds import quiet
from suites.semantics.drawing import choose, param, product, spells
from suites.semantics.integers import whole
from suites.semantics.movement.common import by_place
from suites.semantics.resize.coordinates import COORDINATES, NEAREST, Axis, rounded_index
from suites.semantics.resize.plan import POLICIES, apply, identity, plan, positional, unsettled
from suites.semantics.resize.silent import silent
from suites.semantics.window import unbounded

Array = np.ndarray


def _planned(ctx: Context) -> dict[int, Axis]:
    i, p = ctx.inputs, ctx.params
    roi = i.get("roi") if p["coordinates"] == "tf_crop_and_resize" else None
    return plan(i["x"].shape, p["sizes"], p["scales"], p["axes"], p["coordinates"], roi, p["policy"])


@quiet
def resize_bound(ctx: Context) -> Array:
    """nearest: the difference to the neighbour where the coordinate is within 6u of the boundary; else per axis
    margin * slope + (taps + 4) u * sum |w||x|"""
    p = ctx.params
    if of(np.asarray(ctx.inputs["x"])).kind not in "fiu" or not ctx.wide.size:
        return np.zeros(np.shape(ctx.wide))
    x = np.abs(np.asarray(ctx.inputs["x"], np.float64))
    axes = {a: v for a, v in _planned(ctx).items() if not identity(v, p["coordinates"])}
    if p["mode"] == "nearest":
        return _nearest_bound(ctx, axes)
    moved, total, count = positional(x, axes, p)
    return moved + (count + 4) * ctx.acc_u * total + ctx.ulp


def _nearest_bound(ctx: Context, axes: dict[int, Axis]) -> Array:
    p, x = ctx.params, np.asarray(ctx.inputs["x"], np.float64)
    others = {a: unsettled(v, p["coordinates"], p["nearest"]) for a, v in axes.items()}
    bound = np.zeros(ctx.wide.shape)
    loose = [a for a, o in others.items() if (o >= 0).any()]
    for choice in range(1, 1 << len(loose)):
        y = x
        for a, axis in axes.items():
            base = np.clip(rounded_index(axis.positions(p["coordinates"]), p["nearest"]), 0, axis.n - 1).astype(
                np.int64
            )
            if a in loose and choice >> loose.index(a) & 1:
                base = np.where(others[a] >= 0, others[a], base)
            y = np.take(y, base, axis=a)
        d = np.abs(y - ctx.wide)
        bound = np.maximum(bound, np.where(y == ctx.wide, 0, np.where(np.isnan(d), np.inf, d)))
    return bound


@semantics(
    error=composed(resize_bound),
    source="ONNX Upsample-7, -9, Resize-10, -11, -13, -18, -19; MIL resize, resize_bilinear, "
    "resize_nearest_neighbor, upsample_* iOS15-17; TFLite RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR; NN Upsample, "
    "ResizeBilinear",
    ambiguous=silent,
)
def resize(
    x: Any[Array, "*d"],
    roi: Float[Array, "*r"] | None = None,
    *,
    sizes: Ints | None = None,
    scales: Reals | None = None,
    axes: Ints | None = None,
    mode: Choice[str, "nearest", "linear", "cubic"] = "nearest",
    coordinates: Choice[str, COORDINATES] = "half_pixel",
    nearest: Choice[str, NEAREST] = "round_prefer_floor",
    cubic_a: Real = -0.75,
    exclude_outside: Flag = False,
    antialias: Flag = False,
    extrapolation: Real = 0.0,
    policy: Choice[str, POLICIES] = "stretch",
) -> Array:
    """``x`` resampled to ``sizes``, or by ``scales`` (extent = floor(extent * scale)), along ``axes`` (None: all).

    coordinates, nearest, cubic_a, exclude_outside, antialias: see ``taps`` and ``Axis.positions``.  roi: starts then
    ends, 1 being the last element; used by tf_crop_and_resize, outside of which ``extrapolation`` stands.  policy: how
    sizes keep the ratio of the extents.  Interpolated integers are cut toward zero.  Raises RuleError as ``plan`` does,
    and Unsupported where other elements than real numbers are to be interpolated.
    """
    if of(x).kind not in "fiu":
        if mode != "nearest":
            raise Unsupported(f"expected real numbers to interpolate, got {of(x)}")
        p = dict(locals())
        x = p.pop("x")
        return by_place(x, lambda places: resize.fn(places, **p))
    region = roi if coordinates == "tf_crop_and_resize" else None
    planned = plan(x.shape, sizes, scales, axes, coordinates, region, policy)
    how = {
        "mode": mode,
        "nearest": nearest,
        "cubic_a": cubic_a,
        "exclude_outside": bool(exclude_outside),
        "antialias": bool(antialias),
    }
    y = apply(x, planned, coordinates, extrapolation, **how)
    if mode == "nearest":  # floats wide: next to a rounding boundary the bound allows the neighbour
        return y.astype(np.float64 if of(x).kind == "f" else x.dtype)
    return y if of(x).kind == "f" else whole(y, x)


def _coordinates(d: Draw, mode: str) -> str:
    if "coordinates" in d.fixed:
        return d.fixed["coordinates"]
    known = choose(d, "coordinates")  # a name says for which mode it was meant, no text that others refuse it
    for _ in range(4):
        if mode == "nearest" or known != "tf_half_pixel_for_nn" or d.chance(3):
            return known
        known = choose(d, "coordinates")
    return "half_pixel"


_FACTORS = (1.0, 2.0, 0.5, 3.0, 1.5, 0.75, 0.6, 2.5, 1.0 / 3, 1.25)


@resize.draw
def _draw_resize(d: Draw) -> dict[str, Object]:
    mode, whole_factors = choose(d, "mode"), False
    kinds = {t.kind for n, t in d.types.items() if t in d.version.candidates.get(n, ()) and _is_x(d, n)}
    if kinds - {"f"}:
        mode = "nearest" if "mode" not in d.fixed else mode
        whole_factors = bool(kinds - set("fiu"))  # no rounding decides which element is the nearest
    coordinates = _coordinates(d, mode)
    many = unbounded(d) and d.chance(8)
    shape = tuple(min(max(1, n), 8) for n in d.shape(max(1, d.min_rank), min(d.max_rank, 5)))
    if many:
        shape = tuple(min(n, 2) for n in d.shape(6, d.max_rank, 1))
    elif whole_factors:
        coordinates = "asymmetric" if "coordinates" not in d.fixed else coordinates
    if _may_be_scalar(d) and d.chance(24):
        shape = ()
    r = len(shape)
    if "axes" in d.fixed and d.fixed["axes"] is not None:
        axes = tuple(d.fixed["axes"])
        while r < len(axes) or r < d.min_rank:
            shape, r = (*shape, 3), r + 1
    else:
        axes = param(d, "axes", lambda: None if d.bool() else _signed(d, d.subset(range(r), 1), r))
    where = list(range(r)) if axes is None else [a % r for a in axes]
    moving = set(d.subset(where, 1)[:2]) if len(where) > 2 else set(where)
    by_scale = spells(d, "scales") and (not spells(d, "sizes") or d.bool() or whole_factors)
    up_only = d.version.op.lower().startswith("upsample")
    out: dict[str, Object] = {
        "x": T(shape),
        "mode": mode,
        "coordinates": coordinates,
        "axes": axes,
        "sizes": None,
        "scales": None,
        "policy": "stretch",
    }
    if by_scale:
        options = [f for f in _FACTORS if f >= 1] if up_only else _FACTORS
        if whole_factors:
            options = [1.0, 2.0, 4.0]
        scales = [float(np.float32(d.pick(options))) if a in moving else 1.0 for a in where]
        out["scales"] = tuple(s if np.floor(shape[a] * s) >= 1 else 1.0 for s, a in zip(scales, where))
    else:
        out["sizes"] = tuple(d.int(1, 12) if a in moving else shape[a] for a in where)
        out["policy"] = param(d, "policy", lambda: d.pick(POLICIES) if d.chance(3) else "stretch")
        if out["policy"] == "not_larger":  # no extent may round down to nothing
            out["sizes"] = tuple(max(s, shape[a]) for s, a in zip(out["sizes"], where))
    if product(shape) * (12 if len(moving) < 2 else 100) > 60000:
        out["x"] = T(tuple(min(n, 4) for n in shape))
        if out["sizes"] is not None:
            out["sizes"] = tuple(s if a in moving else min(shape[a], 4) for s, a in zip(out["sizes"], where))
    if out["policy"] == "not_smaller":  # all extents grow by the factor of the one that grows most
        extents = out["x"].shape
        most = max(s / extents[a] for s, a in zip(out["sizes"], where))
        if product([n * max(most, 1.0) if a in where else n for a, n in enumerate(extents)]) > 60000:
            out["sizes"] = tuple(min(s, extents[a]) for s, a in zip(out["sizes"], where))
    still = [a for a in range(len(out["x"].shape)) if a not in moving]
    if out["policy"] != "stretch":  # the ratio of the extents is that of axes with elements
        still = [a for a in still if a not in where]
    if d.empty and still and out["sizes"] is not None and not d.breaking:
        _emptied(out, where, d.pick(still))
    _draw_filter(d, out, where)
    return out


def _emptied(out: dict[str, Object], where: list[int], axis: int) -> None:
    """No element along an axis that keeps its extent."""
    out["x"] = T(tuple(0 if a == axis else n for a, n in enumerate(out["x"].shape)))
    out["sizes"] = tuple(0 if a == axis else s for s, a in zip(out["sizes"], where))


def _draw_filter(d: Draw, out: dict[str, Object], where: list[int]) -> None:
    """The region, and what says how samples are weighted; now and then beside a mode that makes no use of it."""
    mode, idle = out["mode"], spells(d, "exclude_outside")
    if out["coordinates"] == "tf_crop_and_resize":
        by_scale = out["scales"] is not None
        starts = [d.pick((0.0, 0.25, 0.5, -0.25)) for _ in where]
        if by_scale:
            starts = [0.0] * len(where)
        ends = [1.0 if by_scale else s + d.pick((0.25, 0.5, 1.0)) for s in starts]
        out["roi"] = T((2 * len(where),), values=[*starts, *ends])
        out["extrapolation"] = param(d, "extrapolation", lambda: d.pick((0.0, 1.5, -2.0)))
    elif "roi" in d.version.slots_of and (len(where) > 7 or d.chance(4)):
        out["roi"] = T((2 * len(where) if d.int(0, 3) else 0,), d.pick(("special", "unit", "wide")))
        if d.chance(4):
            out["extrapolation"] = param(d, "extrapolation", lambda: d.pick((0.0, 1.5, -2.0)))
    if mode == "nearest" or (idle and d.chance(4)):
        out["nearest"] = choose(d, "nearest")
    if mode == "cubic":
        out["cubic_a"] = param(d, "cubic_a", lambda: d.pick((-0.75, -0.5, -1.0)))
    if mode == "cubic" or (idle and d.chance(6)):
        out["exclude_outside"] = param(d, "exclude_outside", d.bool)
    if mode != "nearest" or (idle and d.chance(4)):
        out["antialias"] = param(d, "antialias", lambda: d.chance(3))


def _may_be_scalar(d: Draw) -> bool:
    """Does the op version take one factor an axis, none of them for a scalar, and nothing else?"""
    return (
        d.min_rank == 0 and not d.breaking and spells(d, "scales") and not spells(d, "sizes") and not spells(d, "axes")
    )


def _is_x(d: Draw, type_name: str) -> bool:
    codec = d.version.tensor_codecs.get("x")
    slot = d.version.schema.input(getattr(codec, "slot", "x"))
    return slot is not None and slot.element == type_name


def _signed(d: Draw, axes: list[int], rank: int) -> tuple[int, ...]:
    return tuple(a - rank if d.int(0, 2) == 2 else a for a in sorted(axes))


@resize.breaks("one-per-axis")
def _resize_short(d: Draw) -> dict[str, Object]:
    v = _draw_resize(d)
    for k in ("sizes", "scales"):
        if v[k] is not None:
            v[k] = (*v[k], v[k][-1])
    return v
