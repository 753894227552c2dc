"""Programs with extents that are known only when they run.  They are judged at the extents of the instance."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.core.dtypes import F32, I32
from harness.core.instance import Graph, Node
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _extent(p: Program, shape: str, axis: int) -> str:
    """The extent of an axis, as a vector of one."""
    return p.op("slice_by_index", x=shape, begin=[axis], end=[axis + 1])


def reshape(d: Draw) -> dict[str, Any]:
    """A target of which one extent is a symbol: that of the input, or what two of them make."""
    p = Program(d, F32)
    n, m = d.dim(1, 4), d.dim(1, 3)
    kind = d.pick(("one", "moved", "product"))
    x = p.input((n, m, 4), symbols=("n", "m" if kind == "product" else "", ""))
    s = p.op("shape", x=p.op("relu", x=x))
    if kind == "product":
        parts: tuple[Any, ...] = (p.op("mul", x=_extent(p, s, 0), y=_extent(p, s, 1)), p.const([2, 2]))
    elif kind == "moved":
        parts = (p.const([m * 2]), _extent(p, s, 0), p.const([2]))
    else:
        parts = (_extent(p, s, 0), p.const([2, m * 2]))
    y = p.op("reshape", x=x, shape=p.op("concat", values=parts, axis=0))
    return p.done(p.op("abs", x=y), pattern=f"match {kind}")


def _no_symbol(d: Draw) -> dict[str, Any]:
    """Two symbols in the target, a target that is an input, or one without symbols."""
    p = Program(d, F32)
    n, m = d.dim(1, 4), d.dim(1, 3)
    kind = d.pick(("two", "run time", "constant"))
    x = p.input((n, m, 4), symbols=("n", "m" if kind == "two" else "", ""))
    if kind == "two":
        s = p.op("shape", x=x)
        to = p.op("concat", values=(_extent(p, s, 1), _extent(p, s, 0), p.const([2, 2])), axis=0)
    elif kind == "run time":
        to = p.op("mul", x=p.input((2,), "ints:1:1", I32), y=np.array([n * m, 4], np.int32))
    else:
        to = p.const([-1, m * 2, 2])
    return p.done(p.op("abs", x=p.op("reshape", x=x, shape=to)), fires=False, pattern=f"near miss {kind}")


declare("remove_symbolic_reshape", reshape, reshape, _no_symbol, watch="symbolic reshapes")


_MATERIALIZE = "materialize_symbolic_shape_program"


def _options(*inputs: str) -> dict[str, Any]:
    return {_MATERIALIZE: {"function_name_to_materialization_map": {"fixed": dict.fromkeys(inputs, "@shape")}}}


def _materialized(d: Draw) -> dict[str, Any]:
    """The function made for the instance's extents computes what the one with symbols did."""
    p = Program(d, F32)
    n, m = d.dim(1, 4), d.dim(1, 4)
    kind = d.pick(("elementwise", "shape", "shared symbol", "list", "branches"))
    x = p.input((n, m, 4), symbols=("n", d.pick(("m", "")), ""))
    named = [x]
    y = p.op("relu", x=p.op("add", x=x, y=p.weights((4,))))
    if kind == "shape":
        to = p.op("concat", values=(_extent(p, p.op("shape", x=y), 0), p.const([-1, 2])), axis=0)
        y = p.op("reshape", x=y, shape=to)
    elif kind == "shared symbol":
        z = p.input((n, 1, 4), symbols=("n", "", ""))
        named += [z] if d.bool() else []
        y = p.op("sub", x=y, y=z)
    elif kind == "list":
        a, b = p.op("split", outs=2, x=y, num_splits=2, axis=2)
        y = p.op("concat", values=(b, a, b), axis=2)
    elif kind == "branches":
        y = _cond(p, y)
    return p.done(p.op("abs", x=y), pattern=f"match {kind}", options=_options(*named), function="fixed")


def _cond(p: Program, y: str) -> str:
    go = p.input((1,), "ints:0:1", I32)
    test = p.op("squeeze", x=p.op("greater", x=go, y=np.array([0], np.int32)))
    inside = [Graph([], [Node(op, {"x": y}, [f"in_{op}"])], [f"in_{op}"]) for op in ("abs", "square")]
    return p.op("cond", pred=test, _true_fn=inside[0], _false_fn=inside[1])


def _fixed(d: Draw) -> dict[str, Any]:
    """No symbol: the new function has the shapes of the old one."""
    p = Program(d, F32)
    shape = (d.dim(1, 3), d.dim(1, 4))
    x = p.input(shape)
    y = p.op("reshape", x=p.op("relu", x=x), shape=[prod(shape)])
    return p.done(y, fires=False, options=_options(x), function="fixed")


declare(_MATERIALIZE, _materialized, _materialized, _fixed, watch="symbols")
