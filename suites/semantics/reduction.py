"""Reductions over axes, arg-max, running sums and products."""

from __future__ import annotations

from typing import Annotated
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import F64, I32, I64, DType, float_max, int_range, of, smallest_normal, smallest_subnormal
from harness.core.errors import RuleError
from harness.declare import (
    Axes,
    Axis,
    Bool,
    ElementType,
    Flag,
    Ints,
    Num,
    Real_,
    T,
    accumulates,
    beside,
    composed,
    exact,
    first_of,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma, unit
from suites.semantics.bounds import (
    above_one,
    averages,
    axes_of,
    has_nan,
    overflows,
    quiet,
    slope,
    tiny,
    top,
    zero_meets_infinity,
)
from suites.semantics.integers import numbers, whole
from suites.semantics.movement.common import fixed, norm_axes, norm_axis

Array = np.ndarray


def fold(name: str, x: Array, axes: Object, keepdims: bool) -> Array:
    """A native reduction: floats f64, integers and bools in the type of ``x`` with its wrap-around.

    Raises RuleError "axes-in-range", "axes-distinct".
    """
    where = norm_axes(axes, x.ndim)
    if of(x).kind == "f":
        return native.reduce(name, x, where, keepdims)
    return native.reduce(name, x, where, keepdims, out=x.dtype)


def _folded(name: str) -> Object:
    def size(inputs: dict[str, Object], params: dict[str, Object]) -> Array:
        x = np.abs(inputs["x"].astype(np.float64))
        return native.reduce(name, x, norm_axes(params["axes"], x.ndim), bool(params["keepdims"]))

    return overflows(size)


def _underflow_meets_infinity(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A product of floats may pass 0 or inf on its way, and 0 * inf is NaN."""
    x = inputs["x"]
    if of(x).kind != "f":
        return None
    if "axes" in params:
        axes, keep = tuple(norm_axes(params["axes"], x.ndim)), bool(params["keepdims"])
    else:
        axes, keep = (norm_axis(params["axis"], x.ndim),), True
    return zero_meets_infinity(x, lambda bits: np.sum(bits, axis=axes, keepdims=keep))


def _fraction(name: str) -> Object:
    """Integers in, a real result, which f32 arithmetic of so many terms blurs."""

    def check(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
        x = inputs["x"]
        if of(x).kind not in "iu":
            return None
        wide, axes, keep = x.astype(np.float64), norm_axes(params["axes"], x.ndim), bool(params["keepdims"])
        real = native.reduce(name, wide, axes, keep)
        terms = x.size / max(1, real.size)
        with np.errstate(all="ignore"):
            blur = (terms + 8) * 2.0**-24 * (native.reduce("l1", wide, axes, keep) + np.abs(real))
        return beside("integers in, a real result: the op set names no rounding", real, blur, of(x))

    return check


_K = "extent(d,axes)"


def _product_overflows(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Of integers; how far floats may go is in the bound."""
    return _whole_product(inputs, params) if of(inputs["x"]).kind != "f" else None


_whole_product = _folded("prod")


@semantics(
    error=accumulates(_K),
    source="ONNX ReduceSum-1..13; MIL reduce_sum iOS15; TFLite SUM; NN ReduceSum",
    ambiguous=_folded("l1"),
)
def reduce_sum(
    x: Num[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Sum over ``axes`` (None: all, empty: none); 0 over no element; integers wrap."""
    return fold("sum", x, axes, keepdims)


@semantics(
    error=averages(lambda c: c.inputs["x"].size / max(1, c.wide.size)),
    source="ONNX ReduceMean-1..18; MIL reduce_mean iOS15; TFLite MEAN",
    ambiguous=first_of(_fraction("mean"), _folded("l1")),
)
def reduce_mean(
    x: Num[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Sum over ``axes`` divided by the count, NaN over no element; integers divide toward zero."""
    if of(x).kind == "f":
        return fold("mean", x, axes, keepdims)
    total = fold("sum", x, axes, keepdims)
    n = max(1, x.size // max(1, total.size))
    wide = total.astype(np.int64)
    return (np.sign(wide) * (np.abs(wide) // n)).astype(x.dtype)


@semantics(
    error=accumulates(_K),
    source="ONNX ReduceSumSquare-1..18; MIL reduce_sum_square iOS15",
    ambiguous=_folded("sum_square"),
)
def reduce_sum_square(
    x: Num[Array, "*d"],
    *,
    axes: Axes[Ints, "d"] | None = None,
    keepdims: Flag = True,
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Sum of squares over ``axes``; without axes each square by itself."""
    return fold("sum_square", x, axes, keepdims)


@semantics(error=accumulates(_K), source="ONNX ReduceL1-1..18; MIL reduce_l1_norm iOS15", ambiguous=_folded("l1"))
def reduce_l1(
    x: Num[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Sum of magnitudes over ``axes``."""
    return fold("l1", x, axes, keepdims)


@quiet
def l2_bound(ctx: Context) -> Array:
    """sqrt of a sum of squares: |h| * (gamma(K+2)/2 + 2u) + ulp; free where a square may overflow"""
    x = ctx.inputs["x"]
    k = x.size / max(1, ctx.wide.size)
    h = np.abs(ctx.wide)
    lost = np.minimum(np.sqrt(k * tiny(ctx)), k * tiny(ctx) / (2 * h))
    return np.where(
        h * h * (1 + k * ctx.acc_u) >= top(ctx),
        np.inf,
        h * (slope(k + 2, ctx) / 2 + 2 * ctx.acc_u) + ctx.ulp + np.where(h == 0, np.sqrt(k * tiny(ctx)), lost),
    )


def _squares_overflow(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Of integers; how far floats may go is in the bound."""
    return _folded("sum_square")(inputs, params) if of(inputs["x"]).kind in "iu" else None


@semantics(
    error=composed(l2_bound),
    source="ONNX ReduceL2-1..18; MIL reduce_l2_norm iOS15",
    ambiguous=first_of(_fraction("l2"), _squares_overflow),
)
def reduce_l2(
    x: Num[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Square root of the sum of squares over ``axes``."""
    if of(x).kind == "f":
        return fold("l2", x, axes, keepdims)
    return whole(native.reduce("l2", x, norm_axes(axes, x.ndim), keepdims), x)


def _growth(x: Array, ctx: Context, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Product of the factors above one in magnitude: what an order of factors may reach on its way."""
    return native.reduce("prod", above_one(x), axes, keepdims)


@quiet
def prod_bound(ctx: Context) -> Array:
    """|h| * gamma(n) + ulp + n * tiny * prod(max(|x|,1)); free where a partial product may overflow"""
    x = ctx.inputs["x"]
    n = max(1, x.size // max(1, ctx.wide.size))
    grown = _growth(x, ctx, axes_of(ctx, x.ndim), bool(ctx.params["keepdims"])).reshape(ctx.wide.shape)
    shrunk = np.where(n > 1, n * tiny(ctx) * grown, 0.0)
    b = np.abs(ctx.wide) * slope(n, ctx) + ctx.ulp + shrunk
    return np.where(grown >= top(ctx) * (1 - n * ctx.acc_u), np.inf, b)


@semantics(
    error=composed(prod_bound),
    source="ONNX ReduceProd-1..18; MIL reduce_prod iOS15; TFLite REDUCE_PROD",
    ambiguous=first_of(_product_overflows, _underflow_meets_infinity),
)
def reduce_prod(
    x: Num[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Product over ``axes``; 1 over no element; integers wrap."""
    return fold("prod", x, axes, keepdims)


def _reduced(x: Array, params: dict[str, Object]) -> Array:
    return native.reduce("max", x, norm_axes(params["axes"], x.ndim), bool(params["keepdims"]))


def _extreme(name: str, x: Array, axes: Object, keepdims: bool) -> Array:
    d, where = of(x), norm_axes(axes, x.ndim)
    if d.kind == "b":
        return native.reduce("any" if name == "max" else "all", x, where, keepdims)
    if d.kind in "iu":
        y = native.reduce(name, x, where, keepdims, out=x.dtype)
        if x.size == 0 and y.size:
            y[...] = int_range(d)[name == "min"]
        return y
    y = native.reduce(name, x, where, keepdims)
    if x.size == 0 and y.size and d.name in ("f8e4m3fn", "f4e2m1"):  # no infinity to start from
        y[...] = -float_max(d) if name == "max" else float_max(d)
    return y.astype(x.dtype)


@semantics(
    error=exact(),
    source="ONNX ReduceMax-1..20; MIL reduce_max iOS15; TFLite REDUCE_MAX",
    ambiguous=has_nan("x", _reduced),
)
def reduce_max(
    x: Real_[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Real_[Array, "*reduce(d,axes,keepdims)"]:
    """Largest element over ``axes``; over no element -inf, the lowest integer, or False."""
    return _extreme("max", x, axes, keepdims)


@semantics(
    error=exact(),
    source="ONNX ReduceMin-1..20; MIL reduce_min iOS15; TFLite REDUCE_MIN",
    ambiguous=has_nan("x", _reduced),
)
def reduce_min(
    x: Real_[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Real_[Array, "*reduce(d,axes,keepdims)"]:
    """Smallest element over ``axes``; over no element +inf, the highest integer, or True."""
    return _extreme("min", x, axes, keepdims)


@quiet
def log_sum_bound(ctx: Context) -> Array:
    """log of a sum s: r/(1-r) + 4 ulp with r = gamma(K+2) * sum|x| / |s|; free where r >= 1/2"""
    x = np.asarray(ctx.inputs["x"], np.float64)
    axes, keep = axes_of(ctx, x.ndim), bool(ctx.params["keepdims"])
    k = x.size / max(1, ctx.wide.size)
    s = native.reduce("sum", x, axes, keep)
    r = (slope(k + 2, ctx) * native.reduce("l1", x, axes, keep) + k * tiny(ctx)) / np.abs(s)
    r = np.where(s == 0, np.where(native.reduce("l1", x, axes, keep) == 0, 0, np.inf), r)
    return np.where(r < 0.5, r / (1 - r), np.inf) + 4 * ctx.ulp


def _sign_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A sum below zero has no logarithm, one above it has: next to zero the order of the terms decides."""
    x = inputs["x"]
    if of(x).kind != "f":
        return None
    wide, axes = x.astype(np.float64), norm_axes(params["axes"], x.ndim)
    s, size = (native.reduce(name, wide, axes, bool(params["keepdims"])) for name in ("sum", "l1"))
    k = x.size / max(1, s.size)
    near = (s < 0) & (-s <= gamma(k + 2, unit(of(x))) * size)
    return underspecified("the logarithm of a sum that rounding may take to the other side of zero", near)


@semantics(
    error=composed(log_sum_bound),
    source="ONNX ReduceLogSum-1..18; MIL reduce_log_sum iOS15",
    ambiguous=first_of(_fraction("log_sum"), _sign_open, _folded("l1")),
)
def reduce_log_sum(
    x: Num[Array, "*d"],
    *,
    axes: Axes[Ints, "d"] | None = None,
    keepdims: Flag = True,
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Logarithm of the sum over ``axes``; -inf over no element."""
    y = native.reduce("log_sum", x, norm_axes(axes, x.ndim), keepdims)
    return y if of(x).kind == "f" else whole(y, x)


def _carrier(dtype: DType, in_double: Object) -> DType:
    """The type that exponentials and their sum may leave: double where the op set says so, else that of the floats."""
    return F64 if in_double else dtype


@quiet
def log_sum_exp_bound(ctx: Context) -> Array:
    """(K + 6 + sum p(|x|+|m|)) acc_u + 4 ulp, p the softmax weights, m the maximum; where exp(m) is below the normal
    numbers, log1p(K eta / s) or log(2K) besides, eta the smallest positive number, s the sum; where other terms are,
    what is left without them, log(K) at most"""
    x = np.asarray(ctx.inputs["x"], np.float64)
    axes, shape = axes_of(ctx, x.ndim), ctx.wide.shape
    k = x.size / max(1, ctx.wide.size)
    m = native.reduce("max", x, axes, True)
    p = np.exp(x - m)
    weight = native.reduce("sum", np.where(p > 0, p * (np.abs(x) + np.abs(m)), 0), axes, True)
    weight = weight / native.reduce("sum", p, axes, True)
    b = ((k + 6 + weight + np.abs(m)) * ctx.acc_u).reshape(shape)
    return b + 4 * ctx.ulp + _lost(ctx.wide, m.reshape(shape), k, _carrier(ctx.out, ctx.params["in_double"]))


def _lost(y: Array, m: Array, k: float, carrier: DType) -> Array:
    """How far log(s) may be off, s a sum of k exponentials of m at most, where those below the normal numbers of the
    type are rounded to its subnormal numbers or to 0.  y: log(s)."""
    if carrier.kind != "f" or k < 1:
        return np.zeros_like(y)
    normal, least = np.log(smallest_normal(carrier)), np.log(smallest_subnormal(carrier))
    share = np.exp(np.minimum(np.log(k) + normal - y, 50.0))
    flushed = np.where(share < 1, -np.log1p(-np.minimum(share, 0.9999)), np.inf)  # some terms are normal, others lost
    rounded = np.log1p(np.exp(np.minimum(np.log(k) + least - y, 50.0)))  # all are subnormal, one at least is not 0
    off = np.where(m >= normal, np.minimum(flushed, np.log(k)), np.maximum(rounded, np.log(2 * k)))
    return np.where(np.isfinite(m) & (m >= least - 1), off, 0.0)


def _exponential_leaves(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Of floats: log(sum(exp(x))) is stated, and no way to add exponentials that are no normal numbers of their type.
    Since version 18 the function body of ReduceLogSumExp adds them in double."""
    x = inputs["x"]
    if of(x).kind != "f" or not x.size:
        return None
    carrier = _carrier(of(x), params["in_double"])
    wide, axes, keep = x.astype(np.float64), norm_axes(params["axes"], x.ndim), bool(params["keepdims"])
    y, m = (native.reduce(name, wide, axes, keep) for name in ("log_sum_exp", "max"))
    slack = (8 + np.abs(np.where(np.isfinite(m), m, 0))) * unit(carrier)
    over = np.isfinite(m) & (y >= np.log(float_max(carrier)) - slack)
    under = np.isfinite(m) & (m <= np.log(smallest_normal(carrier)) + slack)
    return gathered(
        underspecified("exponentials whose sum leaves their type", over, np.full(y.shape, np.inf)),
        underspecified("exponentials below the normal numbers of their type", under, np.full(y.shape, -np.inf)),
    )


def _exponential_beyond(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """Of integers; how far floats may go is in the bound.  The function body of ReduceLogSumExp-18 adds exponentials in
    double: above 709.78 the infinity that comes of it is then cast to an integer, which has no result."""
    x = inputs["x"]
    if of(x).kind not in "iu" or not x.size:
        return None
    m = native.reduce("max", x.astype(np.float64), norm_axes(params["axes"], x.ndim), bool(params["keepdims"]))
    terms = x.size / max(1, m.size)
    return underspecified("the exponential of an integer goes beyond double", m + np.log(max(1, terms)) >= _LOG_TOP)


_LOG_TOP = float(np.log(np.finfo(np.float64).max))


@semantics(
    error=composed(log_sum_exp_bound),
    source="ONNX ReduceLogSumExp-1..18; MIL reduce_log_sum_exp iOS15",
    ambiguous=first_of(_exponential_beyond, _exponential_leaves, _fraction("log_sum_exp")),
)
def reduce_log_sum_exp(
    x: Num[Array, "*d"],
    *,
    axes: Axes[Ints, "d"] | None = None,
    keepdims: Flag = True,
    in_double: Flag,
) -> Num[Array, "*reduce(d,axes,keepdims)"]:
    """Logarithm of the sum of exponentials over ``axes``; -inf over no element.  in_double: the op set states that the
    exponentials are added in double (the function body of ONNX ReduceLogSumExp-18)."""
    y = native.reduce("log_sum_exp", x, norm_axes(axes, x.ndim), keepdims, out=np.dtype(np.float64))
    return y if of(x).kind == "f" else whole(y, x)


@semantics(error=exact(), source="TFLite REDUCE_ANY")
def reduce_any(
    x: Bool[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Bool[Array, "*reduce(d,axes,keepdims)"]:
    """Whether any element over ``axes`` is true; False over none."""
    return native.reduce("any", x, norm_axes(axes, x.ndim), keepdims)


@semantics(error=exact(), source="TFLite REDUCE_ALL")
def reduce_all(
    x: Bool[Array, "*d"], *, axes: Axes[Ints, "d"] | None = None, keepdims: Flag = True
) -> Bool[Array, "*reduce(d,axes,keepdims)"]:
    """Whether all elements over ``axes`` are true; True over none."""
    return native.reduce("all", x, norm_axes(axes, x.ndim), keepdims)


def _arg(name: str, x: Array, axis: int, keepdims: bool, select_last: bool, dtype: Object) -> Array:
    a = norm_axis(axis, x.ndim)
    if x.shape[a] == 0:
        raise RuleError("axis-not-empty", f"arg{name} over axis {axis} of {list(x.shape)}")
    return native.arg_reduce(name, x, a, keepdims, select_last).astype(dtype.np)


def _draw_arg(d: Draw) -> dict[str, Object]:
    shape = list(d.shape(1))
    axis = fixed(d, "axis", lambda: d.axis(len(shape)))
    shape[axis] = max(1, shape[axis])
    return {
        "x": T(shape),
        "axis": axis,
        "keepdims": fixed(d, "keepdims", d.bool),
        "select_last": fixed(d, "select_last", d.bool),
        "dtype": fixed(d, "dtype", lambda: d.pick((I64, I32))),
    }


def any_winner(ctx: Context, actual: Array) -> Array:
    """an index whose element equals the extreme one: which of equals wins is not guaranteed"""
    x, axis = np.asarray(ctx.inputs["x"]), norm_axis(ctx.params["axis"], np.ndim(ctx.inputs["x"]))
    kept = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    at, want = (numbers(v).reshape(kept) for v in (actual, ctx.wide))
    inside = (at >= 0) & (at < x.shape[axis])
    same = np.take_along_axis(x, np.where(inside, at, 0), axis) == np.take_along_axis(x, want, axis)
    return (inside & same).reshape(np.shape(actual))


_ARG = {
    "error": exact(),
    "draw": _draw_arg,
    "data": ("small", "ties", "unit", "special", "full"),
    "ambiguous": has_nan("x", lambda x, p: _reduced(x, {**p, "axes": [p["axis"]]})),
}


@semantics(source="ONNX ArgMax-1..13; MIL reduce_argmax iOS15..17; TFLite ARG_MAX; NN ArgMax", **_ARG)
def argmax(
    x: Num[Array, "*d"],
    *,
    axis: Axis[int, "d"] = 0,
    keepdims: Flag = True,
    select_last: Flag = False,
    dtype: Annotated[DType, ElementType(I64, I32)] = I64,
) -> Array:
    """Index of the largest element along ``axis``: the first of equals, or the last.  Raises RuleError
    "axis-not-empty"."""
    return _arg("max", x, axis, keepdims, select_last, dtype)


@semantics(source="ONNX ArgMin-1..13; MIL reduce_argmin iOS15..17; TFLite ARG_MIN; NN ArgMin", **_ARG)
def argmin(
    x: Num[Array, "*d"],
    *,
    axis: Axis[int, "d"] = 0,
    keepdims: Flag = True,
    select_last: Flag = False,
    dtype: Annotated[DType, ElementType(I64, I32)] = I64,
) -> Array:
    """Index of the smallest element along ``axis``: the first of equals, or the last.  Raises RuleError
    "axis-not-empty"."""
    return _arg("min", x, axis, keepdims, select_last, dtype)


def _arg_of_none(d: Draw) -> dict[str, Object]:
    """An axis without elements, beside others that have some or none."""
    v = _draw_arg(d)
    shape = list(v["x"].shape)
    shape[v["axis"]] = 0
    return {**v, "x": T([n if k == v["axis"] % len(shape) else max(1, n) for k, n in enumerate(shape)])}


for _meaning in (argmax, argmin):
    _meaning.breaks("axis-not-empty")(_arg_of_none)


def _whole_sum(inputs: dict[str, Object], params: dict[str, Object]) -> Array:
    return np.abs(inputs["x"].astype(np.float64)).sum(params["axis"], keepdims=True)


@semantics(
    error=accumulates("d[axis]"),
    source="ONNX CumSum-11, -14; MIL cumsum iOS15; TFLite CUMSUM; NN CumSum",
    ambiguous=overflows(_whole_sum),
)
def cumsum(
    x: Num[Array, "*d"], *, axis: Axis[int, "d"], exclusive: Flag = False, reverse: Flag = False
) -> Num[Array, "*d"]:
    """Running sum along ``axis``: element i adds 0..i; exclusive 0..i-1; reverse runs from the end.  Integers wrap."""
    return _running("sum", x, axis, exclusive, reverse)


@quiet
def cumprod_bound(ctx: Context) -> Array:
    """as for the product, of the elements folded so far"""
    x = np.asarray(ctx.inputs["x"], np.float64)
    p = ctx.params
    n = x.shape[p["axis"]]
    big = np.where(np.abs(x) > 1, np.abs(x), 1.0)
    grown = native.cumulative("prod", big, p["axis"] % x.ndim, False, bool(p["reverse"]))
    b = np.abs(ctx.wide) * slope(n, ctx) + ctx.ulp + n * tiny(ctx) * grown
    return np.where(grown >= top(ctx) * (1 - n * ctx.acc_u), np.inf, b)


@semantics(
    error=composed(cumprod_bound),
    source="ONNX CumProd-26",
    ambiguous=first_of(
        overflows(lambda i, p: np.maximum(1, np.abs(i["x"].astype(np.float64))).prod(p["axis"], keepdims=True)),
        _underflow_meets_infinity,
    ),
)
def cumprod(
    x: Num[Array, "*d"], *, axis: Axis[int, "d"], exclusive: Flag = False, reverse: Flag = False
) -> Num[Array, "*d"]:
    """Running product along ``axis``; exclusive starts from 1.  Integers wrap."""
    return _running("prod", x, axis, exclusive, reverse)


def _running(name: str, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    a = norm_axis(axis, x.ndim)
    if of(x).kind == "f":
        return native.cumulative(name, x, a, exclusive, reverse)
    return native.cumulative(name, x, a, exclusive, reverse).astype(x.dtype)
