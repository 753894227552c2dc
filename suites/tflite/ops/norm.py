"""Softmax and its logarithm, over the last axis."""

from __future__ import annotations

from suites.semantics import norm as s
from suites.tflite import op

op("SOFTMAX", s.softmax, x="input", fixed={"axis": -1}, ranks=(1, 6))
op("LOG_SOFTMAX", s.log_softmax, x="input", fixed={"axis": -1}, ranks=(1, 6))
