"""Sampling images at real positions, and folding columns back: bilinear, cubic and nearest taps in any number of
axes."""

from __future__ import annotations

from itertools import product
from typing import Any as Object

import numpy as np

from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError
from harness.spec import (
    Choice,
    Context,
    Flag,
    Float,
    Int,
    Integer,
    Ints,
    Num,
    Real,
    T,
    accumulates,
    composed,
    exact,
    semantics,
)
from harness.spec.draw import Draw
from suites.semantics.movement.common import prod

Array = np.ndarray
MODES = ("linear", "nearest", "cubic")
BORDERS = ("zeros", "border", "reflection")


def _cubic(t: float, a: float = -0.75) -> list[float]:
    """Weights of the four neighbours at offset ``t`` in [0, 1)."""

    def w(x: float) -> float:
        x = abs(x)
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0

    return [w(t + 1), w(t), w(1 - t), w(2 - t)]


def axis_taps(p: float, mode: str) -> list[tuple[int, float]]:
    """(index, weight) pairs at position ``p`` of one axis."""
    if mode == "nearest":
        return [(int(np.rint(p)), 1.0)]
    lo = int(np.floor(p))
    if mode == "linear":
        return [(lo, lo + 1 - p), (lo + 1, p - lo)]
    return list(zip(range(lo - 1, lo + 3), _cubic(p - lo)))


def _reflect(v: float, low: float, high: float) -> float:
    """Mirrored at low and high until inside."""
    span = high - low
    if span == 0:
        return low
    d = abs(v - low)
    turns, rest = divmod(d, span)
    return low + rest if int(turns) % 2 == 0 else high - rest


def _place(v: float, n: int, align: bool, border: str) -> float:
    """A normalised position as a pixel position, brought inside where the border rule does so."""
    p = (v + 1) / 2 * (n - 1) if align else ((v + 1) * n - 1) / 2
    if border == "border":
        return min(max(p, 0.0), n - 1.0)
    if border == "reflection":
        low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
        p = _reflect(p, low, high)
    return p


def _inside(i: int, n: int, align: bool, border: str) -> int | None:
    if 0 <= i < n:
        return i
    if border == "zeros":
        return None
    if border == "border":
        return min(max(i, 0), n - 1)
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    return int(min(max(round(_reflect(i, low, high)), 0), n - 1))


def _sample(x: Array, at: list[float], mode: str, align: bool, border: str) -> Array:
    """x [c, *s] at one pixel position: f64 [c]."""
    y = np.zeros(x.shape[0])
    for combo in product(*(axis_taps(p, mode) for p in at)):
        where = [_inside(i, n, align, border) for (i, _), n in zip(combo, x.shape[1:])]
        if None not in where:
            w = 1.0
            for _, v in combo:
                w *= v
            y = y + w * x[(slice(None), *where)]
    return y


def _grid_bound(ctx: Context) -> Array:
    """(16 n + 32) u times the largest element times the position's slope: rounded positions and weights"""
    x, g = np.abs(np.asarray(ctx.inputs["x"], np.float64)), np.asarray(ctx.inputs["grid"], np.float64)
    top = np.nan_to_num(x).max(initial=0.0)
    n = max(x.shape[2:], default=1)
    far = np.abs(np.nan_to_num(g)).max(initial=1.0) + 1
    return np.full(ctx.wide.shape, (16 * n * far + 32) * 4 ** (x.ndim - 2) * max(ctx.acc_u, 2.0**-24) * top) + ctx.ulp


def _grid_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, g = inputs["x"], inputs["grid"].astype(np.float64)
    if params["mode"] == "nearest" or params["border"] != "zeros" or of(x).kind != "f":
        for k in range(g.shape[-1]):
            n = x.shape[x.ndim - 1 - k]
            p = (g[..., k] + 1) / 2 * (n - 1) if params["align"] else ((g[..., k] + 1) * n - 1) / 2
            near = np.abs(p - np.floor(p) - 0.5)
            if params["mode"] == "cubic" and ((p < 0) | (p > n - 1)).any():
                return "cubic taps at a position outside: whether the border rule moves the position or the taps"
            if (params["mode"] == "nearest" and (near < 1e-4 * n).any()) or (
                of(x).kind != "f" and params["mode"] != "nearest"
            ):
                return "a position next to a rounding boundary"
    return None


@semantics(
    error=composed(_grid_bound),
    source="ONNX GridSample-16, -20, -22",
    ambiguous=_grid_open,
    data={"x": ("unit", "small", "uniform:-4:4"), "grid": ("uniform:-1.25:1.25", "uniform:-1:1", "uniform:-3:3")},
)
def grid_sample(
    x: Num["n c *s"],
    grid: Float["n *o k"],
    *,
    mode: Choice(*MODES) = "linear",
    border: Choice(*BORDERS) = "zeros",
    align: Flag = False,
):
    """``x`` at the normalised positions of ``grid``, whose last axis names the innermost axis first: [n, c, *o].

    -1 and 1 are the centres of the corner pixels (align) or their outer edges.  Raises RuleError "grid-rank".
    """
    if grid.shape[-1] != x.ndim - 2 or grid.ndim != x.ndim:
        raise RuleError("grid-rank", f"grid {list(grid.shape)} for x {list(x.shape)}")
    v, g = x.astype(np.float64), grid.astype(np.float64)
    out = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for b in range(x.shape[0]):
        for o in np.ndindex(grid.shape[1:-1]):
            at = [_place(float(t), n, align, border) for t, n in zip(g[(b, *o)][::-1], x.shape[2:])]
            if not np.isfinite(at).all():
                out[(b, slice(None), *o)] = np.nan
                continue
            out[(b, slice(None), *o)] = _sample(v[b], at, mode, align, border)
    return out if of(x).kind == "f" else np.trunc(out).astype(np.int64).astype(x.dtype)


@grid_sample.draw
def _draw_grid(d: Draw) -> dict:
    k = 2 if d.version.version < 20 else d.pick((1, 2, 2, 3))
    n = d.extent(1, 2)
    s = tuple(d.extent(1, 5) for _ in range(k))
    o = tuple(d.extent(1, 3) for _ in range(k))
    mode = d.pick(MODES if k < 3 else MODES[:2])
    return {
        "x": T((n, d.extent(1, 3), *s)),
        "grid": T((n, *o, k)),
        "mode": mode,
        "border": d.pick(BORDERS),
        "align": d.bool(),
    }


@semantics(
    error=composed(
        lambda c: (
            12
            * c.acc_u
            * np.broadcast_to(
                np.abs(np.asarray(c.inputs["theta"], np.float64)).sum(-1)[
                    (slice(None), *(None,) * (c.wide.ndim - 2), slice(None))
                ],
                c.wide.shape,
            )
            + c.ulp
        ),
        "12 u sum|theta| of the row",
    ),
    source="ONNX AffineGrid-20",
    data=("unit", "small"),
)
def affine_grid(theta: Float["n k m"], *, size: Ints, align: Flag = False):
    """theta applied to evenly spaced positions in [-1, 1]: [n, *size[2:], k].  Raises RuleError "size-fits"."""
    s = [int(v) for v in size[2:]]
    k = theta.shape[1]
    if len(s) != k or theta.shape[2] != k + 1:
        raise RuleError("size-fits", f"theta {list(theta.shape)} for size {list(size)}")
    with np.errstate(all="ignore"):
        lines = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in s]
    if align:
        lines = [np.array([-1.0]) if n == 1 else v for n, v in zip(s, lines)]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    ones = np.stack([*mesh, np.ones(s)], -1)
    return np.einsum("...j,nij->n...i", ones, theta.astype(np.float64))


@affine_grid.draw
def _draw_affine(d: Draw) -> dict:
    k, n = d.int(2, 3), d.int(1, 3)
    return {"theta": T((n, k, k + 1)), "size": (n, d.int(1, 3), *(d.int(2, 5) for _ in range(k))), "align": d.bool()}


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
    for roi in inputs["rois"]:
        for at, extent in zip(_positions(roi, *how), inputs["x"].shape[2:]):
            near = 64 * 2.0**-24 * max(extent, float(np.abs(roi).max(initial=0.0)), 1.0)
            if (np.minimum(np.abs(at + 1), np.abs(at - extent)) < near).any():
                return "a sample on the edge beyond which it counts as 0: its position may be rounded to either side"
    return None


@semantics(
    error=composed(_roi_bound),
    source="ONNX RoiAlign-10, -16, -22; Mask R-CNN",
    data={"x": ("unit", "small", "uniform:-4:4")},
    ambiguous=_roi_edge,
)
def roi_align(
    x: Float["n c h w"],
    rois: Float["r 4"],
    batch: Int["r"],
    *,
    height: Integer = 1,
    width: Integer = 1,
    ratio: Integer = 0,
    scale: Real = 1.0,
    mode: Choice("avg", "max") = "avg",
    half: Flag = True,
):
    """Mean (or maximum) of bilinear samples in each bin of each region: [r, c, height, width].

    half: positions are shifted by half a pixel, and a region may be smaller than one pixel.  max: the largest of the
    four
    weighted neighbours of all samples.
    """
    v, r = x.astype(np.float64), rois.astype(np.float64)
    h, w = x.shape[2:]
    out = np.zeros((rois.shape[0], x.shape[1], height, width))
    for k in range(rois.shape[0]):
        ys, xs = _positions(r[k], height, width, ratio, scale, half)
        for py in range(height):
            for px in range(width):
                parts = [_corners(v[int(batch[k])], y, x_, h, w) for y in ys[py] for x_ in xs[px]]
                if not parts:
                    continue
                four = np.array(parts)  # [samples, 4, c]
                out[k, :, py, px] = four.sum((0, 1)) / len(parts) if mode == "avg" else four.max((0, 1))
    return out


def _corners(x: Array, y: float, xx: float, h: int, w: int) -> Array:
    """The four weighted neighbours [4, c]; zeros where the position is more than one pixel outside."""
    if y < -1 or y > h or xx < -1 or xx > w:
        return np.zeros((4, x.shape[0]))
    y, xx = max(y, 0.0), max(xx, 0.0)
    yl, xl = int(y), int(xx)
    if yl >= h - 1:
        yl = yh = h - 1
        y = float(yl)
    else:
        yh = yl + 1
    if xl >= w - 1:
        xl = xh = w - 1
        xx = float(xl)
    else:
        xh = xl + 1
    ly, lx = y - yl, xx - xl
    return np.array(
        [
            (1 - ly) * (1 - lx) * x[:, yl, xl],
            (1 - ly) * lx * x[:, yl, xh],
            ly * (1 - lx) * x[:, yh, xl],
            ly * lx * x[:, yh, xh],
        ]
    )


@roi_align.draw
def _draw_roi(d: Draw) -> dict:
    n, h, w, r = d.extent(1, 2), d.extent(3, 8), d.extent(3, 8), d.extent(1, 4)
    values: list[float] = []
    for _ in range(r):
        x1, y1 = d.int(0, 4 * (w - 2)) / 4 + 0.0625, d.int(0, 4 * (h - 2)) / 4 + 0.0625
        values += [x1, y1, x1 + d.int(2, 16) / 4, y1 + d.int(2, 16) / 4]
    return {"x": T((n, d.extent(1, 3), h, w)), "rois": T((r, 4), values=values), "batch": T((r,), f"ints:0:{n - 1}"),
            "height": d.int(1, 3), "width": d.int(1, 3), "ratio": d.int(0, 3), "scale": d.pick((1.0, 0.5, 1.0)),
            "mode": d.pick(("avg", "max")), "half": d.fixed.get("half", d.bool())}  # fmt: skip


def _summed(x: Array, image: Ints, block: Ints, strides: Ints, pads: Ints, dilations: Ints) -> Array:
    """What ``col2im`` says, of an array."""
    r = len(image)
    st, di, p = strides or (1,) * r, dilations or (1,) * r, pads or (0,) * (2 * r)
    cells = prod(block)
    counts = [(image[i] + p[i] + p[r + i] - di[i] * (block[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    if x.shape[1] % max(cells, 1) or x.shape[2] != prod(counts):
        raise RuleError("columns-fit", f"x {list(x.shape)} for block {list(block)}, windows {counts}")
    c = x.shape[1] // cells
    whole = of(x).kind != "f"
    out = np.zeros((x.shape[0], c, *(image[i] + p[i] + p[r + i] for i in range(r))), x.dtype if whole else np.float64)
    cols = x.reshape(x.shape[0], c, *block, *counts)
    for t in np.ndindex(tuple(block)):
        at = tuple(slice(t[i] * di[i], t[i] * di[i] + st[i] * (counts[i] - 1) + 1, st[i]) for i in range(r))
        out[(slice(None), slice(None), *at)] += cols[(slice(None), slice(None), *t)].astype(out.dtype)
    return out[(slice(None), slice(None), *(slice(p[i], p[i] + image[i]) for i in range(r)))]


def _sum_overflows(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A sum of absolute values beyond the type: a partial sum may be infinite."""
    x = inputs["x"]
    if of(x).kind != "f":
        return None
    sizes = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0)
    total = _summed(sizes, *(params.get(n) for n in ("image", "block", "strides", "pads", "dilations")))
    return "a partial sum beyond the range of the type" if (total > float_max(of(x))).any() else None


@semantics(error=accumulates(lambda c: float(prod(c.params["block"]) + 1)), ambiguous=_sum_overflows,
           source="ONNX Col2Im-18")  # fmt: skip
def col2im(
    x: Num["n k l"], *, image: Ints, block: Ints, strides: Ints = None, pads: Ints = None, dilations: Ints = None
):
    """Columns [n, c * prod(block), windows] summed back into an image [n, c, *image].  Raises RuleError
    "columns-fit"."""
    return _summed(x, image, block, strides, pads, dilations)


@col2im.draw
def _draw_col2im(d: Draw) -> dict:
    r = d.pick((2, 2, 2, 3))
    block = tuple(d.int(1, 3) for _ in range(r))
    di = tuple(d.int(1, 2) for _ in range(r))
    st = tuple(d.int(1, 2) for _ in range(r))
    p = tuple(d.int(0, 1) for _ in range(2 * r))
    image = tuple(di[i] * (block[i] - 1) + 1 + d.int(0, 3) for i in range(r))
    counts = [(image[i] + p[i] + p[r + i] - di[i] * (block[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    return {
        "x": T((d.extent(1, 2), d.extent(1, 2) * prod(block), prod(counts))),
        "image": image,
        "block": block,
        "strides": st,
        "pads": p,
        "dilations": di,
    }


@semantics(error=exact(), source="ONNX MaxUnpool-9, -11, -22")
def max_unpool(
    x: Float["n c *s"],
    index: Int["n c *s"],
    *,
    kernel: Ints,
    strides: Ints = None,
    pads: Ints = None,
    shape: Ints = None,
):
    """Zeros with the elements of ``x`` at the linear indices of a tensor [n, c, *t], t = stride (s - 1) + kernel -
    pads; with
    ``shape`` given, that tensor lies at the beginning of one of this shape.  Raises RuleError "index-in-range"."""
    r = x.ndim - 2
    st, p = strides or (1,) * r, pads or (0,) * (2 * r)
    inner = [(x.shape[2 + i] - 1) * st[i] + kernel[i] - p[i] - p[r + i] for i in range(r)]
    full = [*x.shape[:2], *inner]
    out = np.zeros(prod(full), x.dtype)
    if x.size and not (index.min() >= 0 and index.max() < out.size):
        raise RuleError("index-in-range", f"index {index.max()} of {out.size}")
    out[index.reshape(-1)] = x.reshape(-1)
    if shape is None:
        return out.reshape(full)
    whole = np.zeros([int(v) for v in shape], x.dtype)
    whole[tuple(slice(n) for n in full)] = out.reshape(full)
    return whole


@max_unpool.draw
def _draw_unpool(d: Draw) -> dict:
    n, c = d.int(1, 2), d.int(1, 2)
    s = tuple(d.int(1, 3) for _ in range(d.int(1, 2)))
    k = tuple(d.int(2, 3) for _ in s)
    full = [(v - 1) * 2 + m for v, m in zip(s, k)]
    image = prod(full)
    count = prod(s)
    values = []
    for b in range(n * c):
        step = d.int(1, max(1, image // max(count, 1)))
        values += [b * image + j * step for j in range(count)]
    return {
        "x": T((n, c, *s)),
        "index": T((n, c, *s), values=values),
        "kernel": k,
        "strides": (2,) * len(s),
        "pads": None,
        "shape": None,
    }


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


@semantics(
    error=composed(_deform_bound),
    source="ONNX DeformConv-19, -22",
    data={"x": ("unit", "small"), "w": ("unit", "small"), "offset": ("uniform:-2:2", "unit"), "mask": ("prob", "unit")},
)
def deform_conv(
    x: Float["n c *s"],
    w: Float["m g *k"],
    offset: Float["n q *o"],
    b: Float["m"] | None = None,
    mask: Float["n r *o"] | None = None,
    *,
    strides: Ints = None,
    pads: Ints = None,
    dilations: Ints = None,
    groups: Integer = 1,
    offset_groups: Integer = 1,
):
    """Convolution whose taps are moved by ``offset`` and weighted by ``mask``; linear between pixels, zero outside
    the image."""
    r = x.ndim - 2
    st, p, di = strides or (1,) * r, pads or (0,) * (2 * r), dilations or (1,) * r
    kernel = w.shape[2:]
    out_size = [(x.shape[2 + i] + p[i] + p[r + i] - di[i] * (kernel[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    if list(offset.shape[2:]) != out_size:
        raise RuleError("offset-fits", f"offset {list(offset.shape)} for extents {out_size}")
    v, wide = x.astype(np.float64), w.astype(np.float64)
    off = offset.astype(np.float64).reshape(x.shape[0], offset_groups, *kernel, r, *out_size)
    m = None if mask is None else mask.astype(np.float64).reshape(x.shape[0], offset_groups, *kernel, *out_size)
    filters, c = w.shape[0], x.shape[1]
    out = np.zeros((x.shape[0], filters, *out_size))
    per_offset, per_group = c // offset_groups, c // groups
    for n in range(x.shape[0]):
        for o in np.ndindex(tuple(out_size)):
            for t in np.ndindex(tuple(kernel)):
                for g in range(offset_groups):
                    at = [o[i] * st[i] - p[i] + t[i] * di[i] + off[(n, g, *t, i, *o)] for i in range(r)]
                    cs = slice(g * per_offset, (g + 1) * per_offset)
                    s = _sample(v[n, cs], at, "linear", True, "zeros") * (1.0 if m is None else m[(n, g, *t, *o)])
                    for j, ch in enumerate(range(cs.start, cs.stop)):
                        q = ch // per_group
                        fs = slice(q * filters // groups, (q + 1) * filters // groups)
                        out[(n, fs, *o)] += wide[(fs, ch - q * per_group, *t)] * s[j]
    return out if b is None else out + b.astype(np.float64).reshape(1, -1, *(1,) * r)


@deform_conv.draw
def _draw_deform(d: Draw) -> dict:
    n, r = d.extent(1, 2), 2
    k, di, st = (tuple(d.int(1, top) for _ in range(r)) for top in (2, 2, 2))
    p = tuple(d.int(0, 1) for _ in range(2 * r))
    s = tuple(di[i] * (k[i] - 1) + 1 + d.int(0, 2) for i in range(r))
    out = [(s[i] + p[i] + p[r + i] - di[i] * (k[i] - 1) - 1) // st[i] + 1 for i in range(r)]
    groups, og = d.int(1, 2), d.int(1, 2)
    c, m = groups * og, groups * d.int(1, 2)
    v = {"x": T((n, c, *s)), "w": T((m, c // groups, *k)), "offset": T((n, og * prod(k) * r, *out)), "groups": groups,
         "offset_groups": og, "strides": st, "pads": p, "dilations": di}  # fmt: skip
    if d.bool():
        v["b"] = T((m,))
    if d.bool():
        v["mask"] = T((n, og * prod(k), *out))
    return v
