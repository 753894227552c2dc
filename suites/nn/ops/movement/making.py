"""Constants, fills, ranges, triangles and bands.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.declare import Checks, Draw, Fn, Sampling, Spelling, T
from suites.nn import op
from suites.nn.spell import Const, Weight, sizes
from suites.semantics import movement as s

_FLAT = {"matrices": lambda d: {"x": T(d.shape(1, 1))}}
op("lowerTriangular", s.triangle, Spelling(fixed={"upper": False}), Checks(breaks=_FLAT))
op("upperTriangular", s.triangle, Spelling(fixed={"upper": True}), Checks(breaks=_FLAT))
op("matrixBandPart", s.band_part, Checks(breaks=_FLAT), lower="numLower", upper="numUpper")
op("fillLike", s.fill_like, value=Const("value"))
op("fillStatic", s.fill, value=Const("value"), shape="targetShape")


op("fillDynamic", s.fill, value=Const("value"), shape=sizes("shape"))


# -- constants and ranges


def _constant(rank: int | None) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = tuple(d.dim(1, 5) for _ in range(3)) if rank == 5 else d.shape(1, 4)
        if d.chance(16):
            shape = (*shape[:-1], d.pick((16, 128, 257)), d.pick((1, 9)))[-len(shape) :]
        return {"data": T(shape, const=True), "shape": list(shape)}

    return draw


op("loadConstant", s.identity, Sampling(_constant(5)), x=Weight("data", load=lambda w: w.reshape(1, 1, *w.shape)))
op("loadConstantND", s.identity, Sampling(_constant(None)), x=Weight("data"))


def _draw_range(d: Draw) -> tuple[float, float, float]:
    """start, end, step on a grid that makes the element count exact."""
    count, step = d.int(1, 12), d.pick((0.5, 1.0, 2.0, -0.5, -1.0, 0.25, 3.0))
    start = d.int(-20, 20) / 2
    return start, start + step * count - (step / 2 if d.bool() else 0.0), step


def _static(d: Draw) -> dict[str, Any]:
    start, end, step = _draw_range(d)
    return {"startValue": start, "endValue": end, "stepSizeValue": step}


_scalar = {"start": "startValue", "limit": "endValue", "delta": "stepSizeValue"}
_literals: dict[str, Any] = {k: Const(v) for k, v in _scalar.items()}
op(
    "rangeStatic",
    s.range_of,
    Sampling(_static),
    Checks(breaks={"step-nonzero": lambda d: {"startValue": 0.0, "endValue": 4.0}}),
    **_literals,
)


_MAX, _TINY, _WHOLE = 3.4028234663852886e38, 2.0**-140, 2.0**24
# start, end and step at the ends of the type: of few elements, each of them a float
_AT_ENDS = (
    (0.0, _MAX, _MAX / 2),
    (_MAX, 0.0, -_MAX),
    (0.0, -_MAX, -_MAX / 2),
    (-_MAX, 0.0, _MAX),
    (0.0, 4 * _TINY, _TINY),
    (_TINY, 4 * _TINY, 2 * _TINY),
    (-0.0, 2.0, 1.0),
    (-2.0, -0.0, 1.0),
    (_WHOLE + 2, _WHOLE + 8, 2.0),
    (0.0, _WHOLE * 4, _WHOLE * 2),
    (0.5, 2.5, 0.5),
)


def _dynamic(d: Draw) -> dict[str, Any]:
    if d.chance(16):  # one number for two
        n = T((1,), values=[float(d.int(1, 4))], const=False)
        if d.bool():
            return {"end": n, "start": T((1,), values=[0.0]), "step": n, "@same": {"step": "end"}}
        return {"end": T((1,), values=[12.0]), "start": n, "step": n, "@same": {"step": "start"}}
    start, end, step = _draw_range(d)
    given = d.int(0, 2)
    if d.chance(6):
        (start, end, step), given = d.pick(_AT_ENDS), 2
    out: dict[str, Any] = {"end": T((1,), values=[end])}
    for i, (slot, name, v) in enumerate((("start", "startValue", start), ("step", "stepSizeValue", step))):
        out.update({slot: T((1,), values=[v])} if i < given else {name: v})
    return out


def _number(slot: str, name: str) -> Fn:
    return Fn(lambda c: np.asarray(c.inputs[slot] if slot in c.inputs else c.attr(name), np.float32).reshape(()))


op(
    "rangeDynamic",
    s.range_of,
    Sampling(_dynamic),
    Checks(
        breaks={
            "step-nonzero": lambda d: {
                "end": T((1,), values=[3.0]),
                "step": T((1,), values=[0.0]),
                "start": T((1,), values=[0.0]),
            }
        }
    ),
    start=_number("start", "startValue"),
    limit=_number("end", ""),
    delta=_number("step", "stepSizeValue"),
)
