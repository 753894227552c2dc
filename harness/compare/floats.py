"""Floats and complex numbers within their tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.compare.judgement import AGREE, UNINFORMATIVE, Judgement, wrong
from harness.core.dtypes import BY_NAME, F8E8M0, smallest_normal
from harness.core.outcome import Verdict
from harness.tolerance import Context, Tolerance, ulp
from harness.tolerance.claimed import NONE, Accuracy
from harness.tolerance.freedom import left_range
from native_ref import DULL, MOST, SMALL, compare


def floats(e: Any, error: Tolerance, a: Any, i: int, acc: Any, flush: bool, claimed: Accuracy = NONE) -> Judgement:
    """Floats, within their tolerance and the accuracy that the backend claims beside it."""
    j = _floats(e, error, a, i, acc, flush)
    if not claimed or j.verdict is not Verdict.MISMATCH:
        return j
    want = e.value if error.exact or e.wide is None else e.wide
    ulps, bound = error.fixed_ulps, 0.0
    if ulps is None:
        bound = error.bound(context(e, acc)) if want is e.wide else 0.0
    c = compare(a, want, _array(np.asarray(bound) + claimed.beside(want, e.dtype), want), ulps=ulps or 0.0, flush=flush)
    return j if c.bad else AGREE if e.wide is None else _dull(e, c)


def _floats(e: Any, error: Tolerance, a: Any, i: int, acc: Any, flush: bool) -> Judgement:
    """Floats: the rounded value for exact classes, else the wide result, cheap bounds first."""
    wide = e.wide
    signed = error.signed_zero
    if e.dtype is F8E8M0 and wide is not None:
        wide = np.where(np.isnan(e.value.astype(np.float64)), np.nan, wide)  # a type without sign and zero
    if error.exact or wide is None:
        # Without a wide result the reference has moved data or computed in the type itself.
        ulps = error.fixed_ulps or 0.0
        c = compare(a, e.value, ulps=ulps, signed_zero=signed, flush=flush)
        if not c.bad and not (flush and c.flushed):
            return AGREE
        return _settle(e, error, a, i, c, e.value, 0.0, ulps, flush, acc)
    if (k := error.fixed_ulps) is not None:
        c = compare(a, wide, ulps=k, signed_zero=signed, flush=flush)
        if not c.bad and not (flush and c.flushed):
            return AGREE if c.size < SMALL or c.uninformative <= MOST * c.size else UNINFORMATIVE
        return _settle(e, error, a, i, c, wide, 0.0, k, flush, acc)
    c = compare(a, wide, ulps=error.first_ulps, signed_zero=signed)
    if not c.bad:
        return _dull(e, c)
    ctx = context(e, acc)
    if error.sums:  # of the others half an ulp was the screen
        c = compare(a, wide, _array(error.screen(ctx), wide), signed_zero=signed)
        if not c.bad:
            return _dull(e, c)
    bound = _array(error.bound(ctx), wide, error.binds_infinities)
    if not error.binds_infinities:
        a = np.where(np.isinf(bound), e.value, a)
    c = compare(a, wide, bound, signed_zero=signed, flush=flush)
    free: Any = False
    if c.nan_bad:
        # Where partial results may overflow in both directions, inf - inf may come out: nothing is bound there.
        free = np.isnan(a.astype(np.float64)) & np.isinf(bound) & np.isfinite(wide)
        if free.any():
            c = compare(np.where(free, e.value, a), wide, bound, signed_zero=signed, flush=flush)
    if (c.inf_bad or c.nan_bad) and error.sums:
        free = free | left_range(ctx, wide)
        if free.any():
            c = compare(np.where(free, e.value, a), wide, bound, signed_zero=signed, flush=flush)
    if not c.bad and not (flush and c.flushed):
        return passed(_dull(e, c), i, c.uninformative, c.size)
    return _settle(e, error, a, i, c, wide, bound, 0.0, flush, acc)


def passed(plain: Judgement, i: int, unjudged: int, size: int) -> Judgement:
    """An output within its bounds, some of which bind too little."""
    if not unjudged:
        return plain
    return Judgement(Verdict.UNINFORMATIVE if unjudged > MOST * size else plain.verdict, i, unjudged=unjudged)


def _settle(
    e: Any, error: Tolerance, a: Any, i: int, c: Any, want: Any, bound: Any, ulps: float, flush: bool, acc: Any
) -> Judgement:
    """A comparison that did not simply pass: the kind of difference; flushing must hold for all subnormals or none."""
    kind = "value"
    if c.bad and flush and _flushed(e, error, a, bound, ulps, acc):
        return AGREE
    subnormal: Any = False
    if flush and c.flushed:
        w = np.abs(np.asarray(want, np.float64))
        subnormal = (w > 0) & (w < smallest_normal(e.dtype)) & (np.asarray(e.value, np.float64) != 0)
        if e.open is not None:
            subnormal &= ~e.open
    if not c.bad:
        gone, tiny = np.asarray(a, np.float64) == 0, smallest_normal(e.dtype)
        # what rounds to zero is not flushed; what rounds to the smallest normal number may be kept or flushed, since
        # IEEE 754-2019, 7.5 lets an implementation detect tininess before or after rounding; a normal number that is
        # off by less than the bound was neither
        normal = np.maximum(np.abs(np.asarray(e.value, np.float64)), np.abs(np.asarray(a, np.float64))) >= tiny
        kept, flushed = (int(np.count_nonzero(subnormal & x)) for x in (~gone & ~normal, gone & ~normal))
        if not kept or not flushed:
            return AGREE
        kind, detail = "flush", f"{flushed} subnormal results flushed to zero, {kept} not"
        return wrong(e, a, i, kind, detail, c, bound, ulps)
    if c.nan_bad == c.bad:
        kind = "nan"
    elif c.inf_bad == c.bad:
        kind = "inf"
    elif error.signed_zero and c.zero_sign == c.bad:
        kind = "zero_sign"
    elif c.nan_bad:
        kind = "nan"
    if subnormal is not False:  # what may be flushed is not wrong beside what is, and not told as its error
        a = np.where(subnormal & (np.asarray(a, np.float64) == 0), e.value, a)
    return wrong(e, a, i, kind, "", c, bound, ulps)


def _flushed(e: Any, error: Tolerance, a: Any, bound: Any, ulps: float, acc: Any) -> bool:
    """Is it the result of an implementation that takes subnormal inputs, results and partial results for zero?  The
    zero that stands for a subnormal is of either sign, any other has the one that the operator fixes."""
    ctx = context(e, acc)
    tiny = smallest_normal(e.dtype)
    try:
        wide = ctx.finished(**{k: _without_subnormals(v, tiny) for k, v in ctx.inputs.items()})
        partial = tiny * error.roundings(ctx)
    except Exception:  # an op that evaluates itself, or whose inputs must not change
        return False
    if wide.shape != a.shape:
        return False
    if e.open is not None:
        a = np.where(e.open, wide, a).astype(a.dtype)
    bound = np.asarray(bound, np.float64) + partial
    if not error.signed_zero:
        return not compare(a, wide, bound, ulps=ulps, flush=True).bad
    free = (np.asarray(a, np.float64) == 0) & (wide == 0) & (np.asarray(e.value, np.float64) != 0)
    a = np.where(free, wide.astype(a.dtype), a)
    return not compare(a, wide, bound, ulps=ulps, signed_zero=True, flush=True).bad


def _without_subnormals(v: Any, tiny: float) -> Any:
    if isinstance(v, (list, tuple)):
        return [_without_subnormals(x, tiny) for x in v]
    if not isinstance(v, np.ndarray) or v.dtype != np.float64:
        return v
    return np.where(np.abs(v) < tiny, np.copysign(0.0, v), v)


def _dull(e: Any, c: Any) -> Judgement:
    """A pass that says little: mostly zeros, one value, NaN or infinities."""
    if c.size < SMALL:
        return AGREE
    if c.zeros > DULL * c.size:
        return UNINFORMATIVE
    v = e.value
    if v.dtype.kind == "f" and (v.ravel()[0] == v).all():
        return UNINFORMATIVE
    if np.count_nonzero(np.isfinite(e.wide)) < (1 - DULL) * c.size:
        return UNINFORMATIVE
    return AGREE


def context(e: Any, acc: Mapping[str, str] | None) -> Context:
    ctx = e.context()
    if acc and e.dtype.name in acc:
        ctx.acc = BY_NAME[acc[e.dtype.name]]
    return ctx


def _array(bound: Any, wide: np.ndarray, binds_infinities: bool = True) -> np.ndarray:
    """The bound per element: an undefined one binds nothing, an infinite result must be met exactly, unless the rule
    says otherwise."""
    b = np.fmin(np.asarray(bound, np.float64), np.inf)  # which makes NaN infinite
    return np.where(np.isinf(wide), 0.0, b) if binds_infinities else b


def complex(e: Any, error: Tolerance, a: Any, i: int) -> Judgement:
    """Real and imaginary parts, each within the bound of the modulus."""
    part = BY_NAME["f32"] if e.dtype.name == "c64" else BY_NAME["f64"]
    flat = np.ascontiguousarray(a).reshape(-1).view(part.np)
    if error.exact or e.wide is None:
        want = np.ascontiguousarray(e.value).reshape(-1).view(part.np)
        bound: Any = 0.0
        k = error.fixed_ulps or 0.0
        c = compare(flat, want, ulps=k, signed_zero=error.signed_zero)
    else:
        wide = np.ascontiguousarray(e.wide, np.complex128).reshape(-1)
        want = wide.view(np.float64)
        if error.fixed_ulps is not None:
            b = error.fixed_ulps * ulp(np.abs(wide), part)
        else:
            b = np.broadcast_to(np.asarray(error.bound(e.context()), np.float64), e.wide.shape).reshape(-1)
        b = np.where(np.isnan(b), np.inf, b)  # a NaN in one part leaves no modulus to measure the other by
        if e.open is not None:  # what is open has the value of the reference
            b = np.where(e.open.reshape(-1), np.inf, b)
        c = compare(flat, want, np.repeat(b, 2))
        bound = b.reshape(a.shape)
    return AGREE if not c.bad else wrong(e, a, i, "nan" if c.nan_bad == c.bad else "value", "", c, bound)
