"""Windows, counts and positions far beyond memory, of tensors without elements: a table with a line an op.

An axis of no element makes the others free: a tensor of shape [0, 2147483647] holds nothing, and what is padded,
split or taken along its second axis is as large as the text lets it be.  A row names what an instance has instead:

    "tile": ({"x": (1, 0), "reps": [2**31 - 1, one_of(1, 2)]},)

A tuple is the shape of an operand; a list or a number is what an operand or an attribute holds; None leaves either out.
"@outs" is the number of results, "@const" tells which operands are constants.  Of several rows, and of the choices in
one, each instance has one.  What a row cannot say is a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.core.instance import Arg, Instance
from harness.generate.draw import Draw

Make = Callable[[Any, Draw, Instance], "Instance | None"]
Row = Mapping[str, Any]


class OneOf(tuple[Any, ...]):
    """Values or rows, of which each instance has one."""


def one_of(*options: Any) -> OneOf:
    """A choice in a row, or between rows."""
    return OneOf(options)


def picked(d: Draw, value: Any) -> Any:
    """A row, a shape or a list whose choices are made."""
    if isinstance(value, OneOf):
        return picked(d, d.pick(value))
    if isinstance(value, dict):
        return {k: picked(d, v) for k, v in value.items()}
    return type(value)(picked(d, v) for v in value) if isinstance(value, (tuple, list)) else value


def changed(v: Any, inst: Instance, row: Row) -> Instance | None:
    """The instance with what a row says, whose choices are made; None where it lacks an operand of the row, or the op
    version does not know a name."""
    args, attrs, outs = dict(inst.args), dict(inst.attrs), inst.outs
    const: dict[str, bool] = {}
    for name, value in row.items():
        a = args.get(name)
        if name == "@outs":
            outs = value
        elif name == "@const":
            const = value
        elif value is None:
            args.pop(name, None)
            attrs.pop(name, None)
        elif isinstance(a, Arg):
            args[name] = _shaped(a, value) if isinstance(value, tuple) else _holding(a, value)
        elif name in v.schema.attrs or name.startswith("@"):
            attrs[name] = value
        else:
            return None
    args.update({k: replace(a, const=const[k]) for k, a in args.items() if k in const and isinstance(a, Arg)})
    return replace(inst, args=args, attrs=attrs, outs=outs)


def _shaped(a: Arg, shape: tuple[int, ...]) -> Arg:
    """Of another shape, without literal elements; positions of other axes are none of its own."""
    recipe = "small" if a.values is not None or a.recipe.startswith("index") else a.recipe
    return replace(a, shape=shape, values=None, dynamic=(), recipe=recipe)


def _holding(a: Arg, values: Any) -> Arg:
    flat = np.asarray(values, object)
    return replace(a, shape=flat.shape, values=flat.ravel().tolist(), dynamic=())


def far_of(
    v: Any,
    d: Draw,
    inst: Instance,
    takes: Callable[[Any, Instance], bool],
    table: Mapping[str, Make | Sequence[Row | OneOf]],
    every: int,
) -> Instance:
    """The instance, or one in ``every`` as the table has it for its op, where the reference takes it."""
    rows = table.get(f"{v.op}/{v.version}") or table.get(v.op)
    if rows is None or d.breaking or not d.chance(every):
        return inst
    own = replace(inst, args={k: _copied(a) for k, a in inst.args.items()})
    new = rows(v, d, own) if callable(rows) else changed(v, own, picked(d, d.pick(rows)))
    return new if new is not None and takes(v, new) else inst


def _copied(a: Any) -> Any:
    return [replace(x) for x in a] if isinstance(a, list) else replace(a)
