"""Data movement.  Quantised tensors move with their parameters; padding inserts the zero point, which is real 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import I32
from harness.core.errors import RuleError
from harness.declare import Build, Call, Checks, Draw, Fn, Map, Sampling, Slotted, Spelling, T
from suites.semantics import movement as s
from suites.semantics.movement.common import norm_axis
from suites.semantics.quantised.window import joined
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

# -- shape


def _draw_reshape(d: Draw) -> dict[str, Any]:
    v = s.reshape.derive(d)
    shape = list(v["shape"])
    out: dict[str, Any] = {"input": v["x"]}
    given = d.pick(("operand", "operand", "both", "option"))
    if shape in ([], [0]):  # the option cannot say rank 0, [0] says it in old files, and the operand would be empty
        given = "operand"
    if given != "option":
        out["shape"] = T((len(shape),), values=shape, const=True if given == "both" else None)
    if given != "operand":
        out["new_shape"] = shape
    return out


def _shape_of_reshape(call: Call) -> Any:
    v = call.inputs.get("shape")
    return tuple(int(n) for n in (call.attr("new_shape") if v is None else v.ravel()))


both(
    "RESHAPE",
    s.reshape,
    Spelling(x="input", shape=Fn(_shape_of_reshape), fixed={"zero": "literal"}),
    Sampling(_draw_reshape),
    Checks(source="TFLite RESHAPE: the shape operand, else the new_shape option"),
)


def _squeeze_dims() -> Fn:
    return Fn(lambda call: tuple(call.attr("squeeze_dims") or ()) or None, lambda v, b: b.attr("squeeze_dims", v))


both("SQUEEZE", s.squeeze, x="input", axes=_squeeze_dims())


def _draw_expand_dims(d: Draw) -> dict[str, Any]:
    shape = d.shape(0, d.max_rank - 1)
    return {"input": T(shape), "dim": d.axis(len(shape) + 1)}


both(
    "EXPAND_DIMS",
    s.expand_dims,
    Sampling(_draw_expand_dims),
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
    """Seven axes now and then, where the version takes them."""
    shape = d.part(7, 7, 1) if d.max_rank == 7 and d.chance(4) else d.part(0, min(6, d.max_rank))
    return {"input": T(shape), "perm": d.shuffle(range(len(shape)))}


both(
    "TRANSPOSE",
    s.transpose,
    Sampling(_draw_transpose),
    x="input",
    perm=Fn(lambda call: tuple(int(a) for a in call.inputs["perm"])),
)


def _draw_reverse(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    return {"input": T(shape), "axis": [d.axis(len(shape))]}


both(
    "REVERSE_V2",
    s.reverse,
    Sampling(_draw_reverse),
    Checks(source="TFLite REVERSE_V2: the axis operand has one element"),
    x="input",
    axes=AxesInput("axis"),
)
both(
    "REVERSE_SEQUENCE", s.reverse_sequence, x="input", lengths="seq_lengths", seq_axis="seq_dim", batch_axis="batch_dim"
)

# -- joining and splitting


def _counted(name: str, count: Callable[[Any, Build], int]) -> Callable[[Any, Build], None]:
    """Writes the axis, and the number that repeats what the operands show."""

    def encode(v: Any, b: Build) -> None:
        b.attr("axis", v)
        b.attr(name, count(v, b))

    return encode


def _encode_sizes(v: Any, b: Build) -> None:
    b.value("size_splits", v)
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
    Checks(agrees={"values_count": lambda c: len(c.inputs["values"])}),
    xs="values",
    axis=Fn(lambda call: call.attr("axis"), _counted("values_count", lambda v, b: len(b.values["xs"]))),
)


def _of_both(call: Call) -> int | None:
    """The extent of the axis, of which there are as many results."""
    x = call.inputs["input"]
    n = x.shape[norm_axis(call.attr("axis"), x.ndim)]
    return n if n == call.n_outs else None


both(
    "UNPACK",
    s.unstack,
    Sampling(outs=lambda d, v: v["x"].shape[v["axis"]]),
    Checks(agrees={"num": _of_both}),
    x="input",
    axis=Fn(lambda call: call.attr("axis"), _counted("num", lambda v, b: b.values["x"].shape[v])),
)
both(
    "SPLIT",
    s.split_even,
    Sampling(outs=lambda d, v: v["count"]),
    Checks(agrees={"num_splits": lambda c: c.n_outs}),  # SplitOp::verify: "output count should match 'num_splits'"
    x="value",
    axis="split_dim",
    count="num_splits",
)
both(
    "SPLIT_V",
    s.split,
    Sampling(outs=lambda d, v: len(v["sizes"])),
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


both("TILE", s.tile, x="input", repeats=shape_input("multiples"))
both("BROADCAST_TO", s.broadcast_to, x="input", shape=shape_input("shape"))

# -- windows

both("SLICE", s.slice_by_size, x="input", begin=shape_input("begin"), size=shape_input("size"))


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
        names["offset"] = Fn(lambda call: int(bool(call.attr("offset", False))))
    both(
        "STRIDED_SLICE",
        s.strided_slice_bits,
        Spelling(x="input", fixed=fixed, **names),
        Checks(only=dict(fixed), stated={"begin": "n", "end": "n", "strides": "n"}, ambiguous=readings.shrunk),
        since=since,
        until=until,
    )


_bits(5, None, ellipsis_mask=0, new_axis_mask=0, offset=0)
_bits(7, 6, offset=0)
_bits(None, 8)


def _zero_point(slot: str) -> Fn:
    """The border of a quantised tensor: its zero point; absent for plain ones."""

    def decode(call: Call) -> Any:
        q = call.quant.get(slot)
        return np.asarray(q["zero_point"][0]).astype(call.inputs[slot].dtype) if q else None

    return Fn(decode)


def _cut(slot: str, **more: Any) -> Any:
    """What is added is a number of elements less than none."""

    def draw(d: Draw) -> dict[str, Any]:
        return {"input": T((4, 3)), slot: np.array(d.pick(([[-1, 0], [0, 0]], [[0, 1], [0, -2]])), np.int64), **more}

    return {"pads-nonnegative": draw}


_CONSTANT = {"mode": "constant", "axes": None}
both(
    "PAD",
    s.pad,
    Spelling(x="input", value=_zero_point("input"), pads=pairs("padding"), fixed=_CONSTANT),
    Sampling(tags=("nonnegative",)),
    Checks(breaks=_cut("padding")),
)
both(
    "PADV2",
    s.pad,
    Spelling(x="input", value="constant_values", pads=pairs("padding"), fixed=_CONSTANT),
    Sampling(lambda d: _draw_padv2(d), tags=("nonnegative",)),
    Checks(breaks=_cut("padding", constant_values=T((), recipe="small"))),
)


def _draw_padv2(d: Draw) -> dict[str, Any]:
    v = s.pad.derive(d)
    n = len(v["x"].shape)
    p = np.array(v["pads"], np.int64).reshape(2, n).T
    return {"input": v["x"], "padding": p, "constant_values": T((), recipe="small")}


def _mirrored(call: Call) -> tuple[int, ...]:
    """TF mirror_pad: no more is padded than there is to mirror, the edge left out in REFLECT."""
    pads, shape = _PADS.decode(call), call.inputs["input"].shape
    less = call.attr("mode") == "REFLECT"
    for i, n in enumerate(shape * 2):
        if pads[i] > n - less:
            raise RuleError("mirror-pad-inside", f"{pads[i]} elements beside an axis of {n}")
    return pads


_PADS = pairs("pad")
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
    Sampling(tags=("nonnegative",)),
    Checks(stated={"pad": "_n 2"}, breaks=_cut("pad", mode="SYMMETRIC")),
)

# -- blocks

_DEPTH = Spelling(block="block_size", x=nhwc("input"), fixed={"mode": "dcr"}, out=nhwc_out)
both("DEPTH_TO_SPACE", s.depth_to_space, _DEPTH)
both("SPACE_TO_DEPTH", s.space_to_depth, _DEPTH)


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


def _rank34(drawer: Any) -> Any:
    """Rank 3 has one space axis, rank 4 two; one axis of depth follows.  Rank 3 only where the version has it."""

    def draw(d: Draw) -> dict[str, Any]:
        if later(d, "rank3"):
            d.fixed = {**d.fixed, "space_rank": 2}
        v = drawer(d)
        k = len(v["block"])
        x = T((*v["x"].shape[: 1 + k], d.dim(hi=3)))
        edge = v.get("pads", v.get("crops"))
        name = "paddings" if "pads" in v else "indices"
        return {"input": x, "block_shape": list(v["block"]), name: np.array(edge, np.int64).reshape(k, 2)}

    return draw


both(
    "SPACE_TO_BATCH_ND",
    s.space_to_batch,
    Spelling(x=_shift("input"), block=shape_input("block_shape"), pads=interleaved("paddings"), out=_unshift),
    Sampling(_rank34(s.space_to_batch.drawer)),
)
both(
    "BATCH_TO_SPACE_ND",
    s.batch_to_space,
    Sampling(_rank34(s.batch_to_space.drawer)),
    x="input",
    block=shape_input("block_shape"),
    crops=interleaved("indices"),
)

# -- making

# TF Fill: "value: 0-D (scalar)"
both("FILL", s.fill, Checks(stated={"input": ""}), value="input", shape=shape_input("dims"))
op("ZEROS_LIKE", s.zeros_like, x="input")


def _draw_range(d: Draw) -> dict[str, Any]:
    """TensorFlow forbids a step that leads away from the limit; nothing follows from start == limit."""
    v = s.range_of.derive(d)
    start, limit, delta = (v[k].values[0] for k in ("start", "limit", "delta"))
    if (limit - start) * delta < 0:
        v["limit"] = T((), values=[start])
    return v


op("RANGE", s.range_of, Sampling(_draw_range), Checks(stated={"start": "", "limit": "", "delta": ""}))
both("MATRIX_DIAG", s.diag, x="diagonal")
both("MATRIX_SET_DIAG", s.set_diag, x="input")
