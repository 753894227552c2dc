"""Windows, counts and positions as far as 32 bits hold, of tensors without elements
(``harness.declare.op_version.far``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.core.dtypes import int_range
from harness.core.instance import SAME, Arg, Instance
from harness.declare import Draw, OpVersion
from harness.declare.op_version import far
from harness.declare.op_version.far import Make, OneOf, Row, changed, one_of

EVERY = 32
MAX, MIN, BIG = 2**31 - 1, -(2**31), 2**24 + 2


def _put(n: int, at: int, much: int, rest: int) -> list[int]:
    return [much if i == at else rest for i in range(n)]


def _filters(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """conv, conv_transpose: groups of no filter; padding, steps and extents of no image; no filter, or very many."""
    n, turned = len(inst.tensors("x")[0].shape) - 2, v.op == "conv_transpose"
    at, how = d.int(0, n - 1), d.pick(("groups", "pad", "strides", "dilations", "none", "many", "extent"))
    pads, groups, batch = [0] * (2 * n), 1, 0
    s, k, c_in, c_out = [1] * n, [1] * n, 1, 1
    row: dict[str, Any] = {"pad_type": "custom", "output_shape": None, "strides": None, "dilations": None}
    if how == "groups":
        groups = c_in = MAX
        c_out = 0
    elif how == "pad" and not turned:
        k[at], pads = 2, _put(2 * n, 2 * at + d.int(0, 1), MAX, 0)
    elif how in ("pad", "dilations") and turned:  # what the window reaches is cut away again
        k[at], row["dilations"], c_out = 2, _put(n, at, MAX, 1), d.int(0, 1)
        pads = _put(2 * n, 2 * at + d.int(0, 1), MAX, 0)
    elif how == "strides" and turned:
        s[at], row["strides"] = d.int(1, 2), _put(n, at, MAX, 1)
        if s[at] == 2:
            pads = _put(2 * n, 2 * at + d.int(0, 1), d.pick((1, MAX)), 0)
    elif how in ("strides", "dilations"):
        row[how] = _put(n, at, MAX, 1)
        k[at] = d.int(1, 2) if how == "dilations" else 1
        pads = _put(2 * n, 2 * at, MAX, 0) if k[at] == 2 else pads
    elif how == "extent" and turned:
        row["strides"], row["output_shape"] = _put(n, at, MAX, 1), [0, 1, *_put(n, at, MAX, 1)]
    elif how == "none":
        batch, c_out, s = 1, 0, [d.int(1, 3) for _ in s]
        pads = [d.int(0, 1) for _ in pads] if not turned else pads
    else:
        batch, c_out = 1, d.pick((257, 300))
        pads = [d.pick((0, 1, 12)) for _ in pads] if not turned else pads
        inst.args.setdefault("bias", inst.tensors("weight")[0])
    row |= {"pad": pads, "groups": groups if groups > 1 or d.bool() else None, "x": (batch, c_in, *s)}
    row["weight"] = (c_in, c_out // groups, *k) if turned else (c_out, c_in // groups, *k)
    row |= {"bias": (c_out,)} if "bias" in inst.args else {}
    known = {name: value for name, value in row.items() if value is not None or name in v.schema.attrs}
    return changed(v, inst, {**known, "@const": {"bias": True, **({"weight": True} if row["dilations"] else {})}})


def _pool(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A window as wide as an extent, or padding, or both."""
    n = len(inst.tensors("x")[0].shape) - 2
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
    window = {"kernel_sizes": k, "pad_type": "custom", "pad": pads, "ceil_mode": None, "strides": None}
    return changed(v, inst, {**window, "x": (batch, 1, *s)})


def _regions(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """Boxes of images far behind others; boxes at a zero of either sign, or next to it."""
    name = "boxes" if "boxes" in inst.args else "roi"
    a = inst.tensors(name)[0]
    if d.bool() and "box_indices" in inst.args:
        last = min(int_range(inst.tensors("box_indices")[0].dtype)[1], d.pick((BIG, MAX - 1)))
        zero = [0.0, 0.0, 1.0, 1.0] if a.dtype.kind == "f" else [0, 0, 1, 1]
        row = {"x": (last + 1, 0, 2, 2), name: [zero], "box_indices": [last], "spatial_scale": None}
        return changed(v, inst, row)
    if a.dtype.kind != "f":
        return None
    tiny = 2.0**-24 if a.dtype.name == "f16" else 2.0**-140
    box = [d.pick((-0.0, tiny, 0.0)), d.pick((-0.0, tiny)), 1.0, 1.0]
    left = dict.fromkeys(("box_coordinate_mode", "spatial_scale", "normalized_coordinates", "box_indices"))
    size = {"target_height": 2, "target_width": 2, "sampling_mode": "ALIGN_CORNERS", "x": (1, 1, 3, 3)}
    given: list[Any] = [box] if name == "boxes" else [[[[[b]] for b in box]]]
    return changed(v, inst, {**left, **size, name: given})


def _cells(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """lstm without a hidden unit: two of its operands are one tensor.  Or what looks back is not a number."""
    shapes = {s: a.shape for s, a in inst.args.items() if isinstance(a, Arg)}
    pairs = [p for p in _ALIKE if all(s in shapes for s in p)]
    if "peephole_back" in shapes and d.chance(3):
        n = shapes["peephole_back"][0]
        values = [float("nan"), *[0.5] * (n - 2), float("nan")] if n > 1 else (n,)
        return changed(v, inst, {"peephole_back": values})
    if not pairs:
        return None
    pair, (steps, batch, features) = d.pick(pairs), shapes["x"]
    batch = 0 if any(s.startswith("weight") for s in pair) else batch
    row: dict[str, Any] = {"x": (steps, batch, features)}
    for s in shapes.keys() - {"x"}:
        of = (batch, 0) if s.startswith("initial") else (0, features) if s.startswith("weight_ih") else (0, 0)
        row[s] = of if s.startswith(("initial", "weight")) else (0,)
    const = any(s.const for s in v.schema.inputs if s.name in pair) or inst.tensors(pair[0])[0].const
    new = changed(v, inst, {**row, "@const": {pair[0]: const}, SAME: {pair[1]: pair[0]}})
    return new and replace(new, args={**new.args, pair[1]: replace(new.tensors(pair[0])[0])})


_ALIKE = (
    *(("bias", "peephole"), ("bias", "peephole_back"), ("bias_back", "peephole_back"), ("peephole", "bias_back")),
    *(("initial_h", "weight_hh_back"), ("initial_c", "weight_hh_back")),
)


def _masked(v: OpVersion, d: Draw, inst: Instance) -> Instance | None:
    """A long mask, or one that masks all."""
    long = d.bool()
    n = 700 if long else 2
    none = not long and "attn_mask" in inst.args and inst.tensors("attn_mask")[0].dtype.kind == "b"
    mask = [[False] * n] * 3 if none else (3, n)
    return changed(v, inst, {"query": (1, 3, 2), "key": (1, n, 2), "value": (1, n, 1), "attn_mask": mask})


def _target(name: str, other: str) -> tuple[Row, ...]:
    """An extent of no image, or of no result."""
    full = {name: MAX, other: one_of(1, 2), "x": (0, 1, one_of(1, 2), one_of(1, 2))}
    return full, full, {name: 0, other: one_of(1, 2), "x": (one_of(0, 1), 1, 2, 2)}


def _crop(name: str, other: str, *space: Any) -> tuple[Row, ...]:
    """Cut away all but nothing of nothing; more than there are images.  space: but for the first axis, or the last."""
    long, few = (tuple(n if s is None else s for s in space) for n in (MAX, 13))
    cut = {other: [0, 0]}
    return (
        {**cut, name: one_of([MAX, 0], [0, MAX]), "x": (0, *long)},
        {**cut, name: one_of([12, 0], [0, 12]), "x": one_of((1, *few), (1, 1, *few))},
    )


def _blocks(name: str, deep: bool) -> tuple[Row, ...]:
    """Blocks of no channel, as wide as an axis or beyond all of them."""
    sizes = [(MAX, one_of(0, 1), 0), *((b, one_of(0, 1, 2), 0 if deep else one_of(0, b * b)) for b in (9, 12))]
    return tuple({name: b, "x": (n, c, *((b, b) if deep else (1, 1)))} for b, n, c in sizes)


def _batches(slot: str, into: bool) -> tuple[Row, ...]:
    """Blocks as wide as an axis, or padding and crops as wide, of no channel."""
    rows: list[Row] = []
    for n in (MAX, MAX - 1, BIG, 12):
        lead = (0 if n > 12 else one_of(1, 2), one_of(0, 1))
        many = (0 if n > 12 else one_of(12, 24), one_of(0, 1))
        for wide, two in ((n, 1), [n, 1]), ((1, n), [1, n]):
            none = tuple(0 if e == n else 1 for e in wide)
            sides = one_of(*([[k if e == n else 0 for k in pair] for e in two] for pair in ([n, 0], [0, n])))
            rows += [
                {"block_shape": two, slot: [[0, 0], [0, 0]], "x": (*lead, *wide) if into else (*many, 1, 1)},
                {"block_shape": [1, 1], slot: sides, "x": (*lead, *(none if into else wide))},
            ]
    return tuple(rows)


def _slices(**more: Any) -> tuple[Row, ...]:
    """A step beyond the axis, to either side."""
    whole = {**dict.fromkeys(("begin_mask", "end_mask", "squeeze_mask")), **more}
    steps = [(n, n - 1, MIN, MIN) for n in (1, 2, 3)] + [(n, 0, n, MAX) for n in (1, 2, 3)]
    return tuple({**whole, "x": (n,), "begin": [b], "end": [e], "stride": [s]} for n, b, e, s in steps)


_SPECTRUM = ({"data": (0, one_of(1, 2, 3)), "dim": 1, "n": MAX},)
_SPECTRA = (
    *({"data": (0, one_of(1, 2, 3)), "dims": [1], "shapes": [MAX]},) * 3,
    {"data": (2, 3), "dims": [0, 1], "shapes": [-1, 4]},
)
_NO_ELEMENT = one_of([0, MAX], [MAX, 0])
_BEHIND = (1, 2, 3, 0)  # no element along the fourth axis
_WHOLE = one_of({"shape": True}, {"shape": False})
TABLE: dict[str, Make | Sequence[Row | OneOf]] = {
    **dict.fromkeys(("conv", "conv_transpose"), _filters),
    **dict.fromkeys(("avg_pool", "max_pool", "l2_pool"), _pool),
    "crop_resize": _regions,
    "lstm": _cells,
    "scaled_dot_product_attention": _masked,
    **dict.fromkeys(
        ("resize_bilinear", "resize_nearest_neighbor"),
        (
            *_target("target_size_height", "target_size_width"),
            *_target("target_size_width", "target_size_height"),
        ),
    ),
    "depth_to_space": _blocks("block_size", deep=False),
    "space_to_depth": _blocks("block_size", deep=True),
    "pixel_shuffle": _blocks("upscale_factor", deep=False),
    "pixel_unshuffle": _blocks("downscale_factor", deep=True),
    "space_to_batch": _batches("paddings", into=True),
    "batch_to_space": _batches("crops", into=False),
    **{f"complex_{f}": _SPECTRUM for f in ("fft", "ifft", "rfft", "irfft")},
    **{f"complex_{f}n": _SPECTRA for f in ("fft", "ifft", "rfft", "irfft")},
    "complex_stft": (  # one frame of no signal, with a window as wide
        {"input": (0, MAX), "window": None, "n_fft": MAX, "hop_length": 1, "win_length": one_of(MAX, None)},
    ),
    "constexpr_lut_to_dense/ios16": ({"indices": (0,), "shape": _NO_ELEMENT},),
    "constexpr_sparse_to_dense/ios16": ({"nonzero_data": (0,), "mask": [], "shape": _NO_ELEMENT},),
    "slice_by_index": _slices(),
    "slice_update": _slices(update=(1,)),
    "gather": ({"x": (3, 0), "indices": (1, 2, 1, 0), "axis": 0, "batch_dims": None},),
    "gather_nd": ({"x": (3, 0), "indices": (1, 2, 1, 0, 1), "batch_dims": None},),
    "scatter": ({"data": (2, 1, 3, 0), "updates": (1, 1, 3, 0), "indices": [one_of(0, 1)], "axis": 0},),
    "reduce_argmin": ({"x": _BEHIND, "axis": one_of(0, 1, 2)},),
    "upsample_nearest_neighbor": ({"x": _BEHIND},),
    "crop": (
        *_crop("crop_height", "crop_width", None, 2),
        *_crop("crop_width", "crop_height", 2, None),
    ),
    "resize": (  # no extents stated: nothing is resized; or an extent of no image
        {"x": one_of((), (2,), (2, 3)), "shape": [], "resized_dims": 0, "@const": _WHOLE},
        {"x": (0, one_of(1, 2, 3)), "shape": [MAX], "resized_dims": 1},
    ),
    "local_response_norm": ({"size": MAX},),
    "random_categorical": ({"x": (0, 3), "size": MAX},),
    "split": (  # parts of which one is far longer than any memory; more parts than there is to part
        {"x": (0, MAX), "axis": 1, "num_splits": None, "split_sizes": one_of([MAX, 0], [0, MAX]), "@outs": 2},
        *(
            {"x": (0, one_of(0, 1, 2)), "axis": 0, "num_splits": n, "split_sizes": one_of(None, [0] * n), "@outs": n}
            for n in (9, 12)
        ),
    ),
    "tile": ({"x": (1, 0), "reps": [MAX, one_of(1, 2)]},),
    "topk": ({"x": (0, MAX), "axis": 1, "k": MAX}, {"x": (one_of(0, 1, 2), 2), "axis": 1, "k": 0}),
    "pad": (
        {"x": (), "pad": [], "mode": None},
        *({"x": (0, 0), "pad": one_of([0, 0, n, 0], [0, 0, 0, n]), "mode": None} for n in (MAX, BIG)),
        {"x": (0, 1), "pad": one_of([0, 0, BIG, 0], [0, 0, 0, BIG]), "mode": None},
    ),
    "non_maximum_suppression/ios15": tuple({"boxes": (0, b, 4), "scores": (0, b, 2), "max_boxes": MAX} for b in (1, 4)),
    "non_maximum_suppression/ios17": tuple({"boxes": (0, 4, b), "scores": (0, 2, b), "max_boxes": MAX} for b in (1, 4)),
    "reshape": (
        {"x": one_of((), (1,), (1, 1)), "shape": [], "@const": _WHOLE},
        one_of(
            {"x": (1, 0), "shape": [MAX, 0]}, {"x": (0, 4), "shape": [0, MAX]}, {"x": (2, 3, 0), "shape": [MAX, 1, 0]}
        ),
        {"x": (2, 1, 3, 0), "shape": one_of([0, 4, 1, 0], [one_of(1, 5, 9), 0])},
    ),
    "reverse_sequence": (
        *({"x": (2, n, 0), "lengths": [n, one_of(0, 1, n)], "seq_axis": 1, "batch_axis": 0} for n in (MAX, BIG)),
    ),
    "slice_by_size": (  # from the end on, or from the first one; or of a scalar, whose lists are empty
        {"x": (0, MAX), "begin": [0, 0], "size": [0, one_of(MAX, -1)]},
        {"x": (0, MAX), "begin": [0, MAX], "size": [0, one_of(0, -1)]},
        {"x": (), "begin": [], "size": []},
    ),
    "sliding_windows": ({"x": (MAX, 0), "axis": 0, "size": MAX}, {"x": _BEHIND, "axis": 0, "size": 1}),
}


def far_of(v: OpVersion, d: Draw, inst: Instance, takes: Any) -> Instance:
    """The instance, or now and then one of nothing that is far larger, where the reference takes it."""
    return far.far_of(v, d, inst, takes, TABLE, EVERY)
