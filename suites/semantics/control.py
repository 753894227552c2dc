"""Control flow over blocks: a block is a function from a list of values to a list of values.

Source: ONNX Loop-1, -11, Scan-8, -9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from suites.semantics.movement.common import norm_axis

Block = Callable[[list[Any]], list[Any]]
ENDLESS = 100_000  # iterations after which a loop counts as one that does not end


def loop(limit: int | None, go: bool | None, carried: Sequence[Any], body: Block, scans: int = 0) -> list[Any]:
    """``body([i, go, *carried]) -> [go, *carried, *scanned]`` while i < limit and go; a missing ``go`` is never asked.

    Returns the carried values and each scanned output stacked on a new first axis.  Where the loop did not run,
    ``scans`` of them are empty, with the type and the other extents that a first iteration would have given.
    Raises RuleError "loop-ends".
    """
    values, rows, i = list(carried), [], 0
    on = True if go is None else go
    while (limit is None or i < limit) and on:
        if i >= ENDLESS:
            raise RuleError("loop-ends", f"no end after {i} iterations")
        out = body([np.array(i, np.int64), np.array(on), *values])
        if go is not None:
            on = bool(np.asarray(out[0]).reshape(-1)[0])
        values = out[1 : 1 + len(values)]
        rows.append(out[1 + len(values) :])
        i += 1
    if not rows and scans:
        like = body([np.array(0, np.int64), np.array(True), *values])[1 + len(values) :]
    else:
        like = rows[0] if rows else []
    return [*values, *(_stacked([r[k] for r in rows], 0, one) for k, one in enumerate(like))]


def _stacked(items: list[Any], axis: int, like: np.ndarray) -> np.ndarray:
    """Arrays of one shape along a new axis; of none, an empty one of that shape and type."""
    if items:
        return np.stack(items, axis)
    return np.zeros((*like.shape[:axis], 0, *like.shape[axis:]), like.dtype)


def _slice(x: np.ndarray, axis: int, at: int) -> np.ndarray:
    """One slice, an array also where no axis is left (NumPy hands out the string itself)."""
    index: tuple[Any, ...] = (*(slice(None),) * (axis % x.ndim), at, ...)
    return x[index]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i != axis % len(shape))


def scan(
    states: Sequence[np.ndarray],
    scans: Sequence[np.ndarray],
    body: Block,
    *,
    in_axes: Sequence[int],
    in_back: Sequence[bool],
    outs: int,
    out_axes: Sequence[int],
    out_back: Sequence[bool],
    length: int | None = None,
) -> list[np.ndarray]:
    """``body([*states, *elements]) -> [*states, *produced]`` over the slices of ``scans``.

    in_axes, out_axes: scanned axis of each input, axis that each output is stacked on.  in_back: read from the end.
    outs: how many outputs are stacked.  out_back: prepend instead of append.  length: None is the extent.

    After no turn those are empty along the axis that they are stacked on, with the type and the other extents
    that a turn would have given.  Raises RuleError "scan-lengths-agree", "axis-in-range".
    """
    extents = {x.shape[a] for x, a in zip(scans, in_axes)}
    if len(extents) != 1:
        raise RuleError("scan-lengths-agree", f"scanned extents {sorted(extents)}")
    n = extents.pop() if length is None else length
    values, rows = list(states), []
    for t in range(n):
        elements = [_slice(x, a, n - 1 - t if back else t) for x, a, back in zip(scans, in_axes, in_back)]
        out = body([*values, *elements])
        values = out[: len(values)]
        rows.append(out[len(values) :])
    like = rows[0] if rows else []
    if not rows and outs:
        element = [np.zeros(_without(x.shape, a), x.dtype) for x, a in zip(scans, in_axes)]
        like = body([*values, *element])[len(values) :]
    produced = []
    for k, one in enumerate(like):
        items = [r[k] for r in rows]
        axis = norm_axis(out_axes[k] if k < len(out_axes) else 0, one.ndim + 1)
        back = k < len(out_back) and out_back[k]
        produced.append(_stacked(items[::-1] if back else items, axis, one))
    return [*values, *produced]
