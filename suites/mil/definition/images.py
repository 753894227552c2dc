"""Images resized, cropped and resampled."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)


def _points(extent: float, count: int, mode: str) -> np.ndarray:
    """Grid points over [0, extent - 1], as resize_bilinear prints them; spacings of one point are 0."""
    k, gaps = np.arange(count, dtype=np.float64), max(count - 1, 1)
    if mode == "ALIGN_CORNERS" and count == 1:
        return np.array([(extent - 1) / 2])
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        return k * (extent - 1) / gaps
    if mode == "DEFAULT":
        return k * (extent - extent / count) / gaps
    if mode == "OFFSET_CORNERS":
        delta = max(1.0, extent - 1) / count
        return 0.5 * delta + k * delta
    return k * extent / count + 0.5 * extent / count - 0.5


def _linear(x: np.ndarray, at: np.ndarray, axis: int) -> np.ndarray:
    """Between two elements, places clamped to the first and last."""
    at = np.clip(at, 0, x.shape[axis] - 1)
    below = np.floor(at).astype(int)
    above = np.minimum(below + 1, x.shape[axis] - 1)
    t = (at - below).reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    return x.take(below, axis) * (1 - t) + x.take(above, axis) * t


@reads("resize_bilinear")
def _bilinear(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, mode = wide(a["x"]), at.get("sampling_mode", "DEFAULT")
    for axis, name in ((-2, "height"), (-1, "width")):
        x = _linear(x, _points(x.shape[axis], at.get(f"target_size_{name}", 1), mode), axis)
    return [x]


@reads("resize")
def _resize(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, mode, k = wide(a["x"]), at.get("sampling_mode", "DEFAULT"), at["resized_dims"]
    nearest = at.get("interpolation_mode", "LINEAR") == "NEAREST_NEIGHBOR"
    for axis in range(-k, 0):
        places = _points(x.shape[axis], int(a["shape"][axis]) or x.shape[axis], mode)
        inside = np.rint(np.clip(places, 0, x.shape[axis] - 1)).astype(int)
        x = x.take(inside, axis) if nearest else _linear(x, places, axis)
    return [x]


@reads("upsample_bilinear")
def _upsample(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, align = wide(a["x"]), at.get("align_corners", True)
    mode = "UNALIGN_CORNERS" if at.get("half_pixel_centers", not align) else "DEFAULT"
    for axis, name in ((-2, "height"), (-1, "width")):
        count = floor(x.shape[axis] * at.get(f"scale_factor_{name}", 1))
        x = _linear(x, _points(x.shape[axis], count, "STRICT_ALIGN_CORNERS" if align else mode), axis)
    return [x]


@reads("resize_nearest_neighbor")
def _nearest(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """By whole factors, which no grid divides: every element so often; or to no element, whatever the other factor."""
    x, sizes = a["x"], [at["target_size_height"], at["target_size_width"]]
    if 0 in sizes:
        return [x[..., :0, :0].reshape(*x.shape[:-2], *sizes)]
    for axis, name in ((-2, "height"), (-1, "width")):
        x = np.repeat(x, at[f"target_size_{name}"] // x.shape[axis], axis)
    return [x]


@reads("upsample_nearest_neighbor")
def _repeated(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x = a["x"]
    for axis, name in ((-2, "height"), (-1, "width")):
        x = np.repeat(x, int(at.get(f"scale_factor_{name}", 1)), axis)
    return [x]


@reads("crop")
def _crop(at: Attrs, a: Arrays, version: str) -> list[Any]:
    (top, bottom), (left, right) = at["crop_height"], at["crop_width"]
    *_, h, w = a["x"].shape
    return [a["x"][..., top : h - bottom, left : w - right]]


@reads("crop_resize")
def _crop_resize(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, images = wide(a["x"]), len(a["x"])
    if version == "ios17":
        which = a.get("box_indices")
        jobs = [[(box, k if which is None else int(which[k]))] for k, box in enumerate(wide(a["boxes"]))]
    else:
        rows = wide(a["roi"])[:, 0, :, 0, 0]
        jobs = [[(row[1:], int(row[0]))] if len(row) == 5 else [(row, k) for k in range(images)] for row in rows]
    crops = np.stack([np.stack([_one_crop(x[k], box, at) for box, k in job]) for job in jobs])
    return [crops[:, 0] if version == "ios17" else crops]


def _one_crop(image: np.ndarray, box: np.ndarray, at: Attrs) -> np.ndarray:
    form, mode = at.get("box_coordinate_mode", "CORNERS_HEIGHT_FIRST"), at.get("sampling_mode", "DEFAULT")
    box = box * at.get("spatial_scale", 1.0)
    if form.endswith("WIDTH_FIRST"):
        box = box[[1, 0, 3, 2]]
    first, second = box[:2], box[2:]
    if form.startswith("CENTER"):
        first, second = first - second / 2, first + second / 2
    extents = np.array(image.shape[1:])
    if at.get("normalized_coordinates", False):
        first, second = first * (extents - 1), second * (extents - 1)
    places = [
        lo + _points(hi - lo + 1, at.get(name, 1), mode)
        for lo, hi, name in zip(first, second, ("target_height", "target_width"))
    ]
    y = _linear(_linear(image, places[0], 1), places[1], 2)
    ok = [(p >= 0) & (p <= n - 1) for p, n in zip(places, extents)]
    return np.where(ok[0][:, None] & ok[1], y, at.get("pad_value", 0.0))


def _folded(k: int, n: int, mode: str) -> int:
    """|1, 2, 3| -> |2, 3, 2, 1, 2, 3, 2, 1, 2| (reflection), |3, 2, 1, 1, 2, 3, 3, 2, 1| (symmetric), by steps."""
    while not 0 <= k < n:
        if n == 1:
            return 0
        edge = 1 if mode == "symmetric" else 0
        k = -k - edge if k < 0 else 2 * (n - 1) - k + edge
    return k


def _pixel(image: np.ndarray, y: int, x: int, mode: str, value: float) -> np.ndarray:
    _, h, w = image.shape
    if mode == "constant" and not (0 <= y < h and 0 <= x < w):
        return np.full(len(image), value)
    if mode in ("constant", "border"):
        return image[:, min(max(y, 0), h - 1), min(max(x, 0), w - 1)]
    return image[:, _folded(y, h, mode), _folded(x, w, mode)]


def _at(image: np.ndarray, y: float, x: float, mode: str, value: float) -> np.ndarray:
    y0, x0 = floor(y), floor(x)
    four = [
        (_pixel(image, y0 + i, x0 + j, mode, value), abs(1 - i - (y - y0)) * abs(1 - j - (x - x0)))
        for i in (0, 1)
        for j in (0, 1)
    ]
    return sum((weight * p for p, weight in four if weight), np.zeros(len(image)))


@reads("resample")
def _resample(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, places, space = wide(a["x"]), a["coordinates"].astype(np.float64), at["coordinates_mode"]
    how = (at["padding_mode"], at["padding_value"])
    y = np.empty((*x.shape[:2], *places.shape[1:3]))
    for b, i, j in np.ndindex(places.shape[:3]):
        spot = []
        for v, n in zip(places[b, i, j], (x.shape[3], x.shape[2])):  # (x, y)
            if space == "normalized_minus_one_to_one":
                v = (v + 1) / 2
            if space != "unnormalized":
                v = v * (n - 1) if at["align_corners"] else v * n - 0.5
            spot.append(v)
        one = _pixel(x[b], round(spot[1]), round(spot[0]), *how) if at["sampling_mode"] == "nearest" else None
        y[b, :, i, j] = _at(x[b], spot[1], spot[0], *how) if one is None else one
    return [y]


@reads("affine")
def _affine(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, m = wide(a["x"]), wide(a["transform_matrix"])
    h, w = at["output_height"], at["output_width"]
    y = np.empty((*x.shape[:2], h, w))
    for b, i, j in np.ndindex(len(x), h, w):
        a0, a1, a2, b0, b1, b2 = m[b if len(m) > 1 else 0]
        px, py = 2 * j / max(w - 1, 1) - 1, 2 * i / max(h - 1, 1) - 1
        xs, ys = a0 * px + a1 * py + a2, b0 * px + b1 * py + b2
        y[b, :, i, j] = _at(x[b], (ys + 1) / 2 * (x.shape[2] - 1), (xs + 1) / 2 * (x.shape[3] - 1), "constant", 0.0)
    return [y]
