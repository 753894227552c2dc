"""MIL text of an instance, in the form that coremltools prints programs in."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.instance import Arg, Graph, Instance
from suites.mil.builder import mil_name

_LISTED = ("@places", "@length")  # of the tensors of a list, and its own


def notation(inst: Instance) -> str:
    """``main[CoreML7](%x: (2, 3, fp16)) { %out = relu(x=%x) } -> (%out)``, one op a line, constants spelled where
    short.
    """
    params: list[str] = []
    args: list[str] = []
    shared = inst.shared()
    for slot, a in inst.args.items():
        if slot in shared:
            args.append(f"{slot}=%{shared[slot]}")
        elif isinstance(a, list):
            firsts = [shared.get(f"{slot}#{i}", "").replace("#", "") for i in range(len(a))]
            parts = [f"%{f}" if f else _arg(f"{slot}{i}", x, params) for i, (x, f) in enumerate(zip(a, firsts))]
            args.append(f"{slot}=({', '.join(parts)})")
        else:
            args.append(f"{slot}={_arg(slot, a, params)}")
    tail = []
    for name, v in inst.attrs.items():
        if isinstance(v, Graph):
            tail += [f"  {name}({', '.join('%' + n for n, _ in v.inputs)}) {{", *_block(v, "    "), "  }"]
        elif not name.startswith("@"):
            args.append(f"{name}={value(v)}")
    marks = {k[1:]: v for k, v in inst.attrs.items() if k in _LISTED or (k.startswith("@") and isinstance(v, str))}
    note = "  # " + ", ".join(f"{k} is {v}" for k, v in marks.items()) if marks else ""
    outs = ", ".join(f"%out{i}" for i in range(max(1, inst.outs)))
    number = {"ios15": 5, "ios16": 6, "ios17": 7, "ios18": 8}.get(str(inst.opset), inst.opset)
    head = f"main[CoreML{number}]({', '.join(params)}) {{"
    return "\n".join([head, f"  {outs} = {inst.op}({', '.join(args)}){note}", *tail, f"}} -> ({outs})"])


def _arg(name: str, a: Arg, params: list[str]) -> str:
    kind = "" if a.kind == "tensor" else f", {a.kind}"
    dims = ", ".join("?" if i in a.dynamic else str(n) for i, n in enumerate(a.shape))
    text = f"({dims}{', ' if dims else ''}{mil_name(a.dtype)}{kind})"
    if a.items is not None:
        text = "[" + ", ".join(_arg(f"{name}.{i}", x, params) for i, x in enumerate(a.items)) + "]"
        return text
    if a.const:
        shown = value(a.values) if a.values is not None and len(a.values) <= 16 else f"{a.recipe}#{a.seed}"
        return f"const{text}[{shown}]"
    shown = f" = {value(a.values)}" if a.values is not None and len(a.values) <= 16 else ""
    params.append(f"%{name}: {text}{shown}")
    return f"%{name}"


def value(v: Any) -> str:
    """A literal as MIL prints it."""
    if isinstance(v, DType):
        return f'"{mil_name(v)}"'
    if isinstance(v, str):
        return f'"{v}"'
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(value(x) for x in v) + "]"
    if isinstance(v, np.ndarray):
        return value(v.tolist())
    return repr(v)


def _block(g: Graph, indent: str) -> list[str]:
    lines = []
    for node in g.nodes:
        args = [f"{k}={_names(g, v)}" for k, v in node.inputs.items() if v is not None]
        args += [f"{k}={value(v)}" for k, v in node.attrs.items() if not isinstance(v, Graph) and not k.startswith("@")]
        outs = ", ".join("%" + o for o in node.outputs)
        lines.append(f"{indent}{outs} = {node.op}({', '.join(args)})")
    return [*lines, f"{indent}-> ({', '.join(_names(g, o) for o in g.outputs)})"]


def _names(g: Graph, v: str | list[str] | None) -> str:
    if isinstance(v, list):
        return "(" + ", ".join(_names(g, x) for x in v) + ")"
    return value(g.consts[v]) if v in g.consts else f"%{v}"


def program(g: Graph, args: list[Arg], opset: object) -> str:
    """A whole program: its inputs are p0, p1, ..."""
    params: list[str] = []
    for i, a in enumerate(args):
        _arg(f"p{i}", a, params)
    number = {"ios15": 5, "ios16": 6, "ios17": 7, "ios18": 8}.get(str(opset), opset)
    outs = ", ".join(_names(g, o) for o in g.outputs)
    return "\n".join([f"main[CoreML{number}]({', '.join(params)}) {{", *_block(g, "  ")[:-1], f"}} -> ({outs})"])
