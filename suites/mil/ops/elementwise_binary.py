"""Two tensors that broadcast."""

from __future__ import annotations

from suites.mil import op
from suites.semantics import elementwise as s

for name in ("add", "sub", "mul", "floor_div", "pow", "maximum", "minimum", "equal", "not_equal", "greater",
             "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor"):  # fmt: skip
    op(name, getattr(s, name))
op("mod", s.floor_mod)
op("real_div", s.real_div, types={"T": "f16 f32"}, why="how an integer quotient is rounded is not stated")
