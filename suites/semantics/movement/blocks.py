"""Blocks of one kind of axis moved into another: depth, space, batch, and windows.

Every meaning here is one reshape to split axes, one transpose, one reshape to merge them.
"""

from __future__ import annotations

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Any, Array, Choice, Integer, Ints, T, copied, semantics
from harness.generate.draw import Draw
from suites.semantics.movement.common import beyond, fixed, norm_axis, options, prod


def _divides(n: int, k: int, rule: str) -> int:
    if k < 1 or n % k:
        raise RuleError(rule, f"{n} is not a multiple of {k}")
    return n // k


@semantics(
    error=copied(),
    min_rank=4,
    max_rank=4,
    source="ONNX DepthToSpace-1, -11; MIL depth_to_space, pixel_shuffle; TFLite the same; NN reorganizeData",
)
def depth_to_space(x: Any[Array, "n c h w"], *, block: Integer, mode: Choice[str, "dcr", "crd"]) -> Array:
    """Move blocks of channels into space.

    x: [n, c, h, w].  Returns [n, c // block**2, h * block, w * block].  mode: "dcr" takes the block indices from the
    outer channels (MIL, TFLite), "crd" from the inner ones (pixel shuffle).  Raises RuleError "block-divides-channels".
    """
    n, c, h, w = x.shape
    m = _divides(c, max(block, 0) * block, "block-divides-channels")
    if not x.size:  # blocks of nothing may be larger than any memory
        return np.empty((n, m, h * block, w * block), x.dtype)
    if mode == "dcr":
        y = x.reshape(n, block, block, m, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, m, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, m, h * block, w * block)


def _small(d: Draw) -> int:
    return d.dim(hi=4)


@depth_to_space.draw
def _draw_depth_to_space(d: Draw) -> dict:
    block = fixed(d, "block", lambda: d.pick((2, 2, 3, 2, 1, 2, 2, 3)))
    mode = d.pick(options(d, "mode"))
    shape = (_small(d), d.dim(hi=3) * block * block, _small(d), _small(d))
    all_one = d.dtype("x").kind == "b" and d.chance(6)
    return {
        "x": T(shape, values=[d.bool()] * prod(shape) if all_one else None),
        "block": block,
        "mode": mode,
    }


@depth_to_space.breaks("block-divides-channels")
def _depth_misfit(d: Draw) -> dict:
    values = _draw_depth_to_space(d)
    n, _, h, w = values["x"].shape
    return {**values, "x": T((n, d.dim(1, 3) * 4 + 1, h, w)), "block": 2}


@semantics(
    error=copied(),
    min_rank=4,
    max_rank=4,
    source="ONNX SpaceToDepth-1; MIL space_to_depth, pixel_unshuffle; TFLite the same; NN reorganizeData",
)
def space_to_depth(x: Any[Array, "n c h w"], *, block: Integer, mode: Choice[str, "dcr", "crd"]) -> Array:
    """Inverse of ``depth_to_space`` of the same mode ("crd" is pixel unshuffle).

    x: [n, c, h, w].  Returns [n, c * block**2, h // block, w // block].  Raises RuleError
    "block-divides-space".
    """
    n, c, h, w = x.shape
    p, q = _divides(h, block, "block-divides-space"), _divides(w, block, "block-divides-space")
    if not x.size:  # blocks of nothing may be larger than any memory
        return np.empty((n, c * block * block, p, q), x.dtype)
    y = x.reshape(n, c, p, block, q, block)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "dcr" else y.transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * block * block, p, q)


@space_to_depth.draw
def _draw_space_to_depth(d: Draw) -> dict:
    block = fixed(d, "block", lambda: d.pick((2, 2, 3, 2, 1, 2, 2, 3)))
    mode = d.pick(options(d, "mode"))
    return {
        "x": T((_small(d), _small(d), _small(d) * block, _small(d) * block)),
        "block": block,
        "mode": mode,
    }


@space_to_depth.breaks("block-divides-space")
def _space_misfit(d: Draw) -> dict:
    values = _draw_space_to_depth(d)
    n, c, *_ = values["x"].shape
    return {**values, "x": T((n, c, _small(d) * 2, _small(d) * 2 + 1)), "block": 2}


@semantics(error=copied(), source="MIL space_to_batch iOS15; TFLite SPACE_TO_BATCH_ND")
def space_to_batch(x: Any[Array, "n *d"], *, block: Ints, pads: Ints) -> Array:
    """Zero-pad axes 1..k, cut them into blocks, move the offsets inside a block in front of the batch.

    x: [n, *space, *rest] with k = len(block) space axes.  pads: (before, after) of each space axis in turn.
    Returns [n * prod(block), (space + pads) // block, *rest].  Raises RuleError "block-divides-space",
    "pads-per-axis".
    """
    k = len(block)
    if len(pads) != 2 * k:
        raise RuleError("pads-per-axis", f"{len(pads)} pads for {k} axes")
    if x.ndim < 1 + k:
        raise RuleError("rank-holds-blocks", f"rank {x.ndim} for {k} space axes")
    widths = [
        (0, 0),
        *((int(pads[2 * i]), int(pads[2 * i + 1])) for i in range(k)),
        *[(0, 0)] * (x.ndim - 1 - k),
    ]
    y = np.pad(x, widths)
    split = [x.shape[0]]
    for i, b in enumerate(block):
        split += [_divides(y.shape[1 + i], int(b), "block-divides-space"), int(b)]
    rest = y.shape[1 + k :]
    y = y.reshape(*split, *rest)
    order = [*range(2, 2 * k + 1, 2), 0, *range(1, 2 * k, 2), *range(2 * k + 1, y.ndim)]
    return y.transpose(order).reshape(x.shape[0] * prod(block), *split[1::2], *rest)


@space_to_batch.draw
def _draw_space_to_batch(d: Draw) -> dict:
    k = fixed(d, "space_rank", lambda: d.int(1, 2))
    block = tuple(d.pick((1, 2, 3)) for _ in range(k))
    space, pads = [], []
    for b in block:
        before, total = d.int(0, 2), _small(d) * b
        n = max(total - before, 0 if d.empty else 1)
        after = -(n + before) % b
        space.append(n)
        pads += [before, after]
    rest = d.shape(0, 2) if k == 1 else (d.dim(hi=3),)
    return {"x": T((_small(d), *space, *rest)), "block": block, "pads": tuple(pads)}


@space_to_batch.breaks("pads-per-axis")
def _batch_pads_count(d: Draw) -> dict:
    values = _draw_space_to_batch(d)
    return {**values, "pads": (*values["pads"], 0, 0)}


@space_to_batch.breaks("block-divides-space")
def _batch_misfit(d: Draw) -> dict:
    values = _draw_space_to_batch(d)
    shape = values["x"].shape
    k = len(values["block"])
    return {
        "x": T((shape[0], *(2 * _small(d) + 1 for _ in range(k)), *shape[1 + k :])),
        "block": (2,) * k,
        "pads": (0,) * 2 * k,
    }


@semantics(error=copied(), source="MIL batch_to_space iOS15; TFLite BATCH_TO_SPACE_ND")
def batch_to_space(x: Any[Array, "n *d"], *, block: Ints, crops: Ints) -> Array:
    """Inverse of ``space_to_batch``; crops: (before, after) of each space axis in turn, cut off at the end.

    Returns [n // prod(block), space * block - crops, *rest].  Raises RuleError "block-divides-batch",
    "crops-inside",
    "pads-per-axis".
    """
    k = len(block)
    if len(crops) != 2 * k:
        raise RuleError("pads-per-axis", f"{len(crops)} crops for {k} axes")
    if x.ndim < 1 + k:
        raise RuleError("rank-holds-blocks", f"rank {x.ndim} for {k} space axes")
    n = _divides(x.shape[0], prod(block), "block-divides-batch")
    y = x.reshape(*map(int, block), n, *x.shape[1:])
    order = [k]
    for i in range(k):
        order += [k + 1 + i, i]
    y = y.transpose(*order, *range(2 * k + 1, y.ndim))
    y = y.reshape(n, *(s * int(b) for s, b in zip(x.shape[1:], block, strict=False)), *x.shape[1 + k :])
    index = [slice(None)]
    for i in range(k):
        lo, hi = int(crops[2 * i]), y.shape[1 + i] - int(crops[2 * i + 1])
        if lo < 0 or hi > y.shape[1 + i] or hi < lo:
            raise RuleError("crops-inside", f"crops {list(crops)} of {list(y.shape[1 : 1 + k])}")
        index.append(slice(lo, hi))
    return y[tuple(index)]


@batch_to_space.draw
def _draw_batch_to_space(d: Draw) -> dict:
    k = fixed(d, "space_rank", lambda: d.int(1, 2))
    block = tuple(d.pick((1, 2, 3)) for _ in range(k))
    space = [_small(d) for _ in range(k)]
    crops: list[int] = []
    for s, b in zip(space, block, strict=True):
        before = d.int(0, max(0, min(2, s * b - 1)))
        crops += [before, d.int(0, max(0, min(2, s * b - before - 1)))]
    rest = d.shape(0, 2) if k == 1 else (d.dim(hi=3),)
    return {"x": T((d.dim(hi=3) * prod(block), *space, *rest)), "block": block, "crops": tuple(crops)}


@batch_to_space.breaks("block-divides-batch")
def _batch_indivisible(d: Draw) -> dict:
    values = _draw_batch_to_space(d)
    shape, k = values["x"].shape, len(values["block"])
    return {"x": T((2**k * d.dim(1, 3) + 1, *shape[1:])), "block": (2,) * k, "crops": (0,) * 2 * k}


@semantics(error=copied(), source="MIL sliding_windows iOS15; NN slidingWindows")
def sliding_windows(x: Any[Array, "*d"], *, axis: Integer, size: Integer, stride: Integer = 1) -> Array:
    """Windows of ``size`` elements every ``stride`` along ``axis``, as two axes [count, size] in its place.

    count = (extent - size) // stride + 1.  Raises RuleError "axis-in-range", "window-fits".
    """
    a = norm_axis(axis, x.ndim)
    n = x.shape[a]
    if size < 1 or stride < 1 or size > n:
        raise RuleError("window-fits", f"size {size}, stride {stride} for extent {n}")
    if not x.size:
        return np.empty((*x.shape[:a], (n - size) // stride + 1, size, *x.shape[a + 1 :]), x.dtype)
    starts = np.arange(0, n - size + 1, stride)
    return x.take(starts[:, None] + np.arange(size), a)


@sliding_windows.draw
def _draw_sliding(d: Draw) -> dict:
    shape = d.shape(1, d.max_rank - 1, lo=1)
    axis = d.axis(len(shape))
    size = d.int(1, shape[axis])
    return {"x": T(shape), "axis": axis, "size": size, "stride": fixed(d, "stride", lambda: d.int(1, 4))}


@sliding_windows.breaks("window-fits")
def _window_too_wide(d: Draw) -> dict:
    shape = d.shape(1, d.max_rank - 1, lo=1)
    axis = d.axis(len(shape))
    return {"x": T(shape), "axis": axis, "size": shape[axis] + d.int(1, 3), "stride": 1}


@sliding_windows.breaks("axis-in-range")
def _window_axis(d: Draw) -> dict:
    shape = d.shape(1, d.max_rank - 1, lo=1)
    return {"x": T(shape), "axis": beyond(d, len(shape)), "size": 1, "stride": 1}
