"""Normalisation: softmax and its kin, by mean and variance, by a norm, across channels."""

from suites.semantics.norm.batch import batch_norm, batch_norm_training
from suites.semantics.norm.moments import (
    group_norm,
    instance_norm,
    layer_norm,
    mean_variance_normalization,
)
from suites.semantics.norm.powers import l2_normalization, lp_norm, lrn, rms_norm
from suites.semantics.norm.softmax import (
    hardmax,
    hardmax_flattened,
    log_softmax,
    log_softmax_flattened,
    softmax,
    softmax_flattened,
)

__all__ = [
    "batch_norm",
    "batch_norm_training",
    "group_norm",
    "hardmax",
    "hardmax_flattened",
    "instance_norm",
    "l2_normalization",
    "layer_norm",
    "log_softmax",
    "log_softmax_flattened",
    "lp_norm",
    "lrn",
    "mean_variance_normalization",
    "rms_norm",
    "softmax",
    "softmax_flattened",
]
