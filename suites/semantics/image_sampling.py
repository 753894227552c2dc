"""Images sampled at real positions: bilinear, cubic and nearest taps in any number of axes, regions, moved windows.

All positions of an image are sampled together: [c, *s] at arrays [p] of pixel positions, one an axis, gives [c, p].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any as Object

import numpy as np

from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError, Unsupported
from harness.declare import (
    Any,
    Choice,
    Context,
    Flag,
    Float,
    Int,
    Integer,
    Ints,
    Real,
    T,
    composed,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import unit
from suites.semantics.conv import check_channels
from suites.semantics.integers import whole
from suites.semantics.movement.common import by_place, prod
from suites.semantics.window import geometry

Array = np.ndarray
MODES = ("linear", "nearest", "cubic")
BORDERS = ("zeros", "border", "reflection")
_END = 2**31 - 1
FAR = 2.0**40  # pixels; what lies further out is outside whatever its number


def _cubic(t: Array, a: float = -0.75) -> list[Array]:
    """Weights of the four neighbours at offsets ``t`` in [0, 1)."""

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), np.where(t > 0, far(2 - t), 0.0)]


def _taps(p: Array, mode: str) -> tuple[Array, Array]:
    """Indices and weights [k, p] of the k taps that contribute at positions ``p`` of one axis."""
    p = np.clip(p, -FAR, FAR)
    if mode == "nearest":
        return np.rint(p).astype(np.int64)[None], np.ones((1, p.size))
    low = np.floor(p)
    i, t = low.astype(np.int64), p - low
    if mode == "linear":
        return np.stack([i, i + 1]), np.stack([1 - t, t])
    return i + np.arange(-1, 3)[:, None], np.stack(_cubic(t))


def _limits(n: int, align: bool) -> tuple[float, float]:
    """Where an axis of ``n`` pixels is mirrored."""
    return (0.0, n - 1.0) if align else (-0.5, n - 0.5)


def _reflect(v: Array, low: float, high: float) -> Array:
    """Mirrored at low and high until inside."""
    if high == low:
        return np.full_like(v, low)
    turns, rest = np.divmod(np.abs(v - low), high - low)
    return np.where(turns % 2 == 0, low + rest, high - rest)


def _place(v: Array, n: int, align: bool, border: str) -> Array:
    """Normalised positions as pixel positions, brought inside where the border rule does so."""
    p = (v + 1) / 2 * (n - 1) if align else ((v + 1) * n - 1) / 2
    if border == "border":
        return np.clip(p, 0.0, n - 1.0)
    return _reflect(p, *_limits(n, align)) if border == "reflection" else p


def _inside(i: Array, n: int, align: bool, border: str) -> tuple[Array, Array]:
    """The pixels that taps fall on, and which of them do at all."""
    if border == "reflection":
        beyond = np.rint(_reflect(i.astype(np.float64), *_limits(n, align)))
        i = np.where((i >= 0) & (i < n), i, beyond.astype(np.int64))
    ok = (i >= 0) & (i < n) if border == "zeros" else np.ones(i.shape, bool)
    return np.clip(i, 0, n - 1), ok


def sample(x: Array, at: Sequence[Array], mode: str, align: bool, border: str) -> Array:
    """x [c, *s] at pixel positions, an array [p] for each axis: [c, p], f64 or, of integers (the nearest alone), their
    type.  NaN where a position is not finite, 0 of integers."""
    lost = ~np.logical_and.reduce([np.isfinite(p) for p in at])
    where: list[Object] = [slice(None)]
    ok, w = np.ones(1, bool), np.ones(1)
    for k, (p, n) in enumerate(zip(at, x.shape[1:])):
        i, part = _taps(np.where(lost, 0.0, p) if lost.any() else p, mode)
        i, inside = _inside(i, n, align, border)
        along = (*(1,) * k, len(i), *(1,) * (len(at) - 1 - k), -1)  # taps of all axes, positions last
        where.append(i.reshape(along))
        ok, w = ok & inside.reshape(along), w * part.reshape(along)
    if x.dtype.kind in "iu":
        return np.where(ok & ~lost, x[tuple(where)], 0).reshape(x.shape[0], at[0].size)
    y = np.where(ok, w * x[tuple(where)], 0.0).reshape(x.shape[0], -1, at[0].size).sum(1)
    y[:, lost] = np.nan
    return y


def _grid_bound(ctx: Context) -> Array:
    """(16 n + 32) u times the largest element times the position's slope: rounded positions and weights"""
    if of(np.asarray(ctx.inputs["x"])).kind not in "fiu":
        return np.zeros(np.shape(ctx.wide))
    x, g = np.abs(np.asarray(ctx.inputs["x"], np.float64)), np.asarray(ctx.inputs["grid"], np.float64)
    top = np.nan_to_num(x).max(initial=0.0)
    n = max(x.shape[2:], default=1)
    far = np.abs(np.nan_to_num(g)).max(initial=1.0) + 1
    return np.full(ctx.wide.shape, (16 * n * far + 32) * 4 ** (x.ndim - 2) * max(ctx.acc_u, 2.0**-24) * top) + ctx.ulp


def _grid_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, g = inputs["x"], inputs["grid"].astype(np.float64)
    lost = ~(np.abs(g) < (2.0**16 if params["border"] == "reflection" else np.inf)).all(-1)
    if lost.any():
        settled = np.where(lost[..., None], 0.0, g).astype(inputs["grid"].dtype)
        rest = _grid_open({**inputs, "grid": settled}, params)
        return gathered(
            underspecified(
                "a position that is not finite, or mirrored so often that its digits are gone", lost[:, None]
            ),
            rest,
        )
    if of(x).kind == "s" and params["border"] == "zeros":
        places = np.ones(x.shape, np.int64)
        zero = np.asarray(grid_sample.fn(places, inputs["grid"], **params)) == 0
        return underspecified("the string that stands for a zero outside", zero)
    weightless = _weightless(x, g, params)
    if params["mode"] != "nearest" and params["border"] == "zeros" and of(x).kind == "f":
        return weightless
    near, outside = np.zeros((2, *g.shape[:-1]), bool)
    for k in range(g.shape[-1]):
        n = x.shape[x.ndim - 1 - k]
        p = (g[..., k] + 1) / 2 * (n - 1) if params["align"] else ((g[..., k] + 1) * n - 1) / 2
        if params["mode"] == "cubic":
            outside |= (p < 0) | (p > n - 1)
        if params["mode"] == "nearest":
            near |= np.abs(p - np.floor(p) - 0.5) < 1e-4 * n
        elif of(x).kind != "f":
            near[...] = True
    why = "cubic taps at a position outside: whether the border rule moves the position or the taps"
    return gathered(
        underspecified(why, outside[:, None]),
        underspecified("a position next to a rounding boundary", near[:, None]),
        weightless,
    )


def _weightless(x: Array, g: Array, params: dict[str, Object]) -> str | None:
    """Elements beside an infinity or a NaN whose weight is 0, or that a rounding makes 0: the position is a pixel's."""
    if of(x).kind != "f" or params["mode"] == "nearest" or not x.size or not g.size or g.shape[-1] != x.ndim - 2:
        return None
    finite = np.isfinite(x.astype(np.float64))
    if finite.all():
        return None
    reached = ~finite
    for axis in range(2, x.ndim):
        pad = [(2, 2) if a == axis else (0, 0) for a in range(x.ndim)]
        reached = np.lib.stride_tricks.sliding_window_view(np.pad(reached, pad), 5, axis=axis).any(-1)
    beside, on_pixel = np.zeros((*x.shape[:2], *g.shape[1:-1]), bool), np.zeros(g.shape[:-1], bool)
    for b in range(x.shape[0]):
        rows, where = g[b].reshape(-1, g.shape[-1]).T[::-1], []
        for v, n in zip(rows, x.shape[2:]):
            p = np.nan_to_num(_place(v, n, params["align"], params["border"]))
            on_pixel[b] |= (np.abs(p - np.rint(p)) < 1e-4 * n).reshape(on_pixel[b].shape)
            where.append(np.clip(np.floor(np.clip(p, -FAR, FAR)), 0, n - 1).astype(np.int64))
        index: tuple[Object, ...] = (slice(None), *where)
        beside[b] = reached[b][index].reshape(beside[b].shape)
    top = np.abs(x.astype(np.float64))[finite].max(initial=0.0)
    blur = (16 * max(x.shape[2:]) * (np.abs(np.nan_to_num(g)).max() + 1) + 32) * 4 ** (x.ndim - 2) * 2.0**-24 * top
    ends = (np.full(beside.shape, v) for v in (np.nan, np.inf, -np.inf))
    without = grid_sample.fn(np.where(finite, x, 0).astype(x.dtype), g, **params)
    why = "inf or NaN next to an element of weight 0"
    return underspecified(why, beside & on_pixel[:, None], *ends, without, within=blur)


@semantics(
    error=composed(_grid_bound),
    source="ONNX GridSample-16, -20, -22",
    ambiguous=_grid_open,
    data={
        "x": ("unit", "small", "uniform:-4:4", "wide"),
        "grid": ("uniform:-1.25:1.25", "uniform:-1:1", "uniform:-3:3"),
    },
)
def grid_sample(
    x: Any[Array, "n c *s"],
    grid: Float[Array, "n *o k"],
    *,
    mode: Choice[str, MODES] = "linear",
    border: Choice[str, BORDERS] = "zeros",
    align: Flag = False,
) -> Array:
    """``x`` at the normalised positions of ``grid``, whose last axis names the innermost axis first: [n, c, *o].

    -1 and 1 are the centres of the corner pixels (align) or their outer edges.  Raises RuleError "grid-rank".
    """
    if grid.shape[-1] != x.ndim - 2 or grid.ndim != x.ndim:
        raise RuleError("grid-rank", f"grid {list(grid.shape)} for x {list(x.shape)}")
    if of(x).kind not in "fiu":
        if mode != "nearest":
            raise Unsupported(f"expected real numbers to interpolate, got {of(x)}")
        return by_place(x, lambda places: grid_sample.fn(places, grid, mode=mode, border=border, align=align))
    whole_numbers = of(x).kind != "f"
    v, g = x if whole_numbers and mode == "nearest" else x.astype(np.float64), grid.astype(np.float64)
    g = np.where(np.isfinite(g), np.clip(g, -FAR, FAR), g)
    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]), v.dtype)
    if x.size and out.size:
        for b in range(x.shape[0]):
            at = [_place(p, n, align, border) for p, n in zip(g[b].reshape(-1, g.shape[-1]).T[::-1], x.shape[2:])]
            out[b] = sample(v[b], at, mode, align, border).reshape(out[b].shape)
    return whole(out, x) if whole_numbers and mode != "nearest" else out


@grid_sample.draw
def _draw_grid(d: Draw) -> dict:
    k = 2 if d.version.version < 20 else d.pick((1, 2, 2, 3)) if not d.chance(16) else d.int(4, 6)
    n = d.extent(1, 2)
    s = tuple(d.extent(1, 5 if k < 4 else 2) for _ in range(k))
    o = tuple(d.extent(1, 3 if k < 4 else 2) for _ in range(k))
    mode = d.pick(MODES if k < 3 else MODES[:2])
    kind, recipe, borders = d.types["T1"].kind, "", list(BORDERS)
    if kind not in "fiu":
        mode, recipe = "nearest", {"b": "bool", "s": "strings"}.get(kind, "small")
    if kind == "s":  # no text says which string a zero is
        borders = ["border", "reflection"]
    return {
        "x": T((n, d.extent(1, 3), *s), recipe),
        "grid": T((n, *o, k)),
        "mode": mode,
        "border": d.pick(borders),
        "align": d.bool(),
    }


@grid_sample.breaks("grid-rank")
def _other_grid(d: Draw) -> dict:
    """A grid of three coordinates for an image of two axes, or of an axis less."""
    grid = d.pick(((1, 2, 2, 3), (1, 2, 2)))
    return {"x": T((1, 1, 2, 2), "small"), "grid": T(grid), "mode": "nearest", "border": "border", "align": False}


def _roi_bound(ctx: Context) -> Array:
    """64 u times the largest element of the image, times its extent: rounded positions"""
    x = np.abs(np.asarray(ctx.inputs["x"], np.float64))
    return np.full(ctx.wide.shape, 64 * max(x.shape[2:], default=1) * ctx.acc_u * x.max(initial=0.0)) + ctx.ulp


def _positions(roi: Array, height: int, width: int, ratio: int, scale: float, half: bool) -> tuple[Array, Array]:
    """Where the samples of one region lie: y [height, samples], x [width, samples]."""
    x1, y1, x2, y2 = roi.astype(np.float64) * scale - (0.5 if half else 0.0)
    out = []
    for start, extent, bins in ((y1, y2 - y1, height), (x1, x2 - x1, width)):
        size = (extent if half else max(extent, 1.0)) / bins
        n = ratio if ratio > 0 else max(0, int(np.ceil(size)))
        out.append(start + (np.arange(bins)[:, None] + (np.arange(n) + 0.5) / max(n, 1)) * size)
    return out[0], out[1]


def _roi_edge(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A sample more than one pixel outside counts as 0, so that a rounded position decides next to that."""
    how = [params[n] for n in ("height", "width", "ratio", "scale", "half")]
    x, rois = inputs["x"], inputs["rois"]
    if not len(rois) * x.shape[1]:
        return None
    open_ = np.zeros((len(rois), 1, params["height"], params["width"]), bool)
    for k, roi in enumerate(rois):
        rows, columns = (
            (np.minimum(np.abs(at + 1), np.abs(at - extent)) < _edge(roi, extent)).any(-1)
            for at, extent in zip(_positions(roi, *how), x.shape[2:])
        )
        open_[k, 0] = rows[:, None] | columns
    if not open_.any():
        return None
    bins = {n: params[n] for n in ("height", "width", "ratio", "scale", "mode", "half")}
    either = [_aligned(x, rois, inputs["batch"], **bins, slack=s) for s in product((-1, 1), (-1, 1))]
    within = 64 * max(x.shape[2:]) * unit(of(x)) * float(np.abs(x.astype(np.float64)).max(initial=0.0))
    why = "a sample on the edge beyond which it counts as 0: its position may be rounded to either side"
    return underspecified(why, open_, *either, within=within)


def _roi_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Samples at the edge; bins with a sample next to what is not finite, or whose sum may leave the type."""
    x, wide = inputs["x"], inputs["x"].astype(np.float64)
    if not (len(inputs["rois"]) * x.shape[1] * params["height"] * params["width"]):
        return None
    how = {n: params[n] for n in ("height", "width", "ratio", "scale", "half")}
    counts = [math.prod(at.shape[1] for at in _positions(roi, *how.values())) for roi in inputs["rois"]]
    lost = ~(np.abs(wide) * max(counts, default=1) * 4 < float_max(of(x)))
    if not lost.any():
        return _roi_edge(inputs, params)
    around: Object = np.lib.stride_tricks.sliding_window_view
    reached = around(np.pad(lost, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3)).any((4, 5))
    at = _aligned(reached, inputs["rois"], inputs["batch"], mode="avg", **how) > 0
    rest = _roi_edge({**inputs, "x": np.where(lost, 0, x).astype(x.dtype)}, params)
    return gathered(underspecified("inf, NaN or a sum beyond the type next to a sample: weights of 0", at), rest)


def _edge(roi: Array, extent: int) -> float:
    """How near the edge a sample of a region may be rounded to its other side."""
    return 64 * 2.0**-24 * max(extent, float(np.abs(roi).max(initial=0.0)), 1.0)


@semantics(
    error=composed(_roi_bound),
    source="ONNX RoiAlign-10, -16, -22; Mask R-CNN",
    data={"x": ("unit", "small", "uniform:-4:4", "wide")},
    ambiguous=_roi_open,
)
def roi_align(
    x: Float[Array, "n c h w"],
    rois: Float[Array, "r 4"],
    batch: Int[Array, "r"],
    *,
    height: Integer = 1,
    width: Integer = 1,
    ratio: Integer = 0,
    scale: Real = 1.0,
    mode: Choice[str, "avg", "max"] = "avg",
    half: Flag = True,
) -> Array:
    """Mean (or maximum) of bilinear samples in each bin of each region: [r, c, height, width].

    half: positions are shifted by half a pixel, and a region may be smaller than one pixel.  max: the largest of the
    four weighted neighbours of all samples.  Raises RuleError "rois-finite", "batch-in-range".
    """
    v, r = x.astype(np.float64), rois.astype(np.float64)
    if not np.isfinite(r).all():
        raise RuleError("rois-finite", f"{rois.tolist()}")
    if batch.size and not 0 <= batch.min() <= batch.max() < x.shape[0]:
        raise RuleError("batch-in-range", f"images {batch.tolist()} of {x.shape[0]}")
    return _aligned(v, r, batch, height, width, ratio, scale, mode, half)


def _aligned(
    x: Array,
    rois: Array,
    batch: Array,
    height: int,
    width: int,
    ratio: int,
    scale: float,
    mode: str,
    half: bool,
    slack: tuple[int, ...] = (0, 0),
) -> Array:
    """slack: of y and x, 1 where a sample next to the edge counts, -1 where it does not, 0: as its position says."""
    v, r = x.astype(np.float64), rois.astype(np.float64)
    out = np.zeros((rois.shape[0], x.shape[1], height, width))
    if not out.size:
        return out
    for k in range(rois.shape[0]):
        ys, xs = _positions(r[k], height, width, ratio, scale, half)
        if not (ys.size and xs.size):
            continue
        at = np.broadcast_arrays(ys[:, None, :, None], xs[None, :, None, :])  # [height, width, y, x]
        far = [s * _edge(rois[k], n) for s, n in zip(slack, x.shape[2:])]
        y, x_ = (p.reshape(-1) for p in at)
        four = _corners(v[int(batch[k])], y, x_, far)
        four = four.reshape(4, -1, height, width, ys.shape[1] * xs.shape[1])
        # + 0.0: which of two zeros is the largest depends on the instruction
        out[k] = four.sum((0, 4)) / four.shape[4] if mode == "avg" else four.max((0, 4)) + 0.0
    return out


def _corners(image: Array, y: Array, x: Array, far: Sequence[float] = (0.0, 0.0)) -> Array:
    """The four weighted neighbours [4, c, p] in an image [c, h, w]; zeros more than one pixel, and ``far``, outside."""
    inside = np.ones(y.shape, bool)
    axes = []
    for p, n, more in ((y, image.shape[1], far[0]), (x, image.shape[2], far[1])):
        inside &= (p >= -1 - more) & (p <= n + more)
        p = np.clip(p, 0.0, n - 1.0)
        low = np.floor(p).astype(np.int64)
        axes.append(((low, 1 - (p - low)), (np.minimum(low + 1, n - 1), p - low)))
    four = [wy * wx * image[:, iy, ix] for (iy, wy), (ix, wx) in product(*axes)]
    return np.where(inside, np.stack(four), 0.0)


@roi_align.draw
def _draw_roi(d: Draw) -> dict:
    """One in eight has many regions, none, or such as lie at 0, far away or the other way round."""
    n, h, w, r = d.extent(1, 2), d.extent(1, 8), d.extent(1, 8), d.extent(1, 4)
    if d.chance(8) and not d.breaking:
        return _draw_far_roi(d, n, h, w)
    values: list[float] = []
    for _ in range(r):
        x1, y1 = (d.int(0, 4 * max(0, extent - 2)) / 4 + 0.0625 for extent in (w, h))
        values += [x1, y1, x1 + d.int(2, 16) / 4, y1 + d.int(2, 16) / 4]
    return {
        "x": T((n, d.extent(1, 3), h, w)),
        "rois": T((r, 4), values=values),
        "batch": T((r,), f"ints:0:{n - 1}"),
        "height": d.int(1, 3),
        "width": d.int(1, 3),
        "ratio": d.int(0, 3),
        "scale": d.pick((1.0, 0.5, 1.0)),
        "mode": d.pick(("avg", "max")),
        "half": d.fixed.get("half", d.bool()),
    }


_PLACES = (0.0, -0.0, 0.5, 1.5, 1e-40, -1.0, 1.0, 2.0**25, -(2.0**25), 3.0, 40.0)


def _draw_far_roi(d: Draw, n: int, h: int, w: int) -> dict:
    how, c = d.int(0, 4), d.int(1, 2)
    height, width, ratio = d.int(1, 3), d.int(1, 3), d.int(1, 3)
    r, batch = d.int(1, 4), None
    values: list[float] = []
    if how == 0:  # no region, and what nothing is counted by
        r, ends = 0, d.int(0, 3)
        height, width, ratio = (_END if k == ends else v for k, v in enumerate((height, width, ratio)))
        n, h, w = (0 if d.chance(4) else v for v in (n, h, w))
    elif how == 1:
        r, c = d.pick((17, 130, 513)), 1
        values = [float(k % 7 + d.int(0, 1)) for k in range(4 * r)]
    elif how == 2:  # images of no channel, more than an f32 counts
        n, c = 2**24 + 2, 0
        values, batch = [0.0, 0.0, 2.0, 2.0] * r, [2**24 + d.int(0, 1) for _ in range(r)]
    else:
        h = 1 if d.chance(4) else h
        top = float_max(d.types["T1"])
        places = [v for v in (*_PLACES, top, -top) if abs(v) <= top]
        values = [d.pick(places) for _ in range(4 * r)]
    return {
        "x": T((n, c, h, w)),
        "rois": T((r, 4), values=values),
        "batch": T((r,), f"ints:0:{max(n, 1) - 1}", values=batch),
        "height": height,
        "width": width,
        "ratio": ratio,
        "scale": d.pick((1.0, 0.5)),
        "mode": d.pick(("avg", "max")),
        "half": d.fixed.get("half", d.bool()),
    }


@roi_align.breaks("batch-in-range")
def _other_image(d: Draw) -> dict:
    """A region of an image that there is not."""
    out = _draw_roi(d)
    n, r = out["x"].shape[0], out["rois"].shape[0]
    return {**out, "batch": T((r,), values=[n + d.int(0, 1)] * r)}


def _deform_bound(ctx: Context) -> Array:
    """(K + 64 extent) u times the sum of |x| |w| over the reach of the offsets"""
    x, w = np.abs(np.asarray(ctx.inputs["x"], np.float64)), np.abs(np.asarray(ctx.inputs["w"], np.float64))
    m = ctx.inputs.get("mask")
    top = 1.0 if m is None else np.abs(np.asarray(m, np.float64)).max(initial=0.0)
    reach = np.abs(np.asarray(ctx.inputs["offset"], np.float64)).max(initial=0.0) + max(x.shape[2:])
    k = prod(w.shape[1:])
    total = x.max(initial=0.0) * top * w.reshape(w.shape[0], -1).sum(-1)
    along = (1, -1, *(1,) * (ctx.wide.ndim - 2))
    return np.broadcast_to((k + 32 * reach + 16) * ctx.acc_u * total.reshape(along), ctx.wide.shape) + 2 * ctx.ulp


def _deform_mixed(inputs: dict[str, Object]) -> str | None:
    """Positions that are not finite, and infinities, NaN or what leaves the type beside taps of weight 0."""
    why = "a position that is not finite, or inf, NaN and sums beyond the type beside weights of 0"
    n = inputs["x"].shape[0]
    open_ = np.zeros(n, bool)
    size = 1.0
    for name in ("x", "w", "mask", "b", "offset"):
        a = inputs.get(name)
        if a is None or not a.size:
            continue
        wide = np.abs(a.astype(np.float64))
        if name in ("w", "b"):
            open_ |= not np.isfinite(wide).all()
        else:
            open_ |= ~np.isfinite(wide).reshape(n, -1).all(1)
        if name not in ("offset", "b"):
            size *= float(np.nan_to_num(wide, posinf=0.0).max())
    terms = prod(inputs["w"].shape[1:]) + 1
    open_ |= not size * terms < float_max(of(inputs["x"]))
    return underspecified(why, open_.reshape(-1, *(1,) * (inputs["x"].ndim - 1)))


@semantics(
    error=composed(_deform_bound),
    ambiguous=lambda i, p: _deform_mixed(i),
    source="ONNX DeformConv-19, -22",
    data={"x": ("unit", "small"), "w": ("unit", "small"), "offset": ("uniform:-2:2", "unit"), "mask": ("prob", "unit")},
)
def deform_conv(
    x: Float[Array, "n c *s"],
    w: Float[Array, "m g *k"],
    offset: Float[Array, "n q *o"],
    b: Float[Array, "m"] | None = None,
    mask: Float[Array, "n r *o"] | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    groups: Integer = 1,
    offset_groups: Integer = 1,
) -> Array:
    """Convolution whose taps are moved by ``offset`` and weighted by ``mask``; linear between pixels, zero outside
    the image.

    offset: [n, offset_groups * prod(k) * len(s), *out].  mask: [n, offset_groups * prod(k), *out], as the text says of
    two axes; its line of n axes repeats that of the offsets, n times as many as there are taps to weight.
    Raises RuleError "pads-nonnegative", "offset-groups-divide", "offset-fits", "mask-fits", and as ``conv`` does."""
    check_channels(x.shape[1], w.shape[0], w.shape[1], groups, b)
    if pads is not None and min(pads, default=0) < 0:  # "can take any nonnegative value"
        raise RuleError("pads-nonnegative", f"pads {list(pads)}")
    if offset_groups < 1 or x.shape[1] % offset_groups:
        raise RuleError("offset-groups-divide", f"{x.shape[1]} channels in {offset_groups} groups")
    r, kernel = x.ndim - 2, w.shape[2:]
    g = geometry(x.shape[2:], kernel, strides, dilations, pads, "explicit")
    st, p, di, out_size = g.strides, g.pads, g.dilations, list(g.sizes)
    taps_of = (x.shape[0], offset_groups * prod(kernel))
    if offset.shape != (taps_of[0], taps_of[1] * r, *out_size):
        want = [taps_of[0], taps_of[1] * r, *out_size]
        raise RuleError("offset-fits", f"offset {list(offset.shape)}, expected {want}")
    if mask is not None and mask.shape != (*taps_of, *out_size):
        raise RuleError("mask-fits", f"mask {list(mask.shape)}, expected {[*taps_of, *out_size]}")
    if not x.shape[0]:
        return np.zeros((0, w.shape[0], *out_size))
    v, wide = x.astype(np.float64), w.astype(np.float64)
    off = offset.astype(np.float64).reshape(x.shape[0], offset_groups, *kernel, r, *out_size)
    m = None if mask is None else mask.astype(np.float64).reshape(x.shape[0], offset_groups, *kernel, *out_size)
    filters, c = w.shape[0], x.shape[1]
    out = np.zeros((x.shape[0], filters, *out_size))
    per_offset, per_group = c // offset_groups, c // groups
    grid = np.meshgrid(*(np.arange(o) * step - lead for o, step, lead in zip(out_size, st, p)), indexing="ij")
    taps = np.meshgrid(*(np.arange(n) * step for n, step in zip(kernel, di)), indexing="ij")
    base = [u.reshape(*u.shape, *(1,) * r) + w for u, w in zip(taps, grid)]  # [*kernel, *out]
    flat = wide.reshape(filters, per_group, prod(kernel))
    for n in range(x.shape[0]) if out.size and x.size else ():
        for k in range(offset_groups):
            at = [(base[i] + np.moveaxis(off[n, k], r, 0)[i]).reshape(-1) for i in range(r)]
            first = k * per_offset
            s = sample(v[n, first : first + per_offset], at, "linear", True, "zeros")
            s = (s if m is None else s * m[n, k].reshape(-1)).reshape(per_offset, prod(kernel), prod(out_size))
            for j, ch in enumerate(range(first, first + per_offset)):
                q = ch // per_group
                fs = slice(q * filters // groups, (q + 1) * filters // groups)
                out[n, fs] += (flat[fs, ch - q * per_group] @ s[j]).reshape(-1, *out_size)
    return out if b is None else out + b.astype(np.float64).reshape(1, -1, *(1,) * r)


@deform_conv.draw
def _draw_deform(d: Draw) -> dict:
    """Two axes mostly; a third of the rest along up to six of them, far apart, empty or long."""
    if not d.breaking and d.max_rank > 4 and d.chance(3):
        return _draw_deform_edge(d)
    n, r = d.extent(1, 2), 2
    k, di, st = (tuple(d.int(1, top) for _ in range(r)) for top in (2, 2, 2))
    p = tuple(d.int(0, 1) for _ in range(2 * r))
    s = tuple(di[i] * (k[i] - 1) + 1 + d.int(0, 2) for i in range(r))
    groups, og = d.int(1, 2), d.int(1, 2)
    return _deformed(d, n, groups * og, groups * d.int(1, 2), s, k, (di, st, p), groups, og)


def _deformed(
    d: Draw,
    n: int,
    c: int,
    m: int,
    s: tuple[int, ...],
    k: tuple[int, ...],
    window: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    groups: int,
    og: int,
) -> dict:
    """An image [n, c, *s], m filters [*k]; the shapes of all else follow.  window: dilations, strides and pads."""
    (di, st, p), r = window, len(s)
    out = [(s[i] + p[i] + p[r + i] - di[i] * (k[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    v = {
        "x": T((n, c, *s)),
        "w": T((m, c // groups, *k)),
        "offset": T((n, og * prod(k) * r, *out)),
        "groups": groups,
        "offset_groups": og,
        "strides": st,
        "pads": p,
        "dilations": di,
    }
    if d.bool():
        v["b"] = T((m,))
    if d.bool():
        v["mask"] = T((n, og * prod(k), *out))
    return v


_DEFORMED = ("axes", "axes", "axes", "padded", "far", "empty", "long", "many", "groups", "alike")


def _draw_deform_edge(d: Draw) -> dict:
    """Any number of axes; padding beyond the window; a stride, a dilation or padding at the end of i32; no element
    somewhere; an axis beyond 255; many filters or groups; a mask and offsets shaped as the filters."""
    how = d.pick(_DEFORMED)
    r = d.int(1, d.max_rank - 2) if how == "axes" else d.pick((1, 2, 2, 3))
    ones = (1,) * r
    k = tuple(d.int(1, 2) if i < 2 or d.chance(4) else 1 for i in range(r))
    di, st, p = ones, tuple(d.int(1, 2) for _ in ones), tuple(d.int(0, 1) if r < 4 else 0 for _ in (*ones, *ones))
    n, c, m, groups, og = d.int(1, 2), d.int(1, 2), d.int(1, 2), 1, 1
    if how == "padded":
        p = tuple(d.int(0, 4) for _ in p)
    elif how == "far":
        which = d.int(0, 3)
        far = d.pick((_END, 17))
        if which == 0:
            st = (far, *st[1:])
        elif which == 1:
            di, k = (far, *di[1:]), (1, *k[1:])
        else:
            p, st = (far, *p[1:]), (far, *st[1:])
    elif how == "many":
        m = d.pick((17, 129, 300))
        c = d.pick((1, 1, 8))
    elif how == "groups":
        groups, og = d.pick(((10, 1), (1, 10), (12, 12), (2, 2)))
        c, m = max(groups, og), groups * d.int(1, 2)
    s = tuple(max(1, di[i] * (k[i] - 1) + 1 - p[i] - p[r + i]) + (d.int(0, 2) if r < 4 else 0) for i in range(r))
    if how == "long":
        at = d.int(0, r - 1)
        n = c = 1
        s = tuple(d.pick((17, 130, 300, 2100)) if i == at else 2 for i in range(r))
        k, di = ones, ones
    elif how == "empty":
        what = d.int(0, 4)
        if what == 0:
            n = 0
        elif what == 1:
            m, groups = 0, d.pick((1, 2))
            c *= groups
        elif what == 2:
            c, og, groups = 0, d.pick((1, 2)), d.pick((1, m))
        elif what == 3:  # an axis of padding alone
            at = d.int(0, r - 1)
            s = tuple(0 if i == at else v for i, v in enumerate(s))
            need = di[at] * (k[at] - 1) + 1
            p = tuple(need if i == at else v for i, v in enumerate(p))
        else:  # filters, groups or offsets without end, none of which there is
            n = c = m = 0
            end = d.int(0, 2)
            groups, og = (_END if end == 0 else 1), (_END if end == 1 else 1)
            if end == 2:
                k, di, st = (_END, *ones[1:]), ones, ones
                s, p = ones, (_END - 1, *(0 for _ in p[1:]))
            elif og > 1:
                k = di = ones
                s, p = ones, (0,) * len(p)
    if how == "alike":  # filters, offsets and mask of one shape
        r = d.pick((1, 1, 2))
        k = tuple(d.int(1, 2) for _ in range(r))
        n = m = d.int(1, 2)
        c = prod(k) * (r if d.bool() else 1)
        s = tuple(2 * e - 1 for e in k)
        v = _deformed(d, n, c, m, s, k, ((1,) * r, (1,) * r, (0,) * (2 * r)), 1, 1)
        if d.int(0, 3):
            v["mask"] = T((n, prod(k), *k))
        return {name: T(x.shape, "unit") if name in ("w", "offset", "mask") else x for name, x in v.items()}
    return _deformed(d, n, c, m, s, k, (di, st, p), groups, og)


def _grown(d: Draw, name: str) -> dict | None:
    """One channel or one place more of a tensor, where it is given."""
    v = _draw_deform(d)
    if name not in v:
        return None
    shape = list(v[name].shape)
    shape[d.int(1, 3)] += 1
    return {**v, name: T(shape)}


@deform_conv.breaks("offset-groups-divide")
def _odd_offset_groups(d: Draw) -> dict:
    """Three channels in two groups of offsets."""
    ones = (1, 1)
    return _deformed(d, d.int(1, 2), 3, d.int(1, 2), (d.int(1, 3), 2), ones, (ones, ones, (0,) * 4), 1, 2)


@deform_conv.breaks("offset-fits")
def _other_offset(d: Draw) -> dict | None:
    return _grown(d, "offset")


@deform_conv.breaks("mask-fits")
def _other_mask(d: Draw) -> dict | None:
    return _grown(d, "mask")


@deform_conv.breaks("pads-nonnegative")
def _deform_crop(d: Draw) -> dict:
    """An image of more pixels, cropped by as many, so that all else fits."""
    v = _draw_deform(d)
    shape, pads = list(v["x"].shape), list(v["pads"])
    axis = d.int(0, len(pads) // 2 - 1)
    shape[2 + axis] += pads[axis] + 1
    pads[axis] = -1
    return {**v, "x": T(tuple(shape)), "pads": tuple(pads)}


@deform_conv.breaks("one-per-axis")
def _deform_lists(d: Draw) -> dict:
    """One list has a number more than there are axes."""
    v = _draw_deform(d)
    name = d.pick(("strides", "pads", "dilations"))
    return {**v, name: (*v[name], 1 if name == "pads" else 2)}  # nothing that could be left out as the default
