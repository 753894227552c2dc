"""A fast encoder of the messages of ``onnx.proto`` (IR specification of onnx, field numbers as there).

Protobuf objects cost more to build and serialise than a small op costs to run, so messages are written as bytes at
once: names, types and attributes that recur are encoded once and kept.  Every function returns the body of one message
(without its own tag and length); ``sub`` puts it into a parent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of

# TensorProto.DataType
CODES: dict[str, int] = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "str": 8, "bool": 9, "f16": 10, "f64": 11,
    "u32": 12, "u64": 13, "c64": 14, "c128": 15, "bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19,
    "f8e5m2fnuz": 20, "u4": 21, "i4": 22, "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 26,
    "f6e2m3": 27, "f6e3m2": 28,
}  # fmt: skip
DTYPES: dict[int, DType] = {code: BY_NAME[name] for name, code in CODES.items()}

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS, SPARSE, _, TYPE = range(1, 14)

Dim = int | str | None


@dataclass(frozen=True, slots=True)
class Type:
    """A TypeProto.  kind: tensor, seq, optional, map, sparse.  dtype: element (tensor, sparse) or key (map) type,
    None where
    a file leaves it open.  shape: None where the rank is unknown; a dim is an int, a symbol or None.  elem: what the
    container holds."""

    kind: str
    dtype: DType | None = None
    shape: tuple[Dim, ...] | None = None
    elem: Type | None = None


@dataclass(frozen=True, slots=True)
class Sparse:
    """A SparseTensorProto: values [nnz], indices [nnz] or [nnz, rank], dims of the dense tensor."""

    values: np.ndarray
    indices: np.ndarray
    dims: tuple[int, ...]


def _varint(n: int) -> bytes:
    if n < 0:
        n += 1 << 64
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


_SMALL = [_varint(i) for i in [*range(1 << 12), *range(-512, 0)]]  # the negative ones are found from the end


def varint(n: int) -> bytes:
    """Base-128 bytes; negative numbers as 64-bit two's complement."""
    return _SMALL[n] if -512 <= n < 4096 else _varint(n)


def sub(tag: bytes, body: bytes) -> bytes:
    """A length-delimited field."""
    n = len(body)
    return tag + (_SMALL[n] if n < 4096 else _varint(n)) + body


_SEVENS = np.arange(0, 64, 7, dtype=np.uint64)


def varints(numbers: np.ndarray) -> bytes:
    """Integers of a vector, packed."""
    if numbers.size < 32:
        return b"".join([_SMALL[n] if -512 <= n < 4096 else _varint(n) for n in numbers.tolist()])
    u = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64).view(np.uint64)
    groups = u[:, None] >> _SEVENS
    keep = groups != 0
    keep[:, 0] = True
    out = (groups & np.uint64(127)).astype(np.uint8)
    out[:, :-1][keep[:, 1:]] |= np.uint8(128)  # more to come
    return out[keep].tobytes()


def subs(tag: bytes, bodies: Iterable[bytes]) -> bytes:
    """Many fields with one tag."""
    return b"".join([tag + (_SMALL[len(b)] if len(b) < 4096 else _varint(len(b))) + b for b in bodies])


def tag(number: int, wire: int = 2) -> bytes:
    return varint(number << 3 | wire)


_TEXT: dict[str, bytes] = {}


def text(s: str) -> bytes:
    """Length and UTF-8 of a string, kept: names recur in every model.  Lone surrogates stand for raw bytes."""
    b = _TEXT.get(s)
    if b is None:
        raw = s.encode("utf-8", "surrogateescape")
        b = varint(len(raw)) + raw
        if len(_TEXT) < 65536:
            _TEXT[s] = b
    return b


# -- attributes --------------------------------------------------------------------------------------------------------

_KIND = {k: b"\xa0\x01" + varint(k) for k in range(1, 14)}
_pack_f = struct.Struct("<f").pack
_SCALARS: dict[Any, bytes] = {}
KINDS = {
    "float": FLOAT, "int": INT, "str": STRING, "tensor": TENSOR, "graph": GRAPH, "floats": FLOATS, "ints": INTS,
    "strs": STRINGS, "tensors": TENSORS, "graphs": GRAPHS, "dtype": INT, "bool": INT, "sparse_tensor": SPARSE,
    "type_proto": TYPE,
}  # fmt: skip


def attribute(name: str, value: Any, kind: int, *, raw: bool = True) -> bytes:
    """AttributeProto body.  Graphs come as encoded GraphProto bytes; a DType as its number."""
    if kind <= 3:
        key = (name, value, kind)
        if value == 0 and kind == FLOAT:  # 0.0 == -0.0 as a key
            key = (name, str(value), kind)
        hit = _SCALARS.get(key)
        if hit is not None:
            return hit
    elif kind == INTS:
        key = (name, tuple(value), kind)
        hit = _SCALARS.get(key)
        if hit is not None:
            return hit
    head = b"\n" + text(name)
    if kind == INT:
        body = b"\x18" + varint(CODES[value.name] if isinstance(value, DType) else int(value))
    elif kind == FLOAT:
        body = b"\x15" + _pack_f(value)
    elif kind == STRING:
        body = b"\x22" + text(value)
    elif kind == INTS:
        body = b"".join([b"\x40" + (_SMALL[v] if -512 <= v < 4096 else _varint(v)) for v in map(int, value)])
    elif kind == FLOATS:
        body = b"".join([b"\x3d" + _pack_f(v) for v in value])
    elif kind == STRINGS:
        body = b"".join([b"\x4a" + text(v) for v in value])
    elif kind == TENSOR:
        body = sub(b"\x2a", tensor("", value, raw=raw))
    elif kind == GRAPH:
        body = sub(b"\x32", value)
    elif kind == TENSORS:
        body = b"".join([sub(b"\x52", tensor("", v, raw=raw)) for v in value])
    elif kind == GRAPHS:
        body = b"".join([sub(b"\x5a", v) for v in value])
    elif kind == SPARSE:
        body = sub(tag(22), sparse(value))
    else:
        body = sub(tag(14), type_proto(value))
    out = head + body + _KIND[kind]
    if (kind <= 3 or kind == INTS) and len(_SCALARS) < 65536:
        _SCALARS[key] = out
    return out


def ref_attribute(name: str, of_function: str, kind: int) -> bytes:
    """An attribute inside a function body that takes the value of the function's own attribute."""
    return b"\n" + text(name) + sub(tag(21), of_function.encode()) + _KIND[kind]


# -- tensors and types -------------------------------------------------------------------------------------------------

def pack(array: np.ndarray, bits: int) -> bytes:
    """raw_data of a type below a byte: low bits first, the last byte padded with zeros."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    if bits == 6:  # elements run over the ends of bytes
        six = np.unpackbits(flat[:, None], axis=1, count=6, bitorder="little")
        return np.packbits(six, bitorder="little").tobytes()
    per = 8 // bits
    if flat.size % per:
        flat = np.concatenate([flat, np.zeros(per - flat.size % per, np.uint8)])
    out = np.zeros(flat.size // per, np.uint8)
    for i in range(per):
        out |= (flat[i::per] << np.uint8(i * bits)).astype(np.uint8)
    return out.tobytes()


def tensor(name: str, array: np.ndarray, *, raw: bool = True) -> bytes:
    """TensorProto body.  raw: elements in ``raw_data``; else in the typed field the IR names for the type."""
    d = of(array)
    parts = [b"\x08" + varint(n) for n in array.shape]
    parts.append(b"\x10" + varint(CODES[d.name]))
    if name:
        parts.append(b"\x42" + text(name))
    if d.kind == "s":
        parts += [b"\x32" + text(s if isinstance(s, str) else s.decode("utf-8", "surrogateescape"))
                  for s in array.reshape(-1).tolist()]  # fmt: skip
    elif raw:
        parts.append(sub(b"\x4a", pack(array, d.bits) if d.bits < 8 else array.tobytes()))
    else:
        parts.append(_typed(d, array))
    return b"".join(parts)


def _typed(d: DType, array: np.ndarray) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1)
    if d.name in ("f32", "c64"):
        return sub(b"\x22", flat.tobytes())
    if d.name in ("f64", "c128"):
        return sub(b"\x52", flat.tobytes())
    if d.name == "i64":
        return sub(b"\x3a", varints(flat))
    if d.name in ("u64", "u32"):
        return sub(b"\x5a", varints(flat))
    if d.bits < 8 and d.bits != 6:  # of these an entry holds a byte, of 6 bits one element
        numbers = np.frombuffer(pack(array, d.bits), np.uint8)
    elif d.kind == "f":
        numbers = flat.view(np.uint16 if d.bits == 16 else np.uint8)
    else:
        numbers = flat
    return sub(b"\x2a", varints(numbers))


def sparse(value: Sparse) -> bytes:
    """SparseTensorProto body."""
    return sub(b"\x0a", tensor("", value.values)) + sub(b"\x12", tensor("", value.indices)) + b"".join(
        [b"\x18" + varint(n) for n in value.dims])  # fmt: skip


_SHAPES: dict[tuple[int, tuple[Dim, ...] | None], bytes] = {}


def tensor_type(code: int, shape: tuple[Dim, ...] | None) -> bytes:
    """TypeProto body of a tensor; kept, since few types make up most models."""
    hit = _SHAPES.get((code, shape))
    if hit is None:
        hit = sub(b"\x0a", _tensor_type(code, shape))
        if len(_SHAPES) < 65536:
            _SHAPES[code, shape] = hit
    return hit


def _tensor_type(code: int, shape: tuple[Dim, ...] | None) -> bytes:
    body = b"\x08" + varint(code) if code else b""
    if shape is not None:
        dims = []
        for n in shape:
            if n is None:
                dims.append(b"\x0a\x00")
            else:
                dims.append(sub(b"\x0a", b"\x12" + text(n) if isinstance(n, str) else b"\x08" + varint(n)))
        body += sub(b"\x12", b"".join(dims))
    return body


def type_proto(t: Type) -> bytes:
    """TypeProto body of any type."""
    code = CODES[t.dtype.name] if t.dtype else 0
    if t.kind == "tensor":
        return tensor_type(code, t.shape)
    if t.kind == "sparse":
        return sub(b"\x42", _tensor_type(code, t.shape))
    assert t.elem is not None
    inner = type_proto(t.elem)
    if t.kind == "seq":
        return sub(b"\x22", sub(b"\x0a", inner))
    if t.kind == "optional":
        return sub(b"\x4a", sub(b"\x0a", inner))
    return sub(b"\x2a", b"\x08" + varint(code) + sub(b"\x12", inner))


def parse_type(name: str, shape: tuple[Dim, ...] | None = None) -> Type:
    """``seq(f32)`` in our notation to a Type; ``shape`` is that of the innermost tensor."""
    head, _, rest = name.partition("(")
    if not rest:
        return Type("tensor", BY_NAME[head], shape)
    if head == "map":
        key, _, value = rest[:-1].partition(",")
        return Type("map", BY_NAME[key], None, parse_type(value, ()))
    return Type(head, None, None, parse_type(rest[:-1], shape))


# -- graphs ------------------------------------------------------------------------------------------------------------

def node(op: str, inputs: Iterable[str], outputs: Iterable[str], attrs: Sequence[bytes] = (), domain: str = "",
         name: str = "") -> bytes:  # fmt: skip
    """NodeProto body.  An absent optional input is ``""``."""
    known = _TEXT.get
    parts = [b"\n" + (known(s) or text(s)) for s in inputs]
    parts += [b"\x12" + (known(s) or text(s)) for s in outputs]
    if name:
        parts.append(b"\x1a" + (known(name) or text(name)))
    parts.append(b"\x22" + (known(op) or text(op)))
    if attrs:
        parts.append(subs(b"\x2a", attrs))
    if domain:
        parts.append(b"\x3a" + text(domain))
    return b"".join(parts)


def value_info(name: str, type_body: bytes | None) -> bytes:
    """ValueInfoProto body; without a type where it is left to inference."""
    head = b"\n" + (_TEXT.get(name) or text(name))
    if type_body is None:
        return head
    n = len(type_body)
    return head + b"\x12" + (_SMALL[n] if n < 4096 else _varint(n)) + type_body


def graph(name: str, nodes: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes],
          initializers: Iterable[bytes] = ()) -> bytes:  # fmt: skip
    """GraphProto body of encoded parts."""
    head = b"\x12" + text(name)
    return b"".join([subs(b"\x0a", nodes), head, subs(b"\x2a", initializers), subs(b"\x5a", inputs),
                     subs(b"\x62", outputs)])  # fmt: skip


def function(domain: str, name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Iterable[bytes],
             opsets: dict[str, int], attributes: Sequence[str] = ()) -> bytes:  # fmt: skip
    """FunctionProto body."""
    parts = [b"\n" + text(name)]
    parts += [sub(tag(4), s.encode()) for s in inputs] + [sub(tag(5), s.encode()) for s in outputs]
    parts += [sub(tag(6), s.encode()) for s in attributes] + [sub(tag(7), n) for n in nodes]
    parts += [sub(tag(9), opset_id(d, v)) for d, v in opsets.items()]
    parts.append(sub(tag(10), domain.encode()))
    return b"".join(parts)


def opset_id(domain: str, version: int) -> bytes:
    return (b"\n" + text(domain) if domain else b"") + b"\x10" + varint(version)


def model(graph_body: bytes, opsets: dict[str, int], ir: int, functions: Iterable[bytes] = ()) -> bytes:
    """A whole ModelProto."""
    parts = [b"\x08" + varint(ir), sub(b"\x12", b"opconform"), sub(b"\x3a", graph_body)]
    parts += [sub(b"\x42", opset_id(d, v)) for d, v in opsets.items()]
    parts += [sub(tag(25), f) for f in functions]
    return b"".join(parts)
