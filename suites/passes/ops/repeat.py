"""The same op twice in a row."""

from __future__ import annotations

from math import prod
from typing import Any

from harness.core.dtypes import F32
from harness.declare import Draw
from suites.passes import declare
from suites.passes.program import Program
from suites.semantics.movement.shape import _factors


def _perm(d: Draw, rank: int) -> list[int]:
    return [a - rank if d.chance(4) else a for a in d.shuffle(range(rank))]


def transposes(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(2, 5, lo=1)
    y = p.op("relu", x=p.input(shape))
    for _ in range(d.int(2, 4)):
        y = p.op("transpose", x=y, perm=_perm(d, len(shape)))
    return p.done(p.op("abs", x=y))


def _apart(d: Draw) -> dict[str, Any]:
    """An op between, the first one an output, or used twice."""
    p = Program(d)
    x = p.input((d.dim(1, 3), d.dim(1, 3), d.dim(1, 3)))
    a = p.op("transpose", x=x, perm=[1, 0, 2])
    kind = d.pick(("between", "output"))
    b = p.op("transpose", x=p.op("relu", x=a) if kind == "between" else a, perm=[0, 2, 1])
    outs = [p.op("abs", x=b)] + ([a] if kind == "output" else [])
    return p.done(*outs, fires=False, pattern=f"near miss {kind}")


declare("merge_consecutive_transposes", transposes, transposes, _apart)


def reshapes(d: Draw) -> dict[str, Any]:
    p = Program(d)
    shape = d.shape(1, 4, lo=1)
    y = p.op("relu", x=p.input(shape))
    for _ in range(d.int(2, 4)):
        target = _factors(d, prod(shape), d.int(1, 5))
        if d.chance(3):
            target[d.int(0, len(target) - 1)] = -1
        y = p.op("reshape", x=y, shape=target)
    return p.done(p.op("abs", x=y))


def _reshape_apart(d: Draw) -> dict[str, Any]:
    p = Program(d)
    a = p.op("reshape", x=p.input((2, 6)), shape=[3, 4])
    b = p.op("reshape", x=p.op("softmax", x=a, axis=-1), shape=[12])
    return p.done(p.op("abs", x=b), fires=False)


declare("merge_consecutive_reshapes", reshapes, _reshape_apart)


def _relus(d: Draw) -> dict[str, Any]:
    p = Program(d)
    y = p.op("square", x=p.input(d.shape(1, 4, lo=1)))
    for _ in range(d.int(2, 3)):
        y = p.op("relu", x=y)
    return p.done(p.op("abs", x=y))


def _relu_apart(d: Draw) -> dict[str, Any]:
    p = Program(d)
    a = p.op("relu", x=p.input(d.shape(1, 4, lo=1)))
    return p.done(p.op("relu", x=p.op("sub", x=a, y=1.0)), fires=False)


declare("merge_consecutive_relus", _relus, _relu_apart)


def pads(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    shape = (d.dim(1, 3), d.dim(1, 3), d.int(3, 5), d.int(3, 5))
    x = p.op("relu", x=p.input(shape))
    value = d.pick((0.0, 1.5))
    if d.bool():
        first, second = [d.int(0, 2) for _ in range(4)], [d.int(0, 2) for _ in range(4)]
        y = p.op("pad", x=x, pad=first, mode="constant", constant_val=value)
        y = p.op("pad", x=y, pad=second, mode="constant", constant_val=value)
        return p.done(p.op("abs", x=y), pattern="match one value")
    mode = d.pick(("reflect", "replicate"))
    y = p.op("pad", x=x, pad=[1, 1, 0, 0], mode=mode)
    return p.done(p.op("abs", x=p.op("pad", x=y, pad=[0, 0, 1, 1], mode=mode)), pattern="match other axes")


def _pads_apart(d: Draw) -> dict[str, Any]:
    """Two values, or two modes, or a mirror of what the first one added."""
    p = Program(d, F32)
    x = p.op("relu", x=p.input((1, 2, 4, 4)))
    kind = d.pick(("values", "modes", "mirror"))
    first = {"values": ("constant", 0.0), "modes": ("constant", 0.0), "mirror": ("reflect", 0.0)}[kind]
    second = {"values": ("constant", 1.0), "modes": ("reflect", 0.0), "mirror": ("reflect", 0.0)}[kind]
    y = p.op("pad", x=x, pad=[1, 1, 0, 0], mode=first[0], constant_val=first[1])
    y = p.op("pad", x=y, pad=[1, 1, 0, 0], mode=second[0], constant_val=second[1])
    return p.done(p.op("abs", x=y), fires=False, pattern=f"near miss {kind}")


declare("merge_consecutive_paddings", pads, _pads_apart)


def _casts(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    x = p.op("relu", x=p.input(d.shape(1, 3, lo=1), "small"))
    if d.bool():
        y = p.op("cast", x=x, dtype="fp32")
        return p.done(p.op("abs", x=y), pattern="match to itself")
    y = p.op("cast", x=p.op("cast", x=p.op("cast", x=x, dtype="fp16"), dtype="fp32"), dtype="fp16")
    return p.done(p.op("abs", x=y), pattern="match widened between")


def _narrowing(d: Draw) -> dict[str, Any]:
    """The type in the middle loses digits: merging the two casts would not."""
    p = Program(d, F32)
    x = p.op("relu", x=p.input(d.shape(1, 3, lo=1), "uniform:-4:4"))
    y = p.op("cast", x=p.op("cast", x=x, dtype="fp16"), dtype="fp32")
    return p.done(p.op("abs", x=y), fires=False)


declare("cast_optimization", _casts, _narrowing)


def _cancelling(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    perm = d.pick(([0, 2, 3, 1], [1, 0, 2, 3], [3, 2, 1, 0]))
    back = [perm.index(i) for i in range(4)]
    y = p.op("transpose", x=p.input((d.dim(1, 3), d.dim(1, 3), d.dim(1, 4), d.dim(1, 4))), perm=perm)
    for _ in range(d.int(1, 2)):
        y = p.op(d.pick(("relu", "tanh", "square", "abs")), x=y)
    if d.bool():
        y = p.op("add", x=y, y=d.pick((1.0, 0.5)))
    return p.done(p.op("relu", x=p.op("transpose", x=y, perm=back)))


def _reducing(d: Draw) -> dict[str, Any]:
    """Axis by axis: a reduction or a pad between the two."""
    p = Program(d, F32)
    y = p.op("transpose", x=p.input((2, 3, 4, 5)), perm=[0, 2, 3, 1])
    y = p.op("reduce_mean", x=y, axes=[d.pick((1, 2, 3, -1))], keep_dims=True)
    return p.done(p.op("relu", x=p.op("transpose", x=y, perm=[0, 3, 1, 2])), pattern="match across a reduction")


def _alone(d: Draw) -> dict[str, Any]:
    p = Program(d, F32)
    y = p.op("relu", x=p.op("transpose", x=p.input((2, 3, 4)), perm=[0, 2, 1]))
    return p.done(p.op("softmax", x=y, axis=-1), fires=False)


declare("reduce_transposes", _cancelling, _cancelling, _reducing, _alone)
