"""TFLite bytes or path -> Graph, for the whole-model interpreter and for looking at a model."""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from harness.core.dtypes import DType
from harness.core.errors import FormatError, Unsupported, reading
from harness.core.instance import Arg, Graph, Node
from suites.tflite import custom, schemas, sparsity
from suites.tflite import flatbuffers as fb
from suites.tflite.builder import RESOURCE
from suites.tflite.checks import DTYPES, check_model, member, op_of, options_of, quant_of

_BASIC = fb.ENUMS["LSTMKernelType"]["BASIC"]
_SUB_BYTE = {"i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "i2": ml_dtypes.int2}


def unpack(data: np.ndarray, d: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Inverse of ``builder.pack``."""
    raw = data.tobytes()
    if d.kind == "s":
        n = struct.unpack_from("<i", raw)[0] if len(raw) >= 4 else -1
        if n != int(np.prod(shape, dtype=np.int64)) or len(raw) < 4 * (n + 2):
            raise FormatError(
                f"expected {list(shape)} strings: their number, offsets, characters; got {len(raw)} bytes"
            )
        at = struct.unpack_from(f"<{n + 1}i", raw, 4)
        out = np.empty(n, object)
        out[:] = [raw[a:b] for a, b in pairwise(at)]
        return out.reshape(shape)
    n = int(np.prod(shape, dtype=np.int64))
    if d.bits < 8 and d.kind in "iu":
        per = 8 // d.bits
        flat = np.frombuffer(raw, np.uint8)
        flat = (
            np.stack([(flat >> (k * d.bits)) & ((1 << d.bits) - 1) for k in range(per)], -1).ravel()[:n].astype(np.int8)
        )
        if d.kind == "i":
            flat = flat - ((flat >> (d.bits - 1)) << d.bits)
        return flat.astype(_SUB_BYTE[d.name]).reshape(shape)
    return np.frombuffer(raw, d.np, n).reshape(shape)


def parse(data: Any) -> Graph:
    """The main subgraph, blocks of control flow inside its nodes' attributes.  data: bytes or a path.

    Raises FormatError for bytes that are no TFLite file or use what the schema does not know.
    """
    with reading("TFLite file"):
        if isinstance(data, (str, os.PathLike)):
            data = Path(data).read_bytes()
        try:
            model = fb.decode("Model", data)
        except ValueError as e:
            raise FormatError(str(e)) from None
        check_model(model, len(data))
        return _Reader(model, data).graph(0, {})


class _Reader:
    def __init__(self, model: dict[str, Any], data: Any) -> None:
        self.model = model
        self.data = memoryview(data)
        self.codes = [(op_of(c), c.get("version", 1)) for c in model.get("operator_codes", [])]
        self.inside: set[int] = set()  # subgraphs that are being read: the main one and the blocks around this one

    def buffer(self, index: int) -> np.ndarray | None:
        b = self.model["buffers"][index]
        if "data" in b and len(b["data"]):
            return b["data"]
        if b.get("offset", 0) > 1:  # data kept behind the flatbuffer
            return np.frombuffer(self.data, np.uint8, b["size"], b["offset"])
        return None

    def graph(self, index: int, seen: dict[int, Graph]) -> Graph:
        if index in self.inside:
            raise FormatError(f"subgraphs[{index}] calls itself: expected blocks that end")
        if index in seen:
            return seen[index]
        self.inside.add(index)
        g = self.model["subgraphs"][index]
        out = seen[index] = Graph()
        names: list[str] = []
        used: set[str] = set()
        tensors: dict[str, Any] = {}
        for i, t in enumerate(g.get("tensors", [])):
            name = t.get("name") or f"t{i}"
            if name in used:
                name = f"{name}#{i}"
            used.add(name)
            names.append(name)
            code = t.get("type", 0)
            if code == RESOURCE:
                continue
            d = DTYPES[code]
            shape = tuple(int(n) for n in t.get("shape", ()))
            free = tuple(k for k, n in enumerate(t.get("shape_signature", ())) if n < 0)
            quant = quant_of(t.get("quantization", {})) if d.kind in "iu" else None  # of floats it says nothing
            tensors[name] = {"dtype": d, "shape": shape, "quant": quant, "dynamic": free}
            data = self.buffer(t.get("buffer", 0))
            if data is not None and "sparsity" in t:
                stored = unpack(data, d, (len(data) // d.np.itemsize,))
                out.consts[name] = sparsity.decode(t["sparsity"], stored, shape)
            elif data is not None:
                out.consts[name] = unpack(data, d, shape)
            elif t.get("is_variable"):  # real zero
                zero = (tensors[name]["quant"] or {"zero_point": [0]})["zero_point"][0]
                out.consts[name] = np.full(shape, zero, d.np)
        made = {int(i) for n in (g, *g.get("operators", [])) for i in n.get("inputs" if n is g else "outputs", ())}
        for i, name in enumerate(names):  # no data, and nobody writes it: a constant, if no element is missing
            t = tensors.get(name)
            if t is not None and i not in made and name not in out.consts and 0 in t["shape"]:
                out.consts[name] = np.empty(t["shape"], t["dtype"].np)
        for i, t in enumerate(g.get("tensors", [])):
            details = t.get("quantization", {}).get("details", {})
            if details.get("block_size"):
                scales = out.consts[names[details["scales"]]].ravel().tolist()
                quant = {"scale": scales, "zero_point": [0] * len(scales), "axis": 0, "block": details["block_size"]}
                tensors[names[i]]["quant"] = quant
        out.meta = {"opset": 1, "tensors": tensors, "index": index}
        for i in g.get("inputs", []):
            if names[i] not in tensors:
                raise Unsupported(f"subgraphs[{index}]: input {names[i]}: expected numbers or text, got a resource")
            t = tensors[names[i]]
            out.inputs.append((names[i], Arg(t["dtype"], t["shape"], quant=t["quant"], dynamic=t["dynamic"])))
        calls: dict[str, tuple[Any, int]] = {}
        for raw in g.get("operators", []):
            node = self.node(raw, names, tensors, seen)
            self.carry(node, calls)
            out.nodes.append(node)
        out.outputs = [names[i] for i in g.get("outputs", [])]
        self.inside.discard(index)
        return out

    def node(self, raw: dict[str, Any], names: list[str], tensors: dict[str, Any], seen: dict[int, Graph]) -> Node:
        op, version = self.codes[raw.get("opcode_index", 0)]
        if op == "LSTM" and raw.get("builtin_options", {}).get("kernel_type", 0) == _BASIC:
            op = "BASIC_LSTM"
        given = [None if i < 0 else names[i] for i in raw.get("inputs", ())]
        rows = schemas.rows(op)
        slots = rows[-1].inputs
        inputs: dict[str, Any] = {}
        at = 0
        for k, s in enumerate(slots):
            if s.variadic:
                end = len(given) - (len(slots) - k - 1)
                inputs[s.name] = given[at:end]
                at = end
            else:
                inputs[s.name] = given[at] if at < len(given) else None
                at += 1
        attrs = self.attributes(rows[-1], raw, seen)
        domain = domain_of(inputs, tensors, rows)
        if domain:
            attrs["@domain"] = domain
        if len(raw.get("intermediates", ())):
            attrs["@intermediates"] = [tensors[names[i]]["quant"] for i in raw["intermediates"]]
        outs = [names[i] for i in raw.get("outputs", ())]
        if attrs.get("weights_format") == "SHUFFLED4x16INT8":
            outs = outs[:1]  # the other is a workspace
        return Node(op, inputs, outs, attrs, version)

    def carry(self, node: Node, calls: dict[str, tuple[Any, int]]) -> None:
        """Nodes on the same operands, states among them, are calls one after the other (``@calls``).  calls: by state
        the operands and options that it met, and how often.  Raises Unsupported where others meet a state that was left
        behind."""
        operands = node.op, list(node.inputs.items()), dict(node.attrs)
        for slot in schemas.rows(node.op)[-1].extra.get("states", ()):
            state = node.inputs.get(slot)
            if not isinstance(state, str):
                continue
            before, n = calls.get(state, (operands, 0))
            if before != operands:
                raise Unsupported(f"{node.op}: the state {state} is shared by nodes that differ")
            calls[state] = operands, n + 1
            if n:
                node.attrs["@calls"] = n + 1

    def attributes(self, schema: Any, raw: dict[str, Any], seen: dict[int, Graph]) -> dict[str, Any]:
        if "custom" in schema.extra:
            return custom.unpack(schema.op, bytes(raw.get("custom_options", b"")))
        fields = raw.get(options_of(schema), {})
        out: dict[str, Any] = {}
        for name, value in fields.items():
            a = schema.attrs.get(name)
            if a is None:
                continue
            if a.type == "graph":
                out[name] = self.graph(value, seen)
            elif a.type == "graphs":
                out[name] = [self.graph(int(v), seen) for v in value]
            elif a.type == "dtype":
                out[name] = DTYPES[value].name
            elif a.enum is not None:
                out[name] = member(a.enum, value)
            else:
                out[name] = value.tolist() if isinstance(value, np.ndarray) else value
        for name, a in schema.attrs.items():  # a default block index is an index, too
            if a.type == "graph" and name not in out and fields:
                out[name] = self.graph(a.default, seen)
        return out


def domain_of(inputs: dict[str, Any], tensors: dict[str, Any], rows: list[Any]) -> str:
    """ "quantised" where the main operand carries parameters and the op has such a form, "hybrid" where the weights
    do."""
    forms = {r.domain for r in rows}

    def quant(slot: str) -> Any:
        v = inputs.get(slot)
        v = v[0] if isinstance(v, list) and v else v
        return tensors.get(v, {}).get("quant") if isinstance(v, str) else None

    main = next((s.name for r in rows for s in r.inputs if s.type == "T"), None)
    if main is not None and "quantised" in forms and quant(main):
        return "quantised"
    if "hybrid" in forms and any(quant(s.name) for s in rows[0].inputs if s.type == "W"):
        return "hybrid"
    return "" if "" in forms else "quantised"
