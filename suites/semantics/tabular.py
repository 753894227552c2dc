"""Scores of linear models, support vectors and decision trees over rows of features; all in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

Array = np.ndarray


def post(z: Array, how: str) -> Array:
    """What is done to the scores of a row: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO (zeros stay zero), PROBIT."""
    with np.errstate(all="ignore"):
        if how in ("SOFTMAX", "SOFTMAX_ZERO"):
            e = np.exp(z - z.max(-1, initial=-np.inf, keepdims=True))
            if how == "SOFTMAX_ZERO":
                e = np.where(z == 0, 0.0, e)
            return e / e.sum(-1, keepdims=True)
        if how == "LOGISTIC":
            return 1 / (1 + np.exp(-z))
    if how == "PROBIT":
        return np.vectorize(NormalDist().inv_cdf, otypes=[float])(z)
    return z


def kernel(x: Array, y: Array, kind: str, gamma: float, coef: float, degree: float) -> Array:
    """K(x_i, y_j) of two sets of rows: LINEAR, POLY, RBF, SIGMOID."""
    dot = x @ y.T
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - y[None]) ** 2).sum(-1))
    if kind == "POLY":
        return (gamma * dot + coef) ** degree
    return np.tanh(gamma * dot + coef) if kind == "SIGMOID" else dot


@dataclass
class Leaf:
    """votes: (target, weight)."""

    votes: list[tuple[int, float]]


@dataclass
class Branch:
    """value: a threshold, or the members of a set."""

    mode: str
    feature: int
    value: float | Sequence[float]
    missing: bool
    yes: Branch | Leaf
    no: Branch | Leaf


TESTS: dict[str, Callable[[float, Any], bool]] = {
    "LEQ": lambda a, b: a <= b,
    "LT": lambda a, b: a < b,
    "GTE": lambda a, b: a >= b,
    "GT": lambda a, b: a > b,
    "EQ": lambda a, b: a == b,
    "NEQ": lambda a, b: a != b,
    "MEMBER": lambda a, b: a in b,
}


def descend(node: Branch | Leaf, row: Array) -> Leaf:
    """The leaf that a row of features ends in; NaN goes where ``missing`` says, whatever the test would say of it."""
    while isinstance(node, Branch):
        v = row[node.feature]
        go = node.missing if np.isnan(v) else TESTS[node.mode](v, node.value)
        node = node.yes if go else node.no
    return node


_FOLD: dict[str, Callable[..., Array]] = {"SUM": np.sum, "AVERAGE": np.sum, "MIN": np.min, "MAX": np.max}


def forest(trees: Sequence[Branch | Leaf], x: Array, targets: int, fold: str, base: Sequence[float] = ()) -> Array:
    """Scores [rows, targets]: the votes of all trees folded per target, plus ``base``.  No vote counts 0."""
    out = np.zeros((len(x), targets))
    for i, row in enumerate(x):
        votes: list[list[float]] = [[] for _ in range(targets)]
        for tree in trees:
            for target, weight in descend(tree, row).votes:
                votes[target].append(weight)
        out[i] = [_FOLD[fold](v) if v else 0.0 for v in votes]
    if fold == "AVERAGE":
        out /= len(trees)
    return out + np.array(base) if len(base) else out
