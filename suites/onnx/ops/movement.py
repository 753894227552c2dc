"""Moving elements: reshape, transpose, concat, split, slice, pad, tile and their kin."""

from __future__ import annotations

from copy import copy
from math import inf
from typing import Any

import numpy as np

from harness.core.dtypes import F16, F32, F64, int_range, of
from harness.core.errors import RuleError
from harness.core.instance import Arg
from harness.declare import (
    Build,
    Call,
    Checks,
    Codec,
    Draw,
    Evaluation,
    Fn,
    Map,
    OpVersion,
    Param,
    Sampling,
    Spelling,
    T,
    exact,
    other_shape,
)
from suites.onnx import op
from suites.onnx.blocks import literal
from suites.onnx.codecs import Default, Front, Scalar, ToType, ValueAttr
from suites.semantics import movement as s
from suites.semantics.movement.common import beyond, norm_axes, norm_axis
from suites.semantics.movement.padding import pad_axes


class Named(Codec):
    """Axes of which one that is named again adds nothing."""

    def __init__(self, told: Codec) -> None:
        self.told, self.name = told, "axes"

    def bind(self, version: OpVersion, param: Param) -> Codec:
        out = copy(self)
        out.told = self.told.bind(version, param)
        return out

    def decode(self, call: Call) -> Any:
        axes = self.told.decode(call)
        rank = call.inputs["data"].ndim
        return None if axes is None else tuple({a + rank if -rank <= a < 0 else a: a for a in axes}.values())

    def encode(self, value: Any, b: Build) -> None:
        self.told.encode(value, b)


op("Identity", s.identity, until=13, x="input")
op("Reshape", s.reshape, Spelling(x="data", fixed={"zero": "copy"}), until=13)
op("Reshape", s.reshape, since=14, x="data", zero=Map("allowzero", {"copy": 0, "literal": 1}))
op("Flatten", s.flatten, until=10, x="input", axis=Front("axis", default=1))
op("Flatten", s.flatten, since=11, x="input")
# no text says that an axis is named once, as that of Unsqueeze does; shape inference looks axes up in the list
_TWICE = Checks(breaks={"axes-distinct": None})
op("Squeeze", s.squeeze, _TWICE, Sampling(tags=("scalar",)), until=10, x="data", axes=Named(Front("axes")))
op("Squeeze", s.squeeze, _TWICE, Sampling(tags=("scalar",)), since=11, x="data", axes=Named(Default("axes", None)))
op("Unsqueeze", s.expand_dims, until=10, x="data", axes=Front("axes", grown=True))
op("Unsqueeze", s.expand_dims, since=11, x="data")
op("Transpose", s.transpose, x="data")
op("Shape", s.shape_of, x="data")
op("Size", s.size_of, x="data")
op("Concat", s.concat, until=3, xs="inputs", axis=Front("axis", "xs", default=1))
op("Concat", s.concat, since=4, until=10, xs="inputs", axis=Front("axis", "xs"))
op("Concat", s.concat, since=11, xs="inputs")
op("Expand", s.expand, x="input")
op("Tile", s.repeat_axis, Spelling(x="input", axis=Front("axis"), times="tiles", fixed={"mode": "tile"}), until=1)
op("Tile", s.tile, since=6, x="input")
_ORDER = Map("mode", {"dcr": "DCR", "crd": "CRD"})
op("DepthToSpace", s.depth_to_space, Spelling(x="input", block="blocksize", fixed={"mode": "dcr"}), until=10)
op("DepthToSpace", s.depth_to_space, since=11, x="input", block="blocksize", mode=_ORDER)
op("SpaceToDepth", s.space_to_depth, Spelling(x="input", block="blocksize", fixed={"mode": "dcr"}), until=27)
op("SpaceToDepth", s.space_to_depth, since=28, x="input", block="blocksize", mode=_ORDER)
op(
    "EyeLike",
    s.eye_like,
    Spelling(
        x="input", dtype=ToType("dtype"), out_dtype=lambda c, i: ToType("dtype").decode(c) or of(c.inputs["input"])
    ),
)
op("Trilu", s.triangle, Checks(breaks={"matrices": None}), x="input", k=Scalar("k", (0,), 0))


def _draw_range(d: Draw) -> dict:
    """Now and then from, to or away from an end of the type; "stash_type ... has no effect for other types"."""
    v = s.range_of.derive(d)
    dt = d.types["T"]
    if d.chance(6):
        step, near = d.pick((1, 2, 5)), d.int(-5, 5)
        if dt.kind == "f":
            ends: tuple[tuple[float, ...], ...] = (
                *((inf, near, step), (near, -inf, step), (inf, -inf, step)),
                *((-inf, near, -step), (near, inf, -step), (-inf, inf, -step)),
            )
        else:
            lo = int_range(dt)[0]
            ends = ((lo, lo + 3 * step, step), (lo + 4, lo, -1), (lo, -1, 1 << (dt.bits - 2)), (lo, lo + near + 5, -1))
        v = {n: T((), values=[x]) for n, x in zip(("start", "limit", "delta"), d.pick(ends))}
    if "stash_type" in d.version.schema.attrs and d.chance(4):
        v["stash_type"] = F32 if dt.bits == 16 and dt.kind == "f" else d.pick((F32, F16, F64))
    return v


def _no_step(d: Draw) -> dict:
    return {n: T((), values=[x]) for n, x in zip(("start", "limit", "delta"), (0, 5, 0))}


op("Range", s.range_of, Sampling(_draw_range), Checks(breaks={"step-nonzero": _no_step}))


class FirstTwo(Default):
    """One of the first two axes.  Raises RuleError "first-two-axes"."""

    def decode(self, call: Call) -> int:
        axis = super().decode(call)
        if axis not in (0, 1):
            raise RuleError("first-two-axes", f"{self.name} {axis}")
        return axis


def _third_axis(d: Draw) -> dict:
    """ "Must be one of" 0 and 1."""
    axes = {"time_axis": 2, "batch_axis": d.int(0, 1)} if d.bool() else {"time_axis": d.int(0, 1), "batch_axis": 2}
    shape = tuple(d.int(1, 4) for _ in range(3))
    n, t = shape[axes["batch_axis"]], shape[axes["time_axis"]]
    return {"input": T(shape), "sequence_lens": T((n,), values=[d.int(1, t) for _ in range(n)]), **axes}


op(
    "ReverseSequence",
    s.reverse_sequence,
    Sampling(lambda d: _sequence(d)),
    Checks(breaks={"first-two-axes": _third_axis, "axes-in-range": None}),  # those two stand in any range
    x="input",
    lengths="sequence_lens",
    seq_axis=FirstTwo("time_axis", 0),
    batch_axis=FirstTwo("batch_axis", 1),
)


def _sequence(d: Draw) -> dict:
    """Time and batch are the first two axes, in either order."""
    shape = d.shape(2)
    time = d.int(0, 1)
    out: dict[str, Any] = {"input": T(shape), "sequence_lens": T((shape[1 - time],), f"ints:0:{shape[time]}")}
    if time == 1 or d.bool():
        out |= {"time_axis": time, "batch_axis": 1 - time}
    return out


class Sizes(Codec):
    """The extents of the parts: attribute or input ``split``, else equal parts, as many as outputs (or ``num_outputs``,
    the last one smaller)."""

    def decode(self, call: Call) -> tuple[int, ...]:
        """Raises RuleError "one-of-sizes" (since 18), "equal-parts" (before), "one-length-per-output"."""
        v, count = call.get("split"), call.attrs.get("num_outputs")
        newest = "num_outputs" in call.version.schema.attrs
        if newest and (v is None) == (count is None):
            raise RuleError("one-of-sizes", "either split or num_outputs is given")
        if v is not None:
            lengths = tuple(int(x) for x in np.asarray(v).ravel())
            if len(lengths) != call.n_outs:  # Split-13, split: "length of each output"
                raise RuleError("one-length-per-output", f"lengths {list(lengths)} for {call.n_outs} outputs")
            return lengths
        shape = call.inputs["input"].shape
        n = shape[norm_axis(call.attr("axis", 0), len(shape))]
        count = call.n_outs if count is None else int(count)
        if not newest and n % count:
            raise RuleError("equal-parts", f"{count} parts of extent {n}")
        return tuple(s.chunk_sizes(n, count))

    def encode(self, value: tuple[int, ...], b: Build) -> None:
        newest = "num_outputs" in b.version.schema.attrs
        even = len(set(value)) == 1
        chunked = even or (newest and list(value) == _chunks(sum(value), len(value)))
        shape, axis = b.values["x"].shape, b.values["axis"]
        # sizes that do not add up stay: leaving them out would mend the instance
        whole = not -len(shape) <= axis < len(shape) or sum(value) == shape[axis]
        if chunked and whole and b.draw.bool():
            if newest:
                b.attrs["num_outputs"] = len(value)
            return
        both = "split" in b.version.slots_of_schema  # version 1 takes the lengths either way
        if "split" in b.version.schema.attrs and not (both and b.draw.bool()):
            b.attrs["split"] = list(value)
        else:
            b.value("split", value)


def _chunks(n: int, parts: int) -> list[int]:
    size = -(-n // parts)
    return [size] * (parts - 1) + [n - size * (parts - 1)]


def _parts(d: Draw, values: dict) -> int | None:
    return len(values["sizes"]) if "sizes" in values else None


def _unequal(d: Draw) -> dict:
    n = d.int(2, 4)
    return {"input": T((d.int(0, 2) * n + d.int(1, n - 1), *d.shape(0, 2))), "@outs": n}


def _length_too_many(d: Draw) -> dict:
    """Two lengths for one output, or one too many."""
    n = d.int(1, 3)
    lengths: dict[str, Any] = {"split": T((n + 1,), values=[1] * (n + 1))}
    if "split" not in d.version.slots_of_schema:
        lengths = {"split": [1] * (n + 1)}
    return {"input": T((n + 1, *d.shape(0, 2))), **lengths, "@outs": n}


def _both_sizes(d: Draw) -> dict:
    n = d.int(1, 4)
    return {"input": T((n, *d.shape(0, 2))), "split": T((n,), values=[1] * n), "num_outputs": n, "@outs": n}


op(
    "Split",
    s.split,
    Sampling(outs=_parts),
    Checks(breaks={"equal-parts": _unequal, "one-length-per-output": _length_too_many}),
    until=10,
    x="input",
    axis=Front("axis", default=0),
    sizes=Sizes(),
)
op(
    "Split",
    s.split,
    Sampling(outs=_parts),
    Checks(breaks={"equal-parts": _unequal, "one-length-per-output": _length_too_many}),
    since=11,
    until=13,
    x="input",
    axis=Default("axis", 0),
    sizes=Sizes(),
)
op(
    "Split",
    s.split,
    Sampling(outs=_parts),
    Checks(
        agrees={"num_outputs": lambda c: c.n_outs},
        breaks={"one-of-sizes": _both_sizes, "one-length-per-output": _length_too_many},
    ),
    since=18,
    x="input",
    axis=Default("axis", 0),
    sizes=Sizes(),
)


def _before_the_first(call: Call) -> str | None:
    """Backward from before the first element: nothing by NumPy, which the text names; the first by the text of 13."""
    given = [
        np.ravel(call.inputs[k]).tolist() if call.inputs.get(k) is not None else None
        for k in ("starts", "axes", "steps")
    ]
    shape = call.inputs["data"].shape
    starts, axes, steps = given
    if not any(t < 0 and b < -shape[axes[i] if axes else i] for i, (b, t) in enumerate(zip(starts or (), steps or ()))):
        return None
    tensors, params = call.version.decode(call)
    why = "a start before the first element, going backward: nothing by NumPy, the first one by Slice-13"
    other = s.slice_axes(**tensors, **{**params, "from_first": not params.get("from_first")})
    if other.shape == s.slice_axes(**tensors, **params).shape:  # both take nothing
        return None
    return other_shape(why, 0, other)


# "Behavior is undefined if an axis is repeated."
_UNDEFINED: dict[str, Any] = {"axes-distinct": None}
op("Slice", s.slice_axes, Checks(breaks={**_UNDEFINED, "stride-nonzero": None}), until=1, x="data", axes=Front("axes"))
op(
    "Slice",
    s.slice_axes,
    Checks(ambiguous=_before_the_first, breaks=_UNDEFINED),
    since=10,
    until=10,
    x="data",
    axes=Front("axes"),
)
op("Slice", s.slice_axes, Checks(ambiguous=_before_the_first, breaks=_UNDEFINED), since=11, until=11, x="data")
op(
    "Slice",
    s.slice_axes,
    Spelling(x="data", fixed={"from_first": True}),
    Checks(source="Slice-13: starts is clamped to [0, n-1]", breaks=_UNDEFINED),
    since=13,
)

op(
    "Pad",
    s.pad,
    Checks(breaks=_UNDEFINED),
    Sampling(tags=("nonnegative",)),
    until=1,
    x="data",
    pads="paddings",
    value=ValueAttr("value", "data"),
)
op("Pad", s.pad, Checks(breaks=_UNDEFINED), since=2, until=10, x="data", value=ValueAttr("value", "data"))
op("Pad", s.pad, Checks(breaks=_UNDEFINED), since=11, x="data", value="constant_value")


def _center(call: Call) -> np.ndarray:
    """CenterCropPad-18: the cropping window starts at floor(excess / 2); padding puts the odd element at the end."""
    x, target = call.inputs["input_data"], call.inputs["shape"]
    axes = call.attr("axes")
    axes = norm_axes(axes, x.ndim)
    if target.shape != (len(axes),):
        raise RuleError("one-per-axis", f"shape has shape {list(target.shape)} for {len(axes)} axes")
    if (target < 0).any():
        raise RuleError("extents-nonnegative", f"shape {target.tolist()}")
    for a, n in zip(axes, target.tolist()):
        have = x.shape[a]
        if n < have:
            x = np.take(x, np.arange((have - n) // 2, (have - n) // 2 + n), axis=a)
        elif n > have:
            before = (n - have) // 2
            b, e = [0] * x.ndim, [0] * x.ndim
            b[a], e[a] = before, n - have - before
            x = pad_axes(x, b, e, "constant", "" if x.dtype.kind == "O" else x.dtype.type(0))
    return x


def _draw_center(d: Draw) -> dict:
    shape = d.shape(0 if d.chance(16) else 1, 4)
    axes = d.subset(range(len(shape)), 0 if d.chance(16) else 1) if shape and d.bool() else None
    at = range(len(shape)) if axes is None else axes
    target = [d.int(0 if d.empty else 1, shape[a] + 3) for a in at]
    return {
        "input_data": T(shape),
        "shape": target,
        "axes": None if axes is None else [a - len(shape) if d.bool() else a for a in axes],
    }


def _center_beyond(d: Draw) -> dict:
    """An axis that the tensor does not have."""
    out = _draw_center(d)
    return {**out, "axes": [beyond(d, len(out["input_data"].shape))], "shape": [d.int(1, 3)]}


def _center_list(d: Draw) -> dict:
    """An extent more than there are axes."""
    out = _draw_center(d)
    return {**out, "shape": [*out["shape"], d.int(1, 3)]}


op(
    "CenterCropPad",
    Evaluation(_center, exact(), "ONNX CenterCropPad-18"),
    Sampling(_draw_center),
    # what a window of fewer than no elements holds is not said
    Checks(breaks={"axes-in-range": _center_beyond, "one-per-axis": _center_list, "extents-nonnegative": None}),
)


# -- constants


def _fill(call: Call) -> np.ndarray:
    value = call.attrs.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    shape = call.inputs["input"].tolist()
    if min(shape, default=0) < 0:
        raise RuleError("extents-not-negative", f"shape {shape}")
    return np.full(shape, value.reshape(-1)[0], value.dtype)


def _fill_type(call: Call, i: int) -> Any:
    v = call.attrs.get("value")
    return F32 if v is None else of(v)


def _draw_fill(d: Draw) -> dict:
    shape = d.shape(0, 4)
    types = d.version.schema.dtypes(d.version.schema.outputs[0].element)
    out: dict = {"input": T((len(shape),), values=list(shape))}
    if d.int(0, 4):
        out["value"] = literal(d, d.pick(types), (1,))
    return out


def _negative_fill(d: Draw) -> dict:
    """ "All values must be >= 0"."""
    return {**_draw_fill(d), "input": T((2,), values=[d.int(1, 3), -d.int(1, 3)])}


op(
    "ConstantOfShape",
    Evaluation(_fill, exact(), "ONNX ConstantOfShape-9"),
    Spelling(out_dtype=_fill_type),
    Sampling(_draw_fill),
    Checks(breaks={"extents-not-negative": _negative_fill}),
)

_VALUES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def _constant(call: Call) -> np.ndarray:
    for name in ("value", "sparse_value"):
        if call.attrs.get(name) is not None:
            return call.attrs[name]
    name = next(n for n in _VALUES if n in call.attrs)
    return np.array(call.attrs[name], _VALUES[name])


def _draw_constant(d: Draw) -> dict:
    schema = d.version.schema
    how = d.pick(list(schema.attrs))
    if how == "value":
        return {"value": literal(d, d.pick(schema.dtypes(schema.outputs[0].element)), d.shape(0, 3))}
    if how == "sparse_value":
        types = [
            t
            for t in schema.dtypes(schema.outputs[0].element)
            if (t.bits >= 8 and t.kind in "fi" and t.frac != 0) or t.kind == "i"
        ]
        a = literal(d, d.pick([t for t in types if t.bits >= 32]), (d.int(1, 3), d.int(1, 5)))
        return {how: a}
    one = {
        "value_float": lambda: d.int(-16, 16) / 4,
        "value_int": lambda: d.int(-9, 9) if d.int(0, 5) else d.pick((0, 1, -(2**31), 2**31 - 1, 2**63 - 1)),
        "value_string": lambda: d.pick(("", "x", "é")),
    }
    if how in one:
        return {how: one[how]()}
    if d.chance(8):
        return {how: [one[how[:-1]]()] * d.pick((0, 2, 3))}
    return {how: [one[how[:-1]]() for _ in range(d.int(1, 4))]}


op(
    "Constant",
    Evaluation(_constant, exact(), "ONNX Constant-1, -11, -12, -13"),
    Spelling(out_dtype=lambda c, i: of(_constant(c))),
    Sampling(_draw_constant),
)

__all__ = ["Arg", "Fn"]
