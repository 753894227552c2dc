"""A program and the pass that is to see it -> the plain program with a header for the backend."""

from __future__ import annotations

from typing import Any

from harness.core.instance import Graph, Instance
from harness.core.outcome import Model
from suites.mil import dialect as mil
from suites.mil.builder import Writer
from suites.passes.program import HEADER


class _Sharing(Writer):
    """Writes the constants that the program shares once, whatever uses them, and those marked so as literals."""

    def __init__(self, schemas: Any, opset: str, shared: list[str], plain: list[str]) -> None:
        super().__init__(schemas, opset)
        self.plain = frozenset(plain)
        self.shared: dict[str, dict[str, int] | None] = dict.fromkeys(shared)

    def _ref(self, g: Graph, name: str, outer: dict[str, Any]) -> dict[str, Any]:
        if name in self.plain:
            return {"p": g.consts[name].item()}
        if name not in self.shared:
            return super()._ref(g, name, outer)
        ref = self.shared[name]
        if ref is None:
            ref = self.shared[name] = self.prog.const(g.consts[name])
        return ref


def _sized(value: Any, inst: Instance) -> Any:
    """Part of a header with the shapes of the instance in place of "@shape"."""
    if not isinstance(value, dict):
        return value
    shapes = {f"p{i}": list(a.shape) for i, a in enumerate(inst.tensors("inputs"))}
    return {k: shapes[k] if v == "@shape" else _sized(v, inst) for k, v in value.items()}


def build(inst: Instance, before: tuple[str, ...], watch: str, namespace: str = "common") -> Model:
    """A Model of format "mil-passes".  before: passes that run ahead of the one that the instance is about.
    watch: what that one promises to change.  namespace: of the registry, where that one stands.

    Casts to the output types that a caller asked for end the program that means the same; the pass is to add them, so
    they are not written."""
    g: Graph = inst.attrs["program"]
    meta = g.meta
    domain = {"coreml": "coreml", "complex": "complex"}
    w = _Sharing(
        lambda op, at: mil.effective(op, at, domain.get(op.split("_")[0], "")).schema,
        str(inst.opset),
        meta.get("shared", []),
        meta.get("plain", []),
    )
    names, symbols = meta.get("names", {}), meta.get("symbols", {})
    ins: list[tuple[str, str, int | None]] = []
    outer: dict[str, Any] = {}
    for i, a in enumerate(inst.tensors("inputs")):
        name = names.get(f"p{i}", f"p{i}")
        outer[f"p{i}"] = {"v": name}
        free = symbols.get(f"p{i}", [])
        dims = [free[k] if k < len(free) and free[k] else n for k, n in enumerate(a.shape)]
        w.prog.inputs.append([name, a.dtype.name, dims, "state" if a.kind == "state" else "tensor"])
        ins.append((name, "inputs", i))
    casts = {n.outputs[0]: n.value("x") for n in g.nodes if n.outputs[0] in meta.get("casts", ())}
    kept = Graph(
        g.inputs, [n for n in g.nodes if n.outputs[0] not in casts], [casts.get(o, o) for o in g.outputs], g.consts
    )
    block = w.block(kept, outer)
    w.prog.ops = block["ops"]
    w.prog.outputs = [r["v"] for r in block["outputs"]]
    pipeline = inst.op.removesuffix("_pipeline")
    w.prog.extra = {
        "passes": pipeline if pipeline != inst.op else [*(f"common::{t}" for t in before), f"{namespace}::{inst.op}"],
        "fires": meta["fires"],
        "watch": meta.get("watch", watch),
        "shared": [r["c"] for r in w.shared.values() if r is not None],
        **{k: _sized(meta[k], inst) for k in HEADER if k in meta},
    }
    return Model("mil-passes", w.prog.dumps(), [ins], [["fired", *w.prog.outputs]])
