"""Normalisation and softmax."""

from __future__ import annotations

from harness.core.dtypes import of
from harness.declare import Draw, Fn, T
from suites.onnx import op
from suites.onnx.codecs import Channels, Front
from suites.semantics import norm as s
from suites.semantics import variants

for _name, _new, _old in (
    ("Softmax", s.softmax, s.softmax_flattened),
    ("LogSoftmax", s.log_softmax, s.log_softmax_flattened),
    ("Hardmax", s.hardmax, s.hardmax_flattened),
):
    op(_name, _old, x="input", until=10, axis=Front("axis", default=1))
    op(_name, _old, x="input", since=11, until=12)
    op(_name, _new, x="input", since=13, **({"fixed": {"beta": 1.0}} if _name == "Softmax" else {}))

op("LpNormalization", s.lp_norm, x="input")
op("LRN", s.lrn, x="X", fixed={"scaled": True, "axis": 1})
op(
    "MeanVarianceNormalization",
    s.mean_variance_normalization,
    x="X",
    fixed={"epsilon": 1e-9, "outside": True, "divide": True},
)
# "The input 4-dimensional tensor of shape NCHW", says version 1
op("InstanceNormalization", s.instance_norm, x="input", bias="B", until=1, ranks=(4, 4))
op("InstanceNormalization", s.instance_norm, x="input", bias="B", since=6)
_GROUPS = {"x": "X", "groups": "num_groups", "stash": "stash_type"}
op("GroupNormalization", s.group_norm, until=18, fixed={"per_group": True}, **_GROUPS)
op("GroupNormalization", s.group_norm, since=21, fixed={"per_group": False}, **_GROUPS)


def _outs(d: Draw, values: dict) -> int:
    return d.pick((1, 1, 2, 3))


def _beyond(x: str, scale: str):
    """A scale whose last axis is neither 1 nor that of the input: "unidirectional broadcastable to tensor X"."""

    def make(d: Draw) -> dict:
        shape = (d.int(1, 3), d.int(2, 4))
        return {x: T(shape), scale: T((shape[-1] + d.int(1, 2),)), "axis": -1}

    return make


op(
    "LayerNormalization",
    s.layer_norm,
    x="X",
    scale="Scale",
    bias="B",
    stash="stash_type",
    fixed={"axes": None},
    outs=_outs,
    out_dtype=lambda c, i: of(c.inputs["X"]) if i == 0 else c.attr("stash_type"),
    breaks={"scale-broadcasts": _beyond("X", "Scale")},
)
op("RMSNormalization", s.rms_norm, x="X", stash="stash_type", breaks={"scale-broadcasts": _beyond("X", "scale")})

# until version 6 scale, bias, mean and variance are "1-dimensional of size C": spatial tells what a training computes
_SPATIAL = Fn(lambda c: True, lambda v, b: b.attr("spatial", int(v)))
_BATCH = {"x": "X", "scale": "scale", "bias": "B"}
_EARLY = {"mean": "mean", "var": "var", "training": variants.NotFlag("is_test"), "spatial": _SPATIAL, **_BATCH}
op("BatchNormalization", variants.batch_norm, until=1, ranks=(4, 4), **_EARLY)
op("BatchNormalization", variants.batch_norm, since=6, until=6, **_EARLY)
_INFERRED = {"mean": "mean", "var": "var", "fixed": {"training": False}}
_COLUMN = Channels("X")  # "the op also accepts single dimension input of size N in which case C is assumed to be 1"
_OR_VECTOR = {**_BATCH, "x": _COLUMN, "out": _COLUMN.like}
op("BatchNormalization", variants.batch_norm, since=7, until=8, **_INFERRED, **_BATCH)
op("BatchNormalization", variants.batch_norm, since=9, until=9, **_INFERRED, **_OR_VECTOR)
op(
    "BatchNormalization",
    variants.batch_norm,
    since=14,
    mean="input_mean",
    var="input_var",
    training="training_mode",
    outs=lambda d, v: 3 if v["training"] else 1,
    **_OR_VECTOR,
)

__all__ = ["T"]
