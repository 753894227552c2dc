"""Linear quantisation as ONNX writes it: scales and zero points are tensors, rounding is to nearest even.

Where the op set names the type in which a division happens, it is done in that type, not wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import F32, F64, U8, DType, float_max, int_range, of
from harness.core.errors import RuleError
from harness.declare import (
    Any,
    Choice,
    Context,
    Divisor,
    Each,
    ElementType,
    Flag,
    Float,
    Integer,
    Ints,
    Num,
    Pads,
    Tolerance,
    gathered,
    of_result,
    quantised,
    rounded,
    semantics,
    underspecified,
)
from harness.tolerance import unit
from suites.semantics.cast import FINITE
from suites.semantics.conv import check_channels, check_grain
from suites.semantics.linear import centred
from suites.semantics.window import MODES, geometry

Array = np.ndarray


def spread(scale: Array, x: Array, axis: int, block: int) -> Array:
    """A scale or zero point so that it broadcasts against ``x``: one for all, one along ``axis``, or one a block.

    Raises RuleError "axis-in-range", "scale-fits"."""
    if scale.size == 1 and scale.ndim <= 1 and not block:
        return scale.reshape(())
    if not -x.ndim <= axis < max(x.ndim, 1):
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    a = axis % max(x.ndim, 1)
    if not block:
        if scale.ndim != 1 or scale.shape != x.shape[a : a + 1]:
            raise RuleError("scale-fits", f"scale {list(scale.shape)} along axis {a} of {list(x.shape)}")
        return scale.reshape([-1 if i == a else 1 for i in range(x.ndim)])
    if not x.ndim or scale.shape != (*x.shape[:a], -(-x.shape[a] // block), *x.shape[a + 1 :]):
        raise RuleError("scale-fits", f"blocks of {block} along axis {a}: scale {list(scale.shape)}, x {list(x.shape)}")
    return np.take(scale, np.arange(x.shape[a]) // block, axis=a)


def to_steps(steps: Array, zero: Object, out: DType, saturate: bool = True) -> Array:
    """Steps rounded half to even, the zero point added, in the range of an integer type; or a float8 of the sum."""
    if out.kind == "f":
        wide = steps if zero is None else steps + zero.astype(np.float64)
        return native.convert(wide, out, saturate=saturate)
    lo, hi = int_range(out)
    with np.errstate(all="ignore"):
        q = np.rint(steps) + (0 if zero is None else zero.astype(np.float64))
        return np.where(np.isnan(q), 0, np.clip(q, lo, hi)).astype(np.int64).astype(out.np)


def _alike(scale: Array, zero: Array | None) -> None:
    """Raises RuleError "zero-fits" where the zero point has another shape than the scale; a scalar may be written as a
    vector of one, as the op set's own examples do."""
    single = zero is not None and zero.size == scale.size == 1 and max(zero.ndim, scale.ndim) <= 1
    if zero is not None and zero.shape != scale.shape and not single:
        raise RuleError("zero-fits", f"zero point {list(zero.shape)}, scale {list(scale.shape)}")


def _quotient(x: Array, scale: Array, precision: DType) -> Array:
    """Both operands of the division have its type ("precision of the division operation between x and y_scale")."""
    with np.errstate(all="ignore"):
        a, b = (native.convert(v, precision).astype(np.float64) for v in (x, scale))
        return native.convert(a / b, precision).astype(np.float64)


def _precision(scale: Array, stated: DType | None) -> DType:
    """The type of the division: the stated one, or that of the scale; a float8e8m0 holds no quotient, nor does an
    integer: "For (x / y_scale), it rounds to the nearest even"."""
    own = F64 if of(scale).kind in "iu" else of(scale) if of(scale).bits >= 16 else F32
    return stated or own


def _q_steps(ctx: Context) -> Array:
    x, scale, p = ctx.inputs["x"], ctx.own["scale"], ctx.params
    return _quotient(x, spread(scale, ctx.wide, p["axis"], p["block"]), _precision(scale, p["precision"]))


def _q_real(ctx: Context) -> Array:
    zero = ctx.inputs["zero"]
    if zero is None:
        return _q_steps(ctx)
    return _q_steps(ctx) + spread(np.asarray(zero), ctx.wide, ctx.params["axis"], ctx.params["block"])


def _q_tie(ctx: Context) -> Array:
    p = ctx.params.get("precision") or F32
    return np.abs(np.nan_to_num(_q_steps(ctx))) * 4 * unit(p) + 2.0**-20


def _q_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x, zero, scale = inputs["x"], inputs["zero"], inputs["scale"]
    out = of(zero) if zero is not None else params.get("dtype") or U8
    quotient = _quotient(x, spread(scale, x, params["axis"], params["block"]), _precision(scale, params["precision"]))
    nan = np.isnan(quotient)  # of a scale that is NaN too, of 0 / 0 and of inf / inf
    wider = None if params["typed_division"] or of(scale).bits >= 32 else _divided_in_f32(inputs, params, out)
    if out.kind != "f":
        return gathered(underspecified("QuantizeLinear of NaN to an integer", nan), wider)
    zeros = (quotient == 0) & (np.signbit(quotient) | (x.dtype.kind not in "iu"))
    sign = "the sign of a zero quotient, to which a zero point of zero is added or not"
    return gathered(
        underspecified(f"QuantizeLinear of NaN to {out}, which has none", nan) if out in FINITE else None,
        underspecified(sign, zeros, np.zeros(x.shape)) if zeros.any() else None,
        wider,
    )


def _divided_in_f32(inputs: dict[str, Object], params: dict[str, Object], out: DType) -> str | None:
    """Opens what a division in f32 makes another number of, where no version states its type (it is from 23 on)."""
    results = [quantize(**inputs, **{**params, "precision": p}) for p in (None, F32)]
    narrow, wide = (native.convert(r, F64) if out.kind == "f" else r.astype(np.float64) for r in results)
    same = (narrow == wide) | (np.isnan(narrow) & np.isnan(wide))
    return underspecified("a division of narrow floats, in their type or in a wider one", ~same, results[1])


@semantics(
    error=quantised(0, real=_q_real, tie=_q_tie).signed(), source="ONNX QuantizeLinear-10..28", ambiguous=_q_open
)
def quantize(
    x: Num[Array, "*d"],
    scale: Num[Array, "*s"],
    zero: Any[Array, "*z"] | None = None,
    *,
    axis: Integer = 1,
    block: Integer = 0,
    saturate: Flag = True,
    precision: ElementType | None = None,
    typed_division: Flag = True,
    dtype: ElementType | None = None,
) -> Any[Array, "*d"]:
    """saturate(round_half_even(x / scale) + zero), the quotient in ``precision`` (None: the type of the scale).

    typed_division: does the op set state the type of the division?  If not, one in f32 is right too.

    dtype: of the result where no zero point tells it, u8 by default.  saturate: of float8 results.
    Raises RuleError "zero-fits", "axis-in-range", "scale-fits"."""
    _alike(scale, zero)
    out = of(zero) if zero is not None else dtype or U8
    s = spread(scale, x, axis, block)
    z = None if zero is None else spread(zero, x, axis, block)
    return to_steps(_quotient(x, s, _precision(scale, precision)), z, out, saturate)


@semantics(error=rounded(1.5), source="ONNX DequantizeLinear-10..28")
def dequantize(
    x: Any[Array, "*d"],
    scale: Float[Array, "*s"],
    zero: Any[Array, "*z"] | None = None,
    *,
    axis: Integer = 1,
    block: Integer = 0,
    dtype: ElementType | None = None,
) -> Float[Array, "*d"]:
    """(x - zero) * scale in the type of the scale, or ``dtype``.  Raises RuleError "zero-fits", "axis-in-range",
    "scale-fits"."""
    _alike(scale, zero)
    s = spread(scale, x, axis, block).astype(np.float64)
    v = x.astype(np.float64)
    if zero is not None:
        v = v - spread(zero, x, axis, block).astype(np.float64)
    with np.errstate(all="ignore"):
        return v * s


def _range(x: Array) -> tuple[float, float]:
    v = x.astype(np.float64)
    return min(0.0, float(v.min(initial=0))), max(0.0, float(v.max(initial=0)))


def _dynamic(x: Array) -> tuple[Array, float, float]:
    lo, hi = _range(x)
    scale = float(np.float32((hi - lo) / 255))
    ends = scale and np.isfinite(scale)  # else nothing is stated of the result
    zero = float(np.clip(np.rint(np.float32(0 - lo) / np.float32(scale)), 0, 255)) if ends else 0.0
    return _quotient(x, np.asarray(scale), F32), scale, zero


def _dq_real(ctx: Context) -> Array:
    steps, _, zero = _dynamic(np.asarray(ctx.inputs["x"]))
    return steps + zero


def _dq_tie(ctx: Context) -> Array:
    steps, _, _ = _dynamic(np.asarray(ctx.inputs["x"]))
    return np.abs(steps) * 2.0**-20 + 2.0**-18


def _dq_zero(ctx: Context) -> Array:
    lo, hi = _range(np.asarray(ctx.inputs["x"]))
    return np.asarray(-lo / ((hi - lo) / 255) if hi > lo else 0.0)


_DQ_TIE = 2.0**-14  # of a zero point, three roundings in f32


def _dq_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    x = inputs["x"]
    lo, hi = _range(x)
    if not np.isfinite(x.astype(np.float64)).all():
        why = "DynamicQuantizeLinear of a range without end"
        return underspecified(why, (np.ones(x.shape, bool), *[np.ones((), bool)] * 2))
    if hi == lo:  # the quotients are 0 / 0, which no cast to an integer is stated for
        why = "DynamicQuantizeLinear of a range of zero"
        limits = np.uint8(0), np.uint8(255)
        return gathered(
            underspecified(why, of_result(0, np.ones(x.shape, bool)), *limits),
            underspecified(why, of_result(1, np.True_), np.float32(0), np.float32(1)),
            underspecified(why, of_result(2, np.True_), *limits),
        )
    if hi - lo > float_max(of(x)):
        why = "DynamicQuantizeLinear of a range beyond the type: the difference is exact, or infinite as in the body"
        return gathered(
            underspecified(why, of_result(0, np.ones(x.shape, bool)), np.uint8(0)),
            underspecified(why, of_result(1, np.True_), np.float32(np.inf)),
            underspecified(why, of_result(2, np.True_), np.uint8(0)),
        )
    real = -lo / ((hi - lo) / 255)
    if abs(real % 1 - 0.5) < _DQ_TIE:
        why = "DynamicQuantizeLinear with a zero point next to a tie: every step moves with it"
        zeros = np.floor(real), np.ceil(real)
        steps, _, _ = _dynamic(x)
        blur = np.abs(steps) * 2.0**-20 + 2.0**-18
        moved = [to_steps(steps + s * blur, np.asarray(z), U8) for z in zeros for s in (-1, 0, 1)]
        return gathered(
            underspecified(why, of_result(0, np.ones(x.shape, bool)), *moved),
            underspecified(why, of_result(2, np.True_), *(np.uint8(min(z, 255)) for z in zeros)),
        )
    return None


@semantics(
    error=(
        quantised(0, real=_dq_real, tie=_dq_tie),
        rounded(1.5),
        quantised(0, real=_dq_zero, tie=_DQ_TIE),
    ),
    source="ONNX DynamicQuantizeLinear-11",
    ambiguous=_dq_open,
    data=("small", "unit", "uniform:-4:4"),
)
def dynamic_quantize(x: Float[Array, "*d"]) -> tuple[Array, Array, Array]:
    """(u8 steps, scale, zero point) with the scale that maps the range of ``x``, zero included, on 0..255."""
    lo, hi = _range(x)
    steps, _, zero = _dynamic(x)
    return (to_steps(steps, np.asarray(zero), U8), np.asarray((hi - lo) / 255), np.asarray(zero, np.uint8))


# -- quantised products: exact integer sums, one factor, one rounding


Scaling = Callable[[Array, Array, Array, Array], Array]  # sums, the scales of the two operands, that of the result


def exactly(t: Array, a: Array, b: Array, y: Array) -> Array:
    """Sums in steps of the result, in f64."""
    with np.errstate(all="ignore"):
        return t * (a.astype(np.float64) * b.astype(np.float64) / y.astype(np.float64))


# in f32; "the scales are multiplied and divided": in which order, the op set does not say
_ORDERS: tuple[Scaling, ...] = (
    lambda t, a, b, y: t * (a * b / y),
    lambda t, a, b, y: t * (a / y * b),
    lambda t, a, b, y: t * (b / y * a),
    lambda t, a, b, y: t * a * b / y,
    lambda t, a, b, y: t * b * a / y,
    lambda t, a, b, y: t * (a * b) / y,
    lambda t, a, b, y: t * (a * b * (1 / y)),
)


def _any_order(inputs: dict[str, Object], of_steps: Callable[[Scaling], Array], scales: Sequence[Array]) -> str | None:
    """Opens what becomes no number, or another one in another order of the scales: some leave f32 on the way."""
    sizes = np.abs(np.concatenate([np.ravel(s).astype(np.float64) for s in scales]))
    if ((sizes > 2.0**-30) & (sizes < 2.0**30)).all():
        return None
    zero, out = inputs["out_zero"], of(inputs["out_zero"])

    def narrow(how: Scaling) -> Scaling:
        return lambda t, *s: how(*(v.astype(np.float32) for v in (t, *s)))

    with np.errstate(all="ignore"):
        found = [of_steps(narrow(how)).astype(np.float64) for how in _ORDERS]
        steps = [to_steps(f, zero.reshape(()) if zero.size == 1 else zero, out).astype(np.float64) for f in found]
    apart = np.any([s != steps[0] for s in steps], axis=0)  # a NaN is apart from itself
    if out.kind != "f":
        apart |= np.isnan(found).any(axis=0)
    return underspecified(
        "scales whose product or quotient no f32 holds, multiplied in an order that is not stated", apart
    )


def _product_steps(ctx: Context) -> Array:
    i: dict[str, Object] = {k: np.asarray(ctx.inputs[k]) for k in _FACTORS}
    return _scaled_product(**i)


_FACTORS = ("x", "x_scale", "x_zero", "y", "y_scale", "y_zero", "out_scale")


def _scaled_product(
    x: Array,
    x_scale: Array,
    x_zero: Array,
    y: Array,
    y_scale: Array,
    y_zero: Array,
    out_scale: Array,
    how: Scaling = exactly,
) -> Array:
    """The product over ``out_scale`` in f64.  A vector is a matrix of one row or column, whose axis the result lacks.

    Raises RuleError "scale-per-row", "contracted-agrees"."""
    for scale, zero in ((x_scale, x_zero), (y_scale, y_zero)):
        if scale.shape != zero.shape:
            raise RuleError("scale-per-row", f"scale {list(scale.shape)}, zero point {list(zero.shape)}")
    for scale, m in ((x_scale, x), (y_scale, y)):  # "2D: a vector; N-D [D1, D2, M, K]: [D1, D2, M, 1]"
        if scale.shape not in ((), (1,)) and scale.ndim != (1 if m.ndim <= 2 and scale.ndim == 1 else m.ndim):
            raise RuleError("scale-per-row", f"scale {list(scale.shape)} for {list(m.shape)}")
    for scale, m, alike in ((x_scale, x, -1), (y_scale, y, -2)):
        if scale.ndim > 1 and scale.shape != tuple(1 if i == m.ndim + alike else n for i, n in enumerate(m.shape)):
            raise RuleError("scale-per-row", f"scale {list(scale.shape)} for {list(m.shape)}")
    rows = x[None] if x.ndim == 1 else x
    columns = y[:, None] if y.ndim == 1 else y
    if x_scale.ndim == 1 and x_scale.size not in (1, rows.shape[-2]):
        raise RuleError("scale-per-row", f"{x_scale.size} scales for {rows.shape[-2]} rows")
    if y_scale.ndim == 1 and y_scale.size not in (1, columns.shape[-1]):
        raise RuleError("scale-per-row", f"{y_scale.size} scales for {columns.shape[-1]} columns")
    if rows.shape[-1:] != columns.shape[-2:-1] or not _broadcast(rows.shape[:-2], columns.shape[:-2]):
        raise RuleError("contracted-agrees", f"x {list(x.shape)}, y {list(y.shape)}")
    wide = np.matmul(
        rows.astype(np.float64) - _rows(x_zero).astype(np.float64),
        columns.astype(np.float64) - y_zero.astype(np.float64),
    )
    wide = how(wide, _rows(x_scale), y_scale, out_scale)
    if y.ndim == 1:
        wide = wide[..., 0]
    return wide if x.ndim > 1 else wide[..., 0] if y.ndim == 1 else wide[..., 0, :]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Do leading axes of matrices broadcast to each other?"""
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def _requantised(of_steps: Object) -> Tolerance:
    """Steps without the zero point, after three roundings in f32."""

    def real(ctx: Context) -> Array:
        return of_steps(ctx) + np.asarray(ctx.inputs["out_zero"], np.float64)

    return quantised(real=real, tie=lambda ctx: np.abs(of_steps(ctx)) * 2.0**-20 + 2.0**-20)


def _rows(v: Array) -> Array:
    """A vector of one value a row of a matrix."""
    return v[:, None] if v.ndim == 1 else v


def _product_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    i: dict[str, Object] = {k: inputs[k] for k in _FACTORS}
    scales = [i[k] for k in ("x_scale", "y_scale", "out_scale")]
    return _any_order(inputs, lambda how: _scaled_product(**i, how=how), scales)


@semantics(error=_requantised(_product_steps), source="ONNX QLinearMatMul-10, -21", ambiguous=_product_open)
def qlinear_matmul(
    x: Any[Array, "*d"],
    x_scale: Float[Array, "*s"],
    x_zero: Any[Array, "*t"],
    y: Any[Array, "*e"],
    y_scale: Float[Array, "*u"],
    y_zero: Any[Array, "*v"],
    out_scale: Float[Array, "*o"],
    out_zero: Any[Array, "*p"],
) -> Array:
    """saturate(round_half_even((x - x_zero)(y - y_zero) * x_scale * y_scale / out_scale) + out_zero).

    Raises RuleError "scale-per-row", "contracted-agrees", "zero-fits"."""
    _alike(out_scale, out_zero)
    wide = _scaled_product(x, x_scale, x_zero, y, y_scale, y_zero, out_scale)
    return to_steps(wide, out_zero, of(out_zero))


def conv_of(ctx: Context, how: Scaling = exactly) -> Array:
    """The convolution in steps of the result, without its zero point.  how: scales the sums."""
    i = ctx.inputs
    back = {
        k: np.asarray(v).astype(np.int64) if k in ("x", "w", "x_zero", "w_zero", "b") and v is not None else v
        for k, v in i.items()
    }
    return _conv_steps(back, ctx.params, how)


def _conv_steps(i: Mapping[str, Object], p: Mapping[str, Object], how: Scaling = exactly) -> Array:
    x, w, wz = i["x"], i["w"], i["w_zero"]
    for name in ("x_scale", "x_zero", "w_scale", "w_zero", "out_scale"):
        check_grain(name, i[name], w.shape[0] if name[0] == "w" else 1)
    check_channels(x.shape[1], w.shape[0], w.shape[1], p["groups"], i["b"])
    g = geometry(x.shape[2:], w.shape[2:], p["strides"], p["dilations"], p["pads"], p["padding"])
    column = (-1, *(1,) * (w.ndim - 1))
    wz = wz.reshape(column if wz.size != 1 else ())
    a = native.conv(
        centred(x, i["x_zero"].reshape(())), centred(w, wz), None, g.strides, g.dilations, g.pads, p["groups"]
    )
    total = a.astype(np.float64)
    along = (1, -1, *(1,) * (x.ndim - 2))
    if i["b"] is not None:
        total = total + i["b"].astype(np.float64).reshape(along)
    s = np.asarray(i["w_scale"])
    return how(
        total,
        np.asarray(i["x_scale"]).reshape(()),
        s.reshape(along if s.size != 1 else ()),
        np.asarray(i["out_scale"]).reshape(()),
    )


def _conv_open(inputs: dict[str, Object], params: dict[str, Object]) -> str | None:
    p = {k: params[k] for k in ("strides", "dilations", "pads", "groups", "padding")}
    scales = [inputs[k] for k in ("x_scale", "w_scale", "out_scale")]
    return _any_order(inputs, lambda how: _conv_steps(inputs, p, how), scales)


@semantics(error=_requantised(conv_of), source="ONNX QLinearConv-10", ambiguous=_conv_open)
def qlinear_conv(
    x: Any[Array, "n c *s"],
    x_scale: Float[Array, "*a"],
    x_zero: Any[Array, "*b"],
    w: Any[Array, "m g *k"],
    w_scale: Float[Array, "*f"],
    w_zero: Any[Array, "*h"],
    out_scale: Float[Array, "*o"],
    out_zero: Any[Array, "*p"],
    b: Any[Array, "m"] | None = None,
    *,
    strides: Each[Ints, "s", 1, 3] | None = None,
    dilations: Each[Ints, "s", 1, 2] | None = None,
    pads: Pads[Ints, "s", "k"] | None = None,
    groups: Divisor[int, "c"] = 1,
    padding: Choice[str, MODES] = "explicit",
) -> Array:
    """The convolution of the centred integers plus the i32 bias, scaled and rounded half to even; padding is the zero
    point.  Raises RuleError as ``conv_integer`` does."""
    i = {
        "x": x,
        "x_scale": x_scale,
        "x_zero": x_zero,
        "w": w,
        "w_scale": w_scale,
        "w_zero": w_zero,
        "out_scale": out_scale,
        "b": b,
    }
    p = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups, "padding": padding}
    check_grain("out_zero", out_zero, 1)
    return to_steps(_conv_steps(i, p), out_zero.reshape(()), of(out_zero))
