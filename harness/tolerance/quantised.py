"""Integers to which a real result is rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harness.core.dtypes import int_range
from harness.tolerance.base import Tolerance
from harness.tolerance.context import Bound, Context
from harness.tolerance.numeric import Array

Image = Callable[[Context, Array], tuple[Array, float]]


@dataclass(frozen=True, eq=False)
class Quantised(Tolerance):
    """The integers within ``steps`` of those to which ``real(ctx)``, moved by at most ``tie``, is rounded.

    clamp, image: see ``quantised``."""

    steps: float = 0.0
    real: Bound | None = None
    tie: float | Bound = 0.0
    clamp: Bound | None = None
    image: Image | None = None

    name: ClassVar[str] = "QUANT"
    moves_integers: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"{self.name}({self.steps:g})"

    @property
    def fixed_steps(self) -> float:
        return self.steps if self.real is None else 0.0

    def bound(self, ctx: Context) -> Any:
        if ctx.out.kind not in "iu":
            return 0.0
        below, above = self._sides(ctx)
        return np.maximum(below, above)

    def screen(self, ctx: Context) -> Any:
        return self.steps

    def toward(self, ctx: Context, actual: Array) -> Any:
        """The integers that pass lie around the real result, not around the one that the reference rounds it to."""
        if ctx.out.kind not in "iu":
            return self.bound(ctx)
        below, above = self._sides(ctx)
        return np.where(np.asarray(actual, np.float64) > ctx.wide, above, below)

    def spans(self, ctx: Context) -> Sequence[tuple[Array, Array]]:
        return [self.span(ctx)]

    def _sides(self, ctx: Context) -> tuple[Array, Array]:
        """How far below and above the reference an integer may lie; where the real result is NaN the reference alone is
        right."""
        h = np.asarray(ctx.wide, np.float64)
        low, high = self.span(ctx)
        return np.fmax(h - low, 0.0), np.fmax(high - h, 0.0)

    def span(self, ctx: Context) -> tuple[Array, Array]:
        """Lowest and highest integer that passes."""
        h = np.asarray(ctx.wide, np.float64)
        if self.real is None:
            return h - self.steps, h + self.steps
        real = np.asarray(self.real(ctx), np.float64)
        tie = np.asarray(self.tie(ctx) if callable(self.tie) else self.tie)
        low, high = real - tie, real + tie
        if self.image is not None:
            (one, free), (other, _) = self.image(ctx, low), self.image(ctx, high)
            low, high = np.minimum(one, other) - free, np.maximum(one, other) + free
        if self.clamp is not None:
            least, most, free = self.clamp(ctx)
            low, high = np.clip(low, least - free, most - free), np.clip(high, least + free, most + free)
        low, high = np.ceil(low - 0.5) - self.steps, np.floor(high + 0.5) + self.steps
        least, most = int_range(ctx.out)
        return np.clip(low, least, most), np.clip(high, least, most)


def quantised(
    steps: float = 0,
    *,
    real: Bound | None = None,
    tie: float | Bound = 2.0**-10,
    clamp: Bound | None = None,
    image: Image | None = None,
) -> Quantised:
    """An integer within ``steps`` of the rounded ``real(ctx)``, the unrounded result in steps.

    That is one step next to x.5, more where an implementation's result may be off by more.  Before it is rounded, it is
    never further than ``tie`` from the real result.

    image: ``fn(ctx, steps)`` -> (steps, how far these may be off), in unrounded steps: a function that grows or falls
        everywhere and that the result, with its freedom, goes through before it is clamped.
    clamp: ``fn(ctx)`` -> (lowest, highest, how far these may be off), in unrounded steps: what the result is clamped to
        beyond the range of its type.

    Without ``real`` the steps hold everywhere, around the reference.
    """
    near = "the integers to which real +- freedom is rounded"
    away = f"at most {steps:g} steps from " if steps else ""
    text = f"{away}{near}" if real else f"|a - h| <= {steps:g} steps"
    return Quantised(text, steps=steps, real=real, tie=tie, clamp=clamp, image=image)
