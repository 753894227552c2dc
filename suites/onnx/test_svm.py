"""SVMClassifier against loops over the published formulas: pairs, votes, Platt's curve, coupling by iteration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.core.errors import RuleError
from harness.declare import Call
from harness.declare.invalid import draw_invalid
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import dialect, notation
from suites.semantics import coupling

VERSION = dialect.versions["onnx/SVMClassifier/1"]


def drawn(n: int) -> Iterator[tuple[Call, Any]]:
    for i in range(n):
        inst = VERSION.draw(Prng(case_seed(23, VERSION.key, i)))
        arrays = arrays_of(inst)
        yield dialect.call_of(inst, arrays), inst


def kernel(c: Call, x: list[float], v: list[float]) -> float:
    g, c0, degree = c.attr("kernel_params") or (0.0, 0.0, 0.0)
    dot = math.fsum(a * b for a, b in zip(x, v))
    kind = c.attr("kernel_type")
    if kind == "RBF":
        return math.exp(-g * math.fsum((a - b) ** 2 for a, b in zip(x, v)))
    return {"LINEAR": dot, "POLY": (g * dot + c0) ** degree, "SIGMOID": math.tanh(g * dot + c0)}[kind]


def machines(c: Call, x: list[float]) -> Iterator[tuple[int, int, float]]:
    """(i, j, value) of every pair for one row."""
    counts, w, v = c.attr("vectors_per_class"), c.attr("coefficients"), c.attr("support_vectors")
    total, features = sum(counts), len(x)
    owner = [k for k, n in enumerate(counts) for _ in range(n)]
    k = [kernel(c, x, v[s * features : (s + 1) * features]) for s in range(total)]
    pair = 0
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            value = c.attr("rho")[pair]
            for s in range(total):
                if owner[s] == i:
                    value += w[(j - 1) * total + s] * k[s]
                elif owner[s] == j:
                    value += w[i * total + s] * k[s]
            yield i, j, value
            pair += 1


def probabilities(c: Call, x: list[float]) -> list[float]:
    """Algorithm 2 of Wu, Lin and Weng, until nothing moves any more."""
    n = len(c.attr("vectors_per_class"))
    r = [[0.0] * n for _ in range(n)]
    for pair, (i, j, value) in enumerate(machines(c, x)):
        r[i][j] = 1 / (1 + math.exp(c.attr("prob_a")[pair] * value + c.attr("prob_b")[pair]))
        r[j][i] = 1 - r[i][j]
    q = [[-r[j][t] * r[t][j] for j in range(n)] for t in range(n)]
    for t in range(n):
        q[t][t] = math.fsum(r[s][t] ** 2 for s in range(n) if s != t)
    p = [1 / n] * n
    for _ in range(20000):
        before = list(p)
        for t in range(n):
            qp = [math.fsum(a * b for a, b in zip(row, p)) for row in q]
            pqp = math.fsum(a * b for a, b in zip(p, qp))
            p[t] = (pqp - (qp[t] - q[t][t] * p[t])) / q[t][t]
            whole = math.fsum(p)
            p = [v / whole for v in p]
        if max(abs(a - b) for a, b in zip(p, before)) < 1e-15:
            break
    return p


def transformed(z: list[float], how: str) -> list[float]:
    if how == "SOFTMAX":
        e = [math.exp(v) for v in z]
        return [v / math.fsum(e) for v in e]
    return [1 / (1 + math.exp(-v)) for v in z] if how == "LOGISTIC" else z


def test_probabilities_and_labels_follow_the_published_formulas() -> None:
    judged = 0
    for c, inst in drawn(250):
        if not c.attr("prob_a"):
            continue
        labels, z = (e.value for e in VERSION.evaluate(c))
        names = c.attr("classlabels_strings") or c.attr("classlabels_ints")
        for n, row in enumerate(np.atleast_2d(c.inputs["X"].astype(float)).tolist()):
            p = probabilities(c, row)
            want = transformed(p, c.attr("post_transform"))
            np.testing.assert_allclose(z[n], want, rtol=1e-5, atol=1e-6, err_msg=notation.text(inst))
            won = [0] * len(p)
            for i, j, value in machines(c, row):
                won[i if value > 0 else j] += 1
            if VERSION.entry.checks.ambiguous(c) is None:
                assert labels[n] == names[p.index(max(p))] == names[won.index(max(won))]
                judged += 1
    assert judged > 100


def test_without_probabilities_the_values_of_all_pairs() -> None:
    seen = 0
    for c, inst in drawn(250):
        if c.attr("prob_a") or not c.attr("vectors_per_class"):
            continue
        _, z = (e.value for e in VERSION.evaluate(c))
        for n, row in enumerate(np.atleast_2d(c.inputs["X"].astype(float)).tolist()):
            want = transformed([v for _, _, v in machines(c, row)], c.attr("post_transform"))
            np.testing.assert_allclose(z[n], want, rtol=1e-5, atol=1e-6, err_msg=notation.text(inst))
        seen += 1
    assert seen > 10


def test_the_bound_holds_an_iteration_that_stops_early_and_no_more() -> None:
    """LIBSVM's rule: every entry of Qp within 0.005 / k of p'Qp.  Points that just obey it stay within the bound; three
    times as far in the direction that it allows most is outside somewhere."""
    rng = np.random.default_rng(5)
    outside = 0
    for k in (2, 3, 4):
        r = rng.uniform(0.1, 0.9, (50, k * (k - 1) // 2))
        system = coupling._system(coupling._matrix(r, k))
        exact, bound = coupling.coupled(r, k), coupling.coupling_bound(r, np.zeros_like(r), k, 2.0**-24)
        inverse = np.linalg.inv(system)[:, :k, :k]
        rest = np.sign(inverse[:, 0]) * coupling.STOP / k  # the worst residual for the first class
        for far in (1.0, 3.0):
            p = exact + far * np.einsum("nij,nj->ni", inverse, rest)
            np.testing.assert_allclose(p.sum(-1), 1)
            over = np.abs(p - exact) > bound
            assert far > 1 or not over.any()
            outside += over.any(-1).sum() if far > 1 else 0
    assert outside == 150


@pytest.mark.parametrize("rule", ["one-of-labels", "prob-sizes-agree"])
def test_broken_rules_are_refused(rule: str) -> None:
    for i in range(10):
        inst = draw_invalid(VERSION, rule, Prng(case_seed(29, VERSION.key, i)))
        assert inst is not None
        with pytest.raises(RuleError, match=rule):
            VERSION.evaluate(dialect.call_of(inst, arrays_of(inst)))
