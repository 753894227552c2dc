"""Activations of the ``activation`` layer, and the layers that are activations.

Source: NeuralNetwork.proto, Activation* and ClampedReLULayerParams, GeluLayerParams.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, underspecified
from suites.nn import op
from suites.semantics.elementwise import activation as s
from suites.semantics.elementwise import math


def infinite(c: Call) -> str | None:
    """The printed formula meets inf / inf or 0 * inf there; its limit is finite."""
    return underspecified("formula-at-infinity", np.isinf(c.inputs["x"]), np.float32(np.nan))


op("activation.linear", s.linear_activation)
op("activation.ReLU", s.relu)
op("activation.leakyReLU", s.leaky_relu)
op("activation.thresholdedReLU", s.thresholded_relu_inclusive)
op("activation.tanh", math.tanh)
op("activation.scaledTanh", s.scaled_tanh)
op("activation.sigmoid", s.sigmoid)
op("activation.sigmoidHard", s.hard_sigmoid)
op("activation.ELU", s.elu)
op("activation.softsign", s.softsign, Checks(ambiguous=infinite))
op("activation.softplus", s.softplus)
op("clampedReLU", s.clamped_relu)


# -- weights per channel, axis -3: seen as [batch, C, space]


def _channels(name: str) -> Fn:
    def read(c: Call) -> np.ndarray:
        x, v = c.inputs["x"], c.inputs[name]
        if x.ndim < 3:
            raise RuleError("rank-at-least-3", f"rank {x.ndim}")
        n = x.shape[-3]
        if v.size not in (1, n):
            raise RuleError("one-or-per-channel", f"{v.size} values for {n} channels")
        return np.broadcast_to(v.reshape(-1), (n,))

    return Fn(read)


def _image(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    return x.reshape(-1, x.shape[-3], x.shape[-2] * x.shape[-1]) if x.ndim >= 3 else x


def _back(c: Call, results: list[Any]) -> list[Any]:
    return [results[0].reshape(c.inputs["x"].shape)]


def _draw(*names: str) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(3) if not d.chance(16) else (d.pick((16, 130, 257)), 1, 2)
        return {"x": T(shape), **{n: T((d.pick((1, shape[-3])),), const=True) for n in names}}

    return draw


def _breaks(*names: str) -> dict[str, Any]:
    def wrong(d: Draw) -> dict[str, Any]:
        shape = d.shape(3)
        return {"x": T(shape), **{n: T((shape[-3] + 2,), const=True) for n in names}}

    def flat(d: Draw) -> dict[str, Any]:
        return {"x": T(d.shape(1, 2)), **{n: T((1,), const=True) for n in names}}

    return {"one-or-per-channel": wrong, "rank-at-least-3": flat}


_X = Fn(_image)
op(
    "activation.PReLU",
    s.prelu_channels,
    Spelling(x=_X, alpha=_channels("alpha"), out=_back),
    Sampling(_draw("alpha")),
    Checks(breaks=_breaks("alpha")),
)
op(
    "activation.parametricSoftplus",
    s.softplus_parametric,
    Spelling(x=_X, alpha=_channels("alpha"), beta=_channels("beta"), out=_back),
    Sampling(_draw("alpha", "beta")),
    Checks(breaks=_breaks("alpha", "beta")),
)

op("gelu.EXACT", s.gelu_exact, Checks(ambiguous=infinite))
op("gelu.TANH_APPROXIMATION", s.gelu_tanh, Checks(ambiguous=infinite))
op("gelu.SIGMOID_APPROXIMATION", s.gelu_sigmoid, Checks(ambiguous=infinite))
