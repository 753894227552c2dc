"""Counts and positions far beyond any that fit into memory, of tensors without elements.

An axis of no element makes the others free: a tensor of shape [0, 2147483648] holds nothing, and what is taken,
repeated, split or padded along its second axis is as large as the text lets it be.  One instance in so many of these
ops is such a one.

A position that each element has of its own needs an axis of real elements.  Those of ``_REAL`` reach beyond 2^24, where
f32 no longer holds each integer, in elements of one byte (of MaxUnpool, whose types are floats, of two)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.core.dtypes import F32, I64, int_range
from harness.core.instance import SAME, Arg, Instance
from harness.declare import Draw, OpVersion

EVERY = 48
_MAX, _MIN = 2**31 - 1, -(2**31)
_FAR = (_MAX, (1 << 24) + 1, 1 << 40)
Make = Callable[[OpVersion, Draw, Instance], "Instance | None"]


def _tensor(a: Arg, *shape: int) -> Arg:
    return replace(a, shape=shape, values=None, dynamic=(), recipe="small" if a.values is not None else a.recipe)


def _list(inst: Instance, name: str, values: list[int]) -> Instance | None:
    """The instance with a list of integers, operand or attribute; None where its type cannot hold them."""
    a = inst.args.get(name)
    if not isinstance(a, Arg):
        return replace(inst, attrs={**inst.attrs, name: values})
    lo, hi = int_range(a.dtype) if a.dtype.kind in "iu" else (0, -1)
    if not all(lo <= v <= hi for v in values):
        return None
    return replace(inst, args={**inst.args, name: replace(a, shape=(len(values),), values=values, dynamic=())})


def _with(inst: Instance, slot: str, a: Arg) -> Instance:
    return replace(inst, args={**inst.args, slot: a})


def _shape(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Reshape, Expand: [0, n] of [0, 1]; 0 is the extent that is there, or one of 0."""
    slot = v.schema.inputs[0].name
    return _list(_with(inst, slot, _tensor(inst.tensors(slot)[0], 0, 1)), "shape", [0, d.pick(_FAR)])


def _filled(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    name = "shape" if "shape" in v.schema.attrs else "input"
    far = d.pick((*_FAR, 2**63 - 1, 2**63 - 1))  # the latter where an element has one byte
    return _list(inst, name, [far, 0] if d.bool() else [0, far])


def _tiled(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    if "repeats" not in inst.args:  # version 1 has one number
        return None
    return _list(_with(inst, "input", _tensor(inst.tensors("input")[0], 0, 1)), "repeats", [1, d.pick(_FAR)])


def _padded(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Far beyond an axis, or cut by as much."""
    name = next((n for n in ("pads", "paddings") if n in inst.attrs or n in inst.args), None)
    if name is None:
        return None
    cut = d.bool()
    far = d.pick(_FAR)
    pads = [0, d.pick((_MIN, -far)) if cut else far, 0, 0]
    pads = pads if d.bool() else [0, 0, 0, pads[1]]
    x = _tensor(inst.tensors("data")[0], 0, d.int(1, 3) - min(pads))
    new = _list(replace(inst, args={n: a for n, a in inst.args.items() if n != "axes"}), name, pads)
    if new is None:
        return None
    attrs = {n: a for n, a in new.attrs.items() if n != "mode"}
    return replace(_with(new, "data", x), attrs={**attrs, **({"mode": "constant"} if d.bool() else {})})


def _parted(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Two parts, one of them far longer than any memory."""
    far, small = d.pick(_FAR), d.int(0, 3)
    parts = [far, small] if d.bool() else [small, far]
    new = _with(inst, "input", _tensor(inst.tensors("input")[0], 0, far + small))
    attrs = {n: a for n, a in inst.attrs.items() if n in ("axis", "keepdims")} | {"axis": 1}
    if "split" in inst.args or "split" in inst.attrs:
        return _list(
            replace(
                new,
                attrs={**attrs, **({"split": None} if "split" in inst.attrs else {})},
                outs=2,
            ),
            "split",
            parts,
        )
    return None


def _taken(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Gather along an axis that is far longer than any memory, of either sign where the text counts from the back."""
    data, i = inst.tensors("data")[0], inst.tensors("indices")[0]
    ends = [(1 << 24) + 1, _MAX, 0] + ([-1, _MIN] if v.dialect.counts_back(v) else [])
    values = [d.pick(ends) for _ in range(d.int(1, 3))]
    new = _with(inst, "data", _tensor(data, 0, 1 << 31))
    new = _with(new, "indices", replace(i, shape=(len(values),), values=values, dynamic=(), recipe="small"))
    return replace(new, attrs={**inst.attrs, "axis": 1})


def _picked(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """GatherND, ScatterND: as ``_taken``, the axis being the first one."""
    i = inst.tensors("indices")[0]
    ends = d.shuffle([(1 << 24) + 1, _MAX, 0, -1, _MIN])[: d.int(1, 3)]
    new = _with(inst, "data", _tensor(inst.tensors("data")[0], 1 << 31, 0))
    new = _with(new, "indices", replace(i, shape=(len(ends), 1), values=ends, dynamic=(), recipe="small"))
    if "updates" in inst.args:
        new = _with(new, "updates", _tensor(inst.tensors("updates")[0], len(ends), 0))
    return replace(new, attrs={n: a for n, a in inst.attrs.items() if n != "batch_dims"})


def _blocks(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """DepthToSpace, SpaceToDepth: blocks of nothing, as large as an i32 has it."""
    x = inst.tensors("input")[0]
    return replace(
        _with(inst, "input", _tensor(x, d.int(0, 2), 0, 0, 0)),
        attrs={**inst.attrs, "blocksize": d.pick((_MAX, 20, 1000))},
    )


def _cropped(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    x = inst.tensors("input_data")[0]
    bare = replace(inst, attrs={n: a for n, a in inst.attrs.items() if n != "axes"})
    i64 = inst.tensors("shape")[0].dtype.bits == 64
    return _list(_with(bare, "input_data", _tensor(x, 0, d.int(0, 3))), "shape", [0, d.pick(_FAR if i64 else _FAR[:2])])


def _hot(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """No index, of very many classes; or no class."""
    depth = inst.tensors("depth")[0]
    none = d.bool()
    if not none and not (depth.dtype.kind in "iu" and int_range(depth.dtype)[1] >= _MAX):
        return None
    new = _with(inst, "depth", replace(depth, values=[0 if none else _MAX]))
    return new if none else _with(new, "indices", _tensor(inst.tensors("indices")[0], 0))


def _reversed(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Sequences of very many steps without elements."""
    far = (1 << 24) + 1  # a runtime may look at each step
    lens = inst.tensors("sequence_lens")[0]
    new = _with(inst, "input", _tensor(inst.tensors("input")[0], far, 2, 0))
    new = _with(new, "sequence_lens", replace(lens, shape=(2,), values=[far, d.pick((0, 1, far))], dynamic=()))
    return replace(new, attrs={"time_axis": 0, "batch_axis": 1})


def _written(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A cache of very many places without elements."""
    far = (1 << 24) + d.int(1, 5)
    new = _with(inst, "past_cache", _tensor(inst.tensors("past_cache")[0], 2, far + 1, 0))
    new = _with(new, "update", _tensor(inst.tensors("update")[0], 2, 1, 0))
    if "write_indices" not in inst.args:
        return None
    at = inst.tensors("write_indices")[0]
    return replace(
        _with(new, "write_indices", replace(at, shape=(2,), values=[far, 0], dynamic=())),
        attrs={**inst.attrs, "axis": 1},
    )


def _top(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """TopK: of an axis far longer than any memory, most of what is there, which is nothing."""
    far = _MAX  # more than a backend may write out
    new = _with(inst, "X", _tensor(inst.tensors("X")[0], 0, far + d.int(0, 2)))
    attrs = {n: a for n, a in inst.attrs.items() if n in ("largest", "sorted")} | {"axis": 1}
    if "K" not in inst.args:
        return replace(new, attrs=attrs | {"k": far})
    return replace(_with(new, "K", replace(inst.tensors("K")[0], values=[far])), attrs=attrs)


def _resized(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Resize: of nothing, to as large a size."""
    if "sizes" not in v.slots_of_schema:
        return None
    x = _tensor(inst.tensors("X")[0], 0, d.int(1, 3))
    sizes = Arg(I64, (2,), values=[0, d.pick((_MAX, 1 << 40))], const=d.bool())  # more than a backend may write out
    none = {n: Arg(F32, (0,), recipe="small") for n in ("roi", "scales")} if int(v.version) == 11 else {}
    return replace(inst, args={"X": x, **none, "sizes": sizes}, attrs={"mode": "nearest"} if d.bool() else {})


def _shared(inst: Instance, args: dict[str, Any], first: str, other: str, attrs: dict[str, Any]) -> Instance:
    """The instance with one tensor given to two operands of one shape."""
    return replace(inst, args={**args, other: replace(args[first])}, attrs={**attrs, SAME: {other: first}})


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _recurrent(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """LSTM, GRU, RNN: extents with which one tensor may be two operands, which is given to both."""
    gates, way, r = _GATES[v.op], inst.tensors("W")[0].shape[0], inst.tensors("R")[0].shape[2]
    pairs = [("X", "R"), ("W", "initial_h"), ("W", "initial_c"), ("W", "R"), ("B", "P")]
    first, other = d.pick([p for p in pairs if p[0] in inst.args and p[1] in inst.args])
    hidden = 0 if first == "B" else min(r, 3)
    batch = gates * hidden if first != "B" and other != "P" else d.int(1, 2)
    steps, features = (way if first == "X" else d.int(1, 3)), hidden if first != "B" else d.int(1, 2)
    shapes: dict[str, tuple[int, ...]] = {
        "X": (steps, batch, features),
        "W": (way, gates * hidden, features),
        "R": (way, gates * hidden, hidden),
        "B": (way, 2 * gates * hidden),
        "sequence_lens": (batch,),
        "initial_h": (way, batch, hidden),
        "initial_c": (way, batch, hidden),
        "P": (way, 3 * hidden),
    }
    args: dict[str, Any] = {n: _sized(inst.tensors(n)[0], *shapes[n]) for n in inst.args}
    if "sequence_lens" in args:
        args["sequence_lens"] = replace(args["sequence_lens"], values=[d.int(0, steps) for _ in range(batch)])
    if first == "X":  # elements with which no state grows beyond bounds
        args["X"] = replace(args["R"], const=args["X"].const)
    attrs = {n: a for n, a in inst.attrs.items() if n not in (SAME, "layout")}
    return _shared(inst, args, first, other, attrs | {"hidden_size": hidden})


def _one_of_all(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """BatchNormalization-9: "single dimension input of size N in which case C is assumed to be 1", and N is 1 too."""
    if int(v.version) != 9:
        return None
    args: dict[str, Any] = {n: _sized(inst.tensors(n)[0], 1) for n in inst.args}
    return _shared(inst, args, "X", d.pick(("scale", "B", "mean", "var")), dict(inst.attrs))


def _own_scale(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """QuantizeLinear: the scale itself is quantised."""
    scale = inst.tensors("y_scale")[0]
    if len(scale.shape) > 1 or scale.dtype is not inst.tensors("x")[0].dtype:
        return None
    attrs = {n: a for n, a in inst.attrs.items() if n not in ("block_size", "axis")}
    attrs |= {"axis": 0} if "axis" in v.schema.attrs else {}
    return _shared(inst, inst.args | {"x": replace(scale)}, "x", "y_scale", attrs)


def _few_axes(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """MeanVarianceNormalization: of a scalar, which has no axis; along one of four axes."""
    x = inst.tensors("X")[0]
    if d.bool():
        return replace(_with(inst, "X", _tensor(x)), attrs={"axes": []})
    rank = d.pick((3, 4, 4))
    axis = d.int(-rank if v.dialect.counts_back(v) else 0, rank - 1)
    return replace(_with(inst, "X", _tensor(x, *(d.int(1, 3) for _ in range(rank)))), attrs={"axes": [axis]})


def _many_parts(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Split: many parts of nothing."""
    if "num_outputs" not in v.schema.attrs:
        return _parted(v, d, inst)
    if d.bool():
        return _parted(v, d, inst)
    n = d.int(8, 12)
    return replace(inst, args={"input": _tensor(inst.tensors("input")[0], 0, 2)}, attrs={"num_outputs": n}, outs=n)


def _keys(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Attention: as many keys without elements, which no query sees."""
    if "nonpad_kv_seqlen" not in inst.args or inst.tensors("Q")[0].dtype is not inst.tensors("V")[0].dtype:
        return None
    far = (1 << 24) + d.int(1, 5)
    q, k = (1, 1, 0, 0), (1, 1, far, 0)
    args: dict[str, Any] = {n: _tensor(inst.tensors(n)[0], *(q if n == "Q" else k)) for n in "QKV"}
    at = replace(inst.tensors("nonpad_kv_seqlen")[0], shape=(1,), values=[d.pick((far, far - 1))], dynamic=())
    return replace(inst, args={**args, "nonpad_kv_seqlen": at}, attrs={"scale": 1.0}, outs=1)


def _columns(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    far = d.pick((_MAX, (1 << 24) + 1, 1 << 40))
    y = inst.tensors("Y")[0]
    new = _with(inst, "X", _tensor(inst.tensors("X")[0], 0, far + 1))
    return _with(new, "Y", replace(y, shape=(2,), values=[far, 0], recipe="small", dynamic=()))


def _part_of_shape(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Shape: from before the first axis to behind the last one, which the text clamps."""
    if "start" not in v.schema.attrs:
        return None
    return replace(inst, attrs={"start": d.pick((_MIN, 0, _MAX)), "end": d.pick((_MIN, _MAX))})


def _one_step(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Slice: a step beyond the axis, to either side."""
    if "steps" not in v.slots_of_schema:
        return None
    n, step, dtype = d.int(1, 4), d.pick((_MIN, _MAX)), inst.tensors("starts")[0]
    x = replace(inst.tensors("data")[0], shape=(n,), values=None, dynamic=())
    numbers = {"starts": n - 1 if step < 0 else 0, "ends": _MIN if step < 0 else _MAX, "axes": 0, "steps": step}
    given = {slot: replace(dtype, shape=(1,), values=[k], dynamic=()) for slot, k in numbers.items()}
    return replace(inst, args={"data": x, **given})


def _one_window(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A periodic window of one sample."""
    attrs = {n: a for n, a in inst.attrs.items() if n != "periodic"}
    return replace(_with(inst, "size", replace(inst.tensors("size")[0], values=[1])), attrs=attrs)


def _long(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """GatherElements, ScatterElements: places at both ends of an axis of 16 MiB, each of them once."""
    data, i = inst.tensors("data")[0], inst.tensors("indices")[0]
    if data.dtype.bits != 8:
        return None
    n, back = (1 << 24) + d.int(2, 5), v.dialect.counts_back(v)
    axis, shape = d.pick(((0, (n,)), (0, (n, 1)), (1, (1, n))))
    values = [d.pick((n - 1, -1)) if back else n - 1, d.pick((0, -n)) if back else 0, 1 << 23][: d.int(1, 3)]
    at = tuple(len(values) if k == axis else 1 for k in range(len(shape)))
    plain = "bool" if data.dtype.kind == "b" else "small"
    bare: dict[str, Any] = {"values": None, "recipe": plain, "dynamic": (), "const": False, "encoding": ""}
    args: dict[str, Any] = {"data": replace(data, shape=shape, **bare)}
    args["indices"] = replace(i, shape=at, values=values, dynamic=(), recipe="small")
    if "updates" in inst.args:
        args["updates"] = replace(inst.tensors("updates")[0], shape=at, **bare)
    return replace(inst, args=args, attrs={"axis": axis} if axis or d.bool() else {})


def _unpooled(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """MaxUnpool: one element into a row of 2^24 and some."""
    x, i = inst.tensors("X")[0], inst.tensors("I")[0]
    if x.dtype.bits != 16 or not d.chance(3):
        return None
    n = (1 << 24) + d.int(2, 5)
    one: dict[str, Any] = {"shape": (1, 1, 1), "dynamic": (), "const": False, "encoding": ""}
    args: dict[str, Any] = {"X": replace(x, **one, values=None, recipe="small"), "I": replace(i, **one, values=[n - 1])}
    return replace(inst, args=args, attrs={"kernel_shape": [n]})


def _sized(a: Arg, *shape: int) -> Arg:
    """An operand of another shape; elements that stand one by one are repeated."""
    if a.values is None:
        return replace(a, shape=shape, dynamic=())
    n = math.prod(shape)
    return replace(a, shape=shape, dynamic=(), values=(list(a.values) * (n // max(1, len(a.values)) + 1))[:n])


def _windowed(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Conv and its like: a stride, a dilation, a padding, a window or an extent at the end of i32; no filter; many."""
    xs, ws = ("X", "W") if "X" in inst.args else ("x", "w")
    x, w = inst.tensors(xs)[0], inst.tensors(ws)[0]
    batch, c, *s = x.shape
    first, g, *k = w.shape
    if v.op == "QLinearConv" and inst.tensors("w_scale")[0].shape:
        return None
    turned, group, r = v.op == "ConvTranspose", inst.attrs.get("group", 1), len(s)
    at = d.int(0, r - 1)
    filters = g * group if turned else first
    attrs: dict[str, Any] = {"group": group} if group > 1 else {}

    def one(value: int, rest: int = 1, n: int = r) -> list[int]:
        return [value if i == at else rest for i in range(n)]

    how = d.pick(
        ("stride", "dilation", "pad", "window", "none", "none", "many", "many", *(("extent", "more") if turned else ()))
    )
    if how == "stride":
        s, attrs = (one(1) if turned else s), attrs | {"strides": one(_MAX)}
        k = k if turned else one(1)
    elif how == "dilation":
        k, attrs = one(1), attrs | {"dilations": one(_MAX)}
    elif how == "pad" or how == "window":
        batch, attrs = 0, attrs | {"pads": one(_MAX, 0, 2 * r)}
        if how == "window" or turned:
            k, filters = one(_MAX), 0
        else:
            k = one(1)
    elif how == "none":
        filters, attrs = 0, attrs | ({"output_shape": one(d.int(1, 3))} if turned else {"pads": [1] * (2 * r)})
    elif how == "many":
        batch, c, filters, s, k, attrs = 1, 1, d.pick((130, 300, 2100, 2100)), [1] * r, [1] * r, {}
    elif how == "extent":
        batch, attrs = 0, attrs | {"output_shape": one(d.pick((_MAX, _MAX, 0)))}
    else:
        attrs |= {"output_shape": [1] * r, "output_padding": [2] * r, "strides": [3] * r}
    group = attrs.get("group", 1)
    shape = (c, filters // group, *k) if turned else (filters, c // group, *k)
    new = _with(_with(inst, xs, _sized(x, batch, c, *s)), ws, _sized(w, *shape))
    if "B" in inst.args:
        new = _with(new, "B", _sized(inst.tensors("B")[0], filters))
    if v.op == "ConvInteger" and "w_zero_point" in inst.args:
        new = _with(new, "w_zero_point", _sized(inst.tensors("w_zero_point")[0], filters))
    return replace(new, attrs=attrs | ({"kernel_shape": k} if d.bool() else {}))


_REAL: dict[str, Make] = {
    **dict.fromkeys(("GatherElements", "ScatterElements", "Scatter"), _long),
    "MaxUnpool": _unpooled,
}
_MAKES: dict[str, Make] = {
    "Shape": _part_of_shape,
    "Slice": _one_step,
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), _one_window),
    "Reshape": _shape,
    "Expand": _shape,
    "ConstantOfShape": _filled,
    "RandomUniform": _filled,
    "RandomNormal": _filled,
    "Tile": _tiled,
    "Pad": _padded,
    "Split": _many_parts,
    "BatchNormalization": _one_of_all,
    "MeanVarianceNormalization": _few_axes,
    "QuantizeLinear": _own_scale,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Gather": _taken,
    "GatherND": _picked,
    "ScatterND": _picked,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "CenterCropPad": _cropped,
    "OneHot": _hot,
    "ReverseSequence": _reversed,
    "TensorScatter": _written,
    "Attention": _keys,
    "TopK": _top,
    "Resize": _resized,
    "ArrayFeatureExtractor": _columns,
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv"), _windowed),
}


def far_of(v: OpVersion, d: Draw, inst: Instance, takes: Callable[[Any, Instance], bool]) -> Instance:
    """The instance, or now and then one of nothing that is far larger, where the reference takes it."""
    real = _REAL.get(v.op)
    if real is not None and not d.breaking and d.chance(EVERY):
        return real(v, d, inst) or inst
    make = _MAKES.get(v.op)
    if make is None or d.breaking or not d.chance(EVERY):
        return inst
    new = make(v, d, inst)
    return new if new is not None and takes(v, new) else inst
