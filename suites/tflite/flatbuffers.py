"""FlatBuffers, both ways, over the tables of the TFLite schema.

A table is a dict of field name -> value: numbers, strings (str or bytes), lists or arrays of numbers (bytes for vectors of
bytes), dicts (tables), lists of dicts.  Which field has which slot and type comes from ``tables.json``, so that writing a
model needs no runtime.  Source: the FlatBuffers internals document; schema file identifier TFL3.

The writer goes forward: a table is written before what it points to, offsets are patched afterwards.  A table's layout
(field order, padding, vtable) is computed once per set of present fields.

    vtable  [u16 vtable size][u16 table size][u16 offset of slot 0] ...
    table   [i32 distance back to the vtable][fields, widest first, aligned to their size]
    vector  [u32 length][elements, aligned]
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

IDENTIFIER = b"TFL3"
_FACTS = json.loads((Path(__file__).parent / "tables.json").read_text())
ENUMS: dict[str, dict[str, int]] = _FACTS["enums"]
SOURCE: str = _FACTS["source"]
_UNIONS: dict[str, dict[int, str]] = {u: {int(k): v for k, v in m.items()} for u, m in _FACTS["unions"].items()}
_SCALAR = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
           "f32": "f", "f64": "d"}  # fmt: skip
_SIZE = {k: struct.calcsize(v) for k, v in _SCALAR.items()}
_NUMPY = {k: np.dtype(v.replace("?", "bool")) for k, v in _SCALAR.items()}
_FIELDS: dict[str, dict[str, tuple[int, str, Any]]] = {
    t: {name: (slot, kind, default) for slot, name, kind, default in rows} for t, rows in _FACTS["tables"].items()
}
_VECTOR_ALIGN = {("Buffer", "data"): 16}  # the runtime hands out pointers into the file
_U32 = struct.Struct("<I")


def table_fields(table: str) -> dict[str, tuple[int, str, Any]]:
    """Field name -> (slot, kind, default) of a schema table; KeyError for an unknown one."""
    return _FIELDS[table]


def union_number(field: str, table: str) -> int:
    """The number that says a union field holds ``table`` (0 if it cannot)."""
    return next((n for n, t in _UNIONS[field].items() if t == table), 0)


class _Layout:
    """One table with one set of present fields: how its bytes lie."""

    __slots__ = ("align", "packer", "refs", "scalars", "size", "vtable")

    def __init__(self, table: str, names: tuple[str, ...]) -> None:
        fields = _FIELDS[table]
        rows = []
        for name in names:
            if name not in fields:
                raise KeyError(f"{table} has no field {name!r}, only {', '.join(fields)}")
            slot, kind, _ = fields[name]
            rows.append((-_SIZE.get(kind, 4), slot, name, kind))
        rows.sort()
        slots = [0] * (1 + max((r[1] for r in rows), default=-1))
        wide = bool(rows) and rows[0][0] == -8
        at, fmt = 4, "<i"
        if wide:
            at, fmt = 8, "<i4x"
        self.scalars, self.refs = [], []
        for size, slot, name, kind in rows:
            slots[slot] = at
            if kind in _SIZE:
                fmt += _SCALAR[kind]
                self.scalars.append(name)
            else:
                fmt += "I"
                self.scalars.append(None)
                self.refs.append((at, name, kind, _VECTOR_ALIGN.get((table, name), 0)))
            at -= size
        self.packer = struct.Struct(fmt)
        self.size = at
        self.align = 8 if wide else 4
        self.vtable = struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), at, *slots)


_LAYOUTS: dict[tuple[str, tuple[str, ...]], _Layout] = {}


class _Writer:
    __slots__ = ("buf", "vtables")

    def __init__(self) -> None:
        self.buf = bytearray(8)
        self.vtables: dict[int, int] = {}

    def table(self, name: str, value: dict[str, Any], back: int) -> None:
        """Write one table and what hangs on it; ``back`` is where the offset to it goes."""
        buf = self.buf
        key = (name, tuple(value))
        layout = _LAYOUTS.get(key)
        if layout is None:
            layout = _LAYOUTS[key] = _Layout(*key)
        vtable = self.vtables.get(id(layout))
        if vtable is None:
            if len(buf) & 1:
                buf.append(0)
            vtable = self.vtables[id(layout)] = len(buf)
            buf += layout.vtable
        pad = -len(buf) % layout.align
        if pad:
            buf += bytes(pad)
        start = len(buf)
        _U32.pack_into(buf, back, start - back)
        buf += layout.packer.pack(start - vtable, *[0 if f is None else value[f] for f in layout.scalars])
        for at, field, kind, align in layout.refs:
            self.ref(kind, value[field], start + at, align, value, field)

    def ref(self, kind: str, value: Any, back: int, align: int, owner: dict[str, Any], field: str) -> None:
        """Write what one offset points to."""
        head = kind[0]
        buf = self.buf
        if head == "*":
            self.table(kind[1:], value, back)
        elif head == "[":
            self.vector(kind[1:-1], value, back, align)
        elif head == "|":
            self.table(_UNIONS[kind[1:]][owner[field + "_type"]], value, back)
        else:
            data = value.encode() if isinstance(value, str) else value
            buf += bytes(-len(buf) % 4)
            _U32.pack_into(buf, back, len(buf) - back)
            buf += _U32.pack(len(data)) + data + b"\0"

    def vector(self, element: str, value: Any, back: int, align: int) -> None:
        buf = self.buf
        size = _SIZE.get(element, 4)
        align = align or size
        pad = -(len(buf) + 4) % max(align, 4)
        if pad:
            buf += bytes(pad)
        start = len(buf)
        _U32.pack_into(buf, back, start - back)
        n = len(value)
        if element in _SIZE:
            if isinstance(value, (bytes, bytearray, memoryview)):
                buf += _U32.pack(n) + value
            elif isinstance(value, np.ndarray):
                buf += _U32.pack(n) + np.ascontiguousarray(value, _NUMPY[element]).tobytes()
            else:
                buf += struct.pack(f"<I{n}{_SCALAR[element]}", n, *value)
            return
        buf += struct.pack("<I", n) + bytes(4 * n)
        at = start + 4
        for item in value:
            self.ref(element, item, at, 0, {}, "")
            at += 4


def encode(table: str, value: dict[str, Any]) -> bytes:
    """The bytes of a file whose root is ``value``.  Raises KeyError naming table and field for a field it has not."""
    w = _Writer()
    w.buf[4:8] = IDENTIFIER
    w.table(table, value, 0)
    return bytes(w.buf)


def decode(table: str, data: bytes | memoryview) -> dict[str, Any]:
    """Inverse of ``encode``; fields that are absent stay absent, number vectors come as arrays, strings as str.

    Raises ValueError for bytes that are no such file.
    """
    view = memoryview(data)
    if len(view) < 8 or bytes(view[4:8]) != IDENTIFIER:
        raise ValueError(f"not a TFLite file: identifier {bytes(view[4:8])!r}, expected {IDENTIFIER!r}")
    try:
        return _read_table(table, view, _U32.unpack_from(view, 0)[0])
    except (struct.error, IndexError, KeyError) as e:
        raise ValueError(f"truncated or malformed TFLite file: {e}") from None


def _read_table(table: str, view: memoryview, at: int) -> dict[str, Any]:
    vtable = at - struct.unpack_from("<i", view, at)[0]
    if vtable < 0:
        raise IndexError("vtable outside the file")
    slots = (struct.unpack_from("<H", view, vtable)[0] - 4) // 2
    offsets = struct.unpack_from(f"<{slots}H", view, vtable + 4)
    out: dict[str, Any] = {}
    for name, (slot, kind, _) in _FIELDS[table].items():
        if slot >= slots or not offsets[slot]:
            continue
        field = at + offsets[slot]
        if kind in _SIZE:
            out[name] = struct.unpack_from("<" + _SCALAR[kind], view, field)[0]
        else:
            target = field + _U32.unpack_from(view, field)[0]
            if kind[0] == "|":
                kind = "*" + _UNIONS[kind[1:]][out[name + "_type"]]
            out[name] = _read_ref(kind, view, target)
    return out


def _read_ref(kind: str, view: memoryview, at: int) -> Any:
    if kind[0] == "*":
        return _read_table(kind[1:], view, at)
    n = _U32.unpack_from(view, at)[0]
    if at + 4 + n > len(view):
        raise IndexError(f"{n} elements at {at} reach past the end")
    if kind == "str":
        return bytes(view[at + 4 : at + 4 + n]).decode("utf-8", "surrogateescape")
    element = kind[1:-1]
    if element in _SIZE:
        return np.frombuffer(view, _NUMPY[element], n, at + 4)
    return [_read_ref(element, view, p + _U32.unpack_from(view, p)[0]) for p in range(at + 4, at + 4 + 4 * n, 4)]
