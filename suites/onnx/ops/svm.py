"""ai.onnx.ml: support vectors that choose among classes.

The schema text names the attributes and no formula.  What is judged is what those names mean in LIBSVM, from which they
come (kernel_params "gamma, coef0, degree", prob_a, prob_b); what neither tells is ambiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Sampling,
    Spelling,
    T,
    Underspecified,
    bounded,
    exact,
    gathered,
    of_result,
    other_shape,
    underspecified,
)
from harness.tolerance import gamma
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, quarters, require
from suites.onnx.ops.ml.models import alike, points, width
from suites.onnx.ops.ml.scores import (
    NO_GREATEST,
    POSTS,
    classified,
    far,
    floats,
    kernel,
    kernel_error,
    kernel_size,
    leaves,
    linear_error,
    linear_size,
    open_labels,
    open_scores,
    pick_labels,
    posted,
    rows_of,
)
from suites.semantics import coupling
from suites.semantics import tabular as s

Array = np.ndarray
INTS = "classlabels_ints"
NO_PROBABILITY = "SVMClassifier: the probabilities of pairs of which one has no value, or none that f32 holds"
LEAST = 1e-7  # LIBSVM keeps the probability of a pair so far from 0 and 1


def _count(c: Call) -> int:
    """Number of classes.  Raises RuleError "one-of-labels", "prob-sizes-agree"."""
    words, ints = c.attr("classlabels_strings"), c.attr(INTS)
    if bool(words) == bool(ints):
        raise RuleError("one-of-labels", "one and only one of the classlabels attributes is defined")
    if len(c.attr("prob_a") or ()) != len(c.attr("prob_b") or ()):
        raise RuleError("prob-sizes-agree", "prob_b has the size of prob_a")
    return len(words or ints)


def _given(c: Call) -> tuple[Array, Array]:
    """Rows and support vectors.  Raises RuleError "vectors-per-class", "sizes-fit"."""
    x, counts, n = rows_of(c), c.attr("vectors_per_class"), _count(c)
    pairs = n * (n - 1) // 2
    require(len(counts) == n, "vectors-per-class", f"{len(counts)} counts for {n} classes")
    sizes = {"support_vectors": sum(counts) * x.shape[1], "coefficients": (n - 1) * sum(counts), "rho": pairs}
    if c.attr("prob_a"):
        sizes["prob_a"] = pairs
    for name, size in sizes.items():
        given = len(c.attr(name) or ())
        require(given == size, "sizes-fit", f"{name}: {given}, not {size}")
    return x, floats(c, "support_vectors").reshape(sum(counts), x.shape[1])


def _decisions(c: Call) -> Array:
    """The values of all pairs, [rows, pairs]."""
    x, vectors = _given(c)
    return _of_pairs(c, kernel(c, x, vectors), floats(c, "coefficients"), floats(c, "rho"))


def _of_pairs(c: Call, k: Array, weights: Array, rho: Array) -> Array:
    with np.errstate(all="ignore"):
        return coupling.decisions(k, weights.reshape(_count(c) - 1, k.shape[1]), c.attr("vectors_per_class"), rho)


def _leaving(c: Call) -> Array:
    """Pairs whose value may leave f32 on its way, [rows, pairs]."""
    x, vectors = _given(c)
    w = np.maximum(np.abs(floats(c, "coefficients")), 1.0)
    return leaves(_of_pairs(c, kernel_size(c, x, vectors), w, np.abs(floats(c, "rho")))) | far(x)


def _linear(c: Call) -> tuple[Array, Array, Array]:
    """Rows, weights [classes, features] and rho of a linear machine a class.  Raises RuleError "sizes-fit"."""
    x, count, given = rows_of(c), _count(c), len(c.attr("coefficients") or ())
    require(given == count * x.shape[1], "sizes-fit", f"coefficients: {given}, not {count * x.shape[1]}")
    require(c.attr("rho"), "sizes-fit", "rho: 0, not 1")
    return x, floats(c, "coefficients").reshape(count, x.shape[1]), floats(c, "rho")[:1]


def _scores(c: Call) -> tuple[Array, Array]:
    """(what the label is the greatest of, the scores): probabilities, else the values of all pairs, else, without
    support vectors, those of a linear machine a class."""
    count = _count(c)
    if not c.attr("vectors_per_class"):
        x, w, rho = _linear(c)
        with np.errstate(all="ignore"):
            z = x @ w.T + rho
        return z, z
    f = _decisions(c)
    if not c.attr("prob_a"):
        return coupling.votes(f, count), f
    p = coupling.coupled(coupling.pairwise(f, floats(c, "prob_a"), floats(c, "prob_b")), count)
    return p, p


def _classify(c: Call) -> tuple[Array, Array]:
    best, z = _scores(c)
    return pick_labels(c, best, INTS), s.post(z, c.attr("post_transform"))


def _decision_error(c: Call, u: float) -> Array:
    """Of the value of a pair: of the kernels, of which each may be off by 64 F u of what adds up in it, and of a dot
    product with them."""
    x, vectors = _given(c)
    size, error = kernel_error(c, x, vectors, u)
    w, rho = np.abs(floats(c, "coefficients")), np.abs(floats(c, "rho"))
    whole = gamma(len(vectors) + 8, u) * _of_pairs(c, size, w, rho)
    return np.asarray(whole + _of_pairs(c, error, w, np.zeros(len(rho))))


def _error(c: Call, u: float) -> Array:
    """Of the scores before the transform."""
    if not c.attr("vectors_per_class"):
        return linear_error(*_linear(c), u)
    error = _decision_error(c, u)
    if not c.attr("prob_a"):
        return error
    a, b = floats(c, "prob_a"), floats(c, "prob_b")
    f = _decisions(c)
    r = coupling.pairwise(f, a, b)
    with np.errstate(all="ignore"):
        slope = np.abs(a) * error + 2 * u * (np.abs(a * f) + np.abs(b))  # of a curve that is nowhere steeper than 1/4
        slope = np.where(np.isfinite(f), np.fmin(slope / 4, 1.0), 0.0)
    return coupling.coupling_bound(np.where(np.isnan(r), 0.5, r), slope + 8 * u + LEAST, _count(c), u)


def _bound(ctx: Context) -> Array:
    """The error of the scores, through a transform whose slope is at most 1 in each score."""
    c, u = ctx.call, ctx.acc_u
    return posted(_scores(c)[1], _error(c, u), c.attr("post_transform"), u) + 16 * u * np.abs(ctx.wide) + ctx.ulp


def _open(c: Call) -> str | None:
    """What the text leaves open."""
    count, u, how = _count(c), 2.0**-24, c.attr("post_transform")
    best, z = _scores(c)
    every = np.ones((len(z), count), bool)
    if not c.attr("vectors_per_class"):
        why = "SVMClassifier without support vectors: the text has no linear machine"
        within = 2 * _error(c, u).max(-1, initial=0.0, keepdims=True) + 2.0**-20
        scores = underspecified(why, of_result(1, every), *_linear_machines(c), within=within)
        x, w, rho = _linear(c)
        free = leaves(linear_size(x, w, rho)) | far(x)
        return gathered(_labels(c, why, every), scores, open_scores(z, free, how, 1))
    free = _leaving(c)
    if not c.attr("prob_a"):
        why = "SVMClassifier without probabilities: one score a class is stated, a machine has one a pair"
        if z.shape[1] == count:  # those of the pairs have the shape that is stated
            return gathered(_labels(c, why, every), underspecified(why, of_result(1, every)))
        return gathered(
            _labels(c, why, every), other_shape(why, 1, shapes=((len(z), count),)), open_scores(z, free, how, 1)
        )
    f = _decisions(c)
    lost = free.any(-1, keepdims=True) | np.isnan(f).any(-1, keepdims=True)
    won = coupling.votes(f, count)
    with np.errstate(all="ignore"):
        close = np.abs(f) <= _decision_error(c, u)
        top = np.sort(best, -1)
        tied = top[:, -1] - top[:, -2] <= 2 * _error(c, u).max(-1)
    most = won == won.max(-1, keepdims=True)
    return gathered(
        underspecified(NO_PROBABILITY, of_result(1, every & lost)),
        _labels(c, NO_GREATEST, every & lost),
        _labels(c, "SVMClassifier: a pair that rounding decides", every & close.any(-1, keepdims=True)),
        _labels(c, "SVMClassifier: two classes as probable as each other", every & tied[:, None]),
        _labels(
            c, "SVMClassifier: the label by votes (LIBSVM without probabilities) is not the most probable one", most
        ),
    )


def _labels(c: Call, why: str, may: Array) -> Underspecified | None:
    """may [rows, classes]: the labels that a row may have beside that of the reference."""
    return open_labels(c, why, _scores(c)[0], may, INTS)


def _linear_machines(c: Call) -> list[Array]:
    """Scores of linear machines by the names of the attributes: the coefficients of a class or of a feature side by
    side; rho added, or, as LIBSVM has it, subtracted."""
    x, w, rho = _linear(c)
    flat, how = floats(c, "coefficients"), c.attr("post_transform")
    with np.errstate(all="ignore"):
        products = (x @ w.T, x @ flat.reshape(w.shape[::-1]))
    return [s.post(z + r, how) for z in products for r in (rho, -rho)]


def _draw(d: Draw) -> dict[str, Any]:
    return _machine(d, d.int(0, 9))


def _machine(d: Draw, how: int) -> dict[str, Any]:
    """how: 0 without support vectors, 1 without probabilities."""
    f, k = min(width(d), 17), d.int(2, 4)
    if how != 2 and d.chance(16):  # no pair
        k = 1
        if how and d.chance(4):  # nor an element of any vector: no list holds as many
            return {"X": T((0, 0), values=[]), **alike(d, 1, INTS), "vectors_per_class": [2**31 - 1]}
    pairs = k * (k - 1) // 2
    out: dict[str, Any] = {"X": points(d, d.types["T1"], f, -4, 4), **alike(d, k, INTS)}
    if d.bool():
        out["post_transform"] = d.pick(POSTS)
    if how == 0:  # a linear machine a class
        none: dict[str, Any] = {"vectors_per_class": []} if d.chance(4) else {}
        return out | none | {"coefficients": quarters(d, k * f), "rho": [d.int(-8, 8) / 8]}
    counts = [d.int(1, 3) for _ in range(k)]
    if d.chance(12):  # a class without any, or with many
        counts[d.int(0, k - 1)] = d.pick((0, 0, 9, 17))
    out |= {
        "coefficients": quarters(d, (k - 1) * sum(counts)),
        "support_vectors": quarters(d, sum(counts) * f, -4, 4),
        "vectors_per_class": counts,
        "rho": [d.int(-8, 8) / 8 for _ in range(pairs)],
        "kernel_params": [d.pick((0.25, 0.5)), d.pick((0.0, 1.0)), float(d.int(1, 3))],
    }
    kind = d.pick(("LINEAR", "POLY", "RBF", "SIGMOID"))
    if kind != "LINEAR" or d.bool():
        out["kernel_type"] = kind
    if kind == "LINEAR" and d.bool():
        del out["kernel_params"]
    if how > 1 and pairs:
        out |= {"prob_a": [-d.int(1, 12) / 8 for _ in range(pairs)], "prob_b": quarters(d, pairs, -2, 2)}
    return out


def _both_labels(d: Draw) -> dict[str, Any]:
    out = _machine(d, 2)
    k = len(out.get("classlabels_strings") or out[INTS])
    return out | {"classlabels_strings": ["cat", "dog", "", "é"][:k], INTS: list(range(k))}


def _fewer_b(d: Draw) -> dict[str, Any]:
    out = _machine(d, 2)
    return out | {"prob_b": [*out["prob_b"], 0.0]}


op(
    "SVMClassifier",
    Evaluation(
        _classify,
        (exact(), bounded(_bound, "the system of the coupled probabilities, solved as far as LIBSVM's rule to stop")),
        "ONNX ai.onnx.ml SVMClassifier-1; LIBSVM (Chang, Lin 2011) sections 7 and 8",
    ),
    Spelling(out_dtype=classified(INTS)),
    Sampling(_draw, outs=2),
    Checks(ambiguous=_open, breaks={"one-of-labels": _both_labels, "prob-sizes-agree": _fewer_b}),
    domain=ML,
)
