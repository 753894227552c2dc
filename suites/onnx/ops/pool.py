"""Pooling."""

from __future__ import annotations

from typing import Any

from harness.declare import Draw
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.onnx.ops.conv import AUTO_PAD
from suites.semantics import pool as s

_WINDOW: dict[str, Any] = {"x": "X", "kernel": "kernel_shape", "padding": AUTO_PAD, "ceil": "ceil_mode"}


def _maybe_indices(d: Draw, values: dict) -> int:
    return d.int(1, len(d.version.schema.outputs))


# "Sliding windows that would start in the right padded region are ignored" is new in version 22
_MAX = {**_WINDOW, "column_major": "storage_order", "outs": _maybe_indices}
op("MaxPool", s.max_pool, until=21, fixed={"last": "keep"}, **_MAX)
op("MaxPool", s.max_pool, since=22, fixed={"last": "drop"}, **_MAX)
op("AveragePool", s.avg_pool, until=21, fixed={"last": "keep"}, **_WINDOW)
op("AveragePool", s.avg_pool, since=22, fixed={"last": "drop"}, **_WINDOW)
op("LpPool", s.lp_pool, until=1, fixed={"last": "keep"}, p=Default("p", 2.0), **_WINDOW)
op("LpPool", s.lp_pool, since=2, fixed={"last": "keep"}, p=Default("p", 2), **_WINDOW)
op("GlobalMaxPool", s.global_max_pool, x="X")
op("GlobalAveragePool", s.global_avg_pool, x="X")
op("GlobalLpPool", s.global_lp_pool, x="X", p=Default("p", 2))
op("MaxRoiPool", s.max_roi_pool, x="X", sizes="pooled_shape", scale="spatial_scale")
