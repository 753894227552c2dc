"""The engines behind the draw interface.

``Prng`` is the fast one: counter-based, a few tenths of a microsecond a choice, and it records its choices, so that a
case can be replayed and shrunk.  ``Replay`` plays a recorded list back.  The Hypothesis front end is in
``harness.cases.strategies``.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any

import native_ref

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    """splitmix64's finaliser: 64 well-mixed bits of an integer."""
    x = (x + _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def case_seed(seed: int, key: str, index: int) -> int:
    """The seed of case ``index`` of an op version in a run: the same on every machine."""
    return (_key_hash(key, seed) + index * _GOLDEN) & _MASK  # the engine mixes it


@cache
def _key_hash(key: str, seed: int) -> int:
    h = 0xCBF29CE484222325  # FNV-1a
    for ch in key.encode():
        h = ((h ^ ch) * 0x100000001B3) & _MASK
    return mix(h ^ mix(seed & _MASK))


class PlainPrng:
    """The Python twin of ``Prng``, which defines it.

    It draws by a multiplicative generator modulo 2**31 - 1, since Python multiplies small numbers quickly, seeded
    through splitmix64.  ``choices`` holds what it drew, each number relative to its lower end.
    """

    __slots__ = ("choices", "state")

    def __init__(self, seed: int) -> None:
        self.state = mix(seed) % 2147483646 + 1
        self.choices: list[int] = []

    def int(self, lo: int, hi: int) -> int:
        self.state = s = self.state * 48271 % 2147483647
        v = s * max(0, hi - lo + 1) // 2147483647
        self.choices.append(v)
        return lo + v


_Choices = list[int]  # where ``int`` is a method


class InTurn:
    """An engine whose first choice is the ``turn``-th of a walk that comes by each possible choice once before it comes
    by one again; neighbours of the walk are far apart."""

    def __init__(self, engine: Any, seed: int, turn: int) -> None:
        """seed: where the walk begins."""
        self.engine, self.at = engine, (mix(seed), turn)
        self.first: int | None = None

    def int(self, lo: int, hi: int) -> int:
        drawn: int = self.engine.int(lo, hi)
        if self.first is not None:
            return drawn
        n, (start, turn) = max(1, hi - lo + 1), self.at
        step = next(k for k in range(max(1, n * 5 // 8), 2 * n + 1) if gcd(k, n) == 1)
        self.first = (start + turn * step) % n
        return lo + self.first

    @property
    def choices(self) -> _Choices:
        drawn = list(self.engine.choices)
        return drawn if self.first is None else [self.first, *drawn[1:]]


Prng = native_ref.Prng
# Replay(choices) plays choices back; beyond the end everything is 0, and a choice out of range is its top.  ``used``:
# what it gave.
Replay = native_ref.Replay
Vary = native_ref.Vary  # Vary(choices, seed): a replay that draws about half of the extents afresh
