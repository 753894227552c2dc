"""Normalisation by a norm, by the root mean square, and across neighbouring channels."""

from __future__ import annotations

from typing import Annotated
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import BF16, F16, F32, F64, DType
from harness.core.errors import RuleError
from harness.declare import (
    Axes,
    Axis,
    Choice,
    ElementType,
    Flag,
    Float,
    Integer,
    Ints,
    Real,
    T,
    composed,
    semantics,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma
from suites.semantics.bounds import quiet, slope, tiny, top
from suites.semantics.drawing import param
from suites.semantics.movement.common import norm_axes, norm_axis
from suites.semantics.norm.moments import (
    EPSILONS,
    below,
    draw_stash,
    draw_tail,
    lost_squares,
    onto,
    stage_unit,
    wide,
    within,
)

Array = np.ndarray


def _safe(x: Array, norm: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.where(norm == 0, 0.0, x / norm)


@quiet
def _norm_bound(ctx: Context) -> Array:
    """|h| (gamma(K+2)/p + 4u) + ulp; free where a square may overflow or underflow"""
    x = wide(ctx.inputs["x"])
    p, axis = ctx.params["p"], ctx.params["axis"]
    n = float(x.shape[axis])
    total = native.reduce("l1" if p == 1 else "sum_square", x, (axis % x.ndim,), True)
    b = np.abs(ctx.wide) * (slope(n + 2, ctx) / p + 4 * ctx.acc_u) + ctx.ulp
    free = (total * (1 + n * ctx.acc_u) >= top(ctx)) | ((total < 2**24 * n * tiny(ctx)) & (total > 0))
    return np.where(free, np.inf, b)


def _draw_norm(d: Draw) -> dict[str, Object]:
    shape, axis = draw_tail(d)
    return {"x": T(shape), "axis": axis, "p": param(d, "p", lambda: d.pick((2, 1)))}


@semantics(
    error=composed(_norm_bound),
    source="ONNX LpNormalization-1, -22",
    draw=_draw_norm,
    data=("unit", "small", "uniform:-4:4", "wide", "special"),
)
def lp_norm(x: Float[Array, "*d"], *, axis: Axis[int, "d"] = -1, p: Choice[int, 1, 2] = 2) -> Float[Array, "*d"]:
    """x divided by its L1 or L2 norm along ``axis``; 0 where the norm is 0.  Raises RuleError "axis-in-range",
    "order-known"."""
    if p not in (1, 2):
        raise RuleError("order-known", f"p = {p}, only 1 and 2 are norms here")
    a = norm_axis(axis, x.ndim)
    return _safe(wide(x), native.reduce("l1" if p == 1 else "l2", x, (a,), True))


@lp_norm.breaks("axis-in-range")
def _no_axis(d: Draw) -> dict[str, Object]:
    return {**_draw_norm(d), "x": T((2, 3)), "axis": d.pick((2, 3, -3))}


@lp_norm.breaks("order-known")
def _other_order(d: Draw) -> dict[str, Object]:
    """ "Only 1 or 2 are supported"."""
    return {**_draw_norm(d), "p": d.pick((0, 3))}


def _l2_axes(x: Array, axes: Object) -> list[int]:
    return norm_axes(axes, x.ndim)


@quiet
def _l2_bound(ctx: Context) -> Array:
    """|h| (gamma(K+3)/2 + 4u) + ulp; free where a square may overflow or underflow"""
    x = wide(ctx.inputs["x"])
    axes = _l2_axes(x, ctx.params["axes"])
    total = native.reduce("sum_square", x, axes, True)
    n = x.size / max(1, total.size)
    eps = float(ctx.params["epsilon"])
    floor = eps if ctx.params["under"] == "sum" else 0.0
    b = np.abs(ctx.wide) * (slope(n + 3, ctx) / 2 + 4 * ctx.acc_u) + ctx.ulp
    small = (total + floor < 2**24 * n * tiny(ctx)) & (total > 0)
    return np.where((total * (1 + n * ctx.acc_u) >= top(ctx)) | small, np.inf, b)


def _draw_l2(d: Draw) -> dict[str, Object]:
    shape = d.shape(max(1, d.min_rank))
    if "axes" in d.fixed and d.fixed["axes"] is not None:
        shape = d.shape(max(-min(d.fixed["axes"]), max(d.fixed["axes"]) + 1, d.min_rank))
    axes = param(d, "axes", lambda: tuple(range(d.int(0, len(shape) - 1), len(shape))))
    return {
        "x": T(shape),
        "axes": axes,
        "epsilon": param(d, "epsilon", lambda: d.pick((1e-6, 1e-6, 1e-3, 1.0))),
        "under": param(d, "under", lambda: "sum"),
    }


@semantics(
    error=composed(_l2_bound),
    source="MIL l2_norm iOS15 (under sum); TFLite L2_NORMALIZATION (largest of both); NN L2Normalize",
    draw=_draw_l2,
    data=("unit", "small", "uniform:-4:4", "wide"),
)
def l2_normalization(
    x: Float[Array, "*d"],
    *,
    axes: Axes[Ints, "d"] = (-1,),
    epsilon: Real = 1e-6,
    under: Choice[str, "sum", "max_root"] = "sum",
) -> Float[Array, "*d"]:
    """x / sqrt(sum x^2 + epsilon) over ``axes``; max_root: x / max(sqrt(sum x^2), epsilon) instead."""
    where = _l2_axes(x, axes)
    if under == "sum":
        return _safe(wide(x), np.sqrt(native.reduce("sum_square", x, where, True) + epsilon))
    return wide(x) / np.maximum(native.reduce("l2", x, where, True), epsilon)


@quiet
def _rms_bound(ctx: Context) -> Array:
    """|h| (gamma(K+3)/2 + 4u + 2 u_out) + ulp, u of the stage's type; free where a square may overflow"""
    x = wide(ctx.inputs["x"])
    axes = tuple(range(norm_axis(ctx.params["axis"], x.ndim), x.ndim))
    mean = native.reduce("mean", np.square(x), axes, True)
    n = float(np.prod([x.shape[a] for a in axes]))
    u = stage_unit(ctx)
    b = np.abs(ctx.wide) * (gamma(n + 3, u) / 2 + 4 * u + 2 * ctx.u) + ctx.ulp
    if (scale := ctx.inputs.get("scale")) is not None:  # the quotient may be a subnormal number
        quotient = np.abs(x) / np.sqrt(mean + ctx.params["epsilon"])
        b = b + np.abs(wide(onto(scale, x.shape, "scale"))) * below(ctx, quotient)
    return np.where(np.broadcast_to(mean * n * (1 + n * u) >= top(ctx), b.shape), np.inf, b)


def _squares_overflow(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """An infinite result of a row whose squares leave the stage's type: 0 times an infinite scale is NaN there."""
    x, scale = inputs["x"], inputs.get("scale")
    scale = None if scale is None else wide(onto(scale, x.shape, "scale"))
    return lost_squares(x, range(norm_axis(params.get("axis", -1), x.ndim), x.ndim), scale, params.get("stash") or F32)


def _draw_rms(d: Draw) -> dict[str, Object]:
    shape, axis = draw_tail(d)
    if d.empty and not d.breaking and d.bool():
        shape, axis = tuple(d.int(0, 2) for _ in range(d.int(1, 5))), 0
    tail = shape[axis % len(shape) :]
    stash = param(d, "stash", lambda: draw_stash(d))
    return {
        "x": T(shape, within(stash)),
        "scale": T(d.pick((tail, tail, (1,) * len(tail), tail[-1:])), within(stash)),
        "axis": axis,
        "epsilon": param(d, "epsilon", lambda: d.pick(EPSILONS)),
        "stash": stash,
    }


@semantics(
    error=composed(_rms_bound),
    source="ONNX RMSNormalization-23",
    draw=_draw_rms,
    ambiguous=_squares_overflow,
    data=("unit", "small", "uniform:-4:4", "wide"),
)
def rms_norm(
    x: Float[Array, "*d"],
    scale: Float[Array, "*e"] | None = None,
    *,
    axis: Integer = -1,
    epsilon: Real = 1e-5,
    stash: Annotated[DType, ElementType(F32, BF16, F16, F64)] = F32,
) -> Float[Array, "*d"]:
    """x / sqrt(mean x^2 + epsilon) over all axes from ``axis`` on, times ``scale``, which broadcasts to x.

    Raises RuleError "scale-broadcasts"."""
    axes = tuple(range(norm_axis(axis, x.ndim), x.ndim))
    y = wide(x) / np.sqrt(native.reduce("mean", np.square(wide(x)), axes, True) + epsilon)
    return y if scale is None else y * wide(onto(scale, x.shape, "scale"))


def _neighbours(x: Array, axis: int, size: int) -> Array:
    """Sums of squares over the window of ``size`` channels around each; the longer half of an even one comes after."""
    square = np.moveaxis(np.square(wide(x)), axis, -1)
    c = square.shape[-1]
    before, after = (size - 1) // 2, size // 2
    out = np.zeros_like(square)
    for k in range(max(-before, 1 - c), min(after, c - 1) + 1):
        lo, hi = max(0, -k), min(c, c - k)
        out[..., lo:hi] += square[..., lo + k : hi + k]
    return np.moveaxis(out, -1, axis)


@quiet
def _lrn_bound(ctx: Context) -> Array:
    """|h| (|beta| r/(1-r) + (18 + 2 |beta log base|) u) + ulp, r = (gamma(min(size, 2c)+c+3) |alpha'| sum x^2 +
    u |bias|) / |base|"""
    x, p = wide(ctx.inputs["x"]), ctx.params
    terms = min(p["size"], 2 * x.shape[p["axis"]])  # a window wider than that holds no more of them
    total = _neighbours(x, p["axis"] % x.ndim, p["size"])
    a = abs(p["alpha"]) / (p["size"] if p["scaled"] else 1)
    base = p["bias"] + total * (p["alpha"] / (p["size"] if p["scaled"] else 1))
    # a sum that slides along the channels carries what all of them left behind
    everything = np.square(x).sum(p["axis"] % x.ndim, keepdims=True)
    r = (slope(terms + x.shape[p["axis"]] + 3, ctx) * a * everything + ctx.acc_u * abs(p["bias"])) / np.abs(base)
    r = np.where(r < 0.5, r / (1 - np.minimum(r, 0.5)), np.inf)
    power = (18 + 2 * abs(p["beta"]) * np.abs(np.log(np.abs(base)))) * ctx.acc_u
    b = np.abs(ctx.wide) * (abs(p["beta"]) * r + power) + ctx.ulp + tiny(ctx)
    return np.where(total * (1 + terms * ctx.acc_u) * max(a, 1) >= top(ctx), np.inf, b)


def _draw_lrn(d: Draw) -> dict[str, Object]:
    lo = max(3, d.min_rank)
    shape = d.shape(lo, max(lo, min(5, d.max_rank)))
    return {
        "x": T(shape),
        "axis": param(d, "axis", lambda: 1),
        "size": param(d, "size", lambda: d.pick((1, 3, 5, 2, 4, 7))),
        "alpha": param(d, "alpha", lambda: d.pick((1e-4, 0.5, 1.0, 2.0))),
        "scaled": param(d, "scaled", lambda: True),
        "beta": param(d, "beta", lambda: d.pick((0.75, 0.5, 1.0, 2.0))),
        "bias": param(d, "bias", lambda: d.pick((1.0, 2.0, 0.5))),
    }


@semantics(
    error=composed(_lrn_bound),
    source="ONNX LRN-1, -13; MIL local_response_norm iOS15; TFLite LOCAL_RESPONSE_NORMALIZATION; NN LRN",
    draw=_draw_lrn,
    data=("unit", "small", "uniform:-4:4", "uniform:-100:100"),
)
def lrn(
    x: Float[Array, "n c *s"],
    *,
    size: Integer,
    alpha: Real = 1e-4,
    beta: Real = 0.75,
    bias: Real = 1.0,
    scaled: Flag = True,
    axis: Integer = 1,
) -> Float[Array, "n c *s"]:
    """x / (bias + alpha / size * sum of squares over the ``size`` channels around)^beta.

    An even window reaches one further after than before.  scaled: whether alpha is divided by size (TFLite does not).
    """
    total = _neighbours(x, norm_axis(axis, x.ndim), size)
    with np.errstate(all="ignore"):
        return wide(x) / (bias + total * (alpha / size if scaled else alpha)) ** beta
