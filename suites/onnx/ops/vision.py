"""Images: sampling, folding, unpooling, regions, deformable convolution."""

from __future__ import annotations

from typing import Any

from harness.declare import Checks, Fn, Map, Spelling
from suites.onnx import op
from suites.onnx.ops.conv import Weight, filters
from suites.semantics import image_sampling as at
from suites.semantics import vision as s

_OLD = Map("mode", {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"})
op("GridSample", at.grid_sample, until=19, x="X", mode=_OLD, border="padding_mode", align="align_corners")
op("GridSample", at.grid_sample, since=20, x="X", border="padding_mode", align="align_corners")
op("AffineGrid", s.affine_grid, size="size", align="align_corners")

_HALF = Fn(
    lambda c: c.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel",
    lambda v, b: b.attr("coordinate_transformation_mode", "half_pixel" if v else "output_half_pixel"),
)
_ROI: dict[str, Any] = {
    "x": "X",
    "batch": "batch_indices",
    "height": "output_height",
    "width": "output_width",
    "ratio": "sampling_ratio",
    "scale": "spatial_scale",
}
_FINITE = Checks(breaks={"rois-finite": None})  # coordinates are numbers; no text says what is refused
op("RoiAlign", at.roi_align, Spelling(fixed={"half": False}, **_ROI), _FINITE, until=15)
op("RoiAlign", at.roi_align, _FINITE, since=16, half=_HALF, **_ROI)
op("Col2Im", s.col2im, x="input", image="image_shape", block="block_shape")
op("MaxUnpool", s.max_unpool, x="X", index="I", kernel="kernel_shape", shape="output_shape")
op(
    "DeformConv",
    at.deform_conv,
    filters("W"),
    x="X",
    w=Weight("W"),
    b="B",
    groups="group",
    offset_groups="offset_group",
)
