"""A second reading of the MIL operator pages, in plain loops: formula by formula, sharing nothing with the reference.

No runtime of MIL programs is here to contradict a misreading.  Each function is written from the page of its op alone
(coremltools 9.0), takes the attributes as they are given, the arrays and the version, and returns the results in
f64 or the type of what is moved; ``READINGS`` has them by op.  ``suites/meta/test_second_reading.py`` holds the
reference against them.
"""

from __future__ import annotations

from suites.mil.definition import blocks, complexes, constants, images, indices, layers, randomness, shapes, windows

_FAMILIES = (blocks, complexes, constants, images, indices, layers, randomness, shapes, windows)
READINGS = {op: read for family in _FAMILIES for op, read in family.READ.items()}
__all__ = ["READINGS"]
