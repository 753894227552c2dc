"""What the elementwise files share: tolerances from the published tables, and ambiguity notes.

Accuracy of elementary functions: no operator set states one.  We hold a backend to the full-profile table of the OpenCL
C specification (section "Relative error as ULPs"), the tightest published one that names every function, counted in the
output type; arithmetic to IEEE 754.  Composed activations are allowed the literal evaluation of the formula that the
operator set prints, each step rounded in the output type: the bounds below are its first-order error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import of
from harness.core.quiet import quiet
from harness.declare import Context, Semantics, Tolerance, bounded, composed, underspecified

__all__ = [
    "NAN_UNDERSPECIFIED",
    "composed_of",
    "native",
    "np",
    "of",
    "open_at_nan",
    "plus_absolute",
    "x_of",
]

NAN_UNDERSPECIFIED = "the definition names no result for a NaN operand (IEEE 754 has both maximum and maximumNumber)"


def x_of(ctx: Context) -> Any:
    """The f64 input called x."""
    return np.asarray(ctx.inputs["x"], np.float64)


def _ulps_and(k: float, absolute: Callable[[Context], Any]) -> Callable[[Context], Any]:
    def bound(ctx: Context) -> Any:
        with quiet:
            extra = np.asarray(absolute(ctx), np.float64)
        # where the term itself is not a number the result is special and the class rules judge it
        return k * ctx.ulp + np.where(np.isfinite(extra), extra, 0.0)

    return bound


def plus_absolute(k: float, absolute: Callable[[Context], Any], formula: str) -> Tolerance:
    """k ulp of the result plus an absolute term that the printed formula's own roundings cause."""

    return composed(_ulps_and(k, absolute), f"{k:g} ulp(h) + {formula}")


def composed_of(k: float, absolute: Callable[[Context], Any], formula: str) -> Tolerance:
    """As ``plus_absolute``, named BOUNDED in reports (an error function of the inputs)."""
    return bounded(_ulps_and(k, absolute), f"{k:g} ulp(h) + {formula}")


def open_at_nan(*names: str, ends: Sequence[float] = (-np.inf, np.inf)) -> Callable[[Semantics], Semantics]:
    """Decorator of a meaning that takes maxima or minima: elements that meet a NaN of the named inputs are open.

    They are NaN, or what the other operands and bounds give: as if the NaN were below, or above, all numbers.  Of
    several operands it may also be forgotten together with those before it.  ends: the infinities that lose."""

    def readings(meaning: Semantics, inputs: dict[str, Any], params: dict[str, Any]) -> Iterator[Any]:
        most = max((len(v) for n in names if isinstance(v := inputs.get(n), (list, tuple))), default=1)
        for end in ends:
            for first in range(most):
                changed = dict(inputs)
                for name in names:
                    v = inputs.get(name)
                    if isinstance(v, (list, tuple)):
                        changed[name] = [_without_nan(x, end, k < first) for k, x in enumerate(v)]
                    elif v is not None:
                        changed[name] = _without_nan(v, end)
                yield meaning.fn(**changed, **params)

    def declare(meaning: Semantics) -> Semantics:
        def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
            at: Any = np.False_
            for name in names:
                value = inputs.get(name)
                for v in value if isinstance(value, (list, tuple)) else [value]:
                    if v is not None and of(np.asarray(v)).kind == "f":
                        at = at | native.unary("is_nan", v)
            if not np.any(at):
                return None
            return underspecified(NAN_UNDERSPECIFIED, at, np.float32(np.nan), *readings(meaning, inputs, params))

        meaning.ambiguous = check
        return meaning

    return declare


def _without_nan(x: Any, end: float, whole: bool = False) -> Any:
    """``x`` with an infinity in the place of NaN, or everywhere; of other types as it is."""
    if of(np.asarray(x)).kind != "f":
        return x
    at = True if whole else native.unary("is_nan", x)
    return np.where(at, np.asarray(end, np.float64).astype(x.dtype), x)
