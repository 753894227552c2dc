"""Resampling along axes: nearest, linear, cubic; every coordinate convention of the dialects."""

from suites.semantics.resize.coordinates import COORDINATES, NEAREST, Axis, taps
from suites.semantics.resize.resize import resize

__all__ = ["COORDINATES", "NEAREST", "Axis", "resize", "taps"]
