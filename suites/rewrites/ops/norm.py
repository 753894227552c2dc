"""Normalisations and activations written out in elementary ops, as exporters write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.ops.conv import SOURCE
from suites.rewrites.program import Program


def _mean(p: Program, x: str, axes: list[int], keepdims: int = 1) -> str:
    return p.op("ReduceMean", x, axes=axes, keepdims=keepdims)


def _square(p: Program, d: Draw, x: str) -> str:
    return p.op("Mul", x, x) if d.chance(3) else p.op("Pow", x, np.float32(2))


def _layer_norm(d: Draw, simple: bool = False) -> dict[str, Any]:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over the last axes; or other axes, an epsilon a column,
    a scale that does not fit."""
    p = Program(d)
    shape = tuple(d.dim(2, 5) for _ in range(d.int(2, 4)))
    x = p.input(shape, "uniform:-4:4")
    kind = d.pick(("match", "match", "match last two", "near miss axis", "near miss epsilon", "near miss scale"))
    axes = {"match last two": [-2, -1], "near miss axis": [0]}.get(kind, [-1])
    if d.bool():
        axes = [a % len(shape) for a in axes]
    if d.chance(4):
        x = p.op("Add", x, p.given(p.weights(shape[-1:])))  # a layer before it that is skipped
    y = x if simple else p.op("Sub", x, _mean(p, x, axes))
    v = _mean(p, _square(p, d, y), axes)
    eps = np.float32(1e-3) if kind != "near miss epsilon" else p.weights(shape[-1:], 1, 4).astype(np.float32)
    v = p.op("Add", *((v, eps) if d.bool() else (eps, v)))
    if simple and d.bool():
        y = p.op("Mul", y, p.op("Reciprocal", p.op("Sqrt", v)))
    else:
        y = p.op("Div", y, p.op("Sqrt", v))
    wide = {"match last two": shape[-2:], "near miss scale": (shape[-2], 1)}.get(kind, shape[-1:])
    if d.chance(6):
        return p.done(y, pattern=f"{kind} no scale")
    w = p.given(p.weights(wide) + 0.125)
    y = p.op("Mul", *((y, w) if d.bool() else (w, y)))
    return p.done(y if simple else p.op("Add", y, p.given(p.weights(wide))), pattern=kind)


def _rms_norm(d: Draw) -> dict[str, Any]:
    return _layer_norm(d, simple=True)


def _gelu(d: Draw) -> dict[str, Any]:
    """x / 2 * (1 + erf(x / sqrt(2))), in the orders that are met; a number next to the right one as a near miss."""
    p = Program(d)
    shape = d.shape(1, 3, 1)
    x = p.input(shape, "uniform:-4:4")
    if d.chance(3):
        x = p.op("Add", x, p.given(p.weights(shape[-1:])))
    near = d.chance(4)
    root = np.float32(1.5 if near else math.sqrt(2))
    e = p.op("Div", x, root) if d.bool() else p.op("Mul", x, np.float32(1 / root))
    e = p.op("Add", p.op("Erf", e), np.float32(1))
    half = np.float32(0.5)
    order = d.pick(("x half", "half x", "late"))
    if order == "x half":
        y = p.op("Mul", p.op("Mul", x, half), e)
    elif order == "half x":
        y = p.op("Mul", p.op("Mul", e, half), x)
    else:
        y = p.op("Mul", p.op("Mul", x, e), half)
    return p.done(y, pattern=f"{'near miss' if near else 'match'} {order}")


def _gelu_tanh(d: Draw) -> dict[str, Any]:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), or x taken out of the sum, in orders that are met."""
    p = Program(d)
    x = p.input(d.shape(1, 3, 1), "uniform:-3:3")
    root, small, one, half = (np.float32(v) for v in (math.sqrt(2 / math.pi), 0.044715, 1, 0.5))
    if d.bool():
        cube = p.op("Pow", x, np.float32(3)) if d.int(0, 3) else p.op("Mul", p.op("Mul", x, x), x)
        inner = p.op("Mul", p.op("Add", x, p.op("Mul", cube, small)), root)
    else:
        square = p.op("Mul", p.op("Mul", x, small), x)
        inner = p.op("Mul", p.op("Mul", x, root), p.op("Add", square, one))
    t = p.op("Add", p.op("Tanh", inner), one)
    if d.bool():
        return p.done(p.op("Mul", p.op("Mul", x, half), t))
    return p.done(p.op("Mul", x, p.op("Mul", t, half)))


def _quick_gelu(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = p.input(d.shape(1, 3, 1), "uniform:-4:4")
    alpha = d.pick((None, 1.702, -1.0))
    s = p.op("Sigmoid", x if alpha is None else p.op("Mul", x, np.float32(alpha)))
    return p.done(p.op("Mul", *((x, s) if d.bool() else (s, x))), pattern=f"match {alpha or 1}")


def _bias_softmax(d: Draw) -> dict[str, Any]:
    """A mask added before a softmax, of the same shape or one that broadcasts in front, behind or in between."""
    p = Program(d)
    shape = tuple(d.dim(1, 4) for _ in range(d.int(2, 4)))
    x = p.input(shape, "uniform:-4:4")
    axis = d.int(-len(shape), len(shape) - 1)
    mask = p.input(d.broadcast_from(shape), "uniform:-4:4")
    y = p.op("Add", *((x, mask) if d.bool() else (mask, x)))
    return p.done(p.op("Softmax", y, **({} if axis == -1 and d.bool() else {"axis": axis})))


def _skipped(d: Draw) -> dict[str, Any]:
    """A sum, perhaps of three, and the normalisation of it as one node.

    The operands have one shape or broadcast.  The scale has the normalised axes, or more of extent 1 in front."""
    p = Program(d)
    shape = tuple(d.dim(1, 5) for _ in range(d.pick((1, 2, 3, 3, 3, 4))))
    x = p.input(shape, "uniform:-4:4")
    told = []
    for _ in range(d.int(1, 2)):
        kind = d.pick(("same", "same", "last axis", "broadcast", "constant"))
        told.append(kind)
        if kind == "constant":
            other: Any = p.const(p.weights(d.pick((shape, shape[-1:], (1, *shape[-1:])))))
        else:
            other = p.input({"same": shape, "last axis": shape[-1:]}.get(kind) or d.broadcast_from(shape))
        x = p.op("Add", *((x, other) if d.bool() else (other, x)))
    axis = d.pick((-1, -1, -1, len(shape) - 1, d.int(-len(shape), len(shape) - 1)))
    part = shape[axis:]
    wide = (1,) * (len(shape) - len(part)) + part if d.chance(4) else part
    operands: list[Any] = [x, p.given(p.weights(wide) + 0.125)]
    op = "RMSNormalization" if int(d.opset) >= 23 and d.chance(3) else "LayerNormalization"
    if op == "LayerNormalization" and d.bool():
        operands.append(p.given(p.weights(wide)))
    attrs: dict[str, Any] = {"epsilon": 1e-3} if d.bool() else {}
    y = p.op(op, *operands, **(attrs if axis == -1 and d.bool() else attrs | {"axis": axis}))
    return p.done(*((y, x) if d.chance(4) else (y,)), pattern=f"match {op} {' '.join(told)}")


def _gelu_node(d: Draw) -> dict[str, Any]:
    """A sum and the Gelu of it as one node; what is added has the last axis, or another shape."""
    p = Program(d)
    shape = tuple(d.dim(1, 5) for _ in range(d.int(1, 4)))
    x = p.input(shape, "uniform:-4:4")
    kind = d.pick(("last axis", "last axis", "leading 1", "same", "one", "wider"))
    dims = {"last axis": shape[-1:], "leading 1": (1, *shape[-1:]), "same": shape, "one": (1,), "wider": (2, *shape)}
    bias = p.given(p.weights(dims[kind]))
    y = p.op("Add", *((x, bias) if d.bool() else (bias, x)))
    y = p.op("Gelu", y, **d.pick(({}, {"approximate": "none"}, {"approximate": "tanh"})))
    return p.done(y, pattern=f"match {kind}")


declare("layer_norm", _layer_norm, source=SOURCE.format("Layer Normalization fusion"))
declare("rms_norm", _rms_norm, source="onnxruntime/core/optimizer/layer_norm_fusion.h")
declare("gelu", _gelu, source=SOURCE.format("GELU fusion"))
declare("gelu_tanh", _gelu_tanh, source=SOURCE.format("Fast GELU approximation"))
declare("quick_gelu", _quick_gelu, source="onnxruntime/core/optimizer/quick_gelu_fusion.h")
declare("bias_softmax", _bias_softmax, source="onnxruntime/core/optimizer/bias_softmax_fusion.h")
declare("skip_layer_norm", _skipped, source=SOURCE.format("Skip Layer Normalization fusion"), since=17)
declare("bias_gelu", _gelu_node, source=SOURCE.format("BiasGeluFusion"), since=20)
