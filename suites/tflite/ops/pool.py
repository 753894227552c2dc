"""Pools of plain tensors; padding never counts."""

from __future__ import annotations

from typing import Any

from suites.semantics import pool as s
from suites.semantics import tensorflow as tf
from suites.tflite import op
from suites.tflite.codecs import Each, fused, nan_activation, nhwc, nhwc_out
from suites.tflite.ops.conv import HW, PADDING

_POOL: dict[str, Any] = {
    "x": nhwc("input"),
    "kernel": Each("filter_{}", HW, words=("height", "width")),
    "strides": Each("stride_{}", HW),
    "padding": PADDING,
    "ranks": (4, 4),
    "out": fused(nhwc_out),
    "tags": ("fused",),
}
_FIXED = {"dilations": None, "pads": None, "ceil": False, "last": "keep"}
op(
    "AVERAGE_POOL_2D",
    s.avg_pool,
    fixed={**_FIXED, "count_include_pad": False},
    ambiguous=nan_activation(s.avg_pool),
    **_POOL,
)
op("MAX_POOL_2D", s.max_pool, fixed={**_FIXED, "column_major": False}, ambiguous=nan_activation(s.max_pool), **_POOL)
op("L2_POOL_2D", tf.l2_mean_pool, fixed=_FIXED, ambiguous=nan_activation(tf.l2_mean_pool), **_POOL)
