"""FlatBuffers, both ways, over the tables of the TFLite schema.

A table is a dict of field name -> value: numbers, strings (str or bytes), lists or arrays of numbers (bytes for
vectors of
bytes), dicts (tables), lists of dicts.  Which field has which slot and type comes from ``tables.json``, so that
writing a model needs no runtime.  Source: the FlatBuffers internals document; schema file identifier TFL3.

The writer goes forward: a table is written before what it points to, offsets are patched afterwards.  A table's layout
(field order, padding, vtable) is computed once per set of present fields.

    vtable  [u16 vtable size][u16 table size][u16 offset of slot 0] ...
    table   [i32 distance back to the vtable][fields, widest first, aligned to their size]
    vector  [u32 length][elements, aligned]
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
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
_PUT = _U32.pack_into


def table_fields(table: str) -> dict[str, tuple[int, str, Any]]:
    """Field name -> (slot, kind, default) of a schema table; KeyError for an unknown one."""
    return _FIELDS[table]


@cache
def union_number(field: str, table: str) -> int:
    """The number that says a union field holds ``table`` (0 if it cannot)."""
    return next((n for n, t in _UNIONS[field].items() if t == table), 0)


class _Layout:
    """One table with one set of present fields: how its bytes lie."""

    __slots__ = ("align", "pack", "picks", "refs", "vtable")

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
        at, fmt = (8, "<i4x") if wide else (4, "<i")
        self.picks: list[str] = []
        self.refs: list[tuple[int, str, Callable[..., None]]] = []
        for size, slot, name, kind in rows:
            slots[slot] = at
            if kind in _SIZE:
                fmt += _SCALAR[kind]
                self.picks.append(name)
            else:
                fmt += "4x"
                self.refs.append((at, name, _writer(kind, _VECTOR_ALIGN.get((table, name), 0), name)))
            at -= size
        self.pack = struct.Struct(fmt).pack
        self.align = 7 if wide else 3
        self.vtable = struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), at, *slots)


_LAYOUTS: dict[tuple[str, tuple[str, ...]], _Layout] = {}
_ZEROS = [bytes(n) for n in range(16)]


class _File(bytearray):
    """The bytes so far, and where the vtables of layouts already lie."""

    __slots__ = ("vtables",)


def _table(buf: _File, name: str, value: dict[str, Any], back: int) -> None:
    """Write one table and what hangs on it; ``back`` is where the offset to it goes."""
    key = (name, tuple(value))
    layout = _LAYOUTS.get(key)
    if layout is None:
        layout = _LAYOUTS[key] = _Layout(*key)
    vtable = buf.vtables.get(layout)
    if vtable is None:
        if len(buf) & 1:
            buf += b"\0"
        vtable = buf.vtables[layout] = len(buf)
        buf += layout.vtable
    pad = -len(buf) & layout.align
    if pad:
        buf += _ZEROS[pad]
    start = len(buf)
    _PUT(buf, back, start - back)
    buf += layout.pack(start - vtable, *[value[f] for f in layout.picks])
    for at, field, write in layout.refs:
        write(buf, value[field], start + at, value)


def _text(buf: _File, value: str | bytes, back: int, owner: Any) -> None:
    data = value.encode() if isinstance(value, str) else value
    start = len(buf)
    pad = -start & 3
    _PUT(buf, back, start + pad - back)
    buf += _ZEROS[pad] + _U32.pack(len(data)) + data + b"\0"


@cache
def _writer(kind: str, align: int = 0, field: str = "") -> Callable[..., None]:
    """``write(buf, value, back, owner)`` for what one offset points to."""
    if kind == "str":
        return _text
    if kind[0] == "*":
        name = kind[1:]
        return lambda buf, value, back, owner: _table(buf, name, value, back)
    if kind[0] == "|":
        tables, tag = _UNIONS[kind[1:]], field + "_type"
        return lambda buf, value, back, owner: _table(buf, tables[owner[tag]], value, back)
    element = kind[1:-1]
    return _numbers(element, align) if element in _SIZE else _offsets(_writer(element))


def _numbers(element: str, align: int) -> Callable[..., None]:
    """Writer of vectors of numbers: sequences, arrays, or bytes as they are."""
    mask, dtype, code = max(align or _SIZE[element], 4) - 1, _NUMPY[element], _SCALAR[element]

    def write(buf: _File, value: Any, back: int, owner: Any) -> None:
        start = len(buf)
        pad = -(start + 4) & mask
        start += pad
        _PUT(buf, back, start - back)
        n = len(value)
        if isinstance(value, (list, tuple)):
            buf += _ZEROS[pad] + struct.pack(f"<I{n}{code}", n, *value)
        else:
            data = np.ascontiguousarray(value, dtype).tobytes() if isinstance(value, np.ndarray) else value
            buf += _ZEROS[pad] + _U32.pack(n) + data

    return write


def _offsets(item: Callable[..., None]) -> Callable[..., None]:
    """Writer of vectors of offsets to tables, strings, vectors."""

    def write(buf: _File, value: Any, back: int, owner: Any) -> None:
        pad = -len(buf) & 3
        start = len(buf) + pad
        _PUT(buf, back, start - back)
        n = len(value)
        buf += _ZEROS[pad] + _U32.pack(n) + bytes(4 * n)
        at = start + 4
        for x in value:
            item(buf, x, at, None)
            at += 4

    return write


def encode(table: str, value: dict[str, Any]) -> bytes:
    """The bytes of a file whose root is ``value``.  Raises KeyError naming table and field for a field it has not."""
    buf = _File(8)
    buf.vtables = {}
    buf[4:8] = IDENTIFIER
    _table(buf, table, value, 0)
    return bytes(buf)


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
