"""The ONNX dialect: every operator of every domain, at every opset from 1 on.

One number names the opset of a model, that of the default domain; the other domains take the version released with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from harness.core.dtypes import F32, DType
from harness.core.errors import UsageError
from harness.core.instance import SKIPPED, Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Dialect, Draw, OpSchema, OpVersion, Results
from harness.declare.interpreter import Watch, fed
from harness.declare.op_version.nearby import takes
from suites.onnx import broken, builder, edges, far, notation, parse, schemas
from suites.onnx.codecs import Scalar
from suites.onnx.interpret import Run

# what the text says changes no result: LinearAttention-27 "does not affect output correctness", Range-27 "no effect for
# other types" (its default for those two)
_HINTS: dict[str, dict[str, Any]] = {"LinearAttention": {"chunk_size": 2}, "Range": {"stash_type": F32}}
# with defaults of no bound and of numbers that no draw gives
_SPARED = {"Clip": ("min", "max"), "Selu": ("alpha", "gamma")}


class _Touch:
    """What the last touch on an instance of an op version looks at.

    windows: half of those that are as the text has them by default do not say so; before opset 11 shape inference alone
    names a default.  spared: numbers that no draw makes the default are left out now and then.  may_skip: optional
    outputs before the last.  adds: may an attribute come in?"""

    def __init__(self, version: OpVersion) -> None:
        attrs, op = version.schema.attrs, version.op
        self.windows = [
            (name, n)
            for name, n in (("strides", 1), ("dilations", 1), ("pads", 0))
            if name in attrs and not attrs[name].required
        ]
        self.spared = _SPARED.get(op, ())
        self.hints = [(name, v) for name, v in _HINTS.get(op, {}).items() if name in attrs]
        self.idle = attrs.get("consumed_inputs")
        outputs = version.schema.outputs
        self.may_skip = [j for j, o in enumerate(outputs[:-1]) if o.optional and not o.variadic]
        if "saved_mean" in {o.name for o in outputs}:  # "Output case #1: Y, mean, var, saved_mean, saved_var"
            self.may_skip = []
        self.adds = bool(self.hints or self.idle or self.may_skip)


def _skipped(inst: Instance, may: list[int], d: Draw) -> list[int]:
    """The outputs before the last asked for that have no name.  Attention's updated caches come with the old ones."""
    if inst.op == "Attention":
        return may if "past_key" not in inst.args else []
    return sorted(d.subset(may, 1)) if may and d.chance(3) else []


def _tensors(inst: Instance) -> Iterator[Arg]:
    """The arguments, those of variadic slots one by one."""
    for a in inst.args.values():
        for x in a if isinstance(a, list) else (a,):
            if isinstance(x, Arg):
                yield x


def _doubled(version: OpVersion, slot: str, d: Draw) -> Instance | None:
    """The one element of ``slot`` twice, where it is given."""
    inst = version.draw(d.engine, d.opset)
    one = inst.args.get(slot)
    if not isinstance(one, Arg) or one.values is None:
        return None
    one.shape, one.values = (2,), [*one.values, *one.values]
    return inst


class Onnx(Dialect):
    name = "onnx"
    title = "ONNX"
    format = "onnx"
    extension = ".onnx"
    opsets = tuple(sorted(schemas.releases()))
    max_rank = 8
    own = frozenset({"at"})
    _dynamic_chance = 10  # one instance in so many declares symbolic dimensions
    declares_extents = True
    has_booleans = False
    shares_tensors = True
    shares_elements = True
    draws_edges = True
    edge_extents = (0, 0, 0, 1, 16, 128, 257, 2049)
    special_ends = True
    declares_results = True  # ONNX IR, Graphs: inputs and outputs of the main graph are required to have a shape

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self._touches: dict[str, _Touch] = {}

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

    def counts_back(self, version: OpVersion) -> bool:
        """Before opset 11 no text says so."""
        return version.schema.domain != "" or int(version.version) >= 11

    def keeps(self, version: OpVersion) -> tuple[str, ...]:
        return edges.keeps(version.op, int(version.version))

    def finish(self, version: OpVersion, d: Draw, inst: Instance) -> Instance:
        """Float attributes as stored; now and then symbolic dimensions, or the attribute that version 1 carried
        idly, or counts far beyond what is there (``far``)."""
        touch = self._touches.get(version.key)
        if touch is None:
            touch = self._touches[version.key] = _Touch(version)
        if inst.attrs or touch.adds:
            self._finish_attrs(version, d, inst, touch)
        if d.chance(self._dynamic_chance):
            for t in _tensors(inst):
                if not t.const and t.kind == "tensor" and t.shape:
                    t.dynamic = tuple([i for i in range(len(t.shape)) if d.bool()])
        for a in inst.args.values():
            for x in a if isinstance(a, list) else (a,):
                if not x.const:
                    continue
                how = d.int(0, 5)  # 4 and 5: the typed field, a Constant node; else as usual
                if how > 3:
                    may = builder.encodings(x.dtype, int(inst.opset))
                    x.encoding = may[how - 4] if how - 4 < len(may) else ""
        return far.far_of(version, d, inst, takes)

    def _finish_attrs(self, version: OpVersion, d: Draw, inst: Instance, touch: _Touch) -> None:
        attrs = inst.attrs
        if attrs:
            for k, v in attrs.items():
                if isinstance(v, float) or (isinstance(v, list) and v and isinstance(v[0], float)):
                    attrs[k] = schemas.f32(v)
            for name, n in touch.windows:
                given = attrs.get(name)
                if given and all(v == n for v in given) and d.bool():
                    del attrs[name]
            for name in touch.spared:
                if name in attrs and d.chance(8):
                    del attrs[name]
        for name, hint in touch.hints:
            if d.chance(4):
                attrs[name] = hint
        idle = touch.idle
        if idle is not None and (idle.required or d.chance(8)):
            attrs[idle.name] = [0] * len(version.schema.inputs)
        if touch.may_skip and inst.outs > 1:
            skipped = _skipped(inst, [j for j in touch.may_skip if j < inst.outs - 1], d)
            if skipped:
                attrs[SKIPPED] = skipped

    def encodings(self, dtype: DType, opset: Any) -> tuple[str, ...]:
        return builder.encodings(dtype, int(opset))

    def rules_of(self, version: OpVersion) -> dict[str, Callable[[Draw], Instance | None]]:
        """A second element where the text says a scalar; what ``broken`` changes."""
        slots = [c.slot for c in version.param_codecs.values() if isinstance(c, Scalar)]
        doubled = {f"one-element:{s}": partial(_doubled, version, s) for s in slots if s in version.slots_of_schema}
        return {**doubled, **broken.rules_of(version)}

    def reruns(self, inst: Instance, index: int) -> bool:
        """Where dimensions are symbolic, which those that blocks declare are not."""
        for a in inst.args.values():
            for x in a if isinstance(a, list) else (a,):
                if x.dynamic:
                    return not any(isinstance(x, Graph) for x in inst.attrs.values())
        return False

    def runner(self, opset: Any, outer: dict[str, Any]) -> Callable[..., list[Any]]:
        """Blocks see the operands of their node by the names of its slots, those of a variadic one numbered from 0."""
        run = Run(self.at, opset)
        around = {f"{slot}{k}": x for slot, xs in outer.items() if isinstance(xs, list) for k, x in enumerate(xs)}
        outer = {**outer, **around}

        def go(graph: Graph, inputs: Any) -> list[Any]:
            return run.graph(graph, inputs, outer)

        return go

    def build(self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]]) -> Model:
        return builder.build(instances, arrays)

    def build_declared(
        self, instances: Sequence[Instance], arrays: Sequence[dict[str, Any]], results: Sequence[Results]
    ) -> Model:
        return builder.build(instances, arrays, results=results)

    def notation(self, inst: Instance) -> str:
        return notation.text(inst)

    def parse(self, data: Any) -> Graph:
        return parse.parse(data)

    def run_model(self, model: Any, inputs: dict[str, Any] | Sequence[Any], watch: Watch | None = None) -> list[Any]:
        """Outputs of a whole model (bytes, path or ModelProto) in its order.  inputs: by name or in order of the inputs
        that have no initializer.  watch: called after every node with its outputs."""
        g = self.parse(model)
        run = Run(self.at, g.meta["opsets"].get("", 1), g.meta["functions"], watch)
        free = [n for n, t in g.meta["input_types"].items() if t is None or n in g.consts]
        return run.graph(g, fed(g, inputs, free=free))
