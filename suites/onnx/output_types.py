"""Types of outputs that may be sequences, optionals or maps: what the operands, the attributes and the blocks of an
instance say of them.

ONNX IR, Graphs: the inputs and outputs of the main graph are required to have a type.  That of a plain tensor follows
from the schema (``schemas.Plan``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.core.dtypes import BY_NAME, F32, DType
from harness.core.instance import Arg, Graph, Instance
from suites.onnx.proto import Type, parse_type


def arg_type(arg: Arg, name: str = "") -> Type:
    """The declared type of an argument; a dynamic axis gets a symbol."""
    if arg.kind == "tensor":
        shape: tuple[Any, ...] = tuple(arg.shape)
        if arg.dynamic:
            shape = tuple(f"{name}_{k}" if k in arg.dynamic else n for k, n in enumerate(shape))
        return Type("tensor", arg.dtype, shape)
    if arg.kind == "map":
        assert arg.items is not None
        keys, values = arg.items
        return Type("map", keys.dtype, None, Type("tensor", values.dtype, ()))
    if arg.items:
        first = arg_type(arg.items[0])
        elem = Type("tensor", first.dtype, None) if first.kind == "tensor" else first
    else:
        elem = Type("tensor", arg.dtype, None)
    return Type(arg.kind, None, None, elem)


def output_type(inst: Instance, j: int) -> Type | None:
    """The type of output ``j``; of a tensor the rank may be left open (``shape`` is None).  None where the instance
    does not tell."""
    find = _FOUND.get(inst.op)
    return None if find is None else find(inst, j)


def _open(t: Type) -> Type:
    """The type with the extents of a tensor left open."""
    return t if t.kind != "tensor" or t.shape is None else Type("tensor", t.dtype, (None,) * len(t.shape))


def _operand(inst: Instance, slot: str) -> Type | None:
    arg = inst.args.get(slot)
    return _open(arg_type(arg)) if isinstance(arg, Arg) else None


def _identity(inst: Instance, j: int) -> Type | None:
    return _operand(inst, "input")


def _optional(inst: Instance, j: int) -> Type | None:
    said = inst.attrs.get("type")
    if said is not None:
        held: Type | None = said if isinstance(said, Type) else parse_type(said)
    else:
        held = _operand(inst, "input")
    return None if held is None else Type("optional", None, None, held)


def _get_element(inst: Instance, j: int) -> Type | None:
    arg = inst.args.get("input")
    if isinstance(arg, Arg) and arg.kind == "optional" and arg.items:
        return _open(arg_type(arg.items[0]))
    t = _operand(inst, "input")
    return t.elem if t is not None and t.kind == "optional" else t


def _empty(inst: Instance, j: int) -> Type:
    said = inst.attrs.get("dtype")
    return Type("seq", None, None, Type("tensor", said if isinstance(said, DType) else F32, None))


def _zip_map(inst: Instance, j: int) -> Type:
    """Keys are strings where those are given."""
    keys = "str" if inst.attrs.get("classlabels_strings") else "i64"
    return Type("seq", None, None, Type("map", BY_NAME[keys], None, Type("tensor", F32, ())))


def _returned(inst: Instance, block: str, j: int) -> Type | None:
    """What a block says of its output ``j``."""
    g = inst.attrs.get(block)
    if not isinstance(g, Graph) or j >= len(g.outputs):
        return None
    said = g.meta.get("out_types", {}).get(g.outputs[j])
    return said if said is None or isinstance(said, Type) else parse_type(said)


def _if(inst: Instance, j: int) -> Type | None:
    return _returned(inst, "then_branch", j) or _returned(inst, "else_branch", j)


def _loop(inst: Instance, j: int) -> Type | None:
    return _returned(inst, "body", j + 1)  # the first one is the condition


def _sequence_map(inst: Instance, j: int) -> Type | None:
    held = _returned(inst, "body", j)
    return None if held is None else Type("seq", None, None, held)


_FOUND: dict[str, Callable[[Instance, int], Type | None]] = {
    "Identity": _identity,
    "If": _if,
    "Loop": _loop,
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "SequenceEmpty": _empty,
    "SequenceMap": _sequence_map,
    "ZipMap": _zip_map,
}
