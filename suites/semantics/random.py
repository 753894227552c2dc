"""Draws from distributions.  The reference's own draw is one sample; results are judged by distribution, never by
value.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any as Anything

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Array, Context, ElementType, Flag, Float, Integer, Ints, Real, T, semantics, statistical
from harness.generate.draw import Draw


def _generator(seed: Anything) -> np.random.Generator:
    """A seed that the operator set calls absent (None, or negative in MIL) still gives the reference one sample."""
    return np.random.Generator(np.random.Philox(abs(int(seed)) if seed is not None else 0))


def _positive(shape: tuple[int, ...], empty: bool = False) -> tuple[int, ...]:
    """empty: may there be no element?"""
    if any(n < (0 if empty else 1) for n in shape):
        raise RuleError("extents-positive", f"shape {list(shape)}")
    return tuple(shape)


@semantics(
    error=statistical("uniform", low="low", high="high"), source="MIL random_uniform iOS15; ONNX RandomUniform-1"
)
def uniform(
    *,
    shape: Ints,
    low: Real = 0.0,
    high: Real = 1.0,
    seed: Integer | None = None,
    dtype: ElementType | None = None,
    empty: Flag = False,
) -> Array:
    """Independent values uniform in [low, high); low == high gives low.  empty: may extents be 0?  Raises RuleError
    "extents-positive"."""
    u = _generator(seed).random(_positive(shape, bool(empty)))
    return low + (high - low) * u


@semantics(error=statistical("normal", mean="mean", std="std"), source="MIL random_normal iOS15; ONNX RandomNormal-1")
def normal(
    *,
    shape: Ints,
    mean: Real = 0.0,
    std: Real = 1.0,
    seed: Integer | None = None,
    dtype: ElementType | None = None,
    empty: Flag = False,
) -> Array:
    """Independent values of the normal distribution.  empty: may extents be 0?  Raises RuleError "extents-positive"."""
    return mean + std * _generator(seed).standard_normal(_positive(shape, bool(empty)))


@semantics(error=statistical("bernoulli", p="p"), source="MIL random_bernoulli iOS15")
def bernoulli(*, shape: Ints, p: Real = 0.5, seed: Integer | None = None, dtype: ElementType | None = None) -> Array:
    """Independent ones with probability p, else zeros.  Raises RuleError "extents-positive"."""
    return (_generator(seed).random(_positive(shape)) < p).astype(np.float64)


@semantics(
    error=statistical("bernoulli", p=lambda ctx: ctx.inputs["x"]),
    source="ONNX Bernoulli-15",
    data=("prob",),
)
def bernoulli_each(
    x: Float[Array, "*d"], *, seed: Integer | None = None, dtype: ElementType | None = None
) -> Float[Array, "*d"]:
    """One with the probability that each element of ``x`` states, else zero."""
    return (_generator(seed).random(x.shape) < x.astype(np.float64)).astype(np.float64)


def _weights(ctx: Context) -> np.ndarray:
    return probabilities(ctx.inputs["x"], ctx.params.get("logits", True))


def probabilities(x: np.ndarray, logits: bool) -> np.ndarray:
    """Rows that sum to 1: softmax of logits, or the given weights scaled."""
    w = x.astype(np.float64)
    if logits:
        w = np.exp(w - w.max(axis=-1, keepdims=True))
    return w / w.sum(axis=-1, keepdims=True)


def distributions(d: Draw, shape: tuple[int, ...]) -> T:
    """Rows of probabilities: multiples of 1/64, exact in every float type, that sum to 1.  None is 0."""
    n, rows = min(shape[-1], 32), []
    for _ in range(d.int(1, 3)):
        cuts = sorted([0, 64 - n, *(d.int(0, 64 - n) for _ in range(n - 1))])
        rows.append([(1 + b - a) / 64 for a, b in pairwise(cuts)])
    count = int(np.prod(shape[:-1]))
    return T((*shape[:-1], n), values=[p for i in range(count) for p in rows[i % len(rows)]])


@semantics(
    error=statistical("categorical", weights=_weights), source="MIL random_categorical iOS15; ONNX Multinomial-7"
)
def categorical(
    x: Float[Array, "*d n"], *, size: Integer = 1, logits: Flag = True, seed: Integer | None = None
) -> Array:
    """``size`` independent indices for every row of ``x``, drawn with replacement: int32 [*d, size]."""
    w = probabilities(x, logits)
    edges = np.cumsum(w, axis=-1)
    u = _generator(seed).random((*x.shape[:-1], size))
    return np.minimum((u[..., None] >= edges[..., None, :]).sum(-1), x.shape[-1] - 1).astype(np.int32)
