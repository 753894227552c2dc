"""Bounds that are a function of the inputs, or a chain of roundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from harness.core.dtypes import float_max
from harness.tolerance.base import Tolerance
from harness.tolerance.context import Bound, Context
from harness.tolerance.numeric import Array, ulp


@dataclass(frozen=True, eq=False)
class Bounded(Tolerance):
    """|a - h| <= fn(ctx), an error function of the inputs."""

    fn: Bound = lambda ctx: 0.0

    name: ClassVar[str] = "BOUNDED"

    def _bound(self, ctx: Context) -> Any:
        if ctx.within is None:
            return self.fn(ctx)
        inner, carry = ctx.within
        own = inner()
        own.acc = ctx.acc
        return carry(np.asarray(self.fn(own), np.float64))

    def screen(self, ctx: Context) -> Any:
        return 0.5 * ctx.ulp if ctx.out.kind in "fc" else 0.0


@dataclass(frozen=True, eq=False)
class Composed(Bounded):
    """|a - h| <= fn(ctx), first-order propagation through a chain of roundings."""

    name: ClassVar[str] = "COMPOSED"


@dataclass(frozen=True, eq=False)
class Summed(Composed):
    """The same, of a sum of products in any order."""

    sums: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Propagated(Composed):
    """|a - h| <= fn(ctx), also of integers: the bound of a program, of which a value may be rounded to a step."""

    name: ClassVar[str] = "PROPAGATED"
    moves_integers: ClassVar[bool] = True

    def bound(self, ctx: Context) -> Any:
        return self._bound(ctx)

    def spans(self, ctx: Context) -> Sequence[tuple[Any, Any]]:
        h, b = np.asarray(ctx.wide, np.float64), np.asarray(self._bound(ctx), np.float64)
        return [(h - b, h + b)] if ctx.out.kind in "iu" else []


class Unlimited(Propagated):
    """The same.  An infinity whose bound is infinite may come as anything: finite values, or sums of them, may leave
    the type on the way.  The bound of any other is 0."""

    binds_infinities: ClassVar[bool] = False


def bounded(fn: Bound, formula: str | None = None) -> Bounded:
    """|a - h| <= fn(ctx), an error function of the inputs.  formula: as text; without it, fn's docstring is."""
    return Bounded(formula or (fn.__doc__ or fn.__name__).strip(), fn=fn)


def composed(fn: Bound, formula: str | None = None) -> Composed:
    """|a - h| <= fn(ctx), first-order propagation through a chain of roundings.  formula: as of ``bounded``."""
    return Composed(formula or (fn.__doc__ or fn.__name__).strip(), fn=fn)


def summed(fn: Bound, most: Bound, formula: str | None = None) -> Summed:
    """|a - h| <= fn(ctx), a sum of products in any order.

    most: ``fn(ctx)``, what no partial sum exceeds.  If that is beyond the type, nothing binds the element: one order
        may overflow and another may not.
    formula: as of ``bounded``.
    """

    def bound(ctx: Context) -> Any:
        with np.errstate(all="ignore"):
            return np.where(most(ctx) >= float_max(ctx.acc), np.inf, fn(ctx))

    said = formula or (fn.__doc__ or fn.__name__).strip()
    return Summed(f"{said}; free where partial sums may overflow", fn=bound)


def propagated(fn: Bound, formula: str, unlimited: bool = False) -> Propagated:
    """|a - h| <= fn(ctx), of floats and integers.  formula: as text.  unlimited: an infinite bound opens infinities."""
    return (Unlimited if unlimited else Propagated)(formula, fn=fn)


@dataclass(frozen=True, eq=False)
class Through(Tolerance):
    """|a - f(h)| <= the images of h and its tolerance, and ``ulps`` of f's own.

    inner: the rule of h, the result before.  fn: f, which grows or falls everywhere."""

    inner: Tolerance | None = None
    fn: Callable[[Array], Array] = lambda x: x
    ulps: float = 0.0

    name: ClassVar[str] = "THROUGH"

    @cached_property
    def _inner(self) -> Tolerance:
        assert self.inner is not None
        return self.inner

    @property
    def formula(self) -> str:
        return f"{self.name}: {self.rule}, of {self._inner.formula}"

    @property
    def sums(self) -> bool:  # type: ignore[override]
        return self._inner.sums

    def _bound(self, ctx: Context) -> Any:
        assert ctx.before is not None, "only the last result of a spelling goes through a function"
        before = ctx.before()
        before.acc = ctx.acc
        h = np.asarray(before.wide, np.float64)
        with np.errstate(all="ignore"):
            most = np.broadcast_to(self._inner.bound(before), h.shape) + 0.5 * ulp(h, ctx.out)
            low = np.where(np.isinf(most), -np.inf, h - most)
            high = np.where(np.isinf(most), np.inf, h + most)
            at = self.fn(h)
            images = np.maximum(np.abs(self.fn(low) - at), np.abs(self.fn(high) - at))
        return np.where(np.isnan(images), 0.0, images) + self.ulps * ctx.ulp

    def screen(self, ctx: Context) -> Any:
        return self.ulps * ctx.ulp if ctx.out.kind in "fc" else 0.0

    def roundings(self, ctx: Context) -> float:
        return self._inner.roundings(ctx.before() if ctx.before is not None else ctx)


def through(inner: Tolerance, fn: Callable[[Array], Array], name: str, ulps: float = 0.0) -> Through:
    """``inner``, of a result that ``fn`` is applied to in the end.

    fn: grows or falls everywhere.  name: as reports call it.  ulps: how far an implementation of it may be off."""
    return Through(f"|a - {name}(h)| <= images of h's bound + {ulps:g} ulp", inner=inner, fn=fn, ulps=ulps)
