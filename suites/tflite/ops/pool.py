"""Pools of plain tensors; padding never counts."""

from __future__ import annotations

from harness.declare import Checks, Sampling, Spelling
from suites.semantics import pool as s
from suites.semantics import tensorflow as tf
from suites.tflite import op
from suites.tflite.codecs import Each, fused, nan_activation, nhwc, nhwc_out
from suites.tflite.ops.conv import HW, PADDING

_POOL = (
    Spelling(
        x=nhwc("input"),
        kernel=Each("filter_{}", HW, words=("height", "width")),
        strides=Each("stride_{}", HW),
        padding=PADDING,
        out=fused(nhwc_out),
    ),
    Sampling(ranks=(4, 4), tags=("fused",)),
)
_FIXED = {"dilations": None, "pads": None, "ceil": False, "last": "keep"}
op(
    "AVERAGE_POOL_2D",
    s.avg_pool,
    *_POOL,
    Spelling(fixed={**_FIXED, "count_include_pad": False}),
    Checks(ambiguous=nan_activation(s.avg_pool)),
)
op(
    "MAX_POOL_2D",
    s.max_pool,
    *_POOL,
    Spelling(fixed={**_FIXED, "column_major": False}),
    Checks(ambiguous=nan_activation(s.max_pool)),
)
op("L2_POOL_2D", tf.l2_mean_pool, *_POOL, Spelling(fixed=_FIXED), Checks(ambiguous=nan_activation(tf.l2_mean_pool)))
