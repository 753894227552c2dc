"""Borders, crops, and interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.nn.definition.common import Array, Unsupported, check, layer


def _edges(amounts: Any) -> list[tuple[int, int]]:
    e = [(int(b.startEdgeSize), int(b.endEdgeSize)) for b in amounts.borderAmounts] or [(0, 0), (0, 0)]
    check(len(e) == 2, "borders")
    return e


@layer("padding")
def padding(p: Any, x: Array) -> Array:
    """A border around the last two axes: a value, the mirror image without the edge, or the edge."""
    kind = p.WhichOneof("PaddingType")
    check(kind is not None, "padding type")
    check(x.ndim >= 2, "rank below 2")
    (t, b), (l, r) = _edges(p.paddingAmounts)
    h, w = x.shape[-2:]
    y = np.zeros((*x.shape[:-2], t + h + b, l + w + r))
    for i in range(y.shape[-2]):
        for j in range(y.shape[-1]):
            u, v = i - t, j - l
            if kind == "replication":
                u, v = min(max(u, 0), h - 1), min(max(v, 0), w - 1)
            elif kind == "reflection":
                check(t < h and b < h and l < w and r < w, "reflection beyond the image")
                u = -u if u < 0 else 2 * (h - 1) - u if u >= h else u
                v = -v if v < 0 else 2 * (w - 1) - v if v >= w else v
            inside = 0 <= u < h and 0 <= v < w
            y[..., i, j] = x[..., u, v] if inside else p.constant.value
    return y


@layer("constantPad")
def constant_pad(p: Any, x: Array, amounts: Array | None = None) -> Array:
    """Amounts (begin, end) of every axis, or the extents to reach."""
    a = [int(v) for v in (p.padAmounts if amounts is None else amounts.ravel())]
    check(len(a) == 2 * x.ndim, "amounts")
    if p.padToGivenOutputSizeMode:
        check(not any(b and e for b, e in zip(a[::2], a[1::2])), "both sides of an axis")
        a = [max(0, v - x.shape[i // 2]) if v else 0 for i, v in enumerate(a)]
    y = np.full([n + a[2 * i] + a[2 * i + 1] for i, n in enumerate(x.shape)], p.value, np.float64)
    y[tuple(slice(a[2 * i], a[2 * i] + n) for i, n in enumerate(x.shape))] = x
    return y


@layer("crop")
def crop(p: Any, x: Array, like: Array | None = None) -> Array:
    """Borders cut off, or a window of the size of the second input."""
    check(x.ndim >= 3, "rank")
    h, w = x.shape[-2:]
    if like is not None:
        check(like.ndim == x.ndim, "rank")
        o = list(p.offset) or [0, 0]
        check(len(o) == 2, "offset")
        check(o[0] + like.shape[-2] <= h and o[1] + like.shape[-1] <= w, "outside")
        return x[..., o[0] : o[0] + like.shape[-2], o[1] : o[1] + like.shape[-1]]
    (t, b), (l, r) = _edges(p.cropAmounts)
    check(t + b <= h and l + r <= w, "outside")
    return x[..., t : h - b, l : w - r]


def _sample(x: Array, at: Array, axis: int) -> Array:
    """Linear interpolation at fractional positions along an axis; beyond the ends the end counts."""
    n = x.shape[axis]
    at = np.clip(at, 0, n - 1)
    lo = np.floor(at).astype(int)
    hi = np.minimum(lo + 1, n - 1)
    shape = [1] * x.ndim
    shape[axis] = -1
    f = (at - lo).reshape(shape)
    return np.take(x, lo, axis) * (1 - f) + np.take(x, hi, axis) * f


def _grid(mode: int, size: int, count: int) -> Array:
    """Sampling points of SamplingMode over the interval [0, size - 1]."""
    if mode == 0 or (mode == 1 and count > 1):
        return np.linspace(0, size - 1, count)
    if mode == 1:
        return np.array([(size - 1) / 2])
    if mode == 2:
        return np.minimum(size - 1, np.linspace(0, size - size / count, count))
    spacing = max(1, size - 1) / count
    return np.minimum(size - 1, np.linspace(0.5 * spacing, 0.5 * spacing + (count - 1) * spacing, count))


@layer("resizeBilinear")
def resize_bilinear(p: Any, x: Array) -> Array:
    """To a size, the points by the sampling mode."""
    check(x.ndim >= 3, "rank")
    size = list(p.targetSize) or [1, 1]
    check(len(size) == 2, "target size")
    for axis, n in ((x.ndim - 2, size[0]), (x.ndim - 1, size[1])):
        x = _sample(x, _grid(p.mode.samplingMethod, x.shape[axis], int(n)), axis)
    return x


@layer("upsample")
def upsample(p: Any, x: Array) -> Array:
    """By factors that make whole extents: every element repeated, or bilinear."""
    check(not (p.fractionalScalingFactor and p.scalingFactor), "two kinds of factors")
    check(x.ndim >= 3, "rank")
    factors = list(p.fractionalScalingFactor) or list(p.scalingFactor) or [1, 1]
    for axis, f in ((x.ndim - 2, factors[0]), (x.ndim - 1, factors[1])):
        n = x.shape[axis]
        m = round(n * f)
        if m != n * f or (p.mode == 0 and f != round(f)):
            raise Unsupported("a part of an element is not described")
        if p.mode == 0:
            x = np.repeat(x, round(f), axis)
        elif p.linearUpsampleMode == 0:
            x = _sample(x, np.arange(m) * ((n - n / m) / (m - 1) if m > 1 else 0.0), axis)
        elif p.linearUpsampleMode == 1:
            x = _sample(x, np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0), axis)
        else:
            x = _sample(x, np.arange(m) * (n / m) + 0.5 * (n / m) - 0.5, axis)
    return x


def _interval(mode: int, lo: float, hi: float, count: int) -> Array:
    """The sampling mode over [lo, hi] in place of [0, X - 1]: X is the length hi - lo + 1."""
    size = hi - lo + 1
    if mode == 0 or (mode == 1 and count > 1):
        return np.linspace(lo, hi, count)
    if mode == 1:
        return np.array([(lo + hi) / 2])
    if mode == 2:
        return np.minimum(hi, lo + np.linspace(0, size - size / count, count))
    spacing = max(1.0, hi - lo) / count
    return np.minimum(hi, lo + 0.5 * spacing + spacing * np.arange(count))


@layer("cropResize")
def crop_resize(p: Any, x: Array, roi: Array) -> Array:
    """Boxes [N, 1, 4 or 5, 1, 1] of images [1, B, C, H, W], resized bilinearly."""
    check(
        x.ndim == 5
        and x.shape[0] == 1
        and roi.ndim == 5
        and roi.shape[1] == roi.shape[3] == roi.shape[4] == 1
        and roi.shape[2] in (4, 5),
        "shapes",
    )
    batch, _, h, w = x.shape[1:]
    size = [int(v) for v in p.targetSize] or [1, 1]
    check(len(size) == 2, "target size")
    mode, form = p.mode.samplingMethod, p.boxIndicesMode.boxMode
    out = []
    for row in roi[:, 0, :, 0, 0]:
        box = row[-4:]
        if form in (1, 3):
            box = box[[1, 0, 3, 2]]
        if form in (2, 3):
            box = np.array([box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2])
        ends = np.array([h - 1, w - 1, h - 1, w - 1])
        if p.normalizedCoordinates:
            box = box * ends
        given, box = box, box * (p.spatialScale or 1.0)
        check(any(((v > -1e-5) & (v < ends + 1e-5)).all() for v in (given, box)), "box outside")
        if len(row) == 5:
            check(0 <= row[0] < batch, "batch")
        images = x[0] if len(row) == 4 else x[0, int(row[0]) : int(row[0]) + 1]
        y = _sample(images, _interval(mode, box[0], box[2], size[0]), 2)
        out.append(_sample(y, _interval(mode, box[1], box[3], size[1]), 3))
    return np.array(out)
