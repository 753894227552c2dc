"""Smaller instances with fewer or shorter axes and attribute lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.instance import Instance
from harness.evidence.budget import Budget, Fails, as_list


def crop(best: Instance, check: Fails, budget: Budget) -> Instance:
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
            for back in range(1, 1 + max((len(x.shape) for a in best.args.values() for x in as_list(a)), default=0)):
                candidate = _squeezed(best, back)
                if candidate is not None and check(candidate):
                    best, improved = candidate, True
                    break
    return best


def shorten(best: Instance, check: Fails, budget: Budget) -> Instance:
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
        for one in as_list(a):
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


def _axes(inst: Instance) -> Iterator[list[Place]]:
    """Groups of axes to cut together: equal extents anywhere, equal extents at the same place, single axes."""
    places = [
        (s, k, x)
        for s, a in inst.args.items()
        for k, one in enumerate(as_list(a))
        if one.values is not None and one.items is None
        for x in range(len(one.shape))
        if one.shape[x] > 1
    ]
    seen: set[tuple[Place, ...]] = set()
    for s, k, x in places:
        n = as_list(inst.args[s])[k].shape[x]
        same = [p for p in places if best_extent(inst, [p]) == n]
        right = [
            p
            for p in same
            if p[2] - len(as_list(inst.args[p[0]])[p[1]].shape) == x - len(as_list(inst.args[s])[k].shape)
        ]
        left = [p for p in same if p[2] == x]
        for group in (same, right, left, [(s, k, x)]):
            if tuple(group) not in seen:
                seen.add(tuple(group))
                yield group


def best_extent(inst: Instance, where: list[Place]) -> int:
    s, k, x = where[0]
    return as_list(inst.args[s])[k].shape[x]


def _cropped(inst: Instance, where: list[Place], keep: list[int]) -> Instance | None:
    args: dict[str, Any] = {}
    for slot, a in inst.args.items():
        new = []
        for k, one in enumerate(as_list(a)):
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
