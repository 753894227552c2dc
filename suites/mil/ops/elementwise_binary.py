"""Two tensors that broadcast."""

from __future__ import annotations

import numpy as np

from harness.spec import Call
from suites.mil import op
from suites.semantics import elementwise as s

for name in ("add", "sub", "mul", "floor_div", "pow", "maximum", "minimum", "equal", "not_equal", "greater",
             "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor"):  # fmt: skip
    op(name, getattr(s, name))
op("mod", s.floor_mod)


def _rounding(call: Call) -> str | None:
    """T has integers, and the page does not say how their quotient is rounded."""
    x, y = np.asarray(call.inputs["x"]), np.asarray(call.inputs["y"])
    why = s.div.ambiguous({"x": x, "y": y}, {})  # type: ignore[misc]
    inexact = why is None and x.dtype.kind != "f" and (x % y).any()
    return "rounding of an integer quotient" if inexact else why


op("real_div", s.div, ambiguous=_rounding)
