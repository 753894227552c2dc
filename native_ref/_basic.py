"""Typed face of convert, fill, elementwise and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import _opconform_native as _native
import numpy as np

Array = np.ndarray

ROUNDINGS = {"even": 0, "zero": 1, "up": 2, "down": 3, "away": 4, "odd": 5}
UNARY: tuple[str, ...] = _native.unary_names
BINARY: tuple[str, ...] = _native.binary_names


DTypeLike = Any  # a dtype of harness.core.dtypes, its number, or anything np.dtype takes


def convert(x: Array, dtype: DTypeLike, *, rounding: str | None = None, saturate: bool = False) -> Array:
    """``x`` in another type with one rounding, whatever the two types.

    rounding: even, zero, up, down, away (ties away from zero) or odd; by default even to a float type and zero
    (truncation) to an integer type.  Float to float overflows to inf, or to NaN in a type without inf, or to the
    largest finite value when ``saturate``; float to integer always saturates and NaN gives 0; integer to integer keeps
    the low bits, or saturates; anything but zero is True; complex to real drops the imaginary part. To f8e8m0: even is
    nearest with ties up; ``saturate`` gives the ends for values out of range, else NaN. Raises ValueError for an
    unknown rounding.
    """
    if rounding is None:
        return _native.convert(x, dtype, -1, saturate)
    if rounding not in ROUNDINGS:
        raise ValueError(f"convert: unknown rounding {rounding!r}, expected one of {' '.join(ROUNDINGS)}")
    return _native.convert(x, dtype, ROUNDINGS[rounding], saturate)


fill: Callable[[str, int, Sequence[int], DTypeLike], Array] = _native.fill
"""``fill(recipe, seed, shape, dtype)``: a new array of test data; element i depends on (seed, i) alone and has the same
bits everywhere.

Recipes: small unit wide special ties branch iota ``ints:lo:hi`` ``uniform:lo:hi`` bool positive prob full all nonzero
shift ``index:n`` ``signed_index:n`` ``perm:n``; see kernels/fill/fill.h.  Raises ValueError for any other.  Strings are
words, whatever the recipe.
"""


def unary(name: str, x: Array, *params: float, out: DTypeLike = None) -> Array:
    """Elementwise ``name`` (one of UNARY) of x; params are the function's numbers, in order.

    A float ``x`` gives f64, or ``out`` with one rounding; an integer ``x`` stays in its own type where the function has
    an integer version (wrapping) and gives f64 otherwise; predicates give bool.  Raises ValueError for an unknown name,
    a wrong number of params, or a type that the function has no version for.
    """
    return _native.unary(name, x, params, out)


def binary(name: str, x: Array, y: Array, out: DTypeLike = None) -> Array:
    """Elementwise ``name`` (one of BINARY) of x and y under NumPy broadcasting; types as for ``unary``.

    Two integer operands are taken exactly; the result has x's type.  A zero divisor gives 0 (the rest gives x), the
    shifts by the width or more give 0 or the sign.
    """
    return _native.binary(name, x, y, out)


def where(c: Array, x: Array, y: Array) -> Array:
    """x where c, else y, broadcast; x and y of one type.  Raises ValueError otherwise."""
    if x.dtype != y.dtype:
        raise ValueError(f"where: x is {x.dtype}, y is {y.dtype}, expected one type")
    return np.where(c, x, y)


class Comparison(Protocol):
    """What ``compare`` found; the rules are in kernels/compare/compare.h.

    size; bad: elements that do not pass; first, worst: flat indices or -1; max_ulp, max_abs: over finite pairs;
    max_ratio: the smallest factor on the tolerance that lets everything pass; nan_bad, inf_bad: class mismatches;
    zero_sign, flushed, uninformative, zeros: counts.  With detail: mask (bad elements), ulp (|a - w| / ulp(w), inf for
    a class mismatch), both of the tensors' shape; else None.
    """

    size: int
    bad: int
    first: int
    worst: int
    max_ulp: float
    max_abs: float
    max_ratio: float
    nan_bad: int
    inf_bad: int
    zero_sign: int
    flushed: int
    uninformative: int
    zeros: int
    mask: Array | None
    ulp: Array | None


def compare(
    actual: Array,
    reference: Array,
    bound: Array | float | None = None,
    *,
    ulps: float = 0.0,
    signed_zero: bool = False,
    flush: bool = False,
    detail: bool = False,
) -> Comparison:
    """Judge ``actual`` against ``reference``: passes within ``bound + ulps * ulp(reference)``, ulp in actual's type.

    reference: f64 (the high-precision result) or of actual's type, same shape.  bound: absolute, a number or an f64
    array that broadcasts to the shape; inf lets an element pass.  signed_zero: -0 and +0 differ.  flush: a zero may
    stand for a subnormal.  Integers and bools are compared exactly.  Raises ValueError for shapes or types that do not
    fit.
    """
    return _native.compare(actual, reference, bound, ulps, signed_zero, flush, detail)


MOST: float = _native.MOST  # share of uninformative elements above which a passing output says nothing
DULL: float = _native.DULL  # share of zeros, of one value, of NaN or infinities
SMALL: int = _native.SMALL  # outputs below this size are not called dull for being constant


def brief(actual: Any, value: Any, wide: Array | None, how: int, ulps: float, signed_zero: bool, flush: bool) -> int:
    """One look at an output: 1 when it passes, 2 when it passes and says nothing, 0 when more has to be known.

    value: the rounded reference; wide: the f64 one or None.  how: 1 compares with ``value``; 2 with ``wide`` within
    ``ulps`` and says nothing when mostly uninformative; 3 the same and says nothing when dull; without ``wide`` both
    take ``value`` (2 within ``ulps``).  What are not two arrays of one real type and shape is always 0.  The rules are
    those of ``compare``; with ``flush`` a pass has no zero in place of a subnormal."""
    return _native.brief(actual, value, wide, how, ulps, signed_zero, flush)


def ulp_diff(a: Array, b: Array) -> Array:
    """How many representable values lie between, f64; NaN against NaN is 0, against a number inf; integers: |a - b|."""
    return _native.ulp_diff(a, b)
