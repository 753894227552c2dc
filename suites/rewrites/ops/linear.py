"""Products of matrices with what stands before and behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import U8
from harness.declare import Draw
from suites.rewrites import declare
from suites.rewrites.ops.conv import SOURCE, activation, batch_norm
from suites.rewrites.program import Program


def _factors(p: Program, d: Draw) -> tuple[str, Any, tuple[int, ...]]:
    """Operands of a MatMul, perhaps batched, one of them a vector now and then, and the shape of the product."""
    m, k, n = d.dim(1, 5), d.dim(1, 5), d.dim(1, 5)
    batch = d.pick(((), (), (2,), (2, 3)))
    vector = d.pick(("", "", "", "", "", "", "left", "right"))
    if vector == "left":
        return p.input((k,)), p.given(p.weights((*batch, k, n))), (*batch, n)
    x = p.input((*batch, m, k))
    if vector == "right":
        return x, p.given(p.weights((k,))), (*batch, m)
    w = p.given(p.weights((*(batch if d.chance(4) else ()), k, n)))
    return x, w, (*batch, m, n)


def _beside(p: Program, d: Draw, shape: tuple[int, ...]) -> tuple[np.ndarray, str]:
    """What is added to a product: of the last axis, of all axes, of one element, of rows, or wider than it."""
    kind = d.pick(("columns", "columns", "all", "one", "rank 0", "rows", "wider"))
    dims = {
        "columns": shape[-1:],
        "all": shape,
        "one": (1,),
        "rank 0": (),
        "rows": (*shape[-2:-1], 1),
        "wider": (2, *(1 for _ in shape)),
    }[kind]
    return p.weights(dims) + 0.125, kind


def _added(d: Draw) -> dict[str, Any]:
    p = Program(d)
    x, w, shape = _factors(p, d)
    y = p.op("MatMul", x, w)
    c, kind = _beside(p, d, shape)
    held = p.given(c)
    z = p.op("Add", *((y, held) if d.bool() else (held, y)))
    return p.done(activation(p, d, z) if d.bool() else z, pattern=f"match {kind}")


def gemm(p: Program, d: Draw, x: str | None = None, k: int = 0) -> tuple[str, int, int]:
    """Its result, rows (0: unknown) and columns."""
    m, k, n = d.dim(1, 5), k or d.dim(1, 5), d.dim(1, 5)
    attrs: dict[str, Any] = {}
    for name, values in (("transA", (0, 1)), ("transB", (0, 1)), ("alpha", (1.0, 0.5)), ("beta", (1.0, 0.25))):
        v = d.pick(values)
        if v != values[0] and not (name == "transA" and x is not None):
            attrs[name] = v
    a = p.input((k, m) if attrs.get("transA") else (m, k)) if x is None else x
    operands: list[Any] = [a, p.given(p.weights((n, k) if attrs.get("transB") else (k, n)))]
    if d.bool():
        operands.append(p.given(p.weights(d.pick(((n,), (1, n), (), (1,))))))
    return p.op("Gemm", *operands, **attrs), 0 if x is not None else m, n


def _gemm_activation(d: Draw) -> dict[str, Any]:
    p = Program(d)
    return p.done(activation(p, d, gemm(p, d)[0]))


def _gemm_sum(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y, m, n = gemm(p, d)
    kind, shape = d.pick((("all", (m, n)), ("columns", (n,)), ("rows", (m, 1)), ("wider", (2, 1, n)), ("one", (1,))))
    op = d.pick(("Add", "Sum"))
    c = p.input(shape)
    return p.done(p.op(op, *((y, c) if d.bool() else (c, y))), pattern=f"match {op} {kind}")


def _turned(p: Program, d: Draw, shape: tuple[int, int]) -> str:
    """A matrix as it comes, or behind a Transpose that swaps its axes, names no order, or leaves them as they are."""
    kind = d.pick(("plain", "plain", "swapped", "swapped", "no order", "left alone"))
    held = shape if kind in ("plain", "left alone") else shape[::-1]
    x = p.const(p.weights(held)) if d.chance(4) else p.input(held)
    if kind == "plain":
        return x
    return p.op("Transpose", x, **{"swapped": {"perm": [1, 0]}, "no order": {}, "left alone": {"perm": [0, 1]}}[kind])


def _gemm_transposed(d: Draw) -> dict[str, Any]:
    """A Gemm, or a MatMul and an Add that become one, with transposes before each of its operands and behind it."""
    p = Program(d)
    m, k, n = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    gemm = d.int(0, 3) > 0
    flips: dict[str, Any] = {name: d.pick((0, 1)) for name in ("transA", "transB")} if gemm else {}
    if gemm and d.chance(4):
        flips |= {"alpha": 0.5, "beta": 0.25}
    a = _turned(p, d, (k, m) if flips.get("transA") else (m, k))
    b = _turned(p, d, (n, k) if flips.get("transB") else (k, n))
    c: Any = None
    if d.bool() or not gemm:
        c = _turned(p, d, (m, n)) if d.bool() else p.given(p.weights(d.pick(((n,), (1, n), (m, 1)))))
    if gemm:
        y = p.op("Gemm", a, b, *(() if c is None else (c,)), **flips)
    else:
        y = p.op("MatMul", a, b)
        y = p.op("Add", *((y, c) if d.bool() else (c, y)))
    if d.bool():
        y = p.op("Transpose", y, **d.pick(({}, {"perm": [1, 0]}, {"perm": [0, 1]})))
    return p.done(y, pattern=f"match {'Gemm' if gemm else 'MatMul Add'}")


def _scaled(d: Draw) -> dict[str, Any]:
    """Numbers by which operands or the product are multiplied or divided."""
    p = Program(d)
    x, w, _ = _factors(p, d)
    held = p.g.consts.get(w)
    vector = len(p.tensors[int(w[1:])].shape if held is None else held.shape) == 1

    def scale(v: Any, shapes: tuple[tuple[int, ...], ...] = ((), (1,), (1, 1))) -> str:
        op = d.pick(("Mul", "Div"))
        by = d.pick((0.5, 3.0, -2.0)) * np.ones(d.pick(shapes), np.float32)
        return p.op(op, *((by, v) if op == "Mul" and d.bool() else (v, by)))

    if d.bool():
        x = scale(x)
    if d.chance(3):
        w = scale(w, ((), (1,)) if vector else ((), (1,), (1, 1)))  # a vector on the right is not to become a row
    y = p.op("MatMul", x, w)
    return p.done(scale(y) if d.bool() else y)


def _transposed(d: Draw) -> dict[str, Any]:
    """Operands whose last two axes are swapped, or others, or with a Cast or Unsqueeze between."""
    p = Program(d)
    m, k, n = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    batch = d.pick(((), (2,), (2, 3)))
    r = len(batch)
    sides, told = [], set()
    for rows, columns in ((m, k), (k, n)):
        shape = (*batch, rows, columns)
        kind = d.pick(("plain", "swapped", "swapped", "moved"))
        told.add(kind)
        if kind == "plain":
            sides.append(p.input(shape))
            continue
        perm = list(range(r + 2))
        if kind == "swapped":
            perm[-2:] = perm[:-3:-1]
        else:
            perm = d.shuffle(perm)
        turned = [0] * (r + 2)
        for i, a in enumerate(perm):
            turned[a] = shape[i]
        sides.append(p.op("Transpose", p.input(turned), perm=perm))
    y = p.op("MatMul", *sides)
    if d.chance(3):
        y = p.op("Transpose", y, perm=d.shuffle(range(r + 2)))
    return p.done(y, pattern="match " + " ".join(sorted(told)))


def _matmul_normalised(d: Draw) -> dict[str, Any]:
    p = Program(d)
    m, k, n = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    y = p.op("MatMul", p.input((m, k)), p.weights((k, n)))
    if d.bool():
        y = p.op("Reshape", y, np.array([m, n], np.int64))
    return p.done(batch_norm(p, d, y, n))


def _gemm_normalised(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y, _, n = gemm(p, d)
    return p.done(batch_norm(p, d, y, n))


def _quantised_on_the_way(d: Draw) -> dict[str, Any]:
    """An integer product that becomes a float one: Cast, Mul by the scale or the product of two, perhaps Add."""
    p = Program(d)
    m, k, n = d.dim(1, 4), d.dim(1, 6), d.dim(1, 5)
    x = p.input((m, k), "full", U8)
    kind = d.pick((np.uint8, np.int8))
    w = np.asarray(p.weights((k, n), scale=1)).astype(np.int64).astype(kind)
    zeros = [np.uint8(d.int(0, 200)), kind(d.int(0, 100))] if d.bool() else []
    y = p.op("MatMulInteger", x, w, *zeros)
    y = p.op("Cast", y, to=p.dtype)
    scale: Any = np.float32(0.0078125) if d.bool() else p.weights((n,), 1, 7, 0.0078125).astype(np.float32)
    if d.int(0, 3):
        scale = p.op("Mul", p.input((), "uniform:0.01:0.1"), scale)
    y = p.op("Mul", *((y, scale) if d.bool() else (scale, y)))
    return p.done(p.op("Add", y, p.given(p.weights((n,)))) if d.bool() else y)


declare("matmul_add", _added, source=SOURCE.format("MatMul Add fusion"))
declare("gemm_activation", _gemm_activation, source=SOURCE.format("GEMM Activation fusion"))
declare("gemm_sum", _gemm_sum, source="onnxruntime/core/optimizer/gemm_sum_fusion.h")
declare("gemm_transpose", _gemm_transposed, source="onnxruntime/core/optimizer/gemm_transpose_fusion.h")
declare("matmul_scale", _scaled, source="onnxruntime/core/optimizer/matmul_scale_fusion.h")
declare("matmul_transpose", _transposed, source="onnxruntime/core/optimizer/matmul_transpose_fusion.h")
declare("matmul_batchnorm", _matmul_normalised, source="onnxruntime/core/optimizer/matmul_bn_fusion.h")
declare("gemm_batchnorm", _gemm_normalised, source="the same sum as Conv BatchNorm fusion, of a product")
declare("matmul_integer_to_float", _quantised_on_the_way, source="onnxruntime/core/optimizer/matmul_integer_to_float.h")
