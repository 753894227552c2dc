"""Special elements at the ends of an operand (``harness.generate.ends``).

One instance in ``EVERY`` has them, in one operand of six: what the others hold is plain, so that the result still says
something.
"""

from __future__ import annotations

import math

from harness.core.instance import Arg, Graph, Instance
from harness.declare import Draw
from harness.generate.ends import MOST, elements

EVERY = 12
MANY = 12  # operands, from which on more instances have them: each operand is to be met
_BY_SEED = ("small", "full", "special", "wide", "ties")  # recipes of integers that are no indices


def _may(a: Arg, integers: bool) -> bool:
    if a.values is not None or a.items is not None or a.kind != "tensor" or not 0 < math.prod(a.shape) <= MOST:
        return False
    return (a.dtype.kind == "f" and a.dtype.bits > 8) or (a.dtype.kind in "iu" and integers and a.recipe in _BY_SEED)


def give(d: Draw, inst: Instance, integers: bool = True) -> None:
    """Give some operands of a valid instance such elements.  integers: may they be set too?"""
    held = [x[0] if isinstance(x, list) and x else x for x in inst.attrs.values()]
    blocks = any(isinstance(x, Graph) for x in held)
    given = [x for a in inst.args.values() for x in (a if isinstance(a, list) else (a,)) if x is not None]
    every = EVERY if len(given) < MANY else EVERY * 2 // 3
    if d.breaking or blocks or not d.chance(every):  # the bounds of blocks are for small integers
        return
    may = [a for a in given if _may(a, integers)]
    if may:
        for _ in range(d.int(1, 2) + len(may) // 6):
            a = d.pick(may)
            if a.values is None:
                a.values = elements(d, a)
