"""Windows over more spatial axes than the compiled kernels take.

A window over many axes is made of windows over the last ones: what it sees along the axes before them is laid side by
side, as more channels of a convolution, or as one more axis of a pooling window.  Each result is one call of a kernel,
so it is rounded once, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import _opconform_native as _native
import numpy as np

Array = np.ndarray
Numbers = Sequence[int] | None

MOST = 3  # spatial axes of the compiled kernels


def _each(given: Numbers, n: int, fill: int) -> tuple[int, ...]:
    return tuple(given) if given else (fill,) * n


def _without_first(pads: Sequence[int], n: int) -> tuple[int, ...]:
    """Begins then ends of the axes after the first."""
    return (*pads[1:n], *pads[n + 1 :])


def conv(
    x: Array, w: Array, b: Array | None, strides: Numbers, dilations: Numbers, pads: Numbers, groups: int, out: Any
) -> Array:
    """``native_ref.conv`` over any number of spatial axes."""
    n = x.ndim - 2
    if n <= MOST or n != w.ndim - 2:
        return _native.conv(x, w, b, strides, dilations, pads, groups, None, None, False, out)
    st, di, p = _each(strides, n, 1), _each(dilations, n, 1), _each(pads, 2 * n, 0)
    (batch, c, extent, *rest), k = x.shape, w.shape[2]
    filters = w.reshape(w.shape[0], w.shape[1] * k, *w.shape[3:])
    count = max(0, (extent + p[0] + p[n] - di[0] * (k - 1) - 1) // st[0] + 1)
    lines = []
    for o in range(max(count, 1)):
        seen = np.zeros((batch, c, k, *rest), x.dtype)
        for t in range(k):
            i = o * st[0] - p[0] + t * di[0]
            if 0 <= i < extent:
                seen[:, :, t] = x[:, :, i]
        image = seen.reshape(batch, c * k, *rest)
        lines.append(conv(image, filters, b, st[1:], di[1:], _without_first(p, n), groups, out))
    return np.stack(lines, 2)[:, :, :count]


def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None,
    strides: Numbers,
    dilations: Numbers,
    pads: Numbers,
    groups: int,
    output_padding: Numbers,
    sizes: Numbers,
    out: Any,
) -> Array:
    """``native_ref.conv_transpose`` over any number of spatial axes."""
    n = x.ndim - 2
    if n <= MOST or n != w.ndim - 2:
        return _native.conv(x, w, b, strides, dilations, pads, groups, output_padding, sizes, True, out)
    st, di, p = _each(strides, n, 1), _each(dilations, n, 1), _each(pads, 2 * n, 0)
    more, s, kernel = _each(output_padding, n, 0), x.shape[2:], w.shape[2:]
    if not sizes:
        full = [st[i] * (s[i] - 1) + more[i] + di[i] * (kernel[i] - 1) + 1 - p[i] - p[n + i] for i in range(n)]
        sizes = [max(0, e) for e in full]
    lines = []
    for o in range(max(sizes[0], 1)):
        pairs = [(i, t) for t in range(kernel[0]) for i in range(s[0]) if i * st[0] - p[0] + t * di[0] == o]
        at, taps = [i for i, _ in pairs], [t for _, t in pairs]
        image = x[:, :, at].reshape(x.shape[0], x.shape[1] * len(pairs), *s[1:])
        filters = np.moveaxis(w[:, :, taps], 2, 1).reshape(w.shape[0] * len(pairs), w.shape[1], *kernel[1:])
        rest = _without_first(p, n)
        lines.append(conv_transpose(image, filters, b, st[1:], di[1:], rest, groups, None, sizes[1:], out))
    return np.stack(lines, 2)[:, :, : sizes[0]]


def pool(
    code: int,
    x: Array,
    kernel: Sequence[int],
    strides: Numbers,
    dilations: Numbers,
    pads: Numbers,
    extra_end: Numbers,
    sizes: Numbers,
    p: float,
    positions: bool,
    out: Any,
) -> Any:
    """``native_ref.pool`` over any number of spatial axes; ``code``: its kind."""
    n = x.ndim - 2
    if n <= MOST or n != len(kernel):
        return _native.pool(code, x, kernel, strides, dilations, pads, extra_end, sizes, p, positions, out)
    st, di, pd = _each(strides, n, 1), _each(dilations, n, 1), _each(pads, 2 * n, 0)
    extra, s = _each(extra_end, n, 0), x.shape[2:]
    if not sizes:
        room = [s[i] + pd[i] + pd[n + i] + extra[i] - di[i] * (kernel[i] - 1) - 1 for i in range(n)]
        sizes = [max(0, r // t + 1) for r, t in zip(room, st)]
    a = n - MOST + 1  # leading axes, whose cells become one axis
    first: list[Array] = []
    second: list[Array] = []
    for place in product(*(range(max(e, 1)) for e in sizes[:a])):
        seen = [[o * st[i] - pd[i] + t * di[i] for t in range(kernel[i])] for i, o in enumerate(place)]
        inside = [[at for at in ats if 0 <= at < s[i]] for i, ats in enumerate(seen)]
        padded = prod(sum(-pd[i] <= at < s[i] + pd[n + i] for at in ats) for i, ats in enumerate(seen))
        cells = x
        for i, at in enumerate(inside):
            cells = np.take(cells, np.array(at, np.int64), axis=2 + i)
        count = prod(map(len, inside))
        row = _native.pool(
            code,
            np.ascontiguousarray(cells.reshape(*x.shape[:2], count, *s[a:])),
            (max(padded, 1), *kernel[a:]),
            (1, *st[a:]),
            (1, *di[a:]),
            (0, *pd[a:n], padded - count, *pd[n + a :]),
            None,
            (1, *sizes[a:]),
            p,
            positions,
            out,
        )
        first.append((row[0] if positions else row)[:, :, 0])
        if positions:
            second.append(_placed(row[1][:, :, 0], inside, s))
    most = [max(e, 1) for e in sizes[:a]]
    kept = (slice(None), slice(None), *map(slice, sizes[:a]))

    def laid(lines: list[Array]) -> Array:
        y = np.stack(lines, 2)
        return y.reshape(*y.shape[:2], *most, *y.shape[3:])[kept]

    return (laid(first), laid(second)) if positions else laid(first)


def _placed(where: Array, inside: list[list[int]], s: Sequence[int]) -> Array:
    """Positions among the cells that a window sees along the leading axes, as positions in the image."""
    a = len(inside)
    plane = prod(s[a:])
    if not all(inside):
        return np.full(where.shape, -1, np.int64)
    cell = np.unravel_index(np.maximum(where, 0) // plane, [len(v) for v in inside])
    lead = np.ravel_multi_index([np.array(v)[c] for v, c in zip(inside, cell)], s[:a])
    return np.where(where < 0, -1, lead * plane + np.maximum(where, 0) % plane)
