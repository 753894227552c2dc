"""What a specification leaves open about a call, and where: the rest of the results is judged as always."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

import native_ref
from harness.core.dtypes import DType, int_range

Array = np.ndarray
Where = Array | np.bool_ | tuple[Array | None, ...]
Reading = Array | np.generic
Extents = tuple[int | None, ...]
Predicate = Callable[..., str | None]


@dataclass(frozen=True, eq=False)
class Part:
    """One open question.

    at: mask of the open elements; it broadcasts to the results of the meaning.  Or one mask for each result, None where
        that one is settled.  None alone: all is open, shapes too.
    readings: arrays like the first result.  An open element is one of theirs, or anything where there are none.
    within: absolute error that a reading may have, a number or an array that broadcasts to the output.
    others: whole results of another shape, in the layout of the output.  An answer of that shape is one of them.
    shapes: other shapes that an answer may have, whatever its elements; None stands for an extent that is not stated.

    ``others`` and ``shapes`` speak of the results that ``at`` speaks of.
    """

    why: str
    at: Where | None = None
    readings: tuple[Reading, ...] = ()
    within: Array | float = 0.0
    others: tuple[Array, ...] = ()
    shapes: tuple[Extents, ...] = ()

    @property
    def compared(self) -> bool:
        """Is an answer that departs from the reference compared with readings?"""
        return self.at is not None and bool(self.readings or self.others) and not self.shapes


class Underspecified(str):
    """Why the spec gives no single answer: the first of its parts' reasons.  A reason that is a plain string leaves
    all open."""

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Underspecified:
        self = super().__new__(cls, parts[0].why)
        self.parts = parts
        return self

    def masks(self, i: int) -> Iterator[tuple[Array, Part]] | None:
        """Of result ``i``: where it is open, and the question; None where all is open."""
        return None if self.whole else self._masks(i)

    @property
    def whole(self) -> bool:
        """Is all open, types and shapes too?"""
        return any(p.at is None for p in self.parts)

    def _masks(self, i: int) -> Iterator[tuple[Array, Part]]:
        for p in self.parts:
            mask = p.at[min(i, len(p.at) - 1)] if isinstance(p.at, tuple) else p.at
            if mask is not None:
                yield np.asarray(mask), p

    def without(self, why: str) -> Underspecified | None:
        """The rest, where something else has settled one of the questions."""
        rest = [p for p in self.parts if p.why != why]
        return Underspecified(*rest) if rest else None


def underspecified(why: str, at: Where, *readings: Reading, within: Array | float = 0.0) -> Underspecified | None:
    """``why`` holds of the elements of ``at``; None where there are none.  See ``Part``."""
    some = any(m is not None and bool(np.any(m)) for m in (at if isinstance(at, tuple) else (at,)))
    return Underspecified(Part(why, at, readings, within)) if some else None


class Openness(Enum):
    """How much of an instance is open.  wholly: all, shapes too; partly: some elements, or extents, may be anything;
    readings: what is open is one of the readings that are enumerated, and compared with them."""

    WHOLLY = "wholly"
    PARTLY = "partly"
    READINGS = "readings"


def openness(why: str) -> Openness:
    """How much an ``ambiguous`` predicate leaves open that gives ``why``."""
    if not isinstance(why, Underspecified) or why.whole:
        return Openness.WHOLLY
    return Openness.READINGS if all(p.compared for p in why.parts) else Openness.PARTLY


def of_result(i: int, at: Array | np.bool_) -> tuple[Array | None, ...]:
    """Where result ``i`` is open, all others being settled; see ``Part.at``."""
    return (*(None,) * i, np.asarray(at), None)


def other_shape(
    why: str, i: int, *others: Array, shapes: tuple[Extents, ...] = (), within: Array | float = 0.0
) -> Underspecified:
    """Result ``i`` may have another shape than the reference's.  See ``Part``."""
    return Underspecified(Part(why, of_result(i, np.False_), (), within, others, shapes))


def fits(shape: tuple[Any, ...] | None, extents: Extents) -> bool:
    """Is a shape, of which an extent may be unknown (None, a name), one of those that ``extents`` stands for?"""
    if shape is None:
        return True
    return len(shape) == len(extents) and all(
        e is None or not isinstance(n, int) or n == e for n, e in zip(shape, extents)
    )


def beside(why: str, real: Array, blur: Array | float, dtype: DType) -> str | None:
    """A real result in an integer type: the integer on either side of it, also where arithmetic blurs it by ``blur``;
    where that is as wide as the step between integers, or no integer of the type, anything."""
    lo, hi = int_range(dtype)
    with np.errstate(all="ignore"):
        free = ~((np.asarray(blur) < 0.25) & (real - 1 >= lo - 1) & (real + 1 <= hi + 1))
        near = [f(np.where(free, 0.0, real) + d) for f in (np.floor, np.ceil) for d in (-blur, blur)]
    readings = tuple(native_ref.convert(np.where(free, 0.0, r), dtype.np) for r in near)  # the nearest of the type
    return gathered(underspecified(why, free), Underspecified(Part(why, np.ones((), bool), readings)))


def gathered(*found: str | None) -> Underspecified | None:
    """All that is left open, with the words of the first that leaves something."""
    parts = [
        p for why in found if why is not None for p in (why.parts if isinstance(why, Underspecified) else (Part(why),))
    ]
    return Underspecified(*parts) if parts else None


def first_of(*checks: Predicate) -> Predicate:
    """An ``ambiguous`` predicate that asks several: what any of them leaves open, with the words of the first."""

    def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
        return gathered(*(c(inputs, params) for c in checks))

    return check
