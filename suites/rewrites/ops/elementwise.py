"""Elements: what does nothing and may go, what is folded or joined, casts, common subexpressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, F32, I8, I32, I64, U8
from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.ops.conv import SOURCE
from suites.rewrites.program import Program, ints


def _noop(d: Draw) -> dict[str, Any]:
    """x + 0, x - 0, x * 1, x / 1, 0 - x, 1 / x: of a number, of a wider shape, of a number beside that."""
    p = Program(d)
    s = d.shape(1, 3, 1)
    x = p.input(s, "uniform:0.5:4")
    op, neutral = d.pick((("Add", 0.0), ("Sub", 0.0), ("Mul", 1.0), ("Div", 1.0)))
    kind = d.pick(("match", "match", "near miss wider", "near miss value", "turned"))
    value = neutral + (0.25 if kind == "near miss value" else 0)
    shape: tuple[int, ...] = d.pick(((), (1,), s, (1,) * (len(s) + 1)))
    if kind == "near miss wider":
        shape = (2, *s)
    c = np.full(shape, value, np.float32)
    x = p.op("Abs", x)
    y = p.op(op, *((c, x) if kind == "turned" else (x, c)))
    return p.done(p.op("Neg", y), pattern=f"{kind} {op}")


def _limits(d: Draw) -> dict[str, Any]:
    """Relu and Clip in a row."""
    p = Program(d)
    x = p.input(d.shape(1, 3, 1), "uniform:-4:4")
    for _ in range(2):
        if d.bool():
            x = p.op("Relu", x)
            continue
        lo, hi = d.pick(((-1.0, 1.0), (0.0, 6.0), (0.5, None), (None, 2.0), (None, -1.0), (None, None)))
        x = p.op("Clip", x, *(None if v is None else np.float32(v) for v in (lo, hi)))
    return p.done(x)


def _casts(d: Draw) -> dict[str, Any]:
    """Casts in a row, of which some lose something and some do not."""
    p = Program(d)
    kind = d.pick((F32, I32, I64, U8))
    x = p.input(d.shape(1, 2, 1), "uniform:0:100", kind)  # in the range of all: ONNX leaves the others undefined
    told = [kind.name]
    for _ in range(d.int(2, 3)):
        to = d.pick((F32, I32, I64, U8, I8, BOOL))
        x = p.op("Cast", x, to=to)
        told.append(to.name)
    return p.done(x, pattern="match " + " ".join(told))


def _common(d: Draw) -> dict[str, Any]:
    """Nodes that are alike, or differ in an attribute, an operand or the order of operands."""
    p = Program(d)
    s = (d.dim(1, 3), d.dim(1, 4))
    x, y = p.input(s, "uniform:0.5:4"), p.input(s, "uniform:0.5:4")
    op = d.pick(("LeakyRelu", "Sub", "ArgMax", "Concat", "Gather", "Cast"))
    kind = d.pick(("match", "near miss"))
    far = kind == "near miss"
    if op == "LeakyRelu":
        z = p.op("Neg", x)
        pair = [p.op(op, z, alpha=0.25), p.op(op, z, alpha=0.5 if far else 0.25)]
    elif op == "Sub":
        pair = [p.op(op, x, y), p.op(op, *((y, x) if far else (x, y)))]
    elif op == "ArgMax":
        pair = [p.op(op, x, axis=0), p.op(op, x, axis=-2, keepdims=1) if not far else p.op(op, x, axis=1)]
        pair = [p.op("ReduceSum", v, ints(0, 1)) for v in pair]
    elif op == "Concat":
        pair = [p.op(op, x, y, axis=0), p.op(op, *((y, x) if far else (x, y)), axis=0)]
    elif op == "Gather":
        pair = [p.op(op, x, ints(0)), p.op(op, x, ints(-1 if far else 0))]
    else:
        pair = [p.op(op, p.op("Cast", x, to=I32), to=F32), p.op(op, p.op("Cast", x, to=U8 if far else I32), to=F32)]
    return p.done(p.op("Sub", *pair), p.op("Concat", *pair, axis=0), pattern=f"{kind} {op}")


def _turned_where(d: Draw) -> dict[str, Any]:
    """Where of Not: the other way round; the Not has a second user or not."""
    p = Program(d)
    s = d.shape(1, 3, 1)
    c = p.op("Not", p.input(d.broadcast_from(s), "full", BOOL))
    y = p.op("Where", c, p.input(s), p.input(d.broadcast_from(s)))
    return p.done(y, c) if d.chance(3) else p.done(y)


def _reciprocal(d: Draw) -> dict[str, Any]:
    """1 / x times y is y / x; also with another numerator."""
    p = Program(d)
    s = d.shape(1, 3, 1)
    x = p.input(s, "uniform:0.5:4")
    one = np.full(d.pick(((), (1,), s)), d.pick((1.0, 1.0, 2.0)), np.float32)
    q = p.op("Div", one, x)
    y = p.input(d.broadcast_from(s))
    return p.done(p.op("Mul", *((q, y) if d.bool() else (y, q))))


def _folded(d: Draw) -> dict[str, Any]:
    """All of it is known before anything runs, but for the last step."""
    p = Program(d)
    s = (d.dim(1, 3), d.dim(1, 3), d.dim(1, 3))
    c: Any = p.const(p.weights(s))
    for _ in range(d.int(1, 3)):
        op = d.pick(("Neg", "Transpose", "Relu", "Add", "ReduceSum", "Concat", "Shape", "ConstantOfShape"))
        if op == "Add":
            c = p.op(op, c, p.weights((1,)))
        elif op == "ReduceSum":
            c = p.op(op, c, ints(0), keepdims=1)
        elif op == "Concat":
            c = p.op(op, c, c, axis=0)
        elif op == "Shape":
            c = p.op("Cast", p.op(op, c), to=F32)
        elif op == "ConstantOfShape":
            c = p.op(op, p.op("Shape", c), value=np.array([0.5], np.float32))
        else:
            c = p.op(op, c)
    return p.done(p.op("Mul", p.input((1,)), c))


def _infinite(d: Draw) -> dict[str, Any]:
    """Is anything infinite, or not a number?  IsInf or IsNaN, Cast, ReduceSum, Greater."""
    p = Program(d)
    x = p.input(d.shape(1, 3, 1), d.pick(("special", "unit")))
    if d.bool():
        x = p.op("Cast", x, to=F32)
    y = p.op("Cast", p.op(d.pick(("IsInf", "IsNaN")), x), to=F32)
    return p.done(p.op("Greater", p.op("ReduceSum", y, keepdims=0), np.float32(0)))


declare("noop", _noop, source=SOURCE.format("Redundant node eliminations"))
declare("relu_clip", _limits, source=SOURCE.format("ReLU Clip fusion"))
declare("casts", _casts, source="onnxruntime/core/optimizer/cast_chain_elimination.h, cast_elimination.h")
declare("common_subexpressions", _common, source="onnxruntime/core/optimizer/common_subexpression_elimination.h")
declare("not_where", _turned_where, source="onnxruntime/core/optimizer/not_where_fusion.h")
declare("div_mul", _reciprocal, source="onnxruntime/core/optimizer/div_mul_fusion.h")
declare("constant_folding", _folded, source=SOURCE.format("Constant folding"))
declare("any_infinite", _infinite, source="onnxruntime/core/optimizer/isinf_reducesum_fusion.h")
