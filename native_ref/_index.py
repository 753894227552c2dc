"""Reading and writing by index, ranking, distinct elements."""

from __future__ import annotations

import _opconform_native as _native
import numpy as np

Array = np.ndarray


def gather(x: Array, index: Array, axis: int, batch_dims: int = 0, signed: bool = True) -> Array:
    """Slices of ``x`` along ``axis``: x.shape[:axis] + index.shape[batch_dims:] + x.shape[axis + 1:].

    The first batch_dims axes of both run together.  signed: negative indices count from the end.
    Raises IndexError "index I for extent N", ValueError where shapes do not fit.
    """
    return _native.gather(np.ascontiguousarray(x) if x.ndim else x, index, axis, batch_dims, signed)


def gather_elements(x: Array, index: Array, axis: int, signed: bool = True) -> Array:
    """out[i, j, k] = x[index[i, j, k], j, k] for axis 0, and so on; of index's shape.  Raises as ``gather``."""
    return _native.gather_elements(x, index, axis, signed)


def gather_nd(x: Array, index: Array, batch_dims: int = 0, signed: bool = True) -> Array:
    """Slices of ``x`` named by the tuples in index's last axis: index.shape[:-1] + x.shape[batch_dims + tuple:].

    Raises as ``gather``.
    """
    return _native.gather_nd(np.ascontiguousarray(x) if x.ndim else x, index, batch_dims, signed)


def rank(x: Array, axis: int, descending: bool = False, k: int | None = None) -> Array:
    """The indices (i64) of the first ``k`` elements along ``axis`` in order, all by default.

    Equals by rising index, NaN above every number.  x: any real type; raises ValueError for others, or k out of range.
    """
    return _native.rank(x, axis, descending, k)


def unique(x: Array, axis: int | None = None, rising: bool = True) -> tuple[Array, Array, Array]:
    """The distinct slices of ``x`` along ``axis`` (None: elements): (first, inverse, counts), all i64.

    first: where each stands first, in lexicographic order of the slices or (not rising) in order of appearance;
    inverse: which of them each slice is; counts: how often each occurs.  Zeros are alike, NaNs are alike and above all
    numbers; complex numbers go by real part, then imaginary part.  x: any numbers; raises ValueError for others.
    """
    v = np.ascontiguousarray(x)
    v, axis = (v.reshape(-1), 0) if axis is None else (v.reshape(x.shape), axis)
    if v.dtype.kind == "c":
        axis = axis % v.ndim
        v = v[..., np.newaxis].view(v.real.dtype)
    n, first, inverse, counts = _native.unique(v, axis, rising)
    return first[:n], inverse, counts[:n]


COMBINE = {"none": 0, "add": 1, "mul": 2, "max": 3, "min": 4, "sub": 5, "div": 6}


def scatter(x: Array, index: Array, updates: Array, axis: int, how: str = "none", signed: bool = True) -> Array:
    """``x`` with slices of ``updates`` combined into its slices along ``axis`` that ``index`` names, in their order.

    updates: x.shape[:axis] + index.shape + x.shape[axis + 1:], of x's type.  how: "none" writes (bits are copied), add,
    mul, max, min, sub, div combine: floats give f64 and complex numbers c128, not yet rounded, integers wrap in x's
    type, bools know add (or), mul (and), max, min.  NaN wins max and min.  signed: negative indices count from the end.
    Raises IndexError "index I for extent N", KeyError for two updates of one place under "none", ValueError where
    shapes or types do not fit and for div of integers, max, min or div of complex numbers.
    """
    return _native.scatter(x, index, updates, axis, COMBINE[how], signed)


def scatter_elements(
    x: Array, index: Array, updates: Array, axis: int, how: str = "none", signed: bool = True
) -> Array:
    """out[index[i, j, k], j, k] = combine(out[...], updates[i, j, k]) for axis 0, and so on; else as ``scatter``."""
    return _native.scatter_elements(x, index, updates, axis, COMBINE[how], signed)


def scatter_nd(x: Array, index: Array, updates: Array, how: str = "none", signed: bool = True) -> Array:
    """Slices named by the tuples in index's last axis; updates: index.shape[:-1] + x.shape[tuple:].  As ``scatter``."""
    return _native.scatter_nd(x, index, updates, COMBINE[how], signed)
