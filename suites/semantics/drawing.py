"""Little draws that the numeric families share: what the op version can spell, what the entry pins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.generate.draw import Draw
from suites.semantics.movement.common import options

__all__ = ["choose", "given", "options", "param", "positive_shape", "spells"]


def spells(d: Draw, name: str) -> bool:
    """Whether the op version has a way to say this parameter (or is pinned to a value of it)."""
    return name in d.fixed or name in d.version.param_codecs


def param(d: Draw, name: str, draw: Callable[[], Any]) -> Any:
    """What the entry pins ``name`` to, what ``draw()`` gives, or the default where this version cannot say it."""
    if name in d.fixed:
        return d.fixed[name]
    if name in d.version.param_codecs or d.version.meaning is None:
        return draw()
    return d.version.meaning.defaults.get(name)


def choose(d: Draw, name: str) -> Any:
    """One of the modes that the op version can spell."""
    known = options(d, name)
    if name not in d.fixed and name not in d.version.param_codecs and d.version.meaning is not None:
        return d.version.meaning.defaults[name]
    return d.pick(known)


def given(d: Draw, tensor: str, odds: int = 2) -> bool:
    """Whether to give an optional tensor: no where there is no slot, else ``odds`` - 1 times in ``odds``."""
    return tensor in d.version.slots_of and d.int(0, odds - 1) > 0


def positive_shape(d: Draw, count: int, top: int = 7) -> tuple[int, ...]:
    """``count`` extents from 1 to ``top``."""
    return tuple(d.dim(1, top) for _ in range(count))


def product(v: Sequence[int]) -> int:
    """The product of integers, of any size; 1 of none."""
    n = 1
    for x in v:
        n *= x
    return n
