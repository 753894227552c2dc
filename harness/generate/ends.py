"""Puts values at the ends of a type (NaN, infinities, limits, halves) at the ends of a tensor.

Recipes put a special value at any place.  A kernel that treats its first element, or the elements after the last full
vector, apart from the others fails there alone.  The other elements are plain, so the result is still informative.
"""

from __future__ import annotations

import math
from typing import Any

from harness.core.dtypes import DType, float_max, int_range
from harness.core.instance import Arg
from harness.generate.draw import Draw

MOST = 64  # elements: they are written out
_NAN, _INF = float("nan"), float("inf")
_PLAIN = (1.0, -1.0, 0.5, 2.0, -0.25, 3.0, -2.0, 0.125)
_WHOLE = (1, 0, 2, 1, 3, 5, 2)
_BEYOND = 2**24 + 2


def specials(d: DType) -> tuple[Any, ...]:
    """The values at the ends of a type, and what rounds."""
    if d.kind == "f":
        top = float_max(d)
        tiny = 2.0**-24 if d.name == "f16" else 2.0**-133
        beyond = float(_BEYOND) if d.bits >= 32 else 2.5
        return _NAN, _INF, -_INF, 0.0, -0.0, tiny, top, -top, 0.5, beyond, _NAN, -tiny
    low, high = int_range(d)
    return (low, high, 0, *((-1, low) if low < 0 else ()), *((_BEYOND,) if d.bits >= 32 else ()))


def elements(d: Draw, a: Arg) -> list[Any]:
    """Elements of a tensor of floats or integers that is not empty: plain ones, and special ones at its beginning, at
    its end, at both, or somewhere."""
    plain = _PLAIN if a.dtype.kind == "f" else tuple(min(x, int_range(a.dtype)[1]) for x in _WHOLE)
    size, start = math.prod(a.shape), d.int(0, len(plain) - 1)
    out = [plain[(start + i) % len(plain)] for i in range(size)]
    found = specials(a.dtype)
    where = d.int(0, 3)
    if where in (0, 2):
        out[0] = d.pick(found)
    if where in (1, 2):
        out[-1] = d.pick(found)
    if where == 3:
        out[d.int(0, size - 1)] = d.pick(found)
    return out
