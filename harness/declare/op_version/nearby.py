"""Moves one place of a drawn instance to an edge, where the reference accepts that.

A generator draws only what its author thought of.  A place is an extent, a rank, an integer, a list of integers, a
stated option, or an operand or output that may be left out.  For an integer, the edges are 0, 1, a negative number and
the ends of i32; also an extent, its neighbours and a number far beyond it.  For a list they are the empty list, a list
of one element and the reversed list.  If the reference rejects the result, or the result breaks a stated rule, it is
dropped.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from harness.core.dtypes import of
from harness.core.instance import SAME, Arg, Graph, Instance
from harness.core.limits import bounded, timed
from harness.core.quiet import quiet
from harness.declare.op_version.moves import ELEMENTS, changed, plain
from harness.declare.op_version.two_places import MOVES, emptied
from harness.generate import ends
from harness.generate.draw import Draw
from harness.generate.recipes import arrays_of

EVERY = 16  # one instance in so many has a place moved, one has special values in one operand
SCALAR_BODY = "scalar-body"  # a tag of entries whose blocks are functions of single elements, whatever the shapes
TRIES = 3  # places, until the reference takes one
MANY = 4  # operands: beyond so many, half of them get special values together, or few ever would
_ROOM = 1 << 28  # bytes that a try may allocate
_SECONDS = 0.25  # of processor time that it may take
_SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, 3.0e38, -1.0)
_DOMAINS = {"prob", "perm", "special"}  # probabilities, permutations
_ANY_INTEGERS = {"small", "full", "special"}


def at_edges(version: Any, d: Draw, inst: Instance) -> Instance:
    """The instance; one in ``EVERY`` with one place moved, one with special values in an operand that has none."""
    how = d.int(0, EVERY - 1)
    if inst.attrs.get(SAME):
        return inst  # two operands would have to be moved as one
    held = (x[0] if isinstance(x, list) and x else x for x in inst.attrs.values())
    if how >= EVERY - 2 and any(isinstance(x, Graph) for x in held) and SCALAR_BODY not in version.entry.sampling.tags:
        return inst  # blocks state shapes and casts of their own
    if how == EVERY - 1:
        return beside(version, d, inst)
    return special(version, d, inst) if how == EVERY - 2 else inst


def special(version: Any, d: Draw, inst: Instance) -> Instance:
    """The instance with special values in one of its float operands, or in half of very many: NaN, infinities, zeros of
    either sign, subnormals and the ends of the type.

    With ``Dialect.special_ends`` it may be an operand of integers that are drawn from all of their type, or one of
    truth values, all the same.  Without such an operand, or if the reference rejects the result, the instance is
    returned as it is.
    """
    at_ends = version.dialect.special_ends
    held = [(s, k, a) for s, k, a in plain(inst) if a.dtype.kind == "f" and 0 not in a.shape and _may_be_any(a)]
    if at_ends:
        held += [(s, k, a) for s, k, a in plain(inst) if _of_any_integers(version, s, a) or _of_any_booleans(a)]
    keeps = frozenset(version.dialect.keeps(version))
    held = [(s, k, a) for s, k, a in held if keeps.isdisjoint((s, "data:*", f"data:{s}"))]
    if not held:
        return inst
    some = d.subset(held, len(held) // 2) if len(held) > MANY and not d.chance(4) else [d.pick(held)]
    moved = changed(inst, {(slot, k): _with_special(d, a, at_ends) for slot, k, a in some})
    return moved if takes(version, moved) else inst


def _with_special(d: Draw, a: Arg, at_ends: bool) -> Arg:
    """An operand with special values."""
    if a.dtype.kind == "b":
        return replace(a, values=[d.bool()] * math.prod(a.shape))
    if a.values is None and at_ends and math.prod(a.shape) <= ends.MOST and (a.dtype.kind != "f" or d.bool()):
        return replace(a, values=ends.elements(d, a))
    if a.values is None:
        return replace(a, recipe="special")
    values = list(a.values)
    last = len(values) - 1
    at = d.pick((0, last, d.int(0, last))) if at_ends else d.int(0, last)
    values[at] = d.pick(ends.specials(a.dtype) if at_ends and d.bool() else _SPECIAL)
    return replace(a, values=values)


def _may_be_any(a: Arg) -> bool:
    """Is an operand drawn from no domain of its own?  Of literal values the reference tells."""
    return a.values is not None or a.recipe.partition(":")[0] not in _DOMAINS


def _of_any_integers(version: Any, slot: str, a: Arg) -> bool:
    """Are the elements of an operand integers, none of which the declaration leaves out?"""
    if a.dtype.kind not in "iu" or a.values is not None or 0 in a.shape or a.recipe not in _ANY_INTEGERS:
        return False
    return not {"full", "special"}.isdisjoint(version._recipes_of(slot, a.dtype))  # noqa: SLF001


def _of_any_booleans(a: Arg) -> bool:
    """Are the elements of an operand truth values that are drawn one by one?  They may all be the same."""
    return a.dtype.kind == "b" and a.values is None and a.recipe == "bool" and 1 < math.prod(a.shape) <= ends.MOST


def beside(version: Any, d: Draw, inst: Instance) -> Instance:
    """The instance with one place moved, or with that and an axis of no element; itself where none of ``TRIES`` places
    may be moved so.

    version: the ``OpVersion``.  d: what it was drawn from."""
    for _ in range(TRIES):
        moved = d.pick(MOVES)(version, d, inst)
        if moved is None:
            continue
        if takes(version, moved):
            return moved
        if d.bool():  # what is too large may be had of nothing
            empty = emptied(version, d, moved)
            if empty is not None and takes(version, empty):
                return empty
    return inst


def _declared_scales_fit(version: Any, inst: Instance, expected: list[Any]) -> bool:
    """Have the results that the instance declares a scale for each position where they have more than one?"""
    stated = zip(expected, inst.attrs.get("@outputs") or ())
    results = ((e.value, o["quant"]) for e, o in stated if o and len((o.get("quant") or {}).get("scale", ())) > 1)
    return not any(version.dialect.misquantised(Arg(of(y), y.shape, quant=q)) for y, q in results)


def takes(version: Any, inst: Instance) -> bool:
    """Does the reference evaluate the instance, within ``_ROOM``, and do its shapes and rules hold?  What it makes of
    the instance is kept there (``evaluated``).

    Where time or memory ended, it is asked once more: a pause of the host, or what a process allocates once, must not
    make a draw that its choices do not give again.
    """
    for _ in range(2):
        try:
            return _holds(version, inst)
        except Exception as e:  # whatever it is, this is no instance to hold against a backend
            if not isinstance(e, MemoryError) and getattr(e, "rule", "") != "fits-time":
                return False
    return False


def _holds(version: Any, inst: Instance) -> bool:
    """What ``takes`` says, or any exception."""
    if any(a.quant is not None and version.dialect.misquantised(a) for _, _, a in plain(inst)):
        return False
    with quiet, bounded(_ROOM), timed.within(_SECONDS):
        arrays = arrays_of(inst)
        call = version.dialect.call_of(inst, arrays, version)
        version.check(call)
        expected = version.evaluate(call)
        if not _declared_scales_fit(version, inst, expected):
            return False
        if sum(getattr(e.value, "size", 0) for e in expected) > ELEMENTS:
            return False
        if version.dialect.limits_results:
            limit = version.dialect.rank_limit(version)
            shapes = [getattr(e.value, "shape", ()) for e in expected]
            if any(len(s) > limit or max(s, default=0) >= 1 << 31 for s in shapes):
                return False
        inst.evaluated = arrays, expected
        return True
