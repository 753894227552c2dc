"""Pooling."""

from __future__ import annotations

from typing import Any

from harness.declare import Draw, Sampling, Spelling
from suites.onnx import op
from suites.onnx.codecs import Default
from suites.onnx.ops.conv import AUTO_PAD
from suites.semantics import pool as s

_WINDOW: dict[str, Any] = {"x": "X", "kernel": "kernel_shape", "padding": AUTO_PAD, "ceil": "ceil_mode"}


def _maybe_indices(d: Draw, values: dict) -> int:
    return d.int(1, len(d.version.schema.outputs))


# "Sliding windows that would start in the right padded region are ignored" is new in version 22
_MAX = (
    Spelling(**_WINDOW, column_major="storage_order"),
    Sampling(outs=_maybe_indices),
)
op("MaxPool", s.max_pool, *_MAX, Spelling(fixed={"last": "keep"}), until=21)
op("MaxPool", s.max_pool, *_MAX, Spelling(fixed={"last": "drop"}), since=22)
op("AveragePool", s.avg_pool, Spelling(fixed={"last": "keep"}, **_WINDOW), until=21)
op("AveragePool", s.avg_pool, Spelling(fixed={"last": "drop"}, **_WINDOW), since=22)
op("LpPool", s.lp_pool, Spelling(p=Default("p", 2.0), fixed={"last": "keep"}, **_WINDOW), until=1)
op("LpPool", s.lp_pool, Spelling(p=Default("p", 2), fixed={"last": "keep"}, **_WINDOW), since=2)
op("GlobalMaxPool", s.global_max_pool, x="X")
op("GlobalAveragePool", s.global_avg_pool, x="X")
op("GlobalLpPool", s.global_lp_pool, x="X", p=Default("p", 2))
op("MaxRoiPool", s.max_roi_pool, x="X", sizes="pooled_shape", scale="spatial_scale")
