"""Linear models."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType
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
    other_shape,
    underspecified,
)
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, Array, one_of, quarters, require, rows, single
from suites.onnx.ops.ml.scores import (
    NO_GREATEST,
    classified,
    far,
    floats,
    greatest,
    leaves,
    linear_blur,
    linear_error,
    linear_size,
    open_labels,
    open_scores,
    pick_labels,
    posted,
    rows_of,
    transformed,
)
from suites.semantics import tabular as s


def _weights(c: Call, count: int | None = None) -> tuple[Array, Array, Array]:
    """Rows, weights [count, features] and intercepts.  count: of targets or classes; None: as the weights show."""
    x, w = rows_of(c), floats(c, "coefficients")
    features = x.shape[1]
    return x, w.reshape(-1 if count is None else count, features), np.array(c.attr("intercepts") or [0.0])


def _scores(c: Call, count: int | None = None) -> Array:
    x, w, b = _weights(c, count)
    with np.errstate(all="ignore"):
        return x @ w.T + b


def _linear_bound(ctx: Context) -> Array:
    """A dot product, and a transform whose slope is at most 1 in each score."""
    c, u = ctx.call, ctx.acc_u
    count = _count(c)
    error = linear_error(*_weights(c, count), u)
    return posted(_scores(c, count), error, c.attr("post_transform"), u) + 16 * u * np.abs(ctx.wide) + ctx.ulp


def _count(c: Call) -> int | None:
    """Of targets; of classes where features do not tell it."""
    if "targets" in c.version.schema.attrs:
        return int(c.attr("targets"))
    return None if c.inputs["X"].shape[-1] else len(c.attr("classlabels_strings") or c.attr("classlabels_ints"))


def _open(c: Call, result: int) -> Underspecified | None:
    """Of the scores."""
    x, w, b = _weights(c, _count(c))
    free = leaves(linear_size(x, w, b)) | far(x)
    return open_scores(_scores(c, _count(c)), free, c.attr("post_transform"), result)


def _regress(c: Call) -> Array:
    """Raises RuleError "coefficients-per-target", "intercept-per-target"."""
    n, count = c.attr("targets"), len(c.attr("coefficients") or ())
    features = c.inputs["X"].shape[-1]
    require(count == n * features, "coefficients-per-target", f"{count} for {n} targets, {features} features")
    free = c.attr("intercepts")
    require(not free or len(free) == n, "intercept-per-target", f"{len(free or ())} for {n} targets")
    return s.post(_scores(c, n), c.attr("post_transform"))


def _regress_open(c: Call) -> str | None:
    """Of a vector the text does not say whether its scores are a row."""
    if c.inputs["X"].ndim == 2:
        return _open(c, 0)
    why = "LinearRegressor: is the result of a vector a row or a vector?"
    z, how, u = _scores(c, c.attr("targets")), c.attr("post_transform"), 2.0**-24
    within = posted(z, linear_error(*_weights(c, c.attr("targets")), u), how, u) + 32 * u
    vector = s.post(z, how).reshape(-1).astype(np.float32)
    return gathered(_open(c, 0), other_shape(why, 0, vector, within=within.reshape(-1)))


def points(d: Draw, dtype: DType, f: int, lo: int = -12, hi: int = 12, vector: bool = True) -> T:
    """Rows of f features, none, some or many; one of them as a vector, where that is stated: "[C] or [N,C]"; now and
    then a number that is far below the others, or -0."""
    n = 0 if d.empty else d.pick((17, 129, 257)) if d.chance(32) else d.int(1, 4)
    t = rows(d, dtype, n, f, lo, hi)
    if dtype.kind == "f" and t.values and d.chance(8):
        t.values[d.int(0, len(t.values) - 1)] = d.pick((-0.0, 1e-40 if dtype.bits > 16 else 6e-8))
    return T((f,), values=t.values) if vector and n == 1 and d.chance(3) else t


def width(d: Draw) -> int:
    """Features; now and then none."""
    return int(d.pick((17, 130, 257))) if d.chance(24) else 0 if d.chance(24) else d.int(1, 5)


def _draw_linear(d: Draw) -> dict:
    f, k = width(d), 0 if d.chance(24) else d.int(1, 3)
    out: dict[str, Any] = {
        "X": points(d, d.dtype("X"), f, vector=not d.breaking),
        "coefficients": quarters(d, k * f),
        **transformed(d),
    }
    if k != 1 or d.bool():
        out["targets"] = k
    if d.bool():
        out["intercepts"] = quarters(d, k)
    return out


_LINEAR = "2 gamma(F + 8) (|x| |w| + |b|), the largest of a row through a softmax, + 16 u |y| + ulp"

op(
    "LinearRegressor",
    Evaluation(
        _regress,
        bounded(_linear_bound, _LINEAR),
        "ONNX ai.onnx.ml LinearRegressor-1",
    ),
    Spelling(out_dtype=single),
    Sampling(_draw_linear),
    Checks(ambiguous=_regress_open),
    domain=ML,
)


def classes(d: Draw, k: int, ints: str) -> dict:
    """The labels of k classes, under the attribute names of this op."""
    if d.bool():
        return {"classlabels_strings": ["cat", "dog", "", "é", *(f"class {i}" for i in range(4, k))][:k]}
    some = (4, -1, 0, 10) if k <= 4 and d.bool() else (1, 2**31 - 1, -(2**31), 10, *range(20, 20 + k))
    return {ints: d.shuffle(some)[:k]}


def alike(d: Draw, k: int, ints: str) -> dict:
    """The same; now and then one label for all."""
    return {ints: [d.pick((4, -1, 2**31 - 1))] * k} if d.chance(24) else classes(d, k, ints)


def _classify(c: Call) -> tuple[Array, Array]:
    """Raises RuleError "one-of-labels"."""
    require(c.attr(one_of(c, "one-of-labels", "classlabels_ints", "classlabels_strings")), "one-of-labels", "no label")
    z = _scores(c, _count(c))
    return pick_labels(c, z, "classlabels_ints"), s.post(z, c.attr("post_transform"))


def _classify_open(c: Call) -> str | None:
    """Which label wins is the same in both ways of multi_class, and a softmax that post_transform names is the
    multinomial one."""
    x, w, b = _weights(c, _count(c))
    z, blur = _scores(c, _count(c)), linear_blur(x, w, b)
    free = leaves(linear_size(x, w, b)) | far(x)
    unsure = free
    if c.attr("post_transform") == "SOFTMAX" or c.attr("multi_class"):  # of its probabilities none is a number then
        unsure = free | (z == np.inf).any(-1, keepdims=True) | (z == -np.inf).all(-1, keepdims=True)
    parts = [
        _open(c, 1),
        open_labels(c, NO_GREATEST, z, greatest(z, blur, unsure), "classlabels_ints"),
    ]
    if c.attr("multi_class") and c.attr("post_transform") != "SOFTMAX":
        ours, other = s.post(z, c.attr("post_transform")), s.post(z, "SOFTMAX")
        why = "LinearClassifier: do the scores of multi_class 1 go through a softmax that post_transform does not name?"
        within = posted(z, linear_error(x, w, b, 2.0**-24), "SOFTMAX", 2.0**-24) + 2.0**-24
        parts += [
            underspecified(why, (None, ours != other), other, within=within),
            open_scores(z, free, "SOFTMAX", 1),
        ]
    return gathered(*parts)


def _draw_classify(d: Draw) -> dict:
    """The intercepts keep the scores of a row apart: no ties."""
    f, k = width(d), 1 if d.chance(24) else d.int(2, 4)
    how = {"multi_class": d.int(0, 1)} if d.bool() else {}
    return {
        **how,
        "X": points(d, d.types["T1"], f),
        "coefficients": quarters(d, k * f),
        **transformed(d),
        "intercepts": [v + i / 128 for i, v in enumerate(quarters(d, k))],
        **alike(d, k, "classlabels_ints"),
    }


def _both_labels(d: Draw) -> dict:
    return {"classlabels_strings": ["cat", "dog", "", "é"], "classlabels_ints": [0, 1, 2, 3], **_draw_classify(d)}


op(
    "LinearClassifier",
    Evaluation(
        _classify,
        (exact(), bounded(_linear_bound, _LINEAR)),
        "ONNX ai.onnx.ml LinearClassifier-1: multi_class, OvR or multinomial; post_transform of the scores",
    ),
    Spelling(out_dtype=classified("classlabels_ints")),
    Sampling(_draw_classify, outs=2),
    Checks(ambiguous=_classify_open, breaks={"one-of-labels": _both_labels}),
    domain=ML,
)
