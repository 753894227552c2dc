"""A program -> ModelProto, and the same as text."""

from __future__ import annotations

from typing import Any

from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Results
from suites.onnx import notation, proto, schemas
from suites.onnx.builder import encode_graph
from suites.onnx.proto import Type
from suites.rewrites.program import operands


def _heads(inst: Instance) -> list[tuple[str, Arg]]:
    """Inputs of the program, with the axes whose extent the model leaves open."""
    free = inst.attrs["program"].meta.get("open", {})
    given = inst.tensors("inputs")
    assert isinstance(given, list)
    return [
        (f"p{i}", Arg(a.dtype, a.shape, dynamic=tuple(k for k in free.get(f"p{i}", ()) if k < len(a.shape))))
        for i, a in enumerate(given)
    ]


def build(inst: Instance, results: Results = ()) -> Model:
    """results: element type and rank of the outputs, which a main graph must say (ONNX IR, Graphs)."""
    g, opset = inst.attrs["program"], int(inst.opset)
    heads = _heads(inst)
    kinds = {n: Type("tensor", r.dtype, (None,) * len(r.shape)) for n, r in zip(g.outputs, results) if r is not None}
    body = encode_graph(Graph(list(heads), g.nodes, g.outputs, g.consts, {"out_types": kinds}), opset, "g")
    release = schemas.releases()[opset]
    model = proto.model(body, {"": opset}, release["ir"])
    return Model(
        "onnx",
        model,
        [[(n, "inputs", i) for i, (n, _) in enumerate(heads)]],
        [list(g.outputs)],
        {"opset": opset, "nodes": [[o for n in g.nodes for o in n.outputs]]},
    )


def text(inst: Instance) -> str:
    """ONNX's textual syntax, a node a line."""
    g, opset = inst.attrs["program"], int(inst.opset)
    release = schemas.releases()[opset]
    heads = _heads(inst)
    formal = ", ".join(f"{notation.type_text(a, f'{n}_')} {n}" for n, a in heads)
    lines = [
        f"# {inst.op}: {inst.attrs.get('pattern')}",
        f'<ir_version: {release["ir"]}, opset_import: ["" : {opset}]>',
        f"case ({formal}) => ({', '.join(g.outputs)}) {{",
    ]
    lines += [f"  {k} = Constant <value = {notation.value_text(v, opset)}> ()" for k, v in g.consts.items()]
    for n in g.nodes:
        ins = ", ".join(x or '""' for x in operands(n, opset))
        lines.append(f"  {', '.join(n.outputs)} = {n.op}{notation.attrs_text(n.attrs, opset)} ({ins})")
    notes: list[Any] = []
    for (n, _), a in zip(heads, inst.tensors("inputs")):
        data = str(a.values) if a.values is not None else f"{a.recipe} (seed {a.seed})"
        notes.append(f"# {n}: {data[:200]}")
    return "\n".join([*lines, "}", *notes])
