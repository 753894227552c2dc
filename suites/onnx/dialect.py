"""The ONNX dialect: every operator of every domain, at every opset from 1 on.

One number names the opset of a model, that of the default domain; the other domains take the version released with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from harness.core.dtypes import F32
from harness.core.errors import UsageError
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.spec import Dialect, Draw, OpSchema, OpVersion
from harness.spec.dialect import Results
from suites.onnx import builder, notation, parse, schemas
from suites.onnx.interpret import Run, Watch

# what the text says changes no result: LinearAttention-27 "does not affect output correctness", Range-27 "no effect for
# other types" (its default for those two)
_HINTS = {"LinearAttention": {"chunk_size": 2}, "Range": {"stash_type": F32}}
# with defaults of no bound and of numbers that no draw gives
_SPARED = {"Clip": ("min", "max"), "Selu": ("alpha", "gamma")}


class Onnx(Dialect):
    name = "onnx"
    title = "ONNX"
    format = "onnx"
    extension = ".onnx"
    opsets = tuple(sorted(schemas.releases()))
    max_rank = 6
    dynamic_chance = 10  # one instance in so many declares symbolic dimensions
    declares_extents = True
    declares_results = True  # ONNX IR, Graphs: inputs and outputs of the main graph are required to have a shape

    @cached_property
    def schemas(self) -> list[OpSchema]:
        return list(schemas.schemas())

    def at(self, op: str, version: Any, opset: int) -> OpVersion:
        """The declared version: that given, else the one in force at ``opset``.  Raises UsageError."""
        if version is None:
            schema = schemas.effective(op, opset)
            if schema is None:
                raise UsageError(f"onnx: no {op} at opset {opset}")
            version = schema.version
        try:
            return self.versions[f"onnx/{op}/{version}"]
        except KeyError:
            raise UsageError(f"onnx: {op}-{version} is not declared") from None

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Float attributes as stored; now and then symbolic dimensions, or the attribute that version 1 carried
        idly."""
        attrs = inst.attrs
        for k, v in attrs.items():
            if isinstance(v, float) or (isinstance(v, list) and v and isinstance(v[0], float)):
                attrs[k] = schemas.f32(v)
        self._leave_out(version, d, attrs)
        for name in _HINTS.get(version.op, ()):
            if name in version.schema.attrs and d.engine.int(0, 3) == 3:
                attrs[name] = _HINTS[version.op][name]
        idle = version.schema.attrs.get("consumed_inputs")
        if idle is not None and (idle.required or d.engine.int(0, 7) == 7):
            attrs["consumed_inputs"] = [0] * len(version.schema.inputs)
        if d.engine.int(0, self.dynamic_chance - 1) == self.dynamic_chance - 1:
            for a in inst.args.values():
                for x in a if isinstance(a, list) else (a,):
                    if isinstance(x, Arg) and not x.const and x.kind == "tensor" and x.shape:
                        x.dynamic = tuple(i for i in range(len(x.shape)) if d.engine.int(0, 1))
        return inst

    def _leave_out(self, version: OpVersion, d: Draw, attrs: dict[str, Any]) -> None:
        """Half of the windows that are as the text has them by default do not say so (before opset 11 most texts name
        no default); and numbers that no draw makes the default are left out now and then."""
        told = int(version.version) >= 11 or version.op in ("ConvInteger", "QLinearConv")
        for name, n in (("strides", 1), ("dilations", 1), ("pads", 0)):
            given, a = attrs.get(name), version.schema.attrs.get(name)
            if not given or a is None or a.required or not (told or (name, version.op) == ("pads", "MaxUnpool")):
                continue
            if all(v == n for v in given) and d.engine.int(0, 1):
                del attrs[name]
        for name in _SPARED.get(version.op, ()):
            if name in attrs and d.engine.int(0, 7) == 7:
                del attrs[name]

    def reruns(self, inst: Instance, index: int) -> bool:
        """Where dimensions are symbolic."""
        return any(x.dynamic for a in inst.args.values() for x in (a if isinstance(a, list) else (a,)))

    def runner(self, opset: Any, outer: dict[str, Any]) -> Callable[..., list[Any]]:
        run = Run(self, opset)

        def go(graph: Graph, inputs: Any) -> list[Any]:
            return run.graph(graph, inputs, outer)

        return go

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return builder.build(instances, arrays)

    def build_declared(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]],
                       results: Sequence[Results]) -> Model:  # fmt: skip
        return builder.build(instances, arrays, results=results)

    def notation(self, inst: Instance) -> str:
        return notation.text(inst)

    def parse(self, data: Any) -> Graph:
        return parse.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Outputs of a whole model (bytes, path or ModelProto) in its order.  inputs: by name or in order of the inputs
        that have no initializer.  watch: called after every node with its outputs."""
        g = self.parse(model)
        run = Run(self, g.meta["opsets"].get("", 1), g.meta["functions"], watch)
        return run.graph(g, inputs)
