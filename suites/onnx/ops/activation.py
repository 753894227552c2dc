"""Activations and the other functions of one tensor."""

from __future__ import annotations

from math import inf

from harness.spec import Draw, T
from suites.onnx import op
from suites.onnx.schemas import first_slot
from suites.onnx.codecs import Default
from suites.semantics import elementwise as s
from suites.semantics import variants

for _name, _fn in {
    "Abs": s.abs, "Acos": s.acos, "Acosh": s.acosh, "Asin": s.asin, "Asinh": s.asinh, "Atan": s.atan, "Atanh": s.atanh,
    "Ceil": s.ceil, "Cos": s.cos, "Cosh": s.cosh, "Exp": s.exp, "Floor": s.floor, "Log": s.log, "Neg": s.neg,
    "Reciprocal": s.reciprocal, "Relu": s.relu, "Sigmoid": s.sigmoid, "Sin": s.sin, "Sinh": s.sinh, "Softplus": s.softplus,
    "Softsign": s.softsign, "Sqrt": s.sqrt, "Tan": s.tan, "Mish": s.mish, "HardSwish": s.hard_swish,
    "HardSigmoid": s.hard_sigmoid, "Elu": s.elu, "Selu": s.selu, "LeakyRelu": s.leaky_relu, "ThresholdedRelu": s.thresholded_relu,
    "Celu": s.celu, "Round": s.round_half_even, "Swish": s.swish, "Sign": s.sign, "Erf": s.erf, "Tanh": s.tanh,
    "Shrink": s.shrink, "IsNaN": s.is_nan, "Not": s.logical_not, "BitwiseNot": s.bitwise_not,
}.items():  # fmt: skip
    op(_name, _fn, x=first_slot(_name))

op("Clip", s.clamp, until=5, x="input", lo=Default("min", -inf), hi=Default("max", inf))
op("Clip", s.clamp, since=6, until=10, x="input", lo="min", hi="max")
op("Clip", s.clip, since=11, x="input", lo="min", hi="max")


def _slopes(d: Draw) -> dict:
    """Versions 1 and 6: one slope for all, or one a channel."""
    shape = (d.dim(), d.dim(1), *d.shape(0, 3))
    return {"X": T(shape), "slope": T((shape[1] if d.bool() else 1,))}


op("PRelu", s.prelu_channels, until=6, x="X", alpha="slope", draw=_slopes)
op("PRelu", s.prelu, since=7, x="X", slope="slope")

op("Gelu", variants.gelu, x="X")
