"""Affine quantisation: real = scale * (q - zero_point), and the fixed-point multiplication that returns to integers.

Sources: TFLite 8-bit quantization specification (scales, zero points, which operators restrict them); "Quantization and
Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference" (Jacob et al.), section 2.2, and gemmlowp's
fixedpoint.h for the integer multiplication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import DType, int_range
from harness.declare import Context, Draw, Param, Tolerance, accepted, quantised
from harness.tolerance.quantised import Quantised

Array = np.ndarray
Quant = dict[str, Any]

_SCALES = (0.0078125, 0.1, 0.5, 1.0, 0.00392156862745098, 0.037, 0.25, 2.0, 0.0123)


def f32(x: float) -> float:
    """A scale as the file stores it."""
    return float(np.float32(x))


def spread(values: Any, q: Quant, ndim: int) -> Array:
    """Per-channel parameters shaped to broadcast along ``q["axis"]``; one value stays a scalar."""
    v = np.asarray(values, np.float64)
    if v.size == 1:
        return v.reshape(())
    shape = [1] * ndim
    shape[q.get("axis", 0)] = v.size
    return v.reshape(shape)


def centred(x: Array, q: Quant) -> Array:
    """q - zero_point as int64, exact."""
    return x.astype(np.int64) - spread(q["zero_point"], q, x.ndim).astype(np.int64)


def factor(x: Array, q: Quant, axis: int | None = None) -> Array:
    """The same in the narrowest type that products take, i16 where it holds it.  axis: of the zero points, where not
    the stored one."""
    zero = spread(q["zero_point"], q if axis is None else {"axis": axis}, x.ndim).astype(np.int64)
    if x.dtype.itemsize > 1:
        return x - zero if zero.any() else x
    narrow = zero.astype(x.dtype)
    return native.centre(x, narrow if (narrow == zero).all() else zero)


def real(x: Array, q: Quant) -> Array:
    """The real numbers that a quantised tensor stands for, in f64 (exact up to 2**53)."""
    return centred(x, q) * spread(q["scale"], q, x.ndim)


def away(x: Array) -> Array:
    """Nearest integer, ties away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


def saturate(steps: Array, dtype: DType) -> Array:
    """Integers clamped to the range of ``dtype``; NaN (no real number) becomes the zero point's neighbour 0."""
    lo, hi = int_range(dtype)
    return np.clip(np.nan_to_num(steps, nan=0.0, posinf=hi, neginf=lo), lo, hi).astype(dtype.np)


def steps(r: Array, q: Quant) -> Array:
    """Real numbers in output steps, zero point included, not yet rounded."""
    return r / spread(q["scale"], q, np.ndim(r)) + spread(q["zero_point"], q, np.ndim(r))


# -- gemmlowp


def multiplier(scale: Array | float) -> tuple[Array, Array]:
    """A positive real as (integer in [2**30, 2**31), power of two): scale = m * 2**(shift - 31).  What is below 2**-32
    counts as zero, and so does what has no such form: what is not positive, an infinity and NaN (Jacob et al., section
    2.2, know multipliers above 0 only; native_ref says the same)."""
    scale = np.asarray(scale, np.float64)
    m, e = np.frexp(np.where(np.isfinite(scale) & (scale > 0), scale, 0.0))
    fixed = np.floor(m * (1 << 31) + 0.5).astype(np.int64)
    top = fixed == 1 << 31
    fixed, e = np.where(top, fixed >> 1, fixed), np.where(top, e + 1, e)
    small = e < -31
    return np.where(small, 0, fixed), np.where(small, 0, e)


def window(scale: Array | float) -> Array:
    """How near to a tie (in steps) the fixed-point result may fall on either side: the high multiplication rounds once
    to 2**-n of a step before the shift by n rounds again."""
    _, e = multiplier(scale)
    return np.where(e < 0, np.ldexp(1.0, np.minimum(e, 0) - 1), 0.0) + 2.0**-16


# -- parameters


class Parameters(Param):
    """Scale and zero point of a tensor.  of: the semantic tensor whose dtype counts.  zero: pins the zero point; scale:
    ``fn(d, env)`` gives the scale (default: one of a few); channels: ``fn(env)`` gives the channel count of a
    per-channel tensor along ``axis``.  dtype: where the tensor is no operand."""

    def __init__(
        self,
        of: str,
        *,
        zero: int | str | None = None,
        scale: Callable[[Draw, dict[str, Any]], Any] | None = None,
        pot: bool = True,
    ) -> None:
        self.of, self.zero, self.scale, self.pot = of, zero, scale, pot

    def draw(self, d: Draw, env: dict[str, Any]) -> Quant:
        return draw_parameters(
            d,
            self.type_of(d, env),
            zero=self.zero,
            pot=self.pot,
            scale=None if self.scale is None else self.scale(d, env),
        )

    def type_of(self, d: Draw, env: dict[str, Any]) -> DType:
        return d.dtype(self.of)


class SameOrOther(Parameters):
    """Those of a second operand: half of the time they are the first one's, which stands under ``like``."""

    def __init__(self, of: str, like: str) -> None:
        super().__init__(of)
        self.like = like

    def draw(self, d: Draw, env: dict[str, Any]) -> Quant:
        return env[self.like] if d.bool() else super().draw(d, env)


def draw_parameters(d: Draw, dt: DType, *, zero: int | str | None = None, scale: Any = None, pot: bool = True) -> Quant:
    """Per-tensor parameters; 16-bit tensors are symmetric (zero point 0), as the specification demands.

    zero: a number, "low" (the lowest value of the type), "mid", or None for any.  pot: powers of two are allowed.
    """
    lo, hi = int_range(dt)
    if dt.bits > 8:
        zero = 0
    elif zero == "low":
        zero = lo
    elif zero == "mid":
        zero = (lo + hi + 1) // 2
    elif zero is None:
        zero = d.pick((0, lo, hi, (lo + hi + 1) // 2, d.int(lo, hi)))
    if scale is None:
        scale = d.pick(_SCALES)
        if dt.bits == 16:
            scale /= 64
        if not pot:
            scale *= 1.1
    many = [f32(s) for s in np.ravel(scale)]
    return {"scale": many, "zero_point": [int(zero)] * len(many), "axis": 0}


def near_or_apart(d: Draw, near: float, *operands: Quant) -> float:
    """An output scale: five times in eight one that uses the range, else an operand's, or a far finer or coarser one.

    The specification relates it to nothing: what a fine one cannot hold saturates, of a coarse one few steps remain."""
    match d.int(0, 7):
        case 5 | 6:
            return near * 2.0 ** d.int(-14, 10)
        case 7 if operands:
            return d.pick([q["scale"][0] for q in operands])
    return near


def about(*names: str, low: float = 0.4, high: float = 2.0) -> Callable[[Draw, dict[str, Any]], float]:
    """An output scale of the size of the sum of some operands' scales, so that results neither vanish nor saturate, or
    one apart from that."""

    def scale(d: Draw, env: dict[str, Any]) -> float:
        total = sum(env[n]["scale"][0] for n in names)
        near = total * (low + (high - low) * d.int(0, 32) / 32)
        return near_or_apart(d, near, *(env[n] for n in names))

    return scale


LIMITS = {"RELU": (0.0, np.inf), "RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0)}  # real ones of fused activations


def sign_bit(x: Array) -> Array:
    """1 where the sign is set, else 0."""
    return np.signbit(x).astype(np.float64)


# fused activations that limit nothing, of real numbers; each grows or falls everywhere
CURVES: dict[str, Callable[[Array], Array]] = {"TANH": np.tanh, "SIGN_BIT": sign_bit}
_CURVE = 2.0**-20  # how far an implementation's tanh may be off


def curved(r: Array, params: Mapping[str, Any]) -> Array:
    """Unrounded steps after a fused activation that limits nothing; as they are after any other."""
    q, curve = params.get("oq", params.get("q")), CURVES.get(params.get("activation", "NONE"))
    if q is None or curve is None:
        return r
    s, z = q["scale"][0], q["zero_point"][0]
    return curve((r - z) * s) / s + z


def _curved_freedom(params: Mapping[str, Any]) -> float:
    q = params.get("oq", params.get("q"))
    return _CURVE / float(q["scale"][0]) if q is not None and params.get("activation", "NONE") == "TANH" else 0.0


def clamped(params: Mapping[str, Any]) -> tuple[float, float, float]:
    """A fused activation's limits in unrounded steps, and the freedom that they have: limit / scale + zero_point is
    said to be computed in no particular order of f32 operations.  A limit beyond what 16 bits and
    a zero point reach clamps nothing, and the other limit gets no freedom from it."""
    q, limits = params.get("oq", params.get("q")), LIMITS.get(params.get("activation", "NONE"))
    if q is None or limits is None:
        return -np.inf, np.inf, 0.0
    z = float(q["zero_point"][0])
    low, high = (v / q["scale"][0] + z for v in limits)
    return low, high, 2.0**-23 * (abs(z) + max((abs(v) for v in (low, high) if abs(v) <= 1 << 17), default=0.0))


def reachable(actual: Array, r: Array, freedom: Any, dtype: DType) -> Array:
    """Which are integers that ``r``, unrounded steps, is rounded to when it moves by at most ``freedom``."""
    lo, hi = int_range(dtype)
    a = actual.astype(np.float64)
    return (np.clip(np.ceil(r - freedom - 0.5), lo, hi) <= a) & (a <= np.clip(np.floor(r + freedom + 0.5), lo, hi))


def rounding(fn: Callable[..., Array], tie: Callable[..., Any] | float = 2.0**-16) -> Quantised:
    """QUANT with ``fn(**inputs, **params)`` as the unrounded result in steps; tie: how far it may be off."""

    def found(ctx: Context) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(fn(**ctx.inputs, **ctx.params), np.float64)

    def near(ctx: Context) -> Any:
        return tie(**ctx.inputs, **ctx.params) if callable(tie) else tie

    def image(ctx: Context, r: Array) -> tuple[Array, float]:
        return curved(r, ctx.params), _curved_freedom(ctx.params)

    return quantised(real=found, tie=near, image=image, clamp=lambda ctx: clamped(ctx.params))


def within(fn: Callable[..., Array], freedom: Callable[..., Any], what: str) -> Tolerance:
    """Steps no further than ``freedom(**inputs, **params)`` from the unrounded result, which is clamped like them; NaN,
    no real number, is 0."""
    return within_one_of((fn, freedom), what=what)


def within_one_of(*readings: tuple[Callable[..., Array], Callable[..., Any]], what: str) -> Tolerance:
    """Steps that are ``within`` the freedom of one of several results: where the specification does not say how a
    function of steps is computed, and two ways that both keep it are further apart than their roundings.

    readings: the unrounded result and its freedom in steps, as in ``within``."""
    errors = [
        rounding(lambda fn=fn, **kw: np.nan_to_num(fn(**kw), posinf=np.inf, neginf=-np.inf), freedom)
        for fn, freedom in readings
    ]

    def ok(ctx: Context, actual: Array) -> Array:
        a = actual.astype(np.float64)
        spans = [e.span(ctx) for e in errors]
        return np.logical_or.reduce([(low <= a) & (a <= high) for low, high in spans])

    def spans(ctx: Context) -> list[tuple[Array, Array]]:
        return [e.span(ctx) for e in errors]

    return accepted(ok, f"QUANT: {what}", spans)
