"""Images sampled at computed places: bilinear resize, boxes, coordinates and affine maps as MIL states them."""

from __future__ import annotations

import numpy as np

from harness.core.dtypes import of
from harness.core.errors import RuleError
from harness.declare import Choice, Context, Flag, Float, Int, Ints, Num, Real, Reals, composed, exact, semantics
from suites.semantics.integers import places
from suites.semantics.movement.padding import mirrored

SAMPLING = ("strict_align_corners", "align_corners", "default", "offset_corners", "unalign_corners")
PADDING = ("constant", "border", "reflection", "symmetric")
Array = np.ndarray


def grid(start: float, end: float, m: int, mode: str) -> Array:
    """f64 [m] input positions of ``m`` output points over [start, end], not yet clamped.

    Source: MIL resize_bilinear iOS15, sampling_mode, with Xin - 1 = end - start."""
    i, span = np.arange(m, dtype=np.float64), end - start
    if mode in ("strict_align_corners", "align_corners"):
        if m > 1:
            return start + i * (span / (m - 1))
        return np.full(m, start + (span / 2 if mode == "align_corners" else 0.0))
    if mode == "default":
        return start + i * ((span + 1) / m)
    if mode == "offset_corners":
        delta = max(1.0, span) / m
        return start + 0.5 * delta + i * delta
    spacing = (span + 1) / m
    return start + i * spacing + 0.5 * spacing - 0.5


def corners_by_factor(n: int, m: int, align: bool, half: bool) -> Array:
    """Positions of upsample_bilinear: corners aligned, or centres of pixels, or i * n / m."""
    if align:
        return grid(0, n - 1, m, "strict_align_corners")
    return grid(0, n - 1, m, "unalign_corners" if half else "default")


def along(x: Array, at: Array, axis: int) -> Array:
    """Linear interpolation along one axis at positions clamped into it, in f64."""
    n = x.shape[axis]
    at = np.clip(at, 0, n - 1)
    lo = np.minimum(np.floor(at).astype(np.int64), max(n - 2, 0))
    hi = np.minimum(lo + 1, n - 1)
    t = (at - lo).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    a, b = x.take(lo, axis).astype(np.float64), x.take(hi, axis).astype(np.float64)
    with np.errstate(all="ignore"):
        return np.where(t == 0, a, np.where(t == 1, b, a + (b - a) * t))


def _bound(ctx: Context) -> Array:
    """16 u (1 + extent) max|x|: positions up to the extent, rounded in the accumulation type, times the steepest
    slope; what an image is padded with is one of its values
    """
    x = np.abs(np.asarray(ctx.inputs["x"], np.float64))
    extent = max(max(x.shape[-2:], default=1), max(ctx.wide.shape[-2:], default=1))
    beyond = abs(float(ctx.params.get("value", 0.0)))
    return 16 * ctx.acc_u * (1 + extent) * float(x.max(initial=beyond)) + ctx.ulp


_ERROR = composed(_bound)
IMAGE = ("unit", "small", "uniform:-4:4", "wide")


def _of_nothing(x: Array, sizes: Ints) -> Array | None:
    """The result where it has no element: of no image, or an extent of it is 0.  Of no rows come no rows alone."""
    lead = x.ndim - len(sizes)
    none = (0 in x.shape[:lead] or 0 in sizes) and all(n or not m for n, m in zip(x.shape[lead:], sizes))
    return np.empty((*x.shape[:lead], *sizes), x.dtype) if none else None


@semantics(error=_ERROR, source="MIL resize_bilinear iOS15, resize iOS17 LINEAR", data=IMAGE)
def resize_linear(x: Num[Array, "*d"], *, sizes: Ints, mode: Choice[str, SAMPLING] = "default") -> Array:
    """``x`` resized linearly along its last len(sizes) axes."""
    if (none := _of_nothing(x, sizes)) is not None:
        return none
    y = x
    for k, m in enumerate(sizes):
        axis = x.ndim - len(sizes) + k
        y = along(y, grid(0, x.shape[axis] - 1, int(m), mode), axis)
    return y if of(x).kind == "f" else np.rint(y).astype(x.dtype)


@semantics(error=_ERROR, source="MIL upsample_bilinear iOS15, iOS16", data=IMAGE)
def upsample_linear(x: Float[Array, "*d"], *, factors: Reals, align: Flag = True, half: Flag = False) -> Array:
    """The last two axes by ``factors``: extents floor(n * factor), and the factor recomputed from them."""
    y = x
    for axis, f in zip((-2, -1), factors):
        n = x.shape[axis]
        y = along(y, corners_by_factor(n, int(np.floor(n * f)), align, half), axis % x.ndim)
    return y


@semantics(
    error=exact(), source="MIL resize_nearest_neighbor, upsample_nearest_neighbor iOS15, resize iOS17 NEAREST_NEIGHBOR"
)
def resize_nearest(x: Num[Array, "*d"], *, sizes: Ints, mode: Choice[str, SAMPLING] = "default") -> Array:
    """The element at the floor of the position, along the last len(sizes) axes."""
    if (none := _of_nothing(x, sizes)) is not None:
        return none
    for k, m in enumerate(sizes):
        axis = x.ndim - len(sizes) + k
        at = np.clip(np.floor(grid(0, x.shape[axis] - 1, int(m), mode) + 1e-9), 0, x.shape[axis] - 1)
        x = x.take(at.astype(np.int64), axis)
    return x


BOXES = {
    "CORNERS_HEIGHT_FIRST": (0, 1, 2, 3, False),
    "CORNERS_WIDTH_FIRST": (1, 0, 3, 2, False),
    "CENTER_SIZE_HEIGHT_FIRST": (0, 1, 2, 3, True),
    "CENTER_SIZE_WIDTH_FIRST": (1, 0, 3, 2, True),
}


def box_edges(
    box: Array, form: str, h: int, w: int, normalized: bool, scale: float
) -> tuple[float, float, float, float]:
    """(h start, w start, h end, w end) of one box in pixels."""
    a, b, c, d, centre = BOXES[form]
    y0, x0, y1, x1 = (float(box[i]) * scale for i in (a, b, c, d))
    if centre:
        y0, x0, y1, x1 = y0 - y1 / 2, x0 - x1 / 2, y0 + y1 / 2, x0 + x1 / 2
    if normalized:
        y0, x0, y1, x1 = y0 * (h - 1), x0 * (w - 1), y1 * (h - 1), x1 * (w - 1)
    return y0, x0, y1, x1


@semantics(error=_ERROR, source="MIL crop_resize iOS15-17", data=IMAGE)
def crop_resize(
    x: Float[Array, "b c h w"],
    boxes: Num[Array, "n 4"],
    images: Int[Array, "n"] | None = None,
    *,
    size: Ints,
    normalized: Flag = False,
    scale: Real = 1.0,
    form: Choice[str, BOXES] = "CORNERS_HEIGHT_FIRST",
    mode: Choice[str, SAMPLING] = "default",
    pad_value: Real = 0.0,
) -> Array:
    """One crop [n, c, *size] per box of image ``images[i]`` (default i): points outside the image read ``pad_value``.

    Raises RuleError "image-in-range"."""
    b, c, h, w = x.shape
    images = np.arange(len(boxes)) if images is None else images.astype(np.int64)
    if images.size and (images.min() < 0 or images.max() >= b):
        raise RuleError("image-in-range", f"{images.tolist()} of {b}")
    out = np.empty((len(boxes), c, *size))
    for i, (box, j) in enumerate(zip(boxes, images)):
        y0, x0, y1, x1 = box_edges(box, form, h, w, normalized, scale)
        ys, xs = grid(y0, y1, size[0], mode), grid(x0, x1, size[1], mode)
        crop = along(along(x[j], ys, 1), xs, 2)
        inside = ((ys >= 0) & (ys <= h - 1))[:, None] & ((xs >= 0) & (xs <= w - 1))
        out[i] = np.where(inside, crop, pad_value)
    return out


def to_pixels(v: Array, n: int, coordinates: str, align: bool) -> Array:
    """Coordinates of an axis of ``n`` pixels in pixels; align: the extremes are centres of the outer pixels, else
    their edges.
    """
    if coordinates == "unnormalized":
        return v
    t = (v + 1) / 2 if coordinates == "normalized_minus_one_to_one" else v
    return t * (n - 1) if align else t * n - 0.5


def _mirror(i: Array, n: int, padding: str) -> Array:
    """Integer positions folded back into an axis."""
    if padding in ("border", "constant"):
        return np.clip(i, 0, n - 1)
    return mirrored(i, n, twice=padding == "symmetric")


def _pixels(x: Array, yi: Array, xi: Array, padding: str, value: float) -> Array:
    """x [c, h, w] at integer places, those outside by the padding mode."""
    h, w = x.shape[1:]
    out = x[:, _mirror(yi, h, padding), _mirror(xi, w, padding)].astype(np.float64)
    if padding == "constant":
        out = np.where((yi >= 0) & (yi < h) & (xi >= 0) & (xi < w), out, value)
    return out


def at_points(x: Array, ys: Array, xs: Array, nearest: bool, padding: str, value: float) -> Array:
    """x [c, h, w] at real places [p, q]."""
    if nearest:
        return _pixels(x, places(np.rint(ys)), places(np.rint(xs)), padding, value)
    y0, x0 = places(np.floor(ys)), places(np.floor(xs))
    ty, tx = ys - y0, xs - x0
    out: Array = np.zeros(())
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (ty if dy else 1 - ty) * (tx if dx else 1 - tx)
            out = out + np.where(weight == 0, 0.0, weight * _pixels(x, y0 + dy, x0 + dx, padding, value))
    return np.asarray(out)


@semantics(error=_ERROR, source="MIL resample iOS15-17", data={"x": IMAGE})
def resample(
    x: Float[Array, "b c h w"],
    coordinates: Num[Array, "b p q 2"],
    *,
    sampling: Choice[str, "bilinear", "nearest"],
    padding: Choice[str, PADDING],
    value: Real,
    space: Choice[str, "unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"],
    align: Flag,
) -> Array:
    """x at (x, y) places: [b, c, p, q]."""
    h, w = x.shape[2:]
    out = []
    places_of: Array = coordinates.astype(np.float64)
    for image, at in zip(x, places_of):
        xs, ys = to_pixels(at[..., 0], w, space, align), to_pixels(at[..., 1], h, space, align)
        out.append(at_points(image, ys, xs, sampling == "nearest", padding, value))
    return np.stack(out) if out else np.zeros((0, x.shape[1], *coordinates.shape[1:3]))


@semantics(error=_ERROR, source="MIL affine iOS15", data={"x": IMAGE})
def affine(x: Float[Array, "b c h w"], matrix: Float[Array, "m 6"], *, size: Ints) -> Array:
    """Every output place (x, y), corners at -1 and 1, maps to x' = a0 x + a1 y + a2, y' = b0 x + b1 y + b2; zero
    outside.
    """
    if matrix.shape[0] not in (1, x.shape[0]):
        raise RuleError("matrix-per-image", f"{matrix.shape[0]} matrices for {x.shape[0]} images")
    if not x.shape[0] or 0 in size:
        return np.zeros((*x.shape[:2], *size), x.dtype)
    h, w = x.shape[2:]
    gy = np.linspace(-1, 1, size[0]) if size[0] > 1 else np.zeros(1)
    gx = np.linspace(-1, 1, size[1]) if size[1] > 1 else np.zeros(1)
    px, py = np.meshgrid(gx, gy)
    out = []
    for k, image in enumerate(x):
        a = matrix[k % matrix.shape[0]].astype(np.float64)
        xs, ys = a[0] * px + a[1] * py + a[2], a[3] * px + a[4] * py + a[5]
        out.append(at_points(image, (ys + 1) / 2 * (h - 1), (xs + 1) / 2 * (w - 1), False, "constant", 0.0))
    return np.stack(out)


__all__ = ["affine", "crop_resize", "grid", "resample", "resize_linear", "resize_nearest", "upsample_linear"]
