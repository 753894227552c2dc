"""Windows, counts and positions as far as 32 bits hold, of tensors without elements.

An axis of no element makes the others free: a tensor of shape [0, 2147483647] holds nothing, and what is padded,
cropped, split or resized along its second axis is as large as the text lets it be.  One instance in so many of these
ops is such a one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from harness.core.dtypes import int_range
from harness.core.instance import SAME, Arg, Instance
from harness.declare import Draw, OpVersion

EVERY = 32
MAX, MIN, BIG = 2**31 - 1, -(2**31), 2**24 + 2
Make = Callable[[OpVersion, Draw, Instance], "Instance | None"]


def _shaped(inst: Instance, slot: str, *shape: int, values: Any = None) -> Instance:
    """The instance with another shape of an operand, which holds no literal values or these."""
    a = inst.args[slot]
    assert isinstance(a, Arg)
    recipe = "small" if a.values is not None or a.recipe.startswith("index") else a.recipe
    new = replace(a, shape=shape, values=values, dynamic=(), recipe=recipe)
    return replace(inst, args={**inst.args, slot: new})


def _with(inst: Instance, **attrs: Any) -> Instance:
    """The instance with other attributes; None leaves one out."""
    return replace(inst, attrs={k: v for k, v in {**inst.attrs, **attrs}.items() if v is not None})


def _only(inst: Instance, *slots: str) -> Instance:
    return replace(inst, args={k: a for k, a in inst.args.items() if k in slots})


def _copied(a: Any) -> Any:
    return [replace(x) for x in a] if isinstance(a, list) else replace(a)


def _put(n: int, at: int, much: int, rest: int) -> list[int]:
    return [much if i == at else rest for i in range(n)]


def _filters(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """conv, conv_transpose: groups of no filter; padding, steps and extents of no image; no filter, or very many."""
    x, w = inst.tensors("x")[0], inst.tensors("weight")[0]
    n, turned = len(x.shape) - 2, v.op == "conv_transpose"
    at, how = d.int(0, n - 1), d.pick(("groups", "pad", "strides", "dilations", "none", "many", "extent"))
    pads, groups, batch = [0] * (2 * n), 1, 0
    s, k, c_in, c_out = [1] * n, [1] * n, 1, 1
    attrs: dict[str, Any] = {"pad_type": "custom", "output_shape": None, "strides": None, "dilations": None}
    if how == "groups":
        groups = c_in = MAX
        c_out = 0
    elif how == "pad" and not turned:
        k[at], pads = 2, _put(2 * n, 2 * at + d.int(0, 1), MAX, 0)
    elif how in ("pad", "dilations") and turned:  # what the window reaches is cut away again
        k[at], attrs["dilations"], c_out = 2, _put(n, at, MAX, 1), d.int(0, 1)
        pads = _put(2 * n, 2 * at + d.int(0, 1), MAX, 0)
    elif how == "strides" and turned:
        s[at], attrs["strides"] = d.int(1, 2), _put(n, at, MAX, 1)
        if s[at] == 2:
            pads = _put(2 * n, 2 * at + d.int(0, 1), d.pick((1, MAX)), 0)
    elif how in ("strides", "dilations"):
        attrs[how] = _put(n, at, MAX, 1)
        k[at] = d.int(1, 2) if how == "dilations" else 1
        pads = _put(2 * n, 2 * at, MAX, 0) if k[at] == 2 else pads
    elif how == "extent" and turned:
        attrs["strides"], attrs["output_shape"] = _put(n, at, MAX, 1), [0, 1, *_put(n, at, MAX, 1)]
    elif how == "none":
        batch, c_out, s = 1, 0, [d.int(1, 3) for _ in s]
        pads = [d.int(0, 1) for _ in pads] if not turned else pads
    else:
        batch, c_out = 1, d.pick((257, 300))
        pads = [d.pick((0, 1, 12)) for _ in pads] if not turned else pads
    attrs["groups"] = groups if groups > 1 or d.bool() else None
    shape_of_w = (c_in, c_out // groups) if turned else (c_out, c_in // groups)
    new = _with(inst, **attrs, pad=pads)
    new = _shaped(_shaped(new, "x", batch, c_in, *s), "weight", *shape_of_w, *k)
    if attrs["dilations"] and not w.const:
        new = replace(new, args={**new.args, "weight": replace(new.tensors("weight")[0], const=True)})
    if "bias" in new.args or how == "many":
        new = replace(new, args={**new.args, "bias": new.args.get("bias", new.args["weight"])})
        new = _shaped(new, "bias", c_out)
    return new


def _pool(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """A window as wide as an extent, or padding, or both."""
    x = inst.tensors("x")[0]
    n = len(x.shape) - 2
    at, how = d.int(0, n - 1), d.pick(("kernel", "pad", "both", "wide"))
    s, k, pads, batch = [1] * n, [1] * n, [0] * (2 * n), 0
    if how == "kernel":
        s[at] = k[at] = MAX
    elif how == "pad":
        k[at], pads = d.pick((2, MAX)), _put(2 * n, 2 * at + d.int(0, 1), MAX, 0)
    elif how == "both":
        k[at], pads = MAX, _put(2 * n, 2 * at, MAX, 0)
    else:  # padding beyond extents
        batch, k, s, pads = 1, [14] * n, [2] * n, [d.pick((0, 12)) for _ in pads]
        pads = [12 if i % 2 == 0 else p for i, p in enumerate(pads)]
    attrs = {"kernel_sizes": k, "pad_type": "custom", "pad": pads, "ceil_mode": None, "strides": None}
    return _shaped(_with(inst, **attrs), "x", batch, 1, *s)


def _crop(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """Cut away all but nothing of nothing; more than there are images."""
    amount = d.pick((MAX, 12))
    cut = [amount, 0] if d.bool() else [0, amount]
    high = d.bool()
    space = (amount + (amount != MAX), 2) if high else (2, amount + (amount != MAX))
    names = ("crop_height", "crop_width") if high else ("crop_width", "crop_height")
    lead = (0,) if amount == MAX else (1,) * (1 + d.int(0, 1))
    return _shaped(_with(inst, **{names[0]: cut, names[1]: [0, 0]}), "x", *lead, *space)


def _target(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """An extent of no image, or of no result."""
    names = d.shuffle(("target_size_height", "target_size_width"))
    far = d.pick((MAX, MAX, 0))
    x = (0, 1, d.int(1, 2), d.int(1, 2)) if far else (d.int(0, 1), 1, 2, 2)
    return _shaped(_with(inst, **{names[0]: far, names[1]: d.int(1, 2)}), "x", *x)


def _resize(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """No extents stated: nothing is resized; or an extent of no image."""
    if d.bool():
        new = _shaped(inst, "shape", 0, values=[])
        new = replace(new, args={**new.args, "shape": replace(new.tensors("shape")[0], const=d.bool())})
        return _shaped(_with(new, resized_dims=0), "x", *d.pick(((), (2,), (2, 3))))
    return _shaped(_shaped(_with(inst, resized_dims=1), "shape", 1, values=[MAX]), "x", 0, d.int(1, 3))


def _regions(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Boxes of images far behind others; boxes at a zero of either sign, or next to it."""
    name = "boxes" if "boxes" in inst.args else "roi"
    a = inst.tensors(name)[0]
    if d.bool() and "box_indices" in inst.args:
        at = inst.tensors("box_indices")[0]
        last = min(int_range(at.dtype)[1], d.pick((BIG, MAX - 1)))
        zero = [0.0, 0.0, 1.0, 1.0] if a.dtype.kind == "f" else [0, 0, 1, 1]
        new = _shaped(_shaped(inst, "x", last + 1, 0, 2, 2), name, 1, 4, values=zero)
        return _shaped(_with(new, spatial_scale=None), "box_indices", 1, values=[last])
    if a.dtype.kind != "f":
        return None
    tiny = 2.0**-24 if a.dtype.name == "f16" else 2.0**-140
    box = [d.pick((-0.0, tiny, 0.0)), d.pick((-0.0, tiny)), 1.0, 1.0]
    attrs = {"box_coordinate_mode": None, "spatial_scale": None, "normalized_coordinates": None}
    new = _shaped(_with(inst, **attrs, target_height=2, target_width=2, sampling_mode="ALIGN_CORNERS"), "x", 1, 1, 3, 3)
    new = replace(new, args={k: b for k, b in new.args.items() if k != "box_indices"})
    shape = (1, 4) if name == "boxes" else (1, 1, 4, 1, 1)
    return _shaped(new, name, *shape, values=box)


def _normed(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    return _with(inst, size=MAX)


def _categorical(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    new = _with(inst, size=MAX)
    a = new.tensors("x")[0]
    return replace(new, args={"x": replace(a, shape=(0, 3), values=None, recipe="unit", dynamic=())})


def _cells(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """lstm without a hidden unit: two of its operands are one tensor.  Or what looks back is not a number."""
    shapes = {s: a.shape for s, a in inst.args.items() if isinstance(a, Arg)}
    pairs = [p for p in _ALIKE if all(s in shapes for s in p)]
    back = inst.args.get("peephole_back")
    if isinstance(back, Arg) and d.chance(3):
        n = back.shape[0]
        return _shaped(
            inst, "peephole_back", n, values=[float("nan"), *[0.5] * (n - 2), float("nan")] if n > 1 else None
        )
    if not pairs:
        return None
    pair, (steps, batch, features) = d.pick(pairs), shapes["x"]
    batch = 0 if any(s.startswith("weight") for s in pair) else batch
    new = _shaped(inst, "x", steps, batch, features)
    for s in shapes:
        if s != "x":
            of = (batch, 0) if s.startswith("initial") else (0, features) if s.startswith("weight_ih") else (0, 0)
            new = _shaped(new, s, *(of if s.startswith(("initial", "weight")) else (0,)))
    const = any(s.const for s in v.schema.inputs if s.name in pair)
    one = replace(new.tensors(pair[0])[0], const=const or new.tensors(pair[0])[0].const)
    new = replace(new, args={**new.args, **{s: replace(one) for s in pair}})
    return _with(new, **{SAME: {pair[1]: pair[0]}})


_ALIKE = (
    *(("bias", "peephole"), ("bias", "peephole_back"), ("bias_back", "peephole_back"), ("peephole", "bias_back")),
    *(("initial_h", "weight_hh_back"), ("initial_c", "weight_hh_back")),
)


def _parts(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """Parts of which one is far longer than any memory; more parts than there is to part."""
    n = d.pick((9, 12, 2))
    if n > 2:
        new = _with(inst, axis=0, num_splits=n, split_sizes=None if d.bool() else [0] * n)
        return replace(_shaped(new, "x", 0, d.int(0, 2)), outs=n)
    sizes = [MAX, 0] if d.bool() else [0, MAX]
    return replace(_shaped(_with(inst, axis=1, num_splits=None, split_sizes=sizes), "x", 0, MAX), outs=2)


def _tile(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    return _list(_shaped(inst, "x", 1, 0), "reps", [MAX, d.int(1, 2)])


def _list(inst: Instance, name: str, values: list[int]) -> Instance:
    """The instance with a list of integers, an operand or an attribute."""
    if name in inst.args:
        return _shaped(inst, name, len(values), values=values)
    return _with(inst, **{name: values})


def _top(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    k = d.pick((MAX, 0))
    return _shaped(_with(inst, k=k, axis=1), "x", 0 if k else d.int(0, 2), MAX if k else 2)


def _pad(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    if d.chance(4):
        new = _with(_shaped(inst, "pad", 0, values=[]), mode=None)
        return _shaped(new, "x")
    far = d.pick((MAX, BIG))
    new = _shaped(inst, "pad", 4, values=[0, 0, far, 0] if d.bool() else [0, 0, 0, far])
    return _shaped(_with(new, mode=None), "x", 0, d.int(0, 1) if far != MAX else 0)


def _boxes(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    b, k = inst.tensors("boxes")[0].shape[1], 2
    shapes = ((0, 4, b), (0, k, b)) if v.version == "ios17" else ((0, b, 4), (0, b, k))
    new = _shaped(_shaped(inst, "boxes", *shapes[0]), "scores", *shapes[1])
    return _with(new, max_boxes=MAX)


def _reshape(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    if d.chance(4):
        return _list(
            _shaped(inst, "x", 2, 1, 3, 0), "shape", [d.int(1, 9), 0] if v.version != "ios15" else [0, 4, 1, 0]
        )
    if d.bool():
        new = _shaped(_shaped(inst, "shape", 0, values=[]), "x", *d.pick(((), (1,), (1, 1))))
        return replace(new, args={**new.args, "shape": replace(new.tensors("shape")[0], const=d.bool())})
    shape, x = d.pick((([MAX, 0], (1, 0)), ([0, MAX], (0, 4)), ([MAX, 1, 0], (2, 3, 0))))
    return _list(_shaped(inst, "x", *x), "shape", shape)


def _reversed(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    n = d.pick((MAX, BIG))
    new = _shaped(_with(inst, seq_axis=1, batch_axis=0), "x", 2, n, 0)
    return _shaped(new, "lengths", 2, values=[n, d.pick((0, 1, n))])


def _sliced(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """From the end on, or from the first one; or of a scalar, whose lists are empty."""
    if d.chance(4):
        return _list(_list(_shaped(inst, "x"), "begin", []), "size", [])
    first = d.pick((0, MAX))
    new = _list(_shaped(inst, "x", 0, MAX), "begin", [0, first])
    return _list(new, "size", [0, MAX - first if d.bool() else -1])


def _windows(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    if d.chance(4):
        return _shaped(_with(inst, axis=0, size=1), "x", 1, 2, 3, 0)
    return _shaped(_with(inst, axis=0, size=MAX), "x", MAX, 0)


def _blocks(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """Blocks of no channel, as wide as an axis or beyond all of them."""
    name = next(n for n in ("block_size", "upscale_factor", "downscale_factor") if n in v.schema.attrs)
    b = d.pick((MAX, 9, 12))
    deep = v.op in ("space_to_depth", "pixel_unshuffle")
    n, c = d.int(0, 1 if b == MAX else 2), 0 if deep or b == MAX else d.pick((0, b * b))
    return _shaped(_with(inst, **{name: b}), "x", n, c, *((b, b) if deep else (1, 1)))


def _batches(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """Blocks as wide as an axis, or padding and crops as wide, of no channel."""
    far, at, into = d.pick((MAX, MAX - 1, BIG, 12)), d.int(0, 1), v.op == "space_to_batch"
    block, side = [1, 1], [[0, 0], [0, 0]]
    space = [1, 1]
    how = d.bool()
    if into and how:
        block[at] = space[at] = far
    elif into:
        side[at][d.int(0, 1)], space[at] = far, 0
    elif how:
        block[at] = far
    else:
        side[at][d.int(0, 1)], space[at] = far, far
    batch = 0 if far > 12 else d.int(1, 2) * (1 if into else prod(block))
    new = _with(inst, block_shape=block)
    name = "paddings" if into else "crops"
    new = _shaped(new, name, 2, 2, values=[n for row in side for n in row])
    return _shaped(new, "x", batch, d.int(0, 1), *space)


def _frames(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """One frame of no signal, with a window as wide."""
    attrs = {"n_fft": MAX, "hop_length": 1, "win_length": MAX if d.bool() else None}
    return _shaped(_with(_only(inst, "input"), **attrs), "input", 0, MAX)


def _spectrum(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    many = v.op.endswith("n")
    if many and d.chance(4):
        return _shaped(_with(inst, dims=[0, 1], shapes=[-1, 4]), "data", 2, 3)
    new = _with(inst, **({"dims": [1], "shapes": [MAX]} if many else {"dim": 1, "n": MAX}))
    return _shaped(new, "data", 0, d.int(1, 3))


def _packed(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    if "shape" not in v.schema.attrs and "shape" not in inst.args:
        return None
    shape = d.pick(([0, MAX], [MAX, 0]))
    slots = ("indices",) if "indices" in inst.args else ("nonzero_data", "mask")
    for s in slots:
        inst = _shaped(inst, s, 0, values=[] if s == "mask" else None)
    return _list(inst, "shape", shape)


def _slice_back(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A step beyond the axis, to either side."""
    if "stride" not in inst.args and "stride" not in inst.attrs:
        return None
    n, step = d.int(1, 3), d.pick((MIN, MAX))
    new = _with(inst, begin_mask=None, end_mask=None, squeeze_mask=None)
    new = _list(
        _list(_list(new, "begin", [n - 1 if step < 0 else 0]), "end", [MIN if step < 0 else n]), "stride", [step]
    )
    if "update" in inst.args:
        new = _shaped(new, "update", 1)
    return _shaped(new, "x", n)


def _none_behind(v: OpVersion, d: Draw, inst: Instance) -> Instance:
    """No element along the fourth axis."""
    if v.op == "gather":
        return _shaped(_shaped(_with(inst, axis=0, batch_dims=None), "x", 3), "indices", 1, 2, 1, 0)
    if v.op == "gather_nd":
        return _shaped(_shaped(_with(inst, batch_dims=None), "x", 3), "indices", 1, 2, 1, 0, 1)
    if v.op == "scatter":
        new = _shaped(_with(inst, axis=0), "data", 2, 1, 3, 0)
        return _shaped(_shaped(new, "updates", 1, 1, 3, 0), "indices", 1, values=[d.int(0, 1)])
    axis = {"axis": d.int(0, 2)} if "axis" in v.schema.attrs else {}
    return _shaped(_with(inst, **axis), "x", 1, 2, 3, 0)


def _masked(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A long mask, or one that masks all."""
    if "attn_mask" not in inst.args:
        return None
    far = d.bool()
    n = 700 if far else 2
    new = _shaped(_shaped(_shaped(inst, "query", 1, 3, 2), "key", 1, n, 2), "value", 1, n, 1)
    mask = new.tensors("attn_mask")[0]
    none = not far and mask.dtype.kind == "b"
    new = _shaped(new, "attn_mask", 3, n, values=[False] * (3 * n) if none else None)
    return new if none else replace(new, args={**new.args, "attn_mask": replace(mask, shape=(3, n), values=None)})


_FFT = ("fft", "ifft", "rfft", "irfft", "fftn", "ifftn", "rfftn", "irfftn")
_MAKES: dict[str, Make] = {
    **dict.fromkeys(("conv", "conv_transpose"), _filters),
    **dict.fromkeys(("avg_pool", "max_pool", "l2_pool"), _pool),
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor"), _target),
    **dict.fromkeys(("depth_to_space", "space_to_depth", "pixel_shuffle", "pixel_unshuffle"), _blocks),
    **dict.fromkeys(("space_to_batch", "batch_to_space"), _batches),
    **dict.fromkeys((f"complex_{f}" for f in _FFT), _spectrum),
    **dict.fromkeys(("constexpr_lut_to_dense", "constexpr_sparse_to_dense"), _packed),
    **dict.fromkeys(("slice_by_index", "slice_update"), _slice_back),
    **dict.fromkeys(("reduce_argmin", "gather", "gather_nd", "scatter", "upsample_nearest_neighbor"), _none_behind),
    "scaled_dot_product_attention": _masked,
    "complex_stft": _frames,
    "crop": _crop,
    "resize": _resize,
    "crop_resize": _regions,
    "local_response_norm": _normed,
    "random_categorical": _categorical,
    "lstm": _cells,
    "split": _parts,
    "tile": _tile,
    "topk": _top,
    "pad": _pad,
    "non_maximum_suppression": _boxes,
    "reshape": _reshape,
    "reverse_sequence": _reversed,
    "slice_by_size": _sliced,
    "sliding_windows": _windows,
}


def far_of(v: OpVersion, d: Draw, inst: Instance, takes: Callable[[Any, Instance], bool]) -> Instance:
    """The instance, or now and then one of nothing that is far larger, where the reference takes it."""
    make = _MAKES.get(v.op)
    if make is None or d.breaking or not d.chance(EVERY):
        return inst
    new = make(v, d, replace(inst, args={k: _copied(a) for k, a in inst.args.items()}))
    return new if new is not None and takes(v, new) else inst
