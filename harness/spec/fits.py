"""Does an instance fit the facts of its op version?

What a generator draws does; what somebody has written or edited need not, and no backend that refuses it is to blame.
What breaks a rule on purpose is not asked, nor what only the reference can tell (shapes, values): it refuses by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.instance import Arg, Graph, Instance
from harness.spec.opversion import OpVersion
from harness.spec.schema import Slot


def misfit(version: OpVersion, inst: Instance) -> str | None:
    """The first thing in which an instance is none of its op version: what was expected and what came."""
    return None if inst.rule is not None else next(_misfits(version, inst), None)


def _misfits(v: OpVersion, inst: Instance) -> Iterator[str]:
    schema = v.schema
    own = v.entry.evaluate is not None  # blocks and states have operands and results that the schema does not name
    for name in inst.args if not own else ():
        if schema.input(name) is None:
            yield f"args: expected slots among {_listed(schema.inputs)}, got {name}"
    bound: dict[str, tuple[str, Arg]] = {}
    for s in schema.inputs:
        given = inst.args.get(s.name)
        if given is None:
            if not own and not s.optional and not s.variadic:
                yield f"args: expected {s.name}, which is not optional, got none"
        elif isinstance(given, list) != s.variadic:
            one, many = "one argument", "a list of arguments"
            yield f"args: {s.name}: expected {many if s.variadic else one}, got {one if s.variadic else many}"
        else:
            for a in given if isinstance(given, list) else [given]:
                yield from _misfits_of(v, s, a, bound)
    for name, value in inst.attrs.items():
        known = schema.attrs.get(name)
        if known is None and not name.startswith("@"):
            yield f"attrs: expected names among {' '.join(schema.attrs) or 'none'}, got {name}"
        elif known is not None and not _is(known.type, value):
            yield f"attrs: {name}: expected {known.type}, got {value!r}"
        elif known is not None and known.type == "str" and value not in _words(known.enum, value):
            yield f"attrs: {name}: expected {' or '.join(known.enum or ())}, got {value}"
    for name, attr in schema.attrs.items():
        if attr.required and name not in inst.attrs:
            yield f"attrs: expected {name}, which is required, got none"
    most = None if own or any(s.variadic for s in schema.outputs) else len(schema.outputs)
    if type(inst.outs) is not int or inst.outs < 0 or (most is not None and inst.outs > most):
        yield f"outs: expected a number{'' if most is None else f' up to {most}'}, got {inst.outs!r}"


def _misfits_of(v: OpVersion, s: Slot, a: Arg, bound: dict[str, tuple[str, Arg]]) -> Iterator[str]:
    """bound: the first argument of each type name so far, which those after it agree with."""
    if any(type(n) is not int or n < 0 for n in a.shape):
        yield f"args: {s.name}: expected extents from 0 on, got {list(a.shape)}"
    allowed = v.schema.dtypes(s.element)
    if a.items is not None or a.quant is not None or not allowed:  # a quantised weight is stored in another type
        return
    if a.dtype not in allowed:
        yield f"args: {s.name}: expected {' or '.join(map(str, allowed))}, got {a.dtype}"
    first, other = bound.setdefault(s.element, (s.name, a))
    if not s.variadic and a.dtype is not other.dtype:
        yield f"args: {s.name}: expected {other.dtype}, which {first} has, got {a.dtype}"


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "int": (int,), "float": (float, int), "str": (str,), "dtype": (DType, str), "graph": (Graph,),
    "tensor": (np.ndarray,), "sparse_tensor": (np.ndarray,), "type_proto": (str,),
}  # fmt: skip


def _is(kind: str, value: Any) -> bool:
    """Is it a value of an attribute of that type?  Types that are not known here are not judged."""
    if kind == "int" and isinstance(value, bool):
        return False
    if kind in _TYPES:
        return isinstance(value, _TYPES[kind])
    one = kind.removesuffix("s")
    return one not in _TYPES or (isinstance(value, (list, tuple)) and all(_is(one, x) for x in value))


def _words(enum: tuple[str, ...] | None, value: str) -> tuple[str, ...]:
    """The values that are stated; examples of a notation (an equation of einsum) state none."""
    return enum if enum and all(x.isidentifier() for x in enum) else (value,)


def _listed(slots: tuple[Slot, ...]) -> str:
    return " ".join(s.name for s in slots) or "none"
