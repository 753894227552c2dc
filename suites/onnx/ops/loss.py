"""Losses."""

from __future__ import annotations

from harness.declare import Sampling
from suites.onnx import op
from suites.semantics import loss as s

op("NegativeLogLikelihoodLoss", s.nll_loss, x="input")
op(
    "SoftmaxCrossEntropyLoss",
    s.softmax_cross_entropy,
    Sampling(outs=lambda d, v: d.int(1, 2)),
    x="scores",
    target="labels",
    weight="weights",
)
