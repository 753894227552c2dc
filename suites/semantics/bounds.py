"""Pieces that the error classes of composed ops are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import float_max, smallest_normal
from harness.spec.errors import Context, gamma

Array = np.ndarray


def quiet(fn: Any) -> Any:
    """A bound that may meet inf and NaN on its way; what is NaN in the end bounds nothing, so it becomes inf."""

    def wrapped(ctx: Context) -> Array:
        with np.errstate(all="ignore"):
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


def axes_of(ctx: Context, rank: int, name: str = "axes") -> tuple[int, ...]:
    """Reduced axes of a call, counted from the front."""
    axes = ctx.params.get(name)
    if axes is None:
        return tuple(range(rank))
    return tuple(sorted({int(a) % rank for a in ((axes,) if isinstance(axes, int) else axes)})) if rank else ()


def has_nan(*names: str) -> Any:
    """An ``ambiguous`` predicate: NaN among these inputs, where the op set does not say which operand wins."""

    def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
        for n in names:
            v = inputs.get(n)
            if v is not None and v.dtype.kind not in "biuO" and np.isnan(np.asarray(v, np.float64)).any():
                return f"NaN in {n}: the op set does not say whether it wins or loses"
        return None

    return check
