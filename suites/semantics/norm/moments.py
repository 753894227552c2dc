"""Normalisation by mean and variance: instance, layer, group, mean-variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import BF16, F16, F32, F64, DType, float_max, of, smallest_normal, smallest_subnormal
from harness.core.errors import RuleError
from harness.declare import (
    Axes,
    Divisor,
    ElementType,
    Flag,
    Float,
    Integer,
    Ints,
    Real,
    T,
    composed,
    of_result,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from harness.tolerance import Context, gamma, unit
from suites.semantics.bounds import quiet, top
from suites.semantics.drawing import given, param, product
from suites.semantics.movement.common import norm_axes, norm_axis

Array = np.ndarray

EPSILONS = (1e-5, 1e-5, 1e-3, 1e-2, 1.0)
SCALES = ("unit", "small", "uniform:-4:4", "ties")  # an infinite scale makes equal formulas differ: inf - inf


def wide(x: Array) -> Array:
    """The same numbers in f64."""
    return x.astype(np.float64)


def along_channels(v: Array, rank: int) -> Array:
    """A per-channel vector (or per-activation block) laid against [n, c, *s]."""
    v = wide(v)
    return v.reshape(1, -1, *(1,) * (rank - 2)) if v.ndim == 1 else v[None]


def normalised(x: Array, mean: Array, var: Array, epsilon: float, scale: Array | None, bias: Array | None) -> Array:
    """(x - mean) / sqrt(var + epsilon) * scale + bias in f64, everything already laid against x."""
    with np.errstate(all="ignore"):
        s = np.sqrt(var + epsilon)
        y = (x - mean) / s
        y = y if scale is None else y * scale
        if not np.isfinite(y).all():
            y = np.where(np.isfinite(y), y, _exponents_apart(x, mean, s, scale))
        return y if bias is None else y + bias


def _exponents_apart(x: Array, mean: Array, s: Array, scale: Array | None) -> Array:
    """(x - mean) / s * scale of f64, none of whose steps overflows alone."""
    (d, e), (m, k) = np.frexp(x / 2 - mean / 2), np.frexp(s)
    d, e = d / m, e - k + 1
    if scale is not None:
        m, k = np.frexp(scale)
        d, e = d * m, e + k
    return np.asarray(np.ldexp(d, e))


def spread_bound(
    ctx: Context,
    x: Array,
    mean: Array,
    var: Array,
    epsilon: float,
    scale: Array | None,
    bias: Array | None,
    n: float,
    u: float,
    given_moments: bool = False,
) -> Array:
    """First-order error of ``normalised``.

    The mean is off by gamma(n+1) E|x|, the variance by gamma(n+3) (E x^2 + mean^2), which lets one-pass formulas in;
    half of that relative to var + eps, plus four roundings, is the error of the inverse root.  The last product and sum
    may be rounded in the output type.  Where scale (x - mean) is divided last, as ONNX InstanceNormalization writes it,
    or the scale is divided first, or x - mean is, that may be a subnormal number.
    """
    axes = tuple(i for i in range(x.ndim) if mean.shape[i] == 1 and x.shape[i] != 1)
    s2 = var + epsilon
    c = np.abs(x - mean) / np.sqrt(s2)
    off: Array | float = 0.0
    rel: Array | float = 0.0
    if not given_moments:
        ex, ex2 = np.abs(x).mean(axis=axes, keepdims=True), np.square(x).mean(axis=axes, keepdims=True)
        off = gamma(n + 1, u) * ex
        rel = gamma(n + 3, u) * (ex2 + mean * mean) / s2
        rel = np.where(rel < 0.5, 0.5 * rel / (1 - np.minimum(rel, 0.5)), np.inf)
        rel = np.where(ex2 * n >= top(ctx), np.inf, rel)
    e = (off + 3 * u * (np.abs(x) + np.abs(mean))) / np.sqrt(s2) + c * (rel + 6 * u + 2 * ctx.u)
    g = 1.0 if scale is None else np.abs(scale)
    b = 0.0 if bias is None else np.abs(bias)
    root, apart = np.sqrt(s2), np.abs(x - mean)
    lost = np.maximum(below(ctx, g * apart) / root, below(ctx, g / root) * (np.abs(x) + np.abs(mean)))
    lost = np.maximum(lost, below(ctx, apart / root) * g)
    return e * g + 2 * max(u, ctx.u) * b + ctx.ulp + lost


def below(ctx: Context, product: Array) -> Array:
    """How far a product or quotient that is no result may be off for being subnormal."""
    step = smallest_subnormal(ctx.acc)
    off = step / 2 or step  # f64 holds no half of its own
    return np.where((product > 0) & (product < smallest_normal(ctx.acc)), off, 0.0)


def channels_shape(d: Draw, least: int) -> tuple[int, ...]:
    """Shape [n, c, *s] of at least ``least`` axes."""
    lo = max(least, d.min_rank)
    return d.shape(lo, max(lo, min(5, d.max_rank)))


def lost_squares(x: Array, axes: Sequence[int], scale: Object, stage: DType) -> str | None:
    """What is open of a result whose rows are normalised over ``axes`` in the type of the stage: finite rows whose
    squares leave that type, where the variance is infinite or, as a difference of two infinities, NaN; and elements
    beside an infinite scale, which times 0 is NaN there.  scale: laid against x."""
    with np.errstate(all="ignore"):
        squares = native.reduce("sum_square", wide(x), tuple(axes), True)
    beyond = np.broadcast_to(squares >= float_max(stage) / 2, x.shape)
    if not beyond.any():
        return None
    free = beyond & np.isfinite(squares)  # in f64, where the squares of finite numbers of these types are finite
    if scale is not None:
        free = free | (beyond & np.isinf(scale))
    return underspecified("squares that leave the type of the stage", of_result(0, free)) if free.any() else None


# -- instance, layer, group


def _laid(v: Object, x: Array, axes: Sequence[int]) -> Object:
    """A scale of shape x.shape[axes], in the order of ``axes``, laid against x."""
    if v is None:
        return None
    shape = [1] * x.ndim
    for a, n in zip(axes, v.shape):
        shape[a] = n
    return wide(v).transpose(np.argsort(axes)).reshape(shape)


@quiet
def _instance_bound(ctx: Context) -> Array:
    """first-order error of the mean (gamma(n+1) E|x|), the variance (gamma(n+3) (E x^2 + mean^2)) and six roundings"""
    i = ctx.inputs
    x = wide(i["x"])
    mean, var = native.moments(x, tuple(range(2, x.ndim)))
    n = float(product(x.shape[2:]))
    scale, bias = i.get("scale"), i.get("bias")
    return spread_bound(
        ctx,
        x,
        mean,
        var,
        float(ctx.params["epsilon"]),
        None if scale is None else along_channels(scale, x.ndim),
        None if bias is None else along_channels(bias, x.ndim),
        n,
        ctx.acc_u,
    )


def _draw_instance(d: Draw) -> dict[str, Object]:
    shape = channels_shape(d, 3)
    shape = (*shape[:2], *(max(1, n) for n in shape[2:]))
    if d.max_rank > 5 and d.chance(12):
        shape = (*shape, *(1,) * (d.int(6, d.max_rank) - len(shape)))
    out = {"x": T(shape), "epsilon": param(d, "epsilon", lambda: d.pick(EPSILONS))}
    for name in ("scale", "bias"):
        slot = d.version.schema.input(getattr(d.version.tensor_codecs.get(name), "slot", name))
        if (slot is not None and not slot.optional) or given(d, name, 3):
            out[name] = T((shape[1],))
    return out


def _instance_squares(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, scale = inputs["x"], inputs.get("scale")
    scale = None if scale is None else along_channels(scale, x.ndim)
    return lost_squares(x, range(2, x.ndim), scale, of(x))


@semantics(
    error=composed(_instance_bound),
    source="ONNX InstanceNormalization-1, -6, -22; MIL instance_norm iOS15",
    draw=_draw_instance,
    ambiguous=_instance_squares,
    data=("unit", "small", "uniform:-4:4", "wide"),
)
def instance_norm(
    x: Float[Array, "n c *s"],
    scale: Float[Array, "c"] | None = None,
    bias: Float[Array, "c"] | None = None,
    *,
    epsilon: Real = 1e-5,
) -> Float[Array, "n c *s"]:
    """Normalised over the spatial axes of every image and channel, then scaled and shifted per channel."""
    mean, var = native.moments(x, tuple(range(2, x.ndim)))
    return normalised(
        wide(x),
        mean,
        var,
        epsilon,
        None if scale is None else along_channels(scale, x.ndim),
        None if bias is None else along_channels(bias, x.ndim),
    )


def _layer_axes(x: Array, params: Mapping[str, Object]) -> list[int]:
    if params.get("axis") is not None:
        return list(range(norm_axis(params["axis"], x.ndim), x.ndim))
    return norm_axes(params.get("axes"), x.ndim)


def stage_unit(ctx: Context) -> float:
    """Roundoff of the type that the statistics are computed in: at least as coarse as the stated one."""
    stash = ctx.params.get("stash")
    return max(ctx.acc_u, unit(stash)) if isinstance(stash, DType) else ctx.acc_u


def _layer_parts(ctx: Context) -> tuple[Array, Array, Array, Object, Object, float]:
    i = ctx.inputs
    x = wide(i["x"])
    axes = _layer_axes(x, ctx.params)
    mean, var = native.moments(x, axes)
    scale, bias = (_scale(i.get(k), x, axes, ctx.params) for k in ("scale", "bias"))
    return x, mean, var, scale, bias, float(product([x.shape[a] for a in axes]))


def _scale(v: Object, x: Array, axes: list[int], params: Mapping[str, Object]) -> Object:
    if v is None:
        return None
    if params.get("axis") is not None:
        return wide(onto(v, x.shape, "scale or bias"))
    if list(v.shape) != [x.shape[a] for a in axes]:
        raise RuleError("scale-fits-axes", f"{list(v.shape)}, x is {list(x.shape)}, axes {axes}")
    return _laid(v, x, axes)


def onto(v: Array, shape: tuple[int, ...], name: str) -> Array:
    """``v``, which broadcasts to ``shape`` and not the other way round.  Raises RuleError "scale-broadcasts"."""
    if v.ndim > len(shape) or any(n not in (1, m) for n, m in zip(v.shape[::-1], shape[::-1])):
        raise RuleError("scale-broadcasts", f"{name} {list(v.shape)} does not broadcast to {list(shape)}")
    return v


@quiet
def _layer_bound(ctx: Context) -> Array:
    """first-order error of the mean (gamma(n+1) E|x|), the variance (gamma(n+3) (E x^2 + mean^2)) and eight
    roundings"""
    x, mean, var, scale, bias, n = _layer_parts(ctx)
    return spread_bound(ctx, x, mean, var, float(ctx.params["epsilon"]), scale, bias, n, stage_unit(ctx))


@quiet
def _mean_bound(ctx: Context) -> Array:
    """gamma(n+1) E|x| + ulp"""
    x, *_, n = _layer_parts(ctx)
    axes = tuple(_layer_axes(x, ctx.params))
    return gamma(n + 1, stage_unit(ctx)) * np.abs(x).mean(axis=axes, keepdims=True) + ctx.ulp


@quiet
def _inverse_bound(ctx: Context) -> Array:
    """|h| (gamma(n+3) (E x^2 + mean^2) / (2 (var + eps)) + 4u) + ulp"""
    x, mean, var, *_, n = _layer_parts(ctx)
    u = stage_unit(ctx)
    ex2 = np.square(x).mean(axis=tuple(_layer_axes(x, ctx.params)), keepdims=True)
    rel = gamma(n + 3, u) * (ex2 + mean * mean) / (var + float(ctx.params["epsilon"]))
    rel = np.where(rel < 0.5, 0.5 * rel / (1 - np.minimum(rel, 0.5)), np.inf)
    return np.abs(ctx.wide) * (rel + 4 * u) + ctx.ulp


def draw_stash(d: Draw) -> DType:
    """Mostly f32, the default of all texts."""
    return d.pick((F32, F32, F32, *d.version.meaning.params["stash"].options))


def within(stash: object) -> str | None:
    """The recipe of what a stage in f16 has to hold: a square of it stays far from the limit.  That of scale and bias,
    too: the texts cast "all input variables", and say of the second stage that it does not depend on the type."""
    return "unit" if stash is F16 else None


def draw_tail(d: Draw, name: str = "axis") -> tuple[tuple[int, ...], int]:
    """A shape and the axis from which on everything is normalised, nothing of it empty."""
    shape = d.shape(1)
    axis = param(d, name, lambda: d.axis(len(shape)))
    a = axis % len(shape)
    return (*shape[:a], *(max(1, n) for n in shape[a:])), axis


def _draw_layer(d: Draw) -> dict[str, Object]:
    out: dict[str, Object] = {"epsilon": param(d, "epsilon", lambda: d.pick(EPSILONS))}
    rising = True  # whose order a scale has for others is told by no text
    if "axis" in d.version.param_codecs or "axis" in d.fixed:
        shape, axis = draw_tail(d)
        if d.empty and d.bool():
            at = d.int(axis % len(shape), len(shape) - 1)
            shape = tuple(0 if i == at else n for i, n in enumerate(shape))
        tail = shape[axis % len(shape) :]
        out |= {"x": T(shape), "axis": axis}
        scale = d.pick((tail, tail, (1, *tail[1:])))
        out["stash"] = param(d, "stash", lambda: draw_stash(d))
    else:
        shape = d.shape(1)
        axes = param(d, "axes", lambda: None if d.chance(6) else _some_axes(d, len(shape)))
        where = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
        rising = sorted(where) == list(where)
        shape = tuple(max(1, n) if i in where else n for i, n in enumerate(shape))
        tail = scale = tuple(shape[a] for a in where)
        out |= {"x": T(shape), "axes": axes}
    slot = d.version.schema.input(getattr(d.version.tensor_codecs.get("scale"), "slot", "scale"))
    if (slot is not None and not slot.optional) or (given(d, "scale", 3) and rising):
        out["scale"] = T(scale)
    if given(d, "bias", 3) and rising:
        out["bias"] = T(tail)
    return out


def _some_axes(d: Draw, rank: int) -> tuple[int, ...]:
    """The last ones, or any others, mostly in rising order."""
    some = sorted(d.subset(range(rank), 1)) if d.chance(3) else list(range(d.int(0, rank - 1), rank))
    some = d.shuffle(some) if d.chance(4) else some
    sign = d.int(0, 3)
    return tuple(a - rank if sign == 3 or (sign == 2 and d.bool()) else a for a in some)


def _layer_squares(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """The text of MIL names no type of the stage: there it may be that of x."""
    x, axes = inputs["x"], _layer_axes(inputs["x"], params)
    scale = _scale(inputs.get("scale"), x, axes, params)
    return lost_squares(x, axes, scale, of(x) if params.get("axis") is None else params["stash"])


@semantics(
    error=(composed(_layer_bound), composed(_mean_bound), composed(_inverse_bound)),
    source="ONNX LayerNormalization-17; MIL layer_norm iOS15",
    draw=_draw_layer,
    ambiguous=_layer_squares,
    data=("unit", "small", "uniform:-4:4", "wide"),
)
def layer_norm(
    x: Float[Array, "*d"],
    scale: Float[Array, "*e"] | None = None,
    bias: Float[Array, "*f"] | None = None,
    *,
    axes: Axes[Ints, "d"] | None = None,
    axis: Integer | None = None,
    epsilon: Real = 1e-5,
    stash: Annotated[DType, ElementType(F32, BF16)] = F32,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + epsilon) * scale + bias over ``axes`` (None: all), the mean, and the inverse root.

    axis: everything from there on, and scale and bias broadcast to x; with ``axes`` they have the shape x.shape[axes].
    stash: the type the statistics are computed in, f64 inputs included.  Raises RuleError "axes-in-range",
    "scale-broadcasts", "scale-fits-axes".
    """
    where = _layer_axes(x, {"axis": axis, "axes": axes})
    mean, var = native.moments(x, where)
    names = {"axis": axis}
    y = normalised(wide(x), mean, var, epsilon, _scale(scale, x, where, names), _scale(bias, x, where, names))
    return y, mean, 1 / np.sqrt(var + epsilon)


def _grouped(x: Array, groups: int) -> Array:
    return wide(x).reshape(x.shape[0], groups, product(x.shape[1:]) // groups)


def _per_channel(v: Array, x: Array, groups: int, per_group: bool) -> Array:
    a = wide(v)
    return along_channels(np.repeat(a, x.shape[1] // groups) if per_group else a, x.ndim)


@quiet
def _group_bound(ctx: Context) -> Array:
    """first-order error of the mean (gamma(n+1) E|x|), the variance (gamma(n+3) (E x^2 + mean^2)) and eight
    roundings"""
    i, p = ctx.inputs, ctx.params
    x, groups = wide(i["x"]), p["groups"]
    g = _grouped(x, groups)
    mean, var = native.moments(g, (2,))
    n, wide_ones = float(g.shape[2]), np.ones_like(g)
    mean, var = ((v * wide_ones).reshape(x.shape) for v in (mean, var))
    ex, ex2 = ((v.mean(axis=2, keepdims=True) * wide_ones).reshape(x.shape) for v in (np.abs(g), np.square(g)))
    u, s2 = stage_unit(ctx), var + float(p["epsilon"])
    rel = gamma(n + 3, u) * (ex2 + mean * mean) / s2
    rel = np.where(rel < 0.5, 0.5 * rel / (1 - np.minimum(rel, 0.5)), np.inf)
    c = np.abs(x - mean) / np.sqrt(s2)
    e = (gamma(n + 1, u) * ex + 3 * u * (np.abs(x) + np.abs(mean))) / np.sqrt(s2) + c * (rel + 6 * u + 2 * ctx.u)
    scale, bias = (np.abs(_per_channel(i[k], x, groups, p["per_group"])) for k in ("scale", "bias"))
    return e * scale + 2 * max(u, ctx.u) * bias + ctx.ulp


def _draw_group(d: Draw) -> dict[str, Object]:
    groups = d.pick((1, 2, 3, 4))
    shape = channels_shape(d, 3)
    if d.chance(24) and not d.breaking:
        groups = d.pick((17, 130, 300))
        shape = (1, 1, *(1 for _ in shape[2:]))
    elif d.chance(8) and not d.breaking:
        shape = (*shape, *(1,) * (d.max_rank - len(shape)))[: d.int(2, d.max_rank)]
    c = groups * d.pick((1, 2, 3))
    shape = (shape[0], c, *shape[2:])
    per_group = bool(param(d, "per_group", lambda: False))
    if not per_group and d.empty and d.bool():  # no channel, in groups without end
        groups, c, shape = d.pick((2, 2**31 - 1)), 0, (shape[0], 0, *shape[2:])
    size = groups if per_group else c
    stash = param(d, "stash", lambda: draw_stash(d))
    return {
        "x": T(shape, within(stash)),
        "scale": T((size,), within(stash)),
        "bias": T((size,), within(stash)),
        "groups": groups,
        "per_group": per_group,
        "epsilon": param(d, "epsilon", lambda: d.pick(EPSILONS)),
        "stash": stash,
    }


def _group_squares(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """As of a layer, of every group."""
    x, groups = inputs["x"], params["groups"]
    if not x.size:
        return None
    g = _grouped(x, groups)
    scale = np.broadcast_to(_per_channel(inputs["scale"], x, groups, params["per_group"]), x.shape).reshape(g.shape)
    with np.errstate(all="ignore"):
        squares = native.reduce("sum_square", g, (2,), True)
    beyond = squares >= float_max(params["stash"]) / 2
    open_ = np.broadcast_to(beyond, g.shape) & (np.isinf(scale) | np.isfinite(squares))
    return underspecified("squares that leave the type of the stage", open_.reshape(x.shape)) if open_.any() else None


@semantics(
    error=composed(_group_bound),
    source="ONNX GroupNormalization-18, -21",
    draw=_draw_group,
    ambiguous=_group_squares,
    data=("unit", "small", "uniform:-4:4", "wide"),
)
def group_norm(
    x: Float[Array, "n c *s"],
    scale: Float[Array, "e"],
    bias: Float[Array, "e"],
    *,
    groups: Divisor[int, "c"],
    epsilon: Real = 1e-5,
    per_group: Flag = False,
    stash: Annotated[DType, ElementType(F32, BF16, F16, F64)] = F32,
) -> Float[Array, "n c *s"]:
    """Normalised over every group of channels of every image; scale and bias per channel, or per group (version 18).

    Raises RuleError "groups-divide", "scale-agrees".
    """
    if groups < 1 or x.shape[1] % groups:
        raise RuleError("groups-divide", f"{x.shape[1]} channels in {groups} groups")
    want = groups if per_group else x.shape[1]
    if scale.shape != (want,) or bias.shape != (want,):
        raise RuleError("scale-agrees", f"scale {list(scale.shape)}, bias {list(bias.shape)}, expected [{want}]")
    if not x.size:
        return np.zeros(x.shape)
    g = _grouped(x, groups)
    mean, var = native.moments(g, (2,))
    y = normalised(g, mean, var, epsilon, None, None).reshape(x.shape)
    return y * _per_channel(scale, x, groups, per_group) + _per_channel(bias, x, groups, per_group)


@group_norm.breaks("scale-agrees")
def _scales_apart(d: Draw) -> dict[str, Object]:
    """A scale or a bias for one channel, or group, more than there are."""
    size = 2 if param(d, "per_group", lambda: False) else 4
    more = size + d.int(1, 2)
    sizes = d.pick(((more, size), (size, more), (more, more)))
    return {"x": T((2, 4, 3)), "scale": T((sizes[0],)), "bias": T((sizes[1],)), "groups": 2}


@group_norm.breaks("groups-divide")
def _groups_apart(d: Draw) -> dict[str, Object]:
    """Two groups of an odd number of channels, or three of what they do not divide."""
    groups = d.pick((2, 3))
    c = groups * d.int(1, 2) + 1
    size = groups if param(d, "per_group", lambda: False) else c
    return {"x": T((2, c, 3)), "scale": T((size,)), "bias": T((size,)), "groups": groups}


@quiet
def _mvn_bound(ctx: Context) -> Array:
    """first-order error of the mean and the standard deviation, as layer normalisation"""
    x = wide(ctx.inputs["x"])
    axes = norm_axes(ctx.params["axes"], x.ndim)
    mean, var = native.moments(x, axes)
    n = float(product([x.shape[a] for a in axes]))
    if not ctx.params.get("divide", True):
        ex = np.abs(x).mean(axis=tuple(axes), keepdims=True)
        return gamma(n + 1, ctx.acc_u) * ex + 2 * ctx.acc_u * (np.abs(x) + np.abs(mean)) + ctx.ulp
    eps = float(ctx.params["epsilon"])
    root = np.square(np.sqrt(var) + eps) - var if ctx.params["outside"] else eps
    return spread_bound(ctx, x, mean, var, root, None, None, n, ctx.acc_u)


def _constant(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    """A group without variance: 0 / 0 by the formula in the text, 0 by the function body; and a one-pass variance may
    come out below 0."""
    x = wide(inputs["x"])
    mean, var = native.moments(x, norm_axes(params["axes"], x.ndim))
    if (var <= 2.0**-20 * mean * mean).any():
        return "a group with (next to) no variance: 0 / 0 by the text, 0 by the function body"
    return None


def _draw_mvn(d: Draw) -> dict[str, Object]:
    shape = tuple(max(1, n) for n in d.shape(max(1, d.min_rank)))
    if "axes" in d.fixed and d.fixed["axes"] is not None:
        shape = tuple(max(1, n) for n in d.shape(max(d.fixed["axes"]) + 1))
    axes = param(
        d, "axes", lambda: None if d.chance(5) and len(shape) == 4 else tuple(sorted(d.subset(range(len(shape)), 1)))
    )
    if axes is None:
        shape = (*shape, 2, 3, 2, 3)[:4]
        axes = (0, 2, 3)
    return {
        "x": T(shape),
        "axes": axes,
        "epsilon": param(d, "epsilon", lambda: 1e-9),
        "outside": param(d, "outside", lambda: True),
        "divide": param(d, "divide", d.bool),
    }


@semantics(
    error=composed(_mvn_bound),
    source="ONNX MeanVarianceNormalization-9, -13 (function body); NN MeanVarianceNormalize",
    draw=_draw_mvn,
    ambiguous=_constant,
    data=("unit", "small", "uniform:-4:4", "uniform:-1000:1000", "wide"),
)
def mean_variance_normalization(
    x: Float[Array, "*d"],
    *,
    axes: Axes[Ints, "d"] = (0, 2, 3),
    epsilon: Real = 1e-9,
    outside: Flag = True,
    divide: Flag = True,
) -> Float[Array, "*d"]:
    """(x - mean) / (sqrt(var) + epsilon) over ``axes``; outside: whether epsilon is added to the root rather than
    under it;
    divide: whether the deviation is divided out at all."""
    mean, var = native.moments(x, norm_axes(axes, x.ndim))
    with np.errstate(all="ignore"):
        y = wide(x) - mean
        if not divide:
            return y
        return y / (np.sqrt(var) + epsilon if outside else np.sqrt(var + epsilon))
