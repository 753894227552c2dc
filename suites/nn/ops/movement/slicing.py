"""Slices.  Source: NeuralNetwork.proto, message of each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, T
from suites.nn import op
from suites.nn.spell import ints, sizes
from suites.semantics import movement as s


def _mask(name: str) -> Fn:
    return Fn(lambda c: tuple(c.attr(name)), lambda v, b: b.attr(name, [bool(x) for x in v]) if any(v) else None)


def _masked_backwards(c: Call) -> str | None:
    """The text gives a mask one meaning (start at 0, run to the end), which is no range for a negative stride."""
    strides = c.inputs.get("stride", np.array(c.attr("strides") or ()))
    masks = [c.attr("beginMasks") or (), c.attr("endMasks") or ()]
    masks += [c.inputs[n].tolist() for n in ("begin_mask", "end_mask") if n in c.inputs]
    backwards = np.asarray(strides).reshape(-1) < 0
    return (
        "mask-with-negative-stride" if any(np.any(np.asarray(m, bool) & backwards) for m in masks if len(m)) else None
    )


def _unless_squeezed(strides: Any, squeezed: Any) -> tuple[int, ...]:
    """ "If i-th element of squeezeMasks is set to True, only beginIds[i] would be sliced out, and all other masks and
    inputs are ignored": so is the stride, whatever it is."""
    squeezed = (*squeezed, *(False,) * (len(strides) - len(squeezed)))
    return tuple(1 if cut else s for s, cut in zip(strides, squeezed))


def _strides(c: Call) -> tuple[int, ...]:
    return _unless_squeezed(c.attr("strides"), c.attr("squeezeMasks") or ())


def _write_strides(v: Any, b: Any) -> None:
    squeezed = b.values.get("squeeze_mask") or (False,) * len(b.values["begin"])
    v = (1,) * len(squeezed) if v is None else v
    b.attrs["strides"] = [b.draw.pick((0, -1, -(2**31), s)) if cut else s for s, cut in zip(v, squeezed)]


def _one_entry(begin: int, end: int) -> dict[str, Any]:
    return {"beginIds": [begin], "endIds": [end], "strides": [1]}


op(
    "sliceStatic",
    s.strided_slice,
    Checks(
        ambiguous=_masked_backwards,
        breaks={
            "entry-per-axis": lambda d: {"x": T((2, 3)), **_one_entry(0, 1)},
            "index-in-range": lambda d: {"x": T((2,)), **_one_entry(5, 6), "squeezeMasks": [True]},
        },
    ),
    begin="beginIds",
    end="endIds",
    stride=Fn(_strides, _write_strides, ("strides",)),
    begin_mask=_mask("beginMasks"),
    end_mask=_mask("endMasks"),
    squeeze_mask=_mask("squeezeMasks"),
)

_OVERRIDES = (
    ("end", "endIds"),
    ("stride", "strides"),
    ("begin_mask", "beginMasks"),
    ("end_mask", "endMasks"),
    ("squeeze_mask", "squeezeMasks"),
)


def _override(slot: str, name: str) -> Fn:
    """coremltools fills what is not given to length 5, whatever the rank: the entries beyond it say nothing."""
    return Fn(lambda c: _read(c, slot, name))


def _read(c: Call, slot: str, name: str) -> tuple[Any, ...]:
    return ints(c.inputs[slot]) if slot in c.inputs else tuple(c.attr(name))[: c.inputs["x"].ndim]


def _draw_dynamic(d: Draw) -> dict[str, Any]:
    """The first inputs override, the rest are parameters: inputs have no names, so that none can be left out
    between."""
    values = s.strided_slice.derive(d)
    out = {"x": values["x"], "begin": T((len(values["begin"]),), values=[float(v) for v in values["begin"]])}
    given = d.int(0, len(_OVERRIDES))
    for i, (slot, name) in enumerate(_OVERRIDES):
        v = values[slot]
        if i < given:
            out[slot] = T((len(v),), values=[float(x) for x in v])
        else:
            out[name] = list(v)
    return out


def _still(d: Draw) -> dict[str, Any]:
    n = d.dim(1)
    return {"x": T((n,)), "begin": T((1,), values=[0.0]), "endIds": [n], "strides": [0]}


def _entry_missing(d: Draw) -> dict[str, Any]:
    return {"x": T((d.dim(1), 2)), "begin": T((1,), values=[0.0]), "endIds": [1], "strides": [1]}


def _cut_out(begin: float) -> dict[str, Any]:
    return {"x": T((2,)), "begin": T((1,), values=[begin]), "endIds": [0], "squeezeMasks": [True]}


_overrides: dict[str, Any] = {slot: _override(slot, name) for slot, name in _OVERRIDES}
_overrides["stride"] = Fn(lambda c: _unless_squeezed(_read(c, "stride", "strides"), _read(c, *_OVERRIDES[-1])))
op(
    "sliceDynamic",
    s.strided_slice,
    Sampling(_draw_dynamic),
    Checks(
        ambiguous=_masked_backwards,
        breaks={
            "stride-nonzero": _still,
            "entry-per-axis": _entry_missing,
            "index-in-range": lambda d: {**_cut_out(5.0), "strides": [1]},
        },
    ),
    begin=sizes("begin"),
    **_overrides,
)

_AXES = {"CHANNEL_AXIS": -3, "HEIGHT_AXIS": -2, "WIDTH_AXIS": -1}


def _slice_axis(c: Call) -> tuple[int, ...]:
    axis = _AXES[c.attr("axis")]
    if c.inputs["x"].ndim < -axis:
        raise RuleError("axis-in-range", f"{c.attr('axis')} of rank {c.inputs['x'].ndim}")
    return (axis,)


def _slice_step(c: Call) -> tuple[int, ...]:
    if c.attr("stride") < 1:
        raise RuleError("stride-positive", f"stride {c.attr('stride')}")
    return (c.attr("stride"),)


def _draw_slice(d: Draw) -> dict[str, Any]:
    axis = d.pick(tuple(_AXES))
    shape = d.shape(-_AXES[axis])
    n = shape[_AXES[axis]]
    lo = d.int(0, n - 1)
    hi = d.int(lo + 1, n)
    end = hi if d.bool() or hi == n else hi - n
    return {
        "x": T(shape),
        "axis": axis,
        "startIndex": lo - n if d.bool() else lo,
        "endIndex": end,
        "stride": d.int(1, 4),
    }


op(
    "slice",
    s.slice_axes,
    Sampling(_draw_slice),
    Checks(
        breaks={
            "stride-positive": lambda d: {"x": T(d.shape(3)), "startIndex": 0, "endIndex": 1, "axis": "WIDTH_AXIS"},
            "axis-in-range": lambda d: {"x": T(d.shape(1, 2)), "startIndex": 0, "endIndex": 1, "stride": 1},
        }
    ),
    starts=Fn(lambda c: (c.attr("startIndex"),), names=("startIndex",)),
    ends=Fn(lambda c: (c.attr("endIndex"),), names=("endIndex",)),
    axes=Fn(_slice_axis),
    steps=Fn(_slice_step, names=("stride",)),
)


def _one_axis(c: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """begin and size of every axis, from those of one."""
    x, axis = c.inputs["x"], c.attr("axis")
    if not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    begin, size = [0] * x.ndim, list(x.shape)
    begin[axis], size[axis] = ints(c.inputs["begin"])[0], c.attr("size")
    return tuple(begin), tuple(size)


def _draw_by_size(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    begin = d.int(0, shape[axis] - 1)
    size = d.int(1, shape[axis] - begin)
    return {"x": T(shape), "begin": T((1,), values=[float(begin)]), "axis": axis, "size": size}


def _by_size_outside(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "begin": T((1,), values=[1.0]), "axis": 0, "size": shape[0]}


op(
    "sliceBySize",
    s.slice_by_size,
    Sampling(_draw_by_size),
    Checks(breaks={"slice-inside": _by_size_outside}),
    begin=Fn(lambda c: _one_axis(c)[0]),
    size=Fn(lambda c: _one_axis(c)[1]),
)
