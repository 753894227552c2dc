"""Reductions; the axes are an operand, an empty one reduces nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL
from harness.declare import Build, Checks, Draw, Slotted, Spelling, T
from suites.semantics import reduction as s
from suites.tflite import op
from suites.tflite.codecs import AxesInput, OutType, axes_breaks, both

_AXES: dict[str, Any] = {"axes": AxesInput("axes"), "keepdims": "keep_dims"}

op("SUM", s.reduce_sum, axes_breaks("axes"), x="input", **_AXES)
op("REDUCE_PROD", s.reduce_prod, axes_breaks("axes"), x="input", **_AXES)
both("REDUCE_MAX", s.reduce_max, axes_breaks("axes"), x="input", **_AXES)
both("REDUCE_MIN", s.reduce_min, axes_breaks("axes"), x="input", **_AXES)
op("MEAN", s.reduce_mean, axes_breaks("axis"), x="input", axes=AxesInput("axis"), keepdims="keep_dims")
op(
    "REDUCE_ANY",
    s.reduce_any,
    axes_breaks("reduction_indices"),
    x="input",
    axes=AxesInput("reduction_indices"),
    keepdims="keep_dims",
)
op(
    "REDUCE_ALL",
    s.reduce_all,
    axes_breaks("reduction_indices"),
    x="input",
    axes=AxesInput("reduction_indices"),
    keepdims="keep_dims",
)


class _Ordered(Slotted):
    """Truth values as 0 and 1; drawn one time in five where the version takes them."""

    def __init__(self) -> None:
        super().__init__("input", lambda x: x.view(np.uint8) if x.dtype == bool else x)

    def encode(self, value: Any, b: Build) -> None:
        plain = b.version.schema.domain == ""
        if plain and "bool" in b.version.schema.types["T"] and b.draw.chance(5):
            value = T(value.shape, "bool", dtype=BOOL)
        super().encode(value, b)


_ARG = Spelling(x=_Ordered(), axis="dim", dtype=OutType("output_type"), fixed={"keepdims": False, "select_last": False})


def _empty_axis(d: Draw) -> dict[str, Any]:
    """TF ArgMax: "Reduction axis is empty"."""
    return {"input": T((3, 0)), "dim": d.pick((1, -1)), "output_type": "i32", "@outputs": [{"dtype": "i32"}]}


_EMPTY_AXIS = Checks(breaks={"axis-not-empty": _empty_axis})
both("ARG_MAX", s.argmax, _ARG, _EMPTY_AXIS)
both("ARG_MIN", s.argmin, _ARG, _EMPTY_AXIS)
op("CUMSUM", s.cumsum, x="input")
