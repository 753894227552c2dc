"""Constants folded into convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _conv(
    p: Program, d: Draw, transposed: bool | None = None, bias: bool | None = None, groups: int | None = None
) -> tuple[str, int]:
    """A convolution or transposed one over a fresh input: its result and number of channels."""
    transposed = d.chance(3) if transposed is None else transposed
    groups = d.pick((1, 1, 2, 3)) if groups is None else groups
    c, m = groups * d.dim(1, 3), groups * d.dim(1, 3)
    k = (d.int(1, 3), d.int(1, 3))
    x = p.input((d.dim(1, 2), c, d.int(3, 6), d.int(3, 6)))
    w = p.weights((c, m // groups, *k) if transposed else (m, c // groups, *k))
    args: dict[str, Any] = {"x": x, "weight": w, "groups": groups, "pad_type": "valid"}
    if d.bool():
        args["strides"] = [d.int(1, 2), d.int(1, 2)]
    if d.bool() if bias is None else bias:
        args["bias"] = p.weights((m,))
    return p.op("conv_transpose" if transposed else "conv", **args), m


def _bn(p: Program, d: Draw, x: str, m: int) -> str:
    args: dict[str, Any] = {
        "x": x,
        "mean": p.weights((m,)),
        "variance": np.abs(p.weights((m,))) + 0.5,
        "epsilon": 1e-3 if d.bool() else 1e-2,
    }
    if d.bool():
        args["gamma"] = p.weights((m,)) + 0.125
    if d.bool():
        args["beta"] = p.weights((m,))
    return p.op("batch_norm", **args)


def normalised(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, m = _conv(p, d)
    return p.done(p.op("relu", x=_bn(p, d, y, m)))


def _shared(d: Draw) -> dict[str, Any]:
    """The convolution has a second user, is an output itself, or something stands between."""
    p = Program(d, F32)
    y, m = _conv(p, d)
    kind = d.pick(("second user", "output", "between"))
    z = _bn(p, d, p.op("relu", x=y) if kind == "between" else y, m)
    outs = {"second user": [p.op("relu", x=z), p.op("abs", x=y)], "output": [p.op("relu", x=z), y], "between": [z]}[
        kind
    ]
    return p.done(*outs, fires=False, pattern=f"near miss {kind}")


declare("fuse_conv_batchnorm", normalised, normalised, _shared, merges=True)


def _beside(op: str, other: str) -> Any:
    """A constant beside a convolution in either order and in all shapes that broadcast.  Nothing is promised."""

    def make(d: Draw) -> dict[str, Any]:
        p = Program(d, F32)
        y, m = _conv(p, d)
        shape = d.pick(((1, m, 1, 1), (m, 1, 1), (1,), (), (1, 1, 1), (1, 1, 1, 1)))
        c = p.const(p.weights(shape, 1, 7))
        how = d.pick((op, other))
        z = p.op(how, x=c, y=y) if d.bool() else p.op(how, x=y, y=c)
        return p.done(p.op("relu", x=z), fires=None, pattern=f"open {how}")

    return make


def _per_channel(p: Program, m: int) -> np.ndarray:
    return p.weights((1, m, 1, 1))


def biased(d: Draw) -> dict[str, Any]:
    """The docstring promises a subtraction only with the constant on the right of it."""
    p = Program(d, F32)
    kind = d.pick(("add", "constant on the left", "sub"))
    y, m = _conv(p, d)
    c = p.const(_per_channel(p, m))
    z = {
        "add": lambda: p.op("add", x=y, y=c),
        "constant on the left": lambda: p.op("add", x=c, y=y),
        "sub": lambda: p.op("sub", x=y, y=c),
    }[kind]()
    return p.done(p.op("relu", x=z), pattern=f"match {kind}")


def _biased_from(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, m = _conv(p, d)
    z = p.op("sub", x=p.const(_per_channel(p, m)), y=y)
    return p.done(p.op("relu", x=z), fires=False, pattern="near miss sub from the constant")


def _not_per_channel(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, m = _conv(p, d)
    if d.bool():
        z = p.op("add", x=y, y=p.op("reduce_sum", x=y, axes=[2, 3], keep_dims=True))
        return p.done(z, fires=False, pattern="near miss not constant")
    return p.done(p.op("add", x=y, y=_per_channel(p, m)), y, fires=False, pattern="near miss output")


declare("fuse_conv_bias", biased, biased, _biased_from, _not_per_channel, _beside("add", "sub"))


def scaled(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, m = _conv(p, d)
    whole = d.bool()
    c = p.const(d.pick((0.5, -2.0, 3.0)) if whole else _per_channel(p, m) + 0.125)
    kind = d.pick(("mul", "constant on the left", "real_div"))
    z = {
        "mul": lambda: p.op("mul", x=y, y=c),
        "constant on the left": lambda: p.op("mul", x=c, y=y),
        "real_div": lambda: p.op("real_div", x=y, y=c),
    }[kind]()
    return p.done(p.op("relu", x=z), pattern=f"match {kind}" + (" by a scalar" if whole else ""))


def _divided(d: Draw) -> dict[str, Any]:
    """A constant divided by the convolution, or a scale over the wrong axis."""
    p = Program(d, F32)
    y, _ = _conv(p, d, transposed=False)
    if d.bool():
        z = p.op("real_div", x=p.const(2.0), y=p.op("add", x=p.op("square", x=y), y=1.0))
        return p.done(z, fires=False, pattern="near miss divisor")
    return p.done(p.op("relu", x=p.op("mul", x=y, y=2.0)), y, fires=False, pattern="near miss output")


declare("fuse_conv_scale", scaled, scaled, _divided, _beside("mul", "real_div"), merges=True)


def _ambiguous_extent(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, _ = _conv(p, d, transposed=True)
    return p.done(p.op("relu", x=y))


def _plain_conv(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y, _ = _conv(p, d, transposed=False)
    return p.done(p.op("relu", x=y), fires=False)


declare("add_conv_transpose_output_shape", _ambiguous_extent, _plain_conv)


def _one_dimensional(d: Draw, wrong: bool = False) -> dict[str, Any]:
    """A convolution over one axis put into two: with another extent than 1 there is nothing to take out."""
    p = Program(d, F32)
    c, m, k = d.int(1, 3), d.int(1, 3), d.int(1, 3)
    x = p.op("relu", x=p.input((d.dim(1, 2), c, d.dim(k, 6))))
    y = p.op("expand_dims", x=x, axes=[-2 if d.bool() else 2])
    pad = [1, 1, 0, 0] if wrong else [0, 0, d.int(0, 1), d.int(0, 1)]
    y = p.op(
        "conv",
        x=y,
        weight=p.const(p.weights((m, c, 1, k))),
        pad_type="custom",
        pad=pad,
        strides=[1, d.int(1, 2)],
        dilations=[1, 1],
        groups=1,
    )
    if wrong:
        return p.done(p.op("relu", x=p.op("reduce_sum", x=y, axes=[2], keep_dims=False)), fires=False)
    return p.done(p.op("relu", x=p.op("squeeze", x=y, axes=[-2 if d.bool() else 2])))


declare("compose_conv1d", _one_dimensional, lambda d: _one_dimensional(d, True))


def _padded(d: Draw, between: bool = False) -> dict[str, Any]:
    """Zeros put around data with channels last; near miss: another op between."""
    p = Program(d, F32)
    c, m = d.int(1, 3), d.int(1, 3)
    x = p.op("relu", x=p.input((d.dim(1, 2), d.dim(3, 5), d.dim(3, 5), c)))
    pad = [0, 0, d.int(1, 2), d.int(0, 2), d.int(0, 2), d.int(0, 2), 0, 0]
    y = p.op("pad", x=x, pad=pad, mode="constant", constant_val=0.0)
    y = p.op("transpose", x=y, perm=[0, 3, 1, 2])
    if between:
        y = p.op("tanh", x=y)
    y = p.op(
        "conv",
        x=y,
        weight=p.const(p.weights((m, c, 2, 2))),
        pad_type="valid",
        strides=[1, 1],
        dilations=[1, 1],
        groups=1,
    )
    return p.done(p.op("relu", x=y), fires=not between)


declare("fuse_pad_conv", _padded, lambda d: _padded(d, True))


def _spread(d: Draw, kind: str = "valid") -> dict[str, Any]:
    """A dilated convolution as TensorFlow writes it.  near misses: a stride inside, a crop without padding."""
    p = Program(d, F32)
    c, m, b = d.int(1, 2), d.int(1, 2), d.int(2, 3)
    k = (d.int(1, 2), d.int(1, 3))
    n = [b * d.int(k[i] + 1, k[i] + 2) for i in (0, 1)]
    x = p.op("relu", x=p.input((d.dim(1, 2), c, *n)))
    y = p.op("space_to_batch", x=x, block_shape=[b, b], paddings=[[0, 0], [0, 0]])
    strides = [2, 2] if kind == "stride" else [1, 1]
    y = p.op(
        "conv",
        x=y,
        weight=p.const(p.weights((m, c, *k))),
        pad_type="valid",
        strides=strides,
        dilations=[1, 1],
        groups=1,
    )
    y = p.op("batch_to_space", x=y, block_shape=[b, b], crops=[[0, 1 if kind == "crop" else 0], [0, 0]])
    return p.done(p.op("relu", x=y), fires=kind == "valid", pattern="" if kind == "valid" else f"near miss {kind}")


declare("fuse_dilated_conv", _spread, lambda d: _spread(d, d.pick(("stride", "crop"))))
