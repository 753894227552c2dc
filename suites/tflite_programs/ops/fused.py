"""Chains of floats with fused activations, and borders between what XNNPACK takes and what it leaves to the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.declare import Draw
from suites.tflite_programs import declare
from suites.tflite_programs.program import Program, V

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
SOURCE = "TFLite schema.fbs, {}"
Step = Callable[[Program, Draw, V], V]


def fused(d: Draw) -> str:
    """An activation that is part of a node, most often one."""
    return d.pick((*ACTIVATIONS, *ACTIVATIONS[1:]))


def conv(p: Program, d: Draw, x: V) -> V:
    c, m, k = x.shape[3], d.dim(1, 4), (min(d.int(1, 3), x.shape[1]), min(d.int(1, 3), x.shape[2]))
    operands: dict[str, Any] = {"input": x, "filter": p.weight(p.weights((m, *k, c)))}
    operands["bias"] = p.weight(p.weights((m,)))
    return p.step("CONV_2D", operands, {**_window(d), "fused_activation_function": fused(d)})


def depthwise(p: Program, d: Draw, x: V) -> V:
    c, by, k = x.shape[3], d.int(1, 2), (min(d.int(1, 3), x.shape[1]), min(d.int(1, 3), x.shape[2]))
    operands: dict[str, Any] = {"input": x, "filter": p.weight(p.weights((1, *k, c * by)))}
    operands["bias"] = p.weight(p.weights((c * by,)))
    attrs = {**_window(d), "depth_multiplier": by, "fused_activation_function": fused(d)}
    return p.step("DEPTHWISE_CONV_2D", operands, attrs)


def _window(d: Draw) -> dict[str, Any]:
    n = d.int(1, 2)
    return {"padding": d.pick(("SAME", "VALID")), "stride_w": n, "stride_h": n}


def pool(p: Program, d: Draw, x: V) -> V:
    k = (min(2, x.shape[1]), min(2, x.shape[2]))
    attrs = {**_window(d), "filter_height": k[0], "filter_width": k[1], "fused_activation_function": fused(d)}
    return p.step(d.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D")), {"input": x}, attrs)


def binary(p: Program, d: Draw, x: V) -> V:
    """With a constant or an input that broadcasts, on either side."""
    shape = d.broadcast_from(x.shape)
    other = p.entry(shape) if d.bool() else p.weight(p.weights(shape) + 0.125)
    op = d.pick(("ADD", "MUL", "SUB"))
    pair = {"lhs": x, "rhs": other} if d.bool() else {"lhs": other, "rhs": x}
    return p.step(op, pair, {"fused_activation_function": fused(d)})


def dense(p: Program, d: Draw, x: V) -> V:
    m = d.dim(1, 4)
    operands: dict[str, Any] = {"input": x, "filter": p.weight(p.weights((m, x.shape[-1])))}
    if d.bool():
        operands["bias"] = p.weight(p.weights((m,)))
    return p.step("FULLY_CONNECTED", operands, {"keep_num_dims": True, "fused_activation_function": fused(d)})


def unary(p: Program, d: Draw, x: V) -> V:
    op, slot = d.pick((("RELU", "x"), ("RELU6", "x"), ("LOGISTIC", "x"), ("TANH", "input"), ("ABS", "x"), ("NEG", "x")))
    return p.step(op, {slot: x}, {})


def foreign(p: Program, d: Draw, x: V) -> V:
    """An op that XNNPACK does not take."""
    kind = d.pick(("CUMSUM", "FLOOR_MOD", "TILE", "GATHER"))
    if kind == "CUMSUM":
        return p.step(kind, {"input": x, "axis": p.weight(np.array(d.int(0, len(x.shape) - 1), np.int32))}, {})
    if kind == "FLOOR_MOD":
        return p.step(kind, {"lhs": x, "rhs": p.weight(np.full(x.shape[-1:], 0.75, np.float32))}, {})
    if kind == "TILE":
        return p.step(kind, {"input": x, "multiples": p.weight(np.ones(len(x.shape), np.int32))}, {})
    at = np.array([d.int(0, x.shape[-1] - 1) for _ in range(d.int(1, 3))], np.int32)
    return p.step(kind, {"params": x, "indices": p.weight(at)}, {"axis": len(x.shape) - 1})


STEPS: tuple[Step, ...] = (conv, depthwise, pool, binary, binary, dense, unary)


def _image(p: Program, d: Draw) -> V:
    return p.entry((d.dim(1, 2), d.dim(2, 5), d.dim(2, 5), d.dim(1, 4)))


def _chain(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x = _image(p, d)
    told = []
    for _ in range(d.int(2, 4)):
        step = d.pick(STEPS)
        x = step(p, d, x)
        told.append(step.__name__)
    return p.end(x, pattern="match " + " ".join(told))


def _activated(d: Draw) -> dict[str, Any]:
    """A node and an activation of its own behind it, which a runtime may fuse, and what is fused already."""
    p = Program(d)
    x = d.pick((conv, depthwise, pool, binary, dense))(p, d, _image(p, d))
    y = p.step(*d.pick((("RELU", {"x": x}, {}), ("RELU6", {"x": x}, {}))))
    return p.end(*((y, x) if d.chance(4) else (y,)))


def _residual(d: Draw) -> dict[str, Any]:
    """A value that two nodes use, added up again."""
    p = Program(d)
    x = _image(p, d)
    a = unary(p, d, x)
    b = p.step(
        "ADD", {"lhs": a, "rhs": x} if d.bool() else {"lhs": x, "rhs": a}, {"fused_activation_function": fused(d)}
    )
    return p.end(d.pick((conv, binary, dense))(p, d, b))


def _border(d: Draw) -> dict[str, Any]:
    """What XNNPACK takes, what it does not, and what it takes again; now and then the other way about."""
    p = Program(d)
    x = _image(p, d)
    first = d.chance(4)
    told = []
    for k in range(d.int(2, 4)):
        step = foreign if (k % 2 == 0) == first else d.pick(STEPS)
        x = step(p, d, x)
        told.append(step.__name__)
    return p.end(x, pattern="match " + " ".join(told))


def _signed(d: Draw) -> dict[str, Any]:
    """Several signatures of one file: the program, and the first of its nodes; weights are shared."""
    made = d.pick((_chain, _residual, _border))(d)
    n = len(made["program"].nodes)
    made["program"].meta["signatures"] = sorted({d.int(1, n) for _ in range(d.int(1, 2))})
    return made


declare("fused_chain", _chain, source=SOURCE.format("ActivationFunctionType: fused into the node that makes the value"))
declare("activation", _activated, source="XNNPACK delegate README: fused activations")
declare("residual", _residual, source=SOURCE.format("Operator.inputs: a tensor may be read by several operators"))
declare("delegate_border", _border, source="TFLite delegates: a graph is partitioned by what the delegate supports")
declare("signatures", _signed, source=SOURCE.format("Model.signature_defs: each names a subgraph"))
