"""Reductions, arg-reductions, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import I64
from harness.declare import Build, Call, Codec, Spelling
from suites.onnx import op
from suites.onnx.codecs import Front, Scalar
from suites.semantics import reduction as s


class ReduceAxes(Codec):
    """Axes as an attribute (all when left out) or as an input, where an empty or missing list means all axes or, with
    ``noop_with_empty_axes``, none."""

    def decode(self, call: Call) -> tuple[int, ...] | None:
        v = call.get("axes")
        if v is None or len(v) == 0:
            return () if call.attr("noop_with_empty_axes", 0) else None
        return tuple(v) if type(v) is list else tuple(np.asarray(v).ravel().tolist())

    def encode(self, value: Any, b: Build) -> None:
        noop = "noop_with_empty_axes" in b.version.schema.attrs
        if noop and b.draw.chance(3):
            b.attrs["noop_with_empty_axes"] = b.draw.int(0, 1)
        if value is None and noop and b.draw.chance(3):
            value = ()
        if value is None or (not noop and len(value) == 0):
            return
        if b.version.version < 11:  # until then axes count from the front
            rank = len(b.values["x"].shape)
            value = [a + rank if -rank <= a < 0 else a for a in value]
        b.put("axes", list(value))


for _name in ("Sum", "Mean", "Prod", "Max", "Min", "SumSquare", "L1", "L2", "LogSum"):
    _snake = {"SumSquare": "sum_square", "LogSum": "log_sum"}.get(_name, _name.lower())
    op(f"Reduce{_name}", getattr(s, f"reduce_{_snake}"), x="data", axes=ReduceAxes())
op("ReduceLogSumExp", s.reduce_log_sum_exp, Spelling(x="data", axes=ReduceAxes(), fixed={"in_double": False}), until=13)
op("ReduceLogSumExp", s.reduce_log_sum_exp, Spelling(x="data", axes=ReduceAxes(), fixed={"in_double": True}), since=18)

for _name in ("ArgMax", "ArgMin"):
    _fn = getattr(s, _name.lower())
    op(
        _name,
        _fn,
        Spelling(x="data", axis=Front("axis", default=0), fixed={"dtype": I64, "select_last": False}),
        until=10,
    )
    op(_name, _fn, Spelling(x="data", fixed={"dtype": I64, "select_last": False}), since=11, until=11)
    op(_name, _fn, Spelling(x="data", select_last="select_last_index", fixed={"dtype": I64}), since=12)

op("CumSum", s.cumsum, axis=Scalar("axis", (0,)))
op("CumProd", s.cumprod, axis=Scalar("axis", (0,)))
