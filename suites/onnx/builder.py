"""Instances -> one ModelProto with as many independent nodes side by side.

Session creation is what costs, so instances share a model.  A runtime argument is a graph input; a constant one is an
initializer with raw bytes, or as its ``encoding`` says.  Instances whose subject is a whole graph come along as its
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.errors import Unsupported
from harness.core.instance import SAME, SKIPPED, Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Results
from harness.declare.schema import OpSchema
from suites.onnx import proto, schemas
from suites.onnx.output_types import arg_type, output_type
from suites.onnx.proto import CODES, KINDS, Message, Type

AROUND = "@around"  # the graph that Gradient differentiates, beside the node's attributes


NODE = "Constant"  # the encoding of a constant that a node makes


def encodings(dtype: DType, opset: int) -> tuple[str, ...]:
    """How a model can hold a constant, besides the raw bytes of an initializer: in the field of TensorProto that the
    IR names for the type (``int32_data``), and by a Constant node where its schema takes the type."""
    field = () if dtype.kind == "s" else (proto.typed_field(dtype),)  # strings have no raw bytes
    return (*field, NODE) if dtype in _constant_types(opset) else field


class Parts:
    """What a model gathers: nodes, inputs, outputs, initializers, the domains in use."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Message] = []
        self.inputs: list[Message] = []
        self.outputs: list[Message] = []
        self.initializers: list[Message] = []
        self.domains: set[str] = set()
        self.listed = schemas.releases()[opset]["ir"] < 4  # then every initializer is a graph input as well

    def constant(self, name: str, arg: Arg, array: np.ndarray) -> None:
        """A named constant, encoded as the argument says.  Raises Unsupported for what the format lacks."""
        if arg.encoding and arg.encoding not in encodings(arg.dtype, self.opset):
            raise Unsupported(f"no constant of {arg.dtype} in {arg.encoding} at opset {self.opset}")
        if arg.encoding == NODE:
            self.nodes.append(proto.node("Constant", [], [name], [proto.attribute("value", array, proto.TENSOR)]))
            return
        self.initializers.append(proto.tensor(name, array, raw=not arg.encoding))
        if self.listed:
            self.inputs.append(proto.value_info(name, proto.tensor_type(CODES[arg.dtype.name], array.shape)))


@cache
def _constant_types(opset: int) -> frozenset[DType]:
    """The types that a Constant node can have."""
    schema = schemas.effective("Constant", opset)
    assert schema is not None
    return frozenset(schema.dtypes(schema.outputs[0].element))


def encode_attrs(
    schema: OpSchema, attrs: dict[str, Any], opset: int, outer: dict[str, str] | None = None
) -> list[Message]:
    """AttributeProtos in the order written.  outer: names that blocks may use -> what they are called here."""
    out = []
    for name, value in attrs.items():
        if name in (AROUND, SKIPPED, SAME):
            continue
        a = schema.attrs.get(name)
        kind = a.type if a is not None else _guess(value)  # a deliberately wrong attribute is written all the same
        if kind == "graph":
            value = encode_graph(value, opset, name, outer)
        elif kind == "sparse_tensor":
            value = to_sparse(value)
        elif kind == "type_proto":
            value = value if isinstance(value, Type) else proto.parse_type(value)
        out.append(proto.attribute(name, value, KINDS[kind]))
    return out


def _guess(value: Any) -> str:
    if isinstance(value, Graph):
        return "graph"
    if isinstance(value, np.ndarray):
        return "tensor"
    many = isinstance(value, (list, tuple))
    first = (value[0] if value else 0) if many else value
    return {str: "str", float: "float"}.get(type(first), "int") + ("s" if many else "")


def to_sparse(dense: np.ndarray) -> proto.Sparse:
    """Coordinate form with linear indices."""
    flat = dense.reshape(-1)
    at = np.flatnonzero(flat.astype(bool)).astype(np.int64)
    return proto.Sparse(flat[at], at, dense.shape)


def positions(schema: OpSchema, given: dict[str, Any]) -> list[tuple[str, int | None, Any]]:
    """(slot, index in a variadic slot, what was given) in the schema's order; absent slots before a given one, and
    where a node has a least number of inputs, as None."""
    out: list[tuple[str, int | None, Any]] = []
    keep = 0
    for slot in schema.inputs:
        v = given.get(slot.name)
        if isinstance(v, list):
            out += [(slot.name, j, x) for j, x in enumerate(v)]
            keep = len(out)
        else:
            out.append((slot.name, None, v))
            if v is not None:
                keep = len(out)
    return out[: max(keep, schema.extra.get("least", 0))]


def encode_graph(g: Graph, opset: int, name: str = "body", outer: dict[str, str] | None = None) -> Message:
    """GraphProto of a block, or of a whole program: types of inputs declared, those of outputs left to inference unless
    ``meta`` gives them."""
    nodes = []
    names = dict(outer or {})
    for mine in (*(n for n, _ in g.inputs), *g.consts, *(o for n in g.nodes for o in n.outputs)):
        names.pop(mine, None)  # a name of the block's own hides the outer one
    for n in g.nodes:
        schema = schemas.effective(n.op, opset)
        if schema is None:
            raise Unsupported(f"no op {n.op} at opset {opset}")
        ins = [names.get(x, x) if x else "" for _, _, x in positions(schema, n.inputs)]
        nodes.append(proto.node(n.op, ins, n.outputs, encode_attrs(schema, n.attrs, opset, names), schema.domain))
    consts = [proto.tensor(k, v) for k, v in g.consts.items()]
    if (
        schemas.releases()[opset]["ir"] < 4 and consts
    ):  # there, an initializer would have to be an input of the block too
        nodes[:0] = [
            proto.node("Constant", [], [k], [proto.attribute("value", v, proto.TENSOR)]) for k, v in g.consts.items()
        ]
        consts = []
    inputs = [proto.value_info(n, _block_type(a, n)) for n, a in g.inputs]
    declared = g.meta.get("out_types", {})
    outputs = []
    for o in (names.get(x, x) for x in g.outputs):
        t = declared.get(o)
        body = None if t is None else proto.type_proto(t if isinstance(t, Type) else proto.parse_type(t))
        outputs.append(proto.value_info(o, body))
    return proto.graph(name, nodes, inputs, outputs, consts)


def _block_type(arg: Arg, name: str) -> Message | bytes:
    t = arg_type(arg, name)
    if t.kind == "tensor" and -1 in arg.shape:  # unknown extents of a block's input
        t = Type("tensor", t.dtype, tuple(None if n < 0 else n for n in arg.shape))
    return proto.type_proto(t)


def build(
    instances: Sequence[Instance],
    arrays: Sequence[dict[str, Any]],
    declared: Sequence[Sequence[Type | None]] | None = None,
    results: Sequence[Results] | None = None,
) -> Model:
    """Pack instances into one model, at the opset of the first.

    arrays[i]: slot -> array (list for a variadic slot) of instance i; constants are written into the model.
    declared: types of each instance's outputs where known in full.  results: element type and rank of its outputs that
    are tensors: a main graph must say them (ONNX IR, Graphs), their extents are left to inference.  Names are C90
    identifiers (ONNX IR, Names Within a Graph).  Raises Unsupported for what the format lacks."""
    opset = int(instances[0].opset)
    p = Parts(opset)
    inputs: list[list[tuple[str, str, int | None]]] = []
    outputs: list[list[str]] = []
    nodes: list[list[str]] = []  # by which a runtime's message tells the culprit of a packed model
    for i, inst in enumerate(instances):
        plan = schemas.plan(inst.op, opset)
        if plan is None:
            raise Unsupported(f"no op {inst.op} at opset {opset}")
        fed, names, outs = _add(p, i, inst, arrays[i], plan)
        _declare(p, inst, plan, outs, None if declared is None else declared[i], () if results is None else results[i])
        inputs.append(fed)
        outputs.append(outs)
        nodes.append([f"x{i}n", *names])
    release = schemas.releases()[opset]
    imports = {"": opset, **{d: release.get(d, 1) for d in sorted(p.domains)}}
    body = proto.graph("g", p.nodes, p.inputs, p.outputs, p.initializers)
    return Model("onnx", proto.model(body, imports, release["ir"]), inputs, outputs, {"opset": opset, "nodes": nodes})


def _add(
    p: Parts, i: int, inst: Instance, arrays: dict[str, Any], plan: schemas.Plan
) -> tuple[list[tuple[str, str, int | None]], list[str], list[str]]:
    """Write the node of instance ``i``: what it is fed, the names of its operands, and of its outputs."""
    names: list[str] = []
    around: dict[str, str] = {}  # what the blocks of the node call its operands
    fed: list[tuple[str, str, int | None]] = []
    shared = inst.shared()
    for slot in plan.inputs:
        arg = inst.args.get(slot)
        if arg is None:
            names.append("")
        elif slot in shared and shared[slot] in around:
            around[slot] = around[shared[slot]]
            names.append(around[slot])
        elif isinstance(arg, list):
            for k, one in enumerate(arg):
                first = shared.get(f"{slot}#{k}", "").replace("#", "")
                names.append(around.get(first) or _input(p, f"x{i}i{len(names)}", slot, k, one, arrays, fed))
                around[f"{slot}{k}"] = names[-1]
        else:
            names.append(_input(p, f"x{i}i{len(names)}", slot, None, arg, arrays, fed))
            around[slot] = names[-1]
    while len(names) > plan.least and not names[-1]:
        names.pop()
    skipped = inst.attrs.get(SKIPPED, ())
    outs = ["" if j in skipped else f"x{i}o{j}" for j in range(inst.outs)]
    attrs: Sequence[Message] = ()
    if AROUND in inst.attrs:
        attrs = surround(p, inst.attrs, names, f"x{i}a_", plan.schema)
    elif inst.attrs:
        attrs = encode_attrs(plan.schema, inst.attrs, p.opset, around if plan.blocks else None)
    p.nodes.append(proto.node(inst.op, names, outs, attrs, plan.domain, f"x{i}n"))
    if plan.domain:
        p.domains.add(plan.domain)
    return fed, names, outs


def _declare(
    p: Parts,
    inst: Instance,
    plan: schemas.Plan,
    outs: list[str],
    declared: Sequence[Type | None] | None,
    results: Results,
) -> None:
    """Say the types of the outputs that have a name: in full, else the element type that the operands or the result
    tell, and the rank of the result."""
    for j, o in enumerate(outs):
        if not o:
            continue
        known = declared[j] if declared is not None else None
        if known is not None:
            p.outputs.append(proto.value_info(o, proto.type_proto(known)))
            continue
        hit = plan.output(j, inst.args, inst.attrs)
        result = results[j] if j < len(results) else None
        told = None if hit is not None else output_type(inst, j)
        if told is not None:
            if told.kind == "tensor" and result is not None:
                told = Type("tensor", told.dtype, (None,) * len(result.shape))
            p.outputs.append(proto.value_info(o, proto.type_proto(told)))
            continue
        if hit is None and result is not None:
            hit = "", result.dtype
        rank = None if result is None else len(result.shape)
        p.outputs.append(proto.value_info(o, None if hit is None else _output_type(hit, rank)))


def surround(p: Parts, attrs: dict[str, Any], given: Sequence[str], prefix: str, schema: OpSchema) -> list[Message]:
    """Writes the graph that a Gradient differentiates into the model; the node's attributes, by the names there.

    given: the node's inputs, in the order of xs and zs; the names there that nothing makes stand for them."""
    around: Graph = attrs[AROUND]
    names = {o: prefix + o for n in around.nodes for o in n.outputs if o} | {k: prefix + k for k in around.consts}
    for said, name in zip([*attrs.get("xs", ()), *attrs.get("zs", ())], given):
        names.setdefault(said, name)
    p.initializers += [proto.tensor(names[k], v) for k, v in around.consts.items()]
    for n in around.nodes:
        s = schemas.effective(n.op, p.opset)
        if s is None:
            raise Unsupported(f"no op {n.op} at opset {p.opset}")
        ins = [names.get(x, x) if x else "" for _, _, x in positions(s, n.inputs)]
        outs = [names[o] if o else "" for o in n.outputs]  # one may be skipped
        p.nodes.append(proto.node(n.op, ins, outs, encode_attrs(s, _renamed(n.op, n.attrs, names), p.opset), s.domain))
    return encode_attrs(schema, _renamed("Gradient", attrs, names), p.opset)


def _renamed(op: str, attrs: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The attributes with the tensors that a Gradient names called as in the model."""
    if op != "Gradient":
        return attrs
    lists: dict[str, Any] = {k: [names.get(x, x) for x in attrs[k]] for k in ("xs", "zs") if k in attrs}
    return {**attrs, **lists, **({"y": names.get(attrs["y"], attrs["y"])} if "y" in attrs else {})}


def _input(
    p: Parts,
    name: str,
    slot: str,
    k: int | None,
    arg: Arg,
    have: dict[str, Any],
    mine: list[tuple[str, str, int | None]],
) -> str:
    if arg.kind != "tensor" or (arg.dynamic and not arg.const):
        type_ = proto.type_proto(arg_type(arg, name))
    elif arg.const:
        p.constant(name, arg, have[slot] if k is None else have[slot][k])
        return name
    else:
        type_ = proto.tensor_type(CODES[arg.dtype.name], arg.shape)
    p.inputs.append(proto.value_info(name, type_))
    mine.append((name, slot, k))
    return name


def type_of(value: Any, dtype: DType) -> Type | None:
    """The type of a computed value, extents open; None for what a value alone does not tell."""
    if isinstance(value, np.ndarray):
        return Type("tensor", dtype, (None,) * value.ndim)
    if isinstance(value, list) and not any(isinstance(x, dict) for x in value):
        return Type("seq", None, None, Type("tensor", dtype, None))
    return None


def _output_type(hit: tuple[str, DType], rank: int | None = None) -> Message | bytes:
    container, dtype = hit
    if not container:
        return proto.tensor_type(CODES[dtype.name], None if rank is None else (None,) * rank)
    return proto.type_proto(Type(container, None, None, Type("tensor", dtype, None)))
