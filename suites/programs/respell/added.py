"""Respellings that add an op, before an operand or behind an output: with a constant, with a further input of the same
type or of another, a reduction.  They give the pattern a neighbour, and other respellings a place."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harness.core.dtypes import BOOL, DType
from harness.core.instance import Arg
from harness.declare import T
from harness.generate import ends
from suites.programs.program import RECIPES, grid
from suites.programs.respell import geometry
from suites.programs.respell.operands import site, use
from suites.programs.respell.view import Site, View, plain
from suites.programs.values import operands

MOST_INPUTS = 6
_OUTPUT = (-1, "", None)


def _places(v: View, takes: Callable[[DType], bool]) -> list[Site]:
    """Operands of floats that are data, and outputs that a node makes.  Integers may be extents or places further on.
    What follows from constants alone may have to be constant, or of no other shape, as a scale."""
    out: list[Site] = []
    told = [{p.name for p in v.parameters(i)} for i in range(len(v.g.nodes))]
    known = set(v.g.consts)
    for node in v.g.nodes:
        names = [n for _, _, n in operands(node)]
        if names and known.issuperset(names):
            known.update(node.outputs)
    for x in v.data():
        if not takes(x.dtype) or not v.words.takes_op(v, x.name):
            continue
        for u in v.uses(x):
            data = x.dtype.kind == "f" and (x.name not in known or len(x.shape) > 1 or _broadcasts(v, u.node))
            free = x.name not in known or v.words.movable(v, u.node, u.slot)
            if data and free and u.slot not in told[u.node]:
                out.append((x.name, *site(u)))
        if x.output and x.producer is not None and v.words.extensible(v, x.name):
            out.append((x.name, *_OUTPUT))
    return out


def _broadcasts(v: View, i: int) -> bool:
    return v.words.slots(v, v.g.nodes[i].op) is not None


def _put(v: View, at: Site, write: Callable[[int], str]) -> None:
    """The result of the nodes that ``write`` adds before a node, in place of an operand or of an output."""
    before, where = len(v.g.nodes), at[1] if at[1] >= 0 else len(v.g.nodes)
    new = write(where)
    if at[1] < 0:
        v.g.outputs = [new if o == at[0] else o for o in v.g.outputs]
    else:
        u = use(at[1:])
        v.give(type(u)(u.node + len(v.g.nodes) - before, u.slot, u.position), new)


def arithmetic(v: View) -> list[Site]:
    """Floats, and integers that may be compared."""
    return _places(v, lambda d: d.kind == "f" or d in v.words.integers)


def _op(v: View, dtype: DType) -> str:
    return str(v.d.pick(v.words.arithmetic if dtype.kind == "f" else v.words.extremes))


def with_constant(v: View, at: Site) -> None:
    """An op with a constant: a scalar, one for each element of the last axes, or one for each element."""
    x = v.values[at[0]]
    shape = x.shape[v.d.int(0, len(x.shape)) :] if v.d.bool() and 0 not in x.shape else ()
    value = (grid(v.d, shape, -3, 4, 0.25) + 0.125) if x.dtype.kind == "f" else grid(v.d, shape, -3, 4, 1)
    c = v.const(value.astype(x.dtype.np))
    _put(v, at, lambda i: v.words.binary(v, i, _op(v, x.dtype), at[0], c))


def _further(v: View) -> bool:
    return len(v.inputs) < MOST_INPUTS


def with_input_sites(v: View) -> list[Site]:
    return arithmetic(v) if _further(v) else []


def with_input(v: View, at: Site) -> None:
    """An op with a further input, of the same shape or one that broadcasts with it."""
    x = v.values[at[0]]
    free = _summed(v, at)
    shape = _any(v) if free else x.shape if v.d.bool() else _beside(v, x.shape)
    p = _input(v, x.dtype, shape, v.d.pick((*RECIPES, "special")))
    left, op = v.d.bool(), _op(v, x.dtype)

    def write(i: int) -> str:
        y = _total(v, i, at[0]) if free else at[0]
        return v.words.binary(v, i + free, op, *((p, y) if left else (y, p)))

    _put(v, at, write)


def _summed(v: View, at: Site) -> bool:
    """May the op be put behind the sum of an output, half the time?  Beside it the input may have any shape."""
    return at[1] < 0 and v.values[at[0]].dtype.kind == "f" and bool(v.values[at[0]].shape) and v.d.bool()


def _total(v: View, i: int, x: str) -> str:
    return v.words.total(v, i, x, np.arange(len(v.values[x].shape)), False)


def _any(v: View) -> tuple[int, ...]:
    """A shape of any rank, often without elements."""
    rank = v.d.int(max(2, v.words.input_rank), v.words.max_rank)
    out = [v.d.int(1, 3) for _ in range(rank)]
    if v.d.bool():
        out[v.d.int(0, rank - 1)] = 0
    return tuple(out)


def typed_sites(v: View) -> list[Site]:
    """Operands and outputs that another element type may be combined with: a mask with any, a number with floats."""
    return _places(v, lambda d: plain(d) or d is BOOL) if _further(v) else []


def with_typed_input(v: View, at: Site) -> None:
    """A further input of another element type: a mask that selects, or numbers that are cast first."""
    x = v.values[at[0]]
    kinds = [d for d in v.words.types if d is not x.dtype] if x.dtype.kind == "f" else [BOOL]
    dtype = v.d.pick(kinds)
    free = dtype is not BOOL and _summed(v, at)
    shape = _any(v) if free else _beside(v, x.shape)
    if dtype is BOOL and not v.words.masks_widen and np.broadcast_shapes(shape, x.shape) != x.shape:
        shape = x.shape
    p = _input(v, dtype, shape, v.d.pick(("small", "full", "special")))
    if dtype is BOOL:
        _put(v, at, lambda i: v.words.masked(v, i, at[0], p))
    else:
        op = _op(v, x.dtype)

        def write(i: int) -> str:
            y = _total(v, i, at[0]) if free else at[0]
            return v.words.binary(v, i + free + 1, op, y, v.words.cast(v, i + free, p, x.dtype))

        _put(v, at, write)


def _input(v: View, dtype: DType, shape: tuple[int, ...], recipe: str) -> str:
    """A further input; its first or last elements are at the ends of the type now and then."""
    t = T(shape, "small" if dtype is BOOL else recipe, dtype, False)
    size = math.prod(shape)
    if dtype is BOOL:
        how = v.d.int(0, 2)
        t.values = [bool((k + k // 3) % 2) if how == 2 else how == 1 for k in range(size)]
    elif recipe == "special" and 0 < size <= ends.MOST and v.d.bool():
        t.values = ends.elements(v.d, Arg(dtype, shape, False))
    v.inputs.append(t)
    return f"p{len(v.inputs) - 1}"


def _beside(v: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one: the same, fewer axes, axes of extent 1, more axes, or a longer axis."""
    most, least = v.words.max_rank, v.words.input_rank
    how = v.d.int(0, 7)
    if how == 0:
        out = shape
    elif how == 1:
        out = shape[v.d.int(0, len(shape)) :]
    elif how == 2:
        out = tuple(1 if v.d.bool() else n for n in shape)
    else:
        more = v.d.int(0, max(0, most - len(shape)))
        out = (*(1,) * more, *(1 if how > 5 else n for n in shape))
        ones = [k for k in range(len(out)) if out[k] == 1 and (k < more or shape[k - more] == 1)]
        if how > 3 and ones:
            k = v.d.pick(ones)
            out = (*out[:k], v.d.pick(geometry.EXTENTS), *out[k + 1 :])
    return tuple(out) if len(out) >= least else (*(1,) * (least - len(out)), *out)


def reducible(v: View) -> list[Site]:
    """Outputs of floats that have an axis."""
    return [s for s in _places(v, lambda d: d.kind == "f") if s[1] < 0 and v.values[s[0]].shape]


def reduce(v: View, at: Site) -> None:
    """The sum over one axis, or over all."""
    rank = len(v.values[at[0]].shape)
    axes = [v.d.int(0, rank - 1)] if v.d.bool() else list(range(rank))
    keep = v.d.bool()
    _put(v, at, lambda i: v.words.total(v, i, at[0], np.array(axes), keep))
