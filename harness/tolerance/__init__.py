"""Tolerances: what a correct implementation may give, and what the specification leaves open."""

from harness.tolerance.base import Tolerance
from harness.tolerance.bounded import (
    Bounded,
    Composed,
    Propagated,
    Summed,
    Through,
    bounded,
    composed,
    propagated,
    summed,
    through,
)
from harness.tolerance.context import Bound, Context
from harness.tolerance.dot import Dot, accumulates
from harness.tolerance.exact import Exact, Rounded, copied, exact, rounded
from harness.tolerance.numeric import absolute, default_acc, gamma, ulp, unit, widened
from harness.tolerance.quantised import Quantised, quantised
from harness.tolerance.sets import Accepted, AnyOrder, accepted, any_order
from harness.tolerance.statistical import Statistical, statistical

__all__ = [
    "Accepted",
    "AnyOrder",
    "Bound",
    "Bounded",
    "Composed",
    "Context",
    "Dot",
    "Exact",
    "Propagated",
    "Quantised",
    "Rounded",
    "Statistical",
    "Summed",
    "Through",
    "Tolerance",
    "absolute",
    "accepted",
    "accumulates",
    "any_order",
    "bounded",
    "composed",
    "copied",
    "default_acc",
    "exact",
    "gamma",
    "propagated",
    "quantised",
    "rounded",
    "statistical",
    "summed",
    "through",
    "ulp",
    "unit",
    "widened",
]
