"""Two places of an instance moved together, since the reference takes neither alone; and all moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.core.dtypes import int_range
from harness.core.instance import Instance
from harness.declare.op_version.moves import (
    ELEMENTS,
    changed,
    element_moved,
    extent_moved,
    number_moved,
    option_moved,
    plain,
    rank_moved,
    reshaped,
    results_moved,
    same_moved,
    without_moved,
)
from harness.generate.draw import Draw

_FAR = (2**24, 2**31 - 1)  # positions, in an axis of one more; a format with extents of 32 bits holds the first


def emptied(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """An axis of no element; half the time so is every axis that was as long."""
    return extent_moved(version, d, inst, (0,)) if 0 in version.dialect.edge_extents else None


def far(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """A position far away, from either end, in an axis that reaches so far, beside an axis of no element; half the time
    so is every axis of the others that was as long as the latter."""
    keeps = frozenset(version.dialect.keeps(version))
    free = [(s, k, a) for s, k, a in plain(inst) if keeps.isdisjoint((s, f"data:{s}", "data:*"))]
    held = [(s, k, a) for s, k, a in free if a.dtype.kind == "i" and 1 <= math.prod(a.shape) <= ELEMENTS]
    given = [(s, k, a) for s, k, a in free if len(a.shape) > 1]
    if not held or not given or "shapes" in keeps:
        return None
    slot, k, a = d.pick(held)
    given = [x for x in given if x[:2] != (slot, k)]
    if not given:
        return None
    other, j, x = d.pick(given)
    long, none = d.shuffle(range(len(x.shape)))[:2]
    n = int(d.pick(_FAR[:1] if version.dialect.limits_results else _FAR))
    position = -n - 1 if d.chance(4) and version.dialect.counts_back(version) else n
    lo, hi = int_range(a.dtype)
    if not lo <= position <= hi:
        return None
    shapes = {(other, j): tuple(n + 1 if i == long else 0 if i == none else e for i, e in enumerate(x.shape))}
    if d.bool():
        rest = [(s, i, y) for s, i, y in plain(inst) if (s, i) not in ((slot, k), (other, j)) and s not in keeps]
        shapes |= {(s, i): tuple(0 if e == x.shape[none] else e for e in y.shape) for s, i, y in rest}
    moved = changed(inst, {at: reshaped(inst.tensors(at[0])[at[1] or 0], shape) for at, shape in shapes.items()})
    return changed(moved, {(slot, k): replace(a, values=[position] * math.prod(a.shape))})


_Move = Callable[[Any, Draw, Instance], "Instance | None"]
MOVES: tuple[_Move, ...] = (
    *(extent_moved, extent_moved, rank_moved, same_moved),
    *(number_moved, number_moved, element_moved, far),
    *(option_moved, option_moved, without_moved, results_moved),
)
