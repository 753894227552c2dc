"""Dequantise, compute, quantise: what runtimes replace by a kernel on the integers.

The result is that of the nodes one by one: whatever integers the real result may round to under the program's bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.dtypes import BOOL, I4, I8, U4, U8, DType
from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.program import Program, ints

SOURCE = "onnxruntime/core/optimizer/qdq_transformer/selectors_actions: {}"


class Quantised(Program):
    """kind: of the integers, the same throughout as kernels want it, now and then mixed."""

    def __init__(self, d: Draw) -> None:
        super().__init__(d)
        self.kind = d.pick((U8, I8))
        self.mixed = d.chance(8)

    def params(self, kind: DType, scale: float | None = None) -> list[Any]:
        s = np.float32(scale or self.d.pick((0.02, 0.05, 0.11, 0.25)))
        z = self.d.pick((0, 0, 3, 128, 200) if kind is U8 else (0, 0, 3, -100, 127))
        return [s] if z == 0 and kind is U8 and self.d.bool() else [s, kind.np.type(z)]

    def taken(self, params: list[Any]) -> list[Any]:
        """The same parameters for what dequantises: a zero point of 0 may be left out there, whatever the type."""
        plain = len(params) == 2 and np.ndim(params[1]) == 0 and params[1] == 0
        return params[:1] if plain and self.d.chance(3) else params

    def some(self) -> DType:
        return self.d.pick((U8, I8)) if self.mixed else self.kind

    def real(self, shape: Any, params: list[Any] | None = None, kind: DType | None = None) -> str:
        """A dequantised input."""
        kind = kind or self.some()
        return self.op("DequantizeLinear", self.input(shape, "full", kind), *self.taken(params or self.params(kind)))

    def weight(self, shape: tuple[int, ...], axis: int | None, kind: DType | None = None) -> tuple[str, Any]:
        """A dequantised constant, by channel along ``axis`` now and then, and its scale."""
        kind = kind or self.d.pick((self.kind, I8))
        n = int(np.prod(shape))
        start, step = self.d.int(0, 90), self.d.pick((7, 31, 53))
        # i8 of 7 bits, as quantisers reduce the range: beyond it kernels of some processors saturate, which the integer
        # products show (MatMulInteger)
        top = 127 if kind is I8 else 255
        q = ((start + step * np.arange(n)) % top - (63 if kind is I8 else 0)).reshape(shape).astype(kind.np)
        if axis is not None and self.d.chance(3):
            m = shape[axis]
            scale = (np.array([0.02, 0.05, 0.11])[np.arange(m) % 3]).astype(np.float32)
            zero = np.zeros(m, kind.np)
            return self.op("DequantizeLinear", q, scale, *(() if self.d.chance(4) else (zero,)), axis=axis), scale
        scale = np.float32(self.d.pick((0.02, 0.05)))
        params = self.taken([scale, kind.np.type(0 if self.d.bool() else 5)])
        return self.op("DequantizeLinear", q, *params), scale

    def quantised(self, y: str, pattern: str = "match", params: list[Any] | None = None) -> dict[str, Any]:
        return self.done(self.op("QuantizeLinear", y, *(params or self.params(self.some()))), pattern=pattern)


def _conv(d: Draw) -> dict[str, Any]:
    p = Quantised(d)
    c, m = d.dim(1, 3), d.dim(1, 4)
    kind = p.some()
    params = p.params(kind)
    x = p.real((1, c, d.dim(3, 6), d.dim(3, 6)), params, kind)
    w, scale = p.weight((m, c, d.int(1, 3), d.int(1, 3)), 0)
    operands = [x, w]
    if d.bool():  # as the quantisers write it: int32 of the product of the scales
        b = (np.arange(m) * 37 - 50).astype(np.int32)
        both = np.float32(params[0]) * scale
        along = {"axis": 0} if np.ndim(both) else {}
        operands.append(p.op("DequantizeLinear", b, both, np.zeros(np.shape(both), np.int32), **along))
    y = p.op("Conv", *operands, **({"pads": [1, 1, 1, 1]} if d.bool() else {}))
    tail = d.pick(("", "", "Relu", "Clip"))
    if tail:
        y = p.op("Relu", y) if tail == "Relu" else p.op("Clip", y, np.float32(0), np.float32(6))
    return p.quantised(y, f"match {tail}".strip())


def _matmul(d: Draw) -> dict[str, Any]:
    """Quantised at the end, or left a float."""
    p = Quantised(d)
    m, k, n = d.dim(1, 4), d.dim(1, 8), d.dim(1, 5)
    batch = d.pick(((), (2,)))
    x = p.real((*batch, m, k))
    w = p.weight((k, n), 1)[0] if d.int(0, 3) else p.real((k, n))
    return p.quantised(p.op("MatMul", x, w))


def _matmul_float(d: Draw) -> dict[str, Any]:
    p = Quantised(d)
    m, k, n = d.dim(1, 4), d.dim(1, 8), d.dim(1, 5)
    y = p.op("MatMul", p.real((m, k)), p.weight((k, n), 1)[0])
    return p.done(p.op("Add", y, p.weights((n,))) if d.bool() else y)


def _blocks(d: Draw) -> dict[str, Any]:
    """A product with a constant whose scales stand by blocks of one axis, as weights of 4 bits are written; the last
    block may be short."""
    p = Quantised(d)
    block = d.pick((16, 16, 32, 4))
    many = d.int(1, 3)
    m, k, n = d.dim(1, 3), block * many - (d.int(0, 3) if d.chance(4) else 0), d.dim(1, 5)
    turned = d.chance(3)
    axis = int(turned) if d.int(0, 4) else int(not turned)
    shape = (n, k) if turned else (k, n)
    scales = tuple(-(-s // block) if a == axis else s for a, s in enumerate(shape))
    kind = d.pick((I4, U4, I4, U4, I8, U8))
    count = int(np.prod(shape))
    low, span = (-8, 16) if kind is I4 else (0, 16) if kind is U4 else (-60, 120) if kind is I8 else (0, 120)
    q = (low + (d.int(0, 15) + d.pick((3, 5, 7)) * np.arange(count)) % span).reshape(shape).astype(kind.np)
    operands: list[Any] = [q, p.weights(scales, 1, 6, 0.03125).astype(np.float32)]
    if d.bool():
        operands.append((d.int(0, 3) + np.arange(int(np.prod(scales))) % 4).reshape(scales).astype(kind.np))
    w = p.op("DequantizeLinear", *operands, axis=axis, block_size=block)
    if turned and d.bool():
        return p.done(p.op("Gemm", p.input((m, k)), w, transB=1), pattern=f"match Gemm axis {axis}")
    if turned:
        w = p.op("Transpose", w, perm=[1, 0])
    y = p.op("MatMul", p.input((*d.pick(((), (2,))), m, k)), w)
    return p.done(p.op("Add", y, p.weights((n,))) if d.chance(3) else y, pattern=f"match axis {axis}")


def _gemm(d: Draw) -> dict[str, Any]:
    p = Quantised(d)
    m, k, n = d.dim(1, 4), d.dim(1, 6), d.dim(1, 5)
    kind = p.some()
    params = p.params(kind)
    attrs: dict[str, Any] = {"transB": 1} if d.bool() else {}
    if d.chance(4):
        attrs["alpha"] = 0.5
    w, scale = p.weight((n, k) if "transB" in attrs else (k, n), None)
    operands = [p.real((m, k), params, kind), w]
    if d.bool():
        both = np.float32(params[0]) * scale
        operands.append(p.op("DequantizeLinear", (np.arange(n) * 37 - 50).astype(np.int32), both, np.int32(0)))
    return p.quantised(p.op("Gemm", *operands, **attrs))


def _binary(d: Draw) -> dict[str, Any]:
    p = Quantised(d)
    s = tuple(d.dim(1, 6) for _ in range(d.int(1, 3)))
    other = d.broadcast_from(s)
    a = p.real(s)
    b = p.real(other) if d.bool() else p.weight(other, None, p.kind)[0]
    op = d.pick(("Add", "Mul", "Sub", "Max"))
    return p.quantised(p.op(op, *((a, b) if d.bool() else (b, a))), f"match {op}")


def _unary(d: Draw) -> dict[str, Any]:
    """One operand: pooling, activations, softmax."""
    p = Quantised(d)
    x = p.real((1, d.dim(1, 3), d.dim(3, 6), d.dim(3, 6)))
    op = d.pick(
        ("AveragePool", "GlobalAveragePool", "MaxPool", "Sigmoid", "LeakyRelu", "Softmax", "Relu", "Clip", "ReduceMean")
    )
    if op in ("AveragePool", "MaxPool"):
        more: dict[str, Any] = {"kernel_shape": [d.int(1, 3), d.int(1, 3)], "strides": [d.int(1, 2), d.int(1, 2)]}
        if op == "AveragePool" and d.bool():
            more |= {"pads": [0, 0, 1, 1], "count_include_pad": int(d.bool()), "kernel_shape": [2, 2]}
        y = p.op(op, x, **more)
    elif op == "Softmax":
        params = [np.float32(1 / 256), p.some().np.type(0)]
        return p.quantised(p.op(op, x, axis=d.pick((-1, 1, 3))), "match Softmax", params)
    elif op == "Clip":
        y = p.op(op, x, np.float32(d.pick((0.0, -1.0))), np.float32(6))
    elif op == "LeakyRelu":
        y = p.op(op, x, alpha=d.pick((0.25, 0.1)))
    elif op == "ReduceMean":
        y = p.op(op, x, axes=[2, 3], keepdims=int(d.bool()))
    else:
        y = p.op(op, x)
    return p.quantised(y, f"match {op}")


def _moves(p: Quantised, d: Draw, x: str, s: tuple[int, ...]) -> tuple[str, str]:
    op = d.pick(("Reshape", "Transpose", "Squeeze", "Split", "Concat", "Slice", "Gather", "Pad", "Flatten", "Expand"))
    _, c, h, w = s
    y = {
        "Reshape": lambda: p.op(op, x, ints(0, -1)),
        "Transpose": lambda: p.op(op, x, perm=d.shuffle(range(4))),
        "Squeeze": lambda: p.op(op, x, ints(0)),
        "Split": lambda: p.op(op, x, ints(1, c - 1), axis=1, outs=2)[1],
        "Concat": lambda: p.op(op, x, x, axis=d.int(0, 3)),
        "Slice": lambda: p.op(op, x, ints(1), ints(3), ints(2)),
        "Gather": lambda: p.op(op, x, ints(1, 0), axis=1),
        "Pad": lambda: p.op(op, x, ints(0, 0, 1, 0, 0, 0, 0, 1)),
        "Flatten": lambda: p.op(op, x),
        "Expand": lambda: p.op(op, x, ints(2, c, h, w)),
    }[op]()
    return y, op


def _moved(d: Draw) -> dict[str, Any]:
    """Data moved between the two: the same scale behind it, which lets both go, or another."""
    p = Quantised(d)
    s = (1, d.dim(2, 3), d.dim(3, 4), d.dim(1, 3))
    params = p.params(p.kind)
    if d.chance(4):  # a constant, with which the move may be done before anything runs
        x = p.op("DequantizeLinear", p.weights(s, -50, 50, 1).astype(p.kind.np), *p.taken(params))
    else:
        x = p.real(s, params, p.kind)
    y, op = _moves(p, d, x, s)
    same = d.int(0, 3) > 0
    return p.quantised(y, f"{'match' if same else 'near miss'} {op}", params if same else None)


def _joined(d: Draw) -> dict[str, Any]:
    """Several put side by side, each of its own scale."""
    p = Quantised(d)
    a = d.int(0, 2)
    shapes = []
    base = [d.dim(1, 3) for _ in range(3)]
    for _ in range(d.int(2, 3)):
        shapes.append(tuple(d.dim(1, 3) if k == a else n for k, n in enumerate(base)))
    return p.quantised(p.op("Concat", *(p.real(s) for s in shapes), axis=a))


def _chosen(d: Draw) -> dict[str, Any]:
    p = Quantised(d)
    s = tuple(d.dim(1, 4) for _ in range(2))
    c: Any = np.arange(s[1]) % 2 == 0 if d.chance(6) else p.input(d.broadcast_from(s), "full", BOOL)
    y = p.weight(d.broadcast_from(s), None)[0] if d.chance(4) else p.real(d.broadcast_from(s))
    return p.quantised(p.op("Where", c, p.real(s), y))


def _pairs(d: Draw) -> dict[str, Any]:
    """Quantise, dequantise, quantise: of one scale nothing is lost by the second, of two there is."""
    p = Quantised(d)
    x = p.real(d.shape(1, 3, 1))
    one, same = p.params(p.kind), d.bool()
    y = p.op("DequantizeLinear", p.op("QuantizeLinear", x, *one), *one)
    return p.quantised(y, "match" if same else "near miss", one if same else None)


def _argument(d: Draw) -> dict[str, Any]:
    """The place of the largest, which a positive scale leaves where it is."""
    p = Quantised(d)
    s = tuple(d.dim(1, 5) for _ in range(d.int(1, 3)))
    return p.done(p.op("ArgMax", p.real(s), axis=d.int(0, len(s) - 1), keepdims=int(d.bool())))


def _table(*makes: tuple[str, Callable[[Draw], dict[str, Any]], str, bool]) -> None:
    for name, make, what, integers in makes:
        declare(name, make, source=SOURCE.format(what), integers=integers)


_table(
    ("qdq_conv", _conv, "ConvNodeGroupSelector", True),
    ("qdq_matmul", _matmul, "MatMulNodeGroupSelector", True),
    ("qdq_matmul_float", _matmul_float, "MatMulIntegerToFloat", False),
    ("qdq_gemm", _gemm, "GemmNodeGroupSelector", True),
    ("qdq_binary", _binary, "BinaryNodeGroupSelector", True),
    ("qdq_unary", _unary, "UnaryNodeGroupSelector", True),
    ("qdq_moved", _moved, "DropQDQNodeGroupSelector", True),
    ("qdq_concat", _joined, "VariadicNodeGroupSelector", True),
    ("qdq_where", _chosen, "WhereNodeGroupSelector", True),
    ("qdq_pairs", _pairs, "DoubleQDQPairsRemover", True),
    ("qdq_argmax", _argument, "DropDQNodeGroupSelector", False),
)
declare("dq_matmul_blocks", _blocks, source="onnxruntime/core/optimizer/matmul_nbits_fusion.h", since=21)
