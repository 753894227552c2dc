"""Elements at the ends of their type, at the ends of a tensor: NaN, infinities, zeros of both signs, limits, halves.

Recipes meet a special value somewhere; a kernel that reads its first element apart, or its last ones after the last
full vector, goes wrong there alone.  One instance in ``EVERY`` has them, in one operand of six: what the others hold is
plain, so that the result still says something.
"""

from __future__ import annotations

import math
from typing import Any

from harness.core.dtypes import DType, float_max, int_range
from harness.core.instance import Arg, Graph, Instance
from harness.declare import Draw

EVERY = 12
MOST = 64  # elements: they are written out
_NAN, _INF = float("nan"), float("inf")
_PLAIN = (1.0, -1.0, 0.5, 2.0, -0.25, 3.0, -2.0, 0.125)
_WHOLE = (1, 0, 2, 1, 3, 5, 2)
_BEYOND = 2**24 + 2
_BY_SEED = ("small", "full", "special", "wide", "ties")  # recipes of integers that are no indices


def _specials(d: DType) -> tuple[Any, ...]:
    if d.kind == "f":
        top = float_max(d)
        tiny = 2.0**-24 if d.name == "f16" else 2.0**-133
        beyond = float(_BEYOND) if d.bits >= 32 else 2.5
        return _NAN, _INF, -_INF, 0.0, -0.0, tiny, top, -top, 0.5, beyond, _NAN, -tiny
    low, high = int_range(d)
    return (low, high, 0, *((-1, low) if low < 0 else ()), *((_BEYOND,) if d.bits >= 32 else ()))


def _may(a: Arg, integers: bool) -> bool:
    if a.values is not None or a.items is not None or a.kind != "tensor" or not 0 < math.prod(a.shape) <= MOST:
        return False
    return (a.dtype.kind == "f" and a.dtype.bits > 8) or (a.dtype.kind in "iu" and integers and a.recipe in _BY_SEED)


def _values(d: Draw, a: Arg) -> list[Any]:
    plain = _PLAIN if a.dtype.kind == "f" else tuple(min(x, int_range(a.dtype)[1]) for x in _WHOLE)
    size, start = math.prod(a.shape), d.int(0, len(plain) - 1)
    out = [plain[(start + i) % len(plain)] for i in range(size)]
    specials = _specials(a.dtype)
    where = d.int(0, 3)  # at the beginning, at the end, at both, somewhere
    if where in (0, 2):
        out[0] = d.pick(specials)
    if where in (1, 2):
        out[-1] = d.pick(specials)
    if where == 3:
        out[d.int(0, size - 1)] = d.pick(specials)
    return out


def give(d: Draw, inst: Instance, integers: bool = True) -> None:
    """Give some operands of a valid instance such elements.  integers: may they be set too?"""
    held = [x[0] if isinstance(x, list) and x else x for x in inst.attrs.values()]
    blocks = any(isinstance(x, Graph) for x in held)
    if d.breaking or blocks or not d.chance(EVERY):  # the bounds of blocks are for small integers
        return
    given = [x for a in inst.args.values() for x in (a if isinstance(a, list) else (a,)) if x is not None]
    may = [a for a in given if _may(a, integers)]
    if may:
        for _ in range(d.int(1, 2) + len(may) // 6):
            a = d.pick(may)
            if a.values is None:
                a.values = _values(d, a)
