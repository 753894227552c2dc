"""Elementwise layers.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

from suites.nn import op
from suites.nn.spell import Or
from suites.semantics import coreml
from suites.semantics.elementwise import math as m

op("ceil", m.ceil)
op("floor", m.floor)
op("sign", m.sign)
op("round", m.round_half_even)
op("exp2", m.exp2)
op("sin", m.sin)
op("cos", m.cos)
op("tan", m.tan)
op("asin", m.asin)
op("acos", m.acos)
op("atan", m.atan)
op("sinh", m.sinh)
op("cosh", m.cosh)
op("tanh", m.tanh)
op("asinh", m.asinh)
op("acosh", m.acosh)
op("atanh", m.atanh)
op("erf", m.erf)

_UNARY: dict[str, Any] = {"epsilon": Or("epsilon", 1e-6), "scale": Or("scale", 1.0)}
_POSITIVE = ("positive", "prob", "special", "small")
op("unary.SQRT", coreml.shifted, fixed={"function": "sqrt"}, data=_POSITIVE, **_UNARY)
op("unary.RSQRT", coreml.shifted, fixed={"function": "rsqrt"}, data=_POSITIVE, **_UNARY)
op("unary.INVERSE", coreml.shifted, fixed={"function": "inverse"}, **_UNARY)
op("unary.POWER", coreml.shifted, fixed={"function": "power"}, data=_POSITIVE, **_UNARY)
op("unary.EXP", coreml.shifted, fixed={"function": "exp"}, **_UNARY)
op("unary.LOG", coreml.shifted, fixed={"function": "log"}, data=_POSITIVE, **_UNARY)
op("unary.ABS", coreml.shifted, fixed={"function": "abs"}, **_UNARY)
op("unary.THRESHOLD", coreml.shifted, fixed={"function": "threshold"}, **_UNARY)
