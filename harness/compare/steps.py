"""How many integers a derived bound lets pass."""

from __future__ import annotations

import numpy as np

from harness.declare.expected import Expected
from harness.tolerance import Accepted

_NEAR = 16  # steps


def others(e: Expected) -> np.ndarray | None:
    """How many integers beside one the bound of an output lets pass, per element; None where it is none of integers."""
    if not isinstance(e.value, np.ndarray) or e.dtype.kind not in "iu":
        return None
    if isinstance(e.error, Accepted) and e.error.listed is None:
        return _tried(e, e.error)
    spans = e.error.spans(e.context())
    if not spans:
        return None
    shape = e.value.shape
    count, last = np.zeros(shape), np.full(shape, -np.inf)
    lows = np.stack([np.broadcast_to(low, shape) for low, _ in spans])
    highs = np.stack([np.broadcast_to(high, shape) for _, high in spans])
    order = np.argsort(lows, axis=0)
    for low, high in zip(np.take_along_axis(lows, order, 0), np.take_along_axis(highs, order, 0)):
        count += np.maximum(high - np.maximum(low, last + 1) + 1, 0)
        last = np.maximum(last, high)
    return np.asarray(count - 1)


def _tried(e: Expected, error: Accepted) -> np.ndarray:
    """The same for a class that is a question: it is asked of every integer up to ``_NEAR`` steps away."""
    context, value = e.context(), np.asarray(e.value)
    count = np.zeros(value.shape)
    for k in (k for k in range(-_NEAR, _NEAR + 1) if k):
        moved = value.astype(np.int64) + k
        there = moved.astype(value.dtype)
        passes = np.broadcast_to(error.fn(context, there), value.shape)
        count += passes & (there.astype(np.int64) == moved)
    return count
