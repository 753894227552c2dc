"""Elementwise arithmetic on quantised tensors.

Each operator is the real function between dequantising and requantising: round(f(real(x)) / scale + zero_point),
clamped to the type.  How far an integer kernel may fall from the nearest step follows from its fixed-point multipliers
(``fixed.window``) or, where it goes through a table or a fixed-point function, is one step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.spec import Choice, Float, Int, Opaque, Real, Semantics, T, bounded, exact, semantics
from harness.spec.errors import ulp
from suites.semantics.quantised.fixed import (
    Array,
    Parameters,
    Quant,
    about,
    away,
    centred,
    draw_parameters,
    multiply,
    real,
    rounding,
    saturate,
    spread,
    steps,
    window,
    within,
)  # fmt: skip

_SPEC = "TFLite 8-bit quantization specification"
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")


def clamp_range(q: Quant, dtype: Any, activation: str) -> tuple[int, int]:
    """Steps that a fused activation leaves: the real limits, quantised."""
    lo, hi = int_range(dtype)
    s, z = q["scale"][0], q["zero_point"][0]

    def at(r: float) -> int:
        return int(z + away(np.float64(r / s)))

    if activation in ("RELU", "RELU6"):
        lo = max(lo, at(0.0))
    if activation == "RELU_N1_TO_1":
        lo = max(lo, at(-1.0))
    if activation == "RELU6":
        hi = min(hi, at(6.0))
    if activation == "RELU_N1_TO_1":
        hi = min(hi, at(1.0))
    return lo, hi


def finish(r: Array, q: Quant, dtype: Any, activation: str = "NONE") -> Array:
    """Steps -> integers of the type, the activation's limits applied."""
    lo, hi = clamp_range(q, dtype, activation)
    return np.clip(saturate(away(r), dtype), lo, hi).astype(dtype.np) if lo <= hi else saturate(away(r), dtype)


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
    return window(xq["scale"][0] * yq["scale"][0] / oq["scale"][0])


def _product_scale(d: Any, env: dict[str, Any]) -> float:
    top = 64 if d.dtype("x").bits == 8 else 8192
    return env["xq"]["scale"][0] * env["yq"]["scale"][0] * top * (0.2 + d.int(0, 32) / 16)


@semantics(error=rounding(_add, _shared), source=f"{_SPEC}, ADD")
def add(
    x: Int["*#d"],
    y: Int["*#d"],
    *,
    xq: Parameters("x", pot=False),
    yq: Parameters("y", pot=False),
    oq: Parameters("x", scale=about("xq", "yq"), pot=False),
    activation: Choice(*ACTIVATIONS),
) -> Int["*#d"]:
    """Sum of the real values, requantised."""
    return finish(_add(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)


@semantics(error=rounding(_sub, _shared), source=f"{_SPEC}; TFLite SUB")
def sub(
    x: Int["*#d"],
    y: Int["*#d"],
    *,
    xq: Parameters("x", pot=False),
    yq: Parameters("y", pot=False),
    oq: Parameters("x", scale=about("xq", "yq"), pot=False),
    activation: Choice(*ACTIVATIONS),
) -> Int["*#d"]:
    """Difference of the real values, requantised."""
    return finish(_sub(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)


@semantics(error=rounding(_mul, _mul_window), source=f"{_SPEC}, MUL")
def mul(x: Int["*#d"], y: Int["*#d"], *, xq: Parameters("x"), yq: Parameters("y"),
        oq: Parameters("x", scale=_product_scale), activation: Choice(*ACTIVATIONS)) -> Int["*#d"]:  # fmt: skip
    """Product of the real values: the integer product times one fixed-point multiplier."""
    product = centred(x, xq) * centred(y, yq)
    scale = xq["scale"][0] * yq["scale"][0] / oq["scale"][0]
    return finish(multiply(product, scale) + float(oq["zero_point"][0]), oq, of(x), activation)


def _squared(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Array:
    return steps((real(x, xq) - real(y, yq)) ** 2, oq)


def _square_scale(d: Any, env: dict[str, Any]) -> float:
    s = max(env["xq"]["scale"][0], env["yq"]["scale"][0])
    return s * s * 128 * (0.5 + d.int(0, 32) / 16)


@semantics(error=rounding(_squared, 0.5), source="TFLite SQUARED_DIFFERENCE")
def squared_difference(x: Int["*#d"], y: Int["*#d"], *, xq: Parameters("x"), yq: Parameters("y"),
                       oq: Parameters("x", scale=_square_scale)) -> Int["*#d"]:  # fmt: skip
    """(x - y)**2 of the real values; the difference is itself a rounded fixed-point number, so one step is free."""
    return finish(_squared(x, y, xq=xq, yq=yq, oq=oq), oq, of(x))


def _div(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant, activation: str = "NONE") -> Array:
    with np.errstate(all="ignore"):
        return steps(real(x, xq) / real(y, yq), oq)


def _quotient_scale(d: Any, env: dict[str, Any]) -> float:
    return env["xq"]["scale"][0] / env["yq"]["scale"][0] * (0.05 + d.int(0, 32) / 32)


@semantics(error=rounding(_div, 0.5), source="TFLite DIV", data={"y": ("ints:1:255", "ints:1:9")})
def div(x: Int["*#d"], y: Int["*#d"], *, xq: Parameters("x"), yq: Parameters("y", zero="low"),
        oq: Parameters("x", scale=_quotient_scale), activation: Choice(*ACTIVATIONS)) -> Int["*#d"]:  # fmt: skip
    """Quotient of the real values; the divisor is never 0 here (the kernel refuses it)."""
    return finish(_div(x, y, xq=xq, yq=yq, oq=oq), oq, of(x), activation)


# -- one operand


_UNARY = {
    "logistic": lambda r: 1 / (1 + np.exp(-r)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda r: 1 / np.sqrt(r),
    "elu": lambda r: np.where(r < 0, np.expm1(r), r),
    "hard_swish": lambda r: r * np.clip(r + 3, 0, 6) / 6,
    "abs": np.abs,
    "relu": lambda r: np.maximum(r, 0),
    "relu6": lambda r: np.clip(r, 0, 6),
    "relu_n1_to_1": lambda r: np.clip(r, -1, 1),
    "relu_0_to_1": lambda r: np.clip(r, 0, 1),
    "identity": lambda r: r,
}


def _ratio(x: Array, *, xq: Quant, oq: Quant) -> Any:
    return window(xq["scale"][0] / oq["scale"][0])


def curvature(fn: Any, x: Array, xq: Quant, oq: Quant) -> Array:
    """Error of linear interpolation in a table of 513 points over the 16-bit range (spacing 128 steps), in output
    steps:
    the second difference over twice the spacing bounds h**2 / 8 * max|f''|, one step more for the table's rounding."""
    r, h = real(x, xq), 128 * xq["scale"][0]

    def entry(at: Array) -> Array:  # the table itself holds clamped steps
        return np.clip(fn(at) / oq["scale"][0], -32768, 32767)

    with np.errstate(all="ignore"):
        mid = np.abs(entry(r - h) - 2 * entry(r) + entry(r + h))
    return np.nan_to_num(mid, nan=np.inf) + 1.0


def unary(
    name: str,
    *,
    oq: Parameters,
    xq: Parameters | None = None,
    tie: Any = 2.0**-10,
    free: float = 0,
    table: bool = False,
    free16: float = 0,
    draw: Any = None,
    source: str = _SPEC,
    data: Any = ("full", "full", "small"),
) -> Semantics:
    """The quantised form of a real function.  tie: multiplier window.  free: further steps that are free.  table:
    16-bit tensors go through an interpolated table; free16: what they have on top."""
    fn = _UNARY[name]

    def unrounded(x: Array, *, xq: Quant, oq: Quant) -> Array:
        with np.errstate(all="ignore"):
            return steps(fn(real(x, xq)), oq)

    def body(x, *, xq, oq):  # type: ignore[no-untyped-def]
        return finish(unrounded(x, xq=xq, oq=oq), oq, of(x))

    def freedom(x: Array, *, xq: Quant, oq: Quant) -> Any:
        if x.dtype.itemsize == 2 and table:
            return curvature(fn, x, xq, oq) + free16
        return (tie(x, xq=xq, oq=oq) if callable(tie) else tie) + free

    body.__name__ = f"quantised_{name}"
    body.__doc__ = f"{name} of the real values, requantised."
    body.__annotations__ = {"x": Int["*d"], "xq": xq or Parameters("x"), "oq": oq, "return": Int["*d"]}
    text = f"|steps - real result in steps| <= 0.5 + {'the multiplier window' if callable(tie) else f'{tie + free:g}'}"
    if table:
        text += ", 16 bits: + interpolation in 513 points"
    return semantics(error=within(unrounded, freedom, text), source=source, draw=draw, data=data)(body)


def _positive(d: Any, least: int) -> dict[str, Any]:
    """Operands whose real value is not below ``least`` steps."""
    dt = d.dtype("x")
    xq = draw_parameters(d, dt, zero="low")
    z, (_, hi) = xq["zero_point"][0], int_range(dt)
    return {"x": T(d.shape(), f"ints:{z + least}:{hi}"), "xq": xq}


def _draw_sqrt(d: Any) -> dict[str, Any]:
    v = _positive(d, 0)
    top = float(np.sqrt(v["xq"]["scale"][0] * 2 ** d.dtype("x").bits)) / 2 ** d.dtype("x").bits
    return {**v, "oq": draw_parameters(d, d.dtype("x"), scale=top * (1 + d.int(0, 16) / 8))}


def _draw_rsqrt(d: Any) -> dict[str, Any]:
    v = _positive(d, 1)
    top = 1 / float(np.sqrt(v["xq"]["scale"][0])) / 2 ** d.dtype("x").bits
    return {**v, "oq": draw_parameters(d, d.dtype("x"), scale=top * (0.3 + d.int(0, 16) / 8))}


def _fixed_output(bits8: tuple[float, str], bits16: float) -> Parameters:
    """Operators whose output parameters the specification fixes, per width."""

    class Fixed(Parameters):
        def draw(self, d: Any, env: dict[str, Any]) -> Quant:
            dt = d.dtype("x")
            if dt.bits == 16:
                return {"scale": [bits16], "zero_point": [0], "axis": 0}
            lo, hi = int_range(dt)
            return {"scale": [bits8[0]], "zero_point": [lo if bits8[1] == "low" else (lo + hi + 1) // 2], "axis": 0}

    return Fixed("x")


_UNIT = _fixed_output((1 / 256, "low"), 1 / 32768)  # [0, 1)
_SIGNED_UNIT = _fixed_output((1 / 128, "mid"), 1 / 32768)  # [-1, 1)
_SMALL = Parameters("x", scale=lambda d, env: d.pick((0.01, 0.03, 0.05, 0.1)) / (1 if d.dtype("x").bits == 8 else 256))

logistic = unary(
    "logistic",
    oq=_UNIT,
    xq=_SMALL,
    table=True,
    free16=3,
    source=f"{_SPEC}, LOGISTIC: output scale 1/256, zero point lowest",
)
tanh = unary(
    "tanh",
    oq=_SIGNED_UNIT,
    xq=_SMALL,
    table=True,
    free16=3,
    source=f"{_SPEC}, TANH: output scale 1/128, zero point middle",
)
exp = unary("exp", table=True, oq=Parameters("x", scale=lambda d, env: d.pick((0.01, 0.05, 0.2))), xq=_SMALL)
log = unary(
    "log", table=True, oq=Parameters("x", scale=lambda d, env: d.pick((0.02, 0.05))), xq=Parameters("x", zero="low")
)
sqrt = unary("sqrt", table=True, oq=Parameters("x"), draw=_draw_sqrt, source="TFLite SQRT")
rsqrt = unary("rsqrt", table=True, oq=Parameters("x"), draw=_draw_rsqrt, source="TFLite RSQRT")
elu = unary("elu", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), xq=_SMALL, source="TFLite ELU")
hard_swish = unary(
    "hard_swish",
    oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)),
    xq=_SMALL,
    free=1,
    source="TFLite HARD_SWISH",
)
absolute = unary("abs", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), tie=_ratio, source="TFLite ABS")
relu = unary("relu", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), tie=_ratio, source="TFLite RELU")
relu6 = unary("relu6", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), tie=_ratio, source="TFLite RELU6")
relu_n1_to_1 = unary(
    "relu_n1_to_1", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), tie=_ratio, source="TFLite"
)
relu_0_to_1 = unary(
    "relu_0_to_1", oq=Parameters("x", scale=about("xq", low=0.5, high=1.5)), tie=_ratio, source="TFLite"
)


def gelu_real(r: Array, approximate: bool) -> Array:
    """x * Phi(x), or its tanh approximation."""
    import native_ref

    if approximate:
        return 0.5 * r * (1 + np.tanh(np.sqrt(2 / np.pi) * (r + 0.044715 * r**3)))
    return 0.5 * r * (1 + native_ref.unary("erf", r / np.sqrt(2.0)))


def _gelu_steps(x: Array, *, xq: Quant, oq: Quant, approximate: bool) -> Array:
    return steps(gelu_real(real(x, xq), approximate), oq)


@semantics(error=rounding(_gelu_steps, 2.0**-10), source="TFLite GELU", data=("full", "small"))
def gelu(
    x: Int["*d"], *, xq: _SMALL, oq: Parameters("x", scale=about("xq", low=0.5, high=1.5)), approximate: Opaque
) -> Int["*d"]:
    """GELU of the real values, requantised."""
    return finish(_gelu_steps(x, xq=xq, oq=oq, approximate=approximate), oq, of(x))


def _leaky(x: Array, *, xq: Quant, oq: Quant, alpha: float) -> Array:
    r = real(x, xq)
    return steps(np.where(r >= 0, r, np.float32(alpha) * r), oq)


def _leaky_window(x: Array, *, xq: Quant, oq: Quant, alpha: float) -> Any:
    ratio = xq["scale"][0] / oq["scale"][0]
    return max(float(window(ratio)), float(window(max(abs(ratio * alpha), 1e-9))))


@semantics(error=rounding(_leaky, _leaky_window), source="TFLite LEAKY_RELU", data=("full", "small"))
def leaky_relu(x: Int["*d"], *, xq: Parameters("x"), oq: Parameters("x", scale=about("xq", low=0.5, high=1.5)),
               alpha: Real(0.0, 1.0, (0.1, 0.01, 0.5))) -> Int["*d"]:  # fmt: skip
    """x where it is not negative, else alpha * x, on the real values."""
    return finish(_leaky(x, xq=xq, oq=oq, alpha=alpha), oq, of(x))


def _prelu(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Array:
    r = real(x, xq)
    return steps(np.where(r >= 0, r, r * real(y, yq)), oq)


def _prelu_window(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Any:
    ratio = xq["scale"][0] / oq["scale"][0]
    return max(float(window(ratio)), float(window(ratio * yq["scale"][0])))


def _draw_prelu(d: Any) -> dict[str, Any]:
    shape = d.shape(1)
    xq = draw_parameters(d, d.dtype("x"))
    yq = draw_parameters(d, d.dtype("y"), scale=d.pick((0.01, 0.03, 0.1)))
    oq = draw_parameters(d, d.dtype("x"), scale=xq["scale"][0] * (0.5 + d.int(0, 32) / 32))
    return {"x": T(shape), "y": T(d.broadcast_from(shape)), "xq": xq, "yq": yq, "oq": oq}


@semantics(draw=_draw_prelu, error=rounding(_prelu, _prelu_window), source="TFLite PRELU", data=("full", "small"))
def prelu(x: Int["*#d"], y: Int["*#d"], *, xq: Parameters("x"), yq: _SMALL,
          oq: Parameters("x", scale=about("xq", low=0.5, high=1.5))) -> Int["*#d"]:  # fmt: skip
    """x where it is not negative, else x times the slope y, on the real values."""
    return finish(_prelu(x, y, xq=xq, yq=yq, oq=oq), oq, of(x))


# -- to and from integers


def _quantize(x: Array, *, oq: Quant, dtype: Any = None) -> Array:
    return steps(np.asarray(x, np.float64), oq)


def _division(x: Array, *, oq: Quant, dtype: Any = None) -> Any:
    """The division by the scale is one f32 rounding."""
    return np.abs(np.asarray(x, np.float64)) / min(oq["scale"]) * 2.0**-22 + 2.0**-20


@semantics(
    error=rounding(_quantize, _division), source=f"{_SPEC}, QUANTIZE", data=("uniform:-8:8", "small", "wide", "ties")
)
def quantize(x: Float["*d"], *, oq: Opaque, dtype: Opaque) -> Int["*d"]:
    """round(x / scale) + zero_point, clamped; ties away from zero."""
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
def requantize(x: Int["*d"], *, xq: Opaque, oq: Opaque, dtype: Opaque) -> Int["*d"]:
    """The same real values under other parameters."""
    return saturate(multiply(centred(x, xq), xq["scale"][0] / oq["scale"][0]) + float(oq["zero_point"][0]), dtype)





def _subtraction(ctx: Any) -> Array:
    """1 ulp of scale * (|x| + |zero_point|): scale * x - scale * zero_point is the same real number"""
    x, q = ctx.inputs["x"], ctx.params["xq"]
    s, z = spread(q["scale"], q, x.ndim), spread(q["zero_point"], q, x.ndim)
    return ulp(s * (np.abs(x.astype(np.float64)) + np.abs(z)), ctx.out)


@semantics(error=bounded(_subtraction), source=f"{_SPEC}, DEQUANTIZE", data=("full", "small"))
def dequantize(x: Int["*d"], *, xq: Opaque) -> Float["*d"]:
    """scale * (x - zero_point)."""
    return real(x, xq)


@semantics(error=exact, source="TFLite DEQUANTIZE of float16: every half is a float")
def widen(x: Float["*d"]) -> Float["*d"]:
    """The same numbers in f32."""
    return x.astype(np.float32)
