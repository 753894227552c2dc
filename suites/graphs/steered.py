"""Draws of one op that keep to types and shapes which a graph already has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness.core.dtypes import DType
from harness.core.instance import Instance
from harness.declare import OpVersion
from harness.declare.codec import Slotted
from harness.generate.draw import Draw, DrawEngine

BUDGET = 256  # elements that a fresh operand may have
WHOLE = 1 << 12  # that one of a given shape may have
MAX_RANK = 5


class Steered(Draw):
    """The draws of an op version whose generator is to ask for a given shape.

    A generator asks for extents with ``dim``, ``extent``, ``part`` or ``shape``.  Here it gets those of ``target`` in
    order, as long as its own limits allow them, then extents of ``palette``.  The instance is as valid as one that it
    draws otherwise.
    """

    def aim(self, target: Sequence[int], palette: Sequence[int]) -> None:
        """target: the shape that one operand is to have, in the order in which the meaning has its axes."""
        self.todo, self.palette = list(target), palette

    def dim(self, lo: int = 0, hi: int = 13) -> int:
        if self.todo and lo <= self.todo[0] <= hi:
            return self.todo.pop(0)
        fit = [n for n in self.palette if lo <= n <= hi]
        return int(self.pick(fit)) if fit and not self.chance(8) else super().dim(lo, hi)

    def extent(self, lo: int, hi: int) -> int:
        if self.todo and lo <= self.todo[0] <= hi:
            return self.todo.pop(0)
        fit = [n for n in self.palette if lo <= n <= hi]
        return int(self.pick(fit)) if fit and not self.chance(8) else super().extent(lo, hi)

    def part(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        top = self.max_rank if max_rank is None else min(max_rank, self.max_rank)
        few = math.prod(self.todo) <= WHOLE  # what is left of a shape without elements may be far extents
        if self.todo and few and min_rank <= len(self.todo) <= top and min(self.todo) >= lo:
            whole, self.todo = tuple(self.todo), []
            return whole
        out, room = [], self.budget
        for _ in range(self.rank(min_rank, max_rank)):
            out.append(min(self.dim(lo), max(1, room)))
            room //= max(1, out[-1])
        return tuple(out)

    def shape(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        return self.part(max(min_rank, self.min_rank), max_rank, lo)


def draw_on(
    v: OpVersion,
    engine: DrawEngine,
    opset: Any,
    types: dict[str, DType],
    slot: str | None,
    shape: Sequence[int],
    palette: Sequence[int],
    most_rank: int = MAX_RANK,
) -> Instance:
    """An instance of ``v`` whose operand in ``slot`` is to have ``shape``, which its generator may decline.

    types: the element type of each type name.  palette: extents for all other axes.  most_rank: of a fresh
    operand.  Raises what the generator raises.
    """
    lo, hi = v.ranks
    empty = v.dialect.allow_empty and 0 in shape
    d = Steered(engine, v, opset, v.entry.spelling.fixed, types, max(lo, min(hi, most_rank)), empty, BUDGET, lo)
    d.aim(_in_our_order(v, slot, shape), palette)
    e = v.entry
    if e.sampling.draw is not None:
        b = v.encode_raw(d, e.sampling.draw(d))
    else:
        assert v.meaning is not None
        b = v.encode(d, v.meaning.derive(d))
    return v.instance(d, b)


def _in_our_order(v: OpVersion, slot: str | None, shape: Sequence[int]) -> Sequence[int]:
    """The extents of a slot's tensor in the order in which the meaning has its axes, where its codec only permutes."""
    for codec in v.tensor_codecs.values():
        if isinstance(codec, Slotted) and codec.slot == slot and codec.to_theirs is not None:
            try:
                theirs = codec.to_theirs(tuple(range(len(shape))))
                return [shape[theirs.index(k)] for k in range(len(shape))]
            except (IndexError, ValueError):  # of another rank, or no permutation
                return shape
    return shape
