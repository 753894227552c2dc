"""Model file -> Graph: positional inputs become slots through the schema, enumerated types become ours.

The Graph's ``meta`` keeps what a one-node instance has no place for: ``opsets``, ``functions``, declared ``types``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.core.dtypes import F32
from harness.core.errors import FormatError, UsageError, reading
from harness.core.instance import Arg, Graph, Node
from harness.declare.schema import OpSchema
from suites.onnx import schemas
from suites.onnx.decode import FunctionProto, GraphProto, ModelProto, NodeProto, Ref, decode
from suites.onnx.proto import DTYPES, Sparse, Type

Functions = dict[tuple[str, str, str], "Function"]


class Function:
    """A model-local function: formal names, body, defaults of its attributes."""

    __slots__ = ("attributes", "body", "defaults", "inputs", "outputs")

    def __init__(
        self, inputs: list[str], outputs: list[str], body: Graph, attributes: list[str], defaults: dict[str, Any]
    ) -> None:
        self.inputs, self.outputs, self.body = inputs, outputs, body
        self.attributes, self.defaults = attributes, defaults


def load(model: Any) -> ModelProto:
    """A decoded model of bytes, a path, or anything with ``SerializeToString``.  Raises FormatError, UsageError."""
    if isinstance(model, ModelProto):
        return model
    if isinstance(model, (bytes, bytearray, memoryview)):
        return decode(bytes(model))
    if isinstance(model, (str, Path)):
        path = Path(model)
        if not path.is_file():
            raise UsageError(f"no model file {path}")
        return decode(path.read_bytes(), path.parent)
    if hasattr(model, "SerializeToString"):
        return decode(model.SerializeToString())
    raise UsageError(f"a model is bytes, a path or a ModelProto, got {type(model).__name__}")


def parse(model: Any) -> Graph:
    """The main graph; ``meta``: opsets, functions, output_types, ir."""
    with reading("onnx model"):
        return _main(model)


def _main(model: Any) -> Graph:
    m = load(model)
    functions: Functions = {}
    g = _graph(m.graph, m.opsets, functions)
    for f in m.functions:
        functions[f.domain, f.name, f.overload] = _function(f, {**m.opsets, **f.opsets}, functions)
    g.meta.update(
        opsets=m.opsets,
        functions=functions,
        ir=m.ir,
        output_types=dict(m.graph.outputs),
        input_types=dict(m.graph.inputs),
    )
    return g


def _function(f: FunctionProto, opsets: dict[str, int], functions: Functions) -> Function:
    body = Graph([], [_node(n, opsets, functions) for n in f.nodes], list(f.outputs))
    body.meta["opsets"] = opsets
    return Function(f.inputs, f.outputs, body, f.attributes + list(f.defaults), dict(f.defaults))


def _graph(g: GraphProto, opsets: dict[str, int], functions: Functions) -> Graph:
    consts = {k: dense(v) if isinstance(v, Sparse) else v for k, v in g.initializers.items()}
    inputs = [(n, arg_of(t)) for n, t in g.inputs if n not in consts]
    nodes = [_node(n, opsets, functions) for n in g.nodes]
    out = Graph(inputs, nodes, [n for n, _ in g.outputs], consts)
    # an initializer that is also an input is only a default
    out.meta["defaulted"] = [n for n, _ in g.inputs if n in consts]
    return out


def arg_of(t: Type | None) -> Arg:
    """A declared type as an Arg; unknown extents are -1 and dynamic."""
    if t is None:
        return Arg(F32, ())
    if t.kind in ("seq", "optional"):
        inner = arg_of(t.elem)
        return Arg(inner.dtype, (), kind=t.kind, items=[inner])
    if t.kind == "map":
        return Arg(t.dtype or F32, (), kind="map", items=[Arg(t.dtype or F32, ()), arg_of(t.elem)])
    shape = tuple(n if isinstance(n, int) else -1 for n in t.shape or ())
    return Arg(t.dtype or F32, shape, dynamic=tuple(i for i, n in enumerate(shape) if n < 0))


def dense(s: Sparse) -> np.ndarray:
    """The full array of a coordinate one; indices are linear or one row an element."""
    out = np.zeros(s.dims, s.values.dtype)
    if s.indices.ndim == 2:
        out[tuple(s.indices.T)] = s.values
    else:
        out.reshape(-1)[s.indices] = s.values
    return out


def _node(n: NodeProto, opsets: dict[str, int], functions: Functions) -> Node:
    version = opsets.get(n.domain, 1)
    schema = schemas.at(n.op, version, n.domain)
    if schema is None:  # a function of the model itself, or an op nobody knows
        attrs = {k: _value(v, "", opsets, functions) for k, v in n.attrs.items()}
        name = f"{n.domain}:{n.op}" + (f":{n.overload}" if n.overload else "")
        return Node(name, {str(i): x or None for i, x in enumerate(n.inputs)}, n.outputs, attrs)
    attrs = {}
    for k, v in n.attrs.items():
        a = schema.attrs.get(k)
        attrs[k] = _value(v, a.type if a else "", opsets, functions)
    return Node(n.op, slots(schema, n.inputs), n.outputs, attrs, schema.version)


def slots(schema: OpSchema, names: list[str]) -> dict[str, Any]:
    """Positional names by slot: a list for a variadic slot, None for an absent one."""
    out: dict[str, Any] = {}
    at = 0
    for s in schema.inputs:
        if s.variadic:
            out[s.name] = [x or None for x in names[at:]]
            at = len(names)
        elif at < len(names):
            out[s.name] = names[at] or None
            at += 1
    if at < len(names):
        raise FormatError(f"onnx: {schema.op}-{schema.version} takes {len(schema.inputs)} inputs, got {len(names)}")
    return out


def _value(v: Any, kind: str, opsets: dict[str, int], functions: Functions) -> Any:
    if isinstance(v, GraphProto):
        return _graph(v, opsets, functions)
    if kind == "dtype" and isinstance(v, int):
        return DTYPES.get(v, v)
    if isinstance(v, Sparse):
        return dense(v)
    if isinstance(v, list) and v and isinstance(v[0], GraphProto):
        return [_graph(g, opsets, functions) for g in v]
    return v


__all__ = ["Function", "Ref", "arg_of", "dense", "load", "parse", "slots"]
