"""Data movement.  Quantised tensors move with their parameters; padding inserts the zero point, which is real 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import I32, int_range
from harness.core.errors import RuleError
from harness.declare import Build, Call, Checks, Draw, Fn, Map, Sampling, Slotted, Spelling, T
from harness.declare.semantics import InvalidFn
from suites.semantics import movement as s
from suites.semantics.movement.common import INT32_MAX, norm_axis
from suites.semantics.quantised.window import joined
from suites.semantics.window import FAR
from suites.tflite import op, readings
from suites.tflite.codecs import (
    AxesInput,
    OutQ,
    both,
    cast_to_declared,
    fused,
    interleaved,
    later,
    nan_activation,
    nhwc,
    nhwc_out,
    pairs,
    shape_input,
)
from suites.tflite.quantisation import OWN


def _beyond(
    slot: str, axis: str, most: int = 0, several: bool = False, **more: Any
) -> Callable[[Draw], dict[str, Any]]:
    """Breaks a rule: an axis that the tensor does not have.  most: axes of the result beyond those of the operand."""

    def draw(d: Draw) -> dict[str, Any]:
        shape = d.part(1, 4, 1)
        n = len(shape) + most
        a = d.pick((n, n + 7, -n - 1))
        return {slot: T(shape), axis: [a] if several else a, **more}

    return draw


# -- shape


def _draw_reshape(d: Draw) -> dict[str, Any]:
    v = s.reshape.derive(d)
    if d.chance(24):  # as many as any, without elements
        v = {"x": T((0, d.int(1, 4))), "shape": d.pick(((0, INT32_MAX), (INT32_MAX, 0)))}
    shape = list(v["shape"])
    out: dict[str, Any] = {"input": v["x"]}
    given = d.pick(("operand", "operand", "both", "option"))
    if shape in ([], [0]):  # the option cannot say rank 0, [0] says it in old files, and the operand would be empty
        given = "operand"
    if given != "option":
        out["shape"] = T((len(shape),), values=shape, const=True if given == "both" else None)
    if not shape and d.bool():
        out["new_shape"] = []
    if given != "operand":  # the operand counts, where both are given
        out["new_shape"] = shape[::-1] if given == "both" and -1 not in shape and d.chance(3) else shape
    return out


def _shape_of_reshape(call: Call) -> Any:
    v = call.inputs.get("shape")
    return tuple(int(n) for n in (call.attr("new_shape") if v is None else v.ravel()))


def _inferred_twice(d: Draw) -> dict[str, Any]:
    return {"input": T((2, 3)), **d.pick(({"shape": [-1, -1]}, {"new_shape": [-1, 2, -1]}))}


both(
    "RESHAPE",
    s.reshape,
    Spelling(x="input", shape=Fn(_shape_of_reshape), fixed={"zero": "literal"}),
    Sampling(_draw_reshape),
    Checks(
        source="TFLite RESHAPE: the shape operand, else the new_shape option", breaks={"one-inferred": _inferred_twice}
    ),
)


def _encode_squeezed(v: Any, b: Build) -> None:
    """All axes of extent 1: left out, or no axis named."""
    b.attr("squeeze_dims", [] if v is None and b.draw.chance(4) else v)


def _squeeze_dims() -> Fn:
    return Fn(lambda call: tuple(call.attr("squeeze_dims") or ()) or None, _encode_squeezed)


def _draw_squeeze(d: Draw) -> dict[str, Any]:
    """Now and then a scalar, of which no axis goes."""
    v: dict[str, Any] = s.squeeze.derive(d) if not d.chance(24) else {"x": T(()), "axes": None}
    dims = v.get("axes")
    return {"input": v["x"], "squeeze_dims": list(dims) if dims is not None else [] if d.chance(4) else None}


both(
    "SQUEEZE",
    s.squeeze,
    Sampling(_draw_squeeze),
    Checks(
        breaks={
            "axes-distinct": None,  # TF Squeeze collects the axes in a set: no text forbids to name one twice
            "axes-in-range": lambda d: {"input": T((1, 3)), "squeeze_dims": d.pick(([2], [-3], [0, 5]))},
            "squeezed-is-one": lambda d: {"input": T((1, 3)), "squeeze_dims": d.pick(([1], [0, -1]))},
        }
    ),
    x="input",
    axes=_squeeze_dims(),
)


def _draw_expand_dims(d: Draw) -> dict[str, Any]:
    shape = d.shape(0, d.max_rank - 1)
    return {"input": T(shape), "dim": d.axis(len(shape) + 1)}


both(
    "EXPAND_DIMS",
    s.expand_dims,
    Sampling(_draw_expand_dims),
    # one axis is added, so it is distinct
    Checks(breaks={"axes-distinct": None, "axes-in-range": _beyond("input", "dim", most=1)}),
    x="input",
    axes=Fn(lambda call: (int(np.asarray(call.inputs["dim"]).ravel()[0]),), lambda v, b: b.value("dim", v[0])),
)


def _draw_shape(d: Draw) -> dict[str, Any]:
    name = d.pick(("i32", "i64"))
    return {"input": T(d.shape(0)), "out_type": name, "@outputs": [{"dtype": name}]}


both(
    "SHAPE",
    s.shape_of,
    Spelling(x="input", fixed={"start": 0, "end": None}, out=cast_to_declared),
    Sampling(_draw_shape),
)
both("RANK", s.rank_of, Spelling(x="input", out_dtype=lambda call, i: I32))

# -- order


def _draw_transpose(d: Draw) -> dict[str, Any]:
    """Seven axes now and then, where the version takes them; one time in four some are counted from the back."""
    shape = d.part(7, 7, 1) if d.max_rank == 7 and d.chance(4) else d.part(0, min(6, d.max_rank))
    perm = d.shuffle(range(len(shape)))
    if d.chance(4):
        perm = [a - len(shape) if d.bool() else a for a in perm]
    return {"input": T(shape), "perm": perm}


def _not_permuted(d: Draw) -> dict[str, Any]:
    """An axis twice, or one that the tensor does not have."""
    shape = d.part(2, 4, 1)
    perm = d.shuffle(range(len(shape)))
    perm[0] = d.pick((perm[1], len(shape), -len(shape) - 1))
    return {"input": T(shape), "perm": perm}


both(
    "TRANSPOSE",
    s.transpose,
    Sampling(_draw_transpose),
    Checks(breaks={"perm-is-permutation": _not_permuted}),
    x="input",
    perm=Fn(lambda call: tuple(int(a) for a in call.inputs["perm"])),
)


def _draw_reverse(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"input": T(shape), "axis": [d.axis(len(shape))]}


both(
    "REVERSE_V2",
    s.reverse,
    Sampling(_draw_reverse, tags=(OWN,)),
    Checks(
        ambiguous=readings.rescaled(x="input"),
        source="TFLite REVERSE_V2: the axis operand has one element",
        breaks={"axes-distinct": None, "axes-in-range": _beyond("input", "axis", several=True), "shapes-stated": None},
        stated={"input": "_n *_d"},
    ),
    x="input",
    axes=AxesInput("axis"),
)


def _sequence(lengths: list[int], seq: int, batch: int) -> InvalidFn:
    n = len(lengths)
    return lambda d: {"input": T((3, 4)), "seq_lengths": T((n,), values=lengths), "seq_dim": seq, "batch_dim": batch}


both(
    "REVERSE_SEQUENCE",
    s.reverse_sequence,
    Sampling(tags=("far", OWN)),
    Checks(
        ambiguous=readings.rescaled(x="input"),
        breaks={
            "axes-distinct": _sequence([1, 2, 3, 4], 1, 1),
            "axes-in-range": lambda d: _sequence([1, 2, 3], *d.pick(((2, 0), (1, 5))))(d),
            "lengths-per-batch": lambda d: _sequence(d.pick(([1, 2], [1, 2, 3, 1])), 1, 0)(d),
        },
    ),
    x="input",
    lengths="seq_lengths",
    seq_axis="seq_dim",
    batch_axis="batch_dim",
)

# -- joining and splitting


def _counted(name: str, count: Callable[[Any, Build], int]) -> Callable[[Any, Build], None]:
    """Writes the axis, and the number that repeats what the operands show."""

    def encode(v: Any, b: Build) -> None:
        b.attr("axis", v)
        b.attr(name, count(v, b))

    return encode


def _encode_sizes(v: Any, b: Build) -> None:
    """One time in four, one of the sizes is left to the others: -1 (tf.split)."""
    sizes = list(v)
    if not b.draw.breaking and b.draw.chance(4):
        sizes[b.draw.int(0, len(sizes) - 1)] = -1
    b.value("size_splits", sizes)
    b.attr("num_splits", len(v))


op(
    "CONCATENATION",
    s.concat,
    Spelling(xs="values", out=fused()),
    Sampling(tags=("fused",)),
    Checks(ambiguous=nan_activation(s.concat)),
)
op(
    "CONCATENATION",
    joined,
    domain="quantised",
    xs="values",
    q=OutQ("values"),
    activation="fused_activation_function",
)
both(
    "PACK",
    s.stack,
    Sampling(tags=("many",)),
    Checks(agrees={"values_count": lambda c: len(c.inputs["values"])}),
    xs="values",
    axis=Fn(lambda call: call.attr("axis"), _counted("values_count", lambda v, b: len(b.values["xs"]))),
)


def _of_both(call: Call) -> int | None:
    """The extent of the axis, of which there are as many results."""
    x = call.inputs["input"]
    n = x.shape[norm_axis(call.attr("axis"), x.ndim)]
    return n if n == call.n_outs else None


def _unpacked_beyond(d: Draw) -> dict[str, Any]:
    return {**_beyond("input", "axis", num=2)(d), "@outs": 2}


both(
    "UNPACK",
    s.unstack,
    Sampling(outs=lambda d, v: v["x"].shape[v["axis"]] if "x" in v else None, tags=("many",)),
    Checks(agrees={"num": _of_both}, breaks={"axis-in-range": _unpacked_beyond}),
    x="input",
    axis=Fn(lambda call: call.attr("axis"), _counted("num", lambda v, b: b.values["x"].shape[v])),
)
both(
    "SPLIT",
    s.split_even,
    Sampling(outs=lambda d, v: v["count"], tags=("many",)),
    Checks(agrees={"num_splits": lambda c: c.n_outs}),  # SplitOp::verify: "output count should match 'num_splits'"
    x="value",
    axis="split_dim",
    count="num_splits",
)
both(
    "SPLIT_V",
    s.split,
    Sampling(outs=lambda d, v: len(v["sizes"]), tags=("far",)),
    Checks(agrees={"num_splits": lambda c: c.n_outs if c.inputs["size_splits"].size == c.n_outs else None}),
    x="value",
    axis="split_dim",
    sizes=Fn(lambda call: _sizes(call), _encode_sizes),
)


def _sizes(call: Call) -> tuple[int, ...]:
    """size_splits with its one -1 filled in."""
    sizes = [int(n) for n in call.inputs["size_splits"]]
    if -1 in sizes:
        axis = int(np.asarray(call.inputs["split_dim"]).ravel()[0])
        sizes[sizes.index(-1)] = call.inputs["value"].shape[axis] - sum(n for n in sizes if n != -1)
    return tuple(sizes)


def _repeats_below(d: Draw) -> dict[str, Any]:
    return {"input": T((2, 3)), "multiples": d.pick(([-1, 1], [2, -2], [-(2**31), 1]))}


_FAR = Sampling(tags=("far",))
both(
    "TILE",
    s.tile,
    _FAR,
    Checks(breaks={"repeats-nonnegative": _repeats_below}),  # TF Tile: "Expected multiples[i] >= 0"
    x="input",
    repeats=shape_input("multiples"),
)
both(
    "BROADCAST_TO",
    s.broadcast_to,
    Sampling(tags=("far", OWN)),
    Checks(ambiguous=readings.rescaled(x="input")),
    x="input",
    shape=shape_input("shape"),
)

# -- windows


def _begin(call: Call) -> tuple[int, ...]:
    """tfl slice: "begin is zero-based", "0 <= begin[i]"."""
    begin = tuple(int(n) for n in np.asarray(call.inputs["begin"]).ravel())
    if min(begin, default=0) < 0:
        raise RuleError("begin-nonnegative", f"begin {list(begin)}")
    return begin


def _begin_below(d: Draw) -> dict[str, Any]:
    begin = d.pick(([-1, 0], [0, -2], [-3, -1]))
    return {"input": T((3, 4)), "begin": begin, "size": d.pick(([1, 1], [-1, 1]))}


both(
    "SLICE",
    s.slice_by_size,
    Sampling(tags=("scalars", "far")),
    Checks(breaks={"begin-nonnegative": _begin_below}),
    x="input",
    begin=Fn(_begin, shape_input("begin").encode),
    size=shape_input("size"),
)


class _End(Fn):
    """The end; half of those above a begin from 0 on are counted from it, where the version can."""

    def __init__(self) -> None:
        super().__init__(lambda call: tuple(int(n) for n in call.inputs["end"].ravel()))

    def encode(self, value: Any, b: Build) -> None:
        end: np.ndarray = np.asarray(value, np.int64).reshape(-1)
        begin, strides = (np.asarray(b.values[n], np.int64).reshape(-1) for n in ("begin", "strides"))
        upward = begin.min(initial=0) >= 0 and strides.min(initial=1) > 0  # elsewhere nobody says what is counted
        counted = len(end) == len(begin) and bool((np.abs(end - begin) < 2**31).all())
        if upward and counted and not later(b.draw, "offset") and b.draw.chance(2):
            end = end - begin
            b.attrs["offset"] = True
        b.value("end", end)


def _bits(until: int | None, since: int | None, **fixed: int) -> None:
    """fixed: what these versions do not know yet."""
    names: dict[str, Any] = {k: shape_input(k) for k in ("begin", "strides")}
    names["end"] = _End()
    if "offset" not in fixed:
        names["offset"] = Fn(lambda call: bool(call.attr("offset", False)))
    both(
        "STRIDED_SLICE",
        s.strided_slice_bits,
        Spelling(x="input", fixed=fixed, **names),
        Checks(
            only=dict(fixed),
            stated={"begin": "n", "end": "n", "strides": "n"},
            ambiguous=readings.shrunk,
            breaks={"one-ellipsis": None} if "ellipsis_mask" in fixed else {},  # there is none
        ),
        since=since,
        until=until,
    )


_bits(5, None, ellipsis_mask=0, new_axis_mask=0, offset=False)
_bits(7, 6, offset=False)
_bits(None, 8)


def _zero_point(slot: str) -> Fn:
    """The border of a quantised tensor: its zero point; absent for plain ones."""

    def decode(call: Call) -> Any:
        q = call.quant.get(slot)
        return np.asarray(q["zero_point"][0]).astype(call.inputs[slot].dtype) if q else None

    return Fn(decode)


def _cut(slot: str, **more: Any) -> Any:
    """What is added is a number of elements less than none, or there are more axes or fewer.  None of the operators
    names axes, and without a number below 0 no extent is."""

    def below(d: Draw) -> dict[str, Any]:
        return {"input": T((4, 3)), slot: np.array(d.pick(([[-1, 0], [0, 0]], [[0, 1], [0, -2]])), np.int64), **more}

    def count(d: Draw) -> dict[str, Any]:
        return {"input": T((4, 3)), slot: np.array(d.pick(([[1, 0]], [[0, 1], [0, 0], [1, 1]])), np.int64), **more}

    never = dict.fromkeys(("axes-in-range", "axes-distinct", "extent-nonnegative"))
    return {**never, "pads-nonnegative": below, "pads-per-axis": count}


_NO_MIRROR = {"border-has-data": None}  # a constant is no border of the operand's own data
_CONSTANT = {"mode": "constant", "axes": None}
both(
    "PAD",
    s.pad,
    Spelling(x="input", value=_zero_point("input"), pads=pairs("padding"), fixed=_CONSTANT),
    Sampling(tags=("nonnegative", "scalars", "far")),
    Checks(stated={"padding": "_n 2"}, breaks={**_cut("padding"), **_NO_MIRROR}),  # tfl pad: "shape [Dn, 2]"
)
both(
    "PADV2",
    s.pad,
    Spelling(x="input", value="constant_values", pads=pairs("padding"), fixed=_CONSTANT),
    Sampling(lambda d: _draw_padv2(d), tags=("nonnegative", "scalars", "far")),
    Checks(stated={"padding": "_n 2"}, breaks={**_cut("padding", constant_values=T((), recipe="small")), **_NO_MIRROR}),
)


def _draw_padv2(d: Draw) -> dict[str, Any]:
    v = s.pad.derive(d)
    n = len(v["x"].shape)
    p = np.array(v["pads"], np.int64).reshape(2, n).T
    if not n and d.chance(4):  # one tensor may be both
        return {"input": T(()), "padding": p, "constant_values": T(())}
    return {"input": v["x"], "padding": p, "constant_values": T((), recipe="small")}


def _mirrored(call: Call) -> tuple[int, ...]:
    """TF mirror_pad: no more is padded than there is to mirror, the edge left out in REFLECT."""
    pads, shape = _PADS.decode(call), call.inputs["input"].shape
    less = call.attr("mode") == "REFLECT"
    for i, n in enumerate(shape * 2):
        if pads[i] > n - less:
            raise RuleError("mirror-pad-inside", f"{pads[i]} elements beside an axis of {n}")
    return pads


def _mirrored_beyond(d: Draw) -> dict[str, Any]:
    """More than there is to mirror: nothing of an empty axis, all of another but its edge in REFLECT."""
    mode, n = d.pick(("REFLECT", "SYMMETRIC")), d.int(0, 3)
    most = n - (mode == "REFLECT") if n else 0
    pad = np.array([[0, 0], d.pick(([0, most + 1], [most + 1, 0]))], np.int64)
    return {"input": T((2, n)), "pad": pad, "mode": mode}


_MIRRORS = {"border-has-data": None, "mirror-pad-inside": _mirrored_beyond}  # of which the second holds the first
_PADS = pairs("pad")


def _draw_mirrored(d: Draw) -> dict[str, Any]:
    """Now and then an axis without elements, beside which nothing is padded."""
    v = s.pad.derive(d)
    shape, mode = list(v["x"].shape), v["mode"].upper()
    p = np.array(v["pads"], np.int64).reshape(2, len(shape)).T.copy()
    if shape and d.chance(8):
        at = d.int(0, len(shape) - 1)
        shape[at], p[at], mode = 0, 0, "SYMMETRIC"
    return {"input": T(shape), "pad": p, "mode": mode}


both(
    "MIRROR_PAD",
    s.pad,
    Spelling(
        x="input",
        value=Fn(lambda call: None),
        pads=Fn(_mirrored, _PADS.encode),
        mode=Map("mode", {"reflect": "REFLECT", "symmetric": "SYMMETRIC"}),
        fixed={"axes": None},
    ),
    Sampling(_draw_mirrored, tags=("nonnegative", "scalars")),
    Checks(stated={"pad": "_n 2"}, breaks={**_cut("pad", mode="SYMMETRIC"), **_MIRRORS}),
)

# -- blocks

_DEPTH = Spelling(block="block_size", x=nhwc("input"), fixed={"mode": "dcr"}, out=nhwc_out)


def _far_block(drawer: Any, slot: int) -> Any:
    """Now and then a block beyond any that is usual, of tensors without elements.  slot: where their axes have some."""

    def draw(d: Draw) -> dict[str, Any]:
        if d.empty and d.bool():
            block = d.pick((16, 300, FAR))
            return {"input": T((d.int(0, 2), 0, 0, 0) if slot else (d.int(0, 2), 0, 1, 0)), "block_size": block}
        v = drawer(d)
        n, c, h, w = v["x"].shape
        return {"input": T((n, h, w, c)), "block_size": v["block"]}

    return draw


def _misfit(rule: str, axis: int) -> Checks:
    """An extent that the block, or its square, does not divide."""

    def draw(d: Draw) -> dict[str, Any]:
        shape = [d.int(1, 2), 4, 4, 4]
        shape[axis] += d.int(1, 3) if axis == 3 else 2 * d.int(0, 2) + 1
        return {"input": T(tuple(shape)), "block_size": 2}

    return Checks(breaks={rule: draw})


both(
    "DEPTH_TO_SPACE",
    s.depth_to_space,
    _DEPTH,
    Sampling(_far_block(s.depth_to_space.drawer, 0)),
    _misfit("block-divides-channels", 3),
)
both(
    "SPACE_TO_DEPTH",
    s.space_to_depth,
    _DEPTH,
    Sampling(_far_block(s.space_to_depth.drawer, 1)),
    _misfit("block-divides-space", 2),
)


def _shift(slot: str) -> Slotted:
    """A quantised operand as differences from its zero point, so that zero padding means real 0."""

    class Shifted(Slotted):
        def decode(self, call: Call) -> Any:
            x, q = call.inputs[slot], call.quant.get(slot)
            return x if not q else x.astype(np.int32) - q["zero_point"][0]

    return Shifted(slot)


def _unshift(call: Call, results: list[Any]) -> list[Any]:
    q = call.quant.get("input")
    return results if not q else [(results[0] + q["zero_point"][0]).astype(call.inputs["input"].dtype)]


def _blocks(shape: tuple[int, ...], block: list[int], slot: str, *edges: Any) -> InvalidFn:
    """Breaks a rule with one of the borders; of the version without rank 3 with another space axis of extent 1."""

    def draw(d: Draw) -> dict[str, Any]:
        edge = np.array(d.pick(edges), np.int64)
        if not later(d, "rank3"):
            return {"input": T(shape), "block_shape": block, slot: edge}
        wide = (*shape[:2], 1, *shape[2:])
        return {"input": T(wide), "block_shape": [*block, 1], slot: np.concatenate([edge, [[0, 0]]])}

    return draw


def _far_blocks(d: Draw, slot: str) -> dict[str, Any]:
    """A block or a border beyond any that is usual, of tensors without elements.  As long as any only of no batch: to
    walk over 2**31 - 1 places takes seconds."""
    most = 30
    batch, depth, space, block, edge = d.pick(
        (
            (0, 2, 0, FAR, (0, FAR)),
            (0, 2, 0, FAR, (FAR, 0)),
            (1, 2, 0, most, (0, 0)),
            (1, 0, 16, 16, (0, 0)),
            (2, 0, 0, 1, (most, 0)),
            (2, 0, 0, 1, (17, most - 17)),
        )
    )
    if slot == "indices":  # the other way
        batch, space = batch * block, (space + sum(edge)) // block
    more = later(d, "rank3") or d.bool()
    shape = (batch, space, *((1,) if more else ()), depth)
    edges = np.array([edge, (0, 0)][: 1 + more], np.int64)
    return {"input": T(shape), "block_shape": [block, 1][: 1 + more], slot: edges}


def _rank34(drawer: Any, slot: str) -> Any:
    """Rank 3 has one space axis, rank 4 two; one axis of depth follows.  Rank 3 only where the version has it."""

    def draw(d: Draw) -> dict[str, Any]:
        if d.chance(32):
            return _far_blocks(d, slot)
        if later(d, "rank3"):
            d.fixed = {**d.fixed, "space_rank": 2}
        v = drawer(d)
        k = len(v["block"])
        x = T((*v["x"].shape[: 1 + k], d.dim(hi=3)))
        edge = v.get("pads", v.get("crops"))
        return {"input": x, "block_shape": list(v["block"]), slot: np.array(edge, np.int64).reshape(k, 2)}

    return draw


both(
    "SPACE_TO_BATCH_ND",
    s.space_to_batch,
    Spelling(x=_shift("input"), block=shape_input("block_shape"), pads=interleaved("paddings"), out=_unshift),
    Sampling(_rank34(s.space_to_batch.drawer, "paddings"), ranks=(3, 4)),
    Checks(
        breaks={
            "block-divides-space": _blocks((2, 3, 1), [2], "paddings", [[0, 0]], [[2, 0]]),
            "pads-per-axis": _blocks((2, 4, 1), [2], "paddings", [[0, 0], [0, 0]], [[0, 0]] * 3),
        }
    ),
)
both(
    "BATCH_TO_SPACE_ND",
    s.batch_to_space,
    Sampling(_rank34(s.batch_to_space.drawer, "indices"), ranks=(3, 4)),
    Checks(
        breaks={
            "block-divides-batch": _blocks((3, 2, 1), [2], "indices", [[0, 0]], [[1, 1]]),
            "crops-inside": _blocks((2, 2, 1), [2], "indices", [[5, 0]], [[0, 5]], [[2, 3]], [[-1, 0]], [[0, -2]]),
            "pads-per-axis": _blocks((2, 4, 1), [2], "indices", [[0, 0], [0, 0]], [[0, 0]] * 3),
        }
    ),
    x="input",
    block=shape_input("block_shape"),
    crops=interleaved("indices"),
)

# -- making

# TF Fill: "value: 0-D (scalar)"
both("FILL", s.fill, _FAR, Checks(stated={"input": ""}), value="input", shape=shape_input("dims"))
op("ZEROS_LIKE", s.zeros_like, x="input")


_TOP, _TINY, _INF = float(np.finfo(np.float32).max), 2.0**-149, float("inf")


def _range_at_ends(d: Draw) -> tuple[Any, Any, Any]:
    """Few elements between the ends of the type, over zero, or in the smallest steps; numbers that are alike."""
    dt = d.types["T"]
    n = d.int(0, 4)
    if dt.kind == "f":
        big = 2.0**25
        return d.pick(
            (
                (big, big + 8.0 * n, 8.0),
                (0.0, _TOP, _TOP),
                (0.0, -_TOP, -_TOP),
                (-_TOP, _TOP, _TOP),
                (_TOP, -_TOP, -_TOP),
                (_TOP, _TOP, 1.0),
                (-_TOP, 0.0, big * 2.0**102),
                (_TINY, 1.0, 0.5),
                (0.0, n * _TINY, _TINY),
                (-n * _TINY, -0.0, _TINY),
                (-0.0, -2.0, -1.0),
                (-0.0, -0.0, -_TINY),
                (-1.0, -_TINY, 1.0),
                (1.0, 5.0, 1.0),
                (0.5, 0.5, 0.5),
                (-2.0, 4.0, 4.0),
                (1.0, 1.0, d.pick((_INF, -_INF))),
                (1.0, 1.0 + n, _INF),
                (1.0, 1.0 - n, -_INF),
            )
        )
    lo, hi = int_range(dt)
    return d.pick(
        (
            (lo, lo + n, 1),
            (lo, lo + 3 * n, 3),
            (lo + n, lo, -1),
            (lo, lo, -1),
            (hi, hi - n, -1),
            (hi - n, hi, 1),
            (0, lo, lo),
            (0, hi, hi),
            (-1, hi, hi),
            (lo, -1, hi),
            (lo, hi, hi),
            (hi, lo, lo),
            (1, 5, 1),
            (2, 2, 2),
            (-3, 4, 4),
        )
    )


def _draw_range(d: Draw) -> dict[str, Any]:
    """TensorFlow forbids a step that leads away from the limit; nothing follows from start == limit."""
    if d.chance(4):
        start, limit, delta = _range_at_ends(d)
        return {k: T((), values=[x]) for k, x in (("start", start), ("limit", limit), ("delta", delta))}
    v = s.range_of.derive(d)
    start, limit, delta = (v[k].values[0] for k in ("start", "limit", "delta"))
    if (limit - start) * delta < 0:
        v["limit"] = T((), values=[start])
    return v


def _range_still(d: Draw) -> dict[str, Any]:
    return {"start": T((), values=[0]), "limit": T((), values=[d.pick((5, 0, -5))]), "delta": T((), values=[0])}


op(
    "RANGE",
    s.range_of,
    Sampling(_draw_range),
    Checks(
        stated={"start": "", "limit": "", "delta": ""},
        breaks={"step-nonzero": _range_still},
        ambiguous=readings.endless_step,
    ),
)
both("MATRIX_DIAG", s.diag, Sampling(tags=(OWN,)), Checks(ambiguous=readings.rescaled(x="diagonal")), x="diagonal")
both(
    "MATRIX_SET_DIAG",
    s.set_diag,
    Sampling(tags=(OWN,)),
    Checks(ambiguous=readings.rescaled(x="input", diagonal="diagonal")),
    x="input",
)
