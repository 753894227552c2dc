"""What instances are drawn with: the compiled verbs against their definitions in Python, over every kind of engine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.declare import Draw
from harness.generate.draw_engines import PlainPrng, Prng, Replay, Vary

EXTENTS = (1, 2, 3, 2, 3, 4, 5, 1, 7, 3, 2, 5, 4, 6, 8, 11, 13, 2, 3, 1)
LONG = (16, 17, 32, 33, 64, 65, 127, 128, 129, 255, 256, 257, 300, 512, 513, 31, 63, 1000, 2049, 4096)
RANKS = (1, 2, 3, 4, 2, 3, 2, 4, 1, 0, 5, 6)


class Plain:
    """The verbs, one after the other."""

    def __init__(self, engine: Any, max_rank: int, allow_empty: bool, budget: int, min_rank: int) -> None:
        self.int = engine.int
        self.max_rank, self.min_rank, self.budget = max_rank, min_rank, budget
        kind = self.int(0, 19) if allow_empty else 0
        self.empty, self.lengthy, self.deep = kind == 19, kind == 18, kind == 17

    def bool(self) -> Any:
        return self.int(0, 1) == 1

    def chance(self, n: int) -> Any:
        return self.int(0, n - 1) == n - 1

    def pick(self, options: Any) -> Any:
        return options[self.int(0, len(options) - 1)]

    def subset(self, options: Any, least: int = 0) -> list[Any]:
        pool, out = list(options), []
        for _ in range(self.int(least, len(pool))):
            out.append(pool.pop(self.int(0, len(pool) - 1)))
        return out

    def shuffle(self, options: Any) -> list[Any]:
        pool, out = list(options), []
        while pool:
            out.append(pool.pop(self.int(0, len(pool) - 1)))
        return out

    def dim(self, lo: int = 0, hi: int = 13) -> int:
        if self.empty and lo == 0 and self.int(0, 3) == 3:
            return 0
        n = EXTENTS[self.int(0, 19)]
        return n if lo <= n <= hi else lo + n % (hi - lo + 1) if lo > 0 else 1 + n % hi

    def extent(self, lo: int, hi: int) -> int:
        return self.int(lo, hi)

    def rank(self, lo: int = 0, hi: int | None = None) -> int:
        top = self.max_rank if hi is None else min(hi, self.max_rank)
        if self.deep and lo <= top and top > 4:
            return self.int(max(lo, top - 2), top)
        r = RANKS[self.int(0, 11)]
        return r if lo <= r <= top else self.int(lo, top)

    def shape(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        return self.part(max(min_rank, self.min_rank), max_rank, lo)

    def part(self, min_rank: int = 0, max_rank: int | None = None, lo: int = 0) -> tuple[int, ...]:
        out, room, rank = [], self.budget, self.rank(min_rank, max_rank)
        if self.lengthy and rank > 0 and self.bool():
            self.lengthy = False
            return self.lengthened(rank, lo)
        for _ in range(rank):
            n = self.dim(lo)
            if n > room:
                n = max(1, room)
            out.append(n)
            room //= max(n, 1)
        return tuple(out)

    def lengthened(self, rank: int, lo: int) -> tuple[int, ...]:
        at, most = self.int(0, rank - 1), LONG[self.int(0, len(LONG) - 1)]
        out, room = [], max(self.budget, 4096) // most
        for i in range(rank):
            out.append(most if i == at else min(self.dim(lo), max(1, room)))
            if i != at:
                room //= max(out[-1], 1)
        return tuple(out)

    def broadcast_from(self, full: tuple[int, ...]) -> tuple[int, ...]:
        kind = self.int(0, 5)
        if kind < 3:
            return full
        if kind == 3:
            return full[self.int(0, max(0, len(full) - self.min_rank)) :]
        out = [1 if self.int(0, 2) == 2 else n for n in full]
        if kind == 5:
            out = out[self.int(0, max(0, len(out) - self.min_rank)) :]
        return tuple(out)

    def axis(self, rank: int) -> int:
        return self.int(0, rank - 1) - (rank if self.int(0, 2) == 2 else 0)


_small = st.integers(0, 6)
_words = st.lists(st.text("abc", max_size=2), min_size=1, max_size=5)
_verbs = st.one_of(
    st.tuples(st.just("int"), st.integers(-5, 5), st.integers(-5, 2**40)),
    st.tuples(st.just("bool")),
    st.tuples(st.just("chance"), st.integers(1, 9)),
    st.tuples(st.just("pick"), st.one_of(_words, _words.map(tuple), st.builds(range, st.integers(1, 9)))),
    st.tuples(st.just("subset"), _words, st.integers(0, 1)),
    st.tuples(st.just("shuffle"), _words),
    st.tuples(st.just("dim"), st.integers(-1, 9), st.integers(9, 30)),
    st.tuples(st.just("extent"), _small, _small),
    st.tuples(st.just("rank"), _small, st.one_of(st.none(), _small)),
    st.tuples(st.just("shape"), _small, st.one_of(st.none(), _small), st.integers(0, 2)),
    st.tuples(st.just("part"), _small, st.one_of(st.none(), _small), st.integers(0, 2)),
    st.tuples(st.just("broadcast_from"), st.lists(_small, max_size=5).map(tuple)),
    st.tuples(st.just("axis"), st.integers(1, 6)),
)
_limits = st.tuples(st.integers(0, 7), st.booleans(), st.sampled_from((1, 20, 1024)), st.integers(0, 3))


def _drawn(d: Any, verbs: list[Any]) -> list[Any]:
    return [d.empty, *(getattr(d, verb)(*args) for verb, *args in verbs)]


@settings(max_examples=300)
@given(st.integers(0, 2**64 - 1), _limits, st.lists(_verbs, max_size=12))
def test_the_compiled_verbs_draw_what_their_definitions_draw(seed: int, limits: Any, verbs: list[Any]) -> None:
    engines = [PlainPrng(seed), PlainPrng(seed), Prng(seed)]
    stated = _drawn(Plain(engines[0], *limits), verbs)
    for engine in engines[1:]:  # one that is asked through Python, one that is not
        d = Draw(engine, "v", 1, {}, {}, *limits)
        assert d.engine is engine
        assert (d.max_rank, d.allow_empty, d.budget, d.min_rank) == limits
        assert _drawn(d, verbs) == stated
        assert engine.choices == engines[0].choices
    again = Replay(engines[0].choices)
    assert _drawn(Draw(again, "v", 1, {}, {}, *limits), verbs) == stated
    assert again.used == engines[0].choices


def test_a_replay_stays_in_range_and_ends_in_zeros() -> None:
    r = Replay([3, 99, 7])
    assert [r.int(1, 9), r.int(0, 5), r.int(2, 1), r.int(4, 8)] == [4, 5, 2, 4]
    assert r.used == [3, 5, 0, 0]


def test_other_extents_are_drawn_and_nothing_else() -> None:
    moved = set()
    for seed in range(40):
        d = Draw(Vary([0, 4, 1, 6, 2], seed), "v", 1, {}, {})
        assert d.int(0, 9) == 4
        assert d.bool()
        moved.add((d.extent(3, 30), d.dim()))
    assert {a for a, _ in moved} > {9}
    assert {b for _, b in moved} > {EXTENTS[2]}
    assert all(3 <= a <= 30 and b in EXTENTS for a, b in moved)


def test_an_engine_that_fails_is_heard() -> None:
    class Broken:
        def int(self, lo: int, hi: int) -> int:
            raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        Draw(Broken(), "v", 1, {}, {})


def test_what_cannot_be_drawn_is_an_error() -> None:
    d = Draw(Prng(1), "v", 1, {}, {}, allow_empty=False)
    with pytest.raises(IndexError):
        d.pick(())
    with pytest.raises(IndexError):
        d.subset((), 1)
    with pytest.raises(ZeroDivisionError):
        d.dim(0, 0)
