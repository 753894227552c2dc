"""Scores of linear models and support vectors: what becomes of them, how far off they may be, whose label is chosen.

No text says which score is the greatest where one is NaN or where two are equal, nor what a sum is that leaves f32, the
type of the scores, on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I64, STR, float_max
from harness.declare import Call, Draw, Underspecified, gathered, of_result, underspecified
from harness.tolerance import gamma
from suites.onnx.ops.ml.common import Array, objects
from suites.semantics import tabular as s

POSTS = ("NONE", "SOFTMAX", "LOGISTIC")
_TOP = float_max(F32)
_VANISHES = 110.0  # e to the minus this is no f32
LEAVES = "scores: a sum or a product leaves f32 on its way, in which no text says that scores are computed"
ENDLESS = "scores: the softmax of a row that holds an infinity, by its formula or with the greatest score subtracted"
NO_GREATEST = "labels: which score is the greatest where one is NaN, infinities are equal, or rounding decides"


def transformed(d: Draw) -> dict:
    """What becomes of the scores; half of those that stay as they are do not say so."""
    how = d.pick(POSTS)
    return {} if how == "NONE" and d.bool() else {"post_transform": how}


def rows_of(c: Call) -> Array:
    """X in f64; a vector is one row."""
    x = np.asarray(c.inputs["X"].astype(np.float64))
    return x.reshape(1, -1) if x.ndim == 1 else x


def floats(c: Call, name: str) -> Array:
    """A list of floats, empty where it is left out."""
    return np.array(c.attr(name) or (), np.float64)


def sizes(x: Array) -> Array:
    """Magnitudes; of what is no number, or has no end, 0: what follows of it does not come of a sum that grows."""
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def far(x: Array) -> Array:
    """Rows with a feature that f32 does not hold, [rows, 1]."""
    return np.asarray((sizes(x) > _TOP).any(-1, keepdims=True))


def leaves(size: Array) -> Array:
    """Sums that may leave f32, whose terms add up to ``size`` in magnitude."""
    return ~(size < _TOP)


def linear_size(x: Array, w: Array, b: Array) -> Array:
    """What no partial sum of x w + b exceeds, [rows, sums]."""
    with np.errstate(all="ignore"):
        return np.asarray(sizes(x) @ np.abs(w).T + np.abs(b))


def linear_error(x: Array, w: Array, b: Array, u: float) -> Array:
    """Of x w + b: 2 gamma(F + 8) (|x| |w| + |b|)."""
    with np.errstate(all="ignore"):
        return np.asarray(2 * gamma(x.shape[1] + 8, u) * linear_size(x, w, b))


def linear_blur(x: Array, w: Array, b: Array) -> Array:
    """The same of f32 where it can show: sums of quarters and of 128ths that stay small are exact in any order."""
    whole = all(bool(np.all(sizes(a) * n % 1 == 0)) for a, n in ((x, 4), (w, 4), (b, 128)))
    size = linear_size(x, w, b)
    return np.where(whole & (size * 128 < 2**24), 0.0, linear_error(x, w, b, 2.0**-24))


def kernel_size(c: Call, x: Array, vectors: Array) -> Array:
    """What no partial result of a kernel exceeds, [rows, vectors]."""
    dot, inner, degree = _inner(c, x, vectors)
    kind = c.attr("kernel_type")
    with np.errstate(all="ignore"):
        if kind == "POLY":
            return np.maximum(np.maximum(dot, inner), inner**degree)
    return dot if kind == "LINEAR" else np.maximum(dot, inner) if kind == "SIGMOID" else np.ones_like(dot)


def kernel_error(c: Call, x: Array, vectors: Array, u: float) -> tuple[Array, Array]:
    """(magnitude of a kernel, how far it may be off), both [rows, vectors]: 64 F u of what adds up in it."""
    dot, inner, degree = _inner(c, x, vectors)
    kind, rel, one = c.attr("kernel_type"), 64 * max(x.shape[1], 1) * u, np.ones_like(dot)
    with np.errstate(all="ignore"):
        if kind == "POLY":
            return inner**degree, rel * max(degree, 1.0) * inner**degree
    if kind == "LINEAR":
        return dot, rel * dot
    return one, np.minimum(2.0, rel * (1 + inner)) if kind == "SIGMOID" else rel * one


def _inner(c: Call, x: Array, vectors: Array) -> tuple[Array, Array, float]:
    g, c0, degree = kernel_params(c)
    with np.errstate(all="ignore"):
        dot = sizes(x) @ np.abs(vectors).T
        return dot, abs(g) * dot + abs(c0), degree


def kernel_params(c: Call) -> Sequence[float]:
    """gamma, coef0, degree; "Zero if unused for the kernel"."""
    return c.attr("kernel_params") or (0.0, 0.0, 0.0)


def kernel(c: Call, x: Array, vectors: Array) -> Array:
    """The kernel between rows and vectors."""
    with np.errstate(all="ignore"):
        return s.kernel(x, vectors, c.attr("kernel_type"), *kernel_params(c))


def posted(z: Array, error: Array, how: str, u: float) -> Array:
    """How far transformed scores may be off, where the scores may be by ``error``: no slope is above 1, and what lies
    at the ends of a curve stays there."""
    if how == "NONE":
        return error
    y = s.post(z, how)
    with np.errstate(all="ignore"):
        if how == "LOGISTIC":
            spread = np.maximum(s.post(z + error, how) - y, y - s.post(z - error, how))
        else:
            error = np.broadcast_to(error.max(-1, initial=0.0, keepdims=True), z.shape)
            spread = y * np.expm1(2 * error)
            spread = np.where(z.max(-1, initial=-np.inf, keepdims=True) - z > 2 * error + _VANISHES, 0.0, spread)
        return np.minimum(error, np.fmin(spread, 1.0) + 8 * u)


def open_scores(z: Array, free: Array, how: str, result: int) -> Underspecified | None:
    """What is open of transformed scores ``z``.  free: scores that may be anything.  result: their number among the
    results."""
    free = np.broadcast_to(free, z.shape)
    if how == "SOFTMAX":
        free = np.broadcast_to(free.any(-1, keepdims=True), z.shape)
    parts = [underspecified(LEAVES, of_result(result, free))]
    if how == "SOFTMAX" and z.size:
        up = np.isposinf(z)
        endless = up.any(-1, keepdims=True) & ~np.isnan(z).any(-1, keepdims=True) & ~up
        parts.append(underspecified(ENDLESS, of_result(result, endless), np.zeros(z.shape)))
    return gathered(*parts)


def greatest(z: Array, error: Array, free: Array) -> Array:
    """Which scores of a row may be called its greatest, [rows, scores]: all where one is NaN or may be anything."""
    free = np.broadcast_to(free, z.shape).any(-1, keepdims=True) | np.isnan(z).any(-1, keepdims=True)
    with np.errstate(all="ignore"):
        low, high = z - error, z + error
        return np.asarray(free | (high >= low.max(-1, initial=-np.inf, keepdims=True)))


def pick_labels(c: Call, z: Array, ints: str) -> Array:
    """The label of the greatest score of each row."""
    names = c.attr("classlabels_strings")
    best = z.argmax(-1).tolist()
    return (
        objects([names[i] for i in best], (len(best),))
        if names
        else np.array([c.attr(ints)[i] for i in best], np.int64)
    )


def open_labels(c: Call, why: str, best: Array, may: Array, ints: str) -> Underspecified | None:
    """The labels that a row may have beside that of the reference.

    best: what the label of the reference is the greatest of.  may: [rows, classes]."""
    chosen = np.arange(may.shape[1]) == best.argmax(-1)[:, None]
    readings = [
        pick_labels(c, np.where(may[:, [k]], np.arange(may.shape[1]) == k, chosen), ints) for k in range(may.shape[1])
    ]
    return underspecified(why, of_result(0, (may & ~chosen).any(-1)), *readings)


def classified(ints: str) -> Any:
    """Types of the two outputs of a classifier."""
    return lambda c, i: F32 if i else STR if c.attr("classlabels_strings") else I64
