"""Smaller instances from fewer or lower recorded choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.core.instance import Instance
from harness.declare import OpVersion
from harness.declare.invalid import draw_invalid
from harness.evidence.budget import Budget, Fails
from harness.generate.draw_engines import Replay

SEED = 4096  # choices above this are seeds of data


def replay(version: OpVersion, choices: list[int], opset: Any, rule: str | None) -> tuple[Instance | None, list[int]]:
    """The instance that a choice list draws, and the choices it used."""
    engine = Replay(choices)
    try:
        inst = version.draw(engine, opset) if rule is None else draw_invalid(version, rule, engine, opset)
    except Exception:
        return None, []
    if inst is not None:
        inst.choices = engine.used
    return inst, engine.used


def _size(choices: list[int]) -> tuple[int, int]:
    return len(choices), sum(choices)


def shrink_choices(
    version: OpVersion, inst: Instance, check: Fails, budget: Budget, tidy: Callable[[Instance], Instance]
) -> Instance:
    """tidy: what is done to every instance that choices draw."""
    best, now = inst, list(inst.choices or ())

    def attempt(choices: list[int]) -> bool:
        nonlocal best, now
        got, used = replay(version, choices, inst.opset, inst.rule)
        if got is None or not (_size(used) < _size(now)):
            return False
        got = tidy(got)
        if not check(got):
            return False
        best, now = got, used
        return True

    improved = True
    while improved and not budget.spent():
        improved = False
        for candidate in _structural(lambda: now):
            if attempt(candidate):
                improved = True
            if budget.spent():
                break
        i = 0
        while i < len(now) and not budget.spent():  # lower single choices, by bisection
            lo, hi = 0, now[i]
            if hi > SEED:  # a seed: a smaller one is no simpler
                if attempt([*now[:i], 0, *now[i + 1 :]]):
                    improved = True
                i += 1
                continue
            while lo < hi and not budget.spent():
                mid = (lo + hi) // 2
                if attempt([*now[:i], mid, *now[i + 1 :]]):
                    improved = True
                    hi = mid
                    if i >= len(now) or now[i] > mid:
                        break
                else:
                    lo = mid + 1
            i += 1
    return best


def _structural(current: Callable[[], list[int]]) -> Iterator[list[int]]:
    """Candidates with fewer choices: chunks deleted, counts lowered together with what they governed, tails zeroed."""
    for width in (8, 4, 2, 1):
        i = 0
        while i < len(current()):
            now = current()
            yield now[:i] + now[i + width :]
            if current() is now:
                i += width
    i = 0
    while i < len(current()):
        now = current()
        if now[i]:
            for drop in (1, 2, 3, 4):
                if i + drop < len(now):
                    yield [*now[:i], now[i] - 1, *now[i + 1 + drop :]]
                    if current() is not now:
                        break
        i += 1
    now = current()
    half = len(now) // 2
    yield now[:half] + [0] * (len(now) - half)
