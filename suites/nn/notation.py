"""A layer as text: what it takes, its parameters as the specification spells them, its weights."""

from __future__ import annotations

from typing import Any

from harness.core.instance import Arg, Graph, Instance
from harness.declare.schema import OpSchema


def text(s: OpSchema, inst: Instance) -> str:
    """Several lines: the signature, then one parameter a line."""
    ins: list[str] = []
    held: list[str] = []
    shared = inst.shared()
    for slot in s.inputs:
        a = inst.args.get(slot.name)
        if a is None:
            continue
        for k, one in enumerate(a if isinstance(a, list) else [a]):
            first = shared.get(f"{slot.name}#{k}" if isinstance(a, list) else slot.name)
            what = f"{slot.name}: {_arg(one)}" if first is None else f"{slot.name}: the blob of {first}"
            (held if slot.const else ins).append(what)
    select = [f"{s.extra['select'][0]} = {s.extra['select'][1]}"] if s.extra["select"] else []
    params = [f"{k} = {_value(v)}" for k, v in inst.attrs.items() if not k.startswith("@")]
    mapping = "RANK5_ARRAY_MAPPING" if inst.attrs.get("@mapping") == "rank5" else "EXACT_ARRAY_MAPPING"
    lines = [f"{s.extra['layer']}({', '.join(ins)}) -> {inst.outs} output{'s' * (inst.outs != 1)}  # {mapping}"]
    return "\n".join([*lines, *(f"  {x}" for x in select + params + held)])


def _arg(a: Arg) -> str:
    form = f"{a.dtype}{list(a.shape)}"
    if a.quant:
        form += f" {a.quant['bits']}-bit {'table' if 'lut' in a.quant else 'linear'}"
    return form + (" const" if a.const else "")


def _value(v: Any, depth: int = 4) -> str:
    if isinstance(v, Graph):
        pad = " " * depth
        body = [
            f"{pad}{n.op}({', '.join(_names(n.inputs) + _given(n.attrs, depth))}) -> {', '.join(n.outputs)}"
            for n in v.nodes
        ]
        return "{\n" + "\n".join(body) + "\n" + " " * (depth - 2) + "}"
    return str(list(v) if isinstance(v, tuple) else v)


def _names(inputs: dict[str, Any]) -> list[str]:
    return [n for v in inputs.values() if v is not None for n in (v if isinstance(v, list) else [v])]


def _given(attrs: dict[str, Any], depth: int) -> list[str]:
    return [f"{k}={_value(v, depth + 2)}" for k, v in attrs.items()]
