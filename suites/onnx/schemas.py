"""The schema facts at hand: which version of an op an opset means, and which types its outputs have."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.core import dtypes
from harness.core.dtypes import BY_NAME, DType
from harness.core.instance import Arg
from harness.declare.schema import OpSchema, load

PATH = Path(__file__).with_name("schema.json")
VANISHED = Path(__file__).with_name("vanished.json")  # of the first list, in no released schema
DTYPE_ATTRS = ("to", "dtype", "output_dtype", "output_datatype")


@cache
def schemas() -> tuple[OpSchema, ...]:
    """Every op version, all domains, and those of the first list that vanished (``extra`` has the day "left").  Float
    defaults are the f32 numbers that a model means."""
    out = (*load(PATH), *load(VANISHED))
    for s in out:
        for name, a in s.attrs.items():
            if a.type in ("float", "floats") and a.default is not None:
                s.attrs[name] = replace(a, default=f32(a.default))
            elif a.type == "dtype" and a.default in BY_NAME:
                s.attrs[name] = replace(a, default=BY_NAME[a.default])
    return out


def f32(v: Any) -> Any:
    """A float attribute as the format stores it."""
    return [dtypes.f32(x) for x in v] if isinstance(v, (list, tuple)) else dtypes.f32(v)


@cache
def releases() -> dict[int, dict[str, int]]:
    """Default-domain opset -> IR version ("ir") and the versions of the other domains released with it."""
    return {int(k): v for k, v in json.loads(PATH.read_text())["releases"].items()}


@cache
def _table() -> dict[tuple[str, str], tuple[list[int], list[OpSchema]]]:
    out: dict[tuple[str, str], tuple[list[int], list[OpSchema]]] = {}
    for s in schemas():
        versions, items = out.setdefault((s.domain, s.op), ([], []))
        versions.append(int(s.version))
        items.append(s)
    return out


@cache
def domain_of(op: str) -> str:
    """The domain of an op by its name alone; no two domains share a name."""
    return next((d for d, o in _table() if o == op), "")


def at(op: str, version: int, domain: str | None = None) -> OpSchema | None:
    """The schema in force at ``version`` of its domain's opset; None for an unknown op."""
    row = _table().get((domain_of(op) if domain is None else domain, op))
    if row is None:
        return None
    i = bisect_right(row[0], version)
    return row[1][i - 1] if i else None


def first_slot(op: str, index: int = 0) -> str:
    """Name of an input of the newest version."""
    s = at(op, 10**6)
    assert s is not None, op
    return s.inputs[index].name


def own_opset(op: str, opset: int) -> int:
    """The version of the op's own domain that belongs to a default-domain opset."""
    domain = domain_of(op)
    return opset if not domain else releases()[opset].get(domain, 1)


def effective(op: str, opset: int) -> OpSchema | None:
    """The schema that a model built at a default-domain opset means."""
    return at(op, own_opset(op, opset))


# Outputs whose type follows from an input by the op's prose, not by a shared type name: slot it follows, its container.
FOLLOWS = {
    "SequenceAt": ("input_sequence", ""),
    "ConcatFromSequence": ("input_sequence", ""),
    "SequenceConstruct": ("inputs", "seq"),
    "SplitToSequence": ("input", "seq"),
}


class Plan:
    """What building a node of one op version needs, worked out once.

    inputs: slot names in order.  least: how many a node names, absent ones too.  variadic: the last slot repeats.
    outputs[i]: how the type of output i is found: a (container, dtype) pair, the slots that bind its type name, or None
    when only inference can tell."""

    __slots__ = ("blocks", "domain", "inputs", "least", "op", "outputs", "schema", "variadic")

    def __init__(self, s: OpSchema) -> None:
        self.schema, self.op, self.domain = s, s.op, s.domain
        self.inputs = tuple(x.name for x in s.inputs)
        self.least = s.extra.get("least", 0)
        self.blocks = any(a.type == "graph" for a in s.attrs.values())
        self.variadic = any(x.variadic for x in s.inputs)
        self.outputs = tuple(self._output(s, i) for i in range(len(s.outputs)))

    @staticmethod
    def _output(s: OpSchema, i: int) -> Any:
        slot = s.outputs[i]
        types = s.types.get(slot.element, (slot.element,))
        if len(types) == 1 and types[0] in BY_NAME:
            return slot.container or "", BY_NAME[types[0]]
        if s.op in FOLLOWS:
            return None, [FOLLOWS[s.op][0]], FOLLOWS[s.op][1]
        if slot.variadic and s.inputs and any(a.type == "graph" for a in s.attrs.values()):
            return None  # each output of a block has its own type
        attr = next((n for n in DTYPE_ATTRS if i == 0 and n in s.attrs and s.attrs[n].type == "dtype"), None)
        binders = [x.name for x in s.inputs if x.element == slot.element and not any("(" in t for t in types)]
        if attr is None and not binders:
            return None
        return attr, binders, slot.container or ""

    def tensor(self, i: int) -> bool:
        """Can output ``i`` be nothing but a tensor?"""
        outs = self.schema.outputs
        slot = outs[min(i, len(outs) - 1)]
        types = self.schema.types.get(slot.element, (slot.element,))
        return not slot.container and not any("(" in t for t in types)

    def output(self, i: int, args: Mapping[str, Any], attrs: Mapping[str, Any]) -> tuple[str, DType] | None:
        """(container or "", element type) of output ``i`` as far as slots and attributes tell; None: left to
        inference."""
        outs = self.outputs
        how = outs[i] if i < len(outs) else outs[-1] if outs else None
        if how is None or len(how) == 2:
            return how
        attr, binders, container = how
        if attr is not None and isinstance(attrs.get(attr), DType):
            return container, attrs[attr]
        for name in binders:
            a = args.get(name)
            while isinstance(a, list):
                a = a[0] if a else None
            while isinstance(a, Arg) and a.items:
                a = a.items[0]
            if a is not None:
                return container, a.dtype
        return None


@cache
def plan(op: str, opset: int) -> Plan | None:
    """The plan of the version in force at a default-domain opset."""
    s = effective(op, opset)
    return None if s is None else Plan(s)
