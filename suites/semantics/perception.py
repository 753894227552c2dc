"""Operators of segmentation networks: pooling that tells where the maximum was, its inverse, quantised values checked.

Source: google-ai-edge/mediapipe, mediapipe/util/tflite/operations/max_pool_argmax.cc and max_unpooling.cc;
tensorflow/lite/kernels/numeric_verify.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any as Object

import numpy as np

from harness.core.errors import RuleError
from harness.declare import (
    Choice,
    Each,
    Float,
    Int,
    Ints,
    Opaque,
    T,
    accepted,
    bounded,
    exact,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, ulp
from suites.semantics.quantised.fixed import real
from suites.semantics.window import FAR, draw_window, geometry

Array = np.ndarray

TENTH = np.float32(0.1)  # what an index has beyond its whole number, so that rounding errors do not lower that
LOWEST = -float(np.finfo(np.float32).max)
MODES = ("valid", "same_upper")


def windows(x: Array, kernel: Object, strides: Object, padding: str) -> tuple[Array, Array]:
    """The elements of each window, row after row, [kh * kw, n, oh, ow, c], and which of them are there."""
    s = x.shape[1:3]
    g = geometry(s, tuple(kernel), strides, None, None, padding)
    none = (1, x.shape[0], *g.sizes, x.shape[3])
    if 0 in none:  # of no result no cell is looked at, however many a window has
        return np.zeros(none, x.dtype), np.zeros(none, bool)
    reach = [(z - 1) * t + k for z, t, k in zip(g.sizes, g.strides, kernel)]
    ends = [max(0, r - b - e) for r, b, e in zip(reach, g.pads, s)]
    around = [(0, 0), *zip(g.pads, ends), (0, 0)]
    full, there = np.pad(x, around), np.pad(np.ones(x.shape, bool), around)
    cells = [
        (slice(None), *(slice(o, o + (z - 1) * t + 1, t) for o, z, t in zip(at, g.sizes, g.strides)))
        for at in np.ndindex(*kernel)
    ]
    return np.stack([full[c] for c in cells]), np.stack([there[c] for c in cells])


def _largest(x: Array, there: Array) -> Array:
    return np.where(there, x.astype(np.float64), -np.inf).max(0)


def _same_maximum(ctx: Context, actual: Array) -> Array:
    """the whole number of the index names a maximum of its window, any of equals; a tenth is added in f32"""
    p = {k: ctx.params[k] for k in ("kernel", "strides", "padding")}
    x, there = windows(np.asarray(ctx.inputs["x"]), **p)
    with np.errstate(all="ignore"):
        k = np.nan_to_num(np.asarray(actual, np.float64), nan=-1.0).clip(-1, len(x)).astype(np.int64)
    ok = (k >= 0) & (k < len(x))
    at = np.where(ok, k, 0)[None]
    named = np.take_along_axis(x, at, 0)[0].astype(np.float64)
    best = np.take_along_axis(there, at, 0)[0] & (named == _largest(x, there))
    return ok & best & (np.asarray(actual, np.float32) == (at[0].astype(np.float32) + TENTH))


def _nothing_above_lowest(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """NaN, and windows in which nothing exceeds the lowest finite number, from which the kernel starts."""
    x, there = windows(np.asarray(inputs["x"]), **{k: params[k] for k in ("kernel", "strides", "padding")})
    nan = (np.isnan(x) & there).any(0)
    low = ~nan & (_largest(x, there) <= LOWEST)
    start = "nothing in the window exceeds the lowest finite number, with which the kernel starts: it or the maximum"
    return gathered(
        underspecified("NaN in x: the operator does not say whether it wins or loses", (nan, nan)),
        underspecified(start, (low, None), np.full(low.shape, -np.inf), np.full(low.shape, LOWEST)),
        underspecified(start, (None, low)),
    )


def _draw_pool(d: Draw) -> dict[str, Object]:
    w = draw_window(d, 2, padded_below_kernel=True)
    kernel = w.kernel
    strides = kernel if d.bool() else w.strides or (1, 1)  # delegates take nothing else than windows side by side
    if not d.breaking and d.chance(32):
        batch, channels = d.pick(((0, 3), (2, 0)))
        far = d.pick(((FAR, kernel[1]), (kernel[0], FAR)))
        return {
            "x": T((batch, *w.extents, channels)),
            "kernel": far,
            "strides": far if d.bool() else strides,
            "padding": "same_upper",
        }
    return {
        "x": T((d.dim(0, 3), *(max(s, k) for s, k in zip(w.extents, kernel)), d.pick((1, 2, 3, 5)))),
        "kernel": kernel,
        "strides": tuple(d.pick((n, 300, FAR)) for n in strides) if d.chance(32) else strides,
        "padding": d.pick(MODES),
    }


@semantics(
    error=(exact(), accepted(_same_maximum)),
    draw=_draw_pool,
    ambiguous=_nothing_above_lowest,
    source="MediaPipe MaxPoolingWithArgmax2D (max_pool_argmax.cc)",
    data=("unit", "small", "uniform:-99:99", "special"),
)
def max_pool_argmax(
    x: Float[Array, "n h w c"], *, kernel: Ints, strides: Each[Ints, "s", 1, 3], padding: Choice[str, MODES]
) -> tuple[Array, Array]:
    """The largest element of every window, and its index in the window plus 0.1 in f32; padding does not count.

    The index counts the cells of the window row after row.  Of equal ones the first is named; any of them is right.
    Raises RuleError as ``geometry`` does.
    """
    cells, there = windows(x, kernel, strides, padding)
    at = np.argmax(np.where(there, cells.astype(np.float64), -np.inf), 0)
    y = np.take_along_axis(cells, at[None], 0)[0]
    return y, at.astype(np.float32) + TENTH


@max_pool_argmax.breaks("window-fits")
def _too_large(d: Draw) -> dict[str, Object]:
    v = _draw_pool(d)
    k = tuple(n + d.int(1, 2) for n in v["x"].shape[1:3])
    return v | {"kernel": k, "strides": k, "padding": "valid"}


def unpooled(shape: Sequence[int], kernel: Object) -> tuple[int, ...]:
    """Extents of the inverse: [n, h * kernel[0], w * kernel[1], c]."""
    n, h, w, c = shape
    return n, h * kernel[0], w * kernel[1], c


def _written(x: Array, indices: Array, kernel: Object, strides: Object) -> Iterator[tuple[tuple[int, ...], Object]]:
    """(place in the result, value) in the order of the kernel's loops; what lies outside of the result is left out."""
    (kh, kw), (sh, sw) = kernel, strides
    n, h, w, c = x.shape
    pads = [max(0, ((s - 1) * t + k - s * k) // 2) for s, k, t in zip((h, w), kernel, strides)]
    for b, row, column, channel in np.ndindex(n, h, w, c):
        k = int(indices[b, row, column, channel])
        down, right = int(np.trunc(k / kw)), int(np.fmod(k, kw))
        at = (row * sh - pads[0] + down, column * sw - pads[1] + right)
        if 0 <= at[0] < h * kh and 0 <= at[1] < w * kw:
            yield (b, *at, channel), x[b, row, column, channel]


def _written_twice(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, indices = np.asarray(inputs["x"]), np.asarray(inputs["indices"])
    if not (np.abs(indices.astype(np.float64)) < 2**31).all():
        return "an index that is no 32-bit integer"
    found: dict[tuple[int, ...], list[Object]] = {}
    for at, value in _written(x, indices, params["kernel"], params["strides"]):
        found.setdefault(at, []).append(value)
    clash = {at: vs for at, vs in found.items() if len(vs) > 1}
    if not clash:
        return None
    shape = unpooled(x.shape, params["kernel"])
    mask = np.zeros(shape, bool)
    readings = [np.zeros(shape) for _ in range(max(map(len, clash.values())))]
    for at, vs in clash.items():
        mask[at] = True
        for i, r in enumerate(readings):
            r[at] = vs[min(i, len(vs) - 1)]
    return underspecified("two elements go to one place: the order of writing is not said", mask, *readings)


def _draw_unpool(d: Draw) -> dict[str, Object]:
    kernel = tuple(d.pick((1, 2, 2, 3)) for _ in range(2))
    strides = kernel if d.int(0, 3) else tuple(d.pick((1, 2, 3)) for _ in range(2))
    shape = (d.dim(0, 3), d.dim(1, 4), d.dim(1, 4), d.pick((1, 2, 3)))
    if not d.breaking and d.chance(32):
        kernel, (h, w) = d.pick((((FAR, kernel[1]), (1, shape[2])), ((kernel[0], FAR), (shape[1], 1))))
        shape = d.pick(((0, h, w, 2), (2, h, w, 0)))
    beyond = float(TENTH) if d.int(0, 3) else 0.0  # what the pooling operator adds
    cells = int(np.prod(kernel))
    named = [float(np.float32(d.int(0, cells - 1)) + np.float32(beyond)) for _ in range(int(np.prod(shape)))]
    return {
        "x": T(shape, values=named if d.chance(16) else None),
        "indices": T(shape, values=named),
        "kernel": kernel,
        "strides": strides,
        "padding": d.pick(MODES),
    }


@semantics(
    error=exact(),
    draw=_draw_unpool,
    ambiguous=_written_twice,
    source="MediaPipe MaxUnpooling2D (max_unpooling.cc)",
    data=("unit", "small", "special"),
)
def max_unpool(
    x: Float[Array, "n h w c"],
    indices: Float[Array, "n h w c"],
    *,
    kernel: Ints,
    strides: Each[Ints, "s", 1, 3],
    padding: Choice[str, MODES],
) -> Array:
    """Every element at the place that the whole number of its index names in its window; 0 elsewhere.

    The result has h * kernel[0] rows and w * kernel[1] columns, whatever the padding of the pooling was.  What an index
    places outside of it is left out.
    Raises RuleError "kernel-positive", "strides-positive".
    """
    for rule, values in (("kernel-positive", kernel), ("strides-positive", strides)):
        if any(v < 1 for v in values):
            raise RuleError(rule, f"{list(values)}")
    y = np.zeros(unpooled(x.shape, kernel), x.dtype)
    if (np.abs(indices.astype(np.float64)) < 2**31).all():
        for at, value in _written(x, indices, kernel, strides):
            y[at] = value
    return y


def _difference(ctx: Context) -> Array:
    """1.5 ulp of scale * (|x| + |zero_point|), as for DEQUANTIZE, and half an ulp of the difference"""
    x, q = ctx.inputs["x"], ctx.params.get("xq")
    with np.errstate(all="ignore"):
        own = np.zeros(x.shape)
        if q is not None:
            own = 1.5 * ulp(q["scale"][0] * (np.abs(x.astype(np.float64)) + abs(q["zero_point"][0])), ctx.out)
        return own + 0.5 * ulp(np.abs(ctx.wide) + own, ctx.out)


def _verified(y: Array, step: float, tolerance: float, fails: bool) -> Array:
    """Raises RuleError "within-tolerance"; a tolerance below 0.1 asks for statistics alone."""
    bound = float(np.float32(tolerance) * np.float32(step))
    if fails and tolerance >= 0.1 and (np.abs(y) > bound).any():
        worst = float(np.nanmax(np.abs(y)))
        raise RuleError("within-tolerance", f"expected differences of at most {bound:.6g}, got {worst:.6g}")
    return y


_VERIFY = "TFLite NumericVerify (tfl dialect; numeric_verify.cc)"


@semantics(error=bounded(_difference), source=_VERIFY, data=("full", "small"))
def verify_quantised(
    x: Int[Array, "*d"], ref: Float[Array, "*d"], *, xq: Opaque, tolerance: Opaque, log: Opaque
) -> Float[Array, "*d"]:
    """scale * (x - zero_point) - ref.

    log: a difference above tolerance steps is an error.  Raises RuleError "within-tolerance"."""
    return _verified(real(x, xq) - ref.astype(np.float64), xq["scale"][0], tolerance, log)


@semantics(error=bounded(_difference), source=_VERIFY)
def verify_half(
    x: Float[Array, "*d"], ref: Float[Array, "*d"], *, tolerance: Opaque, log: Opaque
) -> Float[Array, "*d"]:
    """x - ref in f32.  There are no steps, so that with ``log`` every difference is an error.

    Raises RuleError "within-tolerance"."""
    with np.errstate(all="ignore"):
        return _verified(x.astype(np.float64) - ref.astype(np.float64), 0.0, tolerance, log)
