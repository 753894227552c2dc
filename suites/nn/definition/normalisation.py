"""Normalisation layers and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.nn.definition.common import Array, axis_of, check, layer, weights


def _eps(v: float, default: float) -> float:
    return v or float(np.float32(default))


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@layer("softmax")
def softmax(p: Any, x: Array) -> Array:
    """Over the channels."""
    check(x.ndim >= 3, "rank")
    return _softmax(x, -3)


@layer("softmaxND")
def softmax_nd(p: Any, x: Array) -> Array:
    """Over any axis."""
    return _softmax(x, axis_of(p.axis, x.ndim))


@layer("batchnorm")
def batchnorm(p: Any, x: Array) -> Array:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta per channel; the statistics may come from the input."""
    check(x.ndim >= 3 and x.shape[-3] == p.channels, "channels")
    c = x.shape[-3]

    def column(w: Any, default: float) -> Array:
        v = weights(w)
        check(v.size in (0, c), f"expected {c} weights, got {v.size}")
        return (v if v.size else np.full(c, default)).reshape(c, 1, 1)

    gamma, beta = column(p.gamma, 1.0), column(p.beta, 0.0)
    if p.computeMeanVar:
        axes = (-2, -1) if p.instanceNormalization else tuple(a for a in range(x.ndim) if a != x.ndim - 3)
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    else:
        mean, variance = column(p.mean, 0.0), column(p.variance, 1.0)
    return gamma * (x - mean) / np.sqrt(variance + _eps(p.epsilon, 1e-5)) + beta


@layer("mvn")
def mvn(p: Any, x: Array) -> Array:
    """Mean taken away, divided by the deviation if asked, per channel or over all three axes."""
    check(x.ndim >= 3, "rank")
    axes = (-3, -2, -1) if p.acrossChannels else (-2, -1)
    y = x - x.mean(axes, keepdims=True)
    return y / np.sqrt(x.var(axes, keepdims=True) + _eps(p.epsilon, 1e-6)) if p.normalizeVariance else y


@layer("l2normalize")
def l2normalize(p: Any, x: Array) -> Array:
    """x / sqrt(sum of squares over the last three axes + epsilon)."""
    check(x.ndim >= 3, "rank")
    return x / np.sqrt((x * x).sum((-3, -2, -1), keepdims=True) + _eps(p.epsilon, 1e-6))


@layer("lrn")
def lrn(p: Any, x: Array) -> Array:
    """x / (k + alpha / n * sum over n neighbouring channels of squares) ** beta, n the window size."""
    check(x.ndim >= 3 and p.localSize > 0 and p.k >= 0, "rank, window, k")
    n, c = int(p.localSize), x.shape[-3]
    y = np.empty_like(x)
    for i in range(c):
        lo = i - (n - 1) // 2
        part = x[..., max(0, lo) : max(0, min(c, lo + n)), :, :]
        y[..., i, :, :] = x[..., i, :, :] / ((p.k or 1.0) + p.alpha / n * (part * part).sum(-3)) ** p.beta
    return y


@layer("layerNormalization")
def layer_normalization(p: Any, x: Array) -> Array:
    """Over the trailing axes of normalizedShape, then gamma and beta of that shape."""
    shape = tuple(p.normalizedShape)
    check(x.shape[x.ndim - len(shape) :] == shape and shape != (), "normalizedShape")
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + p.eps)
    return y * weights(p.gamma, *shape) + weights(p.beta, *shape)
