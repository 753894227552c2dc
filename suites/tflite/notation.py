"""An instance in the text of the tfl MLIR dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.core.instance import Arg, Graph, Instance
from suites.tflite.dialect import output_types

if TYPE_CHECKING:
    from suites.tflite.dialect import TfLite


def tensor_type(a: Arg) -> str:
    """``tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>``."""
    element = _element(a.dtype.name, a.quant)
    return "tensor<" + "".join("?x" if k in a.dynamic else f"{n}x" for k, n in enumerate(a.shape)) + element + ">"


def _element(name: str, quant: dict[str, Any] | None) -> str:
    word = {"bool": "i1", "u8": "ui8", "u16": "ui16", "u32": "ui32", "u64": "ui64", "c64": "complex<f32>",
            "c128": "complex<f64>", "str": "!tf_type.string"}.get(name, name)  # fmt: skip
    if not quant:
        return word
    pairs = [f"{s:.9g}:{z}" if z else f"{s:.9g}" for s, z in zip(quant["scale"], quant["zero_point"])]
    if len(pairs) == 1:
        return f"!quant.uniform<{word}:f32, {pairs[0]}>"
    where = f"{{1:{quant['block']}}}" if quant.get("block") else quant.get("axis", 0)
    return f"!quant.uniform<{word}:f32:{where}, {{{', '.join(pairs)}}}>"


def notation(dialect: TfLite, inst: Instance) -> str:
    """Operands one a line (constants and literal values shown), then the operation."""
    version = dialect.version_of(inst)
    lines, names, types = [], [], []
    for slot in version.schema.inputs:
        arg = inst.args.get(slot.name)
        if arg is None:
            names.append("%none")
            types.append("none")
            continue
        for j, a in enumerate(arg if isinstance(arg, list) else [arg]):
            name = f"%{slot.name}{j if isinstance(arg, list) else ''}"
            what = f"dense<{a.values}>" if a.values is not None else f"{a.recipe} #{a.seed}"
            lines.append(f"{name} = {'tfl.pseudo_const' if a.const else 'input'}({what}) : {tensor_type(a)}")
            names.append(name)
            types.append(tensor_type(a))
    shown = []
    for k, v in inst.attrs.items():
        if not k.startswith("@"):
            shown.append(f"{k} = {'@block' if isinstance(v, Graph) else repr(v)}")
    outs = [f"tensor<*x{_element(d.name, q)}>" for d, q in output_types(version, inst)]
    attrs = " {" + ", ".join(shown) + "}" if shown else ""
    lines.append(f'"tfl.{inst.op.lower()}"({", ".join(names)}){attrs} : ({", ".join(types)}) -> ({", ".join(outs)})'
                 f"  // version {inst.version}")  # fmt: skip
    return "\n".join(lines)
