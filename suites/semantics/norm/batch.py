"""Batch normalisation: with given statistics, and with the batch's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import F32, F64, float_max, of
from harness.core.errors import RuleError
from harness.declare import Flag, Float, Real, T, composed, semantics
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma
from suites.semantics.bounds import quiet
from suites.semantics.drawing import given, param
from suites.semantics.norm.moments import (
    EPSILONS,
    SCALES,
    along_channels,
    channels_shape,
    normalised,
    spread_bound,
    wide,
)

Array = np.ndarray


def _batch_parts(i: Mapping[str, Object]) -> tuple[Array, Array, Array, Object, Object]:
    x = wide(i["x"])
    scale, bias = i.get("scale"), i.get("bias")
    return (
        x,
        along_channels(i["mean"], x.ndim),
        along_channels(i["var"], x.ndim),
        None if scale is None else along_channels(scale, x.ndim),
        None if bias is None else along_channels(bias, x.ndim),
    )


@quiet
def _batch_bound(ctx: Context) -> Array:
    """|scale| (3u (|x|+|mean|)/s + |x-mean|/s 6u) + 2u |bias| + ulp, s = sqrt(var + eps)"""
    x, mean, var, scale, bias = _batch_parts(ctx.inputs)
    return spread_bound(ctx, x, mean, var, float(ctx.params["epsilon"]), scale, bias, 1, ctx.acc_u, True)


def _draw_batch(d: Draw) -> dict[str, Object]:
    shape = channels_shape(d, 2 if d.version.op != "batch_norm" else 3)
    c = shape[1]
    per = shape[1:] if param(d, "spatial", lambda: True) is False else (c,)
    out = {
        "x": T(shape),
        "mean": T(per, "unit"),
        "var": T(per, d.pick(("uniform:0.25:4", "positive", "prob"))),
        "epsilon": param(d, "epsilon", lambda: d.pick(EPSILONS)),
    }
    needed = {n for n, t in d.version.meaning.tensors.items() if not t.optional} if d.version.meaning else set()
    for name in ("scale", "bias"):
        codec = d.version.tensor_codecs.get(name)
        slot = d.version.schema.input(getattr(codec, "slot", name))
        if name in needed or (slot is not None and not slot.optional) or given(d, name, 3):
            out[name] = T(per)
    if d.version.meaning is not None and "spatial" in d.version.meaning.params:
        out["spatial"] = per == (c,) if len(per) == 1 and len(shape) == 2 else len(per) == 1
    if d.version.meaning is not None and "momentum" in d.version.meaning.params:
        out["momentum"] = param(d, "momentum", lambda: d.pick((0.9, 0.5, 0.0, 1.0)))
    return out


@semantics(
    error=composed(_batch_bound),
    source="ONNX BatchNormalization-1..15 (test mode); MIL batch_norm iOS15; NN Batchnorm",
    draw=_draw_batch,
    data={"x": ("unit", "small", "uniform:-4:4", "wide", "special"), "scale": SCALES, "bias": SCALES},
)
def batch_norm(
    x: Float[Array, "n c *s"],
    mean: Float[Array, "*e"],
    var: Float[Array, "*e"],
    scale: Float[Array, "*e"] | None = None,
    bias: Float[Array, "*e"] | None = None,
    *,
    epsilon: Real = 1e-5,
    spatial: Flag = True,
) -> Array:
    """(x - mean) / sqrt(var + epsilon) * scale + bias with given statistics.

    Vectors of c, or blocks [c, *s] where not ``spatial``.  Raises RuleError "channels-agree".
    """
    want = x.shape[1:2] if spatial else x.shape[1:]
    for name, v in (("scale", scale), ("bias", bias), ("mean", mean), ("var", var)):
        if v is not None and v.shape != want:
            raise RuleError("channels-agree", f"{name} {list(v.shape)}, expected {list(want)}")
    a, m, v, s, b = _batch_parts({"x": x, "mean": mean, "var": var, "scale": scale, "bias": bias})
    return normalised(a, m, v, epsilon, s, b)


@batch_norm.breaks("channels-agree")
def _batch_apart(d: Draw) -> dict[str, Object]:
    v = _draw_batch(d)
    v["mean"] = T((v["mean"].shape[0] + 1, *v["mean"].shape[1:]), "unit")
    return v


def _batch_axes(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


@quiet
def _training_bound(ctx: Context) -> Array:
    """as layer normalisation, over the batch and spatial axes"""
    i = ctx.inputs
    x = wide(i["x"])
    mean, var = native.moments(x, _batch_axes(x))
    n = x.size / max(1, x.shape[1])
    return spread_bound(
        ctx,
        x,
        mean,
        var,
        float(ctx.params["epsilon"]),
        along_channels(i["scale"], x.ndim),
        along_channels(i["bias"], x.ndim),
        n,
        ctx.acc_u,
    )


def _held(ctx: Context) -> float:
    """Largest number of the type that sums over the batch are in, whatever that of running statistics is:
    "ReduceMean and ReduceVar uses float to avoid overflow for float16 inputs"."""
    return float_max(F64 if of(ctx.inputs["x"]) is F64 else F32)


@quiet
def _running_bound(ctx: Context) -> Array:
    """gamma(n+5) (1-m) (E|x| or E x^2 + mean^2) + 2u m |running| + ulp; anything where the sum may overflow"""
    x = wide(ctx.inputs["x"])
    n = x.size / max(1, x.shape[1])
    m = float(ctx.params["momentum"])
    axes = _batch_axes(x)
    size = np.maximum(np.abs(x).mean(axis=axes), 2 * np.square(x).mean(axis=axes))
    old = np.maximum(np.abs(ctx.inputs["mean"]), np.abs(ctx.inputs["var"]))
    bound = gamma(n + 5, ctx.acc_u) * abs(1 - m) * size + 3 * ctx.acc_u * abs(m) * old + ctx.ulp
    return np.where(np.abs(x).sum(axis=axes) >= _held(ctx), np.inf, bound)


@quiet
def _running_variance_bound(ctx: Context) -> Array:
    """as that of the mean; anything where the sum of squares may overflow"""
    x = wide(ctx.inputs["x"])
    return np.where(np.square(x).sum(axis=_batch_axes(x)) >= _held(ctx), np.inf, _running_bound(ctx))


@semantics(
    error=(composed(_training_bound), composed(_running_bound), composed(_running_variance_bound)),
    source="ONNX BatchNormalization-14, -15 training",
    draw=_draw_batch,
    data={"x": ("unit", "small", "uniform:-4:4", "wide"), "scale": SCALES, "bias": SCALES},
)
def batch_norm_training(
    x: Float[Array, "n c *s"],
    scale: Float[Array, "c"],
    bias: Float[Array, "c"],
    mean: Float[Array, "c"],
    var: Float[Array, "c"],
    *,
    epsilon: Real = 1e-5,
    momentum: Real = 0.9,
) -> tuple[Array, Array, Array]:
    """Normalised by the batch's own (population) statistics, and the running mean and variance after it.

    running = given * momentum + current * (1 - momentum).  Raises RuleError "channels-agree".
    """
    for name, v in (("scale", scale), ("bias", bias), ("mean", mean), ("var", var)):
        if v.shape != x.shape[1:2]:
            raise RuleError("channels-agree", f"{name} {list(v.shape)}, expected [{x.shape[1]}]")
    current, spread = native.moments(x, _batch_axes(x))
    y = normalised(wide(x), current, spread, epsilon, along_channels(scale, x.ndim), along_channels(bias, x.ndim))
    keep = 1 - momentum
    return y, wide(mean) * momentum + current.ravel() * keep, wide(var) * momentum + spread.ravel() * keep
