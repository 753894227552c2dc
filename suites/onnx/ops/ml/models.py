"""Linear models and support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I64, STR, DType
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Sampling,
    Spelling,
    T,
    bounded,
    exact,
    gathered,
    underspecified,
)
from harness.tolerance import gamma
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, Array, objects, one_of, quarters, require, rows, single
from suites.semantics import tabular as s

POSTS = ("NONE", "SOFTMAX", "LOGISTIC")


def transformed(d: Draw) -> dict:
    """What becomes of the scores; half of those that stay as they are do not say so."""
    how = d.pick(POSTS)
    return {} if how == "NONE" and d.bool() else {"post_transform": how}


def _weights(c: Call) -> tuple[Array, Array, Array]:
    x = c.inputs["X"].astype(np.float64)
    x = x.reshape(1, -1) if x.ndim == 1 else x
    w = np.array(c.attr("coefficients")).reshape(-1, x.shape[-1])
    return x, w, np.array(c.attr("intercepts") or [0.0])


def _linear_bound(ctx: Context) -> Array:
    """A dot product, and a transform whose slope is at most 1 in each score."""
    return _score_error(ctx.call, ctx.wide, ctx.acc_u) + ctx.ulp


def _score_error(c: Call, y: Array, u: float) -> Array:
    x, w, b = _weights(c)
    scale = np.abs(x) @ np.abs(w).T + np.abs(b)
    return 2 * gamma(x.shape[1] + 8, u) * scale.max(-1, initial=0.0, keepdims=True) + 16 * u * np.abs(y)


def _regress(c: Call) -> Array:
    """Raises RuleError "coefficients-per-target", "intercept-per-target"."""
    n, features, count = c.attr("targets"), c.inputs["X"].shape[-1], len(c.attr("coefficients") or ())
    require(count == n * features, "coefficients-per-target", f"{count} for {n} targets, {features} features")
    free = c.attr("intercepts")
    require(not free or len(free) == n, "intercept-per-target", f"{len(free or ())} for {n} targets")
    x, w, b = _weights(c)
    return s.post(x @ w.T + b, c.attr("post_transform"))


def points(d: Draw, dtype: DType, f: int, lo: int = -12, hi: int = 12, vector: bool = True) -> T:
    """Rows of f features, none, some or many; one of them as a vector, where that is stated: "[C] or [N,C]"; now and
    then a number that is far below the others, or -0."""
    n = 0 if d.empty else d.pick((17, 129, 257)) if d.chance(32) else d.int(1, 4)
    t = rows(d, dtype, n, f, lo, hi)
    if dtype.kind == "f" and t.values and d.chance(8):
        t.values[d.int(0, len(t.values) - 1)] = d.pick((-0.0, 1e-40 if dtype.bits > 16 else 6e-8))
    return T((f,), values=t.values) if vector and n == 1 and d.chance(3) else t


def width(d: Draw) -> int:
    return int(d.pick((17, 130, 257))) if d.chance(24) else d.int(1, 5)


def _draw_linear(d: Draw) -> dict:
    f, k = width(d), d.int(1, 3)
    out: dict[str, Any] = {
        "X": points(d, d.dtype("X"), f, vector=False),
        "coefficients": quarters(d, k * f),
        **transformed(d),
    }
    if k > 1 or d.bool():
        out["targets"] = k
    if d.bool():
        out["intercepts"] = quarters(d, k)
    return out


op(
    "LinearRegressor",
    Evaluation(
        _regress,
        bounded(_linear_bound, "2 gamma(F + 8) max(|x| |w| + |b|) + 16 u |y| + ulp"),
        "ONNX ai.onnx.ml LinearRegressor-1",
    ),
    Spelling(out_dtype=single),
    Sampling(_draw_linear),
    domain=ML,
)


def classes(d: Draw, k: int, ints: str) -> dict:
    """The labels of k classes, under the attribute names of this op."""
    if d.bool():
        return {"classlabels_strings": ["cat", "dog", "", "é", *(f"class {i}" for i in range(4, k))][:k]}
    some = (4, -1, 0, 10) if k <= 4 and d.bool() else (1, 2**31 - 1, -(2**31), 10, *range(20, 20 + k))
    return {ints: d.shuffle(some)[:k]}


def pick_labels(c: Call, z: Array, ints: str) -> Array:
    """The label of the greatest score of each row."""
    names = c.attr("classlabels_strings")
    best = z.argmax(-1).tolist()
    return (
        objects([names[i] for i in best], (len(best),))
        if names
        else np.array([c.attr(ints)[i] for i in best], np.int64)
    )


def classified(ints: str) -> Any:
    """Types of the two outputs of a classifier."""
    return lambda c, i: F32 if i else STR if c.attr("classlabels_strings") else I64


def _classify(c: Call) -> tuple[Array, Array]:
    """Raises RuleError "one-of-labels"."""
    one_of(c, "one-of-labels", "classlabels_ints", "classlabels_strings")
    x, w, b = _weights(c)
    z = x @ w.T + b
    return pick_labels(c, z, "classlabels_ints"), s.post(z, c.attr("post_transform"))


def _multinomial(c: Call) -> str | None:
    """Which label wins is the same in both ways, and a softmax that post_transform names is the multinomial one."""
    if not c.attr("multi_class") or c.attr("post_transform") == "SOFTMAX":
        return None
    x, w, b = _weights(c)
    z = x @ w.T + b
    ours, other = s.post(z, c.attr("post_transform")), s.post(z, "SOFTMAX")
    why = "LinearClassifier: do the scores of multi_class 1 go through a softmax that post_transform does not name?"
    return underspecified(why, (None, ours != other), other, within=_score_error(c, other, 2.0**-24) + 2.0**-24)


def _draw_classify(d: Draw) -> dict:
    """The intercepts keep the scores of a row apart: no ties."""
    f, k = width(d), d.int(2, 4)
    how = {"multi_class": d.int(0, 1)} if d.bool() else {}
    return {
        **how,
        "X": points(d, d.types["T1"], f),
        "coefficients": quarters(d, k * f),
        **transformed(d),
        "intercepts": [v + i / 128 for i, v in enumerate(quarters(d, k))],
        **classes(d, k, "classlabels_ints"),
    }


def _both_labels(d: Draw) -> dict:
    return {"classlabels_strings": ["cat", "dog", "", "é"], "classlabels_ints": [0, 1, 2, 3], **_draw_classify(d)}


op(
    "LinearClassifier",
    Evaluation(
        _classify,
        (exact(), bounded(_linear_bound, "2 gamma(F + 8) max(|x| |w| + |b|) + 16 u |y| + ulp")),
        "ONNX ai.onnx.ml LinearClassifier-1: multi_class, OvR or multinomial; post_transform of the scores",
    ),
    Spelling(out_dtype=classified("classlabels_ints")),
    Sampling(_draw_classify, outs=2),
    Checks(ambiguous=_multinomial, breaks={"one-of-labels": _both_labels}),
    domain=ML,
)


def _svm_parts(c: Call) -> tuple[Array, Array, Array, float]:
    """Raises RuleError "sizes-fit"."""
    x = c.inputs["X"].astype(np.float64)
    x = x.reshape(1, -1) if x.ndim == 1 else x
    n, given = c.attr("n_supports"), c.attr("support_vectors") or ()
    w = np.array(c.attr("coefficients") or ())
    require(n * x.shape[-1] == len(given) > 0, "sizes-fit", f"{len(given)} numbers for {n} support vectors")
    require(len(w) == n, "sizes-fit", f"{len(w)} coefficients for {n} support vectors")
    sv = np.array(c.attr("support_vectors")).reshape(n, -1)
    g, c0, deg = c.attr("kernel_params") or (0.0, 0.0, 0.0)
    return s.kernel(x, sv, c.attr("kernel_type"), g, c0, deg), w, x, (c.attr("rho") or [0.0])[0]


def _svm(c: Call) -> Array:
    """The decision function, and of a one-class machine its sign: +1 for what is like the training data, else -1.

    Source: SVMRegressor-1, "one-class SVM anomaly detection"; Schoelkopf et al., Estimating the support of a
    high-dimensional distribution, equation 3.10: f(x) = sgn(sum alpha_i k(x_i, x) - rho)."""
    k, w, _, rho = _svm_parts(c)
    y = (k @ w + rho).reshape(-1, 1)
    if c.attr("one_class"):
        y = np.where(y > 0, 1.0, -1.0)
    return s.post(y, c.attr("post_transform"))


def _svm_error(c: Call, u: float) -> Array:
    """Of the decision function."""
    k, w, x, rho = _svm_parts(c)
    scale = (np.abs(k) + 1) @ np.abs(w) + abs(rho)
    return 64 * (x.shape[1] + len(w)) * u * scale.reshape(-1, 1)


def _svm_bound(ctx: Context) -> Array:
    error = 0.0 if ctx.call.attr("one_class") else _svm_error(ctx.call, ctx.acc_u)
    return error + 16 * ctx.acc_u * np.abs(ctx.wide) + ctx.ulp


def _one_class(c: Call) -> str | None:
    """On the border either sign; and the text says neither that the sign is what post_transform is applied to, nor
    that it is left as it is."""
    if not c.attr("one_class"):
        return None
    k, w, _, rho = _svm_parts(c)
    y, how = (k @ w + rho).reshape(-1, 1), c.attr("post_transform")
    signs = np.where(y > 0, 1.0, -1.0)
    border = np.abs(y) <= _svm_error(c, 2.0**-24)
    either = [s.post(v * signs, how) for v in (1, -1, 0)]  # sgn(0) is 0
    return gathered(
        underspecified("SVMRegressor: a one-class machine on its border", border, *either, within=2.0**-20),
        underspecified(
            "SVMRegressor: is the sign of a one-class machine transformed?",
            either[0] != signs,
            signs.astype(np.float32),
        ),
    )


def _draw_svm(d: Draw) -> dict:
    f, k = min(width(d), 17), d.int(1, 4)
    kind = d.pick(("LINEAR", "POLY", "RBF", "SIGMOID"))
    out = {
        "X": points(d, d.types["T"], f, -4, 4),
        "coefficients": quarters(d, k),
        "support_vectors": quarters(d, k * f, -4, 4),
        "n_supports": k,
        "rho": [d.int(-8, 8) / 8],
        **transformed(d),
    }
    if d.bool():
        out["one_class"] = d.int(0, 1)
    if kind != "LINEAR" or d.bool():
        out["kernel_type"] = kind
    if kind != "LINEAR" or d.bool():
        out["kernel_params"] = [d.pick((0.25, 0.5)), d.pick((0.0, 1.0)), float(d.int(1, 3))]
    return out


op(
    "SVMRegressor",
    Evaluation(
        _svm,
        bounded(_svm_bound, "64 (F + supports) u sum (|K| + 1) |w| + ulp; of a one-class machine 16 u |y| + ulp"),
        "ONNX ai.onnx.ml SVMRegressor-1",
    ),
    Spelling(out_dtype=single),
    Sampling(_draw_svm),
    Checks(ambiguous=_one_class),
    domain=ML,
)
