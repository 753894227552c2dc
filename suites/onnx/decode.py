"""Read the bytes of any ONNX model into plain objects, without the ``onnx`` package.

Tensors become NumPy arrays (views into the file where the layout allows), attributes plain Python values.  Raises
FormatError where the bytes are no such message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.errors import FormatError
from suites.onnx.proto import DTYPES, Dim, Sparse, Type


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of an attribute inside a function body: that of the function's own attribute ``name``."""

    name: str


@dataclass(slots=True)
class NodeProto:
    op: str = ""
    domain: str = ""
    name: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GraphProto:
    name: str = ""
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[tuple[str, Type | None]] = field(default_factory=list)
    outputs: list[tuple[str, Type | None]] = field(default_factory=list)
    initializers: dict[str, np.ndarray | Sparse] = field(default_factory=dict)
    value_infos: list[tuple[str, Type | None]] = field(default_factory=list)


@dataclass(slots=True)
class FunctionProto:
    name: str = ""
    domain: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    opsets: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ModelProto:
    ir: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    graph: GraphProto = field(default_factory=GraphProto)
    functions: list[FunctionProto] = field(default_factory=list)


class Reader:
    """Decodes one model.  base: folder of external tensor data, if any."""

    def __init__(self, data: bytes | memoryview, base: Path | None = None) -> None:
        self.buf = memoryview(data)
        self.base = base

    def varint(self, at: int) -> tuple[int, int]:
        buf = self.buf
        b = buf[at]
        if b < 128:
            return b, at + 1
        out, shift = b & 127, 7
        while True:
            at += 1
            b = buf[at]
            out |= (b & 127) << shift
            if b < 128:
                return out, at + 1
            shift += 7

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int, Any]]:
        """(field number, wire type, value): an int, 4 or 8 bytes, or (start, end) of a delimited field."""
        try:
            while at < end:
                key, at = self.varint(at)
                wire = key & 7
                if wire == 2:
                    n, at = self.varint(at)
                    if at + n > end:
                        raise FormatError(f"onnx: field of {n} bytes at {at} runs past its message")
                    yield key >> 3, 2, (at, at + n)
                    at += n
                elif wire == 0:
                    v, at = self.varint(at)
                    yield key >> 3, 0, v
                elif wire == 5:
                    yield key >> 3, 5, self.buf[at : at + 4]
                    at += 4
                elif wire == 1:
                    yield key >> 3, 1, self.buf[at : at + 8]
                    at += 8
                else:
                    raise FormatError(f"onnx: wire type {wire} at byte {at}")
        except IndexError:
            raise FormatError("onnx: the file ends inside a message") from None

    def text(self, span: tuple[int, int]) -> str:
        return bytes(self.buf[span[0] : span[1]]).decode("utf-8", "surrogateescape")

    def ints(self, wire: int, v: Any) -> list[int]:
        """One or a packed run of varints, as signed 64-bit."""
        if wire == 0:
            return [_signed(v)]
        at, end = v
        out = []
        while at < end:
            n, at = self.varint(at)
            out.append(_signed(n))
        return out

    def floats(self, wire: int, v: Any) -> list[float]:
        if wire == 5:
            return [struct.unpack("<f", v)[0]]
        return np.frombuffer(self.buf[v[0] : v[1]], "<f4").tolist()

    # -- messages

    def model(self) -> ModelProto:
        m = ModelProto()
        for n, _, v in self.fields(0, len(self.buf)):
            if n == 1:
                m.ir = v
            elif n == 7:
                m.graph = self.graph(*v)
            elif n == 8:
                m.opsets.update([self.opset(*v)])
            elif n == 25:
                m.functions.append(self.function(*v))
        if not m.opsets and not m.graph.nodes:
            raise FormatError("onnx: neither an opset import nor a node found")
        m.opsets.setdefault("", 1)
        return m

    def opset(self, at: int, end: int) -> tuple[str, int]:
        domain, version = "", 1
        for n, _, v in self.fields(at, end):
            if n == 1:
                domain = self.text(v)
            elif n == 2:
                version = _signed(v)
        return ("" if domain == "ai.onnx" else domain), version

    def graph(self, at: int, end: int) -> GraphProto:
        g = GraphProto()
        for n, _, v in self.fields(at, end):
            if n == 1:
                g.nodes.append(self.node(*v))
            elif n == 2:
                g.name = self.text(v)
            elif n == 5:
                name, array = self.tensor(*v)
                g.initializers[name] = array
            elif n == 15:
                name, s = self.sparse(*v)
                g.initializers[name] = s
            elif n == 11:
                g.inputs.append(self.value_info(*v))
            elif n == 12:
                g.outputs.append(self.value_info(*v))
            elif n == 13:
                g.value_infos.append(self.value_info(*v))
        return g

    def function(self, at: int, end: int) -> FunctionProto:
        f = FunctionProto()
        for n, _, v in self.fields(at, end):
            if n == 1:
                f.name = self.text(v)
            elif n == 4:
                f.inputs.append(self.text(v))
            elif n == 5:
                f.outputs.append(self.text(v))
            elif n == 6:
                f.attributes.append(self.text(v))
            elif n == 11:
                f.defaults.update([self.attribute(*v)])
            elif n == 7:
                f.nodes.append(self.node(*v))
            elif n == 9:
                f.opsets.update([self.opset(*v)])
            elif n == 10:
                f.domain = self.text(v)
            elif n == 13:
                f.overload = self.text(v)
        return f

    def node(self, at: int, end: int) -> NodeProto:
        node = NodeProto()
        for n, _, v in self.fields(at, end):
            if n == 1:
                node.inputs.append(self.text(v))
            elif n == 2:
                node.outputs.append(self.text(v))
            elif n == 3:
                node.name = self.text(v)
            elif n == 4:
                node.op = self.text(v)
            elif n == 5:
                node.attrs.update([self.attribute(*v)])
            elif n == 7:
                node.domain = self.text(v)
            elif n == 8:
                node.overload = self.text(v)
        if node.domain == "ai.onnx":
            node.domain = ""
        return node

    def attribute(self, at: int, end: int) -> tuple[str, Any]:
        name, kind, value = "", 0, None
        many: dict[int, list[Any]] = {6: [], 7: [], 8: [], 9: [], 10: [], 12: []}
        seen = 0
        for n, wire, v in self.fields(at, end):
            if n == 1:
                name = self.text(v)
            elif n == 20:
                kind = v
            elif n == 21:
                return name or self._attr_name(at, end), Ref(self.text(v))
            elif n == 2:
                value, seen = struct.unpack("<f", v)[0], 1
            elif n == 3:
                value, seen = _signed(v), 2
            elif n == 4:
                value, seen = self.text(v), 3
            elif n == 5:
                value, seen = self.tensor(*v)[1], 4
            elif n == 6:
                value, seen = self.graph(*v), 5
            elif n == 7:
                many[6] += self.floats(wire, v)
            elif n == 8:
                many[7] += self.ints(wire, v)
            elif n == 9:
                many[8].append(self.text(v))
            elif n == 10:
                many[9].append(self.tensor(*v)[1])
            elif n == 11:
                many[10].append(self.graph(*v))
            elif n == 14:
                value, seen = self.type(*v), 13
            elif n == 22:
                value, seen = self.sparse(*v)[1], 11
            elif n == 23:
                many[12].append(self.sparse(*v)[1])
        kind = kind or seen or next((k for k, x in many.items() if x), 7)
        if kind in many:
            return name, many[kind]
        if value is None:  # proto2 writers may drop a zero
            value = {1: 0.0, 2: 0, 3: ""}.get(kind)
        return name, value

    def _attr_name(self, at: int, end: int) -> str:
        return next((self.text(v) for n, _, v in self.fields(at, end) if n == 1), "")

    def value_info(self, at: int, end: int) -> tuple[str, Type | None]:
        name, t = "", None
        for n, _, v in self.fields(at, end):
            if n == 1:
                name = self.text(v)
            elif n == 2:
                t = self.type(*v)
        return name, t

    def type(self, at: int, end: int) -> Type | None:
        for n, _, v in self.fields(at, end):
            if n in (1, 8):
                code, shape = 0, None
                for k, _, w in self.fields(*v):
                    if k == 1:
                        code = w
                    elif k == 2:
                        shape = tuple(self.dim(*x) for j, _, x in self.fields(*w) if j == 1)
                return Type("tensor" if n == 1 else "sparse", DTYPES.get(code), shape)
            if n in (4, 9):
                elem = next((self.type(*w) for k, _, w in self.fields(*v) if k == 1), None)
                return Type("seq" if n == 4 else "optional", None, None, elem)
            if n == 5:
                key, elem = 0, None
                for k, _, w in self.fields(*v):
                    if k == 1:
                        key = w
                    elif k == 2:
                        elem = self.type(*w)
                return Type("map", DTYPES.get(key), None, elem)
        return None

    def dim(self, at: int, end: int) -> Dim:
        for n, _, v in self.fields(at, end):
            if n == 1:
                return _signed(v)
            if n == 2:
                return self.text(v)
        return None

    def sparse(self, at: int, end: int) -> tuple[str, Sparse]:
        name, values, indices, dims = "", None, None, []
        for n, wire, v in self.fields(at, end):
            if n == 1:
                name, values = self.tensor(*v)
            elif n == 2:
                indices = self.tensor(*v)[1]
            elif n == 3:
                dims += self.ints(wire, v)
        if values is None or indices is None:
            raise FormatError("onnx: sparse tensor without values or indices")
        return name, Sparse(values, indices, tuple(dims))

    def tensor(self, at: int, end: int) -> tuple[str, np.ndarray]:
        dims: list[int] = []
        name, code, raw = "", 0, None
        external: dict[str, str] = {}
        typed: list[Any] = []
        for n, wire, v in self.fields(at, end):
            if n == 1:
                dims += self.ints(wire, v)
            elif n == 2:
                code = v
            elif n == 4:
                typed.append(np.frombuffer(v if wire == 5 else self.buf[v[0] : v[1]], "<f4"))
            elif n == 10:
                typed.append(np.frombuffer(v if wire == 1 else self.buf[v[0] : v[1]], "<f8"))
            elif n in (5, 7, 11):
                typed.append(np.array(self.ints(wire, v), np.int64))
            elif n == 6:
                typed.append(self.text(v))
            elif n == 8:
                name = self.text(v)
            elif n == 9:
                raw = self.buf[v[0] : v[1]]
            elif n == 13:
                pair = {k: self.text(w) for k, _, w in self.fields(*v)}
                external[pair.get(1, "")] = pair.get(2, "")
        d = DTYPES.get(code)
        if d is None:
            raise FormatError(f"onnx: tensor {name!r} has element type {code}, which has no dtype of ours")
        if external:
            raw = self._external(name, external)
        return name, _array(name, d, tuple(dims), raw, typed)

    def _external(self, name: str, where: dict[str, str]) -> memoryview:
        if self.base is None:
            raise FormatError(f"onnx: tensor {name!r} lies in {where.get('location')!r}: give the model as a path")
        path = (self.base / where["location"]).resolve()
        if self.base.resolve() not in path.parents:
            raise FormatError(f"onnx: tensor {name!r} lies outside the model's folder")
        data = memoryview(path.read_bytes())[int(where.get("offset", 0)) :]
        return data[: int(where["length"])] if "length" in where else data


def unpack(raw: Any, bits: int, size: int, signed: bool) -> np.ndarray:
    """Elements of ``bits`` bits, low first, as uint8 (or sign-extended int8)."""
    data = np.frombuffer(raw, np.uint8)
    if bits == 6:  # elements run over the ends of bytes
        rows = np.unpackbits(data, count=6 * size, bitorder="little").reshape(size, 6)
        return np.packbits(rows, axis=1, bitorder="little")[:, 0]
    per = 8 // bits
    out: np.ndarray = np.empty(data.size * per, np.uint8)
    for i in range(per):
        out[i::per] = (data >> np.uint8(i * bits)) & ((1 << bits) - 1)
    out = out[:size]
    if signed:
        shift = np.uint8(8 - bits)
        return ((out << shift).view(np.int8) >> shift.view(np.int8)).view(np.int8)
    return out


def _array(name: str, d: Any, dims: tuple[int, ...], raw: Any, typed: list[Any]) -> np.ndarray:
    size = int(np.prod(dims, dtype=object)) if dims else 1
    try:
        if d.kind == "s":
            return np.array(typed, object).reshape(dims)
        if raw is None:
            flat = np.concatenate(typed) if typed else np.zeros(0, np.int64)
            if d.kind == "c":
                return flat.astype(flat.dtype if flat.dtype.kind == "f" else np.float32).view(d.np).reshape(dims)
            if d.kind == "f" and d.bits <= 16 and flat.dtype.kind == "i":
                if d.bits < 8 and d.bits != 6:
                    raw = flat.astype(np.uint8).tobytes()
                else:
                    return flat.astype(np.uint16 if d.bits == 16 else np.uint8).view(d.np).reshape(dims)
            elif d.bits < 8:
                raw = flat.astype(np.uint8).tobytes()
            else:
                return flat.astype(d.np, copy=False).reshape(dims)
        if d.bits < 8:
            small = unpack(raw, d.bits, size, d.kind == "i")
            # ml_dtypes keeps a float4 as its code, an int4 as its value
            return (small.view(d.np) if d.kind == "f" else small.astype(d.np)).reshape(dims)
        return np.frombuffer(raw, d.np).reshape(dims)
    except ValueError as e:
        raise FormatError(f"onnx: tensor {name!r} of {d} {dims}: {e}") from None


def _signed(n: int) -> int:
    return n - (1 << 64) if n >> 63 else n


def decode(data: bytes | memoryview, base: Path | None = None) -> ModelProto:
    """The model in ``data``.  base: folder in which external tensor data lies."""
    return Reader(data, base).model()


def decode_tensor(data: bytes) -> np.ndarray:
    """A stand-alone TensorProto."""
    return Reader(data).tensor(0, len(data))[1]
