"""Conversion between element types.  The result comes in the target type, rounded once; it is exact as stated."""

from __future__ import annotations

from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import (
    BF16,
    BOOL,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F16,
    F32,
    F64,
    DType,
    float_max,
    int_range,
    of,
)
from harness.declare import Any as Any_
from harness.declare import Array, Choice, ElementType, Flag, exact, first_of, gathered, semantics, underspecified

FINITE = (F4E2M1, F6E2M3, F6E3M2)  # neither infinities nor NaN
_FLOAT8 = (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ)
_E8M0_ROUNDING = {"up": "up", "down": "zero", "nearest": "away"}
_E8M0_ENDS = np.array([0xFE, 0xFF], np.uint8).view(F8E8M0.np)  # the largest, NaN
_DATA = ("small", "unit", "ties", "wide", "special", "full")


def out_of_range(x: Any, to: DType, rounding: str = "trunc") -> Any:
    """Where a float ``x`` has a value that the integer type ``to`` does not hold (after rounding), or a NaN."""
    if of(x).kind != "f" or to.kind not in "iu":
        return np.False_
    lo, hi = int_range(to)
    wide = native.unary(rounding, x)
    return ~((wide >= float(lo)) & (wide < float(hi) + 1.0))


def _onnx_silent(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, to = inputs["x"], params["to"]
    if of(x).kind == "s":
        if to is not F8E8M0 and to not in FINITE and to.kind not in "iu":
            return None
        x = np.array([_number(v, F64) for v in x.ravel()], np.float64).reshape(x.shape)
    rounding = "round_half_even" if to.bits < 8 and of(inputs["x"]).kind == "f" else "trunc"
    found = [underspecified("ONNX Cast: float to fixed point is undefined out of range", out_of_range(x, to, rounding))]
    if to is F8E8M0:
        wide = native.convert(x, np.float64)
        found.append(
            underspecified(
                "ONNX Cast: negative numbers to float8e8m0 are unspecified",
                (wide < 0) | (np.signbit(wide) & (wide == 0)),
            )
        )
        saturate, mode = params.get("saturate", True), params.get("round_mode", "up")
        if not (saturate and mode == "up") and (saturate or mode != "nearest"):
            why = "ONNX Cast: the table for float8e8m0 covers saturate + up and non-saturate + nearest only"
            found.append(underspecified(why, wide < 2.0**-127))
            if not saturate and mode == "down":  # it rounds to the largest, but is out of range before
                beyond = (wide > float_max(F8E8M0)) & np.isfinite(wide)
                found.append(underspecified(why, beyond, _E8M0_ENDS[0], _E8M0_ENDS[1]))
    if to in FINITE and of(x).kind in "fiu":
        with np.errstate(all="ignore"):
            wide = np.abs(native.convert(x, np.float64))
        why = f"ONNX Cast: out of range is infinite, and NaN is kept, but {to} has neither"
        found.append(underspecified(why, ~(wide <= float_max(to))))
    if to.kind == "s" and of(x).kind == "f":
        return "ONNX Cast: the number of digits of a float as a string is not stated"
    return gathered(*found)


@semantics(
    error=exact(signed_zero=True),
    data=_DATA,
    ambiguous=_onnx_silent,
    source="ONNX Cast-25: tables for float8 and float8e8m0; integers keep the low bits, floats overflow to inf; "
    "technical/int4, int2: a cast to a 4 bit (2 bit) type rounds to the nearest integer, ties to even, and truncates",
)
def cast(
    x: Any_[Array, "*d"],
    *,
    to: ElementType,
    saturate: Flag = True,
    round_mode: Choice[str, "up", "down", "nearest"] = "up",
) -> Any_[Array, "*d"]:
    """x in the type ``to``.

    float to float: nearest even; out of range is inf, or, to a float8 type, the largest finite value (saturate) or
    what its table says.  float to integer: toward zero, to those of 4 and 2 bits nearest even (out of range is
    undefined).  integer to integer: low bits.  To bool: non-zero is true.  round_mode: to float8e8m0
    alone.  Strings: decimal numbers, INF and NaN in any case.
    """
    have = of(x)
    if to.kind == "s":
        return _to_strings(x)
    if have.kind == "s":
        x = np.array([_number(v, to) for v in x.ravel()], np.float64 if to.kind != "i" else np.int64).reshape(x.shape)
    if have.kind == "f" and to.kind in "iu" and to.bits < 8:
        # undefined out of range; the published vectors of onnx keep the low bits
        x = native.convert(native.unary("round_half_even", x), np.int64)
    if to is F8E8M0:
        y = native.convert(x, to, rounding=_E8M0_ROUNDING[round_mode], saturate=saturate)
        if round_mode == "nearest" and not saturate:  # "x > E8M0_MAX: NaN", also where x rounds to E8M0_MAX
            y = np.where(native.convert(x, np.float64) > float_max(to), _E8M0_ENDS[1], y)
        return y
    return native.convert(x, to, saturate=saturate and to in _FLOAT8)


def _out_of_any_range(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, to = inputs["x"], params["to"]
    d = of(x)
    outside: Any = np.False_
    if d.kind in "iu" and to.kind in "iu":
        (low, high), (lo, hi) = int_range(d), int_range(to)
        outside = (x < max(lo, low)) | (x > min(hi, high))  # limits that the type of x holds
    return gathered(
        underspecified("float to integer out of range is not defined", out_of_range(x, to)),
        underspecified("integer to integer out of range is not defined", outside),
    )


@semantics(
    error=exact(), data=_DATA, ambiguous=_out_of_any_range, source="MIL cast iOS15, iOS17; TFLite CAST (truncates)"
)
def cast_in_range(x: Any_[Array, "*d"], *, to: ElementType) -> Any_[Array, "*d"]:
    """x in the type ``to``: toward zero to integers, nearest even to floats, non-zero is true.

    Nothing is stated for values out of range: they keep the low bits (integers), saturate (floats)."""
    return native.convert(x, to)


def _real_out_of_range(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    x, to = inputs["x"], params["to"]
    if to.kind == "c":
        return None
    return _out_of_any_range({"x": x.real if of(x).kind == "c" else x}, params)


def _rounded_twice(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
    """Opens 16-bit floats of numbers wider than f32 that a conversion by way of f32 rounds to another neighbour."""
    x, to = inputs["x"], params["to"]
    if to not in (F16, BF16) or of(x).kind not in "fiu" or of(x).bits < 32 or of(x) is F32:
        return None
    once, twice = (native.convert(native.convert(v, to), F64) for v in (x, native.convert(x, F32)))
    why = "no rounding is stated: a conversion to 16 bits in one step, or by way of f32"
    return underspecified(why, ~((once == twice) | np.isnan(once)), native.convert(native.convert(x, F32), to))


@semantics(
    error=exact(),
    data=_DATA,
    ambiguous=first_of(_real_out_of_range, _rounded_twice),
    source="TFLite CAST; TF cast: of a complex number to a real type the real part, of a real one the imaginary part 0",
)
def cast_complex(x: Any_[Array, "*d"], *, to: ElementType) -> Any_[Array, "*d"]:
    """As ``cast_in_range`` where neither type is complex."""
    if of(x).kind == "c":
        return x.astype(to.np) if to.kind == "c" else native.convert(x.real.copy(), to)
    return native.convert(x, F32).astype(to.np) if to.kind == "c" else native.convert(x, to)


def _number(v: Any, to: DType) -> Any:
    text = str(v).strip()
    word = text.upper()
    if word in ("INF", "+INF", "-INF", "NAN"):
        return float(word)
    return int(text) if to.kind in "iu" and text.lstrip("+-").isdigit() else float(text)


def _to_strings(x: Any) -> Any:
    d = of(x)
    out = np.empty(x.shape, object)
    flat, src = out.reshape(-1), x.reshape(-1)
    for i in range(flat.size):
        v = src[i]
        if d.kind == "s":
            flat[i] = v
        elif d is BOOL:
            flat[i] = "1" if v else "0"
        elif d.kind in "iu":
            flat[i] = str(int(v))
        else:
            f = float(v)
            flat[i] = "NaN" if f != f else "INF" if f == np.inf else "-INF" if f == -np.inf else _plain(v, d)
    return out


def _plain(v: Any, d: DType) -> str:
    """Shortest digits that give the value back, without an exponent."""
    kind: Any = {F64: np.float64, F32: np.float32, F16: np.float16}.get(d, np.float32)
    return np.format_float_positional(kind(v), trim="-") if d is not BF16 else np.format_float_positional(np.float32(v))
