"""What the elementwise files share: tolerances from the published tables, and ambiguity notes.

Accuracy of elementary functions: no operator set states one.  We hold a backend to the full-profile table of the OpenCL
C specification (section "Relative error as ULPs"), the tightest published one that names every function, counted in the
output type; arithmetic to IEEE 754.  Composed activations are allowed the literal evaluation of the formula that the
operator set prints, each step rounded in the output type: the bounds below are its first-order error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import of
from harness.core.quiet import quiet
from harness.declare import Context, Tolerance, bounded, composed, underspecified

__all__ = [
    "NAN_UNDERSPECIFIED",
    "any_nan",
    "composed_of",
    "native",
    "np",
    "of",
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


def any_nan(*names: str) -> Callable[..., str | None]:
    """Ambiguity: NaN among the named inputs, of the elements that meet it."""

    def check(inputs: dict[str, Any], params: dict[str, Any]) -> str | None:
        at: Any = np.False_
        for name in names:
            value = inputs.get(name)
            for v in value if isinstance(value, (list, tuple)) else [value]:
                if v is not None and of(np.asarray(v)).kind == "f":
                    at = at | native.unary("is_nan", v)
        return underspecified(NAN_UNDERSPECIFIED, at)

    return check
