"""Elements moved, never changed: shapes, permutations, slices, blocks."""

from __future__ import annotations

from math import prod
from typing import Any

from harness.declare import Build, Call, Checks, Draw, Evaluation, Fn, Sampling, Spelling, T
from suites.mil import op
from suites.mil.codecs import Usual, flags, ints, maybe, need, scalar, signed, vector
from suites.semantics import movement as s
from suites.semantics.movement.shape import _factors


def _filled(name: str) -> Usual:
    return Usual(name, lambda v, b: v is not None and all(k == 1 for k in v))


# -- reshape: how a 0 is read changed with iOS 17


def _shape15(call: Call) -> tuple[int, ...]:
    shape, x = ints(call, "shape") or (), call.inputs["x"]
    need(0 not in shape or len(shape) == x.ndim, "zero-needs-equal-rank", f"{shape} for rank {x.ndim}")
    return tuple(x.shape[i] if n == 0 else n for i, n in enumerate(shape))


def _shape17(call: Call) -> tuple[int, ...]:
    """A 0 pairs with the axis of x that is as far from the end; without one it becomes 1."""
    shape, x = ints(call, "shape") or (), call.inputs["x"]
    out = []
    for i, n in enumerate(shape):
        j = x.ndim - (len(shape) - i)
        out.append((x.shape[j] if j >= 0 else 1) if n == 0 else n)
    return tuple(out)


def _draw_reshape(from_right: bool) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        shape = d.shape(0, lo=1)  # "an n-D tensor or a scalar"
        target = list(shape) if shape and d.chance(3) else list(_factors(d, prod(shape), d.rank(1)))
        for i, t in enumerate(target):
            j = len(shape) - (len(target) - i) if from_right else i
            if from_right:
                fits = t == (shape[j] if j >= 0 else 1)
            else:
                fits = len(target) == len(shape) and t == shape[j]
            if fits and d.chance(4):
                target[i] = 0
        positive = [i for i, t in enumerate(target) if t > 0]
        if positive and d.chance(3):
            target[d.pick(positive)] = -1
        return {"x": T(shape), "shape": vector(target)}

    return draw


def _break_count(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "shape": vector([prod(shape) + 1], const=True)}


def _break_inferred(d: Draw) -> dict[str, Any]:
    shape = d.shape(2, 4, lo=2)
    return {"x": T(shape), "shape": vector([-1] * 2 + list(shape[2:]), const=True)}


def _break_zero(d: Draw) -> dict[str, Any]:
    """ "If K == rank(x) then 0 means inheriting"; iOS 17 has a meaning for others."""
    shape = d.shape(1, 4, lo=1)
    return {"x": T(shape), "shape": vector([*([1] if d.bool() else [1, 1]), 0, *shape[1:]], const=True)}


_BREAKS = {"count-kept": _break_count, "one-inferred": _break_inferred}
_zero = {"zero": "literal"}
op(
    "reshape",
    s.reshape,
    Spelling(shape=Fn(_shape15), fixed=_zero),
    Sampling(_draw_reshape(False)),
    Checks(breaks={**_BREAKS, "zero-needs-equal-rank": _break_zero}),
    until="ios15",
)
op(
    "reshape",
    s.reshape,
    Spelling(shape=Fn(_shape17), fixed=_zero),
    Sampling(_draw_reshape(True)),
    Checks(breaks=_BREAKS),
    since="ios17",
)


def _reshape_like(call: Call) -> Any:
    out: list[int] = []
    refs, begins, ends = call.inputs["ref_tensors"], call.get("begins"), call.get("ends")
    masks = call.get("end_masks")
    need(len(refs) == len(begins) == len(ends) == len(masks), "one-entry-per-reference")
    for r, b, e, m in zip(refs, begins, ends, masks):
        out += r.shape[int(b) : None if m else int(e)]
    return s.reshape(call.inputs["x"], shape=tuple(out), zero="literal")


_BEHIND = (((20, 2**31 - 1), (0, 2)), ((0, 2), (20, 21)))


def _odd_references(d: Draw) -> dict[str, Any]:
    """Three references, or one that is a scalar or the same again; a part counted from the back or beyond the end, as
    ``ref_tensors[i].shape[begins[i]:ends[i]]`` reads."""
    far = 2**31 - 1
    if d.chance(4):
        return {
            "x": T((1,)[: d.int(0, 1)]),
            "ref_tensors": [T(())],
            "begins": [0],
            "ends": [d.pick((0, far))],
            "end_masks": [False],
        }
    a, b = d.int(1, 3), d.int(1, 3)
    ref = T((a, b), const=False)
    parts = d.pick((((-2, -1), (-1, far)), ((-(2**31), 1), (1, 9)), ((0, 1), (-1, far)), ((0, -1), (1, far)), *_BEHIND))
    refs, spans = [ref, ref], list(parts)
    out: dict[str, Any] = {"@same": {"ref_tensors#1": "ref_tensors#0"}}
    if d.bool():
        spans.append(d.pick(((far, far), (9, 20), (2, -(2**31)), (-(2**31), -(2**31)))))
        refs.append(T(d.shape(1, 2, lo=1)))
    begins, ends = [p for p, _ in spans], [q for _, q in spans]
    return {
        **out,
        "x": T((b, a)),
        "ref_tensors": refs,
        "begins": begins,
        "ends": ends,
        "end_masks": [False] * len(spans),
    }


def _draw_reshape_like(d: Draw) -> dict[str, Any]:
    if d.chance(8):
        return _odd_references(d)
    shape = d.shape(1, lo=1)
    parts = [shape[: (k := d.int(0, len(shape)))], shape[k:]]
    refs: list[T] = []
    begins: list[int] = []
    ends: list[int] = []
    masks: list[bool] = []
    for p in parts:
        if not p and len(refs) + 1 < 2:
            continue
        lead, tail = d.shape(0, max(0, 5 - len(p) - 1), lo=1)[:2], d.shape(0, 1, lo=1)
        tail = tail if len(lead) + len(p) + len(tail) <= 5 else ()
        mask = not tail and d.bool()
        refs.append(T((*lead, *p, *tail) or (1,)))
        begins.append(len(lead))
        ends.append(d.int(0, 5) if mask else len(lead) + len(p))
        masks.append(mask)
    return {"x": T(d.shuffle(shape)), "ref_tensors": refs, "begins": begins, "ends": ends, "end_masks": masks}


def _break_like(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, 3, lo=1)
    wide = (*shape[:-1], shape[-1] + 1)
    n = len(shape)
    return {"x": T(shape), "ref_tensors": [T(wide)], "begins": [0], "ends": [n], "end_masks": [False]}


op(
    "reshape_like",
    Evaluation(_reshape_like, s.reshape.error),
    Sampling(_draw_reshape_like),
    Checks(breaks={"count-kept": _break_like}),
)


# -- axes


def _axes_of(call: Call) -> Any:
    """Named axes longer than 1 are kept, as PyTorch does.  Of one that is named twice the text says nothing."""
    axes, x = ints(call, "axes"), call.inputs["x"]
    if axes is None:
        return None
    for a in axes:
        need(-x.ndim <= a < x.ndim, "axes-in-range", f"{axes} for rank {x.ndim}")
    need(len({a % x.ndim for a in axes}) == len(axes), "axes-distinct", f"{axes} for rank {x.ndim}")
    return tuple(a for a in axes if x.shape[a] == 1)


def _draw_squeeze(d: Draw) -> dict[str, Any]:
    shape = list(d.shape(0, d.max_rank - 2))
    for _ in range(d.int(1, 2)):
        shape.insert(d.int(0, len(shape)), 1)
    some = d.subset(range(len(shape)) if d.chance(3) else [i for i, n in enumerate(shape) if n == 1], 1)
    return {"x": T(shape), "axes": None if d.chance(4) else signed(d, some, len(shape))}


def _break_axes(d: Draw) -> dict[str, Any]:
    shape = (1, *d.shape(0, 3))
    return {"x": T(shape), "axes": [d.pick((len(shape), -len(shape) - 1))]}


op(
    "squeeze",
    s.squeeze,
    Sampling(_draw_squeeze),
    Checks(breaks={"axes-in-range": _break_axes}, stated={"x": "_n *_d"}),  # "Must be at least 1-D."
    axes=Fn(_axes_of),
)
op("expand_dims", s.expand_dims)


def _draw_transpose(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"x": T(shape), "perm": signed(d, d.shuffle(range(len(shape))), len(shape))}


def _break_perm(d: Draw) -> dict[str, Any]:
    shape = d.shape(2, lo=1)
    return {"x": T(shape), "perm": list(range(len(shape) - 1))}


op(
    "transpose",
    s.transpose,
    Sampling(_draw_transpose),
    Checks(
        breaks={
            "perm-per-axis": _break_perm,
            "perm-is-permutation": lambda d: {"x": T((2, 3)), "perm": d.pick(([0, 0], [1, -1]))},
        }
    ),
)
op("reverse", s.reverse)


def _draw_reversed(d: Draw) -> dict[str, Any]:
    """Axes of either sign."""
    v = s.reverse_sequence.derive(d)
    r = len(v["x"].shape)
    axes = {
        name: v[name] - r if v[name] is not None and v[name] >= 0 and d.bool() else v[name]
        for name in ("seq_axis", "batch_axis")
    }
    return {"x": v["x"], "lengths": v["lengths"], **{k: a for k, a in axes.items() if a is not None}}


_LENGTHS = {"x": T((2, 3)), "batch_axis": 0, "seq_axis": 1}
op(
    "reverse_sequence",
    s.reverse_sequence,
    Sampling(_draw_reversed),
    Checks(
        breaks={
            "lengths-per-batch": lambda d: {**_LENGTHS, "lengths": T((3,), values=[1, 1, 1], const=True)},
            "axes-in-range": lambda d: {**_LENGTHS, "seq_axis": 2, "lengths": T((2,), values=[1, 1], const=True)},
            "lengths-in-range": lambda d: {**_LENGTHS, "lengths": T((2,), values=[1, 4], const=True)},
        }
    ),
)

# -- slices


def _open_question(call: Call) -> str | None:
    stride, skip = ints(call, "stride"), ints(call, "squeeze_mask") or ()
    for name in ("begin_mask", "end_mask"):
        for i, m in enumerate(ints(call, name) or ()):
            if m and stride and stride[i] < 0 and not (i < len(skip) and skip[i]):
                return f"{name} with a negative stride: numpy's open end, or 0 and the extent as the text says"
    kept = [i for i in range(call.inputs["x"].ndim) if not (i < len(skip) and skip[i])]
    begin, end = ints(call, "begin") or (), ints(call, "end") or ()
    bm, em = ints(call, "begin_mask") or (), ints(call, "end_mask") or ()
    for i in kept:
        lo = None if i < len(bm) and bm[i] else begin[i]
        hi = None if i < len(em) and em[i] else end[i]
        if not range(*slice(lo, hi, stride[i] if stride else 1).indices(call.inputs["x"].shape[i])):
            return "an empty slice: whether a tensor may be empty is not stated"
    return None


def _entry_per_axis(call: Call) -> str:
    return str(call.inputs["x"].ndim)


# vectors with an entry for each axis: others are refused, and not drawn, since the package looks at neither rank nor
# length of what is no constant
_VECTORS = Checks(stated=dict.fromkeys(("begin", "end", "stride"), _entry_per_axis), breaks={"shapes-stated": None})
_SLICE = (
    _VECTORS,
    Spelling(
        stride=_filled("stride"),
        begin_mask=flags("begin_mask"),
        end_mask=flags("end_mask"),
        squeeze_mask=flags("squeeze_mask"),
    ),
    Checks(ambiguous=_open_question),
)


def _break_mask(d: Draw) -> dict[str, Any]:
    name = d.pick(("begin_mask", "end_mask"))
    return {"x": T((2, 3)), "begin": vector([0, 0]), "end": vector([2, 3]), name: [True]}


def _break_index(d: Draw) -> dict[str, Any]:
    at = d.pick((3, 4, -4))
    return {"x": T((2, 3)), "begin": vector([0, at]), "end": vector([2, at + 1]), "squeeze_mask": [False, True]}


op(
    "slice_by_index",
    s.strided_slice,
    *_SLICE,
    Checks(breaks={"entry-per-axis": _break_mask, "index-in-range": _break_index}),
)
op("slice_by_size", s.slice_by_size)
op("slice_update", s.slice_update, *_SLICE)


def _draw_windows(d: Draw) -> dict[str, Any]:
    shape = d.shape(1, d.max_rank - 1, lo=1)
    axis = d.axis(len(shape))
    out = {"x": T(shape), "axis": axis, "size": d.int(1, shape[axis])}
    maybe(d, out, "stride", d.int(1, 4), 1)
    return out


op(
    "sliding_windows",
    s.sliding_windows,
    Sampling(_draw_windows),
    Checks(
        breaks={
            "axis-in-range": lambda d: {"x": T((2, 3)), "axis": d.pick((2, -3)), "size": 1},
            "window-fits": lambda d: {"x": T((2, 3)), "axis": 1, "size": d.pick((5, 4))},
        }
    ),
)

# -- blocks


def _block(call: Call) -> int:
    """ "Must be greater than 1", which is said of these two alone."""
    n = scalar(call, "block_size")
    need(n > 1, "block-above-one", f"{n}")
    return n


def _write_block(value: int, b: Build) -> None:
    b.attr("block_size", value)


def _in_blocks(meaning: Any) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        d.fixed["block"] = d.pick((2, 2, 3, 4))
        v = meaning.derive(d)
        return {"x": v["x"], "block_size": v["block"]}

    return draw


def _misfit(make: Any) -> Any:
    def draw(d: Draw) -> dict[str, Any]:
        v = make(d)
        return {"x": v["x"], "block_size": v["block"]}

    return draw


# a block of 1 is refused, and not drawn: nothing in the package looks at it
for name, meaning in (("depth_to_space", s.depth_to_space), ("space_to_depth", s.space_to_depth)):
    op(
        name,
        meaning,
        Spelling(block=Fn(_block, _write_block), fixed={"mode": "dcr"}),
        Sampling(_in_blocks(meaning)),
        Checks(breaks={rule: _misfit(make) for rule, make in meaning.invalid_generators.items()}),
    )
op("pixel_shuffle", s.depth_to_space, Spelling(block="upscale_factor", fixed={"mode": "crd"}))
op("pixel_unshuffle", s.space_to_depth, Spelling(block="downscale_factor", fixed={"mode": "crd"}))


def _draw_space_to_batch(d: Draw) -> dict[str, Any]:
    block = [d.pick((1, 2, 2, 3)) for _ in "hw"]
    space, pads = [], []
    for b in block:
        before, n = d.int(0, 2), d.dim(1, 6)
        space.append(n)
        pads.append([before, -(n + before) % b + d.pick((0, 0, b))])
    return {"x": T((d.dim(1, 4), d.dim(1, 4), *space)), "block_shape": block, "paddings": pads}


def _draw_batch_to_space(d: Draw) -> dict[str, Any]:
    block = [d.pick((1, 2, 2, 3)) for _ in "hw"]
    space, crops = [d.dim(1, 5) for _ in "hw"], []
    for b, n in zip(block, space):
        before = d.int(0, min(2, n * b - 1))
        crops.append([before, d.int(0, min(2, n * b - 1 - before))])
    n = d.dim(1, 3) * block[0] * block[1]
    return {"x": T((n, d.dim(1, 4), *space)), "block_shape": block, "crops": crops}


def _spatial(call: Call) -> Any:
    """Channels go last, behind the axes that are cut into blocks."""
    return call.inputs["x"].transpose(0, 2, 3, 1)


def _back(call: Call, results: list[Any]) -> list[Any]:
    return [r.transpose(0, 3, 1, 2) for r in results]


def _break_batch(d: Draw) -> dict[str, Any]:
    return {"x": T((3, 2, 2, 2)), "block_shape": [2, 2], "crops": [[0, 0], [0, 0]]}


op(
    "space_to_batch",
    Evaluation(
        lambda c: _back(
            c, [s.space_to_batch(_spatial(c), block=ints(c, "block_shape"), pads=ints(c, "paddings", axes=2))]
        ),
        s.space_to_batch.error,
    ),
    Sampling(_draw_space_to_batch),
    Checks(stated={"x": "n c h w"}),
)
op(
    "batch_to_space",
    Evaluation(
        lambda c: _back(
            c, [s.batch_to_space(_spatial(c), block=ints(c, "block_shape"), crops=ints(c, "crops", axes=2))]
        ),
        s.batch_to_space.error,
    ),
    Sampling(_draw_batch_to_space),
    Checks(breaks={"block-divides-batch": _break_batch}, stated={"x": "n c h w"}),
)
