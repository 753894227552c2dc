"""What has no effect, is known beforehand, or is there twice."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I32
from harness.core.instance import Arg, Graph, Node
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program

# -- noop_elimination


def noop(d: Draw) -> dict[str, Any]:
    """Every op that the pass knows, with the one parameter that makes it do nothing."""
    p = Program(d)
    shape = (d.dim(1, 3), d.dim(1, 3), d.dim(1, 5), d.dim(1, 5))
    x = p.op("relu", x=p.input(shape))
    kind = d.pick(
        (
            "identity",
            "add",
            "sub",
            "mul",
            "real_div",
            "pow",
            "reshape",
            "transpose",
            "tile",
            "pad",
            "slice_by_index",
            "slice_by_size",
            "crop",
            "upsample_nearest_neighbor",
            "linear_activation",
            "floor_div",
        )
    )
    zero, one = p.const(0.0), p.const(1.0)
    make = {
        "identity": lambda: p.op("identity", x=x),
        "add": lambda: p.op("add", x=x, y=zero),
        "sub": lambda: p.op("sub", x=x, y=zero),
        "mul": lambda: p.op("mul", x=x, y=one),
        "real_div": lambda: p.op("real_div", x=x, y=one),
        "pow": lambda: p.op("pow", x=x, y=one),
        "floor_div": lambda: p.op("floor_div", x=p.op("floor", x=x), y=one),
        "reshape": lambda: p.op("reshape", x=x, shape=list(shape)),
        "transpose": lambda: p.op("transpose", x=x, perm=[0, 1, 2, 3]),
        "tile": lambda: p.op("tile", x=x, reps=[1] * 4),
        "pad": lambda: p.op("pad", x=x, pad=[0] * 8),
        "crop": lambda: p.op("crop", x=x, crop_height=[0, 0], crop_width=[0, 0]),
        "slice_by_index": lambda: p.op("slice_by_index", x=x, begin=[0] * 4, end=list(shape)),
        "slice_by_size": lambda: p.op("slice_by_size", x=x, begin=[0] * 4, size=list(shape)),
        "upsample_nearest_neighbor": lambda: p.op(
            "upsample_nearest_neighbor", x=x, scale_factor_height=1, scale_factor_width=1
        ),
        "linear_activation": lambda: p.op("linear_activation", x=x, alpha=one, beta=zero),
    }[kind]
    return p.done(p.op("abs", x=make()), pattern=f"match {kind}")


def _almost_noop(d: Draw) -> dict[str, Any]:
    """One number away from nothing, or nothing to x but a wider result."""
    p = Program(d)
    shape = (d.dim(2, 3), d.dim(2, 4))
    x = p.op("relu", x=p.input(shape))
    kind = d.pick(("add", "sub", "mul", "constant on the left", "broadcast", "transpose", "pad", "tile"))
    y = {
        "add": lambda: p.op("add", x=x, y=0.5),
        "sub": lambda: p.op("sub", x=p.const(0.0), y=x),
        "mul": lambda: p.op("mul", x=x, y=-1.0),
        "constant on the left": lambda: p.op("real_div", x=p.const(1.0), y=x),
        "broadcast": lambda: p.op("add", x=x, y=np.zeros((3, *shape))),
        "transpose": lambda: p.op("transpose", x=x, perm=[1, 0]),
        "pad": lambda: p.op("pad", x=x, pad=[0, 0, 0, 1]),
        "tile": lambda: p.op("tile", x=x, reps=[1, 2]),
    }[kind]()
    return p.done(p.op("abs", x=y), fires=False, pattern=f"near miss {kind}")


declare("noop_elimination", noop, _almost_noop)


# -- const_elimination


def known(d: Draw, limit: int | None = None) -> dict[str, Any]:
    """limit: how many elements less than there are ``skip_const_by_size`` lets through."""
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    a, b = p.const(p.weights(shape)), p.const(p.weights(shape) + 5)
    y = p.op(d.pick(("add", "mul", "sub", "maximum", "real_div")), x=a, y=b)
    if d.bool():
        y = p.op(d.pick(("relu", "abs", "square")), x=y)
    y = p.op("add", x=p.input(shape), y=y)
    if limit is None:
        return p.done(y)
    told = {"skip_const_by_size": str(prod(shape) - limit)}  # "have larger number of elements than a threshold"
    return p.done(
        y,
        fires=not limit,
        pattern="near miss large" if limit else "match at the limit",
        options={"const_elimination": told},
    )


def _unknown(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    y = p.op("mul", x=p.input(shape), y=p.const(p.weights(shape)))
    return p.done(p.op("add", x=y, y=1.0), fires=False)


def _limited(d: Draw) -> dict[str, Any]:
    return known(d, d.int(0, 1))


declare("const_elimination", known, _unknown, _limited)


# -- dead_code_elimination, const_deduplication, remove_redundant_ops, topological_reorder


def dead(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    x = p.input(shape)
    unused = p.op("exp", x=x)
    if d.bool():
        p.op("add", x=unused, y=1.0)
    return p.done(p.op("relu", x=x))


def _alive(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.op("square", x=p.input(d.shape(1, 3, lo=1)))
    return p.done(p.op("relu", x=x), x, fires=False)


declare("dead_code_elimination", dead, _alive)


def twice(d: Draw) -> dict[str, Any]:
    """Two ops of one type over the same operands; from the second on the users may differ."""
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    x, kind = p.input(shape), d.pick(("relu", "add", "transpose", "reduce_sum"))
    forms: dict[str, dict[str, Any]] = {
        "relu": {},
        "add": {"y": 1.5},
        "transpose": {"perm": list(range(len(shape)))[::-1]},
        "reduce_sum": {"axes": [0], "keep_dims": True},
    }
    args = forms[kind]
    a, b = p.op(kind, x=x, **args), p.op(kind, x=x, **args)
    return p.done(p.op("abs", x=a), p.op("square", x=b), pattern=f"match {kind}")


def _similar(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.input(d.shape(2, 3, lo=1))
    a, b = p.op("add", x=x, y=1.0), p.op("add", x=x, y=1.25)
    return p.done(p.op("abs", x=a), p.op("square", x=b), fires=False)


declare("remove_redundant_ops", twice, _similar)


def _late(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.input((d.dim(1, 4), d.dim(1, 4)))
    moved = p.op("transpose", x=x, perm=[1, 0])
    other = p.op("square", x=p.op("relu", x=x))
    return p.done(p.op("abs", x=other), p.op("abs", x=moved))


def _in_place(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.input((d.dim(1, 4), d.dim(1, 4)))
    return p.done(p.op("abs", x=p.op("transpose", x=p.op("relu", x=x), perm=[1, 0])), fires=False)


declare("topological_reorder", _late, _in_place)


# -- fuse_reduce_mean


def _mean(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    shape = (d.dim(1, 3), d.dim(2, 5), d.dim(2, 5))
    axes = d.pick(([-1, -2], [1, 2], [2], [1]))
    n = prod(shape[a] for a in axes)
    total = p.op("reduce_sum", x=p.input(shape), axes=axes, keep_dims=d.bool())
    if d.bool():
        y = p.op("real_div", x=total, y=float(n))
    else:
        y = p.op("mul", x=total, y=1.0 / n) if d.bool() else p.op("mul", x=p.const(1.0 / n), y=total)
    return p.done(p.op("relu", x=y))


def _other_count(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    total = p.op("reduce_sum", x=p.input((2, 3, 4)), axes=[2], keep_dims=True)
    y = d.pick(
        (
            lambda: p.op("real_div", x=total, y=5.0),
            lambda: p.op("real_div", x=p.const(4.0), y=total),
            lambda: p.op("mul", x=total, y=4.0),
        )
    )()
    return p.done(p.op("relu", x=y), fires=False)


declare("fuse_reduce_mean", _mean, _other_count)


# -- loop_invariant_elimination


def _loop(d: Draw, keep: bool) -> dict[str, Any]:
    p = Program(d, F32)
    shape = d.shape(1, 5, lo=1)
    i = p.const([d.int(0, 1)]) if d.chance(4) else p.input((1,), "ints:0:1", I32)
    acc = p.input(shape)
    extra = p.op("abs", x=acc) if d.chance(4) else p.input(shape)
    inputs = [("i", Arg(I32, (1,))), ("acc", Arg(F32, shape)), ("k", Arg(F32, shape))]
    test = Graph(
        inputs,
        [Node("squeeze", {"x": "i"}, ["s"]), Node("less", {"x": "s", "y": "n"}, ["go"])],
        ["go"],
        {"n": np.array(d.int(1, 4), np.int32)},
    )
    nodes = [Node("add", {"x": "i", "y": "one"}, ["i1"]), Node("add", {"x": "acc", "y": "k"}, ["a1"])]
    if not keep:
        nodes.append(Node("mul", {"x": "k", "y": "half"}, ["k1"]))
    body = Graph(
        inputs,
        nodes,
        ["i1", "a1", "k" if keep else "k1"],
        {"one": np.array(1, np.int32), "half": np.array(0.5, np.float32)},
    )
    outs = p.op("while_loop", outs=3, loop_vars=(i, acc, extra), _cond=test, _body=body)
    return p.done(p.op("relu", x=outs[1]), fires=keep)


declare("loop_invariant_elimination", lambda d: _loop(d, True), lambda d: _loop(d, False))
