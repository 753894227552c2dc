"""The runs of an instance: one loaded model runs several times, with other data or at other extents.

A runtime keeps buffers, plans, and weights packed for the extents of the first run.  Defects there do not show in the
first run of a model.  So an instance may name further runs (``reruns``).  If more data draws are
requested than an instance has runs, its runs repeat in turn, each with data of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.instance import Arg, Graph, Instance
from harness.declare import Dialect, OpVersion
from harness.generate.draw_engines import Vary
from harness.generate.recipes import SHIFT

Args = dict[str, Arg | list[Arg]]
TRIES = 3  # draws of other extents, until one leaves the constants as they are
OTHER = 0x2545F491  # added to the seed of what is drawn at other extents


def fixed(a: Arg | list[Arg]) -> bool:
    """Is the argument the same in every data draw?"""
    if isinstance(a, list):
        return all(fixed(x) for x in a)
    return a.const or a.values is not None or a.recipe.startswith(("index", "signed_index", "perm", "ints"))


def args_of(inst: Instance, run: int) -> Args:
    """What is given in a run, by slot.  run: from 0; beyond the named ones they come in turn, with other data."""
    turn, k = divmod(run, 1 + len(inst.reruns))
    args = {**inst.args, **inst.reruns[k - 1]} if k else inst.args
    return {slot: _shifted(a, turn) for slot, a in args.items()} if turn else args


def _shifted(a: Arg | list[Arg], n: int) -> Any:
    if isinstance(a, list):
        return [x if fixed(x) else _again(x, n) for x in a]
    return a if fixed(a) else _again(a, n)


def _again(a: Arg, n: int) -> Arg:
    if a.items is not None:
        return replace(a, items=[_again(x, n) for x in a.items])
    return a if a.values is not None else replace(a, seed=a.seed + n * SHIFT)


def at_run(inst: Instance, run: int) -> Instance:
    """The instance that has a run of this one as its only run."""
    return replace(inst, args=args_of(inst, run), reruns=(), choices=None if run else inst.choices)


def up_to(inst: Instance, run: int) -> Instance:
    """The instance with all runs to this one, each of them named."""
    named = []
    for r in range(1, run + 1):
        args = args_of(inst, r)
        named.append({slot: a for slot, a in args.items() if a != inst.args.get(slot)})
    return replace(inst, reruns=tuple(named), choices=None)


def other_extents(v: OpVersion, inst: Instance, seed: int) -> Args | None:
    """The arguments of the same instance at other extents, only those that differ.

    None where the extents, and the data that goes with them, cannot change by themselves.  Axes that change are
    declared as such in ``inst``.
    """
    if inst.choices is None or any(isinstance(x, np.ndarray) for x in inst.attrs.values()):
        return None
    return next((x for k in range(TRIES) if (x := _varied(v, inst, seed + k)) is not None), None)


def _varied(v: OpVersion, inst: Instance, seed: int) -> Args | None:
    assert inst.choices is not None
    try:
        other = v.draw(Vary(inst.choices, seed), inst.opset)
        if not _same(other.attrs, inst.attrs) or other.outs != inst.outs or other.args.keys() != inst.args.keys():
            return None
        if other.shared() != inst.shared():  # one tensor has one shape
            return None
    except Exception:  # choices that fit these extents only
        return None
    out: Args = {}
    moved: list[tuple[Arg, Arg]] = []
    for slot, a in inst.args.items():
        b = other.args[slot]
        pairs = _pairs(a, b)
        if pairs is None:
            return None
        given = False
        for x, y in pairs:
            if not _alike(x, y):
                return None
            if x.shape != y.shape:
                moved.append((x, y))
            if not fixed(y):
                y.seed += OTHER  # drawn for this alone
            given = given or not y.const
        if given:
            out[slot] = b
    if not moved:
        return None
    for x, y in moved:
        _declare(v.dialect, x, y)
    return out


def _same(a: Any, b: Any) -> bool:
    """Are these attributes the same, but for the extents that blocks declare of their tensors?"""
    if isinstance(a, Graph) and isinstance(b, Graph):
        return (
            [n for n, _ in a.inputs] == [n for n, _ in b.inputs]
            and all(_alike(x, y) for (_, x), (_, y) in zip(a.inputs, b.inputs))
            and len(a.nodes) == len(b.nodes)
            and all(
                (m.op, m.inputs, m.outputs, m.version) == (n.op, n.inputs, n.outputs, n.version)
                and _same(m.attrs, n.attrs)
                for m, n in zip(a.nodes, b.nodes)
            )
            and a.outputs == b.outputs
            and _same(a.consts, b.consts)
            and _declared(a.meta, b.meta)
        )
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict) and isinstance(b, dict):
        same = a.keys() == b.keys()
        return same and all(_declared(v, b[k]) if k == "@outputs" else _same(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _declared(a: Any, b: Any) -> bool:
    """The same of what describes tensors by their fields."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(
            len(v) == len(b[k]) if k == "shape" else _declared(v, b[k]) for k, v in a.items()
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_declared, a, b))
    return _same(a, b)


def _pairs(a: Arg | list[Arg], b: Arg | list[Arg]) -> list[tuple[Arg, Arg]] | None:
    if isinstance(a, list) or isinstance(b, list):
        return list(zip(a, b)) if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) else None
    return [(a, b)]


def _alike(x: Arg, y: Arg) -> bool:
    """Does the one differ from the other in extents and data alone, and is a constant the same?"""
    if x.const:
        return x == y
    return (
        x.kind == y.kind == "tensor"
        and x.dtype is y.dtype
        and not y.const
        and len(x.shape) == len(y.shape)
        and x.quant == y.quant
    )


def _declare(dialect: Dialect, x: Arg, y: Arg) -> None:
    axes: Sequence[int] = [i for i, (n, m) in enumerate(zip(x.shape, y.shape)) if n != m]
    if dialect.declares_extents:
        x.dynamic = y.dynamic = tuple(sorted({*x.dynamic, *axes}))
