"""Integers of floating-point numbers, the same on every processor: C++ and NumPy leave open what a conversion gives of
NaN and of what the type does not hold, and x86-64 and Arm differ there."""

from __future__ import annotations

from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import of

Array = np.ndarray


def places(x: Any) -> Array:
    """i64, cut toward zero; what the type does not hold is its nearest value, NaN is 0."""
    return native.convert(np.asarray(x, np.float64), np.dtype(np.int64))


def whole(values: Any, like: Array) -> Array:
    """Real results of an integer op in its own type: cut toward zero, the low bits of what does not fit; as in
    ``places`` where 64 bits do not hold it either."""
    low = places(values).astype(like.dtype)
    if like.dtype == np.uint64:  # the upper half fits
        return np.where(np.asarray(values) > 0, native.convert(np.asarray(values, np.float64), like.dtype), low)
    return low


def numbers(actual: Any) -> Array:
    """The integers that a backend gave, as floats perhaps: i64, -1 for what is none."""
    a = np.asarray(actual)
    if of(a).kind != "f":
        return a.astype(np.int64)
    a = a.astype(np.float64)
    return np.where((a == np.floor(a)) & (np.abs(a) < 2.0**53), a, -1.0).astype(np.int64)
