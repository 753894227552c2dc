"""What the indexing family shares: resolving indices, and drawing valid ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.generate.draw import Draw, T
from suites.semantics.movement.common import fixed, prod

__all__ = [
    "distinct",
    "fixed",
    "in_extent",
    "in_range",
    "index_recipe",
    "indices_of",
    "prod",
    "resolve",
    "spoiled",
    "within_data",
]


def resolve(index: np.ndarray, extent: Any, signed: bool) -> np.ndarray:
    """Indices as int64 counted from the front; raises RuleError "index-in-range".

    extent: a number, or an array that broadcasts against ``index``.  signed: negative ones count from the end."""
    i = index.astype(np.int64)
    low = -np.asarray(extent, np.int64) if signed else 0
    bad = (i < low) | (i >= extent)
    if bad.any():
        raise RuleError("index-in-range", f"index {i[bad].ravel()[0]} for extent {extent}")
    return np.where(i < 0, i + extent, i) if signed else i


def within_data(indices: np.ndarray, x: np.ndarray, axis: int) -> None:
    """Raises RuleError "indices-within-data": of the rank of ``x`` and, but for ``axis``, no larger."""
    if indices.ndim != x.ndim or any(n > m for k, (n, m) in enumerate(zip(indices.shape, x.shape)) if k != axis):
        raise RuleError("indices-within-data", f"indices {list(indices.shape)} into {list(x.shape)} along {axis}")


@contextmanager
def in_extent() -> Iterator[None]:
    """An index outside, met by a kernel, is the rule "index-in-range" broken."""
    try:
        yield
    except IndexError as e:
        raise RuleError("index-in-range", str(e)) from None


def index_recipe(extent: int, signed: bool) -> str:
    """Fill recipe for valid indices into ``extent`` elements."""
    return f"{'signed_index' if signed else 'index'}:{extent}"


def distinct(d: Draw, n: int, count: int, signed: bool) -> list[int]:
    """``count`` <= n different indices into n elements, spread by a random multiplier, some counted from the end."""
    if count == 0:
        return []
    step = d.int(1, n)
    while gcd(step, n) != 1:
        step += 1
    start = d.int(0, n - 1)
    flip = d.int(2, 5)
    out = [(start + k * step) % n for k in range(count)]
    return [i - n if signed and k % flip == 1 else i for k, i in enumerate(out)]


def indices_of(d: Draw, shape: Sequence[int], extent: int, signed: bool) -> T:
    """A tensor of valid indices into ``extent`` elements."""
    if extent == 0:
        shape = [0, *shape[1:]] if len(shape) else [0]
    return T(shape, index_recipe(extent, signed) if prod(shape) else "small")


def in_range(values: dict[str, Any], name: str) -> bool:
    """Are there elements for an index to point at?"""
    return prod(values[name].shape) > 0


def spoiled(d: Draw, values: dict[str, Any], name: str, extent: int, signed: bool) -> dict[str, Any]:
    """The draw again with out-of-range indices in ``name``."""
    bad = d.pick((extent, extent + 3, -extent - 1) if signed else (extent, extent + 3))
    t = values[name]
    shape = t.shape if prod(t.shape) else tuple(max(1, n) for n in t.shape)
    values[name] = T(shape, values=[bad] * prod(shape))
    return values
