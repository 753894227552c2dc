"""An instance in ONNX's textual syntax (onnx/docs/Syntax.md): what a person pastes into ``onnx.parser``."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.instance import SAME, SKIPPED, Arg, Graph, Instance
from suites.onnx import schemas
from suites.onnx.builder import positions
from suites.onnx.proto import CODES, DTYPES

# names of element types in the syntax
WORDS = {
    "f32": "float",
    "f64": "double",
    "f16": "float16",
    "bf16": "bfloat16",
    "str": "string",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8e4m3fn",
    "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2": "float8e5m2",
    "f8e5m2fnuz": "float8e5m2fnuz",
    "f8e8m0": "float8e8m0",
    "f4e2m1": "float4e2m1",
    "f6e2m3": "float6e2m3",
    "f6e3m2": "float6e3m2",
    "bool": "bool",
    **{f"{k}{n}": f"{w}{n}" for k, w in (("i", "int"), ("u", "uint")) for n in (2, 4, 8, 16, 32, 64)},
}


def type_text(a: Arg, name: str = "d") -> str:
    """``float[2,N]``, ``seq(float)``."""
    if a.kind != "tensor":
        inner = type_text(a.items[0]) if a.items else WORDS[a.dtype.name]
        return f"{a.kind}({inner})"
    if not a.shape:
        return WORDS[a.dtype.name]
    dims = ",".join(f"{name}{i}" if i in a.dynamic else str(n) for i, n in enumerate(a.shape))
    return f"{WORDS[a.dtype.name]}[{dims}]"


def value_text(v: Any, opset: int) -> str:
    """An attribute value."""
    if isinstance(v, DType):
        return str(CODES[v.name])
    if isinstance(v, bool):
        return str(int(v))
    if isinstance(v, str):
        return '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(value_text(x, opset) for x in v) + "]"
    if isinstance(v, Graph):
        return block(v, opset)
    if isinstance(v, np.ndarray):
        flat = v.reshape(-1).tolist()
        shown = ", ".join(value_text(x, opset) for x in flat[:16]) + (", ..." if len(flat) > 16 else "")
        word = next((WORDS[d.name] for d in DTYPES.values() if d.np == v.dtype), "float")
        return f"{word}[{','.join(map(str, v.shape))}] {{{shown}}}" if v.ndim else f"{word} {{{shown}}}"
    return repr(v)


def attrs_text(attrs: dict[str, Any], opset: int) -> str:
    said = [f"{k} = {value_text(v, opset)}" for k, v in attrs.items() if k not in (SKIPPED, SAME)]
    return f" <{', '.join(said)}>" if said else ""


def block(g: Graph, opset: int) -> str:
    """A subgraph on one line."""
    heads = ", ".join(f"{type_text(a)} {n}" for n, a in g.inputs)
    consts = "".join(f" {k} = Constant <value = {value_text(v, opset)}> ()" for k, v in g.consts.items())
    body = ""
    for n in g.nodes:
        schema = schemas.effective(n.op, opset)
        ins = [x or '""' for _, _, x in positions(schema, n.inputs)] if schema else []
        body += f" {', '.join(n.outputs)} = {n.op}{attrs_text(n.attrs, opset)}({', '.join(ins)})"
    return f"b ({heads}) => ({', '.join(g.outputs)}) {{{consts}{body} }}"


def _constant(a: Arg) -> str:
    """How the model holds a constant."""
    if not a.const:
        return ""
    return "constant, " if not a.encoding else f"constant in {a.encoding}, "


def text(inst: Instance) -> str:
    """The model of one instance: header, inputs with types, constants with their recipe or values, the node."""
    opset = int(inst.opset)
    schema = schemas.effective(inst.op, opset)
    release = schemas.releases()[opset]
    domain = schema.domain if schema else ""
    imports = f'"" : {opset}' + (f', "{domain}" : {release.get(domain, 1)}' if domain else "")
    names, formal, notes = [], [], []
    shared = inst.shared()
    for slot, k, a in positions(schema, inst.args) if schema else []:
        if a is None:
            names.append('""')
            continue
        first = shared.get(slot if k is None else f"{slot}#{k}")
        if first is not None:
            names.append(first.replace(".", "").replace("#", ""))
            continue
        n = (slot if k is None else f"{slot}{k}").replace(".", "")
        names.append(n)
        formal.append(f"{type_text(a, f'{n}_')} {n}")
        data = str(a.values) if a.values is not None else f"{a.recipe} (seed {a.seed})"
        notes.append(f"# {n}: {_constant(a)}{data[:200]}")
    skipped = inst.attrs.get(SKIPPED, ())
    outs = ['""' if j in skipped else f"y{j}" if inst.outs > 1 else "y" for j in range(inst.outs)]
    asked = [o for o in outs if o != '""']
    op = f"{domain}.{inst.op}" if domain else inst.op
    lines = [
        f"<ir_version: {release['ir']}, opset_import: [{imports}]>",
        f"case ({', '.join(formal)}) => ({', '.join(asked)}) {{",
        f"  {', '.join(outs)} = {op}{attrs_text(inst.attrs, opset)} ({', '.join(names)})",
        "}",
        *notes,
    ]
    return "\n".join(lines)
