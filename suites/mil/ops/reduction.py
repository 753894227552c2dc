"""Reductions, arg-reductions, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, accepted
from suites.mil import op
from suites.mil.codecs import maybe, signed
from suites.semantics import reduction as s


def _draw_reduce(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    out: dict[str, Any] = {"x": T(shape)}
    if not d.chance(4):
        out["axes"] = signed(d, d.subset(range(len(shape)), 1), len(shape))
    maybe(d, out, "keep_dims", d.bool(), False)
    return out


def _break_axes(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "axes": [d.pick((len(shape), -len(shape) - 1))]}


_AXES = Fn(lambda c: None if c.get("axes") is None else tuple(int(a) for a in np.ravel(c.get("axes"))))
_KEEP = Fn(lambda c: bool(c.attr("keep_dims", False)))
for mil, meaning in (
    ("reduce_sum", s.reduce_sum),
    ("reduce_mean", s.reduce_mean),
    ("reduce_prod", s.reduce_prod),
    ("reduce_max", s.reduce_max),
    ("reduce_min", s.reduce_min),
    ("reduce_sum_square", s.reduce_sum_square),
    ("reduce_l1_norm", s.reduce_l1),
    ("reduce_l2_norm", s.reduce_l2),
    ("reduce_log_sum", s.reduce_log_sum),
    ("reduce_log_sum_exp", s.reduce_log_sum_exp),
):
    told = {"in_double": False} if mil == "reduce_log_sum_exp" else {}
    op(
        mil,
        meaning,
        Spelling(axes=_AXES, keepdims=_KEEP, fixed=told),
        Sampling(_draw_reduce, ranks=(1, 5)),
        Checks(breaks={"axes-in-range": _break_axes}),
    )


def _index_type(call: Call, i: int = 0) -> Any:
    d = call.attr("output_dtype", "i32")
    return BY_NAME[d] if isinstance(d, str) else d


def _draw_arg(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    out: dict[str, Any] = {"x": T(shape)}
    maybe(d, out, "axis", d.axis(len(shape)), -1)
    maybe(d, out, "keep_dims", d.bool(), False)
    if "output_dtype" in d.version.schema.attrs and d.bool():
        out["output_dtype"] = BY_NAME[d.pick(("i32", "u16"))]
    return out


def _break_axis(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, lo=1)
    return {"x": T(shape), "axis": d.pick((len(shape), -len(shape) - 1))}


for mil, meaning in (("reduce_argmax", s.argmax), ("reduce_argmin", s.argmin)):
    op(
        mil,
        meaning,
        Spelling(
            keepdims=_KEEP,
            dtype=Fn(_index_type),
            fixed={"select_last": False},
            out=lambda c, r: [r[0].astype(_index_type(c).np)],
            out_dtype=_index_type,
        ),
        Sampling(_draw_arg, ranks=(1, 5)),
        # of an axis without elements the page says nothing
        Checks(error=accepted(s.any_winner), breaks={"axis-in-range": _break_axis, "axis-not-empty": None}),
    )


def _draw_cumsum(d: Draw) -> dict[str, Any]:
    """An axis counted from the end beyond -1 is neither promised nor taken."""
    shape = d.shape(1)
    out: dict[str, Any] = {"x": T(shape)}
    maybe(d, out, "axis", d.int(-1, len(shape) - 1), 0)
    for name in ("exclusive", "reverse"):
        maybe(d, out, name, d.bool(), False)
    return out


op("cumsum", s.cumsum, Sampling(_draw_cumsum), Checks(breaks={"axis-in-range": _break_axis}))
