"""Extents of operators that are drawn as a whole, such as the cells of a sequence: short, empty and long ones."""

from __future__ import annotations

from harness.declare import Draw

LONG_EVERY = 8  # one instance in so many has a long axis
# beside vector and block widths, and the limits of 8 bits
LONG = (16, 17, 32, 33, 64, 65, 127, 128, 129, 255, 256, 257)
_SECOND = (16, 17, 24, 33)


def extents(d: Draw, *most: int) -> list[int]:
    """One extent for each limit: from 1 to it, 0 where the instance may be empty.  One or two of them may be long."""
    out = [d.dim(0, hi) for hi in most]
    if not d.empty and d.chance(LONG_EVERY):
        order = d.shuffle(range(len(out)))
        out[order[0]] = d.pick(LONG)
        if d.bool():
            out[order[-1]] = d.pick(_SECOND)
    return out
