"""FlatBuffers, both ways, over the tables of the TFLite schema.

A table is a dict of field name -> value.  A value is a number, a string (str or bytes), a list or array of numbers
(bytes for a vector of bytes), a dict (table) or a list of dicts.  ``tables.json`` says which slot and type a field has,
so writing a model needs no runtime.

The writer is native (``native_ref/bind/flatbuffers.cc``) and goes forward: it writes a table before what the table
points to, and patches the offsets afterwards.

    vtable  [u16 vtable size][u16 table size][u16 offset of slot 0] ...
    table   [i32 distance back to the vtable][fields, widest first, aligned to their size]
    vector  [u32 length][elements, aligned]

Source: the FlatBuffers internals document; schema file identifier TFL3.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import native_ref

IDENTIFIER = b"TFL3"
_FACTS = json.loads((Path(__file__).parent / "tables.json").read_text())
ENUMS: dict[str, dict[str, int]] = _FACTS["enums"]
SOURCE: str = _FACTS["source"]
_UNIONS: dict[str, dict[int, str]] = {u: {int(k): v for k, v in m.items()} for u, m in _FACTS["unions"].items()}
_SCALAR = {
    "bool": "?",
    "i8": "b",
    "u8": "B",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "u64": "Q",
    "f32": "f",
    "f64": "d",
}
_SIZE = {k: struct.calcsize(v) for k, v in _SCALAR.items()}
_NUMPY = {k: np.dtype(v.replace("?", "bool")) for k, v in _SCALAR.items()}
_FIELDS: dict[str, dict[str, tuple[int, str, Any]]] = {
    t: {name: (slot, kind, default) for slot, name, kind, default in rows} for t, rows in _FACTS["tables"].items()
}
_FORMS = {k: struct.Struct("<" + v) for k, v in _SCALAR.items()}
_U16, _U32, _I32 = _FORMS["u16"], _FORMS["u32"], _FORMS["i32"]
_DEEPEST = 64  # tables inside each other; the schema needs 8
_WRITER = native_ref.FlatBuffers(_FACTS["tables"], _UNIONS)


def table_fields(table: str) -> dict[str, tuple[int, str, Any]]:
    """Field name -> (slot, kind, default) of a schema table; KeyError for an unknown one."""
    return _FIELDS[table]


@cache
def union_number(field: str, table: str) -> int:
    """The number that says a union field holds ``table`` (0 if it cannot)."""
    return next((n for n, t in _UNIONS[field].items() if t == table), 0)


def encode(table: str, value: dict[str, Any]) -> bytes:
    """The bytes of a file whose root is ``value``.  Raises KeyError naming table and field for a field it has not,
    ValueError for a number that does not fit its field."""
    return _WRITER.encode(table, value, IDENTIFIER.decode())


def decode(table: str, data: bytes | memoryview) -> dict[str, Any]:
    """Inverse of ``encode``; fields that are absent stay absent, number vectors come as arrays, strings as str.

    Raises ValueError for bytes that are no such file.
    """
    view = memoryview(data)
    if len(view) < 8 or bytes(view[4:8]) != IDENTIFIER:
        raise ValueError(f"not a TFLite file: identifier {bytes(view[4:8])!r}, expected {IDENTIFIER!r}")
    return _read_table(table, view, _number(_U32, view, 0, table), table)


def _number(form: struct.Struct, view: memoryview, at: int, where: str) -> Any:
    """A number of the file; raises ValueError that names ``where`` it was looked for."""
    if not 0 <= at <= len(view) - form.size:
        what = f"expected {form.size} bytes at {at}, the file has {len(view)}"
        raise ValueError(f"truncated or malformed TFLite file: {where}: {what}")
    return form.unpack_from(view, at)[0]


def _read_table(table: str, view: memoryview, at: int, where: str, depth: int = 0) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ValueError(f"malformed TFLite file: {where}: expected at most {_DEEPEST} tables inside each other")
    vtable = at - _number(_I32, view, at, where)
    slots = (_number(_U16, view, vtable, where) - 4) // 2
    out: dict[str, Any] = {}
    for name, (slot, kind, _) in _FIELDS[table].items():
        offset = _number(_U16, view, vtable + 4 + 2 * slot, where) if slot < slots else 0
        if not offset:
            continue
        field, here = at + offset, f"{where}.{name}"
        if kind in _FORMS:
            out[name] = _number(_FORMS[kind], view, field, here)
        else:
            target = field + _number(_U32, view, field, here)
            if kind[0] == "|":
                members, number = _UNIONS[kind[1:]], out.get(name + "_type", 0)
                if number not in members:
                    raise ValueError(f"malformed TFLite file: {here}: the schema has no table of number {number} there")
                kind = "*" + members[number]
            out[name] = _read_ref(kind, view, target, here, depth)
    return out


def _read_ref(kind: str, view: memoryview, at: int, where: str, depth: int) -> Any:
    if kind[0] == "*":
        return _read_table(kind[1:], view, at, where, depth + 1)
    n = _number(_U32, view, at, where)
    element = "u8" if kind == "str" else kind[1:-1]
    size = _NUMPY[element].itemsize if element in _SIZE else 4
    if at + 4 + n * size > len(view):
        raise ValueError(
            f"truncated or malformed TFLite file: {where}: expected {n} elements at {at}, the file has "
            f"{len(view)} bytes"
        )
    if kind == "str":
        return bytes(view[at + 4 : at + 4 + n]).decode("utf-8", "surrogateescape")
    if element in _SIZE:
        return np.frombuffer(view, _NUMPY[element], n, at + 4)
    return [
        _read_ref(element, view, p + _number(_U32, view, p, where), f"{where}[{i}]", depth)
        for i, p in enumerate(range(at + 4, at + 4 + 4 * n, 4))
    ]
