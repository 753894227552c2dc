"""Finds the first and the last release of a row in which something shows.

``ask`` returns for one release: True, it shows; False, it does not; None, unclear (no wheel, or the release does not
take the instance).  An unclear release is replaced by its nearest neighbour, as ``git bisect skip`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

X = TypeVar("X")
PROBES = 8  # releases between the ends that are looked at where neither end shows anything


@dataclass
class History(Generic[X]):
    """Of what shows in a span of releases: the last one before it, the first and the last with it, the first after it;
    None where there is none in the span.  answers: what was told, by release."""

    last_good: X | None = None
    first_bad: X | None = None
    last_bad: X | None = None
    first_fixed: X | None = None
    answers: dict[X, bool | None] = field(default_factory=dict)


class Halving(Generic[X]):
    """Asks of as few releases as it takes.  releases: the oldest first."""

    def __init__(self, releases: Sequence[X], ask: Callable[[X], bool | None]) -> None:
        self.releases, self._ask = list(releases), ask
        self.history: History[X] = History()

    def __call__(self, likely: Sequence[X] = ()) -> History[X]:
        """likely: releases that show it, as far as one knows."""
        h, at = self.history, self._shown(likely)
        if at is None:
            return h
        before = self._nearest(0, at)
        if self.ask(before) is False:
            good, bad = self._between(before, at)
            h.last_good, h.first_bad = self.releases[good], self.releases[bad]
        else:
            h.first_bad = self.releases[before]
        after = self._nearest(len(self.releases) - 1, at)
        if self.ask(after) is False:
            good, bad = self._between(after, at)
            h.first_fixed, h.last_bad = self.releases[good], self.releases[bad]
        else:
            h.last_bad = self.releases[after]
        return h

    def ask(self, at: int) -> bool | None:
        """Of the release with that number, once."""
        release = self.releases[at]
        if release not in self.history.answers:
            self.history.answers[release] = self._ask(release)
        return self.history.answers[release]

    def _shown(self, likely: Sequence[X]) -> int | None:
        """A release that shows it: the newest, the oldest, the likely ones, then evenly spread ones."""
        n = len(self.releases)
        spread = [n * k // 2**depth for depth in range(1, 4) for k in range(1, 2**depth, 2)]
        known = [self.releases.index(r) for r in likely if r in self.releases]
        for at in dict.fromkeys([n - 1, 0, *known, *spread[:PROBES]]):
            if self.ask(at):
                return at
        return None

    def _nearest(self, end: int, to: int) -> int:
        """The release nearest to an end of which something can be told, before or at ``to``, which tells: halved too,
        since it is a stretch at the end that does not take an instance."""
        if self.ask(end) is not None:
            return end
        unclear, clear = end, to
        while abs(clear - unclear) > 1:
            middle = (unclear + clear) // 2
            if self.ask(middle) is None:
                unclear = middle
            else:
                clear = middle
        return clear

    def _between(self, good: int, bad: int) -> tuple[int, int]:
        """The two neighbours between which it changes."""
        while True:
            low, high = sorted((good, bad))
            middle = (low + high) // 2
            inside = sorted(range(low + 1, high), key=lambda i: abs(i - middle))
            at = next((i for i in inside if self.ask(i) is not None), None)
            if at is None:
                return good, bad
            if self.ask(at):
                bad = at
            else:
                good = at
