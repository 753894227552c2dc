"""What a specification leaves open about a call, and where: the rest of the results is judged as always."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import native_ref
from harness.core.dtypes import DType, int_range

Array = np.ndarray
Where = Array | np.bool_ | tuple[Array | None, ...]
Predicate = Callable[..., str | None]


@dataclass(frozen=True, eq=False)
class Part:
    """One open question.  at: a mask that broadcasts to the meaning's results, True where they are open, or one for
    each result (None: that one is settled); None: all is open, shapes too.  readings: arrays like the first result; an
    open element is one of theirs, or anything where there are none.  within: absolute error that a reading may have,
    a number or an array that broadcasts to the output."""

    why: str
    at: Where | None = None
    readings: tuple[Array, ...] = ()
    within: Array | float = 0.0


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
        if any(p.at is None for p in self.parts):
            return None
        return self._masks(i)

    def _masks(self, i: int) -> Iterator[tuple[Array, Part]]:
        for p in self.parts:
            mask = p.at[min(i, len(p.at) - 1)] if isinstance(p.at, tuple) else p.at
            if mask is not None:
                yield np.asarray(mask), p

    def without(self, why: str) -> Underspecified | None:
        """The rest, where something else has settled one of the questions."""
        rest = [p for p in self.parts if p.why != why]
        return Underspecified(*rest) if rest else None


def underspecified(why: str, at: Where, *readings: Array, within: Array | float = 0.0) -> Underspecified | None:
    """``why`` holds of the elements of ``at``; None where there are none.  See ``Part``."""
    some = any(m is not None and bool(np.any(m)) for m in (at if isinstance(at, tuple) else (at,)))
    return Underspecified(Part(why, at, readings, within)) if some else None


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
