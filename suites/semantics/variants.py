"""Meanings whose attribute chooses between two of the plain ones."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

from harness.core.dtypes import of
from harness.declare import (
    Array,
    Build,
    Call,
    Choice,
    Codec,
    Context,
    Flag,
    Float,
    Num,
    Real,
    T,
    Tolerance,
    bounded,
    gathered,
    semantics,
    underspecified,
)
from harness.generate.draw import Draw
from suites.semantics import elementwise as e
from suites.semantics import norm as n


def _mod_bound(ctx: Context) -> object:
    """truncated remainder: exact; floored remainder: its own bound"""
    return 0.0 if ctx.params["fmod"] else e.floor_mod.error_of(0).bound(ctx)


def _mod_open(inputs: dict, params: dict) -> str | None:
    which = e.fmod if params["fmod"] else e.floor_mod
    return gathered(which.ambiguous(inputs, params) if which.ambiguous else None, _zero_open(inputs, params))


def _zero_open(inputs: dict, params: dict) -> str | None:
    """fmod: "either signed zero may be returned" of -0 and a positive divisor.  Else the sign of a zero is that of the
    divisor for a dividend of 0, by Mod-28; of multiples the formula has another one than the sentence on the sign."""
    if of(inputs["x"]).kind != "f":
        return None
    with np.errstate(all="ignore"):
        x, y = np.broadcast_arrays(*(np.asarray(inputs[k], np.float64) for k in "xy"))
        none = np.fmod(x, y) == 0
    at = none & np.signbit(x) & (x == 0) & (y > 0) if params["fmod"] else none & (x != 0)
    return underspecified("the sign of a zero remainder", at, np.zeros(at.shape), -np.zeros(at.shape))


@semantics(error=bounded(_mod_bound).signed(), source="ONNX Mod-10, -13, -28", ambiguous=_mod_open)
def mod(x: Num[Array, "*#d"], y: Num[Array, "*#d"], *, fmod: Flag = False) -> Num[Array, "*#d"]:
    """Remainder with the sign of the dividend (fmod) or of the divisor, zeros too.  Until version 13 floats take fmod
    only."""
    return (e.fmod if fmod else e.floor_mod).fn(x, y)


@mod.draw
def _draw_mod(d: Draw) -> dict:
    v = (e.fmod).derive(d)
    floating = d.dtype("x").kind == "f"
    v["fmod"] = True if floating and d.version.version < 28 else d.bool()
    if not floating:  # a divisor of zero has no meaning in integers
        v["y"] = T(v["y"].shape, "ints:1:9" if d.dtype("y").kind == "u" or d.bool() else "ints:-9:-1")
    return v


def _gelu_bound(ctx: Context) -> object:
    """that of the chosen form"""
    return (e.gelu_tanh if ctx.params["approximate"] == "tanh" else e.gelu_exact).error_of(0).bound(ctx)


@semantics(error=bounded(_gelu_bound), source="ONNX Gelu-20")
def gelu(x: Float[Array, "*d"], *, approximate: Choice[str, "none", "tanh"] = "none") -> Float[Array, "*d"]:
    """x * Phi(x), or its tanh approximation."""
    return (e.gelu_tanh if approximate == "tanh" else e.gelu_exact).fn(x)


__all__ = ["gelu", "mod", "np", "of"]


class NotFlag(Codec):
    """A flag that the dialect spells the other way round."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decode(self, call: Call) -> bool:
        return not call.attr(self.name, 0)

    def encode(self, value: bool, b: Build) -> None:
        b.attr(self.name, int(not value))


def _pick_bound(i: int) -> Tolerance:
    def bound(ctx: Context) -> Object:
        which = n.batch_norm_training if ctx.params["training"] else n.batch_norm
        return which.error_of(i).bound(ctx)

    return bounded(bound, "that of the mode")


def saved_open(call: Call) -> Object:
    """ "Saved mean used during training to speed up gradient computation", and so of the variance: no text has the
    formula; some keep the inverse of the standard deviation."""
    if call.n_outs < 5:
        return None
    saved = np.ones(call.inputs["mean"].shape, bool)
    why = "BatchNormalization: no text says what saved_mean and saved_var hold"
    return underspecified(why, (None, None, None, saved, saved))


@semantics(
    error=tuple(_pick_bound(i) for i in range(3)),
    source="ONNX BatchNormalization-1..15",
    data={
        "x": ("unit", "small", "uniform:-4:4", "wide", "special"),
        "var": ("positive", "uniform:0.25:4"),
        "scale": ("unit", "small"),
        "bias": ("unit", "small"),
        "mean": ("unit", "small"),
    },
)
def batch_norm(
    x: Float[Array, "n c *s"],
    scale: Float[Array, "*e"],
    bias: Float[Array, "*e"],
    mean: Float[Array, "*e"],
    var: Float[Array, "*e"],
    *,
    epsilon: Real = 1e-5,
    momentum: Real = 0.9,
    spatial: Flag = True,
    training: Flag = False,
) -> Object:
    """With the given statistics, or (training) with the batch's own, and then the running ones come as well, and as
    many that are saved for the gradient."""
    if training:
        given = n.batch_norm_training.fn(x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum)
        return (*given, given[1], given[2])
    return n.batch_norm.fn(x, mean, var, scale, bias, epsilon=epsilon, spatial=spatial)


@batch_norm.breaks("channels-agree")
def _batch_apart(d: Draw) -> dict:
    """One of the four has an element more than there are channels."""
    out = _draw_batch(d)
    name = d.pick(("scale", "bias", "mean", "var"))
    return {**out, name: T((out[name].shape[0] + 1, *out[name].shape[1:]))}


@batch_norm.draw
def _draw_batch(d: Draw) -> dict:
    shape = d.shape(2, 5, lo=1)
    rare = 7 <= int(d.version.version) < 14  # a training is told by the number of results alone
    if d.max_rank >= 8 and d.min_rank < 4 and d.chance(24):
        shape = (*shape, *(1,) * d.int(1, 8 - len(shape)))
    training = d.fixed["training"] if "training" in d.fixed else d.chance(6) if rare else d.bool()
    spatial = "spatial" not in d.version.param_codecs or training or d.bool()
    if not spatial and d.max_rank > 5 and d.chance(6):
        shape = (d.int(1, 2), *(d.int(0 if d.empty else 1, 2) for _ in range(d.int(4, 8))))
    flat = int(d.version.version) < 7  # until then the texts say that statistics have one axis, whatever spatial is
    stat = (shape[1],) if spatial or flat else shape[1:]
    out = {
        "x": T(shape),
        "scale": T(stat),
        "bias": T(stat),
        "mean": T(stat),
        "var": T(stat),
        "epsilon": d.pick((1e-5, 1e-3, 0.5, 1e-5)),
        "momentum": d.pick((0.9, 0.5, 0.0, 1.0)),
        "training": training,
    }
    if "spatial" in d.version.param_codecs:
        out["spatial"] = spatial
    return out
