"""Features taken, scaled, filled in and joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, of, smallest_normal
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
from suites.onnx import op
from suites.onnx.ops.ml.common import ML, Array, changed, one_of, quarters, require, rows, shaped, single
from suites.onnx.ops.ml.scores import far, leaves, sizes
from suites.semantics import indexing

MANY = 17  # more than a drawn X has features

op("ArrayFeatureExtractor", indexing.array_feature, domain=ML, x="X", indices="Y")

op(
    "Binarizer",
    Evaluation(
        lambda c: (c.inputs["X"] > c.attr("threshold")).astype(c.inputs["X"].dtype),
        exact(),
        "ONNX ai.onnx.ml Binarizer-1",
    ),
    Sampling(
        lambda d: {
            "X": shaped(d, d.types["T"], d.shape(0, 4), odd=True),
            **({"threshold": d.int(-4, 4) / 4} if d.bool() else {}),
        }
    ),
    domain=ML,
)


def _longer(values: list[Any]) -> list[Any]:
    return [*values, values[-1]]


def _many(values: list[Any]) -> list[Any]:
    return [values[0]] * MANY


def _scale(c: Call) -> Array:
    """Raises RuleError "offset-per-scale", "one-or-per-feature"."""
    x, offset, scale = c.inputs["X"], c.attr("offset") or (), c.attr("scale") or ()
    require(len(offset) == len(scale), "offset-per-scale", f"{len(offset)} offsets, {len(scale)} scales")
    _per_feature(x, len(scale))
    require(len(scale) == 1 or x.ndim <= 2, "one-or-per-feature", f"{len(scale)} values for {x.ndim} axes, not [N, F]")
    return (c.inputs["X"].astype(np.float64) - np.array(c.attr("offset"))) * np.array(c.attr("scale"))


def _per_feature(x: Array, n: int) -> None:
    """One number for all features, or one for each."""
    features = x.shape[-1] if x.ndim else 1
    require(n in (1, features), "one-or-per-feature", f"{n} values for {features} features")


def _scale_bound(ctx: Context) -> Array:
    c = ctx.call
    x, off = np.abs(c.inputs["X"].astype(np.float64)), np.abs(c.attr("offset"))
    return 3 * ctx.acc_u * (x + off) * np.abs(c.attr("scale")) + ctx.ulp


def _draw_scale(d: Draw) -> dict:
    """ "length 1, in which case it applies to all features, regardless of dimension count"."""
    n, f = d.int(1, 4), d.int(1, 5)
    k = d.pick((1, f))
    return {
        "X": shaped(d, d.types["T"], d.shape(1, 4, lo=1)) if k == 1 and d.bool() else rows(d, d.types["T"], n, f),
        "offset": [d.int(-9, 9) / 3 for _ in range(k)],
        "scale": [d.int(-9, 9) / 5 for _ in range(k)],
    }


op(
    "Scaler",
    Evaluation(_scale, bounded(_scale_bound, "3 u (|x| + |offset|) |scale| + ulp"), "ONNX ai.onnx.ml Scaler-1"),
    Spelling(out_dtype=single),
    Sampling(_draw_scale),
    Checks(
        breaks={
            "offset-per-scale": changed(_draw_scale, _longer, "offset"),
            "one-or-per-feature": changed(_draw_scale, _many, "offset", "scale"),
        }
    ),
    domain=ML,
)


def _normalize(c: Call) -> Array:
    """Raises RuleError "rank-1-or-2"."""
    x = c.inputs["X"].astype(np.float64)
    require(x.ndim in (1, 2), "rank-1-or-2", f"X has rank {x.ndim}")
    return _over(x, _divisor(x, c.attr("norm")), c.attr("norm"))


def _divisor(x: Array, how: str) -> Array:
    with np.errstate(all="ignore"):
        if how == "MAX":
            return np.asarray(x.max(-1, initial=-np.inf, keepdims=True))
        return np.asarray((x if how == "L1" else x * x).sum(-1, keepdims=True))


def _over(x: Array, divisor: Array, how: str) -> Array:
    with np.errstate(all="ignore"):
        y = x / divisor if how != "L2" else np.sqrt(x * x / divisor)
    return np.where(divisor == 0, x, y)


def _normal_bound(ctx: Context) -> Array:
    """16 u |y|, for L1 as often as the elements of a row together are larger than their sum, and what squares, or
    elements of f64, may lose by underflow, + ulp"""
    x, how = np.asarray(ctx.call.inputs["X"], np.float64), ctx.call.attr("norm")
    with np.errstate(all="ignore"):
        loss = np.abs(x).sum(-1, keepdims=True) / np.abs(x.sum(-1, keepdims=True))
        if how == "L2":
            lost = np.sqrt(_TINY / np.minimum((x * x).sum(-1, keepdims=True), 1.0))
        else:  # an element of f64 may be a subnormal of f32
            lost = 2.0**-149 / np.abs(_divisor(x, how)) if ctx.call.inputs["X"].dtype == np.float64 else 0.0
        grown = np.where(np.isfinite(loss), loss, 1.0) if how == "L1" else 1.0
        return np.asarray(16 * ctx.acc_u * np.abs(ctx.wide) * grown + np.where(np.isfinite(lost), lost, 0.0) + ctx.ulp)


_TINY = smallest_normal(F32)


def _normal_open(c: Call) -> str | None:
    """Rows whose greatest element is asked for beside a NaN; and divisors that f32, the type of the result, does not
    hold, or of which it may lose all digits: in which type they are computed, and in which order, is not stated."""
    x, how = c.inputs["X"].astype(np.float64), c.attr("norm")
    size, single_ = sizes(x), c.inputs["X"].dtype != np.float64
    with np.errstate(all="ignore"):
        terms = size * size if how == "L2" else size
        whole, divisor = terms.sum(-1, keepdims=True), sizes(_divisor(np.where(np.isfinite(x), x, 0.0), how))
        lost = far(size) | (leaves(whole) if how != "MAX" else False)
        least = _TINY * 2**24 if how == "L2" else 0.0 if single_ else _TINY
        lost = lost | ((divisor < least) & ((size.any(-1, keepdims=True)) if how == "L2" else divisor > 0))
        if how == "L1":
            exact_ = (size * 4 % 1 == 0).all(-1, keepdims=True) & (whole * 4 < 2**24)
            cancels = whole * (x.shape[-1] + 4) * 2.0**-22 > divisor
            lost = lost | (~exact_ & cancels & np.isfinite(x).all(-1, keepdims=True))
    beside = np.isnan(x).any(-1, keepdims=True) & ~np.isnan(x) & (how == "MAX")
    rest = _over(x, np.fmax.reduce(x, -1, keepdims=True, initial=-np.inf), how)
    near = 2.0**-20 * np.abs(rest) + 2.0**-149
    return gathered(
        underspecified("Normalizer: the greatest of elements of which one is NaN", beside, rest, within=near),
        underspecified("Normalizer: a divisor that leaves f32, or cancels, on its way", np.broadcast_to(lost, x.shape)),
    )


def _draw_normalize(d: Draw) -> dict:
    """Rows of either sign, also for L1 and L2, whose formulas are printed without magnitudes and signs; rows of nothing
    but zeros, and of L1 some that add up to 0: "if the divisor is zero, Y == X"."""
    f, how = d.int(1, 6), d.pick(("MAX", "L1", "L2"))
    t = rows(d, d.types["T"], d.int(1, 4), f, 0 if d.chance(4) else -12)
    if d.chance(4):
        t.values[:f] = [0] * f
    elif f > 1 and d.chance(4):
        t.values[:f] = [t.values[0], -t.values[0], *[0] * (f - 2)]
    if d.chance(3):
        t = T((f,), values=t.values[:f])
    return {"X": t, **({"norm": how} if how != "MAX" or d.int(0, 3) else {})}


op(
    "Normalizer",
    Evaluation(
        _normalize,
        bounded(_normal_bound, "16 u |y|, more where the terms of a sum cancel, + ulp"),
        "ONNX ai.onnx.ml Normalizer-1",
    ),
    Spelling(out_dtype=single),
    Sampling(_draw_normalize),
    Checks(ambiguous=_normal_open, breaks={"rank-1-or-2": lambda d: {"X": T((2, 1, 2), values=[1, 2, 3, 4])}}),
    domain=ML,
)


def _impute(c: Call) -> Array:
    """Raises RuleError "one-of-imputed", "one-or-per-feature"."""
    x = c.inputs["X"]
    one_of(c, "one-of-imputed", "imputed_value_floats", "imputed_value_int64s")
    if of(x).kind == "f":
        old, new = c.attr("replaced_value_float"), c.attr("imputed_value_floats")
    else:
        old, new = c.attr("replaced_value_int64"), c.attr("imputed_value_int64s")
    require(new is not None, "one-of-imputed", f"the values are not of the type of X, {of(x)}")
    _per_feature(x, len(new))
    if not x.size:
        return x
    hit = np.isnan(x) if old != old else x == old
    return np.where(hit, np.array(new, x.dtype), x)


def _draw_impute(d: Draw) -> dict:
    """ "the shape [*,F]": of any rank; "such as -1, 0, NaN, or some extreme value"."""
    f, dtype = 0 if d.chance(24) else d.int(1, 4), d.types["T"]
    shape = () if d.chance(24) else (*d.shape(0, 3, lo=1), f)
    k, n = d.pick((1, f)) if shape else 1, int(np.prod(shape))
    if dtype.kind != "f":
        ends = [(1 << 63) - 1, -1 << 63, (1 << 53) + 1] if dtype.bits == 64 else [(1 << 31) - 1, -1 << 31]
        pool = [-1, 0, 3, 7, *(ends if d.chance(3) else ())]
        old, new = d.pick(pool), [d.pick(ends) if d.chance(6) else d.int(-5, 5) for _ in range(k)]
        out = {"X": T(shape, values=[d.pick(pool) for _ in range(n)]), "imputed_value_int64s": new}
        return out if old == 0 and d.bool() else {**out, "replaced_value_int64": old}
    reals = [-1.0, 0.0, 2.5, float("nan"), *((float("inf"), -float("inf"), -0.0) if d.chance(3) else ())]
    real = d.pick(reals)
    out = {"X": T(shape, values=[d.pick(reals) for _ in range(n)]), "imputed_value_floats": quarters(d, k)}
    return out if real == 0 and d.bool() else {**out, "replaced_value_float": real}


op(
    "Imputer",
    Evaluation(_impute, exact(), "ONNX ai.onnx.ml Imputer-1"),
    Sampling(_draw_impute),
    Checks(
        breaks={
            "one-of-imputed": lambda d: {**_draw_impute(d), "imputed_value_floats": [1.0], "imputed_value_int64s": [1]}
        }
    ),
    domain=ML,
)


def _join(c: Call) -> Array:
    """Raises RuleError "rank-1-or-2", "rows-agree", "inputdimensions-agrees"."""
    xs = c.inputs["X"]
    require({x.ndim for x in xs} <= {1, 2}, "rank-1-or-2", f"ranks {[x.ndim for x in xs]}")
    xs = [x.reshape(1, -1) if x.ndim == 1 else x for x in xs]
    require(len({len(x) for x in xs}) == 1, "rows-agree", f"{[len(x) for x in xs]} rows")
    said, shown = c.attr("inputdimensions"), [x.shape[1] for x in xs]
    require(said is None or list(said) == shown, "inputdimensions-agrees", f"{said}, but the operands show {shown}")
    return np.concatenate(xs, 1).astype(np.float64)


def _draw_join(d: Draw) -> dict:
    n = d.pick((1, 1, 2, 3))
    widths = [d.int(0 if d.empty else 1, 4) for _ in range(d.int(1, 4))]
    if d.chance(32) and not d.breaking:  # columns of no row
        n, widths = 0, [d.pick((0, 2**31 - 1, 3)), *widths]
    out: dict[str, Any] = {"X": [T((w,) if n == 1 and d.bool() else (n, w)) for w in widths]}
    return out if d.chance(4) and not d.breaking else {**out, "inputdimensions": widths}


def _uneven(d: Draw) -> dict:
    n, widths = d.int(1, 3), [d.int(1, 4), d.int(1, 4)]
    return {"X": [T((n, widths[0])), T((n + 1, widths[1]))], "inputdimensions": widths}


op(
    "FeatureVectorizer",
    Evaluation(_join, exact(), "ONNX ai.onnx.ml FeatureVectorizer-1"),
    Spelling(out_dtype=single),
    Sampling(_draw_join),
    Checks(breaks={"rows-agree": _uneven, "inputdimensions-agrees": changed(_draw_join, _longer, "inputdimensions")}),
    domain=ML,
)
