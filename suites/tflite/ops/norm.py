"""Softmax and its logarithm, over the last axis."""

from __future__ import annotations

from harness.declare import Sampling, Spelling
from suites.semantics import norm as s
from suites.tflite import op

op("SOFTMAX", s.softmax, Spelling(x="input", fixed={"axis": -1}), Sampling(ranks=(1, 6)))
op("LOG_SOFTMAX", s.log_softmax, Spelling(x="input", fixed={"axis": -1}), Sampling(ranks=(1, 6)))
