"""Counts and positions far beyond any that fit into memory, of tensors without elements.

An axis of no element makes the others free: a tensor of shape [0, 2147483648] holds nothing, and what is taken,
repeated, split or padded along its second axis is as large as the text lets it be.  One instance in so many of these
ops is such a one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.core.dtypes import int_range
from harness.core.instance import Arg, Instance
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
    far = d.pick((*_FAR, 2**63 - 1))
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
    cut = d.bool() and name == "pads"
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
    "Split": _parted,
    "Gather": _taken,
    "GatherND": _picked,
    "ScatterND": _picked,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "CenterCropPad": _cropped,
    "OneHot": _hot,
    "ReverseSequence": _reversed,
    "TensorScatter": _written,
    "ArrayFeatureExtractor": _columns,
}


def far_of(v: OpVersion, d: Draw, inst: Instance, takes: Callable[[Any, Instance], bool]) -> Instance:
    """The instance, or now and then one of nothing that is far larger, where the reference takes it."""
    make = _MAKES.get(v.op)
    if make is None or d.breaking or not d.chance(EVERY):
        return inst
    new = make(v, d, inst)
    return new if new is not None and takes(v, new) else inst
