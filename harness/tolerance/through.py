"""The tolerance of a result that goes through one more function in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from harness.tolerance.base import Tolerance
from harness.tolerance.context import Context
from harness.tolerance.numeric import Array, ulp


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
