"""Reductions.  Source: NeuralNetwork.proto, ReduceLayerParams and Reduce*LayerParams, Arg*, CumSum."""

from __future__ import annotations

from typing import Any

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Spelling, T, accepted
from suites.nn import op
from suites.nn.spell import Or
from suites.semantics import coreml
from suites.semantics import reduction as s


def _axes(c: Call) -> tuple[int, ...] | None:
    if c.attr("reduceAll"):
        return None
    if not c.attr("axes"):
        raise RuleError("axes-given", "neither axes nor reduceAll")
    return tuple(c.attr("axes"))


def _write(v: Any, b: Any) -> None:
    if v is None:
        b.attrs["reduceAll"] = True
        if b.draw.bool():
            b.attrs["axes"] = [b.draw.pick((0, -1))]  # ignored
    else:
        b.attrs["axes"] = list(v)


_ND = (
    Spelling(axes=Fn(_axes, _write), keepdims="keepDims"),
    Checks(
        breaks={
            "axes-given": lambda d: {"x": T(d.shape(1))},
            "axes-in-range": lambda d: {"x": T(d.shape(1, 3)), "axes": [4]},
        }
    ),
)
op("reduceSum", s.reduce_sum, *_ND)
op("reduceMean", s.reduce_mean, *_ND)
op("reduceSumSquare", s.reduce_sum_square, *_ND)
op("reduceL1", s.reduce_l1, *_ND)
op("reduceL2", s.reduce_l2, *_ND)
op("reduceProd", s.reduce_prod, *_ND)
op("reduceMax", s.reduce_max, *_ND)
op("reduceMin", s.reduce_min, *_ND)
op("reduceLogSum", s.reduce_log_sum, *_ND)
op("reduceLogSumExp", s.reduce_log_sum_exp, *_ND, Spelling(fixed={"in_double": False}))

_REGIONS = {"CHW": (-3, -2, -1), "HW": (-2, -1), "C": (-3,), "H": (-2,), "W": (-1,)}


def _region(c: Call) -> tuple[int, ...]:
    axes = _REGIONS[c.attr("axis")]
    if c.inputs["x"].ndim < -axes[0]:
        raise RuleError("rank-reaches-axis", f"{c.attr('axis')} of rank {c.inputs['x'].ndim}")
    return axes


def _draw_region(d: Draw) -> dict[str, Any]:
    region = d.pick(tuple(_REGIONS))
    return {"x": T(d.shape(-_REGIONS[region][0])), "axis": region}


def _region_too_high(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(1, 1)), "axis": d.pick(("CHW", "HW"))}


_REGION = Spelling(axes=Fn(_region)), Checks(breaks={"rank-reaches-axis": _region_too_high})
_OLD = (*_REGION, Spelling(fixed={"keepdims": True}), Sampling(_draw_region))
op("reduce.SUM", s.reduce_sum, *_OLD)
op("reduce.AVG", s.reduce_mean, *_OLD)
op("reduce.PROD", s.reduce_prod, *_OLD)
op("reduce.SUMSQUARE", s.reduce_sum_square, *_OLD)
op("reduce.L1", s.reduce_l1, *_OLD)
op("reduce.L2", s.reduce_l2, *_OLD)
op("reduce.MAX", s.reduce_max, *_OLD)
op("reduce.MIN", s.reduce_min, *_OLD)


def _draw_sum_log(d: Draw) -> dict[str, Any]:
    return {**_draw_region(d), "epsilon": d.pick((0.0, 1e-6, 0.25, 1.0))}


op("reduce.LOGSUM", coreml.reduce_sum_log, *_REGION, Sampling(_draw_sum_log), epsilon=Or("epsilon", 1e-6))


_FREE = accepted(s.any_winner)  # the text does not say which of equals it is


def _one(c: Call) -> int:
    axes = _region(c)
    if len(axes) != 1:
        raise RuleError("argmax-of-one-axis", c.attr("axis"))
    return axes[0]


def _draw_arg(d: Draw) -> dict[str, Any]:
    region = d.pick(("C", "H", "W"))
    return {"x": T(d.shape(-_REGIONS[region][0])), "axis": region}


op(
    "reduce.ARGMAX",
    s.argmax,
    Spelling(axis=Fn(_one), fixed={"keepdims": True, "select_last": False}),
    Sampling(_draw_arg),
    Checks(
        error=_FREE,
        breaks={
            "argmax-of-one-axis": lambda d: {"x": T(d.shape(3)), "axis": d.pick(("CHW", "HW"))},
            "axis-not-empty": None,  # coremltools 9.0, cat: 'CoreML does not allow such empty tensor'
        },
    ),
)

_KEEP = Fn(lambda c: not c.attr("removeDim"), lambda v, b: b.attr("removeDim", not v))
_NO_AXIS = {"axis-in-range": lambda d: {"x": T(d.shape(1, 3)), "axis": d.pick((3, -4))}}
_OF_ONE: dict[str, Any] = {
    **_NO_AXIS,
    "axis-not-empty": None,
}  # coremltools 9.0, cat: 'CoreML does not allow such empty tensor'
op("argMax", s.argmax, Spelling(keepdims=_KEEP, fixed={"select_last": False}), Checks(error=_FREE, breaks=_OF_ONE))
op("argMin", s.argmin, Spelling(keepdims=_KEEP, fixed={"select_last": False}), Checks(error=_FREE, breaks=_OF_ONE))


def _sum_axis(c: Call) -> int:
    return int(c.inputs["axis_in"].reshape(-1)[0]) if "axis_in" in c.inputs else c.attr("axis")


def _draw_sums(d: Draw) -> dict[str, Any]:
    """The axis as a parameter or as an input of one number, which may be the blob that is summed."""
    v = s.cumsum.derive(d)
    out: dict[str, Any] = {"x": v["x"], "excludeFinalSum": bool(v["exclusive"]), "reverse": bool(v["reverse"])}
    if d.chance(16):
        x = T((1,), values=[d.pick((0.0, -0.0, -1.0))], const=False)
        return {**out, "x": x, "axis_in": x, "@same": {"axis_in": "x"}}
    if d.bool():
        return {**out, "axis": v["axis"]}
    axis = float(v["axis"]) if v["axis"] or d.bool() else -0.0
    out["axis_in"] = T((1,) * d.pick((1, 1, 1, 2, 3, 4, 5)), values=[axis])
    return {**out, "axis": 0} if d.bool() else out  # ignored beside the input


op(
    "cumSum",
    s.cumsum,
    Sampling(_draw_sums),
    Checks(breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 3)), "axis": d.pick((3, -4))}}),
    axis=Fn(_sum_axis),
    exclusive="excludeFinalSum",
    reverse="reverse",
)
