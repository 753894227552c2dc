"""Instances -> one TFLite file.

Each instance is a node of the main subgraph beside the others, its tensors named ``i<k>.<slot>``; constants go into
buffers, blocks of control flow into further subgraphs.  Source: the schema's comments; buffer 0 is the empty one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of
from harness.core.errors import Unsupported
from harness.core.instance import Arg, Graph, Instance
from harness.core.outcome import Model
from harness.declare import Dialect, OpSchema, Results
from suites.tflite import custom, shapes, sparsity
from suites.tflite import flatbuffers as fb
from suites.tflite.quantisation import output_types
from suites.tflite.resources import identity
from suites.tflite.schemas import newest, number_of

TYPES = {
    "f32": 0,
    "f16": 1,
    "i32": 2,
    "u8": 3,
    "i64": 4,
    "str": 5,
    "bool": 6,
    "i16": 7,
    "c64": 8,
    "i8": 9,
    "f64": 10,
    "c128": 11,
    "u64": 12,
    "u32": 15,
    "u16": 16,
    "i4": 17,
    "bf16": 18,
    "i2": 19,
    "u4": 20,
    "f8e4m3fn": 21,
    "f8e5m2": 22,
}
RESOURCE = 13
CODES = fb.ENUMS["BuiltinOperator"]
_UNIONS = {1: ("builtin_options", "builtinOptions"), 2: ("builtin_options2", "builtinOptions2")}


def pack(array: np.ndarray, d: DType) -> bytes:
    """Buffer bytes of an array: little-endian, sub-byte elements low bits first, strings as count, offsets,
    characters."""
    if d.kind == "s":
        items = [s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel()]
        at, offsets = 4 * (len(items) + 2), []
        for s in items:
            offsets.append(at)
            at += len(s)
        return struct.pack(f"<{len(items) + 2}i", len(items), *offsets, at) + b"".join(items)
    if d.bits < 8 and d.kind in "iu":
        per = 8 // d.bits
        flat = array.ravel().astype(np.int8).view(np.uint8) & ((1 << d.bits) - 1)
        flat = np.pad(flat, (0, -flat.size % per)).reshape(-1, per)
        out = np.zeros(len(flat), np.uint8)
        for k in range(per):
            out |= (flat[:, k] << (k * d.bits)).astype(np.uint8)
        return out.tobytes()
    return np.ascontiguousarray(array).tobytes()


class Writer:
    """Collects tensors, buffers, operator codes and subgraphs of one file."""

    def __init__(self) -> None:
        self.buffers: list[dict[str, Any]] = [{}]
        self.codes: dict[tuple[int, int, str], int] = {}
        self.subgraphs: list[dict[str, Any]] = []
        self.blocks: dict[str, int] = {}
        self.signatures: list[dict[str, Any]] = []

    def subgraph(self, name: str) -> dict[str, Any]:
        g: dict[str, Any] = {"tensors": [], "inputs": [], "outputs": [], "operators": [], "name": name}
        self.subgraphs.append(g)
        return g

    def tensor(
        self,
        g: dict[str, Any],
        name: str,
        type_code: int,
        shape: Sequence[int] | None,
        quant: dict[str, Any] | None = None,
        data: bytes | None = None,
        variable: bool = False,
        sparse: dict[str, Any] | None = None,
        dynamic: Sequence[int] = (),
    ) -> int:
        """Index of a new tensor.  shape None: known only when the model runs.  dynamic: axes that may change."""
        t: dict[str, Any] = {"shape": shape if shape is not None else (), "type": type_code, "name": name}
        if data is not None:  # a constant; one without elements has a buffer without data
            t["buffer"] = len(self.buffers)
            self.buffers.append({"data": data})
        if quant and quant.get("block"):
            t["quantization"] = self.blockwise(g, name, shape or (), quant)
        elif quant:
            t["quantization"] = quantization(quant)
        if variable:
            t["is_variable"] = True
        if sparse:
            t["sparsity"] = sparse
        if dynamic and shape is not None:
            t["shape_signature"] = [-1 if k in dynamic else n for k, n in enumerate(shape)]
        tensors = g["tensors"]
        tensors.append(t)
        return len(tensors) - 1

    def blockwise(self, g: dict[str, Any], name: str, shape: Sequence[int], quant: dict[str, Any]) -> dict[str, Any]:
        """Scales of blocks along the last dimension are a tensor of their own (f16); no zero points."""
        rows = (shape[0], shape[-1] // quant["block"])
        scales = np.array(quant["scale"], np.float16).reshape(rows)
        at = self.tensor(g, name + ".scales", TYPES["f16"], rows, None, scales.tobytes())
        details = {"scales": at, "zero_points": -1, "block_size": quant["block"]}
        return {"details_type": fb.union_number("details", "BlockwiseQuantization"), "details": details}

    def operator(
        self,
        g: dict[str, Any],
        schema: OpSchema,
        version: int,
        inputs: list[int],
        outputs: list[int],
        attrs: dict[str, Any],
    ) -> None:
        """A node of the version of ``schema`` with the options that ``attrs`` holds."""
        name, table = schema.extra.get("custom", ""), schema.extra["options"]
        own = custom.pack(name, attrs) if name else options(self, schema, attrs)  # blocks are written first
        key = (schema.extra["code"], version, name)
        index = self.codes.setdefault(key, len(self.codes))
        node: dict[str, Any] = {"opcode_index": index, "inputs": inputs, "outputs": outputs}
        between = attrs.get("@intermediates", ())
        if between:  # parameters of tensors that hold what the operator computes on its way: gates, and what leaves it
            first = len(g["tensors"])
            node["intermediates"] = [
                self.tensor(g, f"between{first + k}", TYPES["i16" if k < 4 else "i8"], (), q)
                for k, q in enumerate(between)
            ]
        if name:
            node["custom_options"] = own
        elif table is not None:
            field, members = _UNIONS[schema.extra["union"]]
            node[field + "_type"] = fb.union_number(members, table)
            node[field] = own
        g["operators"].append(node)

    def encode(self) -> bytes:
        codes = [
            {
                "deprecated_builtin_code": min(code, 127),
                "version": version,
                "builtin_code": code,
                **({"custom_code": name} if name else {}),
            }
            for code, version, name in self.codes
        ]
        return fb.encode(
            "Model",
            {
                "version": 3,
                "operator_codes": codes,
                "subgraphs": self.subgraphs,
                "description": "opconform",
                "buffers": self.buffers,
                **({"signature_defs": self.signatures} if self.signatures else {}),
            },
        )


def quantization(q: dict[str, Any]) -> dict[str, Any]:
    """Quantisation parameters as the schema's table."""
    out: dict[str, Any] = {"scale": q["scale"], "zero_point": q["zero_point"]}
    if q.get("axis"):
        out["quantized_dimension"] = q["axis"]
    return out


def build(
    dialect: Dialect,
    instances: Sequence[Instance],
    arrays: Sequence[dict[str, Any]],
    results: Sequence[Results] | None = None,
) -> Model:
    """One file holding the instances side by side.  results: what the reference tells of the outputs of each instance
    (``suites.tflite.shapes``).  Raises Unsupported for what the format cannot say."""
    w = Writer()
    main = w.subgraph("main")
    names_in: list[list[tuple[str, str, int | None]]] = []
    names_out: list[list[str]] = []
    for k, (inst, given) in enumerate(zip(instances, arrays)):
        ins, outs = _add(dialect, w, main, f"i{k}.", inst, given, () if results is None else results[k])
        names_in.append(ins)
        names_out.append(outs)
    return Model("tflite", w.encode(), names_in, names_out)


def build_graph(graph: Graph) -> bytes:
    """A whole graph as one file: its inputs and outputs are the main subgraph's, under their own names."""
    w = Writer()
    _subgraph(w, "main", graph)
    return w.encode()


def build_graphs(graphs: Sequence[Graph], signatures: bool = False) -> bytes:
    """Several graphs as one file, the first of them its main subgraph.  signatures: each is named by one."""
    w = Writer()
    defs = [_signature(w, k, g) for k, g in enumerate(graphs)]
    if signatures:
        w.signatures = defs
    return w.encode()


def _signature(w: Writer, k: int, graph: Graph) -> dict[str, Any]:
    """Write a graph, and say by which names its inputs and outputs go."""
    _subgraph(w, "main" if k == 0 else f"main{k}", graph)
    g = w.subgraphs[-1]
    maps = {
        part: [{"name": n, "tensor_index": i} for n, i in zip(names, g[part])]
        for part, names in (("inputs", [n for n, _ in graph.inputs]), ("outputs", graph.outputs))
    }
    return {**maps, "signature_key": f"signature{k}", "subgraph_index": k}


def _subgraph(w: Writer, name: str, graph: Graph) -> None:
    """Write a graph as a subgraph of its own."""
    g = w.subgraph(name)
    known: dict[str, int] = {}
    types: dict[str, DType] = {}
    for n, a in graph.inputs:
        known[n] = w.tensor(g, n, TYPES[a.dtype.name], a.shape, a.quant)
        types[n] = a.dtype
        g["inputs"].append(known[n])
    nodes(w, g, graph, known, types, "")
    g["outputs"] = [known[n] for n in graph.outputs]


def _add(
    dialect: Dialect,
    w: Writer,
    g: dict[str, Any],
    prefix: str,
    inst: Instance,
    given: dict[str, Any],
    results: Results = (),
) -> tuple[list[tuple[str, str, int | None]], list[str]]:
    version = dialect.version_of(inst)
    schema = version.schema
    if "@program" in inst.attrs:
        return _program(dialect, w, g, prefix, inst, given)
    inputs: list[int] = []
    run_time: list[tuple[str, str, int | None]] = []
    shared = inst.shared()
    at_slot: dict[str, int] = {}
    for slot in schema.inputs:
        arg = inst.args.get(slot.name)
        if arg is None:
            inputs.append(-1)
            continue
        many = isinstance(arg, list)
        pairs = zip(arg, given[slot.name]) if isinstance(arg, list) else [(arg, given[slot.name])]
        for j, (a, x) in enumerate(pairs):
            place = f"{slot.name}#{j}" if many else slot.name
            if shared.get(place) in at_slot:
                inputs.append(at_slot[shared[place]])
                continue
            name = f"{prefix}{slot.name}{j if many else ''}"
            layout = inst.attrs.get("@sparsity", {}).get(slot.name)
            at, fed = _operand(w, g, name, a, x, slot.name in _states(version), layout)
            inputs.append(at)
            at_slot[place] = at
            if fed:
                g["inputs"].append(at)
                run_time.append((name, slot.name, j if many else None))
    while (
        inputs and inputs[-1] == -1 and len(schema.inputs) < 9
    ):  # absent at the end: not written; long lists are whole
        inputs.pop()
    outs: list[int] = []
    names: list[str] = []
    stated = inst.attrs.get("@outputs") or []
    known = shapes.declared(version, inst, given, results)
    for left in reversed(range(inst.attrs.get("@calls", 1))):  # on the same operands and states; the last one answers
        outs, names = [], []
        for i, (d, quant) in enumerate(output_types(version, inst)):
            name = f"{prefix}out{i}" + ("" if not left else f"_{left}")
            result = known[i] if i < len(known) else None
            shape = stated[i].get("shape") if i < len(stated) and stated[i] else None
            varies: tuple[int, ...] = ()
            if shape is None and result is not None:
                shape, varies = result.shape, result.varies
            outs.append(w.tensor(g, name, TYPES[d.name], shape, quant, dynamic=varies))
            names.append(name)
        written = [*outs, *_workspace(w, g, prefix, inst)]
        w.operator(g, schema, number_of(inst.version), inputs, written, inst.attrs)
    g["outputs"].extend(outs)
    return run_time, names


def _workspace(w: Writer, g: dict[str, Any], prefix: str, inst: Instance) -> list[int]:
    """The second result of a product with shuffled weights, which is no result: the input as the kernel orders it
    (toco, shuffle_fc_weights.cc: "a second output array to this FC op, serving as a workspace")."""
    x = inst.args.get("input")
    if inst.attrs.get("weights_format") != "SHUFFLED4x16INT8" or not isinstance(x, Arg):
        return []
    return [w.tensor(g, prefix + "workspace", TYPES["u8"], x.shape, x.quant)]


def _program(
    dialect: Dialect, w: Writer, g: dict[str, Any], prefix: str, inst: Instance, given: dict[str, Any]
) -> tuple[list[tuple[str, str, int | None]], list[str]]:
    """A whole small graph in place of one node; its inputs are the instance's slots."""
    graph: Graph = inst.attrs["@program"]
    read = {n for node in graph.nodes for n in node.inputs.values() if isinstance(n, str)}
    lost = read & {s.name for s in dialect.version_of(inst).schema.inputs} - set(inst.args)
    if lost:
        raise Unsupported(f"the program reads {sorted(lost)[0]}, which this instance lacks")
    known: dict[str, int] = {}
    types: dict[str, DType] = {}
    run_time: list[tuple[str, str, int | None]] = []
    for slot, a in inst.args.items():
        if isinstance(a, list):
            raise Unsupported("a program takes no variadic slot")
        known[slot], fed = _operand(w, g, prefix + slot, a, given[slot], False)
        types[slot] = a.dtype
        if fed:
            g["inputs"].append(known[slot])
            run_time.append((prefix + slot, slot, None))
    nodes(w, g, graph, known, types, prefix)
    names = []
    for name in graph.outputs:
        g["outputs"].append(known[name])
        names.append(g["tensors"][known[name]]["name"])
    return run_time, names


def _states(version: Any) -> set[str]:
    """Slots whose tensors the runtime keeps between runs."""
    cached = version.__dict__.get("_tflite_states")
    if cached is None:
        names = version.schema.extra.get("states", ())
        cached = version.__dict__["_tflite_states"] = set(names)
    return cached


def _operand(
    w: Writer, g: dict[str, Any], name: str, a: Arg, x: Any, state: bool, layout: dict[str, Any] | None = None
) -> tuple[int, bool]:
    """Tensor of an argument, and whether it is fed when the model runs.  layout: of a sparse constant."""
    if a.dtype.name not in TYPES:
        raise Unsupported(f"TFLite has no tensor type {a.dtype}")
    code = TYPES[a.dtype.name]
    if state:
        return w.tensor(g, name, code, a.shape, a.quant, variable=True), False
    if layout:
        table, values = sparsity.encode(x, layout)
        return w.tensor(g, name, code, a.shape, a.quant, pack(values, a.dtype), sparse=table), False
    # Python's interface cannot feed a string of rank 0.  A constant without elements is a tensor that nobody writes.
    if a.const or (a.dtype.kind == "s" and not a.shape):
        return w.tensor(g, name, code, a.shape, a.quant, pack(x, a.dtype)), False
    return w.tensor(g, name, code, a.shape, a.quant, dynamic=a.dynamic), True


def options(w: Writer, schema: Any, attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as fields of the option table; private ones (``@...``) left out."""
    out: dict[str, Any] = {}
    table = schema.extra["options"]
    for name, value in attrs.items():
        if name[0] == "@":
            continue
        a = schema.attrs.get(name)
        if a is None or table is None:
            raise Unsupported(f"{schema.op} has no option {name}")
        if name == "init_subgraph_index":  # the same initialisation asked for twice is one subgraph
            key = identity(value)
            if key not in w.blocks:
                w.blocks[key] = block(w, value)
            value = w.blocks[key]
        elif isinstance(value, Graph):
            value = block(w, value)
        elif a.type == "graphs":
            value = [block(w, g) for g in value]
        elif a.type == "dtype":
            value = TYPES[value if isinstance(value, str) else value.name]
        elif a.enum is not None:
            value = enum_number(name, a.enum, value)
        out[name] = value
    return out


def enum_number(name: str, members: tuple[str, ...], value: Any) -> int:
    """Number of an enum member; one past the end for a name that does not exist (a backend must refuse it)."""
    numbers = _numbers_of(members)
    if numbers is None:
        raise Unsupported(f"{name}: unknown enum {members}")
    return numbers.get(value, max(numbers.values()) + 1)


@cache
def _numbers_of(members: tuple[str, ...]) -> dict[str, int] | None:
    return next((numbers for numbers in fb.ENUMS.values() if tuple(numbers) == members), None)


def block(w: Writer, graph: Graph) -> int:
    """Write a graph as a further subgraph; its index."""
    index = len(w.subgraphs)
    _subgraph(w, f"block{index}", graph)
    return index


def _declared(t: Any, schema: Any, node: Any, types: dict[str, DType], i: int) -> tuple[DType, Any, Any]:
    """Type, shape and quantisation of a node's output: as declared, else by the input that shares its type name."""
    if t is not None:
        d = t["dtype"]
        return (BY_NAME[d] if isinstance(d, str) else d), t.get("shape"), t.get("quant")
    slots = schema.outputs
    slot = slots[min(i, len(slots) - 1)]
    for s in schema.inputs:
        v = node.inputs.get(s.name)
        v = v[0] if isinstance(v, list) else v
        if s.type == slot.type and v is not None:
            return types[v], None, None
    return schema.dtypes(slot.type)[0], None, None


def nodes(
    w: Writer, g: dict[str, Any], graph: Graph, known: dict[str, int], types: dict[str, DType], prefix: str
) -> None:
    """Write the constants and nodes of a graph; ``known`` gains the tensors of all its values."""
    declared = graph.meta.get("tensors", {})
    for name, array in graph.consts.items():
        d = of(array)
        quant = declared.get(name, {}).get("quant")
        known[name] = w.tensor(g, prefix + name, TYPES[d.name], array.shape, quant, pack(array, d))
        types[name] = d
    for node in graph.nodes:
        schema = newest(node.op, node.attrs.get("@domain", ""))
        ins = []
        for slot in schema.inputs:
            v = node.inputs.get(slot.name)
            ins.extend([known[n] for n in v] if isinstance(v, list) else [-1 if v is None else known[v]])
        while ins and ins[-1] == -1:
            ins.pop()
        outs = []
        for i, name in enumerate(node.outputs):
            t = declared.get(name)
            if t is not None and t["dtype"] == "resource":
                known[name] = w.tensor(g, prefix + name, RESOURCE, ())
                outs.append(known[name])
                continue
            d, shape, quant = _declared(t, schema, node, types, i)
            types[name] = d
            known[name] = w.tensor(g, prefix + name, TYPES[d.name], shape, quant)
            outs.append(known[name])
        w.operator(
            g,
            schema,
            number_of(node.version or schema.version),
            ins,
            outs,
            node.attrs,
        )
