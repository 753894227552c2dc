"""A program -> one TFLite file, and the same as text."""

from __future__ import annotations

from typing import Any

from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from suites.tflite import builder


def _head(inst: Instance) -> list[tuple[str, Arg]]:
    given = inst.tensors("inputs")
    return [(f"p{i}", Arg(a.dtype, a.shape, quant=a.quant)) for i, a in enumerate(given)]


def build(inst: Instance) -> Model:
    """The program is the main subgraph.  With ``meta["signatures"]``, further programs are subgraphs beside it, and
    each has a signature of its own."""
    g: Graph = inst.attrs["program"]
    heads = _head(inst)
    whole = Graph(heads, g.nodes, g.outputs, g.consts, g.meta)
    beside = [Graph(heads, g.nodes[:n], [g.nodes[n - 1].outputs[0]], g.consts, g.meta) for n in _cuts(g)]
    data = builder.build_graphs([whole, *beside], signatures=bool(beside))
    return Model("tflite", data, [[(n, "inputs", i) for i, (n, _) in enumerate(heads)]], [list(g.outputs)])


def _cuts(g: Graph) -> list[int]:
    """How many of the first nodes each further signature has."""
    return [n for n in g.meta.get("signatures", ()) if 0 < n <= len(g.nodes)]


def text(inst: Instance) -> str:
    """A node a line, with the scale and zero point of what is quantised."""
    g: Graph = inst.attrs["program"]
    told = g.meta.get("tensors", {})

    def typed(name: str, dtype: Any, shape: Any) -> str:
        q = told.get(name, {}).get("quant")
        scales = "" if not q else f" scale {q['scale'][:4]} zero {q['zero_point'][:4]}"
        return f"{name}: {dtype}{list(shape)}{scales}"

    lines = [f"# {inst.op}: {inst.attrs.get('pattern')}"]
    lines += [f"input {typed(f'p{i}', a.dtype, a.shape)}" for i, a in enumerate(inst.tensors("inputs"))]
    for k, v in g.consts.items():
        lines.append(f"const {typed(k, v.dtype, v.shape)} = {str(v.ravel().tolist())[:120]}")
    for n in g.nodes:
        ins = ", ".join(f"{s}={x}" for s, x in n.inputs.items())
        attrs = ", ".join(f"{k}={v}" for k, v in n.attrs.items() if not k.startswith("@"))
        out = n.outputs[0]
        t = told.get(out, {})
        lines.append(
            f"{typed(out, t.get('dtype', '?'), t.get('shape', ()))} = {n.op}.{n.version}({ins}) {attrs}".rstrip()
        )
    return "\n".join([*lines, f"outputs {', '.join(g.outputs)}"])
