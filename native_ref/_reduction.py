"""Reductions and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import _opconform_native as _native
import numpy as np

Array = np.ndarray

REDUCTIONS = ("sum", "mean", "prod", "max", "min", "sum_square", "l1", "l2", "log_sum", "log_sum_exp", "any", "all")
_CODE = {n: i for i, n in enumerate(REDUCTIONS)}
_F64 = np.dtype(np.float64)
_NEEDS_FLOAT = frozenset(("mean", "l2", "log_sum", "log_sum_exp"))


def reduce(
    name: str, x: Array, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Any = None
) -> Array:
    """Fold ``axes`` of ``x`` (None: all, (): none) into one element each.

    Floats: f64, correctly rounded for all but absurd cancellation, or one rounding to ``out``.  Integers and bools stay
    exact modulo 2**64 (i64 or u64) for sum, prod, sum_square, l1, max, min, any, all; the other names give f64.  Over
    no element: sums 0, products 1, max -inf or the lowest integer, min the opposite, mean NaN, any False, all True.
    NaN wins max and min.  any, all give bool.  Raises ValueError for an axis out of range or an unknown name.
    """
    code = _CODE.get(name)
    if code is None:
        raise ValueError(f"reduce: no reduction {name!r}, expected one of {' '.join(REDUCTIONS)}")
    if code >= 10:
        return _native.reduce(code, x if x.dtype.kind in "biu" else x != 0, axes, keepdims, np.dtype(bool))
    if out is None and name in _NEEDS_FLOAT:
        out = _F64
    return _native.reduce(code, x, axes, keepdims, out)


def arg_reduce(name: str, x: Array, axis: int, keepdims: bool = False, last: bool = False) -> Array:
    """Index of the largest ("max") or smallest ("min") element along ``axis``, i64; of equals the first or the last.

    A NaN counts as the extreme (NumPy's rule; operator sets are silent).  Raises ValueError for an empty axis.
    """
    if x.dtype.kind not in "fbiu" or x.dtype.itemsize < 2:
        x = x.astype(np.float64) if x.dtype.kind not in "biu" else x
    pick = np.argmax if name == "max" else np.argmin
    if not last:
        return np.asarray(pick(x, axis=axis, keepdims=keepdims), np.int64)
    n = x.shape[axis]
    return np.asarray(n - 1 - pick(np.flip(x, axis), axis=axis, keepdims=keepdims), np.int64)


def cumulative(
    name: str, x: Array, axis: int, exclusive: bool = False, reverse: bool = False, out: Any = None
) -> Array:
    """Running "sum" or "prod" along ``axis``: element i folds 0..i, or 0..i-1 when exclusive, from the end when
    reverse.

    f64 with the rounding errors carried along; integers exact modulo 2**64.
    """
    if name not in ("sum", "prod"):
        raise ValueError(f"cumulative: expected sum or prod, got {name!r}")
    return _native.cumulate(name == "prod", x, axis, exclusive, reverse, out)


def moments(x: Array, axes: int | Sequence[int] | None = None) -> tuple[Array, Array]:
    """Mean and (biased) variance over ``axes``, both f64 with the axes kept; the variance of the centred values."""
    mean = reduce("mean", x, axes, True)
    with np.errstate(all="ignore"):
        return mean, reduce("mean", np.square(x.astype(_F64) - mean), axes, True)
