"""Which pairs of facts about instances were met in one instance: counted by the engine, and by the reports again."""

from __future__ import annotations

from collections.abc import Collection

MOST = 20_000  # pairs of an op version: beyond those none are looked for


class Pairs:
    """The number of pairs of facts that some instance has both of.

    Bits are quicker than a set of all pairs.  Counting ends once there are ``MOST``."""

    def __init__(self) -> None:
        self.count = 0
        self._bits: dict[str, int] = {}  # fact -> a bit of its own
        self._beside: dict[str, int] = {}  # fact -> the bits of those met with it, and its own

    def meet(self, facts: Collection[str]) -> bool:
        """Take in the facts of an instance; was one of their pairs new?"""
        if self.count >= MOST:
            return False
        bits, beside, met, twice = self._bits, self._beside, 0, 0
        for f in facts:
            bit = bits.get(f)
            if bit is None:
                bit = bits[f] = beside[f] = 1 << len(bits)
            met |= bit
        for f in facts:
            new = met & ~beside[f]
            if new:
                beside[f] |= met
                twice += new.bit_count()  # once from each side
        self.count += twice // 2
        return twice > 0
