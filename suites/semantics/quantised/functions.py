"""Real functions of one quantised operand: tables, square roots, activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.core.errors import RuleError
from harness.declare import Int, Opaque, Real, Semantics, T, semantics
from suites.semantics.quantised.fixed import (
    Array,
    Parameters,
    Quant,
    about,
    away,
    draw_parameters,
    near_or_apart,
    real,
    rounding,
    steps,
    window,
    within_one_of,
)
from suites.semantics.quantised.output import finish

_SPEC = "TFLite 8-bit quantization specification"

_UNARY: dict[str, Callable[[Array], Array]] = {
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


_F32 = np.float32
# what the table holds where the function has no value: saturated steps
_SATURATED = {"log": -32768, "rsqrt": 32767}


def table(name: str, xq: Quant, oq: Quant) -> Array:
    """513 entries of a function of 16-bit tensors, spread evenly over the operand's range; the last one for the slope.

    Each is the rounded function, moved by half of what interpolation is off in the middle of the interval after it; f32
    arithmetic.  Source: LiteRT, kernels/internal/common.h, LUTPopulate (the only text that says how these operators
    compute: EXP, LOG and RSQRT of 16 bits)."""
    fn, s, o = _UNARY[name], _F32(xq["scale"][0]), _F32(oq["scale"][0])
    low, high = s * _F32(-32768), s * _F32(32767)
    step = (high - low) / _F32(512)
    per = _F32(65536) / (o * _F32(32767) - o * _F32(-32768))

    def at(x: Array) -> Array:
        with np.errstate(all="ignore"):
            y = np.asarray(fn(x), np.float32)
        return np.where(x > 0, y, _F32(_SATURATED[name]) * o) if name in _SATURATED else y

    x = low + np.arange(512).astype(np.float32) * step
    ends, nexts = at(x) * per, at(low + np.arange(1, 513).astype(np.float32) * step) * per
    middle = away(at(x + step / _F32(2)) * per)
    gap = away((nexts + away(ends)) / _F32(2)) - middle
    entries = np.append(away(ends) - away(gap / _F32(2)), away(at(np.asarray([high], np.float32)) * per))
    return np.clip(np.nan_to_num(entries, nan=0.0), -32768, 32767).astype(np.int64)


def looked_up(name: str, x: Array, xq: Quant, oq: Quant) -> Array:
    """Steps between two entries of ``table``: the slope has 7 fraction bits.  Source: LUTLookup, as above."""
    entries, at = table(name, xq, oq), np.asarray(x, np.int64)
    index, offset = 256 + (at >> 7), at & 127
    return np.asarray(entries[index] + ((entries[index + 1] - entries[index]) * offset + 64 >> 7), np.float64)


def unary(
    name: str,
    *,
    oq: Parameters,
    xq: Parameters | None = None,
    tie: Any = 2.0**-10,
    free: float = 0,
    table: bool = False,
    free16: float | None = None,
    draw: Any = None,
    source: str = _SPEC,
    data: Any = ("full", "full", "small"),
) -> Semantics:
    """The quantised form of a real function.  tie: multiplier window.  free: further steps that are free; free16: those
    of 16-bit tensors.  table: 16-bit tensors may go through an interpolated table instead."""
    fn = _UNARY[name]

    def unrounded(x: Array, *, xq: Quant, oq: Quant) -> Array:
        with np.errstate(all="ignore"):
            return steps(fn(real(x, xq)), oq)

    def body(x: Array, *, xq: Quant, oq: Quant) -> Array:
        return finish(unrounded(x, xq=xq, oq=oq), oq, of(x))

    def freedom(x: Array, *, xq: Quant, oq: Quant) -> Any:
        more = free16 if free16 is not None and x.dtype.itemsize == 2 else free
        return (tie(x, xq=xq, oq=oq) if callable(tie) else tie) + more

    def by_table(x: Array, *, xq: Quant, oq: Quant) -> Array:
        x = np.asarray(x)
        return looked_up(name, x, xq, oq) if x.dtype.itemsize == 2 else unrounded(x, xq=xq, oq=oq)

    def one_step(x: Array, *, xq: Quant, oq: Quant) -> Any:
        """Entries may be rounded another way by another libm."""
        return 1.0 if np.asarray(x).dtype.itemsize == 2 else freedom(x, xq=xq, oq=oq)

    body.__name__ = f"quantised_{name}"
    body.__doc__ = f"{name} of the real values, requantised."
    body.__annotations__ = {"x": Int[Array, "*d"], "xq": xq or Parameters("x"), "oq": oq, "return": Int[Array, "*d"]}
    text = f"|steps - real result in steps| <= 0.5 + {'the multiplier window' if callable(tie) else f'{tie + free:g}'}"
    if free16 is not None:
        text += f"; 16 bits: {0.5 + free16:g}"
    if table:
        text += "; 16 bits: or 1 from a table of 513 points"
    readings = ((unrounded, freedom), (by_table, one_step))
    return semantics(error=within_one_of(*readings[: 1 + table], what=text), source=source, draw=draw, data=data)(body)


def _positive(d: Any, least: int) -> dict[str, Any]:
    """Operands whose real value is not below ``least`` steps, one time in four at least 0; the zero point is the lowest
    number, or one time in three any."""
    dt = d.dtype("x")
    xq = draw_parameters(d, dt, zero=None if d.chance(3) else "low")
    z, (_, hi) = xq["zero_point"][0], int_range(dt)
    low = z if d.chance(4) else min(z + least, hi)
    return {"x": T(d.shape(), f"ints:{low}:{hi}"), "xq": xq}


def _draw_sqrt(d: Any) -> dict[str, Any]:
    v = _positive(d, 0)
    top = float(np.sqrt(v["xq"]["scale"][0] * 2 ** d.dtype("x").bits)) / 2 ** d.dtype("x").bits
    return {**v, "oq": draw_parameters(d, d.dtype("x"), scale=near_or_apart(d, top * (1 + d.int(0, 16) / 8), v["xq"]))}


def _draw_rsqrt(d: Any) -> dict[str, Any]:
    v = _positive(d, 1)
    top = 1 / float(np.sqrt(v["xq"]["scale"][0])) / 2 ** d.dtype("x").bits
    return {
        **v,
        "oq": draw_parameters(d, d.dtype("x"), scale=near_or_apart(d, top * (0.3 + d.int(0, 16) / 8), v["xq"])),
    }


def _draw_log(d: Any) -> dict[str, Any]:
    v = _positive(d, 0)
    if d.bool():
        v |= {"x": T(d.shape(), d.pick(("full", "small"))), "xq": draw_parameters(d, d.dtype("x"), zero="low")}
    return {**v, "oq": draw_parameters(d, d.dtype("x"), scale=near_or_apart(d, d.pick((0.02, 0.05)), v["xq"]))}


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

# Of 16 bits, these two come from 256 entries at a distance of 1/24 of the logistic function.  In steps of 2**-15, that
# is off by 0.7 between entries (24**-2 / 8 times the largest second derivative), by 0.25 for the entry's own rounding,
# 0.3 for the position's and 0.2 for that of its multiplier (15 bits): 1.5 in all, and twice that for tanh(x), which is
# 2 logistic(2 x) - 1.  Source: LiteRT, kernels/internal/common.h, sigmoid_table_uint16.
logistic = unary(
    "logistic",
    oq=_UNIT,
    xq=_SMALL,
    free16=1.5,
    source=f"{_SPEC}, LOGISTIC: output scale 1/256, zero point lowest",
)
tanh = unary(
    "tanh",
    oq=_SIGNED_UNIT,
    xq=_SMALL,
    free16=3.0,
    source=f"{_SPEC}, TANH: output scale 1/128, zero point middle",
)
exp = unary("exp", table=True, oq=Parameters("x", scale=lambda d, env: d.pick((0.01, 0.05, 0.2))), xq=_SMALL)
log = unary("log", table=True, oq=Parameters("x"), xq=Parameters("x", zero="low"), draw=_draw_log)
# nothing says how a root between two steps is rounded: 16 bits are cut off, 8 bits rounded
sqrt = unary("sqrt", free16=0.5, oq=Parameters("x"), draw=_draw_sqrt, source="TFLite SQRT")
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
    x: Int[Array, "*d"],
    *,
    xq: Annotated[Quant, _SMALL],
    oq: Annotated[Quant, Parameters("x", scale=about("xq", low=0.5, high=1.5))],
    approximate: Opaque,
) -> Int[Array, "*d"]:
    """GELU of the real values, requantised."""
    return finish(_gelu_steps(x, xq=xq, oq=oq, approximate=approximate), oq, of(x))


_FLOAT_PRODUCT = 2.0**-23  # the multiplier is a product of f32 numbers, which may itself be rounded to f32


def _leaky(x: Array, *, xq: Quant, oq: Quant, alpha: float) -> Array:
    r = real(x, xq)
    return steps(np.where(r >= 0, r, np.float32(alpha) * r), oq)


def _leaky_window(x: Array, *, xq: Quant, oq: Quant, alpha: float) -> Any:
    ratio = xq["scale"][0] / oq["scale"][0]
    fixed = max(float(window(ratio)), float(window(max(abs(ratio * alpha), 1e-9))))
    return fixed + _FLOAT_PRODUCT * np.abs(_leaky(x, xq=xq, oq=oq, alpha=alpha))


@semantics(error=rounding(_leaky, _leaky_window), source="TFLite LEAKY_RELU", data=("full", "small"))
def leaky_relu(
    x: Int[Array, "*d"],
    *,
    xq: Annotated[Quant, Parameters("x")],
    oq: Annotated[Quant, Parameters("x", scale=about("xq", low=0.5, high=1.5))],
    alpha: Annotated[float, Real(0.0, 1.0, (0.1, 0.01, 0.5))],
) -> Int[Array, "*d"]:
    """x where it is not negative, else alpha * x, on the real values."""
    return finish(_leaky(x, xq=xq, oq=oq, alpha=alpha), oq, of(x))


def _prelu(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Array:
    r = real(x, xq)
    return steps(np.where(r >= 0, r, r * real(y, yq)), oq)


def _prelu_window(x: Array, y: Array, *, xq: Quant, yq: Quant, oq: Quant) -> Any:
    ratio = xq["scale"][0] / oq["scale"][0]
    fixed = max(float(window(ratio)), float(window(ratio * yq["scale"][0])))
    return fixed + _FLOAT_PRODUCT * np.abs(_prelu(x, y, xq=xq, yq=yq, oq=oq))


def _draw_prelu(d: Any) -> dict[str, Any]:
    shape = () if d.chance(64) else d.shape(1)
    xq = draw_parameters(d, d.dtype("x"))
    yq = draw_parameters(d, d.dtype("y"), scale=d.pick((0.01, 0.03, 0.1)))
    oq = draw_parameters(d, d.dtype("x"), scale=near_or_apart(d, xq["scale"][0] * (0.5 + d.int(0, 32) / 32), xq, yq))
    return {"x": T(shape), "y": T(d.broadcast_from(shape)), "xq": xq, "yq": yq, "oq": oq}


@semantics(draw=_draw_prelu, error=rounding(_prelu, _prelu_window), source="TFLite PRELU", data=("full", "small"))
def prelu(
    x: Int[Array, "*d"],
    y: Int[Array, "*#d"],
    *,
    xq: Annotated[Quant, Parameters("x")],
    yq: Annotated[Quant, _SMALL],
    oq: Annotated[Quant, Parameters("x", scale=about("xq", low=0.5, high=1.5))],
) -> Int[Array, "*d"]:
    """x where it is not negative, else x times the slope y, on the real values.  Raises RuleError "slope-fits"."""
    if y.ndim > x.ndim or any(a not in (1, b) for a, b in zip(y.shape[::-1], x.shape[::-1])):
        raise RuleError("slope-fits", f"{list(y.shape)} to {list(x.shape)}")
    return finish(_prelu(x, y, xq=xq, yq=yq, oq=oq), oq, of(x))
