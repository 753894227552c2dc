"""Respellings of elements: another type, values that overflow a narrower one, NaN and infinities; constants that are
given at run time, and inputs that are constants."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from harness.core.dtypes import DType, of
from harness.core.instance import Arg, Graph
from harness.declare import T
from harness.generate import ends
from harness.generate.recipes import materialize
from suites.programs.respell.operands import site, use
from suites.programs.respell.view import Site, View

LARGEST_CONSTANT = 256  # elements of an input that becomes one
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 1e-40, 65520.0, -1e5, 3.4e38)  # 65520: beyond f16
BOUND = ("index", "signed_index", "perm", "ints")  # recipes whose values other operands depend on


def floats(v: View) -> list[Site]:
    """Element types that the program's floats may have instead."""
    have = [d for d in v.words.floats if d in v.dtypes()]
    return [(a.name, b.name) for a in have for b in v.words.floats if b is not a and b not in have]


def retype(v: View, at: Site) -> None:
    """All inputs, constants and attributes of one float type are of another."""
    by_name = {d.name: d for d in v.words.floats}
    old, new = by_name[at[0]], by_name[at[1]]
    for t in v.inputs:
        if t.dtype is old:
            t.dtype = new
    _in_graph(v.g, old, new)
    v.words.retype(v, old, new)


def _in_graph(g: Graph, old: DType, new: DType) -> None:
    """Constants and arguments of a graph, and of the blocks in it."""
    for name, value in g.consts.items():
        if _of(value) is old:
            with np.errstate(all="ignore"):
                g.consts[name] = value.astype(new.np)
    g.inputs = [(n, replace(a, dtype=new) if a.dtype is old else a) for n, a in g.inputs]
    for node in g.nodes:
        for a in node.attrs.values():
            if isinstance(a, Graph):
                _in_graph(a, old, new)


def _of(a: np.ndarray) -> DType | None:
    return None if a.dtype.kind in "OSU" else of(a)


def drawn(v: View) -> list[Site]:
    """Inputs of numbers whose values nothing else depends on."""
    return [
        (i,)
        for i, t in enumerate(v.inputs)
        if t.dtype is not None and t.dtype.kind in "fiu" and t.kind == "tensor" and t.values is None and _free(t)
    ]


def _free(t: T) -> bool:
    return not (t.recipe or "").startswith(BOUND)


def special_inputs(v: View, at: Site) -> None:
    """NaN, infinities, subnormals and the limits of the type among the data, or at its ends; or NaN alone there."""
    t = v.inputs[at[0]]
    assert t.dtype is not None
    how, size = v.d.int(0, 3), math.prod(t.shape)
    if how == 0 or not 0 < size <= ends.MOST:
        t.recipe = "special"
        return
    t.values = ends.elements(v.d, Arg(t.dtype, tuple(t.shape), False))
    if how > 1 and t.dtype.kind == "f":
        for k in v.d.pick(((0,), (-1,), (0, -1))):
            t.values[k] = float("nan")


def wide_inputs(v: View, at: Site) -> None:
    """Values that overflow a narrower type among the data."""
    t = v.inputs[at[0]]
    assert t.dtype is not None
    t.recipe = "uniform:-200000:200000" if t.dtype.kind == "f" and t.dtype.bits >= 32 else "wide"
    if t.dtype.kind in "iu":
        t.recipe = "full"


def float_constants(v: View) -> list[Site]:
    found = [(c, u) for c, u in v.const_uses() if c.dtype.kind == "f" and np.prod(c.shape, dtype=int)]
    return [site(u) for _, u in found]


def special_constant(v: View, at: Site) -> None:
    """One element of a constant is NaN, infinite, -0, subnormal or beyond the narrower type."""
    u = use(at)
    old = v.g.consts[v.operand(u)]
    new = np.array(old)
    with np.errstate(all="ignore"):
        new.reshape(-1)[v.d.int(0, new.size - 1)] = np.asarray(v.d.pick(SPECIAL), np.float64).astype(old.dtype)
    v.give(u, v.const(new))


def constants(v: View) -> list[Site]:
    """Constants of numbers that may be given at run time instead."""
    return [site(u) for c, u in v.const_uses() if c.dtype.kind in "fiub" and v.words.movable(v, u.node, u.slot)]


def at_run_time(v: View, at: Site) -> None:
    """The same values, as an input."""
    u = use(at)
    old = v.g.consts[v.operand(u)]
    v.inputs.append(T(old.shape, "values", of(old), False, values=old.ravel().tolist()))
    v.give(u, f"p{len(v.inputs) - 1}")


def inputs(v: View) -> list[Site]:
    """Inputs that may be constants, beside another one."""
    out = []
    for i, t in enumerate(v.inputs):
        value = v.values[f"p{i}"]
        small = np.prod(t.shape, dtype=int) <= LARGEST_CONSTANT
        if len(v.inputs) > 1 and t.kind == "tensor" and small and not value.output and t.dtype is not None:
            out += [(i, *site(u)) for u in value.users]
    return out


def constant(v: View, at: Site) -> None:
    """One of the users of an input takes a constant with such values instead.  The last input goes if it was the only
    one; others are still there."""
    t = v.inputs[at[0]]
    assert t.dtype is not None
    if t.values is not None:
        value = np.array(t.values, t.dtype.np).reshape(t.shape)
    else:
        value = np.asarray(materialize(Arg(t.dtype, tuple(t.shape), True, t.recipe or "unit", 1)))
    v.give(use(at[1:]), v.const(value))
    if at[0] == len(v.inputs) - 1 and len(v.values[f"p{at[0]}"].users) == 1:
        v.words.forget(v, f"p{at[0]}")
        v.inputs.pop()
