"""Matrix products with constants and transposes around them."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import F32, I8
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def linear(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    n, m = d.dim(1, 5), d.dim(1, 5)
    args: dict[str, Any] = {"x": p.input((d.dim(1, 3), n)), "weight": p.weights((m, n))}
    if d.bool():
        args["bias"] = p.weights((m,))
    y, c = p.op("linear", **args), p.const(p.weights((m,) if d.bool() else (1, m)))
    kind = d.pick(("add", "constant on the left", "sub", "sub from the constant"))
    z = {
        "add": lambda: p.op("add", x=y, y=c),
        "constant on the left": lambda: p.op("add", x=c, y=y),
        "sub": lambda: p.op("sub", x=y, y=c),
        "sub from the constant": lambda: p.op("sub", x=c, y=y),
    }[kind]()
    return p.done(p.op("relu", x=z), pattern=f"match {kind}")


def _linear_near(d: Draw) -> dict[str, Any]:
    """A constant per row, or a linear whose result is an output."""
    p = Program(d, F32)
    y = p.op("linear", x=p.input((3, 4)), weight=p.weights((2, 4)))
    if d.bool():
        return p.done(p.op("relu", x=p.op("add", x=y, y=p.weights((3, 1)))), fires=False, pattern="near miss per row")
    return p.done(p.op("relu", x=p.op("add", x=y, y=p.weights((2,)))), y, fires=False, pattern="near miss output")


declare("fuse_linear_bias", linear, linear, _linear_near)


def product(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    n, m = d.dim(1, 5), d.dim(2, 5)
    ty = d.bool()
    y = p.op(
        "matmul", x=p.input((d.dim(1, 3), n)), y=p.weights((m, n) if ty else (n, m)), transpose_x=False, transpose_y=ty
    )
    c = p.weights((m,))
    z = p.op("add", x=y, y=c) if d.bool() else p.op("sub", x=y, y=c)
    return p.done(p.op("relu", x=z))


def _product_spellings(d: Draw) -> dict[str, Any]:
    """Each spelling of a product with a constant and a sum: the constant on either side, each operand turned or not,
    both orders of the sum or difference, and what is added of one axis, of two, or of one element.  The page promises
    nothing of these: whatever the pass makes of them is to mean the same."""
    p = Program(d, F32)
    k, n, m = d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    tx, ty = d.bool(), d.bool()
    left = d.bool()
    batch = d.pick(((), (), (2,)))
    shapes = ((n, k) if tx else (k, n), (m, n) if ty else (n, m))
    x, y = (
        p.const(p.weights(s)) if constant else p.input((*batch, *s), "small")
        for s, constant in zip(shapes, (left, not left))
    )
    z = p.op("matmul", x=x, y=y, transpose_x=tx, transpose_y=ty)
    c = p.const(p.weights(d.pick(((m,), (1, m), (k, m), (k, 1), (1,), ()))))
    op = d.pick(("add", "sub"))
    z = p.op(op, x=c, y=z) if d.bool() else p.op(op, x=z, y=c)
    return p.done(p.op("relu", x=z), fires=None, pattern=f"open {op} {'left' if left else 'right'} {tx:d}{ty:d}")


def _product_near(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y = p.op("matmul", x=p.input((3, 4)), y=p.input((4, 2)), transpose_x=False, transpose_y=False)
    return p.done(p.op("relu", x=p.op("add", x=y, y=p.weights((2,)))), fires=False)


declare("fuse_matmul_weight_bias", product, _product_near, _product_spellings)


def turned(d: Draw) -> dict[str, Any]:
    """A transpose of exactly the last two axes, in either spelling, on either side."""
    p = Program(d, F32)
    b, n, k, m = d.dim(1, 3), d.dim(1, 4), d.dim(1, 4), d.dim(1, 4)
    perm = [0, 2, 1] if d.bool() else [-3, -1, -2]
    side = d.int(0, 2)
    x = p.op("transpose", x=p.input((b, k, n)), perm=perm) if side != 1 else p.input((b, n, k))
    y = p.op("transpose", x=p.input((b, m, k)), perm=perm) if side != 0 else p.input((b, k, m))
    return p.done(p.op("relu", x=p.op("matmul", x=x, y=y, transpose_x=False, transpose_y=False)))


def _turned_near(d: Draw) -> dict[str, Any]:
    """A permutation of the batch axes too, or one that is an output."""
    p = Program(d, F32)
    x = p.op("transpose", x=p.input((2, 3, 2)), perm=[2, 1, 0])
    return p.done(
        p.op("relu", x=p.op("matmul", x=x, y=p.input((2, 2, 4)), transpose_x=False, transpose_y=False)), fires=False
    )


declare("fuse_transpose_matmul", turned, turned, _turned_near)


def dynamic(d: Draw) -> dict[str, Any]:
    """A weight, or a bias, that is made of constants but is none itself."""
    p = Program(d, F32)
    n, m = d.dim(1, 4), d.dim(1, 4)
    x = p.input(((d.dim(1, 3),) if d.bool() else ()) + (d.dim(1, 3), n))
    which = d.pick(("weight", "bias", "both"))
    made = p.op("transpose", x=p.const(p.weights((n, m))), perm=[1, 0])
    args: dict[str, Any] = {"weight": p.weights((m, n)) if which == "bias" else made}
    kind = d.pick(("none", "some", "zero")) if which == "weight" else "made"
    if which != "weight":
        args["bias"] = p.op(d.pick(("relu", "abs")), x=p.const(p.weights((m,))))
    elif kind != "none":
        args["bias"] = p.weights((m,)) if kind == "some" else p.const([0.0] * m)
    return p.done(p.op("relu", x=p.op("linear", x=x, **args)), pattern=f"match {which} bias {kind}")


def _static(d: Draw) -> dict[str, Any]:
    """Constants, plain or compressed, are what linear takes."""
    p = Program(d, F32)
    weight: Any = p.weights((2, 4))
    if d.opset not in ("ios13", "ios15") and d.bool():
        weight = p.op(
            "constexpr_affine_dequantize",
            quantized_data=p.const([[1, 2, 3, 4], [5, 6, 7, 8]], I8),
            zero_point=p.const(0, I8),
            scale=0.5,
            axis=0,
        )
    bias = {"bias": p.weights((2,))} if d.bool() else {}
    return p.done(p.op("relu", x=p.op("linear", x=p.input((3, 4)), weight=weight, **bias)), fires=False)


declare("expand_dynamic_linear", dynamic, dynamic, _static)
