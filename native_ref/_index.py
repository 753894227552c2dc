"""Reading by index, ranking, and the integer multiplication by a real scale of quantised kernels.

Writing by index and unique are NumPy's, in suites/semantics/indexing.
"""

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


def fixed_multiply(acc: Array, scale: Array | float) -> Array:
    """acc * scale as integer kernels do it, i64: a 31-bit multiplier, rounded high multiplication, rounding shift.

    Ties away from zero; both broadcast.  Source: gemmlowp fixedpoint.h, TFLite 8-bit quantization specification.
    """
    return _native.fixed_multiply(acc, np.asarray(scale, np.float64))
