"""Definitions as plain loops over exact numbers: slow, obvious, the yardstick of the fast kernels.

Floats are ``fractions.Fraction``, so that a result is exact until it is rounded once by ``as_float``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray


def exact(a: Array) -> Array:
    """Object array of Fractions (floats) or Python ints."""
    out = np.empty(a.shape, object)
    kind = a.dtype.kind
    for i in np.ndindex(a.shape):
        out[i] = int(a[i]) if kind in "iub" else Fraction(float(a[i]))
    return out


def as_float(a: Array) -> Array:
    """f64, each element rounded once."""
    out = np.empty(a.shape)
    for i in np.ndindex(a.shape):
        out[i] = float(a[i])
    return out


def matmul(a: Array, b: Array) -> Array:
    """2-d product of object arrays."""
    out = np.empty((a.shape[0], b.shape[1]), object)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = sum((a[i, k] * b[k, j] for k in range(a.shape[1])), 0)
    return out


def reduce(name: str, x: Array, axes: Sequence[int], keepdims: bool) -> Array:
    """Fold an object array over ``axes``; sums, products, extremes and their kin."""
    axes = tuple(axes)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    cells: dict[tuple[int, ...], list] = {i: [] for i in np.ndindex(*shape)}
    for i in np.ndindex(x.shape):
        cells[tuple(0 if k in axes else v for k, v in enumerate(i))].append(x[i])
    out = np.empty(shape, object)
    for i, v in cells.items():
        out[i] = FOLDS[name](v)
    return out if keepdims else out.reshape([n for k, n in enumerate(x.shape) if k not in axes])


def _product(v: list) -> object:
    p = 1
    for x in v:
        p = p * x
    return p


FOLDS = {
    "sum": lambda v: sum(v, 0),
    "mean": lambda v: sum(v, 0) / Fraction(len(v)),
    "prod": _product,
    "max": max,
    "min": min,
    "sum_square": lambda v: sum((x * x for x in v), 0),
    "l1": lambda v: sum((abs(x) for x in v), 0),
}


def conv(
    x: Array,
    w: Array,
    b: Array | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    groups: int,
) -> Array:
    n, c, *s = x.shape
    m, _, *k = w.shape
    r = len(s)
    sizes = [max(0, (s[i] + pads[i] + pads[r + i] - dilations[i] * (k[i] - 1) - 1) // strides[i] + 1) for i in range(r)]
    out = np.empty((n, m, *sizes), object)
    for at in np.ndindex(out.shape):
        batch, f, *o = at
        total = 0 if b is None else b[f]
        for ch in range(c // groups):
            for t in np.ndindex(*k):
                i = [o[a] * strides[a] - pads[a] + t[a] * dilations[a] for a in range(r)]
                if all(0 <= i[a] < s[a] for a in range(r)):
                    of_w: tuple[Any, ...] = (f, ch, *t)
                    of_x: tuple[Any, ...] = (batch, f // (m // groups) * (c // groups) + ch, *i)
                    total = total + x[of_x] * w[of_w]
        out[at] = total
    return out


def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
    groups: int,
    sizes: Sequence[int],
) -> Array:
    n, c, *s = x.shape
    _, per, *k = w.shape
    r = len(s)
    out = np.empty((n, per * groups, *sizes), object)
    for at in np.ndindex(out.shape):
        out[at] = 0 if b is None else b[at[1]]
    for batch in range(n):
        for ch in range(c):
            for f in range(per):
                for i in np.ndindex(*s):
                    for t in np.ndindex(*k):
                        o = tuple(i[a] * strides[a] - begins[a] + t[a] * dilations[a] for a in range(r))
                        if all(0 <= o[a] < sizes[a] for a in range(r)):
                            at = (batch, ch // (c // groups) * per + f, *o)
                            of_w: tuple[Any, ...] = (ch, f, *t)
                            of_x: tuple[Any, ...] = (batch, ch, *i)
                            out[at] = out[at] + x[of_x] * w[of_w]
    return out


def windows(
    s: Sequence[int],
    k: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    sizes: Sequence[int],
) -> dict[tuple[int, ...], tuple[list[tuple[int, ...]], int]]:
    """Output position -> (elements it sees, cells inside the padded image)."""
    r = len(s)
    out = {}
    for o in np.ndindex(*sizes):
        seen, cells = [], 0
        for t in np.ndindex(*k):
            i = tuple(o[a] * strides[a] - pads[a] + t[a] * dilations[a] for a in range(r))
            cells += all(-pads[a] <= i[a] < s[a] + pads[r + a] for a in range(r))
            if all(0 <= i[a] < s[a] for a in range(r)):
                seen.append(i)
        out[o] = (seen, cells)
    return out
