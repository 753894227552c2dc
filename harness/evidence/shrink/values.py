"""Smaller instances with literal, zero or round elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.instance import Instance
from harness.evidence.budget import Budget, Fails, as_list
from harness.generate.recipes import materialize


def shrink_data(inst: Instance, check: Fails, budget: Budget) -> Instance:
    """Replace recipes by literal values, then zero and round them; in further runs too."""
    best = inst
    for run, args in enumerate((inst.args, *inst.reruns)):
        for slot, arg in list(args.items()):
            for k, one in enumerate(as_list(arg)):
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
    new = [replace(a, values=list(values)) if i == k else a for i, a in enumerate(as_list(args[slot]))]
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
