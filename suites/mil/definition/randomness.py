"""Random tensors, from a generator of their own: their distribution is what the pages state."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.mil.definition.reading import Arrays, Attrs, Read, reader, wide

READ: dict[str, Read] = {}
reads = reader(READ)
_DICE = np.random.Generator(np.random.MT19937(20))


def _shape(a: Arrays) -> tuple[int, ...]:
    return tuple(int(n) for n in a["shape"])


@reads("random_bernoulli")
def _bernoulli(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [np.where(_DICE.random(_shape(a)) < at.get("prob", 0.5), 1.0, 0.0)]


@reads("random_normal")
def _normal(at: Attrs, a: Arrays, version: str) -> list[Any]:
    return [at.get("mean", 0.0) + at.get("stddev", 1.0) * _DICE.standard_normal(_shape(a))]


@reads("random_uniform")
def _uniform(at: Attrs, a: Arrays, version: str) -> list[Any]:
    low, high = at.get("low", 0.0), at.get("high", 1.0)
    return [low + (high - low) * _DICE.random(_shape(a))]


@reads("random_categorical")
def _categorical(at: Attrs, a: Arrays, version: str) -> list[Any]:
    """Of every row of x, classes in proportion to its probabilities, or to the exponentials of its logits."""
    x = wide(a["x"])
    weights = np.exp(x) if at.get("mode", "logits") == "logits" else x
    rows = weights.reshape(-1, x.shape[-1])
    drawn = [_DICE.choice(len(row), at.get("size", 1), p=row / row.sum()) for row in rows]
    return [np.reshape(drawn, (*x.shape[:-1], -1))]
