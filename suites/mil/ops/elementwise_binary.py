"""Two tensors that broadcast."""

from __future__ import annotations

import numpy as np

from harness.declare import Call, Checks, gathered, underspecified
from suites.mil import op
from suites.mil.codecs import overflowing
from suites.semantics import elementwise as s

for name in (
    "floor_div",
    "pow",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
):
    op(name, getattr(s, name))
for name, exact in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
    op(name, getattr(s, name), Checks(ambiguous=overflowing(exact)))
op("mod", s.floor_mod)


def _rounding(call: Call) -> str | None:
    """T has integers, and the page does not say how their quotient is rounded."""
    x, y = np.asarray(call.inputs["x"]), np.asarray(call.inputs["y"])
    why = s.div.underspecified({"x": x, "y": y}, {})
    if x.dtype.kind == "f":
        return why
    with np.errstate(all="ignore"):
        part = np.mod(x, np.where(y == 0, 1, y)) != 0
    return gathered(
        why, underspecified("rounding of an integer quotient", part, s.floor_div(x, y), s.floor_div(x, y) + 1)
    )


op("real_div", s.div, Checks(ambiguous=_rounding))
