"""Respellings of shapes: operands that widen or are widened, extents of 1, fewer axes, extents that a model leaves
open."""

from __future__ import annotations

import numpy as np

from harness.declare import T
from suites.programs.respell.view import Site, View

MOST_RANK = 6
MOST_ELEMENTS = 1 << 14  # of a constant
EXTENTS = (0, 0, 0, 16, 128, 257, 2049)  # none, a vector, beyond i8, beyond u8, more than f16 counts


def _outer(v: View) -> list[tuple[int, str]]:
    """(node, operand) of inputs and constants that broadcast with another operand."""
    out = []
    for i in range(len(v.g.nodes)):
        for name in dict.fromkeys(v.pair(i) or ()):
            t = v.input(name)
            if name in v.g.consts or (t is not None and t.kind == "tensor" and t.values is None):
                out.append((i, name))
    return out


def widening(v: View) -> list[Site]:
    """Inputs and constants that may make the other operand wider."""
    out: list[Site] = []
    for i, name in _outer(v):
        pair = v.pair(i)
        assert pair is not None
        shape, other = v.values[name].shape, v.values[pair[0] if pair[1] == name else pair[1]].shape
        if len(shape) <= len(other) < MOST_RANK:
            out.append((name, "axis"))
        out += [(name, k - len(shape)) for k in range(len(shape)) if k - len(shape) >= -len(other) and shape[k] == 1]
    return out


def widen(v: View, at: Site) -> None:
    """An axis in front of all that the other operand has, or an axis of extent 1 made longer."""
    name, how = at
    shape = v.values[name].shape
    if how == "axis":
        rank = max(len(x.shape) for i, n in _outer(v) if n == name for x in (v.values[m] for m in v.pair(i) or ()))
        new = (2, *(1,) * (rank - len(shape)), *shape)
    else:
        new = (*shape[: len(shape) + how], 2, *shape[len(shape) + how + 1 :])
    _resize(v, name, new)


def _resize(v: View, name: str, new: tuple[int, ...]) -> None:
    t = v.input(name)
    if t is None:
        old = v.g.consts[name]
        v.g.consts[name] = np.broadcast_to(old.reshape((1,) * (len(new) - old.ndim) + old.shape), new).copy()
    else:
        t.shape = new


def narrowing(v: View) -> list[Site]:
    """Operands that may have an extent of 1 where the other one has more."""
    out: list[Site] = []
    for _, name in _outer(v):
        shape = v.values[name].shape
        out += [(name, k) for k in range(len(shape)) if shape[k] > 1]
    return out


def narrow(v: View, at: Site) -> None:
    """An extent of 1, so that the other operand is what widens this one."""
    name, k = at
    t = v.input(name)
    if t is None:
        v.g.consts[name] = v.g.consts[name].take([0], axis=k)
    else:
        t.shape = (*t.shape[:k], 1, *t.shape[k + 1 :])


def _drawn(t: T) -> bool:
    return t.kind == "tensor" and t.values is None


def _axes(v: View) -> list[tuple[int, int, int]]:
    """(input, axis, extent) of the inputs whose extents may be others.  An image has those that it has."""
    images = v.g.meta.get("images", ())
    free = [(i, t) for i, t in enumerate(v.inputs) if _drawn(t) and f"p{i}" not in images]
    return [(i, k, n) for i, t in free for k, n in enumerate(t.shape)]


def extents(v: View) -> list[Site]:
    """Extents of inputs above 1, wherever else they stand, in the shape of a reshape as well or not; or one axis."""
    return [s for s in _sites(v) if (v.inputs[s[1]].shape[s[2]] if s[0] == "input" else s[1]) > 1]


def extent_of_one(v: View, at: Site) -> None:
    """Axes of this extent have extent 1 everywhere, or one axis of one input has."""
    _change(v, at, 1)


def any_extents(v: View) -> list[Site]:
    """Extents of inputs, as above; none of programs with states, whose shapes stay."""
    return [] if any(t.kind == "state" for t in v.inputs) else _sites(v)


def _sites(v: View) -> list[Site]:
    axes = _axes(v)
    found = [] if v.g.meta.get("images") else sorted({n for *_, n in axes})
    single = [("input", i, k) for i, k, _ in axes]
    return [*(("all", n) for n in found), *(("stated", n) for n in found), *single]


def other_extent(v: View, at: Site) -> None:
    """Axes of this extent have none or many elements everywhere, or one axis of one input has."""
    _change(v, at, v.d.pick(EXTENTS))


def _change(v: View, at: Site, new: int) -> None:
    if at[0] == "input":
        t = v.inputs[at[1]]
        t.shape = (*t.shape[: at[2]], new, *t.shape[at[2] + 1 :])
        return
    old = at[1]
    for t in v.inputs:
        if _drawn(t):
            t.shape = tuple(new if n == old else n for n in t.shape)
    for name in {c.name for c, _ in v.const_uses()}:
        value = v.g.consts[name]
        for k, n in enumerate(value.shape):
            if n == old and value.size // max(1, n) * new <= MOST_ELEMENTS:  # one that is larger is none to try
                value = value.take(np.arange(new) % n if n else [], axis=k)
        v.g.consts[name] = value
    for i, node in enumerate(v.g.nodes) if at[0] == "stated" else ():
        told = v.parameter(i, v.words.reshape[2]) if node.op == v.words.reshape[0] else None
        if told is not None and np.any(np.asarray(told) == old):
            v.set_parameter(i, v.words.reshape[2], np.where(np.asarray(told) == old, new, told))


def _free(v: View) -> list[int]:
    """Inputs that may have other axes.  An image has those that it has."""
    images = v.g.meta.get("images", ())
    return [i for i, t in enumerate(v.inputs) if _drawn(t) and f"p{i}" not in images]


def leading(v: View) -> list[Site]:
    """How many axes may be dropped in front of all inputs, or put there, or in front of one among several."""
    free = _free(v)
    if not free:
        return []
    most = max(len(v.inputs[i].shape) for i in free)
    counts = [*range(1, most), *range(-1, most - v.words.max_rank - 1, -1)]
    every = [] if v.g.meta.get("images") else [(k,) for k in counts]
    return every + [(k, i) for i in free for k in counts if len(v.inputs) > 1]


def drop(v: View, at: Site) -> None:
    """Inputs lose axes in front, down to the least rank that the language has for one, or each has some more."""
    for i in _free(v):
        t = v.inputs[i]
        if i in (at[1:] or (i,)):
            most = max(0, len(t.shape) - v.words.input_rank)
            t.shape = tuple(t.shape)[min(at[0], most) :] if at[0] > 0 else (*(1,) * (-at[0] - 1), 2, *t.shape)


def openable(v: View) -> list[Site]:
    """Axes of inputs."""
    most = v.words.open_axes if not any(t.kind == "state" for t in v.inputs) else 0  # a state has one shape
    axes = [(i, k) for i, k, _ in _axes(v) if k < most]
    return [("one", *a) for a in axes] + ([("all",)] if axes else [])


def leave_open(v: View, at: Site) -> None:
    """The model leaves an extent open, or the first of every input."""
    if at[0] == "one":
        v.words.open(v, f"p{at[1]}", [at[2]])
    else:
        for i in _free(v):
            if v.inputs[i].shape:
                v.words.open(v, f"p{i}", [0])
