"""Pooling: sliding windows and whole images."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import float_max, of
from harness.core.errors import RuleError, Unsupported
from harness.declare import (
    Choice,
    Each,
    Flag,
    Float,
    Ints,
    Pads,
    Real,
    Real_,
    T,
    accepted,
    composed,
    exact,
    first_of,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context
from suites.semantics.bounds import averages, has_nan, overflows, quiet, slope, tiny, top
from suites.semantics.drawing import param, product, spells
from suites.semantics.window import (
    FAR,
    LARGEST,
    MODES,
    STRIDE_ABOVE,
    Drawn,
    Geometry,
    draw_window,
    geometry,
    negative_same,
    put,
    too_large,
    trimmed,
    unbounded,
)

Array = np.ndarray

LAST = ("keep", "drop", "drop_if_padded")


def pooled(
    s: tuple[int, ...],
    kernel: Object,
    strides: Object,
    dilations: Object,
    pads: Object,
    padding: str,
    ceil: bool,
    last: str,
) -> Geometry:
    """Geometry of a pooling window.  ceil: extents are rounded up.  last: whether a window that would then start behind
    the data goes: never, always, or only when there is any padding on that axis.

    Source: ONNX MaxPool-22 "windows that would start in the right padded region are ignored"; MIL avg_pool ceil_mode.
    Raises RuleError as ``geometry`` does.
    """
    g = geometry(s, tuple(kernel), strides, dilations, pads, padding, ceil and not padding.startswith("same"))
    if not ceil or last == "keep" or padding.startswith("same"):
        return g
    n, sizes = len(s), list(g.sizes)
    for i in range(n):
        begin, end = g.pads[i], g.pads[n + i]
        if (sizes[i] - 1) * g.strides[i] >= s[i] + begin and sizes[i] > 1 and (last == "drop" or begin or end):
            sizes[i] -= 1
    return Geometry(g.strides, g.dilations, g.pads, tuple(sizes))


def _run(kind: str, x: Array, kernel: Object, g: Geometry, **kw: Object) -> Object:
    """Raises Unsupported for a window that sees more than ``LARGEST`` elements, padding included where it counts."""
    kernel, pads = tuple(kernel), g.pads
    if not kw.get("count_include_pad"):
        kernel, pads = trimmed(x.shape[2:], kernel, g)
    if product(kernel) > LARGEST:
        raise Unsupported(f"expected a window of at most {LARGEST} elements, got {list(kernel)}")
    return native.pool(kind, x, kernel, g.strides, g.dilations, pads, sizes=g.sizes, **kw)


def seen(kernel: Object, s: tuple[int, ...]) -> int:
    """How many elements of the data a window sees at most."""
    return product([min(k, max(1, n)) for k, n in zip(kernel, s)])


def _misses(s: tuple[int, ...], kernel: tuple[int, ...], g: Geometry) -> bool:
    """Whether some window sees no element at all."""
    for i, n in enumerate(s):
        for o in range(g.sizes[i]):
            at = o * g.strides[i] - g.pads[i]
            first = max(0, -(at // g.dilations[i]))  # tap that is not before the data
            if first >= kernel[i] or at + first * g.dilations[i] >= n:
                return True
    return False


def _sees_nothing(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x = inputs["x"]
    if 0 in x.shape[:2]:
        return None  # no window
    p = {k: params.get(k) for k in ("kernel", "strides", "dilations", "pads")}
    try:
        g = pooled(x.shape[2:], **p, padding=params["padding"], ceil=params["ceil"], last=params["last"])
    except RuleError:
        return None
    if params["padding"].startswith("same") and negative_same(
        x.shape[2:], params["kernel"], params["strides"], params["dilations"]
    ):
        return underspecified(STRIDE_ABOVE, np.True_)
    return "a window without any element" if _misses(x.shape[2:], tuple(params["kernel"]), g) else None


def _windows(x: Array, params: dict[str, Object]) -> Array:
    """The windows that see a 1."""
    return max_pool.fn(x, **params)[0]


def _draw_pool(d: Draw) -> dict[str, Object]:
    w = draw_window(d, padded_below_kernel=True)
    ceil, last = param(d, "ceil", d.bool), param(d, "last", lambda: d.pick(LAST))
    n = len(w.kernel)
    di = w.dilations or (1,) * n
    reach = tuple(di[i] * (w.kernel[i] - 1) + 1 for i in range(n))
    s = w.extents
    if any(v > 1 for v in di):
        s = tuple(max(a, b) for a, b in zip(s, reach))
    if _misses(s, w.kernel, pooled(s, w.kernel, w.strides, w.dilations, w.pads, w.padding, bool(ceil), last or "keep")):
        # grow every axis until its last window starts on data: whole strides
        st = w.strides or (1,) * n
        s = tuple(r + st[i] * d.int(0, 2) for i, r in enumerate(reach))
        if w.padding == "explicit" and w.pads is not None:
            w = Drawn(s, w.kernel, w.strides, w.dilations, (0,) * (2 * n), w.padding)
    out = {
        "x": T((d.dim(hi=3), d.dim(hi=4), *s)),
        "kernel": w.kernel,
        "strides": w.strides,
        "dilations": w.dilations,
        "pads": w.pads,
        "padding": w.padding,
        "ceil": ceil,
        "last": last,
    }
    for name, make in (("count_include_pad", d.bool), ("column_major", d.bool), ("p", lambda: d.pick((1, 2, 2, 3)))):
        if d.version.meaning is not None and name in d.version.meaning.params:
            out[name] = param(d, name, make)
    return _far(d, out, n) if unbounded(d) and d.chance(3) else out


def _far(d: Draw, v: dict[str, Object], n: int) -> dict[str, Object]:
    """No image beside a padding as long as 32 bits hold, or a window, a step of it or one between its cells; a window
    as long as the padding in front of it."""
    at, how = d.int(0, n - 1), d.pick(("pads", "pads", "kernel", "alike", "strides", "dilations"))
    _, c, *s = v["x"].shape
    own = how != "pads" and how not in d.fixed and (spells(d, how) or how == "alike")
    if (
        how in ("kernel", "alike")
        and own
        and v["padding"] == "explicit"
        and spells(d, "pads")
        and "pads" not in d.fixed
    ):
        k = FAR if how == "kernel" else v["kernel"][at]
        pads = put(put(v["pads"], 2 * n, at, k - (how == "kernel"), 0), 2 * n, n + at, 0, 0)
        more = {"x": T((0, c, *s)), "kernel": put(v["kernel"], n, at, k, 1), "pads": pads}
        return v | more | {"dilations": None if v["dilations"] is None else put(v["dilations"], n, at, 1, 1)}
    if how == "strides" and own:
        return v | {"strides": put(v["strides"], n, at, FAR, 1)}
    if how == "dilations" and own:
        return v | {"kernel": put(v["kernel"], n, at, 1, 1), "dilations": put(v["dilations"], n, at, FAR, 1)}
    if v["padding"] == "explicit" and spells(d, "pads") and "pads" not in d.fixed:
        return v | {"x": T((0, c, *s)), "pads": put(v["pads"], 2 * n, at, FAR, 0)}
    return v


def _draw_too_large(d: Draw) -> dict[str, Object]:
    v = _draw_pool(d)
    w = too_large(d, Drawn((), v["kernel"], v["strides"], v["dilations"], v["pads"], v["padding"]))
    return v | {"x": T((*v["x"].shape[:2], *w.extents)), "kernel": w.kernel, "pads": w.pads, "padding": w.padding}


def _same_maximum(ctx: Context, actual: Array) -> Array:
    """the element at the index is the maximum of its window: any of equals"""
    x = np.asarray(ctx.inputs["x"])
    _, c, *s = x.shape
    flat = np.asarray(actual, np.int64)
    image = product(s)
    ok = (flat >= 0) & (flat < x.size)
    rest = np.where(ok, flat, 0) % max(image, 1)
    at = np.unravel_index(rest, s[::-1])[::-1] if ctx.params["column_major"] else np.unravel_index(rest, s)
    plane = np.where(ok, flat, 0) // max(image, 1)
    want = np.asarray(ctx.wide, np.int64)
    of_x: tuple[Object, ...] = (plane // max(c, 1), plane % max(c, 1), *at)
    got = x[of_x]
    rest = want % max(image, 1)
    at = np.unravel_index(rest, s[::-1])[::-1] if ctx.params["column_major"] else np.unravel_index(rest, s)
    of_x = (want // max(image, 1) // max(c, 1), want // max(image, 1) % max(c, 1), *at)
    best = x[of_x]
    return (flat == want) | (ok & (got == best) & (flat // max(image, 1) == want // max(image, 1)))


def maxima_among_zeros(
    x: Array,
    *,
    kernel: Object,
    strides: Object,
    dilations: Object,
    pads: Object,
    padding: str,
    ceil: bool,
    last: str,
    **rest: Object,
) -> tuple[Array, Array]:
    """The maxima if padding holds zeros that count: the stated padding; that and what rounding up brings in."""
    g = pooled(x.shape[2:], kernel, strides, dilations, pads, padding, bool(ceil), last)
    n, m = len(kernel), x.shape[2:]
    y = np.asarray(_run("max", x, kernel, g))
    # by axis: the first tap of each window, which lies in the padding before at the earliest; no list of taps, since a
    # window may be as wide as i32 counts
    starts = [np.arange(z) * t - b for z, t, b in zip(g.sizes, g.strides, g.pads[:n])]
    ends = [at + (k - 1) * d for at, k, d in zip(starts, kernel, g.dilations)]
    behind = [np.maximum(at, size + (at - size) % d) for at, size, d in zip(starts, m, g.dilations)]  # not before size
    limits = [size + e for size, e in zip(m, g.pads[n:])]
    stated = [(a < 0) | ((p <= z) & (p < top)) for a, z, p, top in zip(starts, ends, behind, limits)]
    first = _somewhere(stated, [a < top for a, top in zip(starts, limits)])
    second = _somewhere(
        [(a < 0) | (z >= size) for a, z, size in zip(starts, ends, m)], [np.ones(a.shape, bool) for a in starts]
    )
    return np.where(first, np.maximum(y, 0), y), np.where(second, np.maximum(y, 0), y)


def _somewhere(padded: list[Array], sees: list[Array]) -> Array:
    """The windows that hold a padded cell.  padded: of each axis, is a tap of a window padding?  sees: does one see
    anything?"""
    return np.logical_and(reduce(np.logical_or.outer, padded), reduce(np.logical_and.outer, sees))


@semantics(
    error=(exact(), accepted(_same_maximum)),
    draw=_draw_pool,
    ambiguous=first_of(has_nan("x", _windows), _sees_nothing),
    source="ONNX MaxPool-1..22; MIL max_pool iOS15; TFLite MAX_POOL_2D; NN PoolingLayerParams.MAX",
)
def max_pool(
    x: Real_[Array, "n c *s"],
    *,
    kernel: Ints,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s"] | None = None,
    padding: Choice[str, MODES] = "explicit",
    ceil: Flag = False,
    last: Choice[str, LAST] = "keep",
    column_major: Flag = False,
) -> tuple[Array, Array]:
    """Largest element of every window, and its flat index in x (padding does not count).

    column_major: spatial indices are flattened first axis fastest.  Raises RuleError as ``pooled`` does.
    """
    g = pooled(x.shape[2:], kernel, strides, dilations, pads, padding, bool(ceil), last)
    y, at = _run("max", x, kernel, g, positions=True)
    n, c, *s = x.shape
    if column_major and at.size:
        at = np.ravel_multi_index(np.unravel_index(np.maximum(at, 0), s)[::-1], s[::-1])
    image = product(s)
    plane = np.arange(n * c, dtype=np.int64).reshape(n, c, *(1,) * len(s))
    return y, at + plane * image


def _window_sums(inputs: dict[str, Object], params: dict[str, Object]) -> Array:
    x = np.abs(np.asarray(inputs["x"], np.float64))
    return avg_pool.fn(x, **params) * _divisor(params, x.shape[2:])


def _divisor(params: dict[str, Object], s: tuple[int, ...]) -> float:
    """The most that the sum of a window is divided by."""
    return float(product(params["kernel"]) if params["count_include_pad"] else seen(params["kernel"], s))


def _image_sums(inputs: dict[str, Object], params: dict[str, Object]) -> Array:
    x = np.asarray(inputs["x"], np.float64)
    return native.reduce("l1", x, _image(x), True)


def _cells(ctx: Context) -> float:
    return float(seen(ctx.params["kernel"], ctx.inputs["x"].shape[2:]))


@semantics(
    error=averages(_cells, over=lambda c: _divisor(c.params, c.inputs["x"].shape[2:])),
    draw=_draw_pool,
    ambiguous=first_of(overflows(_window_sums), _sees_nothing),
    source="ONNX AveragePool-1..22; MIL avg_pool iOS15; TFLite AVERAGE_POOL_2D; NN PoolingLayerParams.AVERAGE",
)
def avg_pool(
    x: Float[Array, "n c *s"],
    *,
    kernel: Ints,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s"] | None = None,
    padding: Choice[str, MODES] = "explicit",
    ceil: Flag = False,
    last: Choice[str, LAST] = "keep",
    count_include_pad: Flag = False,
) -> Array:
    """Mean of every window: over its elements, or (count_include_pad) over its cells inside the padded image.

    Cells that only rounding up brings in never count.  Raises RuleError as ``pooled`` does.
    """
    g = pooled(x.shape[2:], kernel, strides, dilations, pads, padding, bool(ceil), last)
    return _run("avg", x, kernel, g, count_include_pad=bool(count_include_pad))


def power_bound(ctx: Context, h: Array, p: float, k: float) -> Array:
    """Of (sum of k terms |x|**p)**(1/p): |h| * (gamma(K+c)/p + c u) + ulp, c = 2, or 16 where a power function is
    used."""
    c = 2 if p in (1, 2) else 16
    lost = np.minimum((k * tiny(ctx)) ** (1 / p), k * tiny(ctx) / (p * h ** (p - 1)))
    b = h * (slope(k + c, ctx) / p + c * ctx.acc_u) + ctx.ulp + np.where(h == 0, (k * tiny(ctx)) ** (1 / p), lost)
    return np.where(h**p * (1 + k * ctx.acc_u) >= top(ctx), np.inf, b)


@quiet
def _lp_bound(ctx: Context) -> Array:
    """|h| * (gamma(K+c)/p + c u) + ulp; free where the sum of powers may overflow"""
    return power_bound(ctx, np.abs(ctx.wide), float(ctx.params["p"]), _cells(ctx))


@semantics(
    error=composed(_lp_bound),
    draw=_draw_pool,
    ambiguous=_sees_nothing,
    source="ONNX LpPool-1..22; MIL l2_pool iOS15; TFLite L2_POOL_2D; NN PoolingLayerParams.L2",
)
def lp_pool(
    x: Float[Array, "n c *s"],
    *,
    kernel: Ints,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s"] | None = None,
    padding: Choice[str, MODES] = "explicit",
    ceil: Flag = False,
    last: Choice[str, LAST] = "keep",
    p: Real = 2.0,
) -> Array:
    """(sum |x|**p)**(1/p) of every window; padding is zero.  Raises RuleError as ``pooled`` does."""
    g = pooled(x.shape[2:], kernel, strides, dilations, pads, padding, bool(ceil), last)
    return _run("lp", x, kernel, g, p=float(p))


for _pool in (max_pool, avg_pool, lp_pool):
    _pool.breaks("window-fits")(_draw_too_large)


def _image(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _draw_image(d: Draw) -> dict[str, Object]:
    lo = max(3, d.min_rank)
    out: dict[str, Object] = {
        "x": T(d.shape(lo, max(lo, min(d.max_rank, 5)), 0 if d.version.op != "GlobalMaxPool" else 1))
    }
    if d.version.meaning is not None and "p" in d.version.meaning.params:
        out["p"] = param(d, "p", lambda: d.pick((1, 2, 2, 3)))
    return out


@semantics(
    error=exact(),
    source="ONNX GlobalMaxPool-1, -22; NN PoolingLayerParams.globalPooling",
    draw=_draw_image,
    ambiguous=has_nan("x", lambda x, p: native.reduce("max", x, _image(x), True)),
)
def global_max_pool(x: Float[Array, "n c *s"]) -> Array:
    """Largest element over all spatial axes, which stay with extent 1."""
    return native.reduce("max", x, _image(x), True).astype(x.dtype)


@semantics(
    error=averages(lambda c: float(product(c.inputs["x"].shape[2:]))),
    source="ONNX GlobalAveragePool-1, -22",
    draw=_draw_image,
    ambiguous=overflows(_image_sums),
)
def global_avg_pool(x: Float[Array, "n c *s"]) -> Array:
    """Mean over all spatial axes, which stay with extent 1."""
    return native.reduce("mean", x, _image(x), True)


@quiet
def _global_lp_bound(ctx: Context) -> Array:
    """|h| * (gamma(K+c)/p + c u) + ulp; free where the sum of powers may overflow"""
    x = ctx.inputs["x"]
    return power_bound(ctx, np.abs(ctx.wide), float(ctx.params["p"]), float(product(x.shape[2:])))


@semantics(error=composed(_global_lp_bound), source="ONNX GlobalLpPool-1, -2, -22", draw=_draw_image)
def global_lp_pool(x: Float[Array, "n c *s"], *, p: Real = 2.0) -> Array:
    """(sum |x|**p)**(1/p) over all spatial axes, which stay with extent 1."""
    if p == 1:
        return native.reduce("l1", x, _image(x), True)
    if p == 2:
        return native.reduce("l2", x, _image(x), True)
    with np.errstate(all="ignore"):
        return native.reduce("sum", np.abs(x.astype(np.float64)) ** p, _image(x), True) ** (1 / p)


def _draw_rois(d: Draw) -> dict[str, Object]:
    n, c, h, w = d.extent(1, 3), d.extent(1, 4), d.extent(2, 9), d.extent(2, 9)
    if d.chance(24) and not d.breaking:  # no region, or many of them
        many = d.pick((0, 0, 17, 130, 410))
        n, h, w = 0 if not many and d.bool() else n, h, 1 if d.bool() else w
        one = [0.0, 0.0, 0.0, float(d.int(0, 1)), float(d.int(0, 1))]
        sizes = (d.pick((2, 2**31 - 1)), 1) if not many else (1, 1)
        return {"x": T((n, c, h, w)), "rois": T((many, 5), values=one * many), "scale": 1.0, "sizes": sizes}
    scale = param(d, "scale", lambda: d.pick((1.0, 1.0, 0.5, 0.25)))
    rows = []
    for _ in range(d.int(1, 4)):
        x1, y1 = d.int(0, w - 1), d.int(0, h - 1)
        x2, y2 = d.int(x1, w - 1), d.int(y1, h - 1)
        rows += [float(d.int(0, n - 1)), x1 / scale, y1 / scale, x2 / scale, y2 / scale]
    return {
        "x": T((n, c, h, w)),
        "rois": T((len(rows) // 5, 5), values=rows),
        "scale": scale,
        "sizes": (d.int(1, 4), d.int(1, 4)),
    }


@semantics(
    error=exact(),
    source="ONNX MaxRoiPool-1, -22 (Fast R-CNN RoI pooling)",
    draw=_draw_rois,
    ambiguous=lambda i, p: gathered(_nan_in_region(i, p), _corners_on_ties(i, p)),
)
def max_roi_pool(x: Float[Array, "n c h w"], rois: Float[Array, "r 5"], *, sizes: Ints, scale: Real = 1.0) -> Array:
    """Maxima of ``sizes`` cells of every region (batch, x1, y1, x2, y2), corners scaled and rounded, ends included.

    An empty cell is 0.  Raises RuleError "two-sizes", "sizes-positive", "roi-batch-in-range".
    """
    return _of_regions(x, rois, sizes, scale, lambda cell: cell.max((1, 2)))


def _one_region(image: float, sizes: tuple[int, ...]) -> dict[str, Object]:
    return {"x": T((1, 1, 2, 2)), "rois": T((1, 5), values=[image, 0.0, 0.0, 1.0, 1.0]), "sizes": sizes}


@max_roi_pool.breaks("two-sizes")
def _other_sizes(d: Draw) -> dict[str, Object]:
    return _one_region(0.0, d.pick(((2,), (1, 2, 2))))


@max_roi_pool.breaks("sizes-positive")
def _no_sizes(d: Draw) -> dict[str, Object]:
    return _one_region(0.0, d.pick(((0, 2), (2, 0), (-1, 2))))


@max_roi_pool.breaks("roi-batch-in-range")
def _other_batch(d: Draw) -> dict[str, Object]:
    """A region of an image that there is not."""
    return _one_region(float(d.pick((1, 2, -1))), (d.int(1, 2), 1))


def _nan_in_region(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Cells with a NaN: it wins, or it loses, or it is forgotten with what stands before it."""
    x, how = inputs["x"], (inputs["rois"], params["sizes"], params["scale"])
    nan = np.isnan(x.astype(np.float64))
    if not nan.any():
        return None
    at = _of_regions(nan.astype(x.dtype), *how, lambda cell: cell.max((1, 2))) != 0
    lowest = -float_max(of(x))
    loses = [_of_regions(np.where(nan, x.dtype.type(v), x), *how, _largest) for v in (-np.inf, lowest)]
    readings = (np.full(at.shape, np.nan, x.dtype), *loses, _of_regions(x, *how, _after_nan))
    return underspecified("NaN in x: the op set does not say whether it wins or loses", at, *readings)


def _corners_on_ties(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Corners halfway between two cells: which of them is not said."""
    x, how = inputs["x"], (inputs["rois"], params["sizes"], params["scale"])
    corners = inputs["rois"][:, 1:].astype(np.float64) * params["scale"]
    if not (corners - np.floor(corners) == 0.5).any():
        return None
    due = _of_regions(x, *how, _largest)
    others = [_of_regions(x, *how, _largest, rounded) for rounded in (_half_away, np.rint)]
    at = np.logical_or.reduce([(y != due) & ~(np.isnan(y) & np.isnan(due)) for y in others])
    return underspecified("a corner of a region halfway between two cells", at, *others)


def _largest(cell: Array) -> Array:
    return cell.max((1, 2))


def _after_nan(cell: Array) -> Array:
    """Maxima of what follows the last NaN of a channel; its last element where nothing does."""
    out = np.empty(len(cell), cell.dtype)
    for k, row in enumerate(cell.reshape(len(cell), -1)):
        last = np.flatnonzero(row != row)
        out[k] = row[min(last[-1] + 1, row.size - 1) :].max() if last.size else row.max()
    return out


def _half_up(v: float) -> float:
    return float(np.floor(v + 0.5))


def _half_away(v: float) -> float:
    return float(np.copysign(np.floor(abs(v) + 0.5), v))


def _of_regions(
    x: Array,
    rois: Array,
    sizes: Object,
    scale: float,
    of_cell: Callable[[Array], Array],
    rounded: Callable[[float], float] = _half_up,
) -> Array:
    if len(sizes) != 2:
        raise RuleError("two-sizes", f"sizes {list(sizes)}, expected height and width")
    if min(sizes) < 1:
        raise RuleError("sizes-positive", f"sizes {list(sizes)}")
    ph, pw = sizes
    n, c, h, w = x.shape
    y = np.zeros((rois.shape[0], c, ph, pw), x.dtype)
    corners = rois.astype(np.float64)
    for r in range(rois.shape[0]):
        b = int(corners[r, 0])
        if not 0 <= b < n:
            raise RuleError("roi-batch-in-range", f"batch {b} of {n}")
        x1, y1, x2, y2 = (int(rounded(v * scale)) for v in corners[r, 1:])
        rh, rw = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i in range(ph):
            top_, bottom = (min(max(v + y1, 0), h) for v in (i * rh // ph, -(-(i + 1) * rh // ph)))
            for j in range(pw):
                left, right = (min(max(v + x1, 0), w) for v in (j * rw // pw, -(-(j + 1) * rw // pw)))
                if bottom > top_ and right > left:
                    y[r, :, i, j] = of_cell(x[b, :, top_:bottom, left:right])
    return y
