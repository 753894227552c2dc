"""Random layers, drawn by Python's own generator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from suites.nn.definition.common import Array, Unsupported, check, layer


def _many(shape: tuple[int, ...], fn: Any) -> Array:
    check(len(shape) > 0 and min(shape) > 0, "a tensor has elements")
    return np.array([fn() for _ in range(int(np.prod(shape)))]).reshape(shape)


def _normal(p: Any, shape: tuple[int, ...]) -> Array:
    r = random.Random(p.seed)
    return _many(shape, lambda: r.gauss(p.mean, p.stdDev))


def _uniform(p: Any, shape: tuple[int, ...]) -> Array:
    r = random.Random(p.seed)
    return _many(shape, lambda: p.minVal + (p.maxVal - p.minVal) * r.random())


def _bernoulli(p: Any, shape: tuple[int, ...]) -> Array:
    r = random.Random(p.seed)
    return _many(shape, lambda: float(r.random() < p.prob))


for _name, _fn in (("Normal", _normal), ("Uniform", _uniform), ("Bernoulli", _bernoulli)):
    layer(f"random{_name}Like")(lambda p, x, *, fn=_fn: fn(p, x.shape))
    layer(f"random{_name}Static")(lambda p, *, fn=_fn: fn(p, tuple(p.outputShape)))
    layer(f"random{_name}Dynamic")(lambda p, s, *, fn=_fn: fn(p, tuple(int(v) for v in s)))


@layer("categoricalDistribution")
def categorical(p: Any, x: Array) -> Array:
    """Samples of every row, by weights or logits."""
    r = random.Random(p.seed)
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        w = np.exp(row / (p.temperature or 1.0) - (row / (p.temperature or 1.0)).max()) if p.isLogits else row
        if not np.isfinite(w).all():
            raise Unsupported("logits without a distribution")
        rows.append([float(v) for v in r.choices(range(len(row)), w.tolist(), k=int(p.numSamples) or 1)])
    return np.array(rows).reshape(*x.shape[:-1], -1)
