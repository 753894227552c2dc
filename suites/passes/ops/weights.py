"""Weights that are held compressed or twice.

Scales are powers of two and weights small integers times those, so that moving a scale past a product rounds nothing
beyond what the ops round anyhow: the propagated bound covers either order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import F32, I8, U4, U8
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _before(d: Draw, p: Program, *opsets: str) -> dict[str, Any] | None:
    """What is drawn where the op set has none of the compressed constants of the pass."""
    if d.opset in opsets:
        return None
    return p.done(p.op("relu", x=p.input(d.shape(1, 3, lo=1))), fires=False, pattern="near miss op set")


def _affine_ops(d: Draw, p: Program) -> dict[str, Any] | None:
    return _before(d, p, "ios16", "ios17", "ios18")


def _data(d: Draw, shape: tuple[int, ...], dt: Any) -> np.ndarray:
    """Quantised values that differ from place to place."""
    step = d.pick((3, 5, 7, 11))
    lo = -8 if dt is I8 else 0
    return (np.arange(int(np.prod(shape))).reshape(shape) * step % 16 + lo).astype(dt.np)


# -- merge_affine_dequantize_with_consecutive_ops


def _step(d: Draw, p: Program, y: str, shape: list[int], kind: str) -> tuple[str, list[int]]:
    """One movement of a weight: its name and shape afterwards."""
    if kind == "transpose":
        perm = d.shuffle(range(len(shape)))
        given = [a - len(shape) for a in perm] if d.chance(3) else perm
        return p.op("transpose", x=y, perm=given), [shape[a] for a in perm]
    if kind == "reshape":
        to = [shape[0] * shape[1], *shape[2:]] if d.bool() else [*shape[:-1], 1, shape[-1]]
        return p.op("reshape", x=y, shape=to), to
    if kind == "expand_dims":
        at = d.int(0, len(shape))
        return p.op("expand_dims", x=y, axes=[at]), [*shape[:at], 1, *shape[at:]]
    one = next((i for i, n in enumerate(shape) if n == 1), None)
    if one is None or len(shape) < 3:
        return p.op("transpose", x=y, perm=list(range(len(shape)))[::-1]), shape[::-1]
    return p.op("squeeze", x=y, axes=[one - len(shape) if d.bool() else one]), [
        n for i, n in enumerate(shape) if i != one
    ]


def _dequantised(d: Draw, p: Program, shape: list[int], channels: bool, data: str | None = None) -> str:
    dt = d.pick((I8, U8)) if data is None else I8
    axis = d.int(0, len(shape) - 1)
    scale: Any = np.array([2.0 ** -(k % 4) for k in range(shape[axis])]) if channels else 0.5
    zero: Any = np.arange(shape[axis]) % 3 if channels and d.bool() else d.int(0, 3)
    return p.op(
        "constexpr_affine_dequantize",
        quantized_data=data or p.const(_data(d, tuple(shape), dt), dt),
        zero_point=p.const(zero, dt),
        scale=scale,
        axis=axis,
    )


def folded(d: Draw) -> dict[str, Any]:
    """Movements of a weight with one scale; transposes of one with a scale for each channel."""
    p = Program(d, F32)
    if out := _affine_ops(d, p):
        return out
    shape = [d.dim(1, 3), d.dim(1, 4), d.dim(1, 3)][: d.int(2, 3)]
    channels = d.bool()
    y = _dequantised(d, p, shape, channels)
    kinds = ("transpose",) if channels else ("transpose", "reshape", "expand_dims", "squeeze")
    for _ in range(d.int(1, 3)):
        if len(shape) < 5:
            y, shape = _step(d, p, y, shape, d.pick(kinds) if len(shape) > 1 else "expand_dims")
    return p.done(p.op("add", x=p.input(shape), y=y), pattern="match channels" if channels else "match one scale")


def _not_folded(d: Draw) -> dict[str, Any]:
    """A reshape of a weight with channels, an op that calculates, an output in between, data that two weights share."""
    p = Program(d, F32)
    if out := _affine_ops(d, p):
        return out
    kind = d.pick(("reshape", "op", "two users", "shared"))
    if kind == "shared":
        data = p.const(_data(d, (2, 3), I8), I8, shared=True)
        a, b = (_dequantised(d, p, [2, 3], False, data) for _ in range(2))
        outs = [p.op("add", x=p.input((3, 2)), y=p.op("transpose", x=w, perm=[1, 0])) for w in (a, b)]
        return p.done(*outs, fires=False, pattern="near miss shared")
    y = _dequantised(d, p, [2, 3], kind == "reshape")
    x = p.input((3, 2))
    if kind == "reshape":
        outs = [p.op("add", x=x, y=p.op("reshape", x=y, shape=[3, 2]))]
    elif kind == "op":
        outs = [p.op("add", x=x, y=p.op("transpose", x=p.op("relu", x=y), perm=[1, 0]))]
    else:
        outs = [p.op("add", x=x, y=p.op("transpose", x=y, perm=[1, 0])), p.op("mul", x=p.input((2, 3)), y=y)]
    return p.done(*outs, fires=False, pattern=f"near miss {kind}")


declare("merge_affine_dequantize_with_consecutive_ops", folded, folded, _not_folded)


# -- canonicalize_quantized_lut_pattern: scales on the table before the look-up, not on what was looked up


def _looked_up(d: Draw, p: Program, lut: Any, shape: tuple[int, ...], **more: Any) -> str:
    indices = (np.arange(int(np.prod(shape))).reshape(shape) * d.pick((3, 5, 7)) % 16).astype(np.uint8)
    return p.op("constexpr_lut_to_dense", indices=p.const(indices, U4), lut=lut, **more)


def _table(d: Draw, groups: tuple[int, ...], size: int = 1) -> np.ndarray:
    n = int(np.prod(groups)) * 16 * size
    return ((np.arange(n) * d.pick((3, 5, 7))) % 25 - 12).reshape(*groups, 16, size)


def quantised_table(d: Draw) -> dict[str, Any]:
    """One scale or one for each channel, with or without offsets; tables for groups of channels, and of vectors."""
    p = Program(d, F32)
    if out := _before(d, p, "ios18"):
        return out
    n, m = d.pick((2, 4, 6)), d.dim(1, 4)
    channels, size, groups = d.bool(), d.pick((1, 1, 1, 2)), d.pick((1, 2))
    channels = channels and size == 1  # a vector's elements belong to several channels
    w = _looked_up(d, p, p.const(_table(d, (groups, 1), size), I8), (n, m), **({"vector_axis": 0} if size > 1 else {}))
    rows = n * size
    scale = np.array([[2.0 ** -(k % 4)] for k in range(rows if channels else 1)])
    more = {"offset": p.const(np.arange(len(scale)).reshape(-1, 1) % 3, I8)} if d.bool() else {}
    w = p.op("constexpr_blockwise_shift_scale", data=w, scale=scale, **more)
    y = p.op("linear", x=p.input((d.dim(1, 3), m)), weight=w)
    kind = "vectors" if size > 1 else "channels" if channels else "one scale"
    return p.done(y, pattern=f"match {kind}")


def _right_order(d: Draw) -> dict[str, Any]:
    """The table is scaled already, or nothing is scaled, or what was looked up has another user."""
    p = Program(d, F32)
    if out := _before(d, p, "ios18"):
        return out
    n, m = d.pick((2, 4)), d.dim(1, 3)
    kind = d.pick(("order", "no scale", "two users"))
    if kind == "order":
        lut = p.op(
            "constexpr_blockwise_shift_scale",
            data=p.const(_table(d, (n, 1)), I8),
            scale=np.array([0.5**k for k in range(n)]).reshape(n, 1, 1, 1),
        )
        ws = [_looked_up(d, p, lut, (n, m))]
    elif kind == "no scale":
        ws = [_looked_up(d, p, p.const(_table(d, (1, 1)) * 0.25), (n, m))]
    else:
        w = _looked_up(d, p, p.const(_table(d, (1, 1)), I8), (n, m))
        ws = [p.op("constexpr_blockwise_shift_scale", data=w, scale=np.full((1, 1), s)) for s in (0.5, 0.25)]
    x = p.input((2, m))
    return p.done(*(p.op("linear", x=x, weight=w) for w in ws), fires=False, pattern=f"near miss {kind}")


declare("canonicalize_quantized_lut_pattern", quantised_table, quantised_table, _right_order)


# -- reorder_lut_per_channel_scale: from the weight's output channels to the result


def _channel_scale(d: Draw, p: Program, shape: tuple[int, ...], axis: int, **more: Any) -> str:
    """A looked-up weight times a power of two for each index of an axis."""
    w = _looked_up(d, p, p.const(_table(d, (1,) * len(shape)) * 0.25), shape)
    sizes = [n if k == axis else 1 for k, n in enumerate(shape)]
    scale = np.array([2.0 ** -(k % 5) for k in range(shape[axis])]).reshape(sizes)
    return p.op("constexpr_blockwise_shift_scale", data=w, scale=scale, **more)


def _product(d: Draw, p: Program, kind: str, wrong: bool = False, **more: Any) -> list[str]:
    """An op over a weight with a scale along its output axis; along the other one if wrong."""
    n, k = d.int(2, 4), d.int(2, 4)
    if kind == "linear":
        w = _channel_scale(d, p, (n, k), int(wrong), **more)
        args = [{"bias": p.weights((n,))} if d.bool() else {} for _ in range(d.pick((1, 1, 2)))]
        return [p.op("linear", x=p.input((2, k)), weight=w, **a) for a in args]
    if kind.startswith("conv"):
        rank = int(kind[4:])
        shape = (n, k, *[d.int(1, 2)] * rank)
        w = _channel_scale(d, p, shape, int(wrong), **more)
        bias = {"bias": p.weights((n,))} if d.bool() else {}
        return [p.op("conv", x=p.input((1, k, *[3] * rank)), weight=w, pad_type="valid", **bias)]
    turned, left = d.bool(), kind == "matmul x"
    lead = (2,) if d.chance(3) else ()
    # the output axis is the first of two for x, the last for y; the other way round if transposed
    shape = (*lead, *((n, k) if left != turned else (k, n)))
    axis = len(lead) + (int(left == turned) ^ int(wrong))
    w = _channel_scale(d, p, shape, axis, **more)
    flag = p.const(turned, plain=d.bool())
    p.kind = f"{kind} {len(shape)}d" + (" transposed" if turned else "") + (" plain" if "plain" in p.g.meta else "")
    if left:
        return [p.op("matmul", x=w, y=p.input((*lead, k, 3)), transpose_x=flag, transpose_y=False)]
    return [p.op("matmul", x=p.input((*lead, 3, k)), y=w, transpose_x=False, transpose_y=flag)]


def moved(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    if out := _before(d, p, "ios18"):
        return out
    kind = d.pick(("linear", "matmul x", "matmul y", "conv1", "conv2", "conv3"))
    outs = [p.op("relu", x=y) for y in _product(d, p, kind)]
    return p.done(*outs, pattern=f"match {p.kind or kind}")


def _kept(d: Draw) -> dict[str, Any]:
    """A scale along the axis that is summed over, an offset, an op that is no product, a weight with another user."""
    p = Program(d, F32)
    if out := _before(d, p, "ios18"):
        return out
    kind = d.pick(("axis", "offset", "op", "two users"))
    if kind in ("axis", "offset"):
        offset = {"offset": np.full((1, 1), 1.0)} if kind == "offset" else {}
        op = "linear" if offset else d.pick(("linear", "matmul x", "matmul y", "conv2"))
        if offset:
            w = _looked_up(d, p, p.const(_table(d, (1, 1)) * 0.25), (3, 2))
            w = p.op(
                "constexpr_blockwise_shift_scale",
                data=w,
                scale=np.array([[1.0], [0.5], [2.0]]),
                offset=np.array([[1.0], [0.5], [0.0]]),
            )
            outs = [p.op("linear", x=p.input((2, 2)), weight=w)]
        else:
            outs = _product(d, p, op, wrong=True)
    else:
        w = _channel_scale(d, p, (3, 2), 0)
        outs = [p.op("add", x=p.input((3, 2)), y=w)]
        if kind == "two users":
            outs.append(p.op("linear", x=p.input((1, 2)), weight=w))
    return p.done(*(p.op("relu", x=y) for y in outs), fires=False, pattern=f"near miss {kind}")


declare("reorder_lut_per_channel_scale", moved, moved, _kept)
