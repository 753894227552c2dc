"""Core ML specification messages as plain dicts, both ways, driven by ``messages.json``.

A message is a dict of its set fields: scalars, strings for enum members (a number where the schema has no name for it),
dicts for messages, lists for repeated fields, NumPy arrays for repeated floats.  As in proto3, a scalar that equals
zero is not written, and reads as absent.  A codec of our own keeps the noisy and slow import of coremltools out of
every run; a test compares it with the official classes.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.errors import FormatError

Message = dict[str, Any]
_WIDTH = {"double": ("<d", 1, 8, "<f8"), "float": ("<f", 5, 4, "<f4")}


@cache
def _schema() -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    data = json.loads((Path(__file__).parent / "messages.json").read_text())
    return data["messages"], data["enums"]


@cache
def fields(message: str) -> dict[str, list[Any]]:
    """Field name -> [number, kind, repeated, oneof] of a message type; kind "@X" is message X, "#X" enum X."""
    return _schema()[0][message]


@cache
def _by_number(message: str) -> dict[int, tuple[str, str, bool]]:
    return {n: (name, kind, repeated) for name, (n, kind, repeated, _) in fields(message).items()}


@cache
def _enum(name: str) -> tuple[dict[str, int], dict[int, str]]:
    table = _schema()[1][name]
    return table, {v: k for k, v in table.items()}


def encode(message: str, value: Message) -> bytes:
    """Bytes of a message.  Raises FormatError for a field or enum member that the schema does not have."""
    out = bytearray()
    known = fields(message)
    for name, v in value.items():
        if v is None:
            continue
        try:
            number, kind, repeated, oneof = known[name]
        except KeyError:
            raise FormatError(f"{message}: no field {name!r}, expected one of {', '.join(known)}") from None
        if repeated:
            _repeated(out, number, kind, v, f"{message}.{name}")
        else:
            _single(out, number, kind, v, oneof is not None, f"{message}.{name}")
    return bytes(out)


def _varint(out: bytearray, n: int) -> None:
    n &= 0xFFFFFFFFFFFFFFFF  # negative numbers travel as 64-bit two's complement
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


def _block(out: bytearray, number: int, data: bytes) -> None:
    _varint(out, number << 3 | 2)
    _varint(out, len(data))
    out += data


def _number(kind: str, v: Any, where: str) -> int:
    if kind[0] != "#":
        return int(v)
    if isinstance(v, int):
        return v
    try:
        return _enum(kind[1:])[0][v]
    except KeyError:
        raise FormatError(f"{where}: no member {v!r}, expected one of {', '.join(_enum(kind[1:])[0])}") from None


def _single(out: bytearray, number: int, kind: str, v: Any, explicit: bool, where: str) -> None:
    if kind[0] == "@":
        _block(out, number, encode(kind[1:], v))
    elif kind == "string":
        if v or explicit:
            _block(out, number, v.encode())
    elif kind == "bytes":
        if v or explicit:
            _block(out, number, bytes(v))
    elif kind in _WIDTH:
        form, wire, _, _ = _WIDTH[kind]
        data = struct.pack(form, v)
        if explicit or any(data):  # -0.0 has a set bit: it is written
            _varint(out, number << 3 | wire)
            out += data
    else:
        n = _number(kind, v, where)
        if n or explicit:
            _varint(out, number << 3)
            _varint(out, n)


def _repeated(out: bytearray, number: int, kind: str, values: Any, where: str) -> None:
    if len(values) == 0:
        return
    if kind[0] == "@":
        for v in values:
            _block(out, number, encode(kind[1:], v))
    elif kind == "string":
        for v in values:
            _block(out, number, v.encode())
    elif kind == "bytes":
        for v in values:
            _block(out, number, bytes(v))
    elif kind in _WIDTH:
        _block(out, number, np.ascontiguousarray(values, _WIDTH[kind][3]).tobytes())
    else:
        packed = bytearray()
        for v in values:
            _varint(packed, _number(kind, v, where))
        _block(out, number, bytes(packed))


def decode(message: str, data: bytes | memoryview) -> Message:
    """Dict of the fields that are set; unknown fields are passed over.  Raises FormatError for bytes that do not
    parse."""
    try:
        return _decode(message, memoryview(data))
    except (IndexError, struct.error, UnicodeDecodeError, ValueError) as e:
        raise FormatError(f"{message}: not a message of this type: {type(e).__name__}: {e}") from e


def _read(data: memoryview, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        b = data[at]
        at += 1
        n |= (b & 0x7F) << shift
        if b < 0x80:
            return n, at
        shift += 7
        if shift > 63:
            raise ValueError("varint of more than ten bytes")


def _scalar(kind: str, n: int) -> Any:
    if kind == "bool":
        return bool(n)
    if kind[0] == "#":
        return _enum(kind[1:])[1].get(n, n)
    if kind in ("int64", "int32"):
        n &= 0xFFFFFFFFFFFFFFFF
        return n - (1 << 64) if n >> 63 else n
    return n


@cache
def _wires(kind: str, repeated: bool) -> tuple[int, ...]:
    """Wire types that a field may come in: its own, and packed where it repeats."""
    own = 2 if kind[0] == "@" or kind in ("string", "bytes") else _WIDTH[kind][1] if kind in _WIDTH else 0
    return (own, 2) if repeated else (own,)


def _decode(message: str, data: memoryview) -> Message:
    known = _by_number(message)
    out: Message = {}
    at, end = 0, len(data)
    raw: Any
    while at < end:
        tag, at = _read(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            raw, at = _read(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            raw, at = data[at : at + size], at + size
        elif wire == 2:
            size, at = _read(data, at)
            raw, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        if at > end:
            raise ValueError("truncated")
        if number not in known:
            continue
        name, kind, repeated = known[number]
        if wire not in _wires(kind, repeated):
            raise ValueError(f"{message}.{name}: wire type {wire} for a {kind}")
        if repeated:
            _gather(out, name, kind, wire, raw)
        elif kind[0] == "@":
            got = _decode(kind[1:], raw)
            out[name] = {**out[name], **got} if name in out else got
        elif wire == 2:
            out[name] = bytes(raw).decode() if kind == "string" else bytes(raw)
        elif wire == 0:
            out[name] = _scalar(kind, raw)
        else:
            out[name] = struct.unpack(_WIDTH[kind][0], raw)[0]
    return out


def _gather(out: Message, name: str, kind: str, wire: int, raw: Any) -> None:
    if kind[0] == "@":
        out.setdefault(name, []).append(_decode(kind[1:], raw))
    elif kind in ("string", "bytes"):
        out.setdefault(name, []).append(bytes(raw).decode() if kind == "string" else bytes(raw))
    elif kind in _WIDTH:
        more = np.frombuffer(raw, _WIDTH[kind][3])
        out[name] = np.concatenate([out[name], more]) if name in out else more
    elif wire == 0:
        out.setdefault(name, []).append(_scalar(kind, raw))
    else:
        values, at = out.setdefault(name, []), 0
        while at < len(raw):
            n, at = _read(raw, at)
            values.append(_scalar(kind, n))
