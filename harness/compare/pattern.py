"""Where the wrong elements lie, and whether the result is the right one in another arrangement."""

from __future__ import annotations

from itertools import permutations

import numpy as np


def of_shape(want: np.ndarray, actual: np.ndarray) -> str | None:
    """A pattern in a wrong shape; None where the shape is right and the element type alone is wrong."""
    if want.shape == actual.shape:
        return None
    if want.size == actual.size:
        if sorted(want.shape) == sorted(actual.shape):
            return _order(want, actual)
        if [n for n in want.shape if n != 1] == [n for n in actual.shape if n != 1]:
            return "size-1 axes differ"
        return "reshaped"
    if want.ndim == actual.ndim:
        axes = [i for i, (x, y) in enumerate(zip(want.shape, actual.shape, strict=True)) if x != y]
        if len(axes) == 1:
            return f"axis {axes[0]} is {actual.shape[axes[0]]} instead of {want.shape[axes[0]]}"
    return None


def _order(want: np.ndarray, actual: np.ndarray) -> str:
    """The extents are right and in another order: what the elements say of it."""
    axes = permutations(range(want.ndim)) if want.ndim <= 4 else ()
    moved = [want.transpose(p) for p in axes if want.transpose(p).shape == actual.shape]
    if want.size < 2 or any(_alike(x, actual) for x in moved):
        return "transposed"
    return "reshaped" if _alike(want.reshape(actual.shape), actual) else "extents in another order"


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Nearly the same elements, whatever their types."""
    if {x.dtype.kind, y.dtype.kind} & set("OSU"):
        return bool(np.all(x.astype(object) == y.astype(object)))
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        return bool(np.allclose(x.astype(wide), y.astype(wide), rtol=1e-3, equal_nan=True))


def of_values(want: np.ndarray, actual: np.ndarray, bad: np.ndarray, limit: np.ndarray) -> str | None:
    """The first that fits: a whole-tensor relation, else the place of the bad elements."""
    n = int(bad.sum())
    if not n or bad.size < 2 or want.dtype.kind in "OSU":
        return None
    kind = "c" if want.dtype.kind == "c" else "f"
    w = want.astype(np.complex128 if kind == "c" else np.float64)
    a = actual.astype(w.dtype)
    return _relation(w, a, np.asarray(limit)) or _place(bad, n)


def _close(x: np.ndarray, y: np.ndarray, limit: np.ndarray) -> bool:
    if x.shape != y.shape:
        return False
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= 4 * limit + 1e-6 * np.abs(x)
    return bool((near | (x == y) | (np.isnan(x) & np.isnan(y))).all())


def _relation(w: np.ndarray, a: np.ndarray, limit: np.ndarray) -> str | None:
    if not np.isfinite(w).any() or np.ptp(np.abs(w[np.isfinite(w)])) == 0:
        return "all zero" if not a.any() else None  # constant: every arrangement is the same
    if not a.any():
        return "all zero"
    if _close(w, a, limit):
        return None  # wrong, but so nearly right that another arrangement would look right too
    if w.ndim <= 4:
        for p in permutations(range(w.ndim)):
            if p != tuple(range(w.ndim)):
                t = w.transpose(p)
                # The other arrangement in the same buffer, or, with equal axes, in the same shape.
                if _close(t.reshape(-1), a.reshape(-1), limit.transpose(p).reshape(-1)):
                    return "transposed"
    for axis in range(min(w.ndim, 6)):
        if w.shape[axis] > 1:
            if _close(np.flip(w, axis), a, np.flip(limit, axis)):
                return f"reversed along axis {axis}"
            for s in (1, -1):
                if _close(np.roll(w, s, axis), a, np.roll(limit, s, axis)):
                    return f"rolled by {s} along axis {axis}"
    ok = np.isfinite(w) & np.isfinite(a) & (w != 0)
    if ok.sum() >= 2:
        with np.errstate(all="ignore"):
            ratio = a[ok] / w[ok]
            r = ratio.ravel()[int(np.argmax(np.abs(w[ok]).ravel()))]
            if np.isfinite(r) and abs(r - 1) > 1e-6 and np.all(np.abs(ratio - r) <= 1e-3 * np.abs(r)):
                return f"scaled by {complex(r):g}" if w.dtype.kind == "c" else f"scaled by {float(r):g}"
            shift = a[ok] - w[ok]
            s = np.median(shift.real)
            if abs(s) > 0 and np.all(np.abs(shift - s) <= 1e-3 * abs(s)):
                return f"shifted by {float(s):g}"
    return None


def _place(bad: np.ndarray, n: int) -> str | None:
    if n == bad.size:
        return "everywhere"
    if n == 1:
        return "one element"
    if bad.ndim:
        for axis in range(bad.ndim):
            if bad.shape[axis] < 2:
                continue
            other = tuple(i for i in range(bad.ndim) if i != axis)
            hit = bad.any(axis=other)
            at = np.flatnonzero(hit)
            if at.size == 1:
                return f"one index of axis {axis} ({int(at[0])})"
    flat = np.flatnonzero(bad.ravel())
    if n >= 3:
        steps = np.unique(np.diff(flat))
        if steps.size == 1 and steps[0] > 1 and n >= bad.size // int(steps[0]):
            return f"every {int(steps[0])}th element"
        if steps.size == 1 and steps[0] == 1:
            return "the tail" if flat[-1] == bad.size - 1 else "the head" if flat[0] == 0 else "one run"
    if bad.ndim >= 2 and min(bad.shape[-2:]) >= 3:
        inner = np.zeros(bad.shape, bool)
        inner[..., 1:-1, 1:-1] = True
        if not (bad & inner).any():
            return "the border"
    return None
