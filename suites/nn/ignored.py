"""Parameters that a form of a layer ignores by the text, given all the same: who reads them is found out.

Source: NeuralNetwork.proto, where it says "is ignored", "overwrites", "used only if", "used only for", "whether a bias
is added or not"; PoolingLayerParams, "when computing average pooling".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.core.dtypes import F32
from harness.core.instance import Arg, Instance
from harness.declare import Draw
from harness.declare.schema import OpSchema
from suites.nn import weights

_COMPARED = ("equal", "notEqual", "lessThan", "lessEqual", "greaterThan", "greaterEqual")
_POOLS = ("pooling.MAX", "pooling.AVERAGE", "pooling.L2")
_REDUCED = ("SUM", "AVG", "PROD", "SUMSQUARE", "L1", "L2", "MAX", "MIN", "ARGMAX")


def _given(slot: str) -> Callable[[Instance], bool]:
    return lambda i: slot in i.args


def _set(name: str) -> Callable[[Instance], bool]:
    return lambda i: bool(i.attrs.get(name))


def _several(i: Instance) -> bool:
    xs = i.args["xs"]
    return isinstance(xs, list) and len(xs) > 1


def _always(i: Instance) -> bool:
    return True


def _number(d: Draw, i: Instance) -> float:
    return d.int(-8, 8) / 4


def _each(make: Callable[[Draw], Any]) -> Callable[[Draw, Instance], list[Any]]:
    def values(d: Draw, i: Instance) -> list[Any]:
        x = i.args["x"]
        return [make(d) for _ in x.shape] if isinstance(x, Arg) else []

    return values


def _pair(lo: int, hi: int, n: int = 2) -> Callable[[Draw, Instance], list[int]]:
    return lambda d, i: [d.int(lo, hi) for _ in range(n)]


def _far_pair(lo: int, hi: int, n: int = 2) -> Callable[[Draw, Instance], list[int]]:
    """As ``_pair``, now and then far beyond any extent, or at the end of i32."""
    return lambda d, i: [d.int(lo, hi) if d.int(0, 5) else d.pick((300, 2**31 - 1)) for _ in range(n)]


def _any_list(d: Draw, i: Instance) -> list[int]:
    """Of any length: a list whose length is stated only where it counts."""
    return [d.pick((0, 1, 2, 300, 2**31 - 1)) for _ in range(d.pick((2, 2, 1, 3)))]


def _not_custom(i: Instance) -> bool:
    return i.attrs.get("paddingType") in ("VALID", "SAME")


_SIDES = ("Front", "Back", "Top", "Bottom", "Left", "Right")
_INDEX, _STEP, _MASK = (
    _each(lambda d: d.int(-2, 3)),
    _each(lambda d: d.pick((-1, 1, 2, 0, -(2**31)))),
    _each(lambda d: d.bool()),
)
_IF_BOTH = ("weightMatrixFirstDimension", "weightMatrixSecondDimension")

# op -> (parameter, when it does not count, a value of it)
_TABLE: dict[str, list[tuple[str, Callable[[Instance], bool], Callable[[Draw, Instance], Any]]]] = {
    **{op: [("alpha", _several, _number)] for op in ("add", "multiply")},
    **{op: [("alpha", _given("b"), _number)] for op in _COMPARED},
    "batchedMatmul": [(n, _given("b"), lambda d, i: d.pick((1, 2, 3, 4, 2**31 - 1))) for n in _IF_BOTH],
    "crop": [
        ("cropAmounts", _given("like"), _far_pair(0, 2, 4)),
        ("offset", lambda i: "like" not in i.args, _far_pair(0, 2)),
    ],
    "rangeDynamic": [
        ("startValue", _given("start"), _number),
        ("stepSizeValue", _given("step"), lambda d, i: d.pick((-1.0, 0.25, 2.0))),
    ],
    "sliceDynamic": [
        ("endIds", _given("end"), _INDEX),
        ("strides", _given("stride"), _STEP),
        ("beginMasks", _given("begin_mask"), _MASK),
        ("endMasks", _given("end_mask"), _MASK),
        ("squeezeMasks", _given("squeeze_mask"), _MASK),
    ],
    "NonMaximumSuppression": [
        ("iouThreshold", _given("iou_threshold"), lambda d, i: d.pick((0.0, 0.5, 1.0))),
        ("scoreThreshold", _given("score_threshold"), lambda d, i: d.pick((0.0, 0.5, 2.0))),
        ("maxBoxes", _given("max_boxes"), lambda d, i: d.int(1, 9)),
    ],
    **{
        op: [
            ("kernelSize", _set("globalPooling"), _far_pair(1, 4)),
            ("stride", _set("globalPooling"), _far_pair(1, 3)),
            *([("avgPoolExcludePadding", _always, lambda d, i: True)] if op != "pooling.AVERAGE" else []),
        ]
        for op in _POOLS
    },
    "convolution": [("outputShape", _always, _any_list)],
    "convolution.isDeconvolution": [
        ("valid.paddingAmounts", _set("outputShape"), _far_pair(0, 2, 4)),
        ("dilationFactor", _always, _any_list),
    ],
    **{
        op: [(f"customPadding{side}", _not_custom, lambda d, i: d.pick((0, 1, 300, 2**31 - 1))) for side in _SIDES]
        for op in ("convolution3d", "convolution3d.isDeconvolution")
    },
    "splitND": [("numSplits", _set("splitSizes"), lambda d, i: d.pick((0, 1, 300, 2**31 - 1)))],
    **{f"reduce.{n}": [("epsilon", _always, lambda d, i: d.int(1, 8) / 4)] for n in _REDUCED},
    "batchnorm": [("instanceNormalization", lambda i: not i.attrs.get("computeMeanVar"), lambda d, i: True)],
}


def _flag(s: OpSchema, slot: str) -> str | None:
    """Parameter that says whether a stored vector counts."""
    if slot.endswith("PeepholeVector"):
        return "params.hasPeepholeVectors"
    names = ("hasBias",) if slot == "bias" else ("params.hasBiasVectors", "hasBiasVectors", "hasBiasVector")
    biased = slot == "bias" or slot.endswith(("BiasVector", "biasVector"))
    return next((n for n in names if n in s.attrs), None) if biased else None


def _vectors(s: OpSchema, inst: Instance) -> Iterator[str]:
    for slot in s.inputs:
        flag = _flag(s, slot.name) if slot.const else None
        if flag is not None and not inst.attrs.get(flag):
            yield slot.name


def unused(s: OpSchema, inst: Instance) -> set[str]:
    """Parameters and weights that do not count in this instance."""
    names = {n for n, when, _ in _TABLE.get(s.op, ()) if when(inst)} | set(_vectors(s, inst))
    return names | ({"weights", "bias"} if s.op == "batchedMatmul" and "b" in inst.args else set())


def add(s: OpSchema, inst: Instance, d: Draw) -> None:
    """Give the instance what it ignores: parameters of the table, some of the vectors that a flag leaves out, of the
    type of the weights beside them."""
    for name, when, make in _TABLE.get(s.op, ()):
        if when(inst) and name not in inst.attrs:
            inst.attrs[name] = make(d, inst)
    if s.op == "batchedMatmul":  # a bias is "supported only when there is one input"
        return
    held = (a.dtype for n, a in inst.args.items() if isinstance(a, Arg) and (x := s.input(n)) is not None and x.const)
    dtype = next(held, F32)
    vectors = list(_vectors(s, inst))
    for slot in d.subset(vectors, 1) if len(vectors) > 1 and d.bool() else vectors:
        if s.op == "scale":
            inst.attrs["shapeBias"] = [1]
        shape = weights.stored_shape(s.op, slot, lambda n: inst.attrs.get(n, s.attrs[n].default))
        inst.args[slot] = Arg(dtype, shape or (1,), True, "unit", d.int(0, 0x7FFFFFFF))
