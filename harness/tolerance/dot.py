"""Sums and dot products, in any order."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harness.core.dtypes import DType, float_max, smallest_normal
from harness.tolerance.base import Tolerance
from harness.tolerance.context import Bound, Context
from harness.tolerance.numeric import gamma


@dataclass(frozen=True, eq=False)
class Dot(Tolerance):
    """A sum of ``terms`` products (K) in any order, plus ``extra`` roundings.

    after: ``fn(ctx)`` -> by what a product that has underflowed may be multiplied yet; None: 1."""

    terms: str | float | Bound = 1.0
    extra: float = 2.0
    after: Bound | None = None

    name: ClassVar[str] = "DOT"
    sums: ClassVar[bool] = True
    first_ulps: ClassVar[float] = 1.0

    def _bound(self, ctx: Context) -> Any:
        n = ctx.count(self.terms)
        top = float_max(ctx.acc)
        s = ctx.scale()
        g = gamma(n + self.extra, ctx.acc_u) * s
        # A partial sum may overflow the accumulator in some order: then the result says nothing.
        g = np.where(s * (1 + n * ctx.acc_u) >= top, np.inf, g)
        return g + ctx.ulp + n * _tiny(ctx.acc) * (self.after(ctx) if self.after is not None else 1.0)

    def screen(self, ctx: Context) -> Any:
        """S >= |h|, so that gamma * |h| is never above the bound (`lazy exact scale`)."""
        if ctx.out.kind not in "fc":
            return self.bound(ctx)
        return gamma(ctx.count(self.terms) + self.extra, ctx.acc_u) * np.abs(ctx.wide) + ctx.ulp

    def roundings(self, ctx: Context) -> float:
        return ctx.count(self.terms)

    def numbers(self, ctx: Context) -> str:
        n = ctx.count(self.terms)
        g = gamma(n + self.extra, ctx.acc_u)
        return f"{self.name}: {_rule(n + self.extra, str(ctx.acc))}, K = {n:g}, gamma = {g:.3g}"


def _rule(terms: float | str, acc: str) -> str:
    many = terms if isinstance(terms, str) else f"{terms:g}"
    return f"|a - h| <= gamma({many}, {acc}) * S + ulp(h)"


def _tiny(acc: DType) -> float:
    return smallest_normal(acc) * 2.0**-acc.frac  # an underflowing product loses at most this


def _counted(terms: str | float | Bound) -> str:
    """What K is, as text: an expression over the dims, a number, or the first line of what the function says."""
    if not callable(terms):
        return f"{terms}"
    said = (inspect.getdoc(terms) or "").split("\n")[0].rstrip(".")
    return said[:1].lower() + said[1:] if said else "the terms of one sum"


def accumulates(terms: str | float | Bound, *, extra: float = 2.0, after: Bound | None = None) -> Dot:
    """A sum of ``terms`` products in any order (K), plus ``extra`` roundings (scale, bias, division).

    after: ``fn(ctx)`` -> by what a product that has underflowed may be multiplied yet, 1 without."""
    many = f"K + {extra:g}" if extra else "K"
    return Dot(f"{_rule(many, 'acc')}, K = {_counted(terms)}", terms=terms, extra=extra, after=after)
