"""Losses."""

from __future__ import annotations

from suites.onnx import op
from suites.semantics import loss as s

op("NegativeLogLikelihoodLoss", s.nll_loss, x="input")
op(
    "SoftmaxCrossEntropyLoss",
    s.softmax_cross_entropy,
    x="scores",
    target="labels",
    weight="weights",
    outs=lambda d, v: d.int(1, 2),
)
