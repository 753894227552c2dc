"""Sequences (lists of tensors) and optionals: plain functions, since their values are containers, not arrays.

A sequence is a Python list of arrays, an empty optional is None.  Source: ONNX Sequence*-11, SplitToSequence-11,
ConcatFromSequence-11, Optional*-15, -18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from suites.semantics.movement.common import norm_axis

Tensors = list[np.ndarray]


def position(at: int | None, n: int, top: int) -> int:
    """An index in [-n, top], counted from the front; None is ``top``.  Raises RuleError "position-in-range"."""
    if at is None:
        at = top
    if not -n <= at <= top:
        raise RuleError("position-in-range", f"position {at} in a sequence of {n}")
    return at + n if at < 0 else at


def take(seq: Tensors, at: int) -> np.ndarray:
    """The tensor at a position of either sign."""
    return seq[position(at, len(seq), len(seq) - 1)]


def insert(seq: Tensors, x: np.ndarray, at: int | None = None) -> Tensors:
    """``x`` put before a position in [-n, n]; None appends."""
    i = position(at, len(seq), len(seq))
    return [*seq[:i], x, *seq[i:]]


def erase(seq: Tensors, at: int | None = None) -> Tensors:
    """Without the tensor at a position; None is the last.  Raises RuleError "position-in-range" on an empty
    sequence."""
    i = position(at, len(seq), len(seq) - 1)
    return [*seq[:i], *seq[i + 1 :]]


def split(x: np.ndarray, sizes: int | Sequence[int] | None, axis: int, keepdims: bool) -> Tensors:
    """Parts along ``axis``: chunks of one size (the last smaller), given sizes, or single slices (sizes None), which
    lose the axis unless ``keepdims``.  Raises RuleError "axis-in-range", "sizes-sum", "sizes-positive"."""
    a = norm_axis(axis, x.ndim)
    n = x.shape[a]
    if sizes is None:
        parts = np.split(x, n, a) if n else []
        return parts if keepdims else [p.squeeze(a) for p in parts]
    if isinstance(sizes, int):
        if sizes < 1:
            raise RuleError("sizes-positive", f"chunks of {sizes}")
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    if any(s < 0 for s in sizes):
        raise RuleError("sizes-positive", f"sizes {list(sizes)}")
    if sum(sizes) != n:
        raise RuleError("sizes-sum", f"sizes {list(sizes)} for extent {n}")
    return np.split(x, np.cumsum(sizes)[:-1], a) if sizes else []


def join(seq: Tensors, axis: int, new_axis: bool) -> np.ndarray:
    """Concatenated along ``axis``, or stacked on a new one.  Raises RuleError "sequence-not-empty", "axis-in-range",
    "shapes-agree"."""
    if not seq:
        raise RuleError("sequence-not-empty", "nothing to concatenate")
    a = norm_axis(axis, seq[0].ndim + new_axis)
    try:
        return np.stack(seq, a) if new_axis else np.concatenate(seq, a)
    except ValueError as e:
        raise RuleError("shapes-agree", str(e)) from None


def mapped(seq: Tensors, more: Sequence[Any], body: Callable[[list[Any]], list[Any]], outs: int) -> list[Tensors]:
    """``body`` on the i-th elements of the sequences (a plain tensor goes to every call); one sequence per output.
    Raises RuleError "samples-agree"."""
    lengths = [len(m) for m in more if isinstance(m, list)]
    if any(n != len(seq) for n in lengths):
        raise RuleError("samples-agree", f"sequences of {[len(seq), *lengths]}")
    rows = [body([x, *(m[i] if isinstance(m, list) else m for m in more)]) for i, x in enumerate(seq)]
    return [[r[k] for r in rows] for k in range(outs)]
