"""quantize and dequantize (iOS 17): affine, per tensor or along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, int_range, of
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, Spelling, T, quantised, underspecified
from suites.mil import op
from suites.mil.codecs import need, scalar
from suites.semantics import constexpr as s
from suites.semantics.constexpr import per_axis


def _quotient(call: Call) -> tuple[np.ndarray, np.ndarray]:
    """input / scale, unrounded, and the zero point."""
    x, scale, zero = call.inputs["input"], call.inputs["scale"], call.inputs.get("zero_point")
    axis = scalar(call, "axis", 0)
    for v in (scale, zero):
        if v is not None and v.ndim:
            need(-x.ndim <= axis < x.ndim, "axis-in-range", f"{axis} for rank {x.ndim}")
            need(v.shape == (x.shape[axis],), "vector-fits-axis", f"{list(v.shape)} for {list(x.shape)}, axis {axis}")
    with np.errstate(all="ignore"):
        q = x.astype(np.float64) / per_axis(scale.astype(np.float64), x.ndim, axis)
    return q, np.zeros(()) if zero is None else per_axis(zero.astype(np.float64), x.ndim, axis)


def _placed(call: Call, whole: np.ndarray, zero: np.ndarray) -> np.ndarray:
    d = call.attr("output_dtype")
    lo, hi = int_range(d)
    return np.clip(whole + zero, lo, hi).astype(d.np)


def _quantize(call: Call) -> np.ndarray:
    """clip(round(input / scale) + zero_point); the tie rule of round is not stated."""
    given = call.inputs.get("zero_point")
    need(given is None or of(given) is call.attr("output_dtype"), "zero-point-type", "that of the result")
    q, zero = _quotient(call)
    return _placed(call, np.rint(q), zero)


def _near_tie(call: Call) -> str | None:
    """Where input / scale lies at a tie, or within the rounding of the division: both neighbours are right."""
    q, zero = _quotient(call)
    if not np.isfinite(q).all():
        return "NaN or infinity has no integer"
    u = 2.0 ** -(of(call.inputs["input"]).frac + 1)
    near = np.abs(q - np.floor(q) - 0.5) <= 4 * u * np.maximum(np.abs(q), 1)
    below, above = (_placed(call, whole(q), zero) for whole in (np.floor, np.ceil))
    return underspecified("the tie rule of round is not stated", near & (below != above), below, above)


def _draw_quantize(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    out_type = BY_NAME[d.pick(("u8", "i8"))]
    d.types["DstT"] = out_type
    size = () if d.bool() else (shape[axis],)
    out: dict[str, Any] = {
        "input": T(shape, recipe=d.pick(("unit", "uniform:-20:20", "uniform:-4:4"))),
        "scale": T(size, recipe="uniform:0.0625:1"),
        "output_dtype": out_type,
    }
    if d.bool():
        out["zero_point"] = T(
            size,
            recipe="full" if d.chance(3) else "ints:0:100" if out_type.kind == "u" else "ints:-100:100",
            dtype=out_type,
        )
    if size:
        out["axis"] = axis
    return out


def _draw_dequantize(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    axis = d.axis(len(shape))
    size = () if d.bool() else (shape[axis],)
    out: dict[str, Any] = {"input": T(shape, recipe="full"), "scale": T(size, recipe="uniform:0.0625:1")}
    if d.bool():
        out["zero_point"] = T(size, recipe="full")
    if size:
        out["axis"] = axis
    return out


def _break_axis(d: Draw) -> dict[str, Any]:
    return {"input": T((2, 3)), "scale": T((2,), recipe="uniform:0.0625:1"), "axis": d.pick((2, -3))}


def _break_vector(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    out: dict[str, Any] = {"input": T(shape), "scale": T((shape[0] + 1,), recipe="uniform:0.0625:1"), "axis": 0}
    if d.version.op == "quantize":
        out["output_dtype"] = BY_NAME["u8"]
    return out


def _break_type(d: Draw) -> dict[str, Any]:
    """ "The output_dtype value must match the zero_point dtype"."""
    one, other = d.pick((("u8", "i8"), ("i8", "u8")))
    return {
        "input": T(d.shape(1, lo=1)),
        "scale": T((), recipe="uniform:0.0625:1"),
        "output_dtype": BY_NAME[one],
        "zero_point": T((), values=[3], dtype=BY_NAME[other]),
    }


op(
    "quantize",
    Evaluation(_quantize, quantised(0)),
    Spelling(out_dtype=lambda c, i: c.attr("output_dtype")),
    Sampling(_draw_quantize),
    Checks(ambiguous=_near_tie, breaks={"vector-fits-axis": _break_vector, "zero-point-type": _break_type}),
)
op(
    "dequantize",
    s.affine_dequantize,
    Spelling(x="input", out_dtype=lambda c, i: of(c.inputs["scale"])),
    Sampling(_draw_dequantize),
    Checks(breaks={"vector-fits-axis": _break_vector, "axis-in-range": _break_axis}),
)
