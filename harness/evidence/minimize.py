"""Shrinking: first constants are written in the usual way, then the recorded choices (structure) shrink, then the
elements (data), while the same failure stays.

``fails(instance)`` says whether a candidate still fails in the same way; it is the only thing asked of the outside.
What is smaller must be as valid as what was drawn: choices that are lowered give valid instances by construction;
anything else binds to the signature, keeps the stated rules, and keeps what all draws of its kind have in common
(``invariants``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.cases.reruns import args_of, at_run
from harness.core.instance import Arg, Graph, Instance
from harness.declare import OpVersion
from harness.declare.invalid import draw_invalid
from harness.evidence.invariants import Invariants
from harness.generate.draw_engines import Replay
from harness.generate.recipes import materialize

Fails = Callable[[Instance], bool]
SEED = 4096  # choices above this are seeds of data


@dataclass
class Budget:
    """Limits of one reduction: evaluations and seconds."""

    evaluations: int = 800
    seconds: float = 6.0

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds
        self.used = 0

    def spent(self) -> bool:
        return self.used >= self.evaluations or time.monotonic() > self.until


def minimize(version: OpVersion, inst: Instance, fails: Fails, budget: Budget | None = None) -> Instance:
    """The smallest instance found that still fails; ``inst`` itself if nothing smaller does."""
    budget = budget or Budget()
    tried: set[str] = set()

    def check(candidate: Instance | None) -> bool:
        if candidate is None or budget.spent():
            return False
        text = candidate.dumps()
        if text in tried:
            return False
        tried.add(text)
        budget.used += 1
        try:
            return fails(candidate)
        except Exception:  # a candidate that cannot be drawn, built or judged is no smaller failure
            return False

    best = _fewer_runs(inst, check)
    plain = _usual(best)
    tidy = plain is not best and check(plain)
    if tidy:
        best = plain
    if best.choices is not None and not best.reruns:
        best = _shrink_choices(version, best, check, budget, _usual if tidy else _as_drawn)
    if not tidy:
        best = _usual_one_by_one(best, check)
    if best.rule is None:
        known = Invariants(version, best)

        def valid(candidate: Instance) -> bool:
            return known.kept(candidate) and validates(version, candidate) and check(candidate)

        best = _shrink_data(best, valid, budget)
        cropped = best if _declares_shapes(best) or best.reruns else _crop(best, valid, budget)
        if cropped is not best:
            best = _shrink_data(cropped, valid, budget)
        if not _declares_shapes(best) and not best.reruns:
            best = _shorten(best, valid, budget)
    return best


def _fewer_runs(inst: Instance, check: Fails) -> Instance:
    """One of its runs alone, else the instance without the first runs that nothing depends on."""
    for r in range(1 + len(inst.reruns) if inst.reruns else 0):
        if check(at_run(inst, r)):
            return at_run(inst, r)
    best = inst
    while len(best.reruns) > 1:
        second = at_run(best, 1)
        rest = tuple(
            {s: a for s, a in args_of(best, r).items() if a != second.args.get(s)}
            for r in range(2, 1 + len(best.reruns))
        )
        candidate = replace(second, reruns=rest, choices=None)
        if not check(candidate):
            break
        best = candidate
    return best


def _as_drawn(inst: Instance) -> Instance:
    return inst


def _usual(inst: Instance, only: tuple[str, int] | None = None) -> Instance:
    """The instance with constants (``only``: the one in a slot, at an index) encoded in the usual way; itself where
    they are."""

    def plain(slot: str, k: int, a: Arg) -> Arg:
        return replace(a, encoding="") if a.encoding and only in (None, (slot, k)) else a

    if not any(a.encoding for given in inst.args.values() for a in _list(given)):
        return inst
    args: dict[str, Any] = {}
    for slot, given in inst.args.items():
        new = [plain(slot, k, a) for k, a in enumerate(_list(given))]
        args[slot] = new if isinstance(given, list) else new[0]
    return replace(inst, args=args)


def _usual_one_by_one(best: Instance, check: Fails) -> Instance:
    """Constants that need no encoding of their own have none."""
    odd = [(s, k) for s, given in best.args.items() for k, a in enumerate(_list(given)) if a.encoding]
    for at in odd if len(odd) > 1 else ():
        candidate = _usual(best, at)
        if check(candidate):
            best = candidate
    return best


def _declares_shapes(inst: Instance) -> bool:
    """Do attributes state shapes of operands or results?  Outputs that the model declares, and the parameters of
    blocks; a cut operand would no longer be what they say."""
    return any(
        n == "@outputs" or type(v) is Graph or (type(v) is list and v and type(v[0]) is Graph)
        for n, v in inst.attrs.items()
    )


def validates(version: OpVersion, inst: Instance) -> bool:
    """Do the shapes still bind to the signature, and the stated rules hold?"""
    m = version.meaning
    if m is None or version.entry.evaluate is not None:
        return True
    try:
        arrays = {
            k: [materialize(x) for x in a] if isinstance(a, list) else materialize(a) for k, a in inst.args.items()
        }
        tensors, params = version.decode(version.dialect.call_of(inst, arrays))
        m.check_rules(m.bind(tensors, params))
    except Exception:  # whatever the reason, it is no valid instance
        return False
    return True


def _crop(best: Instance, check: Fails, budget: Budget) -> Instance:
    """Cut axes of tensors with literal values down to one index or one half, tied axes together."""
    improved = True
    while improved and not budget.spent():
        improved = False
        for where in _axes(best):
            n = best_extent(best, where)
            halves = [list(range(n // 2)), list(range(n // 2, n))]
            keeps = [[i] for i in range(min(n, 4))] + halves + [list(range(n - 1)), list(range(1, n))]
            for keep in keeps:
                candidate = _cropped(best, where, keep)
                if candidate is not None and check(candidate):
                    best, improved = candidate, True
                    break
            if improved or budget.spent():
                break
        if not improved:
            for back in range(1, 1 + max((len(x.shape) for a in best.args.values() for x in _list(a)), default=0)):
                candidate = _squeezed(best, back)
                if candidate is not None and check(candidate):
                    best, improved = candidate, True
                    break
    return best


def _shorten(best: Instance, check: Fails, budget: Budget) -> Instance:
    """Attributes that are lists, those of one length together (keys and values, fields of the nodes of a tree), with
    the axes of literal tensors that have it, without them, each alone."""

    def attempt() -> Instance | None:
        lists = {n: v for n, v in best.attrs.items() if _is_list(v)}
        for n in sorted({len(v) for v in lists.values()}, reverse=True):
            names = [name for name, v in lists.items() if len(v) == n]
            places = [group for group in _axes(best) if best_extent(best, group) == n][:1]
            some = [list(range(n // 2)), list(range(n // 2, n))]
            keeps = [[i] for i in range(min(n, 8))] + some + [[*range(i), *range(i + 1, n)] for i in range(min(n, 32))]
            alone: list[tuple[list[str], list[Place]]] = [([x], []) for x in names] if len(names) > 1 else []
            for group, where in [*((names, w) for w in places), (names, []), *alone]:
                for keep in keeps:
                    candidate = _cropped(best, where, keep) if where else replace(best, choices=None)
                    assert candidate is not None
                    candidate.attrs = {**best.attrs, **{x: _kept(best.attrs[x], keep) for x in group}}
                    if check(candidate):
                        return candidate
                    if budget.spent():
                        return None
        return None

    while not budget.spent() and (found := attempt()) is not None:
        best = found
    return best


def _is_list(v: Any) -> bool:
    """Several plain values in a row?"""
    if isinstance(v, np.ndarray):
        return v.ndim == 1 and len(v) > 1
    return isinstance(v, (list, tuple)) and len(v) > 1 and all(type(x) in (int, float, str) for x in v)


def _kept(v: Any, keep: list[int]) -> Any:
    return v[keep] if isinstance(v, np.ndarray) else [v[i] for i in keep]


def _squeezed(inst: Instance, back: int) -> Instance | None:
    """Without the axis ``back`` from the right, where all tensors that have it have extent 1 there."""
    args: dict[str, Any] = {}
    hit = False
    for slot, a in inst.args.items():
        new = []
        for one in _list(a):
            at = len(one.shape) - back
            if at >= 0 and one.items is None:
                if one.values is None or one.shape[at] != 1:
                    return None
                one = replace(one, shape=one.shape[:at] + one.shape[at + 1 :])
                hit = True
            new.append(one)
        args[slot] = new if isinstance(a, list) else new[0]
    if not hit:
        return None
    return replace(inst, args=args, choices=None)


Place = tuple[str, int, int]  # slot, index in a variadic slot, axis


def _list(a: Arg | list[Arg]) -> list[Arg]:
    return a if isinstance(a, list) else [a]


def _axes(inst: Instance) -> Iterator[list[Place]]:
    """Groups of axes to cut together: equal extents anywhere, equal extents at the same place, single axes."""
    places = [
        (s, k, x)
        for s, a in inst.args.items()
        for k, one in enumerate(_list(a))
        if one.values is not None and one.items is None
        for x in range(len(one.shape))
        if one.shape[x] > 1
    ]
    seen: set[tuple[Place, ...]] = set()
    for s, k, x in places:
        n = _list(inst.args[s])[k].shape[x]
        same = [p for p in places if best_extent(inst, [p]) == n]
        right = [
            p for p in same if p[2] - len(_list(inst.args[p[0]])[p[1]].shape) == x - len(_list(inst.args[s])[k].shape)
        ]
        left = [p for p in same if p[2] == x]
        for group in (same, right, left, [(s, k, x)]):
            if tuple(group) not in seen:
                seen.add(tuple(group))
                yield group


def best_extent(inst: Instance, where: list[Place]) -> int:
    s, k, x = where[0]
    return _list(inst.args[s])[k].shape[x]


def _cropped(inst: Instance, where: list[Place], keep: list[int]) -> Instance | None:
    args: dict[str, Any] = {}
    for slot, a in inst.args.items():
        new = []
        for k, one in enumerate(_list(a)):
            axes = [x for s, j, x in where if s == slot and j == k]
            if axes:
                flat = np.empty(len(one.values or ()), object)
                flat[:] = one.values
                array = flat.reshape(one.shape)
                for x in axes:
                    array = array.take(keep, axis=x)
                one = replace(one, shape=array.shape, values=list(array.ravel()))
            new.append(one)
        args[slot] = new if isinstance(a, list) else new[0]
    return replace(inst, args=args, choices=None)


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


def _shrink_choices(
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
                    yield [*now[:i], now[i] - 1, *now[i + 1 : i + 1], *now[i + 1 + drop :]]
                    if current() is not now:
                        break
        i += 1
    now = current()
    half = len(now) // 2
    yield now[:half] + [0] * (len(now) - half)


def _shrink_data(inst: Instance, check: Fails, budget: Budget) -> Instance:
    """Replace recipes by literal values, then zero and round them; in further runs too."""
    best = inst
    for run, args in enumerate((inst.args, *inst.reruns)):
        for slot, arg in list(args.items()):
            for k, one in enumerate(_list(arg)):
                if one.items is not None or one.dtype.kind == "s" or budget.spent():
                    continue
                size = int(np.prod(one.shape))
                if size > 512 or (one.values is not None and size <= 1):
                    continue
                array = np.asarray(materialize(one))
                flat: list[Any]
                if one.dtype.kind == "f":
                    flat = [float(x) for x in array.ravel()]
                elif one.dtype.kind == "c":
                    flat = [complex(x) for x in array.ravel()]
                else:
                    flat = [int(x) for x in array.ravel()]
                best, flat = _shrink_values(best, (run, slot, k), flat, check, budget)
    return best


def _with_values(inst: Instance, at: tuple[int, str, int], values: list[Any]) -> Instance:
    """The instance with literal elements in one tensor.  at: run, slot, index in a variadic slot."""
    run, slot, k = at
    args = inst.reruns[run - 1] if run else inst.args
    new = [replace(a, values=list(values)) if i == k else a for i, a in enumerate(_list(args[slot]))]
    changed = {**args, slot: new if isinstance(args[slot], list) else new[0]}
    if not run:
        return replace(inst, args=changed, choices=None)
    return replace(inst, reruns=(*inst.reruns[: run - 1], changed, *inst.reruns[run:]), choices=None)


def _shrink_values(
    best: Instance, at: tuple[int, str, int], flat: list[Any], check: Fails, budget: Budget
) -> tuple[Instance, list[Any]]:
    def attempt(values: list[Any]) -> bool:
        nonlocal best, flat
        candidate = _with_values(best, at, values)
        if values == flat or not check(candidate):
            return False
        best, flat = candidate, values
        return True

    if attempt([0] * len(flat)):
        return best, flat
    attempt([1] * len(flat))
    width = len(flat)
    while width >= 1 and not budget.spent():  # zero runs of elements, halving the run
        for i in range(0, len(flat), width):
            part = flat[i : i + width]
            if any(part):
                attempt(flat[:i] + [0] * len(part) + flat[i + width :])
        width //= 2
    for i, x in enumerate(flat):
        if budget.spent():
            break
        for simple in _simpler(x):
            if attempt([*flat[:i], simple, *flat[i + 1 :]]):
                break
    return best, flat


def _simpler(x: Any) -> list[Any]:
    if isinstance(x, float):
        if x != x or x in (0.0, 1.0, -1.0):
            return []
        if abs(x) == float("inf"):
            return [1.0, -1.0]
        near = float(round(x)) if abs(x) < 1e6 else x
        return [v for v in (1.0, -1.0, near, float(f"{x:.1g}"), float(f"{x:.2g}")) if v != x]
    if isinstance(x, int) and abs(x) > 1:
        return [1, -1 if x < 0 else 2, x // 2]
    return []
