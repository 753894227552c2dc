"""Reading and writing by index, and ops whose answer is an index."""

from __future__ import annotations

from dataclasses import replace
from math import floor, inf, prod
from typing import Any

import numpy as np

from harness.core.dtypes import I64, DType, of
from harness.core.errors import RuleError
from harness.declare import Build, Call, Checks, Draw, Fn, Sampling, Spelling, T, underspecified
from harness.generate import ends
from suites.onnx import op
from suites.onnx.codecs import Front, Scalar, one_element
from suites.semantics import indexing as s
from suites.semantics.cast import out_of_range
from suites.semantics.indexing.select import hot_indices

_NO_BATCHES = Checks(breaks={"batch-in-range": None, "batch-agrees": None})  # Gather has none
_MAY_REPEAT = Checks(
    breaks={"indices-distinct": None}
)  # "should not have duplicate entries": that none does is assumed
op("Gather", s.gather, Spelling(x="data", fixed={"signed": False}), _NO_BATCHES, until=10)
op("Gather", s.gather, _NO_BATCHES, since=11, x="data")
op("GatherElements", s.gather_elements, x="data")
op("GatherND", s.gather_nd, Checks(breaks={"batch-agrees": None}), until=11, x="data")  # no batches yet
op("GatherND", s.gather_nd, since=12, x="data")
op("Scatter", s.scatter_elements, Spelling(x="data", fixed={"signed": False}), _MAY_REPEAT, until=9)
op("Scatter", s.scatter_elements, _MAY_REPEAT, since=11, x="data")  # deprecated, "provides the same functionality"
op("ScatterElements", s.scatter_elements, _MAY_REPEAT, x="data")
op("ScatterND", s.scatter_nd, replace(_MAY_REPEAT, stated={"data": "_n *_d"}), x="data")  # "of rank r >= 1"
op("TensorScatter", s.cache_write, x="past_cache", starts="write_indices")
op(
    "Compress", s.compress, Checks(breaks={"one-axis": None}), until=10, x="input"
)  # the reference alone refuses a scalar
op("Compress", s.compress, since=11, x="input")
op("NonZero", s.nonzero, x="X")


class Count(Scalar):
    """ "A 1-D tensor containing a single positive value", an attribute in version 1."""

    def __init__(self) -> None:
        super().__init__("K", (1,))

    def decode(self, call: Call) -> int:
        return int(super().decode(call) if "K" in call.inputs else call.attr("k"))

    def encode(self, value: int, b: Build) -> None:
        if "K" in b.version.slots_of_schema:
            b.value("K", [value])
        else:
            b.attr("k", value)


K = Count()
op(
    "TopK",
    s.topk,
    Spelling(x="X", k=K, axis=Front("axis", default=-1), fixed={"largest": True, "sorted": True}),
    until=10,
)
op("TopK", s.topk, since=11, x="X", k=K)


def _unique_outs(d: Draw, values: dict) -> int:
    return d.int(1, 4)


op("Unique", s.unique, Sampling(outs=_unique_outs), x="X")


def _pick(i: int) -> Fn:
    return Fn(lambda c: _values(c)[i])


def _values(c: Call) -> np.ndarray:
    """ "Rank 1 tensor containing exactly two elements": off, on."""
    v = c.inputs["values"]
    if v.shape != (2,):
        raise RuleError("two-values", f"values has shape {list(v.shape)}")
    return v.reshape(2, 1)


def _draw_hot(negative: str) -> Any:
    def draw(d: Draw) -> dict:
        shape = d.shape(0, 8)
        depth = d.int(1, 9)
        dtype = d.dtype("indices")
        hot = hot_indices(d, depth, negative, dtype.kind, shape)
        if 0 not in shape and d.chance(4):
            hot = T(shape, values=_far_indices(d, dtype, negative == "wrap", prod(shape)))
        out: dict[str, Any] = {
            "indices": hot,
            "depth": T((1,) if d.bool() else (), values=[depth]),
            "values": T((2,)),
        }
        if d.bool():
            low = -len(shape) - 1 if negative == "wrap" else -1
            out["axis"] = d.int(low, len(shape))
        return out

    return draw


def _far_indices(d: Draw, dtype: DType, any_number: bool, n: int) -> list[Any]:
    """Indices of which some are at the ends of their type.  any_number: before version 11 "the values must be
    non-negative integers"."""
    values: list[Any] = [d.int(0, 9) for _ in range(n)]
    found = [x for x in ends.specials(dtype) if any_number or (0 <= x < inf and x == floor(x))]
    values[d.pick((0, -1))] = d.pick(found)
    return values


def _beyond_cast(c: Call) -> Any:
    """ "In case 'indices' is of non-integer type, the values will be casted to int64 before use", which is undefined
    out of range: on or off."""
    x, on, off = c.inputs["indices"], _values(c)[1], _values(c)[0]
    axis = int(c.attr("axis", -1))
    at = np.expand_dims(np.asarray(out_of_range(x, I64)), axis) if of(x).kind == "f" else np.False_
    return underspecified("OneHot: a float that int64 does not hold is cast to it", at, on.reshape(()), off.reshape(()))


def _depth(c: Call) -> int:
    return int(one_element(c.inputs["depth"], "depth"))


def _other_values(d: Draw) -> dict:
    """A value more than on and off, or only one."""
    return {**_draw_hot("none")(d), "values": T((d.pick((1, 3)),))}


def _two_depths(d: Draw) -> dict:
    out = _draw_hot("none")(d)
    return {**out, "depth": T((2,), values=[*out["depth"].values] * 2)}


_HOT = (
    Spelling(on=_pick(1), off=_pick(0), depth=Fn(_depth)),
    Checks(breaks={"two-values": _other_values, "one-element": _two_depths}, ambiguous=_beyond_cast),
)


# version 9: "the values must be non-negative integers", one outside means off
op("OneHot", s.one_hot, *_HOT, Spelling(fixed={"negative": "off"}), Sampling(_draw_hot("none"), even=True), until=10)
op("OneHot", s.one_hot, *_HOT, Spelling(fixed={"negative": "wrap"}), Sampling(_draw_hot("wrap"), even=True), since=11)

# "it is a scalar", which the op's own examples write as vectors of one: not clear enough to draw longer ones
_LAX = dict.fromkeys(f"one-element:{s}" for s in ("max_output_boxes_per_class", "iou_threshold", "score_threshold"))
op(
    "NonMaxSuppression",
    s.non_max_suppression,
    Checks(breaks=_LAX),
    limit=Scalar("max_output_boxes_per_class", (0, 1), 0),
    iou_threshold=Scalar("iou_threshold", (0, 1), 0.0),
    score_threshold=Scalar("score_threshold", (0, 1)),
    form=Fn(
        lambda c: "center" if c.attr("center_point_box", 0) else "corners",
        lambda v, b: b.attr("center_point_box", int(v == "center")),
    ),
)
