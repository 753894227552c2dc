"""Convolutions and pools, window by window."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)


def _per_axis(at: Attrs, name: str, axes: int) -> list[int]:
    return list(at.get(name) or [1] * axes)


def _amounts(at: Attrs, extents: Any, reach: Any, strides: Any) -> list[tuple[int, int]]:
    """Padding before and after each axis."""
    kind, given, out = at.get("pad_type", "valid"), at.get("pad") or [0] * (2 * len(reach)), []
    for k, (n, r, s) in enumerate(zip(extents, reach, strides)):
        total = max(0, (-(-n // s) - 1) * s + r - n)
        small, large = total // 2, total - total // 2
        out.append(
            {
                "valid": (0, 0),
                "custom": (given[2 * k], given[2 * k + 1]),
                "same": (small, large),
                "same_lower": (large, small),
            }[kind]
        )
    return out


@reads("conv")
def _conv(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, w, bias = wide(a["x"]), wide(a["weight"]), a.get("bias")
    axes, groups = x.ndim - 2, at.get("groups", 1)
    strides, dilations = (_per_axis(at, n, axes) for n in ("strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    x = np.pad(x, [(0, 0), (0, 0), *_amounts(at, x.shape[2:], reach, strides)])
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    y, per = np.zeros((len(x), len(w), *sizes)), w.shape[1]
    for m, *o in np.ndindex(len(w), *sizes):
        group = m // (len(w) // groups)
        window = tuple(slice(p * s, p * s + r, d) for p, s, r, d in zip(o, strides, reach, dilations))
        of_x: tuple[Any, ...] = (slice(None), slice(group * per, (group + 1) * per), *window)
        part = x[of_x]
        shift = 0.0 if bias is None else float(bias[m])
        of_y: tuple[Any, ...] = (slice(None), m, *o)
        y[of_y] = (part * w[m]).sum(tuple(range(1, part.ndim))) + shift
    return [y]


@reads("conv_transpose")
def _transposed(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, w, bias = wide(a["x"]), wide(a["weight"]), a.get("bias")
    axes, groups = x.ndim - 2, at.get("groups", 1)
    strides, dilations = (_per_axis(at, n, axes) for n in ("strides", "dilations"))
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, w.shape[2:], dilations)]
    beyond = [max(n, o) for n, o in zip(full, (at.get("output_shape") or (0,) * (axes + 2))[2:])]
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    y = np.zeros((len(x), per_out * groups, *(n + 8 for n in beyond)))
    for i in np.ndindex(*x.shape[2:]):
        for k in np.ndindex(*w.shape[2:]):
            o = tuple(p * s + t * d for p, s, t, d in zip(i, strides, k, dilations))
            for g in range(groups):
                ins, outs = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
                of_w: tuple[Any, ...] = (ins, slice(None), *k)
                of_x: tuple[Any, ...] = (slice(None), ins, *i)
                of_y: tuple[Any, ...] = (slice(None), outs, *o)
                y[of_y] += x[of_x] @ w[of_w]
    kind, cut = at.get("pad_type", "valid"), []
    given = at.get("pad") or [0] * (2 * axes)
    for j, n in enumerate(full):
        before, after = (given[2 * j], given[2 * j + 1]) if kind == "custom" else (0, 0)
        size = n - before - after
        if kind == "same":
            size = at["output_shape"][2 + j] if at.get("output_shape") else x.shape[2 + j] * strides[j]
            before = (n - size) // 2
        elif at.get("output_shape"):
            size = at["output_shape"][2 + j]
        cut.append(slice(before, before + size))
    of_y = (slice(None), slice(None), *cut)
    y = y[of_y]
    return [y if bias is None else y + wide(bias).reshape(1, -1, *(1,) * axes)]


@reads("avg_pool", "max_pool", "l2_pool")
def _pool(at: Attrs, a: Arrays, version: str) -> list[Any]:
    x, kernel = wide(a["x"]), at["kernel_sizes"]
    axes, up = len(kernel), at.get("ceil_mode", False)
    strides = _per_axis(at, "strides", axes)
    pads, sizes = _amounts(at, x.shape[2:], kernel, strides), []
    for n, (b, e), k, s in zip(x.shape[2:], pads, kernel, strides):
        size = (n + b + e - k + (s - 1 if up else 0)) // s + 1
        sizes.append(size - (up and (size - 1) * s >= n + b and b + e > 0))
    out = {name: np.zeros((*x.shape[:2], *sizes)) for name in ("mean", "all", "max", "l2")}
    for o in np.ndindex(*sizes):
        spans = [
            (p * s - b, min(p * s - b + k, n + e)) for p, s, (b, e), k, n in zip(o, strides, pads, kernel, x.shape[2:])
        ]
        of_x: tuple[Any, ...] = (slice(None), slice(None), *(slice(max(0, lo), max(0, hi)) for lo, hi in spans))
        seen = x[of_x]
        over = tuple(range(2, x.ndim))
        here: tuple[Any, ...] = (slice(None), slice(None), *o)
        out["mean"][here], out["max"][here] = seen.mean(over), seen.max(over)
        out["all"][here] = seen.sum(over) / np.prod([hi - lo for lo, hi in spans])
        out["l2"][here] = np.sqrt((seen * seen).sum(over))
    return [out]


def _one(name: str, other: str | None = None) -> Read:
    def read(at: Attrs, a: Arrays, version: str) -> list[Any]:
        (found,) = _pool(at, a, version)
        return [found[other if other and at.get("exclude_padding_from_average", False) else name]]

    return read


READ.update(avg_pool=_one("all", "mean"), max_pool=_one("max"), l2_pool=_one("l2"))
