"""Layers that move elements: shapes, slices, pads, joins, fills.  Source: NeuralNetwork.proto, message of each
layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.spec import Call, Draw, Fn, Map, Slotted, T
from suites.nn import op
from suites.nn.spell import Const, Or, Weight
from suites.semantics import movement as s

op("copy", s.identity)
op(
    "transpose",
    s.transpose,
    perm=Fn(lambda c: tuple(c.attr("axes")), lambda v, b: b.attrs.update(axes=list(_perm(v, b)))),
)
op("expandDims", s.expand_dims)
op("flattenTo2D", s.flatten)
op("reshapeStatic", s.reshape, shape="targetShape", fixed={"zero": "literal"})
op("reshapeLike", s.reshape_like)
op("concatND", s.concat)
op("stack", s.stack)
op("getShape", s.shape_of)
op("slidingWindows", s.sliding_windows, size="windowSize", stride="step")
op("lowerTriangular", s.triangle, fixed={"upper": False})
op("upperTriangular", s.triangle, fixed={"upper": True})
op("matrixBandPart", s.band_part, lower="numLower", upper="numUpper")
op("broadcastToStatic", s.broadcast_to, shape="targetShape")
op("fillLike", s.fill_like, value=Const("value"))
op("fillStatic", s.fill, value=Const("value"), shape="targetShape")


def _perm(v: Any, b: Any) -> Any:
    return range(len(b.values["x"].shape))[::-1] if v is None else v


def _reversed(c: Call) -> tuple[int, ...]:
    on = c.attr("reverseDim")
    if len(on) != c.inputs["x"].ndim:
        raise RuleError("entry-per-axis", f"{len(on)} entries for rank {c.inputs['x'].ndim}")
    return tuple(int(a) for a in np.flatnonzero(on))


def _draw_reverse(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "reverseDim": [d.bool() for _ in shape]}


op(
    "reverse",
    s.reverse,
    axes=Fn(_reversed),
    draw=_draw_reverse,
    breaks={"entry-per-axis": lambda d: {"x": T(d.shape(2)), "reverseDim": [True]}},
)


# -- inputs that carry sizes: blobs of floats


def ints(x: np.ndarray) -> tuple[int, ...]:
    """Sizes and positions that travel as floats."""
    return tuple(int(v) for v in x.reshape(-1))


def sizes(slot: str) -> Fn:
    """A list parameter that is always an input."""
    return Fn(lambda c: ints(c.inputs[slot]), lambda v, b: b.tensor(slot, T((len(v),), values=[float(x) for x in v])))


op("reshapeDynamic", s.reshape, shape=sizes("shape"), fixed={"zero": "literal"})
op("broadcastToDynamic", s.broadcast_to, shape=sizes("shape"))
op("fillDynamic", s.fill, value=Const("value"), shape=sizes("shape"))


def _like(d: Draw) -> dict[str, Any]:
    full = d.shape(1)
    return {"x": T(d.broadcast_from(full)), "like": T(full)}


op("broadcastToLike", s.broadcast_to, draw=_like, shape=Fn(lambda c: c.inputs["like"].shape))


# -- reshape and squeeze with rules of their own


def _rank_kept(c: Call) -> tuple[int, ...]:
    shape = tuple(c.attr("targetShape"))
    if len(shape) != c.inputs["x"].ndim:
        raise RuleError("rank-kept", f"targetShape {list(shape)} for rank {c.inputs['x'].ndim}")
    return shape


def _draw_rank_kept(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(1))
    a, b = d.int(0, len(shape) - 1), d.int(0, len(shape) - 1)
    target = list(shape)
    if a != b:
        f = d.pick([k for k in range(1, shape[a] + 1) if shape[a] % k == 0])
        target[a], target[b] = shape[a] // f, shape[b] * f
    for i, n in enumerate(shape):
        if target[i] == n and d.chance(3):
            target[i] = 0
    if d.bool():
        target[d.int(0, len(target) - 1)] = -1
    return {"x": T(shape), "targetShape": target}


def _rank_changed(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4)
    return {"x": T(shape), "targetShape": [*shape, 1]}


op(
    "rankPreservingReshape",
    s.reshape,
    shape=Fn(_rank_kept),
    fixed={"zero": "copy"},
    draw=_draw_rank_kept,
    breaks={"rank-kept": _rank_changed},
)

op(
    "squeeze",
    s.squeeze,
    axes=Fn(
        lambda c: None if c.attr("squeezeAll") else tuple(c.attr("axes")),
        lambda v, b: b.attrs.update(squeezeAll=True) if v is None else b.attr("axes", v),
    ),
)


# -- slices


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


op(
    "sliceStatic",
    s.strided_slice,
    begin="beginIds",
    end="endIds",
    stride="strides",
    begin_mask=_mask("beginMasks"),
    end_mask=_mask("endMasks"),
    squeeze_mask=_mask("squeezeMasks"),
    ambiguous=_masked_backwards,
)

_OVERRIDES = (
    ("end", "endIds"),
    ("stride", "strides"),
    ("begin_mask", "beginMasks"),
    ("end_mask", "endMasks"),
    ("squeeze_mask", "squeezeMasks"),
)


def _override(slot: str, name: str) -> Fn:
    return Fn(lambda c: ints(c.inputs[slot]) if slot in c.inputs else tuple(c.attr(name)))


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


op(
    "sliceDynamic",
    s.strided_slice,
    begin=sizes("begin"),
    draw=_draw_dynamic,
    ambiguous=_masked_backwards,
    **{slot: _override(slot, name) for slot, name in _OVERRIDES},
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
    shape = d.shape(3)
    axis = d.pick(tuple(_AXES))
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
    starts=Fn(lambda c: (c.attr("startIndex"),)),
    ends=Fn(lambda c: (c.attr("endIndex"),)),
    axes=Fn(_slice_axis),
    steps=Fn(_slice_step),
    draw=_draw_slice,
    tags=("rank5",),
    breaks={
        "stride-positive": lambda d: {"x": T(d.shape(3)), "startIndex": 0, "endIndex": 1, "axis": "WIDTH_AXIS"},
        "axis-in-range": lambda d: {"x": T(d.shape(1, 2)), "startIndex": 0, "endIndex": 1, "stride": 1},
    },
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
    begin=Fn(lambda c: _one_axis(c)[0]),
    size=Fn(lambda c: _one_axis(c)[1]),
    draw=_draw_by_size,
    breaks={"slice-inside": _by_size_outside},
)


# -- joins and cuts along a fixed axis


def _along(axis: int, least: int) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = list(d.shape(least))
        parts = []
        for _ in range(d.int(2, 4)):
            shape[axis] = d.dim(1, 5)
            parts.append(T(shape))
        return {"xs": parts}

    return draw


def _draw_concat(d: Draw) -> dict[str, Any]:
    sequence = d.chance(3)
    out = _along(-5 if sequence else -3, 5 if sequence else 3)(d)
    return {**out, "sequenceConcat": True} if sequence else out


op(
    "concat",
    s.concat,
    axis=Fn(lambda c: -5 if c.attr("sequenceConcat") else -3),
    draw=_draw_concat,
    breaks={"axis-in-range": lambda d: {"xs": [T(d.shape(1, 2))] * 2}},
)


def _draw_split(d: Draw) -> dict[str, Any]:
    n = d.int(2, 4)
    shape = list(d.shape(3))
    shape[-3] = n * d.dim(1, 4)
    return {"x": T(shape), "nOutputs": n, "@outs": n}


def _split_uneven(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(3))
    shape[-3] = 2 * d.dim(1, 4) + 1
    return {"x": T(shape), "nOutputs": 2, "@outs": 2}


op(
    "split",
    s.split_even,
    axis=Fn(lambda c: -3),
    count="nOutputs",
    draw=_draw_split,
    breaks={"count-divides": _split_uneven},
)


def _sizes_nd(c: Call) -> tuple[int, ...]:
    if c.attr("splitSizes"):
        return tuple(c.attr("splitSizes"))
    x, axis, n = c.inputs["x"], c.attr("axis"), c.attr("numSplits")
    if not -x.ndim <= axis < x.ndim:
        raise RuleError("axis-in-range", f"axis {axis} for rank {x.ndim}")
    if n < 1 or x.shape[axis] % n:
        raise RuleError("count-divides", f"{n} parts of extent {x.shape[axis]}")
    return (x.shape[axis] // n,) * n


def _draw_split_nd(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(1))
    axis, n = d.axis(len(shape)), d.int(2, 4)
    if d.bool():
        shape[axis] = n * d.dim(1, 4)
        return {"x": T(shape), "axis": axis, "numSplits": n, "@outs": n}
    parts = [d.dim(1, 5) for _ in range(n)]
    shape[axis] = sum(parts)
    return {"x": T(shape), "axis": axis, "splitSizes": parts, "@outs": n}


def _split_nd_short(d: Draw) -> dict[str, Any]:
    shape = (5, *d.part(0, 3))
    return {"x": T(shape), "axis": 0, "splitSizes": [2, 2], "@outs": 2}


op("splitND", s.split, sizes=Fn(_sizes_nd), draw=_draw_split_nd, breaks={"sizes-sum": _split_nd_short})


# -- repetition


def _reps(c: Call) -> tuple[int, ...]:
    reps = ints(c.inputs["reps_in"]) if "reps_in" in c.inputs else tuple(c.attr("reps"))
    return (1,) * (c.inputs["x"].ndim - len(reps)) + reps


def _draw_tile(d: Draw) -> dict[str, Any]:
    values = s.tile.derive(d)
    reps = list(values["repeats"])
    while len(reps) > 1 and reps[0] == 1 and d.bool():
        reps = reps[1:]
    if d.bool():
        return {"x": values["x"], "reps": reps}
    return {"x": values["x"], "reps_in": T((len(reps),), values=[float(r) for r in reps])}


op(
    "tile",
    s.tile,
    repeats=Fn(_reps),
    draw=_draw_tile,
    breaks={"repeats-per-axis": lambda d: {"x": T(d.shape(1, 3)), "reps": [1, 2, 1, 2]}},
)


def _draw_sequence(d: Draw) -> dict[str, Any]:
    return {"x": T(d.shape(5)), "nRepetitions": d.int(0, 4)}


op(
    "sequenceRepeat",
    s.repeat_axis,
    axis=Fn(lambda c: -5),
    times=Or("nRepetitions", 1),
    fixed={"mode": "tile"},
    draw=_draw_sequence,
    tags=("rank5",),
    breaks={"axis-in-range": lambda d: {"x": T(d.shape(1, 4)), "nRepetitions": 2}},
)


def _draw_reverse_seq(d: Draw) -> dict[str, Any]:
    shape = d.shape(2)
    batch = d.int(0, len(shape) - 2)
    seq = d.int(batch + 1, len(shape) - 1)
    lengths = [float(d.int(0, shape[seq])) for _ in range(shape[batch])]
    r = len(shape)
    return {
        "x": T(shape),
        "lengths": T((shape[batch],), values=lengths),
        "batchAxis": batch - r if d.bool() else batch,
        "sequenceAxis": seq - r if d.bool() else seq,
    }


op(
    "reverseSeq",
    s.reverse_sequence,
    lengths=Slotted("lengths", lambda x: x.astype(np.int64)),
    seq_axis="sequenceAxis",
    batch_axis="batchAxis",
    draw=_draw_reverse_seq,
)

op(
    "reorganizeData",
    s.depth_to_space,
    evaluate=lambda c: _reorganise(c),
    error=s.depth_to_space.error,
    draw=lambda d: _draw_blocks(d),
    breaks={
        "block-divides-space": lambda d: {"x": T((1, 3, 2)), "mode": "SPACE_TO_DEPTH", "blockSize": 2},
        "block-divides-channels": lambda d: {"x": T((3, 1, 2)), "mode": "DEPTH_TO_SPACE", "blockSize": 2},
    },
)


def _reorganise(c: Call) -> np.ndarray:
    """On [..., C, H, W].  SPACE_TO_DEPTH and DEPTH_TO_SPACE order channels block first, PIXEL_SHUFFLE channel first."""
    x, block, mode = c.inputs["x"], c.attr("blockSize"), c.attr("mode")
    if x.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {x.ndim}")
    flat = x.reshape((-1, *x.shape[-3:]))
    if mode == "SPACE_TO_DEPTH":
        y = s.space_to_depth(flat, block=block, mode="dcr")
    else:
        y = s.depth_to_space(flat, block=block, mode="crd" if mode == "PIXEL_SHUFFLE" else "dcr")
    return y.reshape(*x.shape[:-3], *y.shape[1:])


def _draw_blocks(d: Draw) -> dict[str, Any]:
    mode, k = d.pick(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "PIXEL_SHUFFLE")), d.pick((2, 2, 3))
    c, h, w = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    core = (c, h * k, w * k) if mode == "SPACE_TO_DEPTH" else (c * k * k, h, w)
    return {"x": T((*(d.dim(1, 3) for _ in range(d.int(0, 2))), *core)), "mode": mode, "blockSize": k}


# -- borders


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
    t, b, l, r = _edges(c, "paddingAmounts")
    return t, l, b, r


def _draw_padding(d: Draw) -> dict[str, Any]:
    shape = d.shape(2)
    mode = d.pick(tuple(_MODES.values()))
    top = [n - 1 if mode == "reflection" else 3 for n in shape[-2:]]
    amounts = [d.int(0, min(3, top[i // 2])) for i in range(4)]
    out = {"x": T(shape), "paddingAmounts": amounts, "PaddingType": mode}
    return {**out, "constant.value": d.int(-8, 8) / 4} if mode == "constant" else out


op(
    "padding",
    s.pad,
    value=Fn(_pad_value),
    pads=Fn(_pads),
    mode=Map("PaddingType", _MODES),
    fixed={"axes": (-2, -1)},
    draw=_draw_padding,
    breaks={"two-borders": lambda d: {"x": T(d.shape(2)), "paddingAmounts": [1, 1], "PaddingType": "constant"}},
)


def _nd_pads(c: Call) -> tuple[int, ...]:
    """Begins then ends.  Amounts come as (begin, end) of each axis; in the output-size mode the one that is set says
    how
    large the axis shall be, and on which side it grows."""
    x = c.inputs["x"]
    a = ints(c.inputs["pads_in"]) if "pads_in" in c.inputs else tuple(c.attr("padAmounts"))
    if len(a) != 2 * x.ndim:
        raise RuleError("pads-per-axis", f"{len(a)} amounts for rank {x.ndim}")
    if c.attr("padToGivenOutputSizeMode"):
        a = tuple(max(v - x.shape[i // 2], 0) if v else 0 for i, v in enumerate(a))
    return a[::2] + a[1::2]


def _draw_constant_pad(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    to_size = d.chance(3)
    amounts = []
    for n in shape:
        pair = [d.int(0, 2), d.int(0, 2)]
        if to_size:
            pair = d.pick(([0, 0], [n + d.int(0, 3), 0], [0, n + d.int(0, 3)]))
        amounts += pair
    out: dict[str, Any] = {"x": T(shape), "value": d.int(-8, 8) / 4}
    if to_size:
        out["padToGivenOutputSizeMode"] = True
    if d.bool():
        return {**out, "padAmounts": amounts}
    return {**out, "pads_in": T((len(amounts),), values=[float(a) for a in amounts])}


op(
    "constantPad",
    s.pad,
    value=Const("value"),
    pads=Fn(_nd_pads),
    fixed={"mode": "constant", "axes": None},
    draw=_draw_constant_pad,
    breaks={"pads-per-axis": lambda d: {"x": T(d.shape(2)), "padAmounts": [1, 1]}},
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
    if d.bool():
        return {"x": x, "cropAmounts": [t, b, l, r]}
    return {"x": x, "like": T((*lead, h, w)), "offset": [t, l]}


op(
    "crop",
    s.crop_spatial,
    border=Fn(_crop_border),
    draw=_draw_crop,
    breaks={"crops-inside": lambda d: {"x": T((2, 3, 4)), "cropAmounts": [2, 2, 0, 0]}},
)


# -- constants and ranges


def _constant(rank: int | None) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = tuple(d.dim(1, 5) for _ in range(3)) if rank == 5 else d.shape(1, 4)
        return {"data": T(shape, const=True), "shape": list(shape)}

    return draw


op("loadConstant", s.identity, x=Weight("data", load=lambda w: w.reshape(1, 1, *w.shape)), draw=_constant(5))
op("loadConstantND", s.identity, x=Weight("data"), draw=_constant(None))


def _draw_range(d: Draw) -> tuple[float, float, float]:
    """start, end, step on a grid that makes the element count exact."""
    count, step = d.int(1, 12), d.pick((0.5, 1.0, 2.0, -0.5, -1.0, 0.25, 3.0))
    start = d.int(-20, 20) / 2
    return start, start + step * count - (step / 2 if d.bool() else 0.0), step


def _static(d: Draw) -> dict[str, Any]:
    start, end, step = _draw_range(d)
    return {"startValue": start, "endValue": end, "stepSizeValue": step}


_scalar = {"start": "startValue", "limit": "endValue", "delta": "stepSizeValue"}
op(
    "rangeStatic",
    s.range_of,
    draw=_static,
    **{k: Const(v) for k, v in _scalar.items()},
    breaks={"step-nonzero": lambda d: {"startValue": 0.0, "endValue": 4.0}},
)


def _dynamic(d: Draw) -> dict[str, Any]:
    start, end, step = _draw_range(d)
    given = d.int(0, 2)
    out: dict[str, Any] = {"end": T((1,), values=[end])}
    for i, (slot, name, v) in enumerate((("start", "startValue", start), ("step", "stepSizeValue", step))):
        out.update({slot: T((1,), values=[v])} if i < given else {name: v})
    return out


def _number(slot: str, name: str) -> Fn:
    c = Fn(lambda c: np.asarray(c.inputs[slot] if slot in c.inputs else c.attr(name), np.float32).reshape(()))
    c.for_tensor = True
    return c


op(
    "rangeDynamic",
    s.range_of,
    start=_number("start", "startValue"),
    limit=_number("end", ""),
    delta=_number("step", "stepSizeValue"),
    draw=_dynamic,
)


# -- the two layers that know an image order of their own


def _last(x: np.ndarray) -> np.ndarray:
    """[..., C, H, W] with channels last."""
    return np.moveaxis(x, -3, -1)


def _flatten(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim < 3:
        raise RuleError("rank-at-least-3", f"rank {x.ndim}")
    y = _last(x) if c.attr("mode") == "CHANNEL_LAST" else x
    return y.reshape(*x.shape[:-3], -1, 1, 1)


op(
    "flatten",
    evaluate=_flatten,
    error=s.identity.error,
    source="NeuralNetwork.proto, FlattenLayerParams",
    draw=lambda d: {"x": T(d.shape(3)), "mode": d.pick(("CHANNEL_FIRST", "CHANNEL_LAST"))},
    breaks={"rank-at-least-3": lambda d: {"x": T(d.shape(1, 2))}},
)


def _reshape(c: Call) -> np.ndarray:
    """[S, B, C, H, W] to [S', B, C', H', W']; CHANNEL_LAST reads and writes the elements in H, W, C order."""
    x, target = c.inputs["x"], [int(v) for v in c.attr("targetShape")]
    if x.ndim != 5:
        raise RuleError("rank-5", f"rank {x.ndim}")
    if len(target) not in (3, 4):
        raise RuleError("three-or-four-extents", f"targetShape {target}")
    if len(target) == 3:
        target = [x.shape[0], *target]
    out = [target[0], x.shape[1], *target[1:]]
    if np.prod(out) != x.size:
        raise RuleError("count-kept", f"{x.size} elements into {out}")
    if c.attr("mode") == "CHANNEL_FIRST":
        return x.reshape(out)
    y = _last(x).reshape(out[0], out[1], out[3], out[4], out[2])
    return np.moveaxis(y, -1, -3)


def _draw_reshape(d: Draw) -> dict[str, Any]:
    c, h, w = d.dim(1, 6), d.dim(1, 6), d.dim(1, 6)
    seq = d.dim(1, 4)
    target = d.shuffle((c, h, w))
    if d.bool():
        target = [target[0] * target[1], 1, target[2]]
    x = T((seq, 1, c, h, w))
    out = {"x": x, "mode": d.pick(("CHANNEL_FIRST", "CHANNEL_LAST"))}
    if d.bool():
        return {**out, "targetShape": target}
    return {**out, "targetShape": d.pick(([seq, *target], [1, target[0] * seq, *target[1:]]))}


op(
    "reshape",
    evaluate=_reshape,
    error=s.identity.error,
    draw=_draw_reshape,
    source="NeuralNetwork.proto, ReshapeLayerParams",
    breaks={
        "count-kept": lambda d: {"x": T((1, 1, 2, 3, 4)), "targetShape": [5, 5, 1]},
        "three-or-four-extents": lambda d: {"x": T((1, 1, 2, 3, 4)), "targetShape": [24]},
    },
)


def _permute(c: Call) -> tuple[int, ...]:
    """Four entries over [Seq, C, H, W]; the batch axis stays where it is."""
    x, axis = c.inputs["x"], tuple(c.attr("axis") or (0, 1, 2, 3))
    if x.ndim != 5:
        raise RuleError("rank-5", f"rank {x.ndim}")
    if sorted(axis) != [0, 1, 2, 3]:
        raise RuleError("perm-is-permutation", f"axis {list(axis)}")
    real = (0, 2, 3, 4)
    p = [real[a] for a in axis]
    return (p[0], 1, *p[1:])


op(
    "permute",
    s.transpose,
    perm=Fn(_permute),
    draw=lambda d: {"x": T(d.shape(5)), "axis": d.shuffle(range(4)) if d.int(0, 4) else None},
    breaks={"perm-is-permutation": lambda d: {"x": T(d.shape(5)), "axis": [0, 1, 1, 3]}},
)
