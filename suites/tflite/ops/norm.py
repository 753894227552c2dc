"""Softmax and its logarithm, over the last axis."""

from __future__ import annotations

from harness.declare import Checks, Sampling, Spelling, T
from suites.semantics import norm as s
from suites.tflite import op

_NO_AXIS = Checks(breaks={"axis-in-range": lambda d: {"input": T(())}})  # tfl softmax: TFL_OperandHasRankAtLeast<0, 1>
for _name, _meaning in (("SOFTMAX", s.softmax), ("LOG_SOFTMAX", s.log_softmax)):
    op(_name, _meaning, Spelling(x="input", fixed={"axis": -1}), Sampling(ranks=(1, 8)), _NO_AXIS)
