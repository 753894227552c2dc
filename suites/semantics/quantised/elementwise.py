"""Elementwise arithmetic on quantised tensors.

Each operator is the real function between dequantising and requantising: round(f(real(x)) / scale + zero_point),
clamped to the type.  How far an integer kernel may fall from the nearest step follows from its fixed-point multipliers
(``fixed.window``) or, where it goes through a table or a fixed-point function, is one step.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from harness.core.dtypes import of
from harness.declare import Int, semantics
from suites.semantics.quantised.fixed import (
    Array,
    Parameters,
    Quant,
    about,
    centred,
    near_or_apart,
    real,
    rounding,
    steps,
    window,
)
from suites.semantics.quantised.output import Activation, back, finish

_SPEC = "TFLite 8-bit quantization specification"


# -- two operands


def _add(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE", sign: int = 1) -> Array:
    return steps(real(x, xq) + sign * real(y, yq), oq)


def _sub(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Array:
    return _add(x, y, xq=xq, yq=yq, oq=oq, sign=-1)


def _shared(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Any:
    """Both operands are brought to a common fixed-point scale first: 20 bits below the larger one (15 for 16-bit)."""
    ratio = 2 * max(xq["scale"][0], yq["scale"][0]) / oq["scale"][0]
    return (2.0**-12 if x.dtype.itemsize == 1 else 2.0**-7) * max(1.0, ratio)


def _mul(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Array:
    return steps(real(x, xq) * real(y, yq), oq)


def _mul_window(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Any:
    """The fixed-point steps; and the multiplier is made of three f32 numbers, in a precision that is not said."""
    fixed = window(xq["scale"][0] * yq["scale"][0] / oq["scale"][0])
    return fixed + 2.0**-23 * np.abs(_mul(x, y, xq=xq, yq=yq, oq=oq) - oq["zero_point"][0])


def _product_scale(d: Any, env: dict[str, Any]) -> float:
    top = 64 if d.dtype("x").bits == 8 else 8192
    return near_or_apart(d, env["xq"]["scale"][0] * env["yq"]["scale"][0] * top * (0.2 + d.int(0, 32) / 16), env["xq"])


@semantics(error=rounding(_add, _shared), source=f"{_SPEC}, ADD")
def add(
    x: Int[Array, "*#d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x", pot=False)],
    yq: Annotated[Quant, Parameters("y", pot=False)],
    oq: Annotated[Quant, Parameters("x", scale=about("xq", "yq"), pot=False)],
    activation: Activation,
) -> Int[Array, "*#d"]:
    """Sum of the real values, requantised."""
    return finish(_add(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)


@semantics(error=rounding(_sub, _shared), source=f"{_SPEC}; TFLite SUB")
def sub(
    x: Int[Array, "*#d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x", pot=False)],
    yq: Annotated[Quant, Parameters("y", pot=False)],
    oq: Annotated[Quant, Parameters("x", scale=about("xq", "yq"), pot=False)],
    activation: Activation,
) -> Int[Array, "*#d"]:
    """Difference of the real values, requantised."""
    return finish(_sub(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)


@semantics(error=rounding(_mul, _mul_window), source=f"{_SPEC}, MUL")
def mul(
    x: Int[Array, "*#d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x")],
    yq: Annotated[Quant, Parameters("y")],
    oq: Annotated[Quant, Parameters("x", scale=_product_scale)],
    activation: Activation,
) -> Int[Array, "*#d"]:
    """Product of the real values: the integer product times one fixed-point multiplier."""
    product = centred(x, xq) * centred(y, yq)
    return back(product, xq["scale"][0] * yq["scale"][0] / oq["scale"][0], oq, of(x), activation)


def _squared(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Array:
    return steps((real(x, xq) - real(y, yq)) ** 2, oq)


def _square_scale(d: Any, env: dict[str, Any]) -> float:
    s = max(env["xq"]["scale"][0], env["yq"]["scale"][0])
    return near_or_apart(d, s * s * 128 * (0.5 + d.int(0, 32) / 16), env["xq"])


@semantics(error=rounding(_squared, 0.5), source="TFLite SQUARED_DIFFERENCE")
def squared_difference(
    x: Int[Array, "*#d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x")],
    yq: Annotated[Quant, Parameters("y")],
    oq: Annotated[Quant, Parameters("x", scale=_square_scale)],
) -> Int[Array, "*#d"]:
    """(x - y)**2 of the real values; the difference is itself a rounded fixed-point number, so one step is free."""
    return finish(_squared(x, y, xq=xq, yq=yq, oq=oq), oq, of(x))


def _div(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Array:
    with np.errstate(all="ignore"):
        return steps(real(x, xq) / real(y, yq), oq)


def _quotient_scale(d: Any, env: dict[str, Any]) -> float:
    return near_or_apart(d, env["xq"]["scale"][0] / env["yq"]["scale"][0] * (0.05 + d.int(0, 32) / 32), env["xq"])


@semantics(error=rounding(_div, 0.5), source="TFLite DIV", data={"y": ("ints:1:255", "ints:1:9")})
def div(
    x: Int[Array, "*#d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x")],
    yq: Annotated[Quant, Parameters("y")],
    oq: Annotated[Quant, Parameters("x", scale=_quotient_scale)],
    activation: Activation,
) -> Int[Array, "*#d"]:
    """Quotient of the real values; the divisor is never 0 here (the kernel refuses it)."""
    return finish(_div(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)
