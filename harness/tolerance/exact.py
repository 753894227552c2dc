"""Results that are fixed, or fixed but for a number of ulps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from harness.tolerance.base import VALUE, WITHIN, Tolerance
from harness.tolerance.context import Context


@dataclass(frozen=True, eq=False)
class Exact(Tolerance):
    """Bit for bit; the payload of a NaN is free, and the sign of a zero unless ``signed_zero``."""

    name: ClassVar[str] = "EXACT"
    exact: ClassVar[bool] = True

    @property
    def fixed_ulps(self) -> float:
        return 0.0

    @cached_property
    def brief(self) -> tuple[int, float, bool]:
        return VALUE, 0.0, self.signed_zero

    def roundings(self, ctx: Context) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class Rounded(Tolerance):
    """Within a number of ulps of the wide result."""

    ulps: float = 1.0

    name: ClassVar[str] = "ROUNDED"

    @property
    def label(self) -> str:
        return f"{self.name}({self.ulps:g})"

    @property
    def fixed_ulps(self) -> float:
        return self.ulps

    @cached_property
    def brief(self) -> tuple[int, float, bool]:
        return WITHIN, self.ulps, self.signed_zero

    def _bound(self, ctx: Context) -> Any:
        return self.ulps * ctx.ulp

    def roundings(self, ctx: Context) -> float:
        return 0.0


def exact(*, signed_zero: bool = False) -> Exact:
    """Bit for bit (NaN payloads free; the sign of zero only on demand)."""
    return Exact("every element equals the expected one", signed_zero)


def copied() -> Exact:
    """Elements are moved, not computed: bit for bit, and a zero keeps its sign."""
    return Exact("every element is copied, and zeros keep their sign", True)


def rounded(k: float = 1.0, *, signed_zero: bool = False) -> Rounded:
    """Within k ulp of the high-precision result; 0.5 is correct rounding, 1 faithful rounding."""
    return Rounded(f"|a - h| <= {k:g} ulp(h)", signed_zero, k)
