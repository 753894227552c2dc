"""Borders added and cut off.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Map, Sampling, Spelling, T
from suites.nn import op
from suites.nn.spell import Const, ints
from suites.semantics import movement as s


def _edges(c: Call, name: str) -> tuple[int, ...]:
    """(height start, end, width start, end); absent is none."""
    e = tuple(c.attr(name) or (0, 0, 0, 0))
    if len(e) != 4:
        raise RuleError("two-borders", f"{name} {list(e)}")
    return e


_MODES = {"constant": "constant", "reflect": "reflection", "edge": "replication"}


def _pad_value(c: Call) -> Any:
    return np.array(c.attr("constant.value"), np.float32) if c.attr("PaddingType") == "constant" else None


def _pads(c: Call) -> tuple[int, ...]:
    if c.attr("PaddingType") is None:
        raise RuleError("padding-type-given", "none of constant, reflection, replication")
    if c.inputs["x"].ndim < 2:
        raise RuleError("rank-at-least-2", f"rank {c.inputs['x'].ndim}")
    t, b, l, r = _edges(c, "paddingAmounts")
    return t, l, b, r


def _draw_padding(d: Draw) -> dict[str, Any]:
    """A blob "with rank at least 2"."""
    shape = d.shape(2)
    mode = d.pick(tuple(_MODES.values()))
    top = [n - 1 if mode == "reflection" else 3 for n in shape[-2:]]
    amounts = [d.int(0, min(3, top[i // 2])) for i in range(4)]
    out = {"x": T(shape), "paddingAmounts": amounts, "PaddingType": mode}
    return {**out, "constant.value": d.int(-8, 8) / 4} if mode == "constant" else out


op(
    "padding",
    s.pad,
    Spelling(value=Fn(_pad_value), pads=Fn(_pads), mode=Map("PaddingType", _MODES), fixed={"axes": (-2, -1)}),
    Sampling(_draw_padding),
    Checks(
        breaks={
            "two-borders": lambda d: {"x": T(d.shape(3)), "paddingAmounts": [1, 1], "PaddingType": "constant"},
            "padding-type-given": lambda d: {"x": T(d.shape(2)), "paddingAmounts": [1, 0, 0, 1]},
            "rank-at-least-2": lambda d: {
                "x": T(d.shape(1, 1)),
                "paddingAmounts": [0, 0, 1, 1],
                "PaddingType": "constant",
            },
        }
    ),
)


def _nd_pads(c: Call) -> tuple[int, ...]:
    """Begins then ends.  Amounts come as (begin, end) of each axis; in the output-size mode the one that is set says
    how large the axis shall be, and on which side it grows."""
    x = c.inputs["x"]
    a = ints(c.inputs["pads_in"]) if "pads_in" in c.inputs else tuple(c.attr("padAmounts"))
    if len(a) != 2 * x.ndim:
        raise RuleError("pads-per-axis", f"{len(a)} amounts for rank {x.ndim}")
    if c.attr("padToGivenOutputSizeMode"):
        if any(b and e for b, e in zip(a[::2], a[1::2])):
            raise RuleError("one-side-grows", f"{list(a)}: only one of two amounts can be non zero")
        a = tuple(max(v - x.shape[i // 2], 0) if v else 0 for i, v in enumerate(a))
    return a[::2] + a[1::2]


def _draw_constant_pad(d: Draw) -> dict[str, Any]:
    if d.chance(16):  # one blob padded by as much as it says
        x = T((2,), values=[float(d.int(0, 2)) for _ in "be"], const=False)
        return {"x": x, "pads_in": x, "value": 1.0, "@same": {"pads_in": "x"}}
    shape = d.shape(1)
    to_size = d.chance(3)
    amounts = []
    for n in shape:
        pair = [d.int(0, 2), d.int(0, 2)]
        if to_size:
            size = d.int(1, n + 3)  # below n: the axis stays as it is
            pair = d.pick(([0, 0], [size, 0], [0, size]))
        amounts += pair
    out: dict[str, Any] = {"x": T(shape), "value": d.int(-8, 8) / 4}
    if to_size:
        out["padToGivenOutputSizeMode"] = True
    if d.bool():
        return {**out, "padAmounts": amounts}
    values = [-0.0 if a == 0 and d.chance(4) else float(a) for a in amounts]
    return {**out, "pads_in": T((len(amounts),), values=values)}


op(
    "constantPad",
    s.pad,
    Spelling(value=Const("value"), pads=Fn(_nd_pads), fixed={"mode": "constant", "axes": None}),
    Sampling(_draw_constant_pad),
    Checks(
        breaks={
            "pads-per-axis": lambda d: {"x": T(d.shape(2)), "padAmounts": [1, 1]},
            "one-side-grows": lambda d: {"x": T((2,)), "padAmounts": [3, 4], "padToGivenOutputSizeMode": True},
        }
    ),
)


def _crop_border(c: Call) -> tuple[int, ...]:
    x = c.inputs["x"]
    if "like" not in c.inputs:
        t, b, l, r = _edges(c, "cropAmounts")
        return l, t, r, b
    like, off = c.inputs["like"], tuple(c.attr("offset") or (0, 0))
    if like.ndim != x.ndim:
        raise RuleError("equal-rank", f"ranks {x.ndim} and {like.ndim}")
    bottom, right = x.shape[-2] - off[0] - like.shape[-2], x.shape[-1] - off[1] - like.shape[-1]
    return off[1], off[0], right, bottom


def _draw_crop(d: Draw) -> dict[str, Any]:
    t, b, l, r = (d.int(0, 3) for _ in range(4))
    h, w = d.dim(1, 6), d.dim(1, 6)
    lead = d.part(1, 3)
    x = T((*lead, h + t + b, w + l + r))
    if d.chance(12):  # what is left is 1 by 1: a border far longer
        x = T((*lead, 20, 20))
        t, b, l, r, h, w = 19, 0, 0, 19, 1, 1
    if d.bool():
        return {"x": x, "cropAmounts": [t, b, l, r]}
    if d.chance(6):
        like = T((*lead, h, w), const=False)
        return {"x": like, "like": like, "offset": [0, 0], "@same": {"like": "x"}}
    return {"x": x, "like": T((*lead, h, w)), "offset": [t, l]}


def _beyond(d: Draw) -> dict[str, Any]:
    """More cut off than there is, or a window that ends behind the input."""
    x = T((2, 3, 4))
    if d.bool():
        return {"x": x, "cropAmounts": [2, 2, 0, 0]}
    return {"x": x, "like": T((2, 2, 2)), "offset": d.pick(([2, 0], [0, 3]))}


op(
    "crop",
    s.crop_spatial,
    Sampling(_draw_crop),
    Checks(stated={"x": "*_lead c h w"}, breaks={"crops-inside": _beyond}),
    border=Fn(_crop_border),
)
