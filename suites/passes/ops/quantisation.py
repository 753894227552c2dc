"""Quantised values, from iOS 17 on; before that the programs hold nothing of the kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I8, U8
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _before(d: Draw, p: Program) -> dict[str, Any] | None:
    """What is drawn where the op set has no quantisation."""
    if d.opset in ("ios17", "ios18"):
        return None
    return p.done(p.op("relu", x=p.input(d.shape(1, 3, lo=1))), fires=False, pattern="near miss op set")


def _steps(p: Program, x: str, scale: float, zero: int | None) -> str:
    """x on a grid of integers that every program here agrees on: rounded before it is quantised."""
    even = p.op("mul", x=p.op("round", x=x), y=scale)
    more = {} if zero is None else {"zero_point": p.const(zero, I8)}
    return p.op("quantize", input=even, scale=scale, output_dtype="int8", **more)


def _pair(d: Draw) -> dict[str, Any]:
    """dequantize and quantize in a row: they cancel if scale and zero point are the same."""
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    zero = d.pick((None, 0, 3))
    scale, other = 0.25, d.pick((0.25, 0.25, 0.5))
    q = _steps(p, p.input(d.shape(1, 3, lo=1), "uniform:-40:40"), scale, zero)
    more = {} if zero is None else {"zero_point": p.const(zero, I8)}
    y = p.op("dequantize", input=q, scale=scale, **more)
    y = p.op("quantize", input=y, scale=other, output_dtype="int8", **more)
    same = other == scale
    if not same:  # halves are ties, which may go either way
        y = p.op(
            "quantize",
            input=p.op("mul", x=p.op("dequantize", input=q, scale=scale, **more), y=2.0),
            scale=other,
            output_dtype="int8",
            **more,
        )
    return p.done(p.op("dequantize", input=y, scale=other, **more), fires=same)


declare("dequantize_quantize_pair_elimination", _pair)


def _constant(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    shape = (d.dim(1, 3), d.dim(2, 5))
    unsigned = d.bool()
    dt = U8 if unsigned else I8
    x = p.input(shape)
    data = (np.arange(np.prod(shape)).reshape(shape) * 37 % 120).astype(dt.np)
    if d.chance(3):
        y = p.op("dequantize", input=_steps(p, x, 0.5, None), scale=0.5)
        return p.done(p.op("relu", x=y), fires=False, pattern="near miss not constant")
    more = {"zero_point": p.const(d.int(0, 5), dt)} if d.bool() else {}
    y = p.op("dequantize", input=p.const(data, dt), scale=d.pick((0.25, 0.5)), **more)
    return p.done(p.op("add", x=x, y=y))


declare("dequantize_to_constexpr", _constant)


def _zero_point(d: Draw) -> dict[str, Any]:
    """A zero point of 0 goes, one at the end of the range goes where both ends of the pair can move."""
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    zero = d.pick((0, -128, 3))
    scale = 0.5
    x = p.op("mul", x=p.op("round", x=p.input(d.shape(1, 3, lo=1), "uniform:-20:90")), y=scale)
    q = p.op("quantize", input=x, scale=scale, zero_point=p.const(zero, I8), output_dtype="int8")
    y = p.op("dequantize", input=q, scale=scale, zero_point=p.const(zero, I8))
    return p.done(p.op("relu", x=y), fires=zero != 3, pattern=f"{'match' if zero != 3 else 'near miss'} {zero}")


declare("nullify_redundant_quantization_zero_point", _zero_point)


def _moved(d: Draw) -> dict[str, Any]:
    """A reshape between dequantize and quantize needs neither; anything that calculates does."""
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    shape = [d.dim(1, 3), 6]
    q = _steps(p, p.input(shape, "uniform:-40:40"), 0.5, None)
    y = p.op("dequantize", input=q, scale=0.5)
    move = not d.chance(3)
    y = p.op("reshape", x=y, shape=[shape[0] * 2, 3]) if move else p.op("square", x=p.op("sign", x=y))
    y = p.op("quantize", input=y, scale=0.5, output_dtype="int8")
    return p.done(p.op("dequantize", input=y, scale=0.5), fires=move)


declare("int_op_canonicalization", _moved)


def _scaled(p: Program, d: Draw, shape: Any, scale: Any) -> str:
    """A quantised input made a float; a scale for each element of the last axis is a vector."""
    dt = d.pick((I8, U8))
    more: dict[str, Any] = {"zero_point": p.const(d.int(0, 5), dt)} if d.bool() else {}
    if np.ndim(scale):
        more = {"axis": len(shape) - 1, **({"zero_point": p.const(np.arange(shape[-1]), dt)} if more else {})}
    return p.op("dequantize", input=p.input(shape, "full", dt), scale=scale, **more)


def _distributive(d: Draw) -> dict[str, Any]:
    """Scales are powers of two, so dividing all three by one of them rounds nothing: the integers stay the same."""
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    shape = (d.dim(1, 3), d.dim(1, 4))
    s_x, s_y, s_z = (d.pick((0.125, 0.25, 0.5, 2.0)) for _ in range(3))
    kind = d.pick(("scalar", "scalar", "vector x", "vector y"))
    vector = np.array([s_x * 2.0**k for k in range(shape[1])])
    x = _scaled(p, d, shape, vector if kind == "vector x" else s_x)
    y = _scaled(p, d, shape, vector if kind == "vector y" else s_y)
    z = p.op(d.pick(("add", "sub")), x=x, y=y)
    relu = d.bool()
    z = p.op("relu", x=z) if relu else z
    z = p.op("quantize", input=z, scale=s_z, output_dtype="int8", zero_point=p.const(d.int(0, 3), I8))
    return p.done(p.op("dequantize", input=z, scale=s_z), pattern=f"match {kind}{' relu' if relu else ''}")


def _not_distributive(d: Draw) -> dict[str, Any]:
    """Another op, a result that is needed as it is, no scalar scale on either side; a relu and a scale below 0."""
    p = Program(d, F32)
    if out := _before(d, p):
        return out
    shape = (2, 3)
    kind = d.pick(("mul", "output", "both vectors", "not quantised", "below 0"))
    vector = np.array([0.25, 0.5, 2.0])
    s_x, s_y = (vector, vector) if kind == "both vectors" else (0.5, -0.25 if kind == "below 0" else 0.25)
    x = _scaled(p, d, shape, s_x)
    y = p.input(shape) if kind == "not quantised" else _scaled(p, d, shape, s_y)
    if kind == "not quantised":
        y = p.op("mul", x=p.op("round", x=y), y=0.25)
    z = p.op("mul" if kind == "mul" else "add", x=x, y=y)
    r = p.op("relu", x=z) if kind == "below 0" else z
    q = p.op("quantize", input=r, scale=0.5, output_dtype="int8")
    outs = [p.op("dequantize", input=q, scale=0.5), *([z] if kind == "output" else [])]
    return p.done(*outs, fires=False, pattern=f"near miss {kind}")


declare("distributive_quantized_binary_op_scale_normalization", _distributive, _distributive, _not_distributive)
