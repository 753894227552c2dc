"""Results of which several are right: slices in any order, and free choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from harness.tolerance.base import VALUE, Tolerance
from harness.tolerance.context import Bound, Context
from harness.tolerance.exact import exact
from harness.tolerance.numeric import Array


@dataclass(frozen=True, eq=False)
class AnyOrder(Tolerance):
    """Slices along ``axis`` (None: all elements) in any order; ``within`` holds inside a slice."""

    axis: int | None = None
    within: Tolerance = field(default_factory=exact)

    name: ClassVar[str] = "SET"
    pointwise: ClassVar[bool] = False

    @cached_property
    def brief(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Accepted(Tolerance):
    """fn(ctx, actual) -> bool array: which of the actual elements the definition allows.

    listed: the integers that it allows, as ``Tolerance.spans`` returns them; None where they can only be tried."""

    fn: Callable[[Context, Array], Any] = lambda ctx, actual: True
    listed: Bound | None = None

    name: ClassVar[str] = "SET"
    pointwise: ClassVar[bool] = False

    @cached_property
    def brief(self) -> tuple[int, float, bool]:
        return VALUE, 0.0, False  # the reference's own choice

    def spans(self, ctx: Context) -> Sequence[tuple[Array, Array]]:
        return () if self.listed is None else self.listed(ctx)


def any_order(axis: int | None = None, *, within: Tolerance | None = None) -> AnyOrder:
    """Slices along ``axis`` (all elements when None) may come in any order, together in all outputs of this class.

    within: tolerance inside a slice, exact when not given."""
    where = "all elements" if axis is None else f"slices along axis {axis}"
    return AnyOrder(f"{where} in any order", axis=axis, within=within or exact())


def accepted(fn: Callable[[Context, Array], Any], formula: str | None = None, listed: Bound | None = None) -> Accepted:
    """fn(ctx, actual) -> bool array: which of the actual elements the definition allows.  listed: see ``Accepted``."""
    return Accepted(formula or (fn.__doc__ or fn.__name__).strip(), fn=fn, listed=listed)
