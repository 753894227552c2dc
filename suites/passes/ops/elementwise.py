"""Arithmetic with constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def divided(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(1, 4, lo=1)
    by = d.pick((2.0, 3.0, -0.75, 7.0, 1.0)) if d.bool() else p.weights(shape) + 5
    return p.done(p.op("relu", x=p.op("real_div", x=p.input(shape), y=by)))


def _not_constant(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    if d.bool():
        y = p.op("real_div", x=p.const(3.0), y=p.op("add", x=p.op("square", x=p.input(shape)), y=1.0))
    else:
        y = p.op("real_div", x=p.input(shape), y=p.op("add", x=p.op("square", x=p.input(shape)), y=1.0))
    return p.done(p.op("relu", x=y), fires=False)


declare("divide_to_multiply", divided, divided, _not_constant)


def scale_shift(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    c = d.int(2, 4)
    shape = (1, c, 1, 1) if d.bool() else (c, 1, 1)
    y = p.op("mul", x=p.input((d.dim(1, 3), c, d.dim(1, 4), d.dim(1, 4))), y=p.weights(shape))
    return p.done(p.op("relu", x=p.op("add", x=y, y=p.weights(shape))))


def _scale_elsewhere(d: Draw) -> dict[str, Any]:
    """A scale over another axis, a widening constant, or the product needed elsewhere."""
    p = Program(d, F32)
    kind = d.pick(("axis", "widening", "second user"))
    x = p.input((1, 1 if kind == "widening" else 3, 3, 4))
    shape = {"axis": (1, 1, 3, 1), "widening": (1, 3, 1, 1), "second user": (1, 3, 1, 1)}[kind]
    y = p.op("mul", x=x, y=p.weights(shape))
    z = p.op("relu", x=p.op("add", x=y, y=p.weights(shape)))
    return p.done(z, *([p.op("abs", x=y)] if kind == "second user" else []), fires=False, pattern=f"near miss {kind}")


declare("fuse_elementwise_to_batchnorm", scale_shift, _scale_elsewhere)


def _chosen(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    shape = d.shape(1, 3, lo=1)
    a, b = p.input(shape), p.input(shape)
    cond = np.bool_(d.bool()) if d.bool() else np.full(shape, d.bool())
    return p.done(p.op("relu", x=p.op("select", cond=p.const(cond, BOOL), a=a, b=b)), pattern="match uniform")


def _masked(d: Draw) -> dict[str, Any]:
    """An infinity where the mask says so; the data may be infinite of the other sign, where adding is not choosing."""
    p = Program(d, F32)
    shape = (d.int(2, 4), d.int(2, 4))
    n = shape[0] * shape[1]
    cond = np.array([k % 2 == 0 for k in range(n)]).reshape(shape)
    inf = d.pick((float("inf"), float("-inf")))
    y = p.op("select", cond=p.const(cond, BOOL), a=np.full(shape, inf), b=p.input(shape))
    return p.done(p.op("tanh", x=y), pattern="match infinity")


def _mixed(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    cond = np.array([True, False, True])
    return p.done(
        p.op("relu", x=p.op("select", cond=p.const(cond, BOOL), a=p.input((3,)), b=p.input((3,)))), fires=False
    )


declare("select_optimization", _chosen, _masked, _mixed)
