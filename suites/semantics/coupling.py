"""Support vectors that choose among several classes: one machine a pair, and probabilities that fit all pairs at once.

Source: Chang and Lin, "LIBSVM: a library for support vector machines" (2011), sections 7 and 8; Wu, Lin and Weng,
"Probability estimates for multi-class classification by pairwise coupling" (2004), second method.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

Array = np.ndarray
STOP = 0.005  # LIBSVM section 8: the iteration ends when every entry of Qp is within 0.005 / k of p'Qp


def decisions(k: Array, coefficients: Array, counts: Sequence[int], rho: Array) -> Array:
    """Values [rows, pairs] of the machines of classes i < j, the pairs in the order 01 02 .. 12 ..; positive: i.

    k: kernel [rows, supports], the supports of a class side by side.  coefficients: [classes - 1, supports]; what a
    support of i weighs against j stands in row j - 1, and of j against i in row i.  rho is added."""
    ends = np.cumsum([0, *counts])
    out = np.empty((len(k), len(counts) * (len(counts) - 1) // 2))
    for p, (i, j) in enumerate(combinations(range(len(counts)), 2)):
        mine, theirs = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        out[:, p] = k[:, mine] @ coefficients[j - 1, mine] + k[:, theirs] @ coefficients[i, theirs] + rho[p]
    return out


def votes(f: Array, classes: int) -> Array:
    """Pairs won by every class, [rows, classes]."""
    out = np.zeros((len(f), classes))
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        out[:, i] += f[:, p] > 0
        out[:, j] += f[:, p] <= 0
    return out


def pairwise(f: Array, a: Array, b: Array) -> Array:
    """Probability of i against j: 1 / (1 + exp(A f + B))."""
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(a * f + b))


def _matrix(r: Array, classes: int) -> Array:
    """r[i, j] with r[j, i] = 1 - r[i, j], zeros on the diagonal, of every row."""
    out = np.zeros((len(r), classes, classes))
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        out[:, i, j], out[:, j, i] = r[:, p], 1 - r[:, p]
    return out


def _system(m: Array) -> Array:
    """The optimality conditions [[Q, 1], [1', 0]] of: sum over pairs of (r_ji p_i - r_ij p_j)^2 least, sum p = 1."""
    n = m.shape[-1]
    q = -m * np.swapaxes(m, 1, 2)
    q[:, range(n), range(n)] = (m * m).sum(1)
    out = np.ones((len(m), n + 1, n + 1))
    out[:, :n, :n], out[:, n, n] = q, 0
    return out


def coupled(r: Array, classes: int) -> Array:
    """The probabilities [rows, classes] that fit those of all pairs best, exactly; NaN where one of a pair is."""
    lost = np.isnan(r).any(-1)
    if lost.any():
        out = coupled(np.where(lost[:, None], 0.5, r), classes)
        out[lost] = np.nan
        return out
    right = np.zeros((len(r), classes + 1, 1))
    right[:, classes] = 1
    return np.linalg.solve(_system(_matrix(r, classes)), right)[:, :classes, 0]


def coupling_bound(r: Array, error: Array, classes: int, u: float) -> Array:
    """How far the probabilities of an implementation may be, [rows, classes]: what errors of r do to the system, first
    order, and an iteration that ends by ``STOP``, both through the inverse of the system; u: of its arithmetic."""
    m, d = _matrix(r, classes), np.zeros((len(r), classes, classes))
    for k, (i, j) in enumerate(combinations(range(classes), 2)):
        d[:, i, j] = d[:, j, i] = error[:, k]
    q = d * (m + np.swapaxes(m, 1, 2))
    q[:, range(classes), range(classes)] = 2 * (m * d).sum(1) + (d * d).sum(1)
    p = np.abs(coupled(r, classes))
    rest = np.einsum("nij,nj->ni", q, p) + STOP / classes + 16 * classes * u
    inverse = np.abs(np.linalg.inv(_system(m)))[:, :classes, :classes]
    return np.einsum("nij,nj->ni", inverse, rest) + 8 * u
