"""Normalisation written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _affine(d: Draw) -> dict[str, Any]:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, with gamma multiplied in first."""
    p = Program(d, F32)
    x = p.op("tanh", x=p.input((d.dim(1, 3), d.dim(2, 4), d.dim(2, 5)), "unit"))
    n = p.tensors[0].shape[-1]
    gamma, beta = p.const(p.weights((n,)) + 0.125), p.const(p.weights((n,)))
    axes = [-1]
    mean = p.op("reduce_mean", x=x, axes=axes, keep_dims=True)
    square = p.op("square", x=p.op("sub", x=x, y=mean))
    variance = p.op("reduce_mean", x=square, axes=axes, keep_dims=True)
    r = p.op("rsqrt", x=p.op("add", x=variance, y=0.125))
    scale = p.op("mul", x=r, y=gamma)
    y = p.op("add", x=p.op("mul", x=x, y=scale), y=p.op("sub", x=beta, y=p.op("mul", x=mean, y=scale)))
    return p.done(p.op("relu", x=y), pattern="match affine")


def _plain(d: Draw, axes: tuple[int, int] = (1, 1)) -> dict[str, Any]:
    """(x - mean) * rsqrt(mean((x - mean) ** 2) + epsilon) over the channels; near miss: two different axes."""
    p = Program(d, F32)
    x = p.op("tanh", x=p.input((d.dim(1, 2), d.dim(2, 4), 1, d.dim(2, 5)), "unit"))
    mean = p.op("reduce_mean", x=x, axes=[axes[0]], keep_dims=True)
    c = p.op("sub", x=x, y=mean)
    variance = p.op("reduce_mean", x=p.op("mul", x=c, y=c), axes=[axes[1]], keep_dims=True)
    y = p.op("mul", x=c, y=p.op("rsqrt", x=p.op("add", x=variance, y=0.125)))
    return p.done(p.op("relu", x=y), fires=axes[0] == axes[1], pattern="match channels" if axes[0] == axes[1] else "")


def _spellings(d: Draw) -> dict[str, Any]:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta over any axes, with gamma and beta of any shape that
    broadcasts: a number for a channel, a row, a column or all.  Nothing is promised of these."""
    p = Program(d, F32)
    shape = (d.dim(1, 2), d.dim(2, 3), d.dim(2, 4), d.dim(2, 5))[: d.int(2, 4)]
    r = len(shape)
    x = p.op("tanh", x=p.input(shape, "unit"))
    axes = d.pick(([-1], [r - 1], [-2, -1], list(range(2, r)) or [-1], [1], list(range(1, r)), [1, -1], [0]))
    axes = list({a % r: a for a in axes}.values())
    mean = p.op("reduce_mean", x=x, axes=axes, keep_dims=True)
    c = p.op("sub", x=x, y=mean)
    square = p.op("square", x=c) if d.bool() else p.op("mul", x=c, y=c)
    variance = p.op("add", x=p.op("reduce_mean", x=square, axes=axes, keep_dims=True), y=0.125)
    plain = (
        p.op("mul", x=c, y=p.op("rsqrt", x=variance)) if d.bool() else p.op("real_div", x=c, y=p.op("sqrt", x=variance))
    )
    which = d.pick(("normalised axes", "channel", "one", "row", "broadcast"))
    dims = {
        "normalised axes": tuple(shape[k] for k in sorted(a % r for a in axes)),
        "channel": tuple(n if k == 1 else 1 for k, n in enumerate(shape)),
        "one": (1,) * d.int(0, r),
        "row": tuple(n if k == r - 2 else 1 for k, n in enumerate(shape)),
        "broadcast": d.broadcast_from(shape),
    }[which]
    try:
        fits = np.broadcast_shapes(dims, shape) == shape
    except ValueError:
        fits = False
    dims = dims if fits else ()
    gamma, beta = p.const(p.weights(dims) + 0.125), p.const(p.weights(dims))
    y = p.op("mul", x=gamma, y=plain) if d.bool() else p.op("mul", x=plain, y=gamma)
    if d.int(0, 3):
        y = p.op("add", x=y, y=beta) if d.bool() else p.op("add", x=beta, y=y)
    return p.done(p.op("relu", x=y), fires=None, pattern=f"open {which}")


declare("fuse_layernorm_or_instancenorm", _affine, _plain, lambda d: _plain(d, (1, 3)), _spellings)
