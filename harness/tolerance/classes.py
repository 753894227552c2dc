"""How far a correct implementation may be from the exact result: one error class per output of a semantics.

A class says *which* rule; the numbers come from the instance when it is judged.  ``u`` is the unit roundoff of the
output type (2**-(frac+1), half an ulp relative), ``acc_u`` that of the type the implementation accumulates in (f32 for
f16, bf16 and f8 outputs unless the backend's profile says otherwise), ``S`` the same semantics run on absolute inputs.

    exact() copied()             comparison, integer arithmetic, min / max; data movement, where zeros keep their sign
    rounded(k)                   |a - h| <= k * ulp(h)
    accumulates("c*prod(k)")     |a - h| <= gamma(K, acc_u) * S + ulp(h): sums and dot products in any order
    bounded(fn) / composed(fn)   |a - h| <= fn(ctx): one function of the inputs / a chain of roundings
    quantised(steps, real=fn)    the integers that the real result, moved by no more than its freedom, is rounded to
    any_order(axis)              slices along an axis in any order, the same order for all outputs
    accepted(fn)                 fn(ctx, actual) -> per-element yes: under-specified choices such as ties of an arg
    statistical(dist, ...)       random ops: distribution tests, alone and pooled over a run

Source of the rules: TOSA numeric accuracy (dot product rule), Higham "Accuracy and Stability" ch. 3 (gamma), and the
peers' tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np

from harness.core.dtypes import F32, DType, float_max, int_range, smallest_normal

Array = np.ndarray
X = TypeVar("X")
# what a first look takes for the reference: the rounded result; the wide one, within ulps; the same, if it is not dull
VALUE, WITHIN, VARIED = 1, 2, 3
Bound = Callable[["Context"], Any]


def ulp(h: Any, out: DType) -> Array:
    """Spacing of ``out`` at |h|, never below that of the smallest normal; the spacing at the top beyond the range.

    NaN and inf give the top spacing, so that nobody has to filter them first."""
    least, top, step = _scale_of(out)
    m = np.fmin(np.maximum(np.abs(h, dtype=np.float64), least), top)  # fmin turns NaN into the top
    return (m.view(np.int64) & _EXPONENT).view(np.float64) * step  # the power of two at or below m


_EXPONENT = np.int64(0x7FF << 52)


@cache
def _scale_of(out: DType) -> tuple[np.float64, np.float64, np.float64]:
    """Smallest normal, largest finite value, spacing at 1."""
    return np.float64(smallest_normal(out)), np.float64(float_max(out)), np.float64(2.0**-out.frac)


def unit(out: DType) -> float:
    """Unit roundoff of a float type; 0 for the others."""
    return 2.0 ** -(out.frac + 1) if out.kind in "fc" else 0.0


def gamma(k: Any, u: float) -> Any:
    """k*u / (1 - k*u), the classic bound on k roundings; inf once k*u reaches one half."""
    if isinstance(k, (int, float)):  # no array: without the price of one
        one = k * u
        return np.float64(one / (1.0 - one) if one < 0.5 else np.inf)
    ku = np.asarray(k, np.float64) * u
    return np.where(ku < 0.5, ku / (1.0 - np.minimum(ku, 0.5)), np.inf)


class Context:
    """What a bound may look at.  Made by the framework when an instance is judged; everything costly is lazy.

    inputs: semantic name -> f64 array, of complex numbers complex128 (a list for a variadic slot, None when absent).
    params: keyword parameters.  wide: the result of this output, f64 or complex128; its shape is the bound's.
    out: the output's DType.
    dims: names bound by the signature -> int or tuple, for the expressions of ``accumulates``.
    rerun: inputs dict -> wide result of this output (the same semantics evaluated again).  finish: the same with what
    clamps the result in the end (a fused activation), which bounds leave out.
    acc: the accumulation type of the implementation being judged.
    call: the dialect's call, for entries that evaluate by themselves.
    own: the inputs in their own types, not widened, where the dialect does not lay the result out in its own way.
    within: where a dialect lays the result out in its own way, the context of the meaning's own result, and how a bound
    on that becomes one on the output.
    shared: what ``once`` keeps, one dict for the contexts of all outputs of an evaluation.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        params: Mapping[str, Any],
        wide: Array,
        out: DType,
        *,
        dims: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        rerun: Callable[[dict[str, Any]], Array] | None = None,
        count: Callable[[str], float] | None = None,
        acc: DType | None = None,
        within: tuple[Callable[[], Context], Callable[[Array], Array]] | None = None,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self._inputs, self.params, self.wide, self.out = inputs, params, wide, out
        self._dims, self._rerun, self._count = dims or {}, rerun, count
        self.acc = acc or default_acc(out)
        self.call: Any = None
        self.own: Mapping[str, Any] = {}
        self.within = within
        self.shared: dict[Any, Any] = {} if shared is None else shared
        self.finish: Callable[[dict[str, Any]], Array] | None = None

    def once(self, key: Any, make: Callable[[], X]) -> X:
        """``make()``, once for all outputs: what their bounds have in common, for this accumulation type."""
        key = key, self.acc
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]  # type: ignore[no-any-return]

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        return self._inputs() if callable(self._inputs) else self._inputs

    @cached_property
    def dims(self) -> Mapping[str, Any]:
        return self._dims() if callable(self._dims) else self._dims

    @property
    def u(self) -> float:
        return unit(self.out)

    @property
    def acc_u(self) -> float:
        return unit(self.acc)

    @property
    def ulp(self) -> Array:
        """ulp of the wide result in the output type."""
        return ulp(self.wide, self.out)

    def reevaluate(self, **changed: Any) -> Array:
        """The semantics once more, wide, with some inputs replaced."""
        if self._rerun is None:
            raise TypeError("this error context cannot evaluate the semantics again")
        return widened(self._rerun({**self.inputs, **changed}))

    def finished(self, **changed: Any) -> Array:
        """As ``again``, and clamped as the output is."""
        if self.finish is None:
            return self.reevaluate(**changed)
        return widened(self.finish({**self.inputs, **changed}))

    @cached_property
    def _scale(self) -> Array:
        return np.abs(self.reevaluate(**{k: absolute(v) for k, v in self.inputs.items()}))

    def scale(self) -> Array:
        """S: the same semantics on |inputs|."""
        return self._scale

    def sensitivity(self, rel: float, draws: int = 4, only: Sequence[str] = ()) -> Array:
        """Largest change of the result when every float input moves by up to ``rel`` relatively: first-order
        propagation by evaluation, over ``draws`` random sign patterns (the same ones every time)."""
        rng = np.random.Generator(np.random.PCG64(20240601))
        worst = np.zeros_like(self.wide, np.float64)
        for _ in range(draws):
            moved = {k: _moved(v, rel, rng) for k, v in self.inputs.items() if not only or k in only}
            with np.errstate(all="ignore"):
                d = np.abs(self.reevaluate(**moved) - self.wide)
            worst = np.maximum(worst, np.where(np.isfinite(d), d, 0.0))
        return worst

    def count(self, expr: str | Bound | float) -> float:
        """Value of a count: a number, a function of this context, or an expression over dims and parameters."""
        if callable(expr):
            return expr(self)
        if isinstance(expr, (int, float)):
            return float(expr)
        if self._count is not None:
            return self._count(expr)
        names = {**self.dims, **self.params, "prod": _prod, "size": _prod, "max": max, "min": min, "len": len}
        return float(eval(expr, {"__builtins__": {}}, names))  # our own source text


def widened(v: Any) -> Array:
    """An array of f64, or of complex128 where the elements are complex."""
    v = np.asarray(v)
    return v.astype(np.complex128 if v.dtype.kind == "c" else np.float64, copy=False)


def _prod(v: Any) -> int:
    return int(np.prod(v, dtype=np.int64)) if np.ndim(v) else int(v)


def absolute(v: Any) -> Any:
    """|v| of float and complex arrays (lists element by element); everything else, such as indices, unchanged."""
    if isinstance(v, (list, tuple)):
        return [absolute(x) for x in v]
    return np.abs(v) if isinstance(v, np.ndarray) and v.dtype.kind in "fc" else v


def _moved(v: Any, rel: float, rng: np.random.Generator) -> Any:
    if isinstance(v, (list, tuple)):
        return [_moved(x, rel, rng) for x in v]
    if not (isinstance(v, np.ndarray) and v.dtype.kind == "f"):
        return v
    return v * (1.0 + rel * rng.choice((-1.0, 1.0), size=v.shape))


def default_acc(out: DType) -> DType:
    """f32 for everything narrower; the type itself from f32 on."""
    return F32 if out.kind == "f" and out.bits < 32 else out


@dataclass(frozen=True)
class ErrorClass:
    """kind, and what the kind needs.  formula: what the report prints.  k: ulps or steps.

    fn: of ``bounded``, ``composed``, ``accepted``; ``after`` of ``accumulates``.  real, tie, clamp: of ``quantised``.
    signed_zero: the operator's definition fixes the sign of a zero result, so -0 and +0 differ.
    axis: of ``any_order``; None means all elements.  dist: of ``statistical``.
    """

    kind: str
    formula: str
    k: float = 0.0
    terms: Any = None
    fn: Callable[..., Any] | None = None
    real: Bound | None = None
    tie: float | Bound = 0.0
    clamp: Bound | None = None
    signed_zero: bool = False
    axis: int | None = None
    dist: Any = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return id(self)

    @cached_property
    def brief(self) -> tuple[int, float, bool] | None:
        """What a first look at a real output compares it with (``native_ref.brief``): which tensor, ulps, zero signs;
        None where a single look cannot settle it."""
        return _BRIEF[self.kind](self) if self.kind in _BRIEF else None

    def signed(self) -> ErrorClass:
        """The same class for an op that fixes the sign of zero."""
        return replace(self, signed_zero=True)

    def bound(self, ctx: Context) -> Any:
        """Absolute bound, scalar or array of the wide result's shape; 0 for types that are judged exactly."""
        if ctx.out.kind not in "fc" and self.kind != "quantised":
            return 0.0
        if self.kind == "rounded":
            return self.k * ctx.ulp
        if self.kind == "accumulates":
            n = ctx.count(self.terms)
            top = float_max(ctx.acc)
            s = ctx.scale()
            g = gamma(n + self.k, ctx.acc_u) * s
            # A partial sum may overflow the accumulator in some order: then the result says nothing.
            g = np.where(s * (1 + n * ctx.acc_u) >= top, np.inf, g)
            return g + ctx.ulp + n * _tiny(ctx.acc) * (self.fn(ctx) if self.fn is not None else 1.0)
        if self.kind in ("bounded", "composed"):
            assert self.fn is not None
            if ctx.within is None:
                return self.fn(ctx)
            inner, carry = ctx.within
            own = inner()
            own.acc = ctx.acc
            return carry(np.asarray(self.fn(own), np.float64))
        if self.kind == "quantised" and ctx.out.kind in "iu":
            below, above = self._sides(ctx)
            return np.maximum(below, above)
        return 0.0

    def screen(self, ctx: Context) -> Any:
        """A bound that is never above ``bound`` and needs no second evaluation; elements within it pass at once.

        For dot products S >= |h|, so that gamma * |h| does (`lazy exact scale`)."""
        if self.kind == "accumulates" and ctx.out.kind in "fc":
            n = ctx.count(self.terms)
            return gamma(n + self.k, ctx.acc_u) * np.abs(ctx.wide) + ctx.ulp
        if self.kind in ("bounded", "composed"):
            return 0.5 * ctx.ulp if ctx.out.kind in "fc" else 0.0
        if self.kind == "quantised":
            return self.k
        return self.bound(ctx)

    def toward(self, ctx: Context, actual: Array) -> Any:
        """``bound`` on the side of the reference where ``actual`` lies: the integers that ``quantised`` lets pass lie
        around the real result, not around the one that the reference rounds it to."""
        if self.kind != "quantised" or ctx.out.kind not in "iu":
            return self.bound(ctx)
        below, above = self._sides(ctx)
        return np.where(np.asarray(actual, np.float64) > ctx.wide, above, below)

    def _sides(self, ctx: Context) -> tuple[Array, Array]:
        """How far below and above the reference an integer may lie; where the real result is NaN the reference alone is
        right."""
        h = np.asarray(ctx.wide, np.float64)
        low, high = self.span(ctx)
        return np.fmax(h - low, 0.0), np.fmax(high - h, 0.0)

    def span(self, ctx: Context) -> tuple[Array, Array]:
        """Lowest and highest integer that ``quantised`` lets pass."""
        h = np.asarray(ctx.wide, np.float64)
        if self.real is None:
            return h - self.k, h + self.k
        real = np.asarray(self.real(ctx), np.float64)
        tie = np.asarray(self.tie(ctx) if callable(self.tie) else self.tie)
        low, high = real - tie, real + tie
        if self.clamp is not None:
            least, most, free = self.clamp(ctx)
            low, high = np.clip(low, least - free, most - free), np.clip(high, least + free, most + free)
        low, high = np.ceil(low - 0.5) - self.k, np.floor(high + 0.5) + self.k
        least, most = int_range(ctx.out)
        return np.clip(low, least, most), np.clip(high, least, most)

    def numbers(self, ctx: Context) -> str:
        """The formula with the instance's numbers, for the report."""
        if self.kind == "accumulates":
            return f"{self.formula}, K = {ctx.count(self.terms):g}, acc {ctx.acc}"
        return self.formula


_BRIEF: dict[str, Callable[[ErrorClass], tuple[int, float, bool]]] = {
    "exact": lambda e: (VALUE, 0.0, e.signed_zero),
    "accepted": lambda e: (VALUE, 0.0, False),  # the reference's own choice
    "rounded": lambda e: (WITHIN, e.k, e.signed_zero),
    "accumulates": lambda e: (VARIED, 1.0, e.signed_zero),
    "bounded": lambda e: (VARIED, 0.5, e.signed_zero),
    "composed": lambda e: (VARIED, 0.5, e.signed_zero),
    "quantised": lambda e: (VARIED, 0.5, e.signed_zero),
}


def _tiny(acc: DType) -> float:
    return smallest_normal(acc) * 2.0**-acc.frac  # an underflowing product loses at most this


def exact(*, signed_zero: bool = False) -> ErrorClass:
    """Bit for bit (NaN payloads free; the sign of zero only on demand)."""
    return ErrorClass("exact", "EXACT", signed_zero=signed_zero)


def copied() -> ErrorClass:
    """Elements are moved, not computed: bit for bit, and a zero keeps its sign."""
    return ErrorClass("exact", "EXACT (copied: zeros keep their sign)", signed_zero=True)


def rounded(k: float = 1.0, *, signed_zero: bool = False) -> ErrorClass:
    """Within k ulp of the high-precision result; 0.5 is correct rounding, 1 faithful rounding."""
    return ErrorClass("rounded", f"ROUNDED({k:g}): |a-h| <= {k:g} ulp(h)", k=k, signed_zero=signed_zero)


def accumulates(terms: str | float | Bound, *, extra: float = 2.0, after: Bound | None = None) -> ErrorClass:
    """A sum of ``terms`` products in any order (K), plus ``extra`` roundings (scale, bias, division).

    after: ``fn(ctx)`` -> by what a product that has underflowed may be multiplied yet, 1 without."""
    what = terms if isinstance(terms, str) else getattr(terms, "__name__", str(terms))
    text = f"DOT(K={what}): |a-h| <= gamma(K+{extra:g}, acc)*S + ulp(h)"
    return ErrorClass("accumulates", text, k=extra, terms=terms, fn=after)


def bounded(fn: Bound, formula: str | None = None) -> ErrorClass:
    """|a - h| <= fn(ctx), an error function of the inputs."""
    return ErrorClass("bounded", f"BOUNDED: {formula or (fn.__doc__ or fn.__name__).strip()}", fn=fn)


def composed(fn: Bound, formula: str | None = None) -> ErrorClass:
    """|a - h| <= fn(ctx), first-order propagation through a chain of roundings."""
    return ErrorClass("composed", f"COMPOSED: {formula or (fn.__doc__ or fn.__name__).strip()}", fn=fn)


def quantised(
    steps: float = 0, *, real: Bound | None = None, tie: float | Bound = 2.0**-10, clamp: Bound | None = None
) -> ErrorClass:
    """Within ``steps`` integer steps of what ``real(ctx)``, the unrounded result in steps, is rounded to: one step next
    to x.5, more where an implementation's result may be off by more, but never further than ``tie`` from the real one
    before it is rounded.

    clamp: ``fn(ctx)`` -> (lowest, highest, how far these may be off), in unrounded steps, what the result is clamped to
    beyond the range of its type.  Without ``real`` the steps hold everywhere, around the reference."""
    near = ": the integers that real +- freedom is rounded to" if real else ""
    return ErrorClass("quantised", f"QUANT({steps:g}){near}", k=steps, real=real, tie=tie, clamp=clamp)


def any_order(axis: int | None = None, *, within: ErrorClass | None = None) -> ErrorClass:
    """Slices along ``axis`` (all elements when None) may come in any order, together in all outputs of this class.

    within: tolerance inside a slice, exact when not given."""
    where = "all elements" if axis is None else f"slices along axis {axis}"
    return ErrorClass("any_order", f"SET: {where} in any order", axis=axis, extra={"within": within or exact()})


def accepted(fn: Callable[[Context, Array], Any], formula: str | None = None) -> ErrorClass:
    """fn(ctx, actual) -> bool array: which of the actual elements the definition allows."""
    return ErrorClass("accepted", f"SET: {formula or (fn.__doc__ or fn.__name__).strip()}", fn=fn)


def statistical(dist: str | Callable[..., Any], **params: Any) -> ErrorClass:
    """A random result.  dist: "uniform" (low, high), "normal" (mean, std), "bernoulli" (p), or ``fn(ctx)`` ->
    (lowest, highest, x -> P(X < x), x -> P(X <= x), is it discrete), where x holds all draws in order.  params: names
    of parameters or functions of the context.  Judged case by case and
    over pooled samples, see ``harness.compare.statistics``."""
    name = dist if isinstance(dist, str) else dist.__name__
    return ErrorClass("statistical", f"STATISTICAL: {name}", dist=dist, extra=params)
