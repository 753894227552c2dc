"""The rule of a pack for each expected output: a reader without opconform can apply it, element by element.

The rules are those of ``harness.compare`` for a backend that declares nothing about its arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import float_max, int_range
from harness.core.quiet import quiet
from harness.declare import Expected
from harness.declare.codec import Call
from harness.declare.expected import open_mask
from harness.tolerance import Accepted, AnyOrder, Statistical, ulp
from harness.tolerance.freedom import free_of
from harness.tolerance.underspecified import Underspecified

Array = np.ndarray
EXACT, WITHIN, BETWEEN = "exact", "within", "between"
ANY_ORDER, CHOICE, DISTRIBUTION, CONTAINER, UNBOUNDED = "any-order", "choice", "distribution", "container", "unbounded"
POINTWISE = (EXACT, WITHIN, BETWEEN)


@dataclass
class Rule:
    """How the elements of one output are compared.

    name: one of
    * exact: the element equals the expected one,
    * within: it is no further than ``bound`` from ``reference``, both f64; for complex elements each part is,
    * between: it is an integer from ``low`` to ``high``,
    * any-order, choice, distribution, container, unbounded: no array says it; ``opconform judge`` decides.

    open: mask of the elements for which the specification does not say one answer; None where it says all.
    why: what is open.
    signed_zero: a zero has the sign of the expected zero.
    formula: the tolerance in words.
    """

    name: str
    formula: str
    reference: Array | None = None
    bound: Array | None = None
    low: Array | None = None
    high: Array | None = None
    open: Array | None = None
    signed_zero: bool = False
    why: str = ""


def rule_of(e: Expected, call: Call, why: str | None, i: int) -> Rule:
    """The rule of output ``i``.  why: what the specification leaves open about the call (``OpVersion.underspecified``),
    and what the ambiguity ledger says of it."""
    with quiet:
        try:
            rule = _rule(e)
        except Exception as error:  # a bound that cannot be computed gives no verdict in a run either
            return Rule(UNBOUNDED, f"{e.error.formula} ({type(error).__name__})")
        if isinstance(e.value, np.ndarray) and why is not None:
            if not isinstance(why, Underspecified) or why.masks(i) is None:
                mask: Array = np.ones(e.value.shape, bool)
            else:
                mask = np.broadcast_to(open_mask(call, why, i, e.value.shape), e.value.shape)
            if mask.any():
                rule.open = mask if rule.open is None else mask | rule.open
                rule.why = str(why)
    return rule


def _rule(e: Expected) -> Rule:
    error, value = e.error, e.value
    if not isinstance(value, np.ndarray):
        return Rule(CONTAINER, error.formula)
    for kind, name in ((AnyOrder, ANY_ORDER), (Accepted, CHOICE), (Statistical, DISTRIBUTION)):
        if isinstance(error, kind):
            return Rule(name, error.formula)
    d = e.dtype
    if d.kind == "s" or not value.size:
        return Rule(EXACT, error.formula)
    if d.kind == "f":
        return _floats(e)
    if d.kind == "c":
        return _complex(e)
    steps: Any = np.full(value.shape, float(error.fixed_steps))
    below, above = steps, steps
    if error.moves_integers:
        ctx = e.context()
        below, above = (
            np.maximum(steps, np.broadcast_to(np.asarray(error.toward(ctx, value.astype(np.float64) + s)), value.shape))
            for s in (-1.0, 1.0)
        )
    if not below.any() and not above.any():
        return Rule(EXACT, error.formula)
    least, most = int_range(d)
    low = np.clip(value.astype(np.float64) - below, least, most)
    return Rule(BETWEEN, error.formula, low=low, high=np.clip(value.astype(np.float64) + above, least, most))


def _floats(e: Expected) -> Rule:
    error, d = e.error, e.dtype
    ulps = error.fixed_ulps
    if error.exact or e.wide is None:
        if not ulps:
            return Rule(EXACT, error.formula, signed_zero=error.signed_zero)
        wide = e.value.astype(np.float64)
    else:
        wide = np.asarray(e.wide, np.float64)
    free: Any = None
    if ulps is not None:
        bound = ulps * ulp(wide, d)
    else:
        ctx = e.context()
        bound = np.fmin(np.broadcast_to(np.asarray(error.bound(ctx), np.float64), wide.shape), np.inf)
        free = free_of(error, ctx, wide, bound)
    bound = np.where(np.isfinite(wide), bound, 0.0)
    rule = Rule(WITHIN, error.formula, reference=wide, bound=bound, signed_zero=error.signed_zero)
    if free is not None and free.any():
        rule.open, rule.why = free, "partial results may overflow"
    return rule


def _complex(e: Expected) -> Rule:
    error = e.error
    if error.exact or e.wide is None:
        return Rule(EXACT, error.formula, signed_zero=error.signed_zero)
    wide = np.asarray(e.wide, np.complex128)
    part = e.dtype
    if error.fixed_ulps is not None:
        bound = error.fixed_ulps * ulp(np.abs(wide), part)
    else:
        bound = np.broadcast_to(np.asarray(error.bound(e.context()), np.float64), wide.shape)
    parts = np.stack([wide.real, wide.imag], -1)
    both = np.repeat(np.where(np.isnan(bound), np.inf, bound)[..., None], 2, -1)
    return Rule(WITHIN, error.formula, reference=parts, bound=np.where(np.isfinite(parts), both, 0.0))


def overflow(e: Expected) -> float:
    """From which absolute value on a result may be infinite: the largest number and half a step."""
    top = float_max(e.dtype)
    return top + float(ulp(np.float64(top), e.dtype)) / 2
