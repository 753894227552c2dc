"""What the pipelines of the back ends run after all others (namespaces mil_backend and nn_backend)."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program

# -- fuse_pow2_sqrt: pow(x, 2) and sqrt, in either order, to x


def _root_of_square(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.input(d.shape(1, 3, lo=1), d.pick(("positive", "uniform:-4:4")))
    if d.bool():
        y, kind = p.op("sqrt", x=p.op("pow", x=x, y=2.0)), "root"
    else:
        y, kind = p.op("pow", x=p.op("sqrt", x=x), y=2.0), "square"
    return p.done(p.op("add", x=y, y=1.0), pattern=f"match {kind}")


def _other_powers(d: Draw) -> dict[str, Any]:
    """Another exponent, the square needed elsewhere, another function between."""
    p = Program(d, F32)
    kind = d.pick(("exponent", "second user", "between"))
    y = p.op("pow", x=p.input(d.shape(1, 3, lo=1), "positive"), y=4.0 if kind == "exponent" else 2.0)
    z = p.op("sqrt", x=p.op("abs", x=y) if kind == "between" else y)
    more = [p.op("relu", x=y)] if kind == "second user" else []
    return p.done(p.op("add", x=z, y=1.0), *more, fires=False, pattern=f"near miss {kind}")


declare("fuse_pow2_sqrt", _root_of_square, _root_of_square, _other_powers)

# -- fuse_activation_silu: x * sigmoid(x)


def _gated(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.op("abs", x=p.input(d.shape(1, 3, lo=1))) if d.bool() else p.input(d.shape(1, 3, lo=1))
    gate = p.op("sigmoid", x=x)
    y = p.op("mul", x=x, y=gate) if d.bool() else p.op("mul", x=gate, y=x)
    return p.done(p.op("relu", x=y))


def _other_gates(d: Draw) -> dict[str, Any]:
    """The gate of another value, needed elsewhere, or added."""
    p = Program(d)
    shape = d.shape(1, 3, lo=1)
    kind = d.pick(("other", "second user", "sum"))
    x = p.input(shape)
    gate = p.op("sigmoid", x=p.input(shape) if kind == "other" else x)
    y = p.op("add" if kind == "sum" else "mul", x=x, y=gate)
    more = [p.op("abs", x=gate)] if kind == "second user" else []
    return p.done(p.op("relu", x=y), *more, fires=False, pattern=f"near miss {kind}")


declare("fuse_activation_silu", _gated, _gated, _other_gates)

# -- decompose_conv1d: a convolution of one dimension as one of two, between expand_dims and squeeze


def _convolved(d: Draw, rank: int) -> dict[str, Any]:
    p = Program(d, F32)
    space, groups = [d.dim(3, 7) for _ in range(rank - 2)], d.pick((1, 2))
    kernel = [d.int(1, 3) for _ in space]
    x = p.input((d.dim(1, 2), 2, *space))
    more: dict[str, Any] = {"bias": p.weights((4,))} if d.bool() else {}
    if d.bool():
        more["strides"] = [d.int(1, 2) for _ in space]
    if d.bool():
        more["dilations"] = [d.int(1, 2) if k == 1 or n > 2 * (k - 1) else 1 for k, n in zip(kernel, space)]
    pad = d.pick(("valid", "same", "custom"))
    if pad == "custom":
        more["pad"] = [d.int(0, 2) for _ in range(2 * len(space))]
    y = p.op("conv", x=x, weight=p.weights((4, 2 // groups, *kernel)), pad_type=pad, groups=groups, **more)
    return p.done(p.op("relu", x=y), fires=rank == 3, pattern="match" if rank == 3 else f"near miss rank {rank}")


declare("decompose_conv1d", *(lambda d: _convolved(d, 3) for _ in range(2)), lambda d: _convolved(d, d.int(4, 5)))

# -- handle_unused_inputs: an input that nothing reads is read by an identity


def _unread(d: Draw, fires: bool) -> dict[str, Any]:
    p = Program(d, F32)
    shape = d.shape(1, 3, lo=1)
    x, y = p.input(shape), p.input(shape)
    z = p.op("abs", x=x) if fires else p.op("add", x=x, y=y)
    return p.done(p.op("relu", x=z), fires=fires)


declare("handle_unused_inputs", lambda d: _unread(d, True), lambda d: _unread(d, False))

# -- sanitize_name_strings: [a-zA-Z_][a-zA-Z0-9_]*


def _odd_names(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y = p.op("relu", x=p.input(d.shape(1, 2, lo=1)))
    z = p.op("abs", x=y)
    fires = d.int(0, 2) > 0
    names = {y: d.pick(("a.b", "1st", "x/y", "a-b", "layer:0")) if fires else "plain_1", z: "out"}
    return p.done(z, names=names, fires=fires)


declare("sanitize_name_strings", _odd_names, watch="identifiers")
