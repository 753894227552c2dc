"""Sequences and optionals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I64, DType, int_range
from harness.core.errors import RuleError
from harness.core.instance import SAME, Arg, Graph, Node
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, Spelling, T, exact
from suites.onnx import op
from suites.onnx.blocks import literal
from suites.onnx.ops.control import fits
from suites.semantics import sequences as s

EXACT = exact()


def seq_of(d: Draw, dtype: DType, least: int = 0, same: tuple[int, ...] | None = None) -> T:
    """A sequence of up to five tensors, of one shape or of any."""
    items = [T(same if same is not None else d.shape(0, 4), dtype=dtype) for _ in range(d.int(least, 5))]
    return T((), kind="seq", items=items, dtype=dtype)


def admits(d: Draw, slot: str, pattern: str, dtype: DType) -> bool:
    """Does the type name of a slot include a container of this element type?"""
    s = d.version.schema.input(slot)
    assert s is not None
    return pattern.format(dtype.name) in d.version.schema.types.get(s.element, ())


def _at(call: Call) -> int | None:
    v = call.inputs.get("position")
    return None if v is None else int(v.reshape(-1)[0])


def _draw_at(d: Draw) -> dict:
    q = seq_of(d, d.types["S"], 1)
    n = len(q.items or ())
    return {"input_sequence": q, "position": T((), values=[d.int(-n, n - 1)])}


def _draw_erase(d: Draw) -> dict:
    out = _draw_at(d)
    if d.chance(3):
        del out["position"]
    return out


def _draw_insert(d: Draw) -> dict:
    q = seq_of(d, d.types["S"])
    n = len(q.items or ())
    out = {"input_sequence": q, "tensor": T(d.shape(0, 4), dtype=d.types["S"])}
    if d.bool():
        out["position"] = T((), values=[d.int(-n, n)])
    return out


def _beyond(draw: Any) -> Any:
    def fn(d: Draw) -> dict:
        out = draw(d)
        n = len(out["input_sequence"].items or ())
        return {**out, "position": T((), values=[d.pick((n + 1, -n - 1))])}

    return fn


def _list(call: Call) -> Any:
    return call.inputs["input_sequence"]


op(
    "SequenceAt",
    Evaluation(lambda c: s.take(_list(c), _at(c) or 0), EXACT, "ONNX SequenceAt-11"),
    Sampling(_draw_at),
    Checks(breaks={"position-in-range": _beyond(_draw_at)}),
)
op(
    "SequenceErase",
    Evaluation(lambda c: [s.erase(_list(c), _at(c))], EXACT, "ONNX SequenceErase-11"),
    Sampling(_draw_erase),
    Checks(breaks={"position-in-range": _beyond(_draw_at)}),
)
op(
    "SequenceInsert",
    Evaluation(lambda c: [s.insert(_list(c), c.inputs["tensor"], _at(c))], EXACT, "ONNX SequenceInsert-11"),
    Sampling(_draw_insert),
    Checks(breaks={"position-in-range": _beyond(_draw_insert)}),
)
op(
    "SequenceLength",
    Evaluation(lambda c: np.array(len(_list(c)), np.int64), EXACT, "ONNX SequenceLength-11"),
    Sampling(lambda d: {"input_sequence": seq_of(d, d.types["S"])}),
)
op(
    "SequenceConstruct",
    Evaluation(lambda c: [list(c.inputs["inputs"])], EXACT, "ONNX SequenceConstruct-11"),
    Sampling(lambda d: {"inputs": [T(d.shape(0, 4)) for _ in range(d.int(1, 4))]}),
)
op(
    "SequenceEmpty",
    Evaluation(lambda c: [[]], EXACT, "ONNX SequenceEmpty-11"),
    Spelling(out_dtype=lambda c, i: c.attrs.get("dtype", F32)),
    Sampling(lambda d: {"dtype": d.pick(d.version.schema.dtypes("S"))} if d.bool() else {}),
)


def _split(c: Call) -> list:
    """Raises RuleError "split-rank", and what the parts raise."""
    sizes = c.inputs.get("split")
    if sizes is not None and sizes.ndim > 1:
        raise RuleError("split-rank", f"split has rank {sizes.ndim}: it is a scalar or a vector")
    how = None if sizes is None else int(sizes) if sizes.ndim == 0 else [int(v) for v in sizes]
    return [s.split(c.inputs["input"], how, int(c.attr("axis", 0)), bool(c.attr("keepdims", 1)))]


def _odd_split(d: Draw, shape: list[int], axis: int) -> dict[str, Any]:
    """Parts far longer than the axis, of which there is one; of no part, nothing; many."""
    out: dict[str, Any] = {"keepdims": 0} if d.bool() else {}
    how = d.int(0, 3)
    if how < 2:
        far = int_range(d.dtype("split"))[1]
        return {**out, "split": T((), values=[d.pick((far, far - shape[axis]))])}
    many = 0 if how == 2 or d.bool() else d.pick((17, 130, 300, 2100))
    shape = [many if k == axis % len(shape) else min(n, 2) for k, n in enumerate(shape)]
    return {**out, "input": T(shape), "split": T((many,), values=[1] * many)}


def _draw_split(d: Draw) -> dict:
    shape = d.shape(1, 4, lo=1)
    axis = d.axis(len(shape))
    n = shape[axis]
    out: dict[str, Any] = {"input": T(shape)}
    if axis != 0 or d.bool():
        out["axis"] = axis
    how = d.int(0, 2)
    if how and d.chance(16) and not d.breaking:
        return {**out, **_odd_split(d, list(shape), axis)}
    if how == 1:
        out["split"] = T((), values=[d.int(1, n + 1)])
    elif how == 2:
        cuts = sorted(d.int(1, n) for _ in range(d.int(0, 3)))
        edges = [0, *sorted({c for c in cuts if c < n}), n]
        sizes = [b - a for a, b in itertools.pairwise(edges)]
        out["split"] = T((len(sizes),), values=sizes)
    if d.bool():
        out["keepdims"] = d.int(0, 1)
    return out


def _axis_beyond(draw: Any, slot: str) -> Any:
    def fn(d: Draw) -> dict:
        out = draw(d)
        t = out[slot]
        rank = len((t.items[0] if t.items else t).shape) + out.get("new_axis", 0)
        return {**out, "axis": d.pick((rank, -rank - 1))}

    return fn


def _bad_sizes(*sizes: int) -> Any:
    return lambda d: {"input": T((4, *d.shape(0, 2))), "split": T((len(sizes),), values=list(sizes))}


op(
    "SplitToSequence",
    Evaluation(_split, EXACT, "ONNX SplitToSequence-11, -24"),
    Sampling(_draw_split),
    Checks(
        breaks={
            "axis-in-range": _axis_beyond(_draw_split, "input"),
            "sizes-sum": _bad_sizes(2, 3),
            "sizes-positive": _bad_sizes(5, -1),
        }
    ),
)


def _draw_join(d: Draw) -> dict:
    new = d.bool()
    shape = d.shape(0 if new else 1, 4)
    axis = d.int(-len(shape) - 1, len(shape)) if new else d.axis(len(shape))
    q = seq_of(d, d.types["S"], 1, shape)
    if not new:
        a = axis % len(shape)
        for t in q.items or ():
            t.shape = (*shape[:a], d.dim(1, 5), *shape[a + 1 :])
    out = {"input_sequence": q, "axis": axis}
    return {**out, "new_axis": int(new)} if new or d.bool() else out


def _unlike(d: Draw) -> dict:
    """Tensors that differ off the axis, or all over where the axis is new."""
    dtype, new, n = d.types["S"], d.int(0, 1), d.int(1, 3)
    items = [T((2, n), dtype=dtype), T((2, n + 1), dtype=dtype)]
    return {"input_sequence": T((), kind="seq", items=items, dtype=dtype), "axis": 0, "new_axis": new}


op(
    "ConcatFromSequence",
    Evaluation(
        lambda c: s.join(_list(c), int(c.attr("axis")), bool(c.attr("new_axis", 0))),
        EXACT,
        "ONNX ConcatFromSequence-11",
    ),
    Sampling(_draw_join),
    Checks(breaks={"axis-in-range": _axis_beyond(_draw_join, "input_sequence"), "shapes-agree": _unlike}),
)


# -- optionals


def _no_numbers(d: Draw, dtype: DType) -> T | None:
    """A tensor of floats with NaN at its ends."""
    if dtype.kind != "f" or dtype.bits < 16:
        return None
    return T((3,), values=[d.pick((float("nan"), 1.0)), 2.0, float("nan")], dtype=dtype)


def _element(d: Draw, dtype: DType) -> T:
    if d.chance(16) and (odd := _no_numbers(d, dtype)) is not None:
        return odd
    return seq_of(d, dtype, 1) if d.chance(3) else T(d.shape(0, 8 if d.chance(8) else 4), dtype=dtype)


def _draw_optional(d: Draw) -> dict:
    dtype = d.types["V"]
    if d.chance(3):
        name = dtype.name if d.bool() else f"seq({dtype.name})"
        return {"type": name}
    return {"input": _element(d, dtype)}


op("Optional", Evaluation(lambda c: [c.inputs.get("input")], EXACT, "ONNX Optional-15"), Sampling(_draw_optional))


def _held(d: Draw, empty: bool) -> dict:
    name = d.version.schema.input("input").element
    dtype = d.types.get(name, F32)
    newer = d.version.version >= 18
    if newer and d.bool():  # since 18 a tensor or a sequence is taken as it is
        return {"input": _element(d, dtype)}
    if empty and newer and d.chance(4):
        return {}
    items = [] if empty and d.chance(3) else [_element(d, dtype)]
    return {"input": T((), kind="optional", items=items, dtype=dtype)}


op(
    "OptionalGetElement",
    Evaluation(lambda c: [c.inputs["input"]], EXACT, "ONNX OptionalGetElement-15, -18"),
    Sampling(lambda d: _held(d, False)),
)
op(
    "OptionalHasElement",
    Evaluation(lambda c: np.array(c.inputs.get("input") is not None), EXACT, "ONNX OptionalHasElement-15, -18"),
    Sampling(lambda d: _held(d, True)),
)


def _draw_identity(d: Draw) -> dict:
    """Since 14 a sequence passes too, since 16 an optional."""
    dtype = d.types["V"]
    how = d.int(0, 5)
    if how == 0 and admits(d, "input", "seq({})", dtype):
        return {"input": seq_of(d, dtype)}
    if how == 1 and admits(d, "input", "optional({})", dtype):
        held = _element(d, dtype) if admits(d, "input", "optional(seq({}))", dtype) else T(d.shape(0, 4), dtype=dtype)
        return {"input": T((), kind="optional", items=[held], dtype=dtype)}
    odd = _no_numbers(d, dtype) if how == 2 and d.bool() else None
    return {"input": odd or T(d.shape(0), dtype=dtype)}


op(
    "Identity",
    Evaluation(lambda c: [c.inputs["input"]], EXACT, "ONNX Identity-14, -16"),
    Sampling(_draw_identity),
    since=14,
)


# -- SequenceMap


def _map(c: Call) -> list:
    """Raises RuleError "body-inputs", "body-outputs", "samples-agree"."""
    body = c.attrs["body"]
    more = c.inputs.get("additional_inputs") or []
    fits(body, 1 + len(more), c.n_outs)
    assert c.run is not None
    return s.mapped(_list(c), more, lambda row: c.run(body, row), len(body.outputs))


def _draw_map(d: Draw) -> dict:
    """A body of one or two nodes that every type can run, over one or two sequences and a plain tensor."""
    dtype = d.types["S"]
    q = seq_of(d, dtype, 1, d.shape(1, 3, lo=1))
    count = len(q.items or ())
    inputs = [("a", Arg(dtype, (-1,) * len((q.items or [T()])[0].shape)))]
    nodes: list[Node] = []
    outs: dict[str, str] = {}
    more: list[T] = []
    types = d.version.schema.dtypes("S")
    if d.bool():
        beside = d.pick((dtype, *types))
        other = T((), kind="seq", items=[T((3,), dtype=beside) for _ in range(count)], dtype=beside)
        more.append(other)
        inputs.append(("b", Arg(beside, (-1,))))
        nodes.append(Node("Concat", {"inputs": ["b", "b"]}, ["bb"], {"axis": 0}))
        outs["bb"] = beside.name
    plain = ("c", "d")[: d.int(0, 2)]
    beside = dtype
    shape: tuple[int, ...] = ()
    alike = len(plain) == 2 and d.chance(4)  # one tensor twice
    for name in plain:
        if not (alike and name == "d"):
            beside, shape = d.pick((dtype, *types)), d.shape(0, 8)
        more.append(T(shape, dtype=beside))
        inputs.append((name, Arg(beside, shape)))
        nodes.append(Node("Identity", {"input": name}, [2 * name], {}))
        outs[2 * name] = beside.name
    nodes.append(
        d.pick(
            (
                Node("Identity", {"input": "a"}, ["y"], {}),
                Node("Shape", {"data": "a"}, ["y"], {}),
                Node("Concat", {"inputs": ["a", "a"]}, ["y"], {"axis": -1}),
            )
        )
    )
    result = "i64" if nodes[-1].op == "Shape" else dtype.name
    body = Graph(inputs, nodes, ["y", *outs], meta={"out_types": {"y": result, **outs}})
    out: dict[str, Any] = {"input_sequence": q, "body": body, "@outs": 1 + len(outs)}
    if alike:
        at = len(more) - 2
        more[at + 1] = more[at]
        out[SAME] = {f"additional_inputs#{at + 1}": f"additional_inputs#{at}"}
    return {**out, "additional_inputs": more} if more else out


def _shorter(d: Draw) -> dict:
    """A second sequence with fewer samples."""
    dtype = d.types["S"]
    one, n = T((3,), dtype=dtype), d.int(2, 4)
    body = Graph(
        [("a", Arg(dtype, (3,))), ("b", Arg(dtype, (3,)))],
        [Node("Concat", {"inputs": ["a", "b"]}, ["y"], {"axis": 0})],
        ["y"],
        meta={"out_types": {"y": dtype.name}},
    )
    q, other = (T((), kind="seq", items=[one] * k, dtype=dtype) for k in (n, n - 1))
    return {"input_sequence": q, "additional_inputs": [other], "body": body}


def _unasked(d: Draw) -> dict:
    """An input that the body does not take."""
    out = _draw_map(d)
    return {**out, "additional_inputs": [*out.get("additional_inputs", []), T((2,), dtype=d.types["S"])]}


def _fewer(d: Draw) -> dict:
    """The body makes a value less than the node has results."""
    out = _draw_map(d)
    out["body"].outputs.pop()
    return out


op(
    "SequenceMap",
    Evaluation(_map, EXACT, "ONNX SequenceMap-17"),
    Sampling(_draw_map, even=True),
    Checks(breaks={"samples-agree": _shorter, "body-inputs": _unasked, "body-outputs": _fewer}),
)

__all__ = ["I64", "literal"]
