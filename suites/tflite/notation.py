"""An instance in the text of the tfl MLIR dialect."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import DType, of
from harness.core.instance import SAME, Arg, Graph, Instance
from harness.declare import Dialect
from suites.tflite.quantisation import output_types


def tensor_type(a: Arg) -> str:
    """``tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>``."""
    element = _element(a.dtype.name, a.quant)
    return "tensor<" + "".join("?x" if k in a.dynamic else f"{n}x" for k, n in enumerate(a.shape)) + element + ">"


def _element(name: str, quant: dict[str, Any] | None) -> str:
    word = {
        "bool": "i1",
        "u8": "ui8",
        "u16": "ui16",
        "u32": "ui32",
        "u64": "ui64",
        "c64": "complex<f32>",
        "c128": "complex<f64>",
        "str": "!tf_type.string",
    }.get(name, name)
    if not quant:
        return word
    pairs = [f"{s:.9g}:{z}" if z else f"{s:.9g}" for s, z in zip(quant["scale"], quant["zero_point"])]
    if len(pairs) == 1:
        return f"!quant.uniform<{word}:f32, {pairs[0]}>"
    where = f"{{1:{quant['block']}}}" if quant.get("block") else quant.get("axis", 0)
    return f"!quant.uniform<{word}:f32:{where}, {{{', '.join(pairs)}}}>"


def notation(dialect: Dialect, inst: Instance) -> str:
    """Operands one a line (constants and literal values shown), the blocks as functions, then the operation."""
    version = dialect.version_of(inst)
    lines, names, types = [], [], []
    shared = inst.shared()
    for slot in version.schema.inputs:
        arg = inst.args.get(slot.name)
        if arg is None:
            names.append("%none")
            types.append("none")
            continue
        for j, a in enumerate(arg if isinstance(arg, list) else [arg]):
            first = shared.get(f"{slot.name}#{j}" if isinstance(arg, list) else slot.name)
            if first is not None:
                names.append(f"%{first.replace('#', '')}")
                types.append(tensor_type(a))
                continue
            name = f"%{slot.name}{j if isinstance(arg, list) else ''}"
            what = f"dense<{a.values}>" if a.values is not None else f"{a.recipe} #{a.seed}"
            lines.append(f"{name} = {'tfl.pseudo_const' if a.const else 'input'}({what}) : {tensor_type(a)}")
            names.append(name)
            types.append(tensor_type(a))
    program = inst.attrs.get("@program")
    if isinstance(program, Graph):
        return "\n".join([*lines, *function("main", program), f"// {inst.op} version {inst.version}"])
    shown = [
        f"{k.lstrip('@')} = {_attribute(k, v, lines)}" for k, v in inst.attrs.items() if k not in ("@outputs", SAME)
    ]
    outs = [f"tensor<*x{_element(d.name, q)}>" for d, q in output_types(version, inst)]
    attrs = " {" + ", ".join(shown) + "}" if shown else ""
    lines.append(
        f'"tfl.{inst.op.lower()}"({", ".join(names)}){attrs} : ({", ".join(types)}) -> ({", ".join(outs)})'
        f"  // version {inst.version}"
    )
    return "\n".join(lines)


def _attribute(name: str, v: Any, lines: list[str]) -> str:
    """The text of a value; blocks go before it, as functions of that name."""
    if isinstance(v, Graph):
        lines += function(name, v)
        return f"@{name}"
    if isinstance(v, list) and any(isinstance(x, Graph) for x in v):
        return "[" + ", ".join(_attribute(f"{name}{k}", x, lines) for k, x in enumerate(v)) + "]"
    return repr(v.name if isinstance(v, DType) else v)


def function(name: str, g: Graph) -> list[str]:
    """A whole graph as a function, a line each."""
    args = ", ".join(f"%{n}: {tensor_type(a)}" for n, a in g.inputs)
    lines: list[str] = []
    for n, c in g.consts.items():
        lines.append(f"%{n} = tfl.pseudo_const(dense<{c.tolist()}>) : {tensor_type(Arg(of(c), c.shape))}")
    for node in g.nodes:
        ins = [x for v in node.inputs.values() for x in (v if isinstance(v, list) else [v])]
        shown = [f"{k} = {_attribute(f'{name}_{k}', v, lines)}" for k, v in node.attrs.items() if not k.startswith("@")]
        attrs = " {" + ", ".join(shown) + "}" if shown else ""
        outs = ", ".join(f"%{o}" for o in node.outputs) + " = " * bool(node.outputs)
        lines.append(f'{outs}"tfl.{node.op.lower()}"({", ".join(f"%{x}" if x else "%none" for x in ins)}){attrs}')
    lines.append(("return " + ", ".join(f"%{o}" for o in g.outputs)).rstrip())
    return [f"func @{name}({args}) {{", *("  " + x for x in lines), "}"]
