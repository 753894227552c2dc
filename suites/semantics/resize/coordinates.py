"""Where an output position lies in the input, and which input elements it is made of with which weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
    "align_corners_centred",
    "offset_corners",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Axis:
    """One resized axis.  n, m: extents before and after.  scale: m / n, or the given factor.  start, end: of the region
    (tf_crop_and_resize).  filter_scale: the scale that antialias takes, if it is another."""

    n: int
    m: int
    scale: float
    start: float = 0.0
    end: float = 1.0
    filter_scale: float | None = None

    @property
    def length(self) -> float:
        """Extent after, as the factor gives it before rounding down (the same number where sizes were given)."""
        m = self.n * self.scale
        return self.m if abs(m - self.m) < 1e-9 else m

    def positions(self, mode: str) -> Array:
        """f64 [m]: input coordinate of every output position.

        Source: ONNX Resize-11, -19 coordinate_transformation_mode; MIL resize_bilinear iOS15 sampling_mode
        (align_corners_centred is ALIGN_CORNERS, offset_corners OFFSET_CORNERS, asymmetric DEFAULT).
        """
        i, n, m, s = np.arange(self.m, dtype=np.float64), self.n, self.m, self.scale
        if mode == "half_pixel":
            return (i + 0.5) / s - 0.5
        if mode == "half_pixel_symmetric":
            return (n - m / s) / 2 + (i + 0.5) / s - 0.5  # center * (1 - adjustment), without dividing by n * s
        if mode == "pytorch_half_pixel":
            return (i + 0.5) / s - 0.5 if m > 1 else np.zeros(m)
        if mode == "align_corners":
            # the cases published with ONNX divide by the extent before it is rounded down
            return i * (n - 1) / (self.length - 1) if m > 1 else np.zeros(m)
        if mode == "align_corners_centred":
            return i * (n - 1) / (m - 1) if m > 1 else np.full(m, (n - 1) / 2)
        if mode == "asymmetric":
            return i / s
        if mode == "tf_half_pixel_for_nn":
            return (i + 0.5) / s
        if mode == "offset_corners":
            return (i + 0.5) * (max(1, n - 1) / m)
        if mode == "tf_crop_and_resize":
            if m > 1:
                return self.start * (n - 1) + i * (self.end - self.start) * (n - 1) / (m - 1)  # the last one exact
            return np.full(m, 0.5 * (self.start + self.end) * (n - 1))
        raise ValueError(f"no coordinate mode {mode!r}, expected one of {' '.join(COORDINATES)}")

    def exact(self, mode: str) -> bool:
        """Whether f32 arithmetic in any order gives the coordinates without rounding: the factor is a power of two.

        Source: ONNX Resize-19: half_pixel_symmetric divides by output_width, which rounds unless the extent is whole.
        """
        if mode == "half_pixel_symmetric" and self.m != self.n * self.scale:
            return False
        if mode.startswith("align"):
            factor = (self.n - 1) / (self.length - 1) if self.m > 1 else 1.0
        elif mode == "tf_crop_and_resize":
            factor = (self.end - self.start) * (self.n - 1) / max(1, self.m - 1)
        elif mode == "offset_corners":
            factor = max(1, self.n - 1) / self.m
        else:
            factor = self.scale
        exact_region = mode != "tf_crop_and_resize" or (self.start in (0.0, 0.5, 1.0) and self.end in (0.0, 0.5, 1.0))
        return factor == 0 or (math.frexp(factor)[0] == 0.5 and exact_region)


def rounded_index(x: Array, how: str) -> Array:
    """The nearest element by rule, not yet limited to the axis."""
    if how == "round_prefer_floor":
        return np.ceil(x - 0.5)
    if how == "round_prefer_ceil":
        return np.floor(x + 0.5)
    return np.floor(x) if how == "floor" else np.ceil(x)


def _linear(t: Array) -> Array:
    return np.maximum(0.0, 1 - np.abs(t))


def _cubic(t: Array, a: float) -> Array:
    """Keys' kernel.  Source: ONNX Resize-11 cubic_coeff_a, equation 4 of the paper named there."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def taps(
    axis: Axis,
    x: Array,
    mode: str,
    *,
    nearest: str = "round_prefer_floor",
    cubic_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> tuple[Array, Array]:
    """Indices i64 and weights f64, both [m, taps], for coordinates ``x``.

    Elements outside the axis are its first and last one, or (exclude_outside) left out with the weights divided by what
    is left.  antialias stretches the filter by 1 / scale (of the axis, or its filter_scale) when that is above one.
    """
    if mode == "nearest":
        index = np.clip(rounded_index(x, nearest), 0, axis.n - 1).astype(np.int64)
        return index[:, None], np.ones((axis.m, 1))
    scale = axis.scale if axis.filter_scale is None else axis.filter_scale
    shrink = min(1.0, scale) if antialias else 1.0
    reach = (1.0 if mode == "linear" else 2.0) / shrink
    count = 2 * math.ceil(reach) + 1
    first = np.floor(x - reach).astype(np.int64)
    at = first[:, None] + np.arange(count + 1)
    t = (at - x[:, None]) * shrink
    w = _linear(t) if mode == "linear" else _cubic(t, cubic_a)
    if exclude_outside:
        w = np.where((at < 0) | (at >= axis.n), 0.0, w)
    if exclude_outside or antialias:
        total = w.sum(1, keepdims=True)
        w = w / np.where(total == 0, 1.0, total)
    keep = np.flatnonzero((w != 0).any(0))
    if keep.size == 0:
        keep = np.arange(1)
    return np.clip(at[:, keep], 0, axis.n - 1), w[:, keep]
