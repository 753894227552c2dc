"""add_fp16_cast: the whole program in fp16, judged by roundings to fp16; and the pipelines that every conversion
runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.ops import (
    activation,
    cleanup,
    constants,
    conv,
    elementwise,
    integers,
    linear,
    repeat,
    symbols,
    weights,
)
from suites.passes.program import Program

_SMOOTH = ("relu", "tanh", "sigmoid", "abs", "square", "sqrt", "leaky_relu", "softplus", "gelu")


def _chain(d: Draw) -> dict[str, Any]:
    """A few ops in f32 over moderate data; no result is near the ends of fp16."""
    p = Program(d, F32)
    shape = (d.dim(1, 3), d.dim(1, 4))
    y = p.input(shape, "uniform:-2:2")
    for _ in range(d.int(1, 3)):
        kind = d.pick((*_SMOOTH, "add", "mul", "matmul", "softmax"))
        if kind in ("add", "mul"):
            y = p.op(kind, x=y, y=p.weights((shape[1],)) + 0.125)
        elif kind == "matmul":
            m = d.dim(1, 4)
            y = p.op("matmul", x=y, y=p.weights((shape[1], m)), transpose_x=False, transpose_y=False)
            shape = (shape[0], m)
        elif kind == "sqrt":
            y = p.op("sqrt", x=p.op("add", x=p.op("square", x=y), y=1.0))
        elif kind == "leaky_relu":
            y = p.op("leaky_relu", x=y, alpha=0.25)
        elif kind == "gelu":
            y = p.op("gelu", x=y, mode="EXACT")
        else:
            y = p.op(kind, x=y)
    return p.done(y)


def _integers(d: Draw) -> dict[str, Any]:
    """Nothing in it is f32."""
    from harness.core.dtypes import I32

    p = Program(d, F32)
    x = p.input(d.shape(1, 3, lo=1), "small", I32)
    return p.done(p.op("add", x=x, y=np.int32(3)), fires=False)


def _skipping(d: Draw) -> dict[str, Any]:
    """Types of ops that keep f32: some of them, or all there are."""
    out = _chain(d)
    kinds = sorted({n.op for n in out["program"].nodes})
    skipped = kinds if d.bool() else d.subset(kinds, 1)
    out["program"].meta["options"] = {"add_fp16_cast": {"skip_ops_by_type": ",".join(skipped)}}
    out["program"].meta["fires"] = len(skipped) < len(kinds)
    return {**out, "pattern": "match some" if len(skipped) < len(kinds) else "near miss skipped"}


declare("add_fp16_cast", _chain, _chain, _integers, _skipping, narrow=True)


def _any(d: Draw) -> dict[str, Any]:
    """Any family's program: whatever the pipeline makes of it, it computes the same.  Conversion also turns f32 into
    fp16.
    """
    makes = [
        cleanup.noop,
        cleanup.known,
        cleanup.twice,
        conv.normalised,
        conv.biased,
        conv.scaled,
        activation.gelu_exact,
        activation.leaky,
        repeat.transposes,
        repeat.reshapes,
        repeat.pads,
        elementwise.divided,
        elementwise.scale_shift,
        linear.linear,
        linear.product,
        linear.turned,
        linear.dynamic,
        symbols.reshape,
        _chain,
    ]
    if d.opset not in ("ios13", "ios15"):
        makes += [constants.draw_compressed, weights.folded]
    if d.opset in ("ios17", "ios18"):
        makes.append(integers.narrowed)
    if d.opset == "ios18":
        makes += [weights.quantised_table, weights.moved]
    make = d.pick(makes)
    return make(d)


def _changed(d: Draw) -> dict[str, Any]:
    out = _any(d)
    out["program"].meta.update(fires=True, watch="ops")
    out["program"].meta.pop("options", None)
    out["pattern"] = "any"
    return out


declare("default_pipeline", _changed, narrow=True)
declare("cleanup_pipeline", lambda d: cleanup.noop(d), lambda d: cleanup.known(d), lambda d: cleanup.dead(d))
