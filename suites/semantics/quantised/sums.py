"""Sums of products as layers have them, over plain arrays of any type: what quantised and hybrid meanings share."""

from __future__ import annotations

from typing import Any as Object

import numpy as np

import native_ref as native
from harness.core.dtypes import DType
from suites.semantics.quantised.fixed import Array
from suites.semantics.window import geometry


def turned(a: Array, flag: bool) -> Array:
    """The last two axes exchanged, if ``flag`` says so."""
    return np.swapaxes(a, -1, -2) if flag else a


def convolved(
    x: Array,
    w: Array,
    b: Array | None,
    strides: Object,
    dilations: Object,
    padding: str,
    groups: int,
    out: DType | None = None,
) -> Array:
    """x [n, c, *s] with w [m, c // groups, *k], plus b [m].  padding: "same_upper" or "valid".  out: element type of
    the accumulator, if it is another one than that of x."""
    g = geometry(x.shape[2:], w.shape[2:], strides, dilations, None, padding)
    return native.conv(x, w, b, g.strides, g.dilations, g.pads, groups, out=out)


def transposed(x: Array, w: Array, b: Array | None, strides: Object, pads: Object) -> Array:
    """x [n, c, *s] with w [c, m, *k], plus b [m].  pads: begins then ends cut off the full result."""
    n = x.ndim - 2
    sizes = tuple(strides[i] * (x.shape[2 + i] - 1) + w.shape[2 + i] - pads[i] - pads[n + i] for i in range(n))
    return native.conv_transpose(x, w, b, tuple(strides), (1,) * n, tuple(pads), sizes=sizes)
