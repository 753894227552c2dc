"""Images resized, cropped and resampled.  Where a nearest position or a clamp is not spelled out the case is
ambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, of
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Fn,
    Map,
    Sampling,
    Spelling,
    T,
    bounded,
    underspecified,
)
from suites.mil import op
from suites.mil.codecs import ints, maybe, need, scalar, typed, vector
from suites.semantics import movement
from suites.semantics import sampling as s

MODES = {m: m.upper() for m in s.SAMPLING}
MODE = Map("sampling_mode", MODES)


def _type_of_x(call: Call, i: int) -> Any:
    return of(call.inputs["x"])


def _image(d: Draw, lo: int = 3) -> tuple[int, ...]:
    return (*d.part(lo - 2, 3, lo=1), d.dim(1, 7), d.dim(1, 7))


# -- crop


def _draw_crop(d: Draw) -> dict[str, Any]:
    shape = list(_image(d))
    crops = []
    for axis in (-2, -1):
        a = [d.int(0, 2), d.int(0, 2)]
        shape[axis] += sum(a)
        crops.append(a)
    return {"x": T(shape), "crop_height": crops[0], "crop_width": crops[1]}


def _border(call: Call) -> tuple[int, ...]:
    h, w = ints(call, "crop_height", ()), ints(call, "crop_width", ())
    need(len(h) == len(w) == 2, "two-amounts", f"{h}, {w}")
    return (w[0], h[0], w[1], h[1])


_SPATIAL = {"x": "*_lead c h w"}  # at least rank 3
op(
    "crop",
    movement.crop_spatial,
    Sampling(_draw_crop),
    Checks(
        stated=_SPATIAL,
        breaks={
            "crops-inside": lambda d: {"x": T((1, 2, 3)), "crop_height": [2, 1], "crop_width": [0, 0]},
            "two-amounts": lambda d: {**_draw_crop(d), d.pick(("crop_height", "crop_width")): [0, 0, 0]},
        },
    ),
    border=Fn(_border),
)


# -- resize to a size


def _target(call: Call) -> tuple[int, int]:
    return scalar(call, "target_size_height", 1), scalar(call, "target_size_width", 1)


def _draw_bilinear(d: Draw) -> dict[str, Any]:
    out: dict[str, Any] = {"x": T(_image(d))}
    maybe(d, out, "target_size_height", d.int(1, 9), 1)
    maybe(d, out, "target_size_width", d.int(1, 9), 1)
    maybe(d, out, "sampling_mode", MODES[d.pick(s.SAMPLING)], "DEFAULT")
    return out


def _one_point(call: Call, sizes: Any, shape: tuple[int, ...]) -> str | None:
    mode = call.attr("sampling_mode", "DEFAULT")
    if mode == "STRICT_ALIGN_CORNERS" and any(m == 1 < n for m, n in zip(sizes, shape[-len(sizes) :])):
        return "STRICT_ALIGN_CORNERS divides by zero for one output point"
    return None


def _non_finite(call: Call) -> str | None:
    return "inf or NaN next to a weight of 0" if not np.isfinite(call.inputs["x"]).all() else None


op(
    "resize_bilinear",
    s.resize_linear,
    Spelling(sizes=Fn(_target), mode=MODE, out_dtype=_type_of_x),
    Sampling(_draw_bilinear),
    Checks(stated=_SPATIAL, ambiguous=lambda c: _non_finite(c) or _one_point(c, _target(c), c.inputs["x"].shape)),
)


def _draw_nearest(d: Draw) -> dict[str, Any]:
    shape = _image(d)
    sizes = [n * d.int(1, 3) if d.int(0, 3) else d.int(1, 9) for n in shape[-2:]]
    return {"x": T(shape), "target_size_height": sizes[0], "target_size_width": sizes[1]}


def _taken(x: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """The elements at places of the last axes, brought inside."""
    for k, at in enumerate(places):
        axis = x.ndim - len(places) + k
        x = x.take(np.clip(at, 0, x.shape[axis] - 1).astype(np.int64), axis)
    return x


def _between(sizes: Any, x: np.ndarray, factors: Any = ()) -> str | None:
    """Whole factors are the same on every grid that was ever used; of others one is not spelled out: edges or centres
    of pixels in the ratio of the extents or of the factors, or corners aligned; the element below or next to a place.
    """
    shape = x.shape[-len(sizes) :]
    if not x.size or 0 in sizes or not any(m % n for m, n in zip(sizes, shape)):
        return None
    grids = [
        [s.grid(0, n - 1, m, mode) for m, n in zip(sizes, shape)]
        for mode in ("default", "unalign_corners", "align_corners")
    ]
    if factors:
        grids += [[(np.arange(m) + c) / f - c for m, f in zip(sizes, factors)] for c in (0.0, 0.5)]
    readings = [_taken(x, [np.floor(p + half + 1e-9) for p in at]) for at in grids for half in (0.0, 0.5)]
    every = np.ones(readings[0].shape, bool)
    return underspecified("the grid of nearest-neighbour sampling is not spelled out", every, *readings)


op(
    "resize_nearest_neighbor",
    s.resize_nearest,
    Sampling(_draw_nearest),
    Checks(stated=_SPATIAL, ambiguous=lambda c: _between(_target(c), c.inputs["x"])),
    sizes=Fn(_target),
    mode=Fn(lambda c: "default"),
)


# -- resize (iOS 17): the last resized_dims entries of shape, 0 keeps an extent


def _sizes(call: Call) -> tuple[int, ...]:
    k, x = scalar(call, "resized_dims"), call.inputs["x"]
    shape = ints(call, "shape") or ()
    if not 0 <= k <= len(shape) <= x.ndim:
        need(False, "dims-within-shape", f"{k} of {shape} for rank {x.ndim}")
    tail = shape[len(shape) - k :]
    return tuple(m or n for m, n in zip(tail, x.shape[x.ndim - k :]))


def _resize(call: Call) -> Any:
    mode = call.attr("sampling_mode", "DEFAULT").lower()
    if call.attr("interpolation_mode", "LINEAR") == "LINEAR":
        return s.resize_linear(call.inputs["x"], sizes=_sizes(call), mode=mode)
    return s.resize_nearest(call.inputs["x"], sizes=_sizes(call), mode=mode)


def _resize_bound(ctx: Context) -> Any:
    """64 u (1 + extent) of the largest result: positions rounded in f32 times the steepest slope"""
    top = float(np.abs(ctx.wide).max(initial=0.0))
    return 64 * ctx.acc_u * (1 + max(ctx.wide.shape, default=1)) * top + ctx.ulp


def _draw_resize(d: Draw) -> dict[str, Any]:
    """ "T[...]" and "resized_dims <= size(shape)": any rank, and any number of axes, two of an image above all."""
    shape = d.shape(1, lo=1) if d.chance(4) else _image(d)
    k = d.int(0, min(3, len(shape))) if d.chance(4) else d.int(1, min(2, len(shape)))
    lead = d.int(0 if k else 1, len(shape) - k)
    want = [d.int(0, 5) for _ in range(lead)] + [0 if d.chance(5) else d.int(1, 9) for _ in range(k)]
    out: dict[str, Any] = {"x": T(shape), "shape": vector(want), "resized_dims": k}
    maybe(d, out, "interpolation_mode", "LINEAR" if d.int(0, 3) else "NEAREST_NEIGHBOR", "LINEAR")
    maybe(d, out, "sampling_mode", MODES[d.pick(s.SAMPLING)], "DEFAULT")
    return out


def _resize_open(call: Call) -> str | None:
    x, sizes, mode = call.inputs["x"], _sizes(call), call.attr("sampling_mode", "DEFAULT").lower()
    if not x.size or 0 in sizes:
        return None
    places = [np.clip(s.grid(0, n - 1, m, mode), 0, n - 1) for m, n in zip(sizes, x.shape[x.ndim - len(sizes) :])]
    between = any(np.abs(at - np.rint(at)).max(initial=0) > 1e-9 for at in places)
    if call.attr("interpolation_mode", "LINEAR") == "NEAREST_NEIGHBOR":
        if why := _one_point(call, sizes, x.shape):
            return why
        sides = [(np.floor(at + 1e-9), np.ceil(at - 1e-9)) for at in places]
        readings = [_taken(x, each) for each in product(*sides)]
        return underspecified(
            "how a nearest position between two elements is rounded is not stated",
            np.full(readings[0].shape, between),
            *readings,
        )
    if of(x).kind != "f" and between:
        return "how interpolated integers are rounded is not stated"
    return _non_finite(call) or _one_point(call, sizes, x.shape)


op(
    "resize",
    Evaluation(_resize, bounded(_resize_bound)),
    Spelling(out_dtype=_type_of_x),
    Sampling(_draw_resize),
    Checks(
        ambiguous=_resize_open,
        breaks={
            "dims-within-shape": lambda d: {"x": T((2, 3, 4)), "shape": vector([5], const=True), "resized_dims": 2}
        },
    ),
)


# -- upsample by factors


def _factors(call: Call) -> tuple[float, float]:
    return float(scalar(call, "scale_factor_height", 1)), float(scalar(call, "scale_factor_width", 1))


def _draw_factors(d: Draw, fractions: tuple[float, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {"x": T(_image(d))}
    u = typed(d, "U")
    for name in ("scale_factor_height", "scale_factor_width"):
        value = d.pick((1, 2, 3)) if u.kind == "i" or d.bool() else d.pick(fractions)
        if value != 1 or d.bool():
            out[name] = value if u.kind == "i" else float(value)
            out["@U"] = u.name
    return out


def _draw_up_bilinear(d: Draw) -> dict[str, Any]:
    out = _draw_factors(d, (1.5, 2.5, 1.25))
    align = d.bool()
    maybe(d, out, "align_corners", align, True)
    if "half_pixel_centers" in d.version.schema.attrs and d.bool():
        out["half_pixel_centers"] = not align if d.bool() or align else False
    return out


def _half(call: Call) -> bool:
    v = call.attrs.get("half_pixel_centers")
    return not call.attr("align_corners", True) if v is None else bool(v)


def _up_sizes(call: Call) -> tuple[int, ...]:
    return tuple(int(np.floor(n * f)) for n, f in zip(call.inputs["x"].shape[-2:], _factors(call)))


op(
    "upsample_bilinear",
    s.upsample_linear,
    Spelling(factors=Fn(_factors), align="align_corners", half=Fn(_half), out_dtype=_type_of_x),
    Sampling(_draw_up_bilinear),
    Checks(ambiguous=_non_finite, stated=_SPATIAL),
)
op(
    "upsample_nearest_neighbor",
    s.resize_nearest,
    Sampling(lambda d: _draw_factors(d, (1.5, 2.5))),
    Checks(stated=_SPATIAL, ambiguous=lambda c: _between(_up_sizes(c), c.inputs["x"], _factors(c))),
    sizes=Fn(_up_sizes),
    mode=Fn(lambda c: "default"),
)


# -- crop_resize: regions of every image (4 values), or of a named one (5 values, iOS 15 and 16; box_indices from
# iOS 17)


def _box(d: Draw, form: str, h: int, w: int, normalized: bool, whole: bool) -> list[float]:
    least = 1 if d.int(0, 3) else 0  # a box of one row or column is a point
    box: list[float]
    y0, x0 = d.int(0, h - 1 - least), d.int(0, w - 1 - least)
    y1, x1 = d.int(y0 + least, h - 1), d.int(x0 + least, w - 1)
    if form.startswith("CENTER"):
        if whole:  # an even size, so that the centre is a whole number
            y1, x1 = y1 - (y1 - y0) % 2, x1 - (x1 - x0) % 2
        box = [(y0 + y1) / 2, (x0 + x1) / 2, y1 - y0, x1 - x0]
    else:
        box = [y0, x0, y1, x1]
    if normalized:
        box = [v / max(1, m - 1) for v, m in zip(box, (h, w, h, w))]
    return [box[1], box[0], box[3], box[2]] if "WIDTH_FIRST" in form else box


def _no_or_many_regions(d: Draw, new: bool, form: str) -> dict[str, Any]:
    """No box, of images that may be none or have no rows, in results of any extent; or more boxes than f16 counts."""
    n = d.pick((0, 0, 0, 0, 520))
    size = dict(zip(d.shuffle(("target_height", "target_width")), (d.pick((1, 3, 2**31 - 1, 0)) if n == 0 else 1, 1)))
    x = T(d.pick(((0, 1, 2, 2), (1, 2, 0, 2), (1, 2, 2, 0), (2, 1, 3, 3))) if n == 0 else (2, 1, 2, 2))
    out: dict[str, Any] = {"x": x, **size}
    values = [0, 0, 1, 1] if form.startswith("CORNERS") else [0.5, 0.5, 1, 1]
    if new:
        whole = d.types["BOX_T"].kind == "u"
        values = [0, 0, 1, 1] if whole or form.startswith("CORNERS") else values
        out["boxes"] = T((n, 4), values=values * n)
        if d.bool() or n:
            out["box_indices"] = T((n,), values=[k % 2 for k in range(n)])
    else:
        five = d.bool()
        rows = [v for k in range(n) for v in ([k % 2] if five else []) + values]
        out["roi"] = T((n, 1, 5 if five else 4, 1, 1), values=rows)
    if d.bool():
        out["box_coordinate_mode"] = form if n == 0 or form.startswith("CORNERS") else "CORNERS_HEIGHT_FIRST"
    usual = {"spatial_scale": 1.0, "sampling_mode": "DEFAULT", "normalized_coordinates": False, "pad_value": 0.0}
    other = {
        "spatial_scale": 0.5,
        "sampling_mode": "ALIGN_CORNERS",
        "normalized_coordinates": not new,
        "pad_value": 1.0,
    }
    for name in usual:
        if name in d.version.schema.attrs and d.bool():
            out[name] = (other if n == 0 else usual)[name]
    return out


def _draw_regions(d: Draw) -> dict[str, Any]:
    b, c, h, w = d.dim(1, 3), d.dim(1, 3), d.dim(2, 7), d.dim(2, 7)
    form, n = d.pick(tuple(s.BOXES)), d.dim(1, 4)
    new = d.version.version == "ios17"
    if d.chance(10):
        return _no_or_many_regions(d, new, form)
    whole = new and d.types["BOX_T"].kind == "u"
    normalized = d.bool() and not whole
    named = d.bool()
    boxes = [_box(d, form, h, w, normalized, whole) for _ in range(n)]
    beyond = "pad_value" in d.version.schema.attrs and not (normalized or whole) and d.chance(3)
    if beyond:  # by whole pixels, partly or altogether
        at = (0, 1) if form.startswith("CENTER") else (0, 1, 2, 3)
        for box in boxes:
            moves = (d.int(-h, h), d.int(-w, w)) * 2
            for k in at:
                box[k] += moves[k] if "HEIGHT" in form else moves[::-1][k]
    images = [d.int(0, b - 1) for _ in range(n)]
    out: dict[str, Any] = {"x": T((b, c, h, w))}
    if new:
        out["boxes"] = T((n, 4), values=[float(v) for box in boxes for v in box])
        if whole:
            out["boxes"] = T((n, 4), values=[int(v) for box in boxes for v in box])
        if n > b or d.bool():
            out["box_indices"] = vector(images)
    else:
        rows = [([float(j)] if named else []) + [float(v) for v in box] for j, box in zip(images, boxes)]
        out["roi"] = T((n, 1, 4 + named, 1, 1), values=[v for row in rows for v in row])
    scale = 1.0
    if d.chance(3) and not beyond:  # at most 1: what is inside stays so
        scale = out["spatial_scale"] = d.pick((1.0, 0.5, 0.25))
    top = [5, 5]
    if d.int(0, 3):  # no more points than pixels: more of them lie beyond the box, where no clamp is stated
        edges = [s.box_edges(np.array(box), form, h, w, normalized, scale) for box in boxes]
        top = [max(1, min(5, 1 + int(min(e[k + 2] - e[k] for e in edges)))) for k in (0, 1)]
    maybe(d, out, "target_height", d.int(1, top[0]), 1)
    maybe(d, out, "target_width", d.int(1, top[1]), 1)
    maybe(d, out, "normalized_coordinates", normalized, False)
    maybe(d, out, "box_coordinate_mode", form, "CORNERS_HEIGHT_FIRST")
    single = 1 in (out.get("target_height", 1), out.get("target_width", 1))
    modes = s.SAMPLING[1:] if single and not d.chance(8) else s.SAMPLING  # the strict one divides by zero there
    maybe(d, out, "sampling_mode", MODES[d.pick(modes)], "DEFAULT")
    if "pad_value" in d.version.schema.attrs and d.bool():
        out["pad_value"] = d.int(-8, 8) / 4
    return out


def _break_image(d: Draw) -> dict[str, Any]:
    """A box of an image that there is not: named, or by its place."""
    n = d.dim(1, 3)
    out: dict[str, Any] = {"x": T((n, 1, 3, 3)), "boxes": T((n + 1, 4), values=[0, 0, 2, 2] * (n + 1))}
    if d.bool():
        out["box_indices"] = T((n + 1,), values=[0] * n + [n + d.int(0, 2)], const=True)
    return out


def _break_batch(d: Draw) -> dict[str, Any]:
    """ "first element is an index ... It must be within range [0, B)"."""
    n = d.dim(1, 3)
    return {"x": T((n, 1, 3, 3)), "roi": T((1, 1, 5, 1, 1), values=[n + d.int(0, 2), 0, 0, 2, 2])}


def _break_whole(d: Draw) -> dict[str, Any]:
    """ "If normalized_coordinates is True, only fp16 and fp32 dtypes are allowed"."""
    whole = T((1, 4), values=[0, 0, 1, 1], dtype=BY_NAME["u16"])
    return {"x": T((1, 1, 3, 3)), "boxes": whole, "normalized_coordinates": True}


def _regions(call: Call) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """Boxes [n, 4], images [n], and whether every image is cropped by every box."""
    if "boxes" in call.inputs:
        at = call.inputs.get("box_indices")
        return call.inputs["boxes"], at, False
    roi = call.inputs["roi"][:, 0, :, 0, 0]
    return (roi, None, True) if roi.shape[1] == 4 else (roi[:, 1:], roi[:, 0].astype(np.int64), False)


def _crop_params(call: Call) -> dict[str, Any]:
    return {
        "size": (scalar(call, "target_height", 1), scalar(call, "target_width", 1)),
        "normalized": bool(call.attr("normalized_coordinates", False)),
        "scale": scalar(call, "spatial_scale", 1.0),
        "form": call.attr("box_coordinate_mode", "CORNERS_HEIGHT_FIRST"),
        "mode": call.attr("sampling_mode", "DEFAULT").lower(),
        "pad_value": scalar(call, "pad_value", 0.0),
    }


def _crop_resize(call: Call) -> Any:
    x, (boxes, images, every) = call.inputs["x"], _regions(call)
    p = _crop_params(call)
    if not len(boxes):
        lead = (0, x.shape[0]) if every else (0,) if "boxes" in call.inputs else (0, 1)
        return np.zeros((*lead, x.shape[1], *p["size"]), x.dtype)
    need(boxes.dtype.kind == "f" or not p["normalized"], "normalized-floats", f"boxes of {of(boxes)}")
    if every:
        per = [s.crop_resize(x, boxes, np.full(len(boxes), j), **p) for j in range(x.shape[0])]
        return np.stack(per, 1)
    y = s.crop_resize(x, boxes, images, **p)
    return y if "boxes" in call.inputs else y[:, None]


def _edge_open(at: np.ndarray, n: int) -> str | None:
    """From iOS 16 on, where what lies beyond the image reads ``pad_value``: points that it depends on a rounding, or on
    how the padding is meant, whether they do."""
    near = (np.abs(at) < 1e-4) | (np.abs(at - (n - 1)) < 1e-4)
    if near.any() and (at * 64 != np.rint(at * 64)).any():
        return "a point that a rounding puts beyond the edge of the image"
    if (((at > -1) & (at < 0)) | ((at > n - 1) & (at < n))).any():
        return "whether a point between the image and its padding is made of both"
    return None


def _crop_open(call: Call) -> str | None:
    """Whether points are clamped to the box, or to the image alone, stands in the ledger."""
    p, (boxes, _, _) = _crop_params(call), _regions(call)
    pads = "pad_value" in call.version.schema.attrs
    h, w = call.inputs["x"].shape[2:]
    for box in boxes:
        y0, x0, y1, x1 = s.box_edges(box, p["form"], h, w, p["normalized"], p["scale"])
        for lo, hi, m, n in ((y0, y1, p["size"][0], h), (x0, x1, p["size"][1], w)):
            at = s.grid(lo, hi, m, p["mode"])
            if p["mode"] == "strict_align_corners" and m == 1 and hi > lo:
                return "STRICT_ALIGN_CORNERS divides by zero for one output point"
            if hi < lo or (not pads and (lo < -1e-6 or hi > n - 1 + 1e-6)):
                return "a box beyond the image, or upside down"
            if pads and (why := _edge_open(at, n)):
                return why
            if not pads and at.size and (at.min() < 0 or at.max() > n - 1):
                return "a point that a rounding puts beyond the edge of the image"
    return _non_finite(call)


_CROP = Evaluation(_crop_resize, bounded(_resize_bound))
_CROPPED = (
    Spelling(out_dtype=_type_of_x),
    Sampling(_draw_regions, data={"x": ("unit", "small", "uniform:-4:4")}),
    Checks(
        ambiguous=_crop_open,
        stated={"x": "b c h w", "roi": "n 1 _of_a_box 1 1", "boxes": "n 4", "box_indices": "n"},
    ),
)
op("crop_resize", _CROP, *_CROPPED, Checks(breaks={"image-in-range": _break_batch}), until="ios16")
op(
    "crop_resize",
    _CROP,
    *_CROPPED,
    Checks(breaks={"image-in-range": _break_image, "normalized-floats": _break_whole}),
    since="ios17",
)


# -- resample and affine


def _draw_resample(d: Draw) -> dict[str, Any]:
    b, c, h, w = d.dim(1, 3), d.dim(1, 3), d.dim(1, 6), d.dim(1, 6)
    u = d.types["U"]
    space = d.pick(("unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"))
    sampling = d.pick(("bilinear", "bilinear", "nearest"))
    recipe = "ints:0:5" if u.kind == "u" else "ints:-2:7" if u.kind == "i" else "uniform:-1.5:1.5"
    if space == "unnormalized" and u.kind == "f":
        recipe = "ints:-2:7" if sampling == "nearest" else "uniform:-2:7"
    return {
        "x": T((b, c, h, w)),
        "coordinates": T((b, d.dim(1, 4), d.dim(1, 4), 2), recipe=recipe),
        "sampling_mode": sampling,
        "padding_mode": d.pick(s.PADDING),
        "padding_value": d.int(-8, 8) / 4,
        "coordinates_mode": space,
        "align_corners": d.bool(),
    }


def _resample_open(call: Call) -> str | None:
    x, at = call.inputs["x"], call.inputs["coordinates"].astype(np.float64)
    if not np.isfinite(at).all():
        return "a place that is not a number"
    space, align = call.attr("coordinates_mode"), bool(call.attr("align_corners"))
    if call.attr("sampling_mode") == "nearest":
        for k, n in ((0, x.shape[3]), (1, x.shape[2])):
            p = s.to_pixels(at[..., k], n, space, align)
            if (np.abs(p - np.floor(p) - 0.5) < 1e-3).any():
                return "a place half way between two pixels"
    return _non_finite(call)


op(
    "resample",
    s.resample,
    Spelling(
        sampling="sampling_mode",
        padding="padding_mode",
        value="padding_value",
        space="coordinates_mode",
        align="align_corners",
        out_dtype=_type_of_x,
    ),
    Sampling(_draw_resample),
    Checks(ambiguous=_resample_open, stated={"x": "b c h w", "coordinates": "b _h _w 2"}),
)


def _many_or_no_images(d: Draw) -> dict[str, Any]:
    """As many matrices as images: none, or more than f16 counts."""
    b = d.pick((0, 130, 342, 0))
    first = d.pick((0, 2**31 - 1, 3)) if b == 0 else 2
    size = dict(zip(d.shuffle(("output_height", "output_width")), (first, d.pick((0, 3)) if b == 0 else 2)))
    out = {"x": T((b, 1, 2, 2)), "transform_matrix": T((b, 6), recipe="uniform:-1:1"), **size}
    fixed = {"sampling_mode": "bilinear", "padding_mode": "constant", "padding_value": 0.0, "align_corners": True}
    return {**out, **fixed, "coordinates_mode": "normalized_minus_one_to_one"}


def _draw_affine(d: Draw) -> dict[str, Any]:
    b, least = d.dim(1, 3), 1 if d.chance(8) else 2  # where one point lies is open
    if d.chance(12):
        return _many_or_no_images(d)
    return {
        "x": T((b, d.dim(1, 3), d.dim(1, 6), d.dim(1, 6))),
        "transform_matrix": T((b if d.bool() else 1, 6), recipe="uniform:-1:1"),
        "output_height": d.int(least, 6),
        "output_width": d.int(least, 6),
        "sampling_mode": "bilinear",
        "padding_mode": "constant",
        "padding_value": 0.0,
        "coordinates_mode": "normalized_minus_one_to_one",
        "align_corners": True,
    }


def _affine_size(call: Call) -> tuple[int, int]:
    """What the page does not support yet is refused where it is read."""
    need(not scalar(call, "padding_value", 0.0), "padding-value-zero", f"{scalar(call, 'padding_value')}")
    need(bool(call.attr("align_corners", True)), "corners-aligned", "align_corners is false")
    b, m = call.inputs["x"].shape[0], call.inputs["transform_matrix"].shape[0]
    need(m in (1, b), "matrix-per-image", f"{m} matrices for {b} images")
    return scalar(call, "output_height"), scalar(call, "output_width")


def _affine_open(call: Call) -> str | None:
    if 1 in _affine_size(call):
        return "where the one point of an extent of 1 lies"
    return _non_finite(call)


op(
    "affine",
    s.affine,
    Spelling(matrix="transform_matrix", size=Fn(_affine_size), out_dtype=_type_of_x),
    Sampling(_draw_affine),
    Checks(
        ambiguous=_affine_open,
        stated={"x": "b c h w", "transform_matrix": "_d 6"},
        breaks={"padding-value-zero": lambda d: {**_draw_affine(d), "padding_value": 1.0}},
    ),
)
