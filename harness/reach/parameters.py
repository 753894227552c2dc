"""Kinds of goals about parameters: values, pairs of them, axes, lists, integers beside extents and each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from harness.reach.facts import Facts, Filled, Parameter, worded

_AXIS_RANKS = (1, 2, 3, 4)  # each value from -r to r-1 of these
_MOST_PAIRED = 8  # options of a parameter that takes part in pairs
I32_MIN, I32_MAX = -(2**31), 2**31 - 1
_RELATIONS = ("0", "1", "extent-1", "extent", "extent+1", "far beyond", "negative", "INT_MIN", "INT_MAX")
_OF_EXTENTS = {"extent-1", "extent", "extent+1", "far beyond"}  # of an operand; an op without one has none
_FAR = 8  # beyond the extent


def values(f: Facts) -> list[str]:
    """Each stated value of each parameter, left out and spelled out; a float: its default spelled out and another."""
    out = [f"attr:{p.name}={v}" for p in f.parameters for v in p.values]
    for p in f.parameters:
        if not p.options and p.attr is not None:
            out += [f"attr:{p.name}=omitted"] if p.left_out else []
            none = p.name in f.counts and p.attr.default == 0
            out += [f"attr:{p.name}=default"] if p.attr.default is not None and not none else []
            out += [f"attr:{p.name}=other"]
    return out


def values_met(f: Facts, x: Filled) -> Iterator[str]:
    attrs = x.case.inst.attrs
    for p in f.parameters:
        if p.options:
            yield f"attr:{p.name}={_value(x, p)}"
        elif p.attr is not None:
            v = attrs.get(p.name)
            same = v is not None and (v == p.attr.default or (type(v) is list and v == list(p.attr.default or ())))
            same = same or (type(v) is float and v in _rounded(p.attr.default))
            left = "omitted" if p.left_out else "default"
            yield f"attr:{p.name}={left if v is None else 'default' if same else 'other'}"


def _rounded(default: Any) -> tuple[float, ...]:
    """A default as the narrower types of floats hold it."""
    return () if type(default) is not float else (float(np.float16(default)), float(np.float32(default)))


def _value(x: Filled, p: Parameter) -> str:
    v = x.value(p)
    if v is None:
        return "omitted" if p.left_out or p.attr is None else worded(p.attr.default)
    return worded(v)


def value_pairs(f: Facts) -> list[str]:
    """Each pair of values of two parameters with stated values."""
    out = []
    for p, q in _paired(f):
        out += [f"attr-pair:{p.name}={v},{q.name}={w}" for v in p.values for w in q.values]
    return out


def value_pairs_met(f: Facts, x: Filled) -> Iterator[str]:
    paired = _paired(f)
    if paired:
        said = {p.name: _value(x, p) for pair in paired for p in pair}
        for p, q in paired:
            yield f"attr-pair:{p.name}={said[p.name]},{q.name}={said[q.name]}"


def _paired(f: Facts) -> list[tuple[Parameter, Parameter]]:
    return list(combinations([p for p in f.parameters if 0 < len(p.options) <= _MOST_PAIRED], 2))


def axes(f: Facts) -> list[str]:
    """Each value from -r to r-1 of what names an axis, alone or in a list."""
    return [
        f"axis:{p.name}={k},r={r}"
        for p in f.parameters
        if p.kind in ("axis", "axes")
        for r in _ranks(f, p)
        for k in range(-r, r)
    ]


def _ranks(f: Facts, p: Parameter) -> Iterator[int]:
    o = next((o for o in f.operands if o.name == p.of), f.operands[0] if f.operands else None)
    return (r for r in _AXIS_RANKS if o is None or o.low <= r <= o.high)


def axes_met(f: Facts, x: Filled) -> Iterator[str]:
    for p in f.parameters:
        if p.kind in ("axis", "axes"):
            v, shape = x.value(p), _shape(f, x, p)
            if v is not None and shape is not None:
                for k in v if isinstance(v, (list, tuple)) else (v,):
                    whole = int(k) if type(k) is float and k.is_integer() else k  # an operand of floats may say it
                    yield f"axis:{p.name}={whole},r={len(shape)}"


def _shape(f: Facts, x: Filled, p: Parameter) -> tuple[int, ...] | None:
    """The shape of the operand whose axes a parameter speaks of, else of the first one; of the first tensor of a list
    where the op has no other operand."""
    for name in (p.of, *(o.name for o in f.operands)):
        if name is not None and x.args.get(name):
            return x.args[name][0].shape
    held = () if f.operands else (a.items[0].shape for args in x.args.values() for a in args if a.items)
    return next(iter(held), None)


def lists(f: Facts) -> list[str]:
    """Lists that are empty, hold one, several or all, are unsorted, repeat an element, hold either sign, differ."""
    out = []
    for p in f.parameters:
        if p.kind == "axes":
            words = ("empty", "one", "several", "all", "unsorted", "repeated", "negative", "mixed signs")
            out += [f"list:{p.name}={w}" for w in words]
        elif p.kind == "ints":
            known = ("one", "several", "differ", "equal")
            out += [f"list:{p.name}={w}" for w in (*(() if p.name in f.counts else ("empty",)), *known)]
    return out


def lists_met(f: Facts, x: Filled) -> Iterator[str]:
    for p in f.parameters:
        if p.kind in ("axes", "ints"):
            v = x.value(p)
            if isinstance(v, (list, tuple)):
                shape = _shape(f, x, p)
                for w in _words_of(list(v), None if shape is None else len(shape)):
                    yield f"list:{p.name}={w}"


def _words_of(v: list[Any], rank: int | None) -> Iterator[str]:
    if len(v) < 2:
        yield "one" if v else "empty"
    else:
        yield "several"
        yield "differ" if len(set(v)) > 1 else "equal"
        folded = [k % rank for k in v] if rank else v
        if len(set(folded)) < len(v):
            yield "repeated"
        if folded != sorted(folded):
            yield "unsorted"
        if min(v) < 0 <= max(v):
            yield "mixed signs"
    if rank == len(v):
        yield "all"
    if v and min(v) < 0:
        yield "negative"


def relations(f: Facts) -> list[str]:
    """Each integer at 0 and 1, below, at and above an extent, far beyond it, negative, at the ends of i32; each two
    integers, and each two lists at one position, in either order and equal."""
    words = {p.name: tuple(w for w in _RELATIONS if w not in _OF_EXTENTS or _beside(f, p)) for p in _whole(f)}
    out = [f"relation:{n}={w}" for n, ws in words.items() for w in ws if w != "INT_MAX" or n not in f.sizes]
    out = [g for g in out if not g.endswith("=0") or g[len("relation:") : -2] not in f.counts]
    return out + [f"relation:{p.name}{c}{q.name}" for p, q in _compared(f) for c in "<=>"]


def _beside(f: Facts, p: Parameter) -> bool:
    """Has the operand that a parameter speaks of, else the first one, extents?  A scalar has none.  A list of axes
    stands beside ranks."""
    if p.name.endswith("_axes"):
        return False
    o = next((o for o in f.operands if o.name == p.of), f.operands[0] if f.operands else None)
    return o is not None and o.high > 0


def _whole(f: Facts) -> list[Parameter]:
    """Parameters that are integers or lists of them; an input may hold floats."""
    slots = {s.name: f.schema.dtypes(s.element) for s in f.schema.inputs}
    found = [p for p in f.parameters if p.kind in ("int", "ints")]
    return [p for p in found if p.attr is not None or any(d.kind in "iu" for d in slots.get(p.name, ()))]


def _compared(f: Facts) -> list[tuple[Parameter, Parameter]]:
    plain = [p for p in _whole(f) if p.kind == "int"]
    listed = [p for p in _whole(f) if p.kind == "ints"]
    return [*combinations(plain, 2), *combinations(listed, 2)]


def relations_met(f: Facts, x: Filled) -> Iterator[str]:
    said: dict[str, list[Any]] = {}
    for p in f.parameters:
        if p.kind in ("int", "ints"):
            v = x.value(p)
            if v is None:
                continue
            found = v if isinstance(v, (list, tuple)) else [v]
            if not all(type(k) is int for k in found):
                continue
            said[p.name] = list(found)
            shape = _shape(f, x, p)
            for w in _related(said[p.name], _extents(x, p, shape)):
                yield f"relation:{p.name}={w}"
    if said:
        for p, q in _compared(f):
            if p.name in said and q.name in said:
                for a, b in zip(said[p.name], said[q.name]):
                    yield f"relation:{p.name}{'<' if a < b else '=' if a == b else '>'}{q.name}"


def _extents(x: Filled, p: Parameter, shape: tuple[int, ...] | None) -> list[tuple[int, ...]]:
    """Per element of a list the extent at its place, of an integer that of the axis named beside it, else all."""
    if not shape:
        return []
    if p.kind == "ints":
        return [(n,) for n in shape]
    axis = x.case.inst.attrs.get("axis")
    if type(axis) is int and -len(shape) <= axis < len(shape):
        return [(shape[axis],)]
    return [shape]


def _related(v: list[int], extents: list[tuple[int, ...]]) -> Iterator[str]:
    for i, k in enumerate(v):
        if k in (0, 1):
            yield str(k)
        if k < 0:
            yield "negative"
            if k <= I32_MIN:
                yield "INT_MIN"
        elif k >= I32_MAX:
            yield "INT_MAX"
        for n in extents[i] if i < len(extents) else ():
            if n - 1 <= k <= n + 1:
                yield ("extent-1", "extent", "extent+1")[k - n + 1]
            elif k >= n + _FAR:
                yield "far beyond"
