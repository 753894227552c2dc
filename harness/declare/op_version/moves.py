"""Places of an instance, and the edges to which they are moved (``op_version.nearby``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.core.dtypes import int_range
from harness.core.instance import SAME, SKIPPED, Arg, Instance
from harness.declare.params import Axes, Axis, Divisor, Each, Integer, Ints, Pads
from harness.declare.schema import Attr
from harness.generate.draw import Draw

ELEMENTS = 1 << 14  # of all results, and of an operand
_MOST_RANK = 8
_INTEGERS = 16  # elements of an operand that holds integers one by one
_WHOLE = (Integer, Divisor, Axis, Axes, Each, Pads, Ints)  # parameters that are integers
_AXES = {"axis", "axes", "perm", "batch_axis", "time_axis"}
_SIMPLE = {"int", "ints", "float", "str", "bool", "dtype"}
_ENDS = (0, 1, -1, 2, -2, 2**24, 2**31 - 1, -(2**31))


def plain(inst: Instance) -> list[tuple[str, int | None, Arg]]:
    """Slot, position in it if it is variadic, and argument, of all plain tensors."""
    out: list[tuple[str, int | None, Arg]] = []
    for slot, given in inst.args.items():
        several = given if isinstance(given, list) else [given]
        for k, a in enumerate(several):
            if a.kind == "tensor" and a.items is None:
                out.append((slot, k if isinstance(given, list) else None, a))
    return out


def changed(inst: Instance, new: dict[tuple[str, int | None], Arg]) -> Instance:
    """The instance with other arguments."""
    args: dict[str, Any] = dict(inst.args)
    for (slot, k), a in new.items():
        if k is None:
            args[slot] = a
        else:
            args[slot] = [a if j == k else x for j, x in enumerate(args[slot])]
    return replace(inst, args=args)


def _rescaled(q: Any, old: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Scales and zero points of each position of an axis, repeated or cut to its new extent."""
    if not q or "block" in q or not {"scale", "zero_point", "axis"} <= q.keys():
        return q
    many, axis = len(q["scale"]), q["axis"]
    if many < 2 or len(shape) != len(old) or shape[axis] in (0, old[axis]):
        return q
    return {**q, **{n: (q[n] * (shape[axis] // many + 1))[: shape[axis]] for n in ("scale", "zero_point")}}


def reshaped(a: Arg, shape: tuple[int, ...]) -> Arg:
    values = a.values
    if values is not None:
        n = math.prod(shape)
        values = (values * (n // len(values) + 1))[:n] if values else ["" if a.dtype.kind == "s" else 0] * n
    dynamic = tuple(i for i in a.dynamic if i < len(shape))
    return replace(a, shape=shape, values=values, dynamic=dynamic, quant=_rescaled(a.quant, a.shape, shape))


def extent_moved(version: Any, d: Draw, inst: Instance, extents: tuple[int, ...] | None = None) -> Instance | None:
    """An axis of no element, of one or of many; half the time so is every axis that was as long, and what else counts
    as many."""
    keeps = version.dialect.keeps(version)
    if "shapes" in keeps:
        return None
    at = [(slot, k, a, i) for slot, k, a in plain(inst) if slot not in keeps for i in range(len(a.shape))]
    if not at:
        return None
    slot, k, a, i = d.pick(at)
    old, new = a.shape[i], d.pick(extents or version.dialect.edge_extents)
    if old == new:
        return None
    if d.bool():
        shapes = [((slot, k), a, (*a.shape[:i], new, *a.shape[i + 1 :]))]
    else:
        free = [(s, j, x) for s, j, x in plain(inst) if s not in keeps]
        shapes = [((s, j), x, tuple(new if n == old else n for n in x.shape)) for s, j, x in free]
    if new > 1 and any(math.prod(shape) > ELEMENTS for *_, shape in shapes):
        return None
    moved = changed(inst, {at: reshaped(x, shape) for at, x, shape in shapes})
    return _counting(version, moved, old, new) if old > 1 < new else moved


def _counting(version: Any, inst: Instance, old: int, new: int) -> Instance:
    """The instance with attributes that count ``new`` where they counted ``old``, but for those that are kept."""
    counts = {a.name for a in version.schema.attrs.values() if a.type in ("int", "ints")}
    counts.difference_update(version.dialect.keeps(version))
    attrs = dict(inst.attrs)
    for name in counts & attrs.keys():
        v = attrs[name]
        attrs[name] = [new if n == old else n for n in v] if isinstance(v, list) else new if v == old else v
    return replace(inst, attrs=attrs)


def rank_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """Axes of one element more, in front or behind, or one of them less; half the time of each operand of that rank.
    Operands that hold integers one by one keep theirs."""
    keeps = frozenset(version.dialect.keeps(version))
    given = [(s, k, a) for s, k, a in plain(inst) if a.values is None or a.dtype.kind != "i"]
    given = [(s, k, a) for s, k, a in given if keeps.isdisjoint((s, f"rank:{s}"))]
    if not given or "shapes" in keeps:
        return None
    slot, k, a = d.pick(given)
    rank = len(a.shape)
    more = (1,) * (d.int(1, _MOST_RANK - rank) if rank < _MOST_RANK and d.int(0, 3) else 0)
    front = d.bool()
    many = d.bool()

    def other(shape: tuple[int, ...]) -> tuple[int, ...]:
        if not more:
            return shape[1:]
        return (*more, *shape) if front else (*shape, *more)

    lo, hi = version.ranks
    if not lo <= len(other(a.shape)) <= hi:
        return None
    some = [(s, j, x) for s, j, x in given if (s, j) == (slot, k) or (many and len(x.shape) == rank)]
    return changed(inst, {(s, j): reshaped(x, other(x.shape)) for s, j, x in some})


def _said(version: Any) -> dict[str, Any]:
    """Attribute or operand -> the parameter of the meaning that it spells, or of which it spells one element."""
    params = version.meaning.params if version.meaning is not None else {}
    spelt = (
        (params[n], getattr(c, "names", None) or (getattr(c, "name", n),)) for n, c in version.param_codecs.items()
    )
    return {name: p for p, names in spelt for name in names}


def _least(version: Any, name: str) -> int | None:
    """The lowest value that the annotation of a parameter admits; None where it admits any."""
    p = _said(version).get(name)
    if isinstance(p, (Each, Integer)):
        return None if p.lo < 0 else p.lo
    return 1 if isinstance(p, Divisor) else 0 if isinstance(p, Pads) else None


def _one_an_axis(version: Any, name: str) -> bool:
    """Is a parameter a list with an element, or two, for each axis?"""
    return isinstance(_said(version).get(name), (Each, Pads))


def _axis(d: Draw, version: Any, rank: int) -> int:
    """One of ``rank`` axes, of either sign where the text counts from the back."""
    return d.int(-rank if version.dialect.counts_back(version) else 0, rank - 1)


def _edge(d: Draw, inst: Instance) -> int:
    """An integer that stands in relation to an extent, or at an end."""
    extents = sorted({n for *_, a in plain(inst) for n in a.shape})
    if extents and d.bool():
        n: int = d.pick(extents)
        return n + int(d.pick((-1, 0, 1, 9)))
    return int(d.pick(_ENDS))


def _list(d: Draw, inst: Instance, old: list[Any], edge: Callable[[], int]) -> list[Any]:
    """A list of integers with another element, or another and a 0, with none, with one, the other way round, or with
    one twice."""
    how = d.int(0, 7)
    if how == 0:
        return []
    if how == 1:
        return old[:1]
    if how == 2:
        return old[::-1]
    if how == 3 and old:
        return [*old[:-1], old[0]]
    new = list(old)
    if new:
        at = d.int(0, len(new) - 1)
        new[at] = edge()
        if how == 4:
            new[at - 1] = 0
    return new


def _numbers(version: Any) -> list[Attr]:
    """The attributes that are integers or lists of them; flags are none, and of which nothing is annotated only axes
    are known to be."""
    known: list[Attr] | None = version.__dict__.get("_numbers")
    if known is None:
        said = _said(version)
        known = [
            a
            for a in version.schema.attrs.values()
            if a.type in ("int", "ints") and not a.enum and (isinstance(said.get(a.name), _WHOLE) or a.name in _AXES)
        ]
        version.__dict__["_numbers"] = known
    return known


def _edges(version: Any, d: Draw, inst: Instance, name: str) -> Callable[[], int]:
    """Draws an integer for a parameter: an axis of the first operand, or an edge within its domain."""
    rank = next((len(a.shape) for *_, a in plain(inst)), 0)
    if name in _AXES:
        return lambda: _axis(d, version, rank) if rank else 0
    least = _least(version, name)
    return lambda: _edge(d, inst) if least is None else max(least, _edge(d, inst))


def number_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """An attribute that is an integer, or a list of them."""
    held = [a for a in _numbers(version) if a.name in inst.attrs or a.default is not None]
    held = [a for a in held if a.name not in version.dialect.keeps(version)]
    if not held:
        return None
    a = d.pick(held)
    old = inst.attrs.get(a.name, a.default)
    edge = _edges(version, d, inst, a.name)
    if a.type == "ints" and not isinstance(old, list):
        return None
    new: Any = edge() if a.type == "int" else _list(d, inst, old, edge)
    if a.type == "ints" and len(new) != len(old) and _one_an_axis(version, a.name):
        return None
    return replace(inst, attrs={**inst.attrs, a.name: new}) if new != old else None


def element_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """An operand that holds integers one by one: axes, sizes, counts."""
    held = [(s, k, a) for s, k, a in plain(inst) if a.values is not None and a.dtype.kind == "i"]
    held = [(s, k, a) for s, k, a in held if 0 < len(a.values or ()) <= _INTEGERS]
    held = [(s, k, a) for s, k, a in held if s not in version.dialect.keeps(version)]
    if not held:
        return None
    slot, k, a = d.pick(held)
    old = list(a.values or ())
    edge = _edges(version, d, inst, slot)
    new = _list(d, inst, old, edge) if len(a.shape) == 1 else [edge(), *old[1:]]
    if new == old or (min(new, default=0) < 0 <= min(old) and slot not in _AXES):
        return None  # what was not negative stays so: an annotation would say more
    lo, hi = int_range(a.dtype)
    if new and not lo <= min(new) <= max(new) <= hi:
        return None
    return changed(inst, {(slot, k): replace(a, shape=(len(new),) if len(a.shape) == 1 else a.shape, values=new)})


def option_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """Another stated value of an attribute, its default spelled out, or left out."""
    held = [a for a in version.schema.attrs.values() if a.type in _SIMPLE and (a.enum or a.default is not None)]
    held = [a for a in held if a.name not in version.dialect.keeps(version)]
    if not held:
        return None
    a = d.pick(held)
    flag = a.type == "bool" or (a.type == "int" and a.default in (0, 1))
    values = [
        *(a.enum or ()),
        *(((False, True) if a.type == "bool" else (0, 1)) if flag else ()),
        *((a.default,) if a.default is not None else ()),
    ]
    if a.default is not None and not a.required:
        values.append(None)
    new = d.pick(values)
    old = inst.attrs.get(a.name)
    if new == old:
        return None
    attrs = {n: v for n, v in inst.attrs.items() if n != a.name}
    return replace(inst, attrs=attrs if new is None else {**attrs, a.name: new})


def without_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """Without an operand that is optional."""
    keeps = version.dialect.keeps(version)
    held = [s.name for s in version.schema.inputs if s.optional and s.name in inst.args and s.name not in keeps]
    if not held or "operands" in keeps:
        return None
    name = d.pick(held)
    return replace(inst, args={n: a for n, a in inst.args.items() if n != name})


def _one_kind(a: Arg, b: Arg) -> bool:
    """Have two operands the same type and parameters?"""
    return a.dtype is b.dtype and a.quant == b.quant


def _same_of_several(d: Draw, inst: Instance, several: list[str]) -> Instance | None:
    """One tensor given twice to a variadic operand."""
    slot = d.pick(several)
    first, other = sorted(d.shuffle(range(len(inst.tensors(slot))))[:2])
    moved = changed(inst, {(slot, other): replace(inst.tensors(slot)[first])})
    return replace(moved, attrs={**moved.attrs, SAME: {f"{slot}#{other}": f"{slot}#{first}"}})


def same_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """One tensor given to two operands of one type, though they were drawn with other shapes or other elements.

    Integers that stand one by one are counts and positions: they stay those of their operand."""
    if not version.dialect.shares_tensors:
        return None
    if version.dialect.shares_elements:
        kept = version.dialect.keeps(version)
        several = [
            s for s, a in inst.args.items() if isinstance(a, list) and len(a) > 1 and not {s, f"same:{s}"} & set(kept)
        ]
        several = [s for s in several if all(a.kind == "tensor" and a.items is None for a in inst.tensors(s))]
        if several:
            return _same_of_several(d, inst, several)
    keeps = frozenset(version.dialect.keeps(version))
    drawn = {slot: a for slot, k, a in plain(inst) if k is None and (a.values is None or a.dtype.kind == "f")}
    drawn = {slot: a for slot, a in drawn.items() if keeps.isdisjoint((slot, f"rank:{slot}", f"data:{slot}", "data:*"))}
    pairs = [(a, b) for a, b in version.alike if a in drawn and b in drawn and _one_kind(drawn[a], drawn[b])]
    if not pairs or "shapes" in keeps:
        return None
    pair = d.pick(pairs)
    first = pair[0] if d.bool() else pair[1]
    const = drawn[first].const or any(s.const for s in version.schema.inputs if s.name in pair)
    moved = changed(inst, {(slot, None): replace(drawn[first], const=const) for slot in pair})
    return replace(moved, attrs={**moved.attrs, SAME: {**inst.attrs.get(SAME, {}), pair[1]: pair[0]}})


def results_moved(version: Any, d: Draw, inst: Instance) -> Instance | None:
    """Another number of results asked for, some of the optional ones before the last left out."""
    outputs = version.schema.outputs
    if (
        "outputs" in version.dialect.keeps(version)
        or not any(o.optional for o in outputs)
        or any(o.variadic for o in outputs)
    ):
        return None
    least = max([i + 1 for i, o in enumerate(outputs) if not o.optional], default=1)
    n = d.int(least, len(outputs))
    skipped = [i for i in range(n - 1) if outputs[i].optional and d.bool()]
    attrs = {k: v for k, v in inst.attrs.items() if k != SKIPPED}
    return replace(inst, outs=n, attrs={**attrs, SKIPPED: skipped} if skipped else attrs)
