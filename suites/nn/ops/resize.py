"""Resampling images.  Source: NeuralNetwork.proto, Upsample, ResizeBilinear, CropResize, SamplingMode,
BoxCoordinatesMode."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Map, Sampling, Spelling, T, underspecified
from suites.nn import op
from suites.nn.spell import ListOr, Or
from suites.semantics import coreml
from suites.semantics.resize import resize

_SAMPLING = {
    "align_corners": "STRICT_ALIGN_ENDPOINTS_MODE",
    "align_corners_centred": "ALIGN_ENDPOINTS_MODE",
    "asymmetric": "UPSAMPLE_MODE",
    "offset_corners": "ROI_ALIGN_MODE",
}
_LINEAR = {"asymmetric": "DEFAULT", "align_corners": "ALIGN_CORNERS_TRUE", "half_pixel": "ALIGN_CORNERS_FALSE"}


def _space(c: Call) -> tuple[int, ...]:
    if c.inputs["x"].ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {c.inputs['x'].ndim}")
    return (-2, -1)


def _factors(c: Call) -> tuple[float, ...]:
    if c.attr("fractionalScalingFactor") and c.attr("scalingFactor"):
        raise RuleError("one-kind-of-factor", "scalingFactor and fractionalScalingFactor")
    return tuple(float(v) for v in (c.attr("fractionalScalingFactor") or c.attr("scalingFactor") or (1, 1)))


def _broken(c: Call) -> str | None:
    """The grid is given by the extents before and after; what a part of an element makes of the extent is not, nor
    which element is the nearest to a place between two."""
    factors = _factors(c)
    if any((n * f) % 1 for n, f in zip(c.inputs["x"].shape[-2:], factors)):
        return "part-of-an-element"
    return "nearest-of-two" if c.version.op == "upsample.NN" and any(f % 1 for f in factors) else None


def _near_no_number(c: Call) -> Any:
    """An element between two has a share of each, which may be none: the text does not say whether none of an infinity
    counts, nor in which form the shares are added, which overflows in one of them."""
    x = np.asarray(c.inputs["x"], np.float64)
    if x.ndim < 3 or (np.abs(x) < 1e38).all():
        return None
    odd = ~(np.abs(x) < 1e38)
    wide = np.pad(odd, [*[(0, 0)] * (x.ndim - 2), (1, 1), (1, 1)])
    h, w = x.shape[-2:]
    near = np.logical_or.reduce([wide[..., i : i + h, j : j + w] for i in range(3) for j in range(3)])
    meaning = c.version.meaning
    assert meaning is not None
    params = c.version.decode(c)[1]
    return underspecified(
        "interpolation-beside-no-number", np.asarray(meaning.fn(near.astype(np.float32), **params)) != 0
    )


def _fraction(d: Draw, n: int, parts: bool) -> float:
    """A factor from 1 on that makes a whole extent out of ``n`` elements."""
    return float(d.pick([k / 4 for k in range(4, 13) if (k * n) % 4 == 0 and (parts or k % 4 == 0)]))


def _draw_up(modes: tuple[str, ...]) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = (*d.part(1, 3), d.dim(1, 6), d.dim(1, 6))
        out: dict[str, Any] = {"x": T(shape, recipe=d.pick(("unit", "small", "iota")))}
        if d.chance(3):
            out["fractionalScalingFactor"] = [_fraction(d, n, bool(modes)) for n in shape[-2:]]
        elif d.int(0, 5):
            out["scalingFactor"] = [d.int(1, 4), d.int(1, 4)] if d.int(0, 9) else d.pick(([20, 1], [1, 20]))
        return {**out, "linearUpsampleMode": d.pick(modes)} if modes else out

    return draw


def _both_factors(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(3)), "scalingFactor": [2, 2], "fractionalScalingFactor": [2.0, 2.0]}


def _flat(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(1, 2)), "scalingFactor": [2, 2]}


_UP = (
    Spelling(axes=Fn(_space), scales=Fn(_factors)),
    Checks(ambiguous=_broken, breaks={"rank-at-least-3": _flat, "one-kind-of-factor": _both_factors}),
)
_OFF = {
    "sizes": None,
    "cubic_a": -0.75,
    "exclude_outside": False,
    "antialias": False,
    "extrapolation": 0.0,
    "policy": "stretch",
}
op(
    "upsample.NN",
    resize,
    *_UP,
    Spelling(fixed={**_OFF, "mode": "nearest", "coordinates": "asymmetric", "nearest": "floor"}),
    Sampling(_draw_up(())),
)
op(
    "upsample.BILINEAR",
    resize,
    *_UP[:1],
    Checks(ambiguous=lambda c: _broken(c) or _near_no_number(c), breaks=_UP[1].breaks),
    Spelling(coordinates=Map("linearUpsampleMode", _LINEAR), fixed={**_OFF, "mode": "linear", "nearest": "floor"}),
    Sampling(_draw_up(tuple(_LINEAR.values()))),
)


class _Sizes(ListOr):
    """Extents of the result, which has elements: "CoreML does not allow such empty tensor" (coremltools 9.0, cat)."""

    def decode(self, call: Call) -> Any:
        sizes = super().decode(call)
        if 0 in sizes:
            raise RuleError("extent-positive", f"a target of {list(sizes)}")
        return sizes


_SIZES = _Sizes("targetSize", (1, 1))


def _draw_resize(d: Draw) -> dict[str, Any]:
    shape = (*d.part(1, 3), d.dim(1, 7), d.dim(1, 7))
    out = {
        "x": T(shape, recipe=d.pick(("unit", "small", "iota"))),
        "mode.samplingMethod": d.pick(tuple(_SAMPLING.values())),
    }
    return {**out, "targetSize": [d.int(1, 9), d.int(1, 9)]} if d.int(0, 6) else out


def _flat_target(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(1, 2)), "targetSize": [2, 2]}


op(
    "resizeBilinear",
    resize,
    Spelling(
        sizes=_SIZES,
        axes=Fn(_space),
        coordinates=Map("mode.samplingMethod", _SAMPLING),
        fixed={**{k: v for k, v in _OFF.items() if k != "sizes"}, "scales": None, "mode": "linear", "nearest": "floor"},
    ),
    Sampling(_draw_resize),
    Checks(ambiguous=_near_no_number, breaks={"rank-at-least-3": _flat_target}),
)

# -- regions of interest

_MODES = {
    "strict_align": "STRICT_ALIGN_ENDPOINTS_MODE",
    "align": "ALIGN_ENDPOINTS_MODE",
    "upsample": "UPSAMPLE_MODE",
    "roi_align": "ROI_ALIGN_MODE",
}
_FORMS = {
    "corners_height_first": "CORNERS_HEIGHT_FIRST",
    "corners_width_first": "CORNERS_WIDTH_FIRST",
    "center_height_first": "CENTER_SIZE_HEIGHT_FIRST",
    "center_width_first": "CENTER_SIZE_WIDTH_FIRST",
}


def _images(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim != 5 or x.shape[0] != 1:
        raise RuleError("image-shape", f"{list(x.shape)}, expected [1, Batch, C, H, W]")
    return x[0]


def _rows(c: Call) -> np.ndarray:
    r = c.inputs["roi"]
    if r.ndim != 5 or r.shape[1] != 1 or r.shape[3:] != (1, 1):
        raise RuleError("roi-shape", f"{list(r.shape)}, expected [N, 1, 4 or 5, 1, 1]")
    return r[:, 0, :, 0, 0]


def _box(d: Draw, h: int, w: int, form: str, part: bool, scale: float) -> list[float]:
    """A box inside the image, on a grid that float32 holds, in the chosen form and unit."""
    top, left = d.int(0, 4 * (h - 1)) / 4, d.int(0, 4 * (w - 1)) / 4
    bottom, right = d.int(int(4 * top), 4 * (h - 1)) / 4, d.int(int(4 * left), 4 * (w - 1)) / 4
    box = [top, left, bottom, right]
    if part:
        box = [v / max(1, n - 1) for v, n in zip(box, (h, w, h, w))]
    if form.startswith("CENTER"):
        box = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]]
    box = [v / scale for v in box]
    return [box[1], box[0], box[3], box[2]] if form.endswith("WIDTH_FIRST") else box


def _one_cell(d: Draw) -> dict[str, Any]:
    """An image of one cell a channel, at times the blob that says where the box is."""
    n = d.pick((4, 5))
    values = [float(d.pick((0.0, -0.0)))] * n
    x = T((1, 1, n, 1, 1), values=values, const=False)
    form = d.pick(tuple(_FORMS.values()))
    out = {"x": x, "roi": x, "targetSize": [1, d.int(1, 2)], "boxIndicesMode.boxMode": form}
    return {**out, "mode.samplingMethod": d.pick(tuple(_MODES.values())), "@same": {"roi": "x"}}


def _draw_crop(d: Draw) -> dict[str, Any]:
    if d.chance(16):
        return _one_cell(d)
    b, c = d.dim(1, 3), d.dim(1, 3)
    part, scale = d.bool(), d.pick((1.0, 1.0, 0.5, 0.25))
    h, w = (d.pick((1, 2, 3, 5, 9)) for _ in "hw") if part else (d.dim(1, 7), d.dim(1, 7))
    form, five, n = d.pick(tuple(_FORMS.values())), d.bool(), d.int(1, 3)
    if d.chance(24):
        b, c, h, w, five, n = 1, 1, 2, 2, True, 410  # boxes beyond what f16 counts
    rows: list[float] = []
    for _ in range(n):
        rows += ([float(d.int(0, b - 1))] if five else []) + _box(d, h, w, form, part, scale)
    if scale == 1.0 and d.chance(12):  # what only the scale takes out of the image
        scale = 2.0
    if d.chance(6):
        rows = [d.pick((-0.0, 2.0**-140)) if v == 0 and d.bool() and scale <= 1.0 else v for v in rows]
    return {
        "x": T((1, b, c, h, w), recipe=d.pick(("unit", "small", "iota", "special"))),
        "roi": T((n, 1, 5 if five else 4, 1, 1), values=rows),
        "targetSize": [d.int(1, 5), d.int(1, 5)],
        "normalizedCoordinates": part,
        "mode.samplingMethod": d.pick(tuple(_MODES.values())),
        "boxIndicesMode.boxMode": form,
        "spatialScale": scale,
    }


def _aside(d: Draw) -> dict[str, Any]:
    """A box that no scale takes into the image."""
    out = _draw_crop(d)
    h, w = out["x"].shape[-2:]
    far = [float(max(h, w))] * 2
    box = far + ([0.0, 0.0] if out["boxIndicesMode.boxMode"].startswith("CENTER") else far)
    return {
        **out,
        "roi": T((1, 1, 4, 1, 1), values=box),
        "spatialScale": 1.0,
        "normalizedCoordinates": False,
        "@same": {},
    }


def _no_such_image(d: Draw) -> dict[str, Any]:
    """ "must be in the interval [0, Batch - 1]"."""
    return {"x": T((1, 2, 1, 3, 3)), "roi": T((1, 1, 5, 1, 1), values=[d.pick((-1.0, 2.0)), 0.0, 0.0, 1.0, 1.0])}


def _crop_open(c: Call) -> str | None:
    """Of a box that its scale takes out of the image, or that ends before it begins, nothing is said."""
    h, w = c.inputs["x"].shape[-2:]
    form = next(k for k, v in _FORMS.items() if v == c.attr("boxIndicesMode.boxMode"))
    box = coreml.corners(_rows(c), form, bool(c.attr("normalizedCoordinates")), h, w)
    box = box * (c.attr("spatialScale") or 1.0)
    if not (np.abs(c.inputs["x"]) < 1e38).all():
        return "interpolation-beside-no-number"
    if coreml.outside(box, h, w).any():
        return "a box that is within the image until it is scaled"
    return "a box that ends before it begins" if (box[:, 2:] < box[:, :2] - 1e-6).any() else None


def _roi_apart(d: Draw) -> dict[str, Any]:
    return {**_draw_crop(d), "roi": T((1, 1, 4, 2, 1)), "@same": {}}


def _image_apart(d: Draw) -> dict[str, Any]:
    return {**_draw_crop(d), "x": T((2, 1, 1, 3, 3)), "@same": {}}


op(
    "cropResize",
    coreml.crop_resize,
    Sampling(_draw_crop),
    Checks(
        ambiguous=_crop_open,
        breaks={
            "roi-shape": _roi_apart,
            "four-or-five": lambda d: {**_draw_crop(d), "roi": T((1, 1, d.pick((3, 6)), 1, 1)), "@same": {}},
            "image-shape": _image_apart,
            "box-inside": _aside,
            "batch-in-range": _no_such_image,
        },
    ),
    x=Fn(_images),
    roi=Fn(_rows),
    sizes=_SIZES,
    mode=Map("mode.samplingMethod", _MODES),
    form=Map("boxIndicesMode.boxMode", _FORMS),
    normalized="normalizedCoordinates",
    scale=Or("spatialScale", 1.0),
)
