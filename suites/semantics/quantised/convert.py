"""Between real numbers and quantised ones, and from one set of parameters to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Float, Int, Opaque, bounded, exact, semantics
from harness.tolerance import ulp
from suites.semantics.quantised.fixed import (
    Array,
    Quant,
    away,
    centred,
    real,
    rounding,
    saturate,
    spread,
    steps,
    window,
)
from suites.semantics.quantised.output import back

_SPEC = "TFLite 8-bit quantization specification"


def _quantize(x: Array, *, oq: Quant, dtype: Any = None) -> Array:
    return steps(np.asarray(x, np.float64), oq)


def _division(x: Array, *, oq: Quant, dtype: Any = None) -> Any:
    """The division by the scale is one f32 rounding."""
    return np.abs(np.asarray(x, np.float64)) / min(oq["scale"]) * 2.0**-22 + 2.0**-20


@semantics(
    error=rounding(_quantize, _division), source=f"{_SPEC}, QUANTIZE", data=("uniform:-8:8", "small", "wide", "ties")
)
def quantize(x: Float[Array, "*d"], *, oq: Opaque, dtype: Opaque) -> Int[Array, "*d"]:
    """round(x / scale) + zero_point, clamped; ties away from zero.  Raises RuleError "scale-per-position"."""
    scales, axis = len(oq["scale"]), oq.get("axis", 0)
    if scales > 1 and dict(enumerate(x.shape)).get(axis) != scales:
        raise RuleError("scale-per-position", f"{scales} scales for axis {axis} of {list(x.shape)}")
    with np.errstate(all="ignore"):
        return saturate(away(np.asarray(x, np.float64) / _wide(oq, x)) + _zero(oq, x), dtype)


def _wide(q: Quant, x: Array) -> Array:
    return spread(q["scale"], q, x.ndim)


def _zero(q: Quant, x: Array) -> Array:
    return spread(q["zero_point"], q, x.ndim)


def _requantize(x: Array, *, xq: Quant, oq: Quant, dtype: Any = None) -> Array:
    return steps(real(x, xq), oq)


def _requantize_window(x: Array, *, xq: Quant, oq: Quant, dtype: Any = None) -> Any:
    return window(xq["scale"][0] / oq["scale"][0])


@semantics(error=rounding(_requantize, _requantize_window), source=f"{_SPEC}, REQUANTIZE", data=("full", "small"))
def requantize(x: Int[Array, "*d"], *, xq: Opaque, oq: Opaque, dtype: Opaque) -> Int[Array, "*d"]:
    """The same real values under other parameters."""
    return back(centred(x, xq), xq["scale"][0] / oq["scale"][0], oq, dtype)


def _subtraction(ctx: Any) -> Array:
    """1.5 ulp of scale * (|x| + |zero_point|): scale * x - scale * zero_point is the same number, rounded thrice"""
    x, q = ctx.inputs["x"], ctx.params["xq"]
    s, z = spread(q["scale"], q, x.ndim), spread(q["zero_point"], q, x.ndim)
    return 1.5 * ulp(s * (np.abs(x.astype(np.float64)) + np.abs(z)), ctx.out)


@semantics(error=bounded(_subtraction), source=f"{_SPEC}, DEQUANTIZE", data=("full", "small"))
def dequantize(x: Int[Array, "*d"], *, xq: Opaque) -> Float[Array, "*d"]:
    """scale * (x - zero_point)."""
    return real(x, xq)


@semantics(error=exact, source="TFLite DEQUANTIZE of float16: every half is a float")
def widen(x: Float[Array, "*d"]) -> Float[Array, "*d"]:
    """The same numbers in f32."""
    return x.astype(np.float32)
