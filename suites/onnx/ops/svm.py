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
from suites.onnx.ops.ml.models import POSTS, classes, classified, pick_labels, points, width
from suites.semantics import coupling
from suites.semantics import tabular as s

Array = np.ndarray
INTS = "classlabels_ints"
LEAST = 1e-7  # LIBSVM keeps the probability of a pair so far from 0 and 1


def _floats(c: Call, name: str) -> Array:
    return np.array(c.attr(name) or (), np.float64)


def _count(c: Call) -> int:
    """Number of classes.  Raises RuleError "one-of-labels", "prob-sizes-agree"."""
    words, ints = c.attr("classlabels_strings"), c.attr(INTS)
    if bool(words) == bool(ints):
        raise RuleError("one-of-labels", "one and only one of the classlabels attributes is defined")
    if len(c.attr("prob_a") or ()) != len(c.attr("prob_b") or ()):
        raise RuleError("prob-sizes-agree", "prob_b has the size of prob_a")
    return len(words or ints)


def _rows(c: Call) -> Array:
    x = c.inputs["X"].astype(np.float64)
    return x.reshape(1, -1) if x.ndim == 1 else x


def _kernel(c: Call) -> tuple[Array, Array, Array]:
    """Rows, support vectors, and the kernel between them.  Raises RuleError "vectors-per-class", "sizes-fit"."""
    x, counts, n = _rows(c), c.attr("vectors_per_class"), _count(c)
    pairs = n * (n - 1) // 2
    require(len(counts) == n, "vectors-per-class", f"{len(counts)} counts for {n} classes")
    sizes = {"support_vectors": sum(counts) * x.shape[1], "coefficients": (n - 1) * sum(counts), "rho": pairs}
    if c.attr("prob_a"):
        sizes["prob_a"] = pairs
    for name, size in sizes.items():
        given = len(c.attr(name) or ())
        require(given == size, "sizes-fit", f"{name}: {given}, not {size}")
    vectors = _floats(c, "support_vectors").reshape(sum(counts), -1)
    g, c0, degree = c.attr("kernel_params") or (0.0, 0.0, 0.0)
    return x, vectors, s.kernel(x, vectors, c.attr("kernel_type"), g, c0, degree)


def _decisions(c: Call, *, size: bool = False) -> Array:
    """The values of all pairs; size: of absolute values, for the bound."""
    _, vectors, k = _kernel(c)
    w, rho = _floats(c, "coefficients").reshape(-1, len(vectors)), _floats(c, "rho")
    if size:
        w, rho, k = np.abs(w), np.abs(rho), np.abs(k) + 1
    return coupling.decisions(k, w, c.attr("vectors_per_class"), rho)


def _scores(c: Call) -> tuple[Array, Array]:
    """(what the label is the greatest of, the scores): probabilities, else the values of all pairs, else, without
    support vectors, those of a linear machine a class."""
    count = _count(c)
    if not c.attr("vectors_per_class"):
        x, given = _rows(c), len(c.attr("coefficients") or ())
        require(given == count * x.shape[1], "sizes-fit", f"coefficients: {given}, not {count * x.shape[1]}")
        require(c.attr("rho"), "sizes-fit", "rho: 0, not 1")
        z = x @ _floats(c, "coefficients").reshape(count, -1).T + _floats(c, "rho")[0]
        return z, z
    f = _decisions(c)
    if not c.attr("prob_a"):
        return coupling.votes(f, count), f
    p = coupling.coupled(coupling.pairwise(f, _floats(c, "prob_a"), _floats(c, "prob_b")), count)
    return p, p


def _classify(c: Call) -> tuple[Array, Array]:
    best, z = _scores(c)
    return pick_labels(c, best, INTS), s.post(z, c.attr("post_transform"))


def _decision_error(c: Call, u: float) -> Array:
    """A kernel of F features, of which each may be off by 64 F u relative to 1 + |K|, then a dot product."""
    x, vectors, _ = _kernel(c)
    return (64 * x.shape[1] * u + gamma(len(vectors) + 2, u)) * _decisions(c, size=True)


def _error(c: Call, u: float) -> Array:
    """Of the scores before the transform."""
    if not c.attr("vectors_per_class"):
        x, rho = np.abs(_rows(c)), np.abs(_floats(c, "rho"))
        return gamma(x.shape[1] + 2, u) * (x @ np.abs(_floats(c, "coefficients").reshape(_count(c), -1)).T + rho[0])
    error = _decision_error(c, u)
    if not c.attr("prob_a"):
        return error
    a, b = _floats(c, "prob_a"), _floats(c, "prob_b")
    f = _decisions(c)
    r = coupling.pairwise(f, a, b)
    slope = np.abs(a) * error + 2 * u * (np.abs(a * f) + np.abs(b))  # of a curve that is nowhere steeper than 1/4
    return coupling.coupling_bound(r, slope / 4 + 8 * u + LEAST, _count(c), u)


def _bound(ctx: Context) -> Array:
    """The error of the scores, through a transform whose slope is at most 1 in each score."""
    error = _error(ctx.call, ctx.acc_u)
    if ctx.call.attr("post_transform") != "NONE":
        error = error.max(-1, keepdims=True)
    return error + 16 * ctx.acc_u * np.abs(ctx.wide) + ctx.ulp


def _open(c: Call) -> str | None:
    """What the text leaves open."""
    count, u, n = _count(c), 2.0**-24, len(_rows(c))
    every = np.ones((n, count), bool)
    if not c.attr("vectors_per_class"):
        why = "SVMClassifier without support vectors: the text has no linear machine"
        within = 2 * float(_error(c, u).max(initial=0.0)) + 2.0**-20
        scores = underspecified(why, of_result(1, every), *_linear_machines(c), within=within)
        return gathered(_labels(c, why, every), scores)
    f = _decisions(c)
    if not c.attr("prob_a"):
        why = "SVMClassifier without probabilities: one score a class is stated, a machine has one a pair"
        if f.shape[1] == count:  # those of the pairs have the shape that is stated
            return gathered(_labels(c, why, every), underspecified(why, of_result(1, every)))
        return gathered(_labels(c, why, every), other_shape(why, 1, shapes=((n, count),)))
    p, won = _scores(c)[0], coupling.votes(f, count)
    close = np.abs(f) <= _decision_error(c, u)
    top = np.sort(p, -1)
    tied = top[:, -1] - top[:, -2] <= 2 * _error(c, u).max(-1)
    most = won == won.max(-1, keepdims=True)
    return gathered(
        _labels(c, "SVMClassifier: a pair that rounding decides", every & close.any(-1, keepdims=True)),
        _labels(c, "SVMClassifier: two classes as probable as each other", every & tied[:, None]),
        _labels(
            c, "SVMClassifier: the label by votes (LIBSVM without probabilities) is not the most probable one", most
        ),
    )


def _labels(c: Call, why: str, may: Array) -> Underspecified | None:
    """may [rows, classes]: the labels that a row may have beside that of the reference."""
    best = _scores(c)[0]
    chosen = np.arange(may.shape[1]) == best.argmax(-1)[:, None]
    readings = [
        pick_labels(c, np.where(may[:, [k]], np.arange(may.shape[1]) == k, chosen), INTS) for k in range(may.shape[1])
    ]
    return underspecified(why, of_result(0, (may & ~chosen).any(-1)), *readings)


def _linear_machines(c: Call) -> list[Array]:
    """Scores of linear machines by the names of the attributes: the coefficients of a class or of a feature side by
    side; rho added, or, as LIBSVM has it, subtracted."""
    x, w, rho = _rows(c), _floats(c, "coefficients"), _floats(c, "rho")[0]
    count, how = _count(c), c.attr("post_transform")
    products = (x @ w.reshape(count, -1).T, x @ w.reshape(-1, count))
    return [s.post(z + r, how) for z in products for r in (rho, -rho)]


def _draw(d: Draw) -> dict[str, Any]:
    return _machine(d, d.int(0, 9))


def _machine(d: Draw, how: int) -> dict[str, Any]:
    """how: 0 without support vectors, 1 without probabilities."""
    f, k = min(width(d), 17), d.int(2, 4)
    pairs = k * (k - 1) // 2
    out: dict[str, Any] = {"X": points(d, d.types["T1"], f, -4, 4), **classes(d, k, INTS)}
    if d.bool():
        out["post_transform"] = d.pick(POSTS)
    if how == 0:  # a linear machine a class
        return out | {"coefficients": quarters(d, k * f), "rho": [d.int(-8, 8) / 8]}
    counts = [d.int(1, 3) for _ in range(k)]
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
    if how > 1:
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
