"""The way out: real steps and integer accumulators become integers of the output type, a fused activation applied."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

import native_ref as native
from harness.core.dtypes import DType, int_range
from harness.declare import Draw
from harness.declare.params import Choice
from suites.semantics.quantised.fixed import CURVES, LIMITS, Array, Quant, away, curved, saturate

# those that limit nothing come seldom: kernels know little of them
_DRAWN = (*("NONE", "NONE", *LIMITS) * 4, *CURVES)


def draw_activation(d: Draw, integers: bool = False) -> str:
    """A value of ``fused_activation_function``.  integers: of a result of integers, of which there is no tanh."""
    drawn = d.pick(_DRAWN)
    return d.pick(tuple(LIMITS)) if integers and drawn == "TANH" else drawn


class Fused(Choice):
    """A fused activation, of those that ``TFL_AFAttr`` of the tfl dialect admits."""

    def draw(self, d: Draw, env: dict[str, Any]) -> str:
        return draw_activation(d)


Activation = Annotated[str, Fused("NONE", *LIMITS, *CURVES)]


def clamp_range(q: Quant, dtype: Any, activation: str) -> tuple[int, int]:
    """Steps that a fused activation leaves: the real limits, quantised."""
    lo, hi = int_range(dtype)
    s, z = q["scale"][0], q["zero_point"][0]

    def at(r: float) -> int:
        return int(z + away(np.asarray(r / s)))

    least, most = LIMITS.get(activation, (-np.inf, np.inf))
    return max(lo, at(least)) if least > -np.inf else lo, min(hi, at(most)) if most < np.inf else hi


def finish(r: Array, q: Quant, dtype: Any, activation: str = "NONE") -> Array:
    """Steps -> integers of the type, the activation applied."""
    r = curved(r, {"oq": q, "activation": activation})
    lo, hi = clamp_range(q, dtype, activation)
    return np.clip(saturate(away(r), dtype), lo, hi).astype(dtype.np) if lo <= hi else saturate(away(r), dtype)


def back(
    acc: Array, scale: Array | float, q: Quant, dtype: DType, activation: str = "NONE", wide: bool = False
) -> Array:
    """Accumulator -> integers of the type, by one fixed-point multiplication (``native_ref.requantise``).

    An activation that limits nothing is applied to the real result.

    wide: a 64-bit accumulator, as kernels with 16-bit activations have it."""
    if activation in CURVES:
        return finish(acc * scale + q["zero_point"][0], q, dtype, activation)
    lo, hi = clamp_range(q, dtype, activation)
    if lo > hi:
        lo, hi = int_range(dtype)
    return native.requantise(acc, scale, int(q["zero_point"][0]), (lo, hi), dtype, wide)
