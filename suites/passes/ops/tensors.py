"""Tensors moved about: stacks, concatenations, reshapes, gathers, padding."""

from __future__ import annotations

from math import prod
from typing import Any

from harness.core.dtypes import F32, I32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program


def _inputs(p: Program, n: int, shape: Any) -> tuple[str, ...]:
    """Data that no pass knows."""
    return tuple(p.op("relu", x=p.input(shape)) for _ in range(n))


# -- replace_stack_reshape: the new axis goes into the one after it, or into the one before it


def _stacked(d: Draw) -> dict[str, Any]:
    p = Program(d)
    n, shape = 2, [d.dim(1, 3), d.dim(2, 5), d.dim(1, 3)]
    axis = d.int(1, 2)
    y = p.op("stack", values=_inputs(p, n, shape), axis=axis)
    left = d.bool() if axis == 2 else False
    to = list(shape)
    to[axis - 1 if left else axis] *= n
    y = p.op("reshape", x=y, shape=to)
    return p.done(p.op("abs", x=y), pattern="match " + ("left" if left else "right"))


def _stacked_elsewhere(d: Draw) -> dict[str, Any]:
    """Three tensors (the docstring speaks of two), a reshape to a vector, or a stack that is wanted elsewhere too."""
    p = Program(d)
    if d.chance(3):
        y = p.op("reshape", x=p.op("stack", values=_inputs(p, 3, (2, 2, 5)), axis=1), shape=[2, 6, 5])
        return p.done(p.op("abs", x=y), fires=False, pattern="near miss three")
    shape = (d.dim(2, 3), d.dim(2, 5), d.dim(2, 3))
    y = p.op("stack", values=_inputs(p, 2, shape), axis=1)
    if d.bool():
        return p.done(
            p.op("abs", x=p.op("reshape", x=y, shape=[2 * prod(shape)])), fires=False, pattern="near miss flat"
        )
    z = p.op("reshape", x=y, shape=[shape[0], 2 * shape[1], shape[2]])
    return p.done(p.op("abs", x=z), y, fires=False, pattern="near miss output")


declare("replace_stack_reshape", _stacked, _stacked, _stacked_elsewhere)


# -- detect_concat_interleave: channel shuffle


def _shuffle(p: Program, d: Draw, perm: list[int], n: int, axis: int = -3) -> str:
    b, c, h, w = d.dim(1, 2), d.dim(2, 4), d.dim(1, 3), d.dim(1, 3)
    y = p.op("concat", values=_inputs(p, n, (b, c, h, w)), axis=axis, interleave=False)
    y = p.op("reshape", x=y, shape=[b, n, c, h, w])
    y = p.op("transpose", x=y, perm=perm)
    return p.op("reshape", x=y, shape=[b, c * n, h, w])


def _shuffled(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y = _shuffle(p, d, [0, 2, 1, 3, 4], d.int(2, 3))
    return p.done(p.op("abs", x=y))


def _turned(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y = _shuffle(p, d, [0, 1, 2, 3, 4], 2)
    return p.done(p.op("abs", x=y), fires=False, pattern="near miss order")


declare("detect_concat_interleave", _shuffled, _turned)


# -- concat_to_pixel_shuffle


def _pixels(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape: tuple[int, ...] = (d.dim(1, 2), d.dim(1, 3), d.dim(1, 4), d.dim(1, 4))
    if d.chance(16):
        shape = (1, 1, *d.shuffle((1, d.pick((16, 130, 260)))))
    given = _inputs(p, d.pick((4, 4, 4, 2, 1)), shape)
    a, b, c, e = (given * 4)[:4]  # one tensor may stand in several places
    up = p.op("concat", values=(a, b), axis=2, interleave=True)
    down = p.op("concat", values=(c, e), axis=2, interleave=True)
    return p.done(p.op("abs", x=p.op("concat", values=(up, down), axis=3, interleave=True)))


def _no_pixels(d: Draw) -> dict[str, Any]:
    """One of the three does not interleave, or the axes are the other way round."""
    p = Program(d)
    a, b, c, e = _inputs(p, 4, (d.dim(1, 2), d.dim(1, 3), d.dim(1, 4), d.dim(1, 4)))
    kind = d.int(0, 3)
    x, y = (3, 2) if kind == 3 else (2, 3)
    up = p.op("concat", values=(a, b), axis=x, interleave=kind != 0)
    down = p.op("concat", values=(c, e), axis=x, interleave=kind != 1)
    z = p.op("concat", values=(up, down), axis=y, interleave=kind != 2)
    return p.done(p.op("abs", x=z), fires=False, pattern="near miss " + ("axes" if kind == 3 else "not interleaved"))


declare("concat_to_pixel_shuffle", _pixels, _no_pixels)


# -- fuse_onehot_matmul_to_gather


def _looked_up(d: Draw, off: float = 0.0) -> dict[str, Any]:
    p = Program(d, F32)
    n, m = d.dim(2, 5), d.dim(1, 4)
    at = p.input(d.shape(1, 2, lo=1), f"index:{n}", I32)
    hot = p.op("one_hot", indices=at, one_hot_vector_size=n, axis=-1, on_value=1.0, off_value=off)
    y = p.op("matmul", x=hot, y=p.const(p.weights((n, m))))
    return p.done(p.op("abs", x=y), fires=not off, pattern="" if not off else "near miss off value")


declare("fuse_onehot_matmul_to_gather", _looked_up, lambda d: _looked_up(d, 0.5))


# -- use_reflection_padding: rows on both sides by slices


def _reflected(d: Draw, wrong: bool = False) -> dict[str, Any]:
    p = Program(d)
    n, k = d.dim(4, 6), d.int(1, 2)
    shape = [d.dim(1, 2), d.dim(1, 2), d.dim(1, 3), n]
    x = p.op("relu", x=p.input(shape))

    def column(i: int) -> str:
        end = (i + 1) if i != -1 else n
        return p.op(
            "slice_by_index",
            x=x,
            begin=[0, 0, 0, i],
            end=[0, 0, 0, end],
            end_mask=[True, True, True, False],
            begin_mask=[True, True, True, False],
        )

    before = [column(i + (0 if wrong else 1)) for i in reversed(range(k))]
    after = [column(-2 - i) for i in range(k)]
    y = p.op("concat", values=(*before, x, *after), axis=3)
    return p.done(p.op("abs", x=y), fires=not wrong, pattern="near miss symmetric" if wrong else "")


declare("use_reflection_padding", _reflected, lambda d: _reflected(d, True))


# -- fuse_squeeze_expand_dims, fuse_stack_split


def _squeezed(d: Draw, wrong: bool = False) -> dict[str, Any]:
    p = Program(d)
    x = p.op("relu", x=p.input((d.dim(2, 3), 1, d.dim(2, 4), 1)))
    y = p.op("squeeze", x=x, axes=d.pick(([1], [3], [1, 3])))
    axes = next(n for n in p.g.nodes if n.op == "squeeze").value("axes")
    back = list(p.g.consts[axes])
    if wrong:
        back = [0] if len(back) == 1 else [0, 1]
    y = p.op("expand_dims", x=y, axes=[int(a) for a in back])
    return p.done(p.op("abs", x=y), fires=not wrong)


declare("fuse_squeeze_expand_dims", _squeezed, lambda d: _squeezed(d, True))


def _parted(d: Draw, wrong: bool = False) -> dict[str, Any]:
    p = Program(d)
    n, axis = d.int(2, 3), d.int(0, 2)
    shape = [n, n, n]
    y = p.op("stack", values=_inputs(p, n, shape), axis=axis)
    at = (axis + 1) % 4 if wrong else axis
    parts = p.op("split", outs=n, x=y, num_splits=n, axis=at)
    if d.bool():
        outs = [p.op("abs", x=p.op("squeeze", x=z, axes=[at])) for z in parts]
        return p.done(*outs, fires=not wrong, pattern="near miss axis" if wrong else "match used at once")
    flat = [p.op("squeeze", x=z, axes=[at]) for z in parts]
    return p.done(*(p.op("abs", x=z) for z in flat), fires=not wrong, pattern="near miss axis" if wrong else "")


declare("fuse_stack_split", _parted, lambda d: _parted(d, True))


# -- guard_negative_gather_indices: from iOS 17 on, for signed indices


def _gathered(d: Draw) -> dict[str, Any]:
    p = Program(d)
    n = d.dim(2, 5)
    x = p.op("relu", x=p.input((d.dim(1, 3), n)))
    y = p.op("gather", x=x, indices=p.input(d.shape(1, 2, lo=1), f"index:{n}", I32), axis=1)
    return p.done(p.op("abs", x=y), fires=d.opset in ("ios17", "ios18"))


declare("guard_negative_gather_indices", _gathered)


# -- expand_high_rank_reshape_and_transpose


def _high(d: Draw, rank: int = 6) -> dict[str, Any]:
    p = Program(d)
    dims = [d.int(1, 3) for _ in range(rank)]
    x = p.op("relu", x=p.input((prod(dims[:3]), prod(dims[3:]))))
    y = p.op("reshape", x=x, shape=dims)
    perm = d.shuffle(range(rank))
    y = p.op("transpose", x=y, perm=perm)
    out = [dims[i] for i in perm]
    y = p.op("reshape", x=y, shape=[prod(out[:2]), *out[2:4], prod(out[4:])])
    return p.done(p.op("abs", x=y), fires=rank > 5)


declare("expand_high_rank_reshape_and_transpose", lambda d: _high(d, d.pick((6, 7))), lambda d: _high(d, 5))


# -- rank0_expand_dims_swap


def _scalar(d: Draw, wrong: bool = False) -> dict[str, Any]:
    p = Program(d)
    x = p.op("reduce_sum", x=p.input((d.dim(1, 4),)), axes=[0], keep_dims=wrong)
    kind = d.pick(("add", "sub", "mul"))
    c = p.const(p.weights(())) if not wrong else p.const(p.weights((1,)))
    y = p.op(kind, x=x, y=c)
    z = p.op("expand_dims", x=y, axes=[0])
    outs = [p.op("abs", x=z)] + ([p.op("square", x=y)] if d.bool() else [])
    return p.done(*outs, fires=not wrong)


declare("rank0_expand_dims_swap", _scalar, lambda d: _scalar(d, True))
