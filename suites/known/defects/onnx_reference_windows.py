"""What comes where a difference is listed (``harness/ledger/defect_models.py``): onnx.reference, windows and
positions."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from harness.cases.given import Given
from harness.core.dtypes import float_max, of, smallest_subnormal
from harness.declare import Expected
from harness.ledger.defect_models import Near, Turned
from harness.tolerance.underspecified import Underspecified
from suites.semantics.resize import Axis, taps

Outputs = list[Any] | None


def maximum_over_two_axes(g: Given) -> list[Any]:
    """GlobalMaxPool: over axes r - 2 and r - 1 of r, then as many ones as there are spatial axes."""
    y = np.asarray(g["X"].max((g["X"].ndim - 2, g["X"].ndim - 1)))
    return [y.reshape((*y.shape, *[1] * (g["X"].ndim - 2)))]


def squares_of_few_channels(g: Given) -> list[Near]:
    """LRN: no sums for the channels beyond the extent of the batch; alpha / size in f32.

    Squares and their sums are rounded to the type of X, powers at least to f32: what leaves them is infinite, or 0."""
    x, eps = g["X"], ml_dtypes.finfo(g["X"].dtype).eps
    size, beta, bias = g.attr("size"), np.float32(g.attr("beta", 0.75)), np.float32(g.attr("bias", 1.0))
    factor = np.float32(g.attr("alpha", 0.0001)) / np.float32(size)

    def powers(of: np.ndarray) -> np.ndarray:
        sums = np.zeros_like(of)
        for c in range(min(of.shape[0], of.shape[1])):
            sums[:, c] = (of[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(1)
        return np.asarray((bias + factor * sums) ** beta)

    in_type = powers(x)
    least = np.finfo(in_type.dtype).smallest_normal
    left = ~((np.abs(in_type) >= least) & (np.abs(in_type) < np.inf))
    y = np.where(left, x / in_type, x.astype(np.float64) / powers(x.astype(np.float64)))
    within = np.abs(y) * eps * (4 + float(beta) * (4 + size)) + float(ml_dtypes.finfo(x.dtype).smallest_subnormal)
    return [Near(np.asarray(y.astype(x.dtype), np.float64), np.nan_to_num(within, posinf=0.0))]


def padded_with_the_text_0(g: Given) -> list[Any] | None:
    """Pad, CenterCropPad of strings: the text "0" is put where nothing is given."""
    slot = "data" if g.inst.op == "Pad" else "input_data"
    found = g.reevaluate(inputs={slot: np.full(g[slot].shape, "x", object)})
    return found and [np.where(found[0].value == "", "0", g.expected[0].value)]


def _outer(op: np.ufunc, parts: list[np.ndarray]) -> np.ndarray:
    """[*out, window] of an array [out, kernel] of each axis."""
    r, found = len(parts), parts[0]
    for x in parts[1:]:
        found = op.outer(found, x)
    found = found.transpose(*range(0, 2 * r, 2), *range(1, 2 * r, 2))
    return found.reshape(*found.shape[:r], math.prod(found.shape[r:]))


def _windows(x: np.ndarray, taps: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Elements [n, c, *out, window] at positions [out, kernel] of each axis, in f64, NaN outside; what is inside."""
    r = len(taps)
    inside = _outer(np.logical_and, [(t >= 0) & (t < n) for t, n in zip(taps, x.shape[2:], strict=True)])
    for i, t in enumerate(taps):
        x = np.take(x, t.clip(0, x.shape[2 + 2 * i] - 1), 2 + 2 * i)
    x = x.transpose(0, 1, *range(2, 2 + 2 * r, 2), *range(3, 2 + 2 * r, 2))
    return np.where(inside, x.reshape(*x.shape[:2], *inside.shape).astype(np.float64), np.nan), inside


def _pooled_axes(g: Given) -> list[tuple[int, ...]]:
    """Of each spatial axis extent, kernel, stride, dilation and pads."""
    kernel, r = g.attr("kernel_shape"), len(g.attr("kernel_shape"))
    strides, dilations = (g.attr(name) or [1] * r for name in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * r
    return list(zip(g["X"].shape[2:], kernel, strides, dilations, pads[:r], pads[r:], strict=True))


def windows_of_the_padded(g: Given) -> list[Near]:
    """AveragePool, LpPool: automatic pads and extents forget the dilation, what is not reached is 0; what ceil_mode
    adds is put on both ends, and elements count up to the end that was asked for.  Pads count in version 1 and in
    LpPool, NaN never does, but with count_include_pad.  LpPool is the root of kernel size times average."""
    x, lp, whole = g["X"], g.inst.op == "LpPool", g.attr("ceil_mode", 0)
    auto, include = g.attr("auto_pad", "NOTSET"), g.attr("count_include_pad", None if lp or g.inst.version == 1 else 0)
    taps, here, reached = [], [], []
    for n, k, s, d, begin, end in _pooled_axes(g):
        span = (k - 1) * d + 1
        if auto == "NOTSET":
            limit, room = n + begin + end, n + begin + end - span
            out = (-(-room // s) if whole else room // s) + 1
            out -= bool(whole and (out - 1) * s >= n + begin)
            more = max(0, (out - 1) * s - room)
            begin, end = begin + more // 2, end + more - more // 2
        else:
            out = (n - k) // s + 1 if auto == "VALID" else (n - 1) // s + 1
            total = 0 if auto == "VALID" else (out - 1) * s + k - n
            begin = total - total // 2 if auto == "SAME_LOWER" else total // 2
            end, limit = total - begin, n + total
        at = np.arange(out)[:, None] * s + np.arange(k) * d
        taps.append(at - begin)
        here.append((at < limit) & ((at >= begin) & (at < begin + n) if include == 0 else True))
        reached.append(np.arange(out)[:, None] * s + span <= n + begin + end)
    p = g.attr("p", 2) if lp else 1
    p = np.float32(p) if g.inst.version == 1 and "p" in g.inst.attrs else p
    v, inside = _windows(np.power(np.abs(x), p) if lp else x, taps)
    v = np.where(inside, v, 0)
    keep = _outer(np.logical_and, here) & (True if include == 1 else ~np.isnan(v))
    total, size, count = np.where(keep, v, 0).sum(-1), np.where(keep, np.abs(v), 0).sum(-1), keep.sum(-1)
    info, most = ml_dtypes.finfo(x.dtype), float(np.finfo("f8" if x.dtype == np.float64 else "f4").max)
    y = np.where(np.abs(total) > most, np.copysign(np.inf, total), total) / count
    off = size / count * info.eps * (4 + v.shape[-1]) + info.smallest_subnormal
    finite = np.where(keep & np.isfinite(v), np.abs(v), 0).sum(-1)
    off = np.where((finite > most) & (np.isinf(size) | (finite > np.abs(total) * 1.5)), np.inf, off)  # on the way
    if lp:
        low, y, high = ((np.maximum(z, 0) * v.shape[-1]) ** (1 / p) for z in (y - off, y, y + off))
        off, y = np.maximum(high - y, y - low) + y * 2 * info.eps, y.astype(x.dtype).astype(np.float64)
        off = np.where(y + off > info.max, np.inf, off)
    done = _outer(np.logical_and, reached)[..., 0]
    return [Near(np.where(done, y, 0), np.where(done & (np.isfinite(y) | np.isinf(off)), off, 0))]


def strided_maximum(g: Given) -> list[Any] | None:
    """MaxPool with strides or dilations: SAME_LOWER cuts the extent short and pads as SAME_UPPER, VALID rounds it up as
    ever; a NaN counts where it is the first of its window."""
    axes, auto, whole, taps = _pooled_axes(g), g.attr("auto_pad", "NOTSET"), g.attr("ceil_mode", 0), []
    if all(s == d == 1 for _, _, s, d, _, _ in axes):
        return None
    for n, k, s, d, begin, end in axes:
        room = n + begin + end - (k - 1) * d - 1
        out = (-(-room // s) if whole else room // s) + 1
        out -= bool(whole and (out - 1) * s >= n + begin)
        if auto == "VALID":
            out = -(-(n - (k - 1) * d) // s)
        elif auto != "NOTSET":
            out = -(-n // s) if auto == "SAME_UPPER" else n // s
            begin = ((out - 1) * s + (k - 1) * d + 1 - n) // 2
        if max(out, 0) * k > 1 << 20:  # places of one axis
            return None
        taps.append(np.arange(out)[:, None] * s + np.arange(k) * d - begin)
    v, inside = _windows(g["X"], taps)
    some, first = inside.any(-1), np.take_along_axis(v, inside.argmax(-1)[(None, None, ..., None)], -1)[..., 0]
    y = np.where(np.isnan(first) & some, np.nan, np.fmax.reduce(v, -1))
    at = np.where(np.isnan(y), inside.argmax(-1), (v == y[..., None]).argmax(-1))[..., None]
    rows = np.cumprod([1, *g["X"].shape[:1:-1]])[-2::-1]
    steps = np.cumprod([1, *g["X"].shape[2:]])[:-1] if g.attr("storage_order", 0) else rows
    flat = _outer(np.add, [t * step for t, step in zip(taps, steps, strict=True)])
    where = np.take_along_axis(np.broadcast_to(flat, v.shape), at, -1)[..., 0]
    before = np.arange(v.shape[0] * v.shape[1]) * math.prod(g["X"].shape[2:])
    where = where + before.reshape(*v.shape[:2], *[1] * len(axes))
    empty = 0 if len(axes) == 2 else np.nan
    return [np.where(some, y, empty), Near(np.where(some, where, -1), np.where(some, 0, np.inf))][: len(g.expected)]


def plain_maximum(g: Given) -> list[Any] | None:
    """MaxPool without strides and dilations: 2-D pads are read as those of the one axis, then those of the other, and
    enter the extent twice with ceil_mode; else they are not put, but with ceil_mode those before lengthen the result.
    NaN never counts; indices are those of each channel alone, in a window taken to be as large as the result."""
    axes, auto, whole, pads = _pooled_axes(g), g.attr("auto_pad", "NOTSET"), g.attr("ceil_mode", 0), g.attr("pads")
    two, taps, outs = len(axes) == 2, [], []
    if any(s != 1 or d != 1 for _, _, s, d, _, _ in axes):
        return None
    for i, (n, k, _, _, begin, end) in enumerate(axes):
        out, more = n - k + 1, begin if whole else 0
        if auto[:4] == "SAME":
            out, begin, more = n, (k - (auto == "SAME_UPPER")) // 2, 0
        elif two and pads:
            begin, end = pads[2 * i : 2 * i + 2]
            out, more = out + begin + end, begin + end if whole else 0
        if not two:
            out, begin, more = out + more, 0, 0
        outs.append(out + more)
        taps.append(np.arange(out)[:, None] + np.arange(k) - begin)
    v, inside = _windows(g["X"], taps)
    if two and g["X"].dtype.kind in "iu":  # NaN of a pad is 0 there
        v = np.where(inside, v, 0)
    y, least = np.fmax.reduce(v, -1), np.fmin.reduce(v, -1)
    there = np.broadcast_to(inside | two, v.shape)  # what is padded stands in the window
    finite = v
    if g["X"].dtype.kind == "f":  # infinities are replaced too, but not in what stands for NaN
        finite = v.clip(-ml_dtypes.finfo(g["X"].dtype).max, ml_dtypes.finfo(g["X"].dtype).max)
    filled = np.where(np.isnan(v), least[..., None], finite)
    high = there & (filled == filled.max(-1, keepdims=True, where=there, initial=-np.inf))
    if g["X"].dtype == ml_dtypes.bfloat16:  # whose NaN is not replaced, and found first
        high = np.where((there & np.isnan(v)).any(-1, keepdims=True), there & np.isnan(v), high)
    pick = high.argmax(-1)[..., None]
    rest, where, step = np.take_along_axis(there.cumsum(-1) - 1, pick, -1)[..., 0], 0, 1
    for i, (n, _, _, _, begin, _) in reversed(list(enumerate(axes))):
        at = rest % outs[i] if i else rest
        rest = rest // outs[i]
        o = np.arange(len(taps[i])).reshape(-1, *[1] * (len(axes) - 1 - i))
        where, step = where + (at + o - begin) * step, step * n
    room = [(0, 0), (0, 0), *((0, o - len(t)) for o, t in zip(outs, taps, strict=True))]
    return [np.pad(y, room), np.pad(where, room, constant_values=-1)][: len(g.expected)]


def first_biases_for_all_groups(g: Given) -> list[Expected] | None:
    """ConvTranspose: each group has the biases of the first one; an output_shape cuts at the end alone."""
    b, group, shape = g["B"], g.attr("group", 1), g.attr("output_shape")
    inputs = {} if b is None else {"B": np.tile(b[: len(b) // group], group)}
    if shape is None or g.attr("auto_pad", "NOTSET")[:4] == "SAME":
        return g.reevaluate(inputs=inputs)
    n, kernel, r = g["X"].shape[2:], g["W"].shape[2:], len(shape)
    strides, dilations = (g.attr(name) or [1] * r for name in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * r
    more = [
        shape[i] + pads[i] + pads[r + i] - strides[i] * (n[i] - 1) - (kernel[i] - 1) * dilations[i] - 1
        for i in range(r)
    ]
    pads = [*pads[:r], *(p + max(0, -m) for p, m in zip(pads[r:], more, strict=True))]
    more = [max(0, m) for m in more]
    return g.reevaluate({"output_shape": None, "output_padding": more, "pads": pads, "auto_pad": None}, inputs)


def image_in_another_grid(g: Given) -> list[Expected] | None:
    """ConvTranspose: the image is read in the extents that a convolution would make of the output_shape, if they have
    as many elements; each group has the biases of the first one."""
    b, group, shape = g["B"], g.attr("group", 1), g.attr("output_shape")
    if shape is None or g.attr("auto_pad", "NOTSET")[:4] == "SAME":
        return None
    n, r = g["X"].shape[2:], len(shape)
    strides, dilations = (g.attr(name) or [1] * r for name in ("strides", "dilations"))
    pads = g.attr("pads") or [0] * 2 * r
    reach = [(k - 1) * d + 1 - pads[i] - pads[r + i] for i, (k, d) in enumerate(zip(g["W"].shape[2:], dilations))]
    grid = [(o - w) // s + 1 for o, w, s in zip(shape, reach, strides)]
    if min(grid) < 1 or np.prod(grid) != np.prod(n) or tuple(grid) == n:
        return None
    more = [o - w - s * (m - 1) for o, w, s, m in zip(shape, reach, strides, grid)]
    inputs = {"X": g["X"].reshape(*g["X"].shape[:2], *grid)}
    if b is not None:
        inputs["B"] = np.tile(b[: len(b) // group], group)
    return g.reevaluate({"output_shape": None, "output_padding": more, "pads": pads, "auto_pad": None}, inputs)


def positions_of_a_narrow_grid(g: Given) -> list[Expected] | None:
    """GridSample: places are computed step by step in the type of the grid, then rounded to f32."""
    n, corners = g["grid"], g.attr("align_corners", 0)
    size = np.array(g["X"].shape[:1:-1], n.dtype)
    one, half = np.array(1, n.dtype), n.dtype.type if n.dtype != ml_dtypes.bfloat16 else np.float32  # of a quotient
    if corners:
        at = (n + one).astype(half) / half(2) * (size - one).astype(half)
    else:
        at = ((n + one) * size - one).astype(half) / half(2)
    at, size = at.astype(np.float32).astype(np.float64), size.astype(np.float64)
    back = at / np.maximum(size - 1, 1) * 2 - 1 if corners else (2 * at + 1) / size - 1
    return g.reevaluate(inputs={"grid": back})


def places_in_f32(g: Given) -> list[Near] | None:
    """DeformConv: the sum of the place in the kernel and the offset is rounded to f32, and so are the weights of its
    neighbours."""
    kernel, (images, _, *out) = g["W"].shape[2:], g["offset"].shape
    strides, dilations, pads = g.attr("strides") or [1, 1], g.attr("dilations") or [1, 1], g.attr("pads") or [0] * 4
    moved = g["offset"].reshape(images, -1, *kernel, 2, *out).copy()
    for a in range(2):
        base = np.add.outer(np.arange(kernel[a]) * dilations[a], np.arange(out[a]) * strides[a] - pads[a])
        base = base[:, None, :, None] if a == 0 else base[None, :, None, :]
        moved[:, :, :, :, a] = (moved[:, :, :, :, a] + base).astype(np.float32) - base.astype(np.float64)
    found, most = (
        g.reevaluate(inputs={"offset": moved.reshape(g["offset"].shape)}),
        1 if g["mask"] is None else g["mask"],
    )
    off = np.abs(g["W"]).sum((1, 2, 3)) * np.abs(g["X"]).max() * np.abs(most).max() * 4 * np.finfo(np.float32).eps
    return None if found is None else [Near(found[0].value, off[:, None, None])]


def half_a_pixel_off(g: Given) -> list[Expected] | None:
    """RoiAlign-10: as version 16 does with half_pixel."""
    return g.reevaluate({"coordinate_transformation_mode": "half_pixel"}, version=16)


def weights_of_the_places(g: Given) -> list[Any] | None:
    """TfIdfVectorizer: a weight is that of the place in the output, not of the n-gram."""
    found, weights = g.reevaluate({"mode": "TF"}), g.attr("weights")
    if not found or not weights:
        return None
    count = found[0].value
    w = np.zeros(count.shape[-1], np.float32)
    w[: len(weights)] = weights[: len(w)]  # places beyond the last weight are left alone, or refused
    return [w * (count > 0 if g.attr("mode") == "IDF" else count)]


def nothing_counts_as_one(g: Given) -> list[Any]:
    """StringSplit by a delimiter: an empty string has one part."""
    x, (parts, counts) = g["X"], (e.value for e in g.expected)
    counts = np.where((x == "") & bool(g.attr("delimiter")), 1, counts)
    return [parts if parts.shape[-1] or not counts.any() else np.full((*x.shape, 1), "", object), counts]


def zero_points_of_the_second_axis(g: Given) -> list[Any] | None:
    """ConvInteger: those of the filters are broadcast from the right as [m, 1, 1, 1], whatever the rank."""
    w, z = g["w"], g["w_zero_point"]
    plain = g.reevaluate(inputs={"w_zero_point": None})
    try:
        lost = g.reevaluate(inputs={"w_zero_point": None, "w": np.broadcast_to(z.reshape(-1, 1, 1, 1), w.shape).copy()})
    except ValueError:  # refused
        return None
    return plain and lost and [plain[0].value - lost[0].value]


def scales_of_the_second_axis(g: Given) -> list[Any] | None:
    """QLinearConv: those of the filters are broadcast from the right as [1, m, 1, 1], whatever the rank."""
    scales = g["w_scale"]
    each = [g.reevaluate(inputs={"w_scale": s.reshape(())}) for s in scales]
    if any(e is None for e in each):
        return None
    all_ = np.stack([e[0].value for e in each if e])
    try:
        shape = np.broadcast_shapes(all_.shape[1:], (1, len(scales), 1, 1))
    except ValueError:  # refused
        return None
    at = np.indices(shape)
    rest = (a * (n > 1) for a, n in zip(at[1 - all_.ndim :], all_.shape[1:], strict=True))
    of_all_: tuple[Any, ...] = (at[-3], *rest)
    return [Near(all_[of_all_], 1)]


def infinities_clamped(g: Given) -> list[Any] | None:
    """Resize: the largest number in place of an infinity."""
    return _clamped(g, g.reevaluate())


def _clamped(g: Given, found: list[Expected] | None) -> list[Any] | None:
    """Of floats, with the largest number in place of an infinity, one that is expected or of an open reading."""
    if not found or found[0].value.dtype.kind in "iu":
        return found
    due, kind = found[0].value, of(found[0].value)
    case, _ = g.origin(found[0]) or (g.case, 0)
    why = case.underspecified[0] if case.underspecified else None
    readings = [r for part in why.parts for r in part.readings] if isinstance(why, Underspecified) else []

    def how(a: Any) -> Any:
        if np.shape(a) != due.shape:
            raise ValueError("another shape")
        wide = a.astype(np.float64)
        for full in (due, *(r for r in readings if np.shape(r) == due.shape)):
            full = np.asarray(full).astype(due.dtype).astype(np.float64)
            wide = np.where(np.isinf(full) & (wide == np.copysign(float_max(kind), full)), full, wide)
        return wide.astype(a.dtype)

    return [Turned(found[0], how)]


def length_unrounded(g: Given) -> list[Any] | None:
    """Resize, tf_crop_and_resize by factors: the length of the result enters as extent times factor."""
    roi, most = g["roi"].astype(np.float64), len(g["roi"]) // 2
    due = [g.expected[0].value.shape[a] for a in g.attr("axes") or range(g["X"].ndim)]
    for i, (n, f) in enumerate(zip(_extents_resized(g), g["scales"], strict=True)):
        length, begin, end = float(f) * n, g["roi"][i], g["roi"][most + i]
        roi[i] = float(begin * (n - 1)) / max(n - 1, 1)  # in the type of roi
        if length != 1:
            roi[most + i] = roi[i] + float(end - begin) * (due[i] - 1) / (length - 1)
    none = None if int(g.inst.version) > 11 else np.zeros(0, np.float32)
    return _clamped(g, g.reevaluate(inputs={"roi": roi, "scales": none, "sizes": np.array(due, np.int64)}))


def half_pixel_of_one(g: Given) -> list[Any] | None:
    """Resize, pytorch_half_pixel: an axis that a factor leaves one element is as others are, if the product is not 1;
    integers of 64 bits go through double."""
    if g["scales"] is None or not g["scales"].size:
        return None
    x, factors = g["X"], g["scales"].copy()
    for i, a in enumerate(g.attr("axes") or range(x.ndim)):
        if float(factors[i]) * x.shape[a] == 1 != factors[i]:  # from -0.5, which is the first element
            if g.attr("mode") == "cubic" or g.attr("antialias", 0):
                return None
            x, factors[i] = np.take(x, [0], axis=a), 1
    attrs = {"coordinate_transformation_mode": "half_pixel"}
    found = g.reevaluate(attrs, {"X": x, "scales": factors})
    whole = x.dtype.kind in "iu" and x.dtype.itemsize == 8
    if not found or (not whole and g.attr("mode", "nearest") != "nearest"):
        return _clamped(g, found)
    return [_through_double(found[0].value, _asked(g, attrs, {"X": x, "scales": factors}))]


def half_pixel_of_one_by_policy(g: Given) -> list[Any] | None:
    """Resize, pytorch_half_pixel, to sizes that keep the ratio: an axis of one element that comes of a broken extent is
    as others are; that of a whole one is taken from -0.5, whose nearest element is the first."""
    extents = _extents_resized(g)
    where = [a % g["X"].ndim for a in g.attr("axes") or range(g["X"].ndim)]
    factor, mode = _kept_ratio(g), g.attr("mode", "nearest")
    how = {"nearest": g.attr("nearest_mode", "round_prefer_floor")}
    if mode == "cubic":
        how = {"cubic_a": g.attr("cubic_coeff_a", -0.75), "exclude_outside": bool(g.attr("exclude_outside", 0))}
    y, beside, count = g["X"], _beside_what_is_not_finite(g["X"]), 4
    size = y
    for a, n, m in zip(where, extents, (g.expected[0].value.shape[a] for a in where)):
        axis = Axis(n, m, factor)
        at = axis.positions("half_pixel" if m == 1 and factor * n != 1 else "pytorch_half_pixel")
        if mode != "nearest" and m == 1 and factor * n == 1:
            at = np.full(1, -0.5)
        tap, weights = taps(axis, at, mode, **how)
        beside = np.take(beside, tap, axis=a).any(a + 1)
        if mode == "nearest":
            y = np.take(y, tap[:, 0], axis=a)
            continue
        w = weights.reshape(weights.shape + (1,) * (y.ndim - a - 1))
        y = (np.take(y.astype(np.float64), tap, axis=a) * w).sum(a + 1)
        size = (np.take(np.abs(size.astype(np.float64)), tap, axis=a) * np.abs(w)).sum(a + 1)
        count += tap.shape[1]
    if mode == "nearest":
        return [_through_double(y, beside)]
    kind = of(g["X"])
    if kind.kind == "f":
        y = np.clip(y, -float_max(kind), float_max(kind))
    ulp = np.abs(y) * 2.0**-kind.frac + smallest_subnormal(kind) if kind.kind == "f" else 1.0
    within = size * 2.0**-53 * count + ulp
    return [Near(y, np.where(beside, np.inf, within))]


def just_above_an_element(g: Given) -> list[Near]:
    """Resize, half_pixel_symmetric by factors: a place just above an element by rounding alone has the weights of that
    and the neighbours of the one before: anything may come there, the others are right."""
    y = g.expected[0].value
    free = np.zeros(y.shape, bool)
    for a, n, f in zip(g.attr("axes") or range(y.ndim), _extents_resized(g), g["scales"], strict=True):
        at = np.arange(y.shape[a])
        x = n / 2 * (1 - y.shape[a] / (float(f) * n)) + (at + 0.5) / float(f) - 0.5
        above = (x != np.floor(x)) & (x - np.floor(x) < 1e-9)
        free |= above.reshape([-1 if k == a % y.ndim else 1 for k in range(y.ndim)])
    nearest = g.attr("mode", "nearest") == "nearest"
    near = _through_double(y, _asked(g, {}, {"X": g["X"]}) if nearest else None)
    if not isinstance(near, Near):
        return [Near(y, np.where(free, np.inf, 0))]
    return [Near(near.value, np.where(free, np.inf, near.within), near.other)]


def copied(g: Given) -> list[Any]:
    """Resize by factors of 1: the elements as they are."""
    return [_through_double(g["X"])]


def _through_double(x: np.ndarray, beside: np.ndarray | None = None) -> Any:
    """An array whose integers of 64 bits went through double, which may have made them too large; of floats an infinity
    may be the largest number, and an element NaN that is ``beside`` one that is not finite (``_asked``)."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        return Near(x, np.where(np.abs(x.astype(np.float64)) > 2.0**62, np.inf, 2.0**11))
    if x.dtype.kind in "iub" or x.dtype.hasobject:
        return x
    wide = x.astype(np.float64)
    held = np.where(np.isinf(wide), np.copysign(float_max(of(x)), wide), wide)
    return Near(held, 0.0, wide if beside is None else np.where(beside, np.nan, wide))


def _beside_what_is_not_finite(x: np.ndarray) -> np.ndarray:
    """Elements that are not finite, and their neighbours."""
    if x.dtype.kind in "iub" or x.dtype.hasobject:
        return np.zeros(x.shape, bool)
    found = ~np.isfinite(x.astype(np.float64))
    for a in range(x.ndim):
        rolled = np.moveaxis(found, a, 0).copy()
        rolled[1:] |= np.moveaxis(found, a, 0)[:-1]
        rolled[:-1] |= np.moveaxis(found, a, 0)[1:]
        found = np.moveaxis(rolled, 0, a)
    return found


def _asked(g: Given, attrs: dict[str, Any], inputs: dict[str, Any]) -> np.ndarray:
    """Which elements Resize takes, with other attributes and inputs, from beside one that is not finite: a neighbour
    that is not chosen has the factor 0."""
    x = inputs["X"]
    marked = _beside_what_is_not_finite(x)
    found = g.reevaluate(attrs, {**inputs, "X": marked.astype(x.dtype)}) if marked.any() else None
    return found[0].value != 0 if found else np.zeros(g.expected[0].value.shape, bool)


def _kept_ratio(g: Given) -> float:
    """The factor of all axes of a Resize to sizes that keep the ratio."""
    ratios = [float(s) / n for s, n in zip(g["sizes"], _extents_resized(g), strict=True)]
    return min(ratios) if g.attr("keep_aspect_ratio_policy") == "not_larger" else max(ratios)


def _extents_resized(g: Given) -> list[int]:
    return [g["X"].shape[a] for a in g.attr("axes") or range(g["X"].ndim)]


def unpooled_with_pads(g: Given) -> list[Any] | None:
    """MaxUnpool: the pads shrink the tensor in which the indices count, although the shape of the output is given."""
    x, kernel = g["X"], g.attr("kernel_shape")
    strides, pads = g.attr("strides") or [1] * len(kernel), g.attr("pads") or [0] * 2 * len(kernel)
    counted = [
        (n - 1) * t + k - a - e for n, t, k, a, e in zip(x.shape[2:], strides, kernel, pads, pads[len(kernel) :])
    ]
    flat = np.zeros(math.prod((*x.shape[:2], *counted)), x.dtype)
    if not (g["I"] < flat.size).all() or any(n > m for n, m in zip(counted, g["output_shape"][2:])):
        return None
    flat[g["I"].reshape(-1)] = x.reshape(-1)
    out = np.zeros(g["output_shape"], x.dtype)
    of_out: tuple[Any, ...] = (slice(None), slice(None), *map(slice, counted))
    out[of_out] = flat.reshape(*x.shape[:2], *counted)
    return [out]
