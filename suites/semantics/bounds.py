"""Pieces that the tolerances of composed ops are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F64, DType, float_max, int_range, of, smallest_normal
from harness.core.quiet import quiet as silently
from harness.declare import of_result, underspecified
from harness.tolerance import Context, Tolerance, composed, gamma

Array = np.ndarray


def quiet(fn: Any) -> Any:
    """A bound that may meet inf and NaN on its way; what is NaN in the end bounds nothing, so it becomes inf.

    Of a result without elements nothing is computed: other extents may be as far as 32 bits hold."""

    def wrapped(ctx: Context) -> Array:
        if not np.size(ctx.wide):
            return np.zeros(np.shape(ctx.wide))
        with silently:
            b = np.asarray(fn(ctx), np.float64)
        return np.where(np.isnan(b), np.inf, b)

    wrapped.__doc__, wrapped.__name__ = fn.__doc__, fn.__name__
    return wrapped


def top(ctx: Context) -> float:
    """Largest finite number of the accumulation type: intermediates beyond it say nothing."""
    return float_max(ctx.acc)


def tiny(ctx: Context) -> float:
    """What an intermediate may lose by underflow, flushing included."""
    return smallest_normal(ctx.acc)


def slope(k: float, ctx: Context) -> float:
    """gamma of k roundings in the accumulation type."""
    return float(gamma(k, ctx.acc_u))


def averages(count: Any, over: Any = None) -> Tolerance:
    """Tolerance of a sum of ``count(ctx)`` elements divided by their number, or by up to ``over(ctx)``: the sum itself
    may overflow."""

    @quiet
    def bound(ctx: Context) -> Array:
        """gamma(K+2) * mean|x| + ulp; free where K * mean|x| reaches the largest number"""
        k, s = count(ctx), ctx.scale()
        b = gamma(k + 2, ctx.acc_u) * s + ctx.ulp + tiny(ctx)
        return np.where(s * (over or count)(ctx) * (1 + k * ctx.acc_u) >= top(ctx), np.inf, b)

    return composed(bound)


def axes_of(ctx: Context, rank: int, name: str = "axes") -> tuple[int, ...]:
    """Reduced axes of a call, counted from the front."""
    axes = ctx.params.get(name)
    if axes is None:
        return tuple(range(rank))
    return tuple(sorted({int(a) % rank for a in ((axes,) if isinstance(axes, int) else axes)})) if rank else ()


def unordered(
    why: str, x: Array, axes: Any, power: float = 1.0, keepdims: bool = True, held: DType | None = None
) -> Any:
    """Opens the results that elements of ``x`` along ``axes`` are mixed into: a NaN or an infinity among them, or sums
    of as many of them, to ``power``, leave the type (or ``held``); no text states the order of the terms."""
    axes = tuple(axes)
    wide = np.abs(x.astype(np.float64))
    terms = max(1, int(np.prod([x.shape[a] for a in axes])))
    with np.errstate(all="ignore"):
        lost = ~(wide**power * terms < float_max(held or of(x)))
    return underspecified(why, lost.any(axis=axes, keepdims=keepdims)) if lost.any() else None


def overflows(size: Any, result: int | None = None) -> Any:
    """An ``ambiguous`` predicate: ``size(inputs, params)`` is an f64 bound on partial results, of every element of the
    result (of several: of the one with number ``result``) or (a number) of them all; integers beyond their type wrap,
    saturate or trap as an implementation likes, floats beyond it meet infinities in no stated order."""

    def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
        arrays = [a for v in inputs.values() if v is not None for a in (v if isinstance(v, list) else [v])]
        kinds = {of(a).kind for a in arrays}
        with np.errstate(all="ignore"):
            if kinds <= {"i", "u", "b"}:
                limit = min(int_range(of(a))[1] for a in arrays if of(a).kind != "b")
                limit -= limit >> 40 if limit > 2**53 else 0  # which the f64 bound does not tell from what is beyond
                return _beyond(
                    "integer overflow: the op set does not say what comes out", size(inputs, params), limit, result
                )
            reals = [a for a in arrays if of(a).kind == "f"]
            if F64 not in map(of, reals) and all(np.isfinite(np.asarray(a, np.float64)).all() for a in reals):
                return None  # the bound tells where sums leave the type, for the reference is wider
            calm = {
                n: [tamed(a) for a in v] if isinstance(v, list) else None if v is None else tamed(v)
                for n, v in inputs.items()
            }
            top = min(float_max(of(a)) for a in reals)
            why = "an infinity among values that overflow in some order"
            return _beyond(why, size(calm, params), np.nextafter(top, 0.0), result)

    return check


def _beyond(why: str, size: Any, limit: float, result: int | None) -> str | None:
    if isinstance(size, (int, float)):
        return why if size > limit else None
    at = ~(np.asarray(size) <= limit)
    return underspecified(why, at if result is None else of_result(result, at))


def tamed(v: Any) -> Any:
    """Floats in f64, what is not finite 0."""
    a = np.asarray(v, np.float64) if of(v).kind == "f" else v
    return np.where(np.isfinite(a), a, 0.0) if a.dtype.kind == "f" else a


def above_one(x: Any) -> Array:
    """Magnitudes in f64, 1 where they are below it or NaN: their product is the most that a product of ``x`` may reach
    on its way, in any order of the factors."""
    return np.asarray(np.fmax(np.abs(np.asarray(x, np.float64)), 1.0))


def zero_meets_infinity(x: Any, total: Any) -> str | None:
    """Opens products of the floats of ``x`` that may pass 0 and an infinity on their way, since 0 * inf is NaN.

    total: ``fn(a)``, for an array like ``x`` the sum over the factors of each element of the result."""
    wide, limit = np.asarray(x, np.float64), np.log2(float_max(of(x)))
    with np.errstate(all="ignore"):
        bits = np.where(np.isfinite(wide) & (wide != 0), np.log2(np.abs(wide)), 0.0)
    low, high = (total(f(bits, 0.0)) for f in (np.minimum, np.maximum))
    zero, endless = (total(at.astype(np.float64)) > 0 for at in (wide == 0, ~np.isfinite(wide)))
    mixed = (high >= limit) & (low < 2 - limit)  # some order meets a 0, another an infinity, a third multiplies the two
    return underspecified(
        "an intermediate product may become 0 next to an infinity, or infinite next to a 0",
        mixed | ((low < -limit + 30) & endless) | ((high >= limit) & zero),
    )


def has_nan(name: str, over: Any = None) -> Any:
    """An ``ambiguous`` predicate: NaN in an input, where the op set does not say whether it wins.

    over: ``fn(x, params)``, which elements of the result see one that is 1 in ``x``, 0 elsewhere (f64)."""

    def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
        v = inputs.get(name)
        if v is None or v.dtype.kind in "biuO":
            return None
        at = np.isnan(v if v.dtype.kind == "c" else np.asarray(v, np.float64))
        if not at.any():
            return None
        why = f"NaN in {name}: the op set does not say whether it wins or loses"
        return why if over is None else underspecified(why, np.asarray(over(at.astype(np.float64), params)) != 0)

    return check
