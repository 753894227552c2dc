"""Draws from distributions.  Source: NeuralNetwork.proto, Random*LayerParams, CategoricalDistributionLayerParams."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Call, Checks, Draw, Fn, Sampling, T
from suites.nn import op
from suites.nn.spell import Or, sizes
from suites.semantics import random as s

_LIKE = Fn(lambda c: c.inputs["x"].shape)
_STATIC = Fn(lambda c: tuple(c.attr("outputShape")))
_KINDS: tuple[tuple[str, Any, dict[str, str]], ...] = (
    ("Normal", s.normal, {"mean": "mean", "std": "stdDev"}),
    ("Uniform", s.uniform, {"low": "minVal", "high": "maxVal"}),
    ("Bernoulli", s.bernoulli, {"p": "prob"}),
)


def _numbers(d: Draw, kind: str) -> dict[str, Any]:
    low = d.int(-8, 8) / 4
    return {
        "Normal": {"mean": low, "stdDev": d.int(1, 16) / 8},
        "Uniform": {"minVal": low, "maxVal": low + d.int(1, 16) / 4},
        "Bernoulli": {"prob": d.int(0, 8) / 8},
    }[kind]


_MAX = 3.4028234663852886e38


def _seed(d: Draw) -> int:
    """A number of 64 bits; -1 is "random" (NeuralNetworkBuilder of coremltools)."""
    return d.pick((-1, -2, -(2**31))) if d.chance(8) else d.int(0, 2**31 - 1)


def _drawn(kind: str, form: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape, out = d.shape(1), {**_numbers(d, kind), "seed": _seed(d)}
        if form == "Like":
            return {**out, "x": T(shape)}
        if form == "Static":
            return {**out, "outputShape": list(shape)}
        return {**out, "shape": T((len(shape),), values=[float(n) for n in shape])}

    return draw


def _empty(kind: str, form: str) -> Any:
    """A shape that holds nothing."""

    def draw(d: Draw) -> dict[str, Any]:
        if form == "Static":
            return {**_numbers(d, kind), "outputShape": [d.dim(1), 0]}
        return {**_numbers(d, kind), "shape": T((2,), values=[2.0, 0.0])}

    return draw


for _kind, _meaning, _names in _KINDS:
    for _form, _shape in (("Like", _LIKE), ("Static", _STATIC), ("Dynamic", sizes("shape"))):
        _breaks = {} if _form == "Like" else {"extents-positive": _empty(_kind, _form)}
        op(
            f"random{_kind}{_form}",
            _meaning,
            Sampling(_drawn(_kind, _form)),
            Checks(breaks=_breaks),
            shape=_shape,
            seed="seed",
            **_names,
        )


def _weights(c: Call) -> np.ndarray:
    """Logits divided by the temperature, or probabilities."""
    x = c.inputs["x"]
    return x / np.float32(c.attr("temperature") or 1.0) if c.attr("isLogits") else x


_ODD = (np.nan, np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-140, _MAX, -_MAX, 2.0**24 + 2)


def _odd_logits(d: Draw, shape: tuple[int, ...]) -> T:
    n = int(np.prod(shape))
    values = [float(i % 5 - 2) / 4 for i in range(n)]
    for at in d.pick(((0,), (-1,), (0, -1))):
        values[at] = d.pick(_ODD)
    if n > 2 and d.bool():
        values[1] = -0.5
        values[0] = 0.5
    return T(shape, values=values)


def _no_distribution(c: Call) -> str | None:
    """Logits of which an exponential is not a number, or a difference overflows, make no distribution."""
    with np.errstate(all="ignore"):
        return None if (np.abs(c.inputs["x"]) < 1e30).all() else "logits-without-a-distribution"


def _draw_categorical(d: Draw) -> dict[str, Any]:
    """A temperature of probabilities has no stated meaning: drawn for logits alone."""
    logits, shape = d.bool(), d.shape(1)
    odd = logits and d.chance(3)
    out: dict[str, Any] = {
        "x": _odd_logits(d, shape) if odd else T(shape, recipe="unit") if logits else s.distributions(d, shape),
        "isLogits": logits,
        "numSamples": d.int(1, 9),
        "seed": _seed(d),
        **({"eps": d.pick((1e-10, 1e-6, 0.25))} if d.chance(4) else {}),
    }
    return {**out, "temperature": d.pick((0.5, 1.0, 2.0))} if logits and d.bool() else out


_X = Fn(_weights)
op(
    "categoricalDistribution",
    s.categorical,
    Sampling(_draw_categorical),
    Checks(ambiguous=_no_distribution),
    x=_X,
    size=Or("numSamples", 1),
    logits="isLogits",
    seed="seed",
)
