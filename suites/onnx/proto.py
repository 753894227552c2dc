"""The messages of ``onnx.proto`` (IR specification of onnx, field numbers as there), as nested tuples.

Protobuf objects cost more to build and serialise than a small op costs to run.  Every function returns one message: its
field numbers and values in the order in which they are written (``native_ref/bind/protobuf.cc`` tells the forms);
``encode`` writes a whole model at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import native_ref as native
from harness.core.dtypes import BY_NAME, DType, of

# TensorProto.DataType
CODES: dict[str, int] = {
    "f32": 1,
    "u8": 2,
    "i8": 3,
    "u16": 4,
    "i16": 5,
    "i32": 6,
    "i64": 7,
    "str": 8,
    "bool": 9,
    "f16": 10,
    "f64": 11,
    "u32": 12,
    "u64": 13,
    "c64": 14,
    "c128": 15,
    "bf16": 16,
    "f8e4m3fn": 17,
    "f8e4m3fnuz": 18,
    "f8e5m2": 19,
    "f8e5m2fnuz": 20,
    "u4": 21,
    "i4": 22,
    "f4e2m1": 23,
    "f8e8m0": 24,
    "u2": 25,
    "i2": 26,
    "f6e2m3": 27,
    "f6e3m2": 28,
}
DTYPES: dict[int, DType] = {code: BY_NAME[name] for name, code in CODES.items()}

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS, SPARSE, _, TYPE = range(1, 14)

Dim = int | str | None
Message = tuple[Any, ...]

encode = native.protobuf


@dataclass(frozen=True, slots=True)
class Type:
    """A TypeProto.  kind: tensor, seq, optional, map, sparse.  dtype: element (tensor, sparse) or key (map) type, None
    where a file leaves it open.  shape: None where the rank is unknown; a dim is an int, a symbol or None.  elem: what
    the container holds."""

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


# -- attributes --------------------------------------------------------------------------------------------------------

KINDS = {
    "float": FLOAT,
    "int": INT,
    "str": STRING,
    "tensor": TENSOR,
    "graph": GRAPH,
    "floats": FLOATS,
    "ints": INTS,
    "strs": STRINGS,
    "tensors": TENSORS,
    "graphs": GRAPHS,
    "dtype": INT,
    "bool": INT,
    "sparse_tensor": SPARSE,
    "type_proto": TYPE,
}
_FIELDS = {STRING: 4, STRINGS: 9, GRAPH: 6, GRAPHS: 11}  # whose values are written as they are


def attribute(name: str, value: Any, kind: int, *, raw: bool = True) -> Message:
    """AttributeProto.  Graphs come as messages; a DType as its number."""
    if kind == INT:
        return (1, name, 3, CODES[value.name] if isinstance(value, DType) else int(value), 20, kind)
    if kind == INTS:
        return (1, name, 8, [int(v) for v in value], 20, kind)
    if kind == FLOAT:
        return (1, name, 2, float(value), 20, kind)
    if kind == FLOATS:
        return (1, name, 7, [float(v) for v in value], 20, kind)
    if kind == TENSOR:
        return (1, name, 5, tensor("", value, raw=raw), 20, kind)
    if kind == TENSORS:
        return (1, name, 10, [tensor("", v, raw=raw) for v in value], 20, kind)
    if kind == SPARSE:
        return (1, name, 22, sparse(value), 20, kind)
    if kind == TYPE:
        return (1, name, 14, type_proto(value), 20, kind)
    return (1, name, _FIELDS[kind], list(value) if kind in (STRINGS, GRAPHS) else value, 20, kind)


def ref_attribute(name: str, of_function: str, kind: int) -> Message:
    """An attribute inside a function body that takes the value of the function's own attribute."""
    return (1, name, 21, of_function, 20, kind)


# -- tensors and types -------------------------------------------------------------------------------------------------


def pack(array: np.ndarray, bits: int) -> bytes:
    """raw_data of a type below a byte: low bits first, the last byte padded with zeros."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    if bits == 6:  # elements run over the ends of bytes
        six = np.unpackbits(flat.astype(np.uint8)[:, None], axis=1, count=6, bitorder="little")
        return np.packbits(six, bitorder="little").tobytes()
    per = 8 // bits
    if flat.size % per:
        flat = np.concatenate([flat, np.zeros(per - flat.size % per, np.uint8)])
    out = np.zeros(flat.size // per, np.uint8)
    for i in range(per):
        out |= (flat[i::per] << np.uint8(i * bits)).astype(np.uint8)
    return out.tobytes()


def tensor(name: str, array: np.ndarray, *, raw: bool = True) -> Message:
    """TensorProto.  raw: elements in ``raw_data``; else in the typed field the IR names for the type."""
    d = of(array)
    field = 9
    data: Any = None
    if d.kind == "s":
        field = 6
        data = [s if isinstance(s, str) else s.decode("utf-8", "surrogateescape") for s in array.reshape(-1).tolist()]
    elif raw:
        data = pack(array, d.bits) if d.bits < 8 else array.tobytes()
    else:
        field, data = _typed(d, array)
    return (1, list(array.shape), 2, CODES[d.name], 8, name or None, field, data)


_TYPED = {"float_data": 4, "int32_data": 5, "int64_data": 7, "double_data": 10, "uint64_data": 11}


def typed_field(d: DType) -> str:
    """The field of TensorProto that holds elements of a number type where ``raw_data`` does not."""
    return _FIELD_OF.get(d.name, "int32_data")


_FIELD_OF = {
    "f32": "float_data",
    "c64": "float_data",
    "f64": "double_data",
    "c128": "double_data",
    "i64": "int64_data",
    "u64": "uint64_data",
    "u32": "uint64_data",
}


def _typed(d: DType, array: np.ndarray) -> tuple[int, bytes]:
    """Number and content of the field for elements of a type."""
    flat = np.ascontiguousarray(array).reshape(-1)
    field = typed_field(d)
    if field in ("float_data", "double_data"):
        return _TYPED[field], flat.tobytes()
    if field != "int32_data":
        return _TYPED[field], native.varints(flat.tolist())
    if d.bits < 8 and d.bits != 6:  # of these an entry holds a byte, of 6 bits one element
        numbers = np.frombuffer(pack(array, d.bits), np.uint8)
    elif d.kind == "f":
        numbers = flat.view(np.uint16 if d.bits == 16 else np.uint8)
    else:
        numbers = flat
    return _TYPED[field], native.varints(numbers.tolist())


def sparse(value: Sparse) -> Message:
    """SparseTensorProto."""
    return (1, tensor("", value.values), 2, tensor("", value.indices), 3, list(value.dims))


_KEPT = 1 << 10  # types of tensors at most, then all anew: new shapes come as long as a run lasts
_SHAPES: dict[tuple[int, tuple[Dim, ...] | None], bytes] = {}


def tensor_type(code: int, shape: tuple[Dim, ...] | None) -> bytes:
    """TypeProto of a tensor; kept, since few types make up most models."""
    hit = _SHAPES.get((code, shape))
    if hit is None:
        hit = encode((1, _tensor_type(code, shape)))
        if len(_SHAPES) >= _KEPT:
            _SHAPES.clear()
        _SHAPES[code, shape] = hit
    return hit


def _tensor_type(code: int, shape: tuple[Dim, ...] | None) -> Message:
    if shape is None:
        return (1, code or None)
    dims = [() if n is None else (2, n) if isinstance(n, str) else (1, n) for n in shape]
    return (1, code or None, 2, (1, dims))


def type_proto(t: Type) -> Message | bytes:
    """TypeProto of any type."""
    code = CODES[t.dtype.name] if t.dtype else 0
    if t.kind == "tensor":
        return tensor_type(code, t.shape)
    if t.kind == "sparse":
        return (8, _tensor_type(code, t.shape))
    assert t.elem is not None
    inner = type_proto(t.elem)
    if t.kind == "seq":
        return (4, (1, inner))
    if t.kind == "optional":
        return (9, (1, inner))
    return (5, (1, code, 2, inner))


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


def node(
    op: str, inputs: list[str], outputs: list[str], attrs: Sequence[Message] = (), domain: str = "", name: str = ""
) -> Message:
    """NodeProto.  An absent optional input is ``""``."""
    return (1, inputs, 2, outputs, 3, name or None, 4, op, 5, list(attrs), 7, domain or None)


def value_info(name: str, type_: Message | bytes | None) -> Message:
    """ValueInfoProto; without a type where it is left to inference."""
    return (1, name, 2, type_)


def graph(
    name: str, nodes: list[Message], inputs: list[Message], outputs: list[Message], initializers: Sequence[Message] = ()
) -> Message:
    """GraphProto."""
    return (1, nodes, 2, name, 5, list(initializers), 11, inputs, 12, outputs)


def function(
    domain: str,
    name: str,
    inputs: list[str],
    outputs: list[str],
    nodes: list[Message],
    opsets: dict[str, int],
    attributes: Sequence[str] = (),
) -> Message:
    """FunctionProto."""
    return (1, name, 4, inputs, 5, outputs, 6, list(attributes), 7, nodes, 9, _opset_ids(opsets), 10, domain)


def _opset_ids(opsets: dict[str, int]) -> list[Message]:
    return [(1, domain or None, 2, version) for domain, version in opsets.items()]


def model(graph: Message, opsets: dict[str, int], ir: int, functions: Sequence[Message] = ()) -> bytes:
    """A whole ModelProto, encoded."""
    return encode((1, ir, 2, "opconform", 7, graph, 8, _opset_ids(opsets), 25, list(functions)))
