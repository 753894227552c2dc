"""Compares what a backend returned with what a correct implementation may return.

``judge(expected, outcome)`` returns a ``Judgement``.  It compares shape and type before values, and special values
before tolerances.  It compares integers as integers.  It computes the costly exact scale of an error bound only where
the cheap bound does not pass.
"""

from harness.compare.blame import Blame, blame, groups
from harness.compare.judge import judge, look
from harness.compare.judgement import Judgement
from harness.compare.layers import Layer, Report, first_out_of_bounds

__all__ = ["Blame", "Judgement", "Layer", "Report", "blame", "first_out_of_bounds", "groups", "judge", "look"]
