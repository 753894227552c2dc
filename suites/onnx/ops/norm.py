"""Normalisation and softmax."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import of
from harness.declare import Checks, Draw, Fn, Sampling, Spelling, T
from suites.onnx import op
from suites.onnx.codecs import Channels, Front
from suites.semantics import norm as s
from suites.semantics import variants

for _name, _new, _old in (
    ("Softmax", s.softmax, s.softmax_flattened),
    ("LogSoftmax", s.log_softmax, s.log_softmax_flattened),
    ("Hardmax", s.hardmax, s.hardmax_flattened),
):
    op(_name, _old, Spelling(x="input", axis=Front("axis", default=1), fixed={"behind": True}), until=10)
    op(_name, _old, Spelling(x="input", fixed={"behind": False}), since=11, until=12)
    op(_name, _new, Spelling(x="input", fixed={"beta": 1.0} if _name == "Softmax" else {}), since=13)

op("LpNormalization", s.lp_norm, x="input")
op("LRN", s.lrn, Spelling(x="X", fixed={"scaled": True, "axis": 1}))
op(
    "MeanVarianceNormalization",
    s.mean_variance_normalization,
    Spelling(x="X", fixed={"epsilon": 1e-9, "outside": True, "divide": True}),
)
# "The input 4-dimensional tensor of shape NCHW", says version 1
op("InstanceNormalization", s.instance_norm, Sampling(ranks=(4, 4)), until=1, x="input", bias="B")
op("InstanceNormalization", s.instance_norm, since=6, x="input", bias="B")
_GROUPS: dict[str, Any] = {"x": "X", "groups": "num_groups", "stash": "stash_type"}
op("GroupNormalization", s.group_norm, Spelling(fixed={"per_group": True}, **_GROUPS), until=18)
op("GroupNormalization", s.group_norm, Spelling(fixed={"per_group": False}, **_GROUPS), since=21)


def _outs(d: Draw, values: dict) -> int:
    return d.pick((1, 1, 2, 3))


def _beyond(x: str, scale: str) -> Any:
    """A scale whose last axis is neither 1 nor that of the input: "unidirectional broadcastable to tensor X"."""

    def make(d: Draw) -> dict:
        shape = (d.int(1, 3), d.int(2, 4))
        return {x: T(shape), scale: T((shape[-1] + d.int(1, 2),)), "axis": -1}

    return make


op(
    "LayerNormalization",
    s.layer_norm,
    Spelling(
        x="X",
        scale="Scale",
        bias="B",
        stash="stash_type",
        fixed={"axes": None},
        out_dtype=lambda c, i: of(c.inputs["X"]) if i == 0 else c.attr("stash_type"),
    ),
    Sampling(outs=_outs),
    Checks(
        breaks={
            "scale-broadcasts": _beyond("X", "Scale"),
            "scale-fits-axes": None,  # which have a shape of their own where axes are listed
            "axes-in-range": None,  # one axis, whose rule is "axis-in-range"
        }
    ),
)
op(
    "RMSNormalization",
    s.rms_norm,
    Checks(breaks={"scale-broadcasts": _beyond("X", "scale")}),
    x="X",
    stash="stash_type",
)

# until version 6 scale, bias, mean and variance are "1-dimensional of size C": spatial tells what a training computes
_SPATIAL = Fn(lambda c: True, lambda v, b: b.attr("spatial", int(v)))
_BATCH = {"x": "X", "scale": "scale", "bias": "B"}
_EARLY: dict[str, Any] = {
    "mean": "mean",
    "var": "var",
    "training": variants.NotFlag("is_test"),
    "spatial": _SPATIAL,
    **_BATCH,
}
# "Output case #1: Y, mean, var, saved_mean, saved_var (training mode)", "Output case #2: Y (test mode)"
_SAVED = Sampling(outs=lambda d, v: 5 if v["training"] and d.chance(4) else 1)
_OPEN = Checks(ambiguous=variants.saved_open)
op("BatchNormalization", variants.batch_norm, _SAVED, _OPEN, Sampling(ranks=(4, 4)), until=1, **_EARLY)
op("BatchNormalization", variants.batch_norm, _SAVED, _OPEN, since=6, until=6, **_EARLY)
_BY_RESULTS = Fn(lambda c: c.n_outs > 1, lambda v, b: None)
_INFERRED = Spelling(mean="mean", var="var", training=_BY_RESULTS)
_CASES = Sampling(outs=lambda d, v: 5 if v["training"] else 1)
_COLUMN = Channels("X")  # "the op also accepts single dimension input of size N in which case C is assumed to be 1"
_OR_VECTOR = Spelling(x=_COLUMN, scale="scale", bias="B", out=_COLUMN.like)
op("BatchNormalization", variants.batch_norm, _INFERRED, _CASES, _OPEN, since=7, until=8, **_BATCH)
op("BatchNormalization", variants.batch_norm, _INFERRED, _OR_VECTOR, _CASES, _OPEN, since=9, until=9)
op(
    "BatchNormalization",
    variants.batch_norm,
    _OR_VECTOR,
    Sampling(outs=lambda d, v: 3 if v["training"] else 1),
    since=14,
    mean="input_mean",
    var="input_var",
    training="training_mode",
)

__all__ = ["T"]
