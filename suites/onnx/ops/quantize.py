"""Quantising, dequantising and products of quantised tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BF16, F16, F32, U8, DType, int_range, of
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T
from suites.onnx import op
from suites.onnx.codecs import Default, ToType
from suites.onnx.ops.conv import AUTO_PAD, Weight, filters
from suites.semantics import conv, linear
from suites.semantics import qdq as s


def _zeros(d: Draw, dtype: DType, shape: tuple[int, ...]) -> T:
    """Zero points that mean something: 0 for floats and i32, anything in the range for the others."""
    if dtype.kind == "f" or dtype.bits == 32 or d.chance(3):
        return T(shape, values=[0] * int(np.prod(shape)), dtype=dtype)
    if d.chance(6):
        lo, hi = int_range(dtype)
        ends = (lo, -1, hi) if lo < 0 else (lo, 1, hi)
        return T(shape, values=[d.pick(ends) for _ in range(int(np.prod(shape)))], dtype=dtype)
    return T(shape, "full", dtype=dtype)


def _scales(d: Draw, shape: tuple[int, ...], dtype: DType | None = None, fine: bool = False) -> T:
    """fine: so small that quotients leave the range of every float8 type."""
    n = int(np.prod(shape))
    powers = fine or (dtype is not None and dtype.name == "f8e8m0")
    low, high = (-14, -7) if fine else (-5, 2)
    turned = d.chance(12) and not (dtype is not None and dtype.name == "f8e8m0")  # no text asks for positive ones
    if dtype is not None and dtype.kind == "i":
        return T(
            shape, values=[d.pick((-1, -3)) if turned and d.bool() else d.int(1, 40) for _ in range(n)], dtype=dtype
        )
    values = [2.0 ** d.int(low, high) if powers or d.bool() else d.int(1, 40) / 64 for _ in range(n)]
    if turned:
        values = [-values[0] if k and d.bool() else v if d.bool() else -v for k, v in enumerate(values)]
    return T(shape, values=values, dtype=dtype)


def _grain(d: Draw, shape: tuple[int, ...], out: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the scales: for all, per axis, per block."""
    schema, v = d.version.schema, d.version.version
    how = d.int(0, 2) if "block_size" in schema.attrs else d.int(0, 1) if v >= 13 else 0
    if how == 0 or not shape:
        return (1,) if shape and v >= 13 and d.chance(4) else ()  # of a scalar, only a scalar is "for all"
    axis = d.axis(len(shape))
    if axis != 1 or d.bool():
        out["axis"] = axis
    n = shape[axis]
    if how == 1 or n == 0:
        return (n,)
    block = d.int(1, n) if d.int(0, 11) else 2**31 - 1  # "[ceil(Di/Si), ceil(Di/(Si-1))-1]": of one block, any beyond
    out["block_size"] = block
    a = axis % len(shape)
    return (*shape[:a], -(-n // block), *shape[a + 1 :])


def _output_type(call: Call, i: int = 0) -> DType:
    zero = call.inputs.get("y_zero_point")
    return of(zero) if zero is not None else ToType("output_dtype").decode(call) or U8


def _shape(d: Draw) -> tuple[int, ...]:
    """Any shape; one of one axis in sixty-four has as many scales as elements that a narrow sum no longer counts."""
    return (2100,) if d.chance(64) and not d.breaking else d.shape(0)


def _draw_q(d: Draw) -> dict:
    schema = d.version.schema
    shape = _shape(d)
    out: dict[str, Any] = {"x": T(shape, d.pick(("small", "unit", "uniform:-4:4", "ties", "small")))}
    grain = _grain(d, shape, out)
    slot = schema.input("y_scale")
    assert slot is not None
    results = schema.dtypes(schema.outputs[0].element)
    result = d.pick(results)
    beyond = "saturate" in schema.attrs and result.kind == "f" and result.bits == 8 and d.bool()
    out["y_scale"] = _scales(d, grain, d.types.get(slot.element, F32), beyond)
    if d.types[schema.inputs[0].element].kind == d.types.get(slot.element, F32).kind == "i" and d.chance(8):
        out["x"].recipe, out["y_scale"].values = "special", [-1] * int(np.prod(grain))  # the lowest has no opposite
    if d.int(0, 2) or beyond:
        out["y_zero_point"] = _zeros(d, result, grain)
    if "output_dtype" in schema.attrs and (d.chance(4) if "y_zero_point" in out else d.bool()):
        out["output_dtype"] = result
    if "saturate" in schema.attrs and (beyond or d.chance(3)):
        out["saturate"] = d.int(0, 1)
    if "precision" in schema.attrs and d.chance(3):
        out["precision"] = d.pick((F32, F16, BF16))
    return out


def _misfits(draw: Any, scale: str, zero: str) -> dict[str, Any]:
    """Scales and zero points whose shapes do not fit, by the rule that they break."""

    def fn(rule: str) -> Any:
        def broken(d: Draw) -> dict:
            out = draw(d)
            axes = "axis" in d.version.schema.attrs
            shape: tuple[int, ...] = (2, 3)
            many: tuple[int, ...] = (4,)
            axis = 1
            if rule == "axis-in-range":  # the axis of a version without one is 1
                shape, many, axis = ((2, 3), (3,), d.pick((2, -3))) if axes else ((2,), (2,), 1)
            elif rule == "zero-fits":
                many = ()
            own = {k: v for k, v in out.items() if k not in ("axis", "block_size", zero)}
            if rule == "zero-fits":
                other = out["x"].dtype if zero[0] == "x" else U8
                own[zero] = T((3,), values=[0] * 3, dtype=out[zero].dtype if zero in out else other)
            scales = _scales(d, many, out[scale].dtype)
            return {**own, "x": T(shape, out["x"].recipe, out["x"].dtype), scale: scales} | (
                {"axis": axis} if axes else {}
            )

        return broken

    return {rule: fn(rule) for rule in ("axis-in-range", "scale-fits", "zero-fits")}


_Q: dict[str, Any] = {
    "scale": "y_scale",
    "zero": "y_zero_point",
    "block": Default("block_size", 0),
    "axis": Default("axis", 1),
}
_STATED = Fn(lambda c: c.version.version >= 23)  # "The type of y_scale determines the precision of the division"
op(
    "QuantizeLinear",
    s.quantize,
    Spelling(
        precision=ToType("precision"),
        typed_division=_STATED,
        dtype=ToType("output_dtype"),
        out_dtype=_output_type,
        **_Q,
    ),
    Sampling(_draw_q),
    Checks(breaks=_misfits(_draw_q, "y_scale", "y_zero_point")),
)


def _draw_dq(d: Draw) -> dict:
    schema = d.version.schema
    shape = _shape(d)
    have = d.types[schema.inputs[0].element]
    out: dict[str, Any] = {"x": T(shape, dtype=have)}
    grain = _grain(d, shape, out)
    slot = schema.input("x_scale")
    assert slot is not None
    out["x_scale"] = _scales(d, grain, d.types.get(slot.element, F32))
    if d.int(0, 2):
        out["x_zero_point"] = _zeros(d, have, grain)
    must = d.types.get("T2") not in schema.dtypes(schema.outputs[0].element)  # a scale type that no output can have
    if "output_dtype" in schema.attrs and (d.chance(3) or must):
        out["output_dtype"] = d.pick(schema.dtypes(schema.outputs[0].element))
    return out


op(
    "DequantizeLinear",
    s.dequantize,
    Spelling(
        scale="x_scale",
        zero="x_zero_point",
        block=Default("block_size", 0),
        axis=Default("axis", 1),
        dtype=ToType("output_dtype"),
        out_dtype=lambda c, i: ToType("output_dtype").decode(c) or of(c.inputs["x_scale"]),
    ),
    Sampling(_draw_dq),
    Checks(breaks=_misfits(_draw_dq, "x_scale", "x_zero_point")),
)

op("DynamicQuantizeLinear", s.dynamic_quantize, Spelling(out_dtype=lambda c, i: F32 if i == 1 else U8))


def _draw_qmm(d: Draw) -> dict:
    plain: Any = _Plain(d)
    v = linear.draw_matmul(plain)
    x, y = v["x"].shape, v["y"].shape
    matrices = len(x) > 1 and len(y) > 1
    rows, cols = (_per_row(d, m, k) if matrices else () for m, k in ((x, -1), (y, -2)))
    if d.chance(24) and not d.breaking:  # many rows, or many columns, each with a scale
        many = d.pick((130, 300, 2100))
        x, y, rows, cols = ((many, 1), (1, 1), (many,), ()) if d.bool() else ((1, 1), (1, many), (), (many,))
    scale = d.types.get("TS", F32)
    return {
        "a": T(x, "full"),
        "a_scale": _scales(d, rows, scale),
        "a_zero_point": _zeros(d, d.types["T1"], rows),
        "b": T(y, "full"),
        "b_scale": _scales(d, cols, scale),
        "b_zero_point": _zeros(d, d.types["T2"], cols),
        "y_scale": T((), values=[float(d.pick((1, 8, 64, 100, 500)))], dtype=scale),
        "y_zero_point": _zeros(d, d.types["T3"], ()),
    }


def _per_row(d: Draw, shape: tuple[int, ...], alike: int) -> tuple[int, ...]:
    """The shape of the scales of a matrix: one for all, or one for each row or column, alike along an axis: "[M]" of
    "[M, K]", "[D1, D2, M, 1]" of "[D1, D2, M, K]"."""
    if not d.chance(3):
        return (1,) if d.chance(8) else ()
    if len(shape) == 2 and d.bool():
        return (shape[-3 - alike],)
    return tuple(1 if i == len(shape) + alike else n for i, n in enumerate(shape))


class _Plain:
    """A draw for another meaning that has no parameters here."""

    def __init__(self, d: Draw) -> None:
        self._d = d
        self.fixed = {**d.fixed, "transpose_x": False, "transpose_y": False}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._d, name)


def _apart(d: Draw) -> dict:
    """A column of a more than b has rows."""
    out = _draw_qmm(d)
    n = d.int(1, 3)
    return {
        **out,
        "a": T((2, n + 2), "full"),
        "b": T((n + 1, 3), "full"),
        **{f"{k}_scale": _scales(d, (), d.types.get("TS", F32)) for k in "ab"},
        "a_zero_point": _zeros(d, d.types["T1"], ()),
        "b_zero_point": _zeros(d, d.types["T2"], ()),
    }


def _other_rows(d: Draw) -> dict:
    """A scale more than a has rows, or zero points of another shape than the scales."""
    scale = d.types.get("TS", F32)
    shape = (3,) if d.bool() else (2, 2)
    return {
        **_drawn_plain(d),
        "a_scale": _scales(d, shape, scale),
        "a_zero_point": _zeros(d, d.types["T1"], shape),
    }


def _other_zeros(d: Draw) -> dict:
    """Two zero points of the result beside one scale."""
    return {**_drawn_plain(d), "y_zero_point": _zeros(d, d.types["T3"], (2,))}


def _drawn_plain(d: Draw) -> dict:
    """Two rows by two columns, one scale each."""
    scale = d.types.get("TS", F32)
    return {
        **_draw_qmm(d),
        **{n: T((2, 2), "full") for n in "ab"},
        **{f"{n}_scale": _scales(d, (), scale) for n in "ab"},
        **{f"{n}_zero_point": _zeros(d, d.types[t], ()) for n, t in (("a", "T1"), ("b", "T2"))},
    }


op(
    "QLinearMatMul",
    s.qlinear_matmul,
    Spelling(
        x="a",
        x_scale="a_scale",
        x_zero="a_zero_point",
        y="b",
        y_scale="b_scale",
        y_zero="b_zero_point",
        out_scale="y_scale",
        out_zero="y_zero_point",
        out_dtype=lambda c, i: of(c.inputs["y_zero_point"]),
    ),
    Sampling(_draw_qmm),
    Checks(breaks={"contracted-agrees": _apart, "scale-per-row": _other_rows, "zero-fits": _other_zeros}),
)


@s.qlinear_conv.breaks("zero-points-agree")
def _other_grain(d: Draw) -> dict:
    """Two zero points and scales where there is to be one, or one more than there are filters."""
    out = _draw_qconv(d)
    name, n, t = d.pick((("x", 2, "T1"), ("w", out["w"].shape[0] + 1, "T2")))
    return {**out, f"{name}_scale": _scales(d, (n,)), f"{name}_zero": _zeros(d, d.types[t], (n,))}


@s.qlinear_conv.draw
def _draw_qconv(d: Draw) -> dict:
    v = conv.draw_conv(d)
    m = v["w"].shape[0]
    per = (m,) if d.chance(3) else ()
    types = d.types
    out = {k: v[k] for k in ("x", "w", "strides", "dilations", "pads", "padding", "groups")}
    out |= {
        "x_scale": _scales(d, ()),
        "x_zero": _zeros(d, types["T1"], ()),
        "w_scale": _scales(d, per),
        "w_zero": _zeros(d, types["T2"], per),
        "out_scale": T((), values=[float(d.pick((1, 8, 64, 100)))]),
        "out_zero": _zeros(d, types["T3"], ()),
    }
    out["x"].recipe = out["w"].recipe = "full"
    if "b" in v:
        out["b"] = T((m,), "special" if d.chance(12) else "ints:-1000:1000")
    return out


op(
    "QLinearConv",
    s.qlinear_conv,
    filters("w"),
    Spelling(
        w=Weight("w"),
        x_zero="x_zero_point",
        w_zero="w_zero_point",
        out_scale="y_scale",
        out_zero="y_zero_point",
        b="B",
        groups="group",
        padding=AUTO_PAD,
        out_dtype=lambda c, i: of(c.inputs["y_zero_point"]),
    ),
)

__all__ = ["Fn"]
