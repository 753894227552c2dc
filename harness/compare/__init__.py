"""Is what a backend gave within what a correct implementation may give?

``judge(expected, outcome)`` -> ``Judgement``: shape and type before values, special values before tolerances, integers
never as floats, and the costly exact scale of an error bound only where the cheap one does not already pass.
"""

from harness.compare.blame import Blame, blame, groups
from harness.compare.judge import judge, look
from harness.compare.judgement import Judgement
from harness.compare.layers import Layer, Report, first_out_of_bounds

__all__ = ["Blame", "Judgement", "Layer", "Report", "blame", "first_out_of_bounds", "groups", "judge", "look"]
