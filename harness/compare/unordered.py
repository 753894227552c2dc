"""Results in any order: bring the actual slices into the expected order before they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import of
from harness.tolerance import AnyOrder


def reorder(expected: Sequence[Any], got: Sequence[Any]) -> list[Any]:
    """Outputs with those of class ``any_order`` permuted, all by the one permutation that sorts them as the expected
    ones.  What does not fit in shape or type is left for the judge to report."""
    out = list(got)
    by_axis: dict[Any, list[int]] = {}
    for i, e in enumerate(expected):
        a = out[i] if i < len(out) else None
        if not isinstance(e.error, AnyOrder) or not isinstance(a, np.ndarray) or not isinstance(e.value, np.ndarray):
            continue
        if a.shape == e.value.shape and a.dtype == e.value.dtype:
            by_axis.setdefault(e.error.axis, []).append(i)
    for axis, numbers in by_axis.items():
        want = [_rows(expected[i].value, axis) for i in numbers]
        have = [_rows(out[i], axis) for i in numbers]
        if len({len(r) for r in want}) != 1:
            continue
        place = np.empty(len(want[0]), np.int64)
        place[_order(want)] = _order(have)
        for i in numbers:
            out[i] = _take(out[i], axis, place)
    return out


def _rows(a: np.ndarray, axis: int | None) -> np.ndarray:
    if axis is None:
        return a.reshape(-1, 1)
    moved = np.moveaxis(a, axis, 0)
    return moved.reshape(moved.shape[0], -1) if a.size else np.empty((moved.shape[0], 0), a.dtype)


def _take(a: np.ndarray, axis: int | None, place: np.ndarray) -> np.ndarray:
    if axis is None:
        return a.reshape(-1)[place].reshape(a.shape)
    return np.take(a, place, axis)


def _order(parts: list[np.ndarray]) -> np.ndarray:
    """Order of the rows: by integers and strings first, since those cannot be near each other, then by floats."""
    keys: list[Any] = []
    for p in sorted(parts, key=lambda p: of(p).kind == "f"):
        d = of(p)
        for column in p.T:
            if d.kind == "s":
                keys.append(np.array([str(x) for x in column]))
            elif d.kind == "f":
                c = column.astype(np.float64) + 0.0  # -0 becomes 0
                keys += [np.isnan(c), np.where(np.isnan(c), 0.0, c)]
            else:
                keys.append(column.astype(np.int64) if d.kind in "ib" else column.astype(np.uint64))
    return np.lexsort(keys[::-1]) if keys else np.arange(len(parts[0]))
