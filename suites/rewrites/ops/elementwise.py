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
    held = computed(p, d, c)
    y = p.op(op, *((held, x) if kind == "turned" else (x, held)))
    return p.done(p.op("Neg", y), pattern=f"{kind} {op}")


def computed(p: Program, d: Draw, value: np.ndarray) -> Any:
    """A constant, or what nodes make of constants: it is there once they are folded."""
    kind = d.pick(("plain", "plain", "Identity", "Div", "Mul", "Add", "Sub", "Reshape", "Cast"))
    if kind == "plain":
        return value
    if kind in ("Identity", "Cast"):
        return p.op(kind, value, **({"to": F32} if kind == "Cast" else {}))
    if kind == "Reshape":
        return p.op(kind, np.ravel(value), ints(*value.shape))
    neutral = np.float32(kind in ("Div", "Mul"))
    return p.op(kind, value, np.full(d.pick(((), value.shape)), neutral, np.float32))


def _handed_on(d: Draw) -> dict[str, Any]:
    """Two to four nodes in a row that change nothing, of all kinds, with constants that are computed now and then."""
    p = Program(d)
    s = d.shape(1, 3, 1)
    x = p.input(s, "uniform:0.5:4")
    if d.bool():
        x = p.op("Abs", x)
    told = []
    whole = list(range(len(s)))
    for _ in range(d.int(2, 4)):
        op = d.pick(
            ("Identity", "Cast", "Dropout", "Add", "Sub", "Mul", "Div", "Reshape", "Expand", "Slice", "Transpose")
        )
        op = d.pick((op, op, op, "Concat", "Max", "Sum", "Pad", "Tile", "Where", "Pow"))
        told.append(op)
        if op in ("Identity", "Dropout", "Concat", "Max", "Sum"):
            x = p.op(op, x, **({"axis": 0} if op == "Concat" else {}))
        elif op == "Cast":
            x = p.op(op, x, to=F32)
        elif op in ("Add", "Sub", "Mul", "Div", "Pow"):
            neutral = np.full(d.pick(((), (1,), s)), float(op in ("Mul", "Div", "Pow")), np.float32)
            c = computed(p, d, neutral) if d.bool() else p.op("Div", neutral, np.float32(1))
            x = p.op(op, *((c, x) if op in ("Add", "Mul") and d.bool() else (x, c)))
        elif op in ("Reshape", "Expand"):
            x = p.op(op, x, ints(*s))
        elif op == "Slice":
            x = p.op(op, x, ints(*(0 for _ in s)), ints(*s), ints(*whole))
        elif op == "Transpose":
            x = p.op(op, x, perm=whole)
        elif op == "Where":
            x = p.op(op, np.array(True), x, np.zeros(d.pick(((), s)), np.float32))
        else:
            x = p.op(op, x, ints(*([0] * 2 if op == "Pad" else [1]) * len(s)))
    return p.done(p.op("Neg", x) if d.bool() else x, pattern="match " + " ".join(sorted(set(told))))


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
    s = (d.dim(1, 3), d.dim(1, 4), *((d.dim(1, 3),) if d.chance(4) else ()))
    x = p.input(s, "uniform:0.5:4")
    y = p.op("Sqrt", x) if d.chance(4) else p.input(s, "uniform:0.5:4")
    op = d.pick(("LeakyRelu", "Sub", "ArgMax", "Concat", "Gather", "Cast"))
    kind = d.pick(("match", "near miss"))
    far = kind == "near miss"
    if op == "LeakyRelu":
        z = p.op("Neg", x)
        pair = [p.op(op, z, alpha=0.25), p.op(op, z, alpha=0.5 if far else 0.25)]
    elif op == "Sub":
        pair = [p.op(op, x, y), p.op(op, *((y, x) if far else (x, y)))]
    elif op == "ArgMax":
        pair = [p.op(op, x, axis=0), p.op(op, x, axis=-len(s), keepdims=1) if not far else p.op(op, x, axis=1)]
        pair = [p.op("ReduceSum", v, ints(*range(len(s)))) for v in pair]
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
    """1 / x times y is y / x; also with another numerator, a constant x, or a y that a node hands on as it is."""
    p = Program(d)
    s = d.shape(1, 3, 1)
    x: Any = (
        p.input(s, "uniform:0.5:4") if d.int(0, 2) else np.full(d.pick(((), (1,), s)), d.pick((1.0, 4.0)), np.float32)
    )
    one = np.full(d.pick(((), (1,), s)), d.pick((1.0, 1.0, 2.0)), np.float32)
    q = p.op("Div", computed(p, d, one) if d.chance(4) else one, x)
    y = p.input(d.broadcast_from(s))
    kind = d.pick(("", "", "Identity", "Cast", "Dropout"))
    if kind:
        y = p.op(kind, y, **({"to": F32} if kind == "Cast" else {}))
    return p.done(p.op("Mul", *((q, y) if d.bool() else (y, q))), pattern=f"match {kind}".strip())


# ops whose result may stand in the memory of their operand, and others that only move data
SAME_MEMORY = ("Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Gather", "Expand", "Cast", "Split")


def _folded(d: Draw) -> dict[str, Any]:
    """All of it is known before anything runs, but for the last step."""
    p = Program(d)
    s = (d.dim(1, 3), d.dim(1, 3), d.dim(1, 3))
    c: Any = p.const(p.weights(s))
    for _ in range(d.int(1, 4)):
        op = d.pick(
            ("Neg", "Transpose", "Relu", "Add", "ReduceSum", "Concat", "Shape", "ConstantOfShape", *SAME_MEMORY)
        )
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
        elif op == "Reshape":
            c = p.op(op, c, ints(*d.pick(((-1,), (1, -1), (0, -1)))))
        elif op == "Unsqueeze":
            c = p.op(op, c, ints(d.pick((0, -1))))
        elif op == "Squeeze":
            c = p.op(op, c)
            c = p.op("Unsqueeze", c, ints(0)) if d.bool() else p.op("Reshape", c, ints(-1))
        elif op == "Flatten":
            c = p.op(op, c, axis=d.pick((0, 1)))
        elif op == "Slice":
            c = p.op(op, c, ints(0), ints(d.pick((1, 2, 100))), ints(0))
        elif op == "Gather":
            c = p.op(op, c, ints(*d.pick(((0,), (-1, 0)))), axis=0)
        elif op == "Expand":
            c = p.op(op, p.op("Reshape", c, ints(1, -1)), ints(2, 1))
        elif op == "Cast":
            c = p.op("Cast", p.op(op, c, to=I32), to=F32)
        elif op == "Split":
            c = p.op(
                op, p.op("Concat", c, c, axis=0), axis=0, outs=2, **({} if int(d.opset) < 18 else {"num_outputs": 2})
            )[1]
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


declare("handed_on", _handed_on, source=SOURCE.format("Redundant node eliminations"))
declare("noop", _noop, source=SOURCE.format("Redundant node eliminations"))
declare("relu_clip", _limits, source=SOURCE.format("ReLU Clip fusion"))
declare("casts", _casts, source="onnxruntime/core/optimizer/cast_chain_elimination.h, cast_elimination.h")
declare("common_subexpressions", _common, source="onnxruntime/core/optimizer/common_subexpression_elimination.h")
declare("not_where", _turned_where, source="onnxruntime/core/optimizer/not_where_fusion.h")
declare("div_mul", _reciprocal, source="onnxruntime/core/optimizer/div_mul_fusion.h")
declare("constant_folding", _folded, source=SOURCE.format("Constant folding"))
declare("any_infinite", _infinite, source="onnxruntime/core/optimizer/isinf_reducesum_fusion.h")
