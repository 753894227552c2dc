"""Quantised chains: each value is rounded to the scale that the model states of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import I8, U8, DType
from harness.declare import Draw
from suites.tflite.quantisation import draw_quant
from suites.tflite_programs import declare
from suites.tflite_programs.ops.fused import foreign, fused
from suites.tflite_programs.program import Program, Quant, V

SOURCE = "TFLite 8-bit quantization specification: {}"


def _near(d: Draw, of: Quant, by: float, dtype: DType) -> dict[str, Any]:
    """A scale for values that are so many times as large."""
    assert of is not None
    scale = float(np.float32(of["scale"][0] * by * d.pick((0.25, 1.0, 1.0, 2.0))))
    return {**draw_quant(d, dtype), "scale": [scale]}


def _weights(p: Program, shape: tuple[int, ...], axis: int, channels: bool) -> tuple[V, list[float]]:
    """Symmetric weights of i8.  channels: may each have a scale of its own?"""
    d = p.d
    n = shape[axis] if channels and d.bool() else 1
    scales = [float(np.float32(d.pick((0.01, 0.02, 0.05)) * (1 + k % 3))) for k in range(n)]
    value = np.asarray(p.weights(shape, -100, 100, 1.0)).astype(np.int8)
    return p.weight(value, {"scale": scales, "zero_point": [0] * n, "axis": axis}), scales


def _bias(p: Program, x: V, scales: list[float], m: int) -> V:
    """i32 on the scale of the products."""
    assert x.quant is not None
    by = [float(np.float32(x.quant["scale"][0]) * np.float32(s)) for s in scales]
    value = np.asarray(p.weights((m,), -500, 500, 1.0)).astype(np.int32)
    return p.weight(value, {"scale": by, "zero_point": [0] * len(by), "axis": 0})


def conv(p: Program, d: Draw, x: V) -> V:
    m, k = d.dim(1, 4), (min(d.int(1, 3), x.shape[1]), min(d.int(1, 3), x.shape[2]))
    w, scales = _weights(p, (m, *k, x.shape[3]), 0, True)
    operands = {"input": x, "filter": w, "bias": _bias(p, x, scales, m)}
    attrs = {"padding": d.pick(("SAME", "VALID")), "stride_w": 1, "stride_h": 1, "fused_activation_function": fused(d)}
    return p.step("CONV_2D", operands, attrs, x.dtype, _near(d, x.quant, 1.0, x.dtype))


def dense(p: Program, d: Draw, x: V) -> V:
    m = d.dim(1, 4)
    w, scales = _weights(p, (m, x.shape[-1]), 0, False)
    operands = {"input": x, "filter": w, "bias": _bias(p, x, scales, m)}
    attrs = {"keep_num_dims": True, "fused_activation_function": fused(d)}
    return p.step("FULLY_CONNECTED", operands, attrs, x.dtype, _near(d, x.quant, 1.0, x.dtype))


def binary(p: Program, d: Draw, x: V) -> V:
    other = p.entry(d.broadcast_from(x.shape), x.dtype)
    op = d.pick(("ADD", "MUL", "SUB"))
    pair = {"lhs": x, "rhs": other} if d.bool() else {"lhs": other, "rhs": x}
    return p.step(op, pair, {"fused_activation_function": fused(d)}, x.dtype, _near(d, x.quant, 2.0, x.dtype))


def pool(p: Program, d: Draw, x: V) -> V:
    """Keeps the scale of its operand."""
    k = (min(2, x.shape[1]), min(2, x.shape[2]))
    window = {"filter_height": k[0], "filter_width": k[1], "stride_w": 1, "stride_h": 1, "padding": "VALID"}
    attrs = {**window, "fused_activation_function": fused(d)}
    return p.step(d.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D")), {"input": x}, attrs, x.dtype, x.quant)


def requantised(p: Program, d: Draw, x: V) -> V:
    return p.step("QUANTIZE", {"input": x}, {}, x.dtype, _near(d, x.quant, 1.0, x.dtype))


def squashed(p: Program, d: Draw, x: V) -> V:
    """LOGISTIC has the scale that the specification states."""
    quant = {"scale": [1 / 256], "zero_point": [-128 if x.dtype is I8 else 0], "axis": 0}
    return p.step("LOGISTIC", {"x": x}, {}, x.dtype, quant)


STEPS = (conv, dense, binary, binary, pool, requantised, squashed)


def _start(p: Program, d: Draw, dtype: DType) -> V:
    shape = (d.dim(1, 2), d.dim(2, 4), d.dim(2, 4), d.dim(1, 3))
    if d.bool():
        return p.entry(shape, dtype)
    return p.step("QUANTIZE", {"input": p.entry(shape)}, {}, dtype, {**draw_quant(d, dtype), "scale": [0.03125]})


def _chain(d: Draw) -> dict[str, Any]:
    p = Program(d)
    dtype = d.pick((I8, I8, U8))
    x = _start(p, d, dtype)
    steps = STEPS if dtype is I8 else (binary, pool, requantised, squashed)
    told = []
    for _ in range(d.int(2, 4)):
        step = d.pick(steps)
        x = step(p, d, x)
        told.append(step.__name__)
    if d.bool():
        x = p.step("DEQUANTIZE", {"input": x}, {})
        told.append("dequantised")
    return p.end(x, pattern="match " + " ".join(told))


def _border(d: Draw) -> dict[str, Any]:
    """A quantised part, floats that XNNPACK leaves alone, and quantised again."""
    p = Program(d)
    x = d.pick((conv, binary))(p, d, _start(p, d, I8))
    x = foreign(p, d, p.step("DEQUANTIZE", {"input": x}, {}))
    x = p.step("QUANTIZE", {"input": x}, {}, I8, {**draw_quant(d, I8), "scale": [0.0625]})
    x = d.pick((binary, dense, requantised))(p, d, x)
    return p.end(p.step("DEQUANTIZE", {"input": x}, {}) if d.chance(3) else x)


declare("quantised_chain", _chain, source=SOURCE.format("each op has the scales of its operands and of its result"))
declare("quantised_border", _border, source=SOURCE.format("QUANTIZE and DEQUANTIZE stand between the parts"))
