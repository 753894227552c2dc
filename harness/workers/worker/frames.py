"""Frames: how values travel between the host and a worker.

A frame is ``<IIQ``: length of the JSON header, flags, length of the payload; then both.  A frame above 128 KiB is in a
memory file, whose descriptor is sent with the fixed part (flag 1).  The header has type and shape of an array
("f32 2 3"); the payload has its raw little-endian bytes, 16-byte aligned.  Pickles are not used, since pickles of
NumPy 2 do not load under NumPy 1.
"""

# Runs under any Python from 3.8 on, with NumPy 1 or 2.

from __future__ import annotations

import array
import json
import mmap
import os
import socket
import struct
import tempfile
from typing import Any

import numpy as np

from .arrays import BY_NAME, TAGGED, Tagged, TypeOnly, as_text, dtype_name, from_raw

HEAD = struct.Struct("<IIQ")
# Larger frames go through a memory file, which costs four times as much: two of these fit into a socket's buffer where
# the system allows no more than Linux does by default (416 KiB).
INLINE = 128 << 10
PAD = [b"\0" * n for n in range(16)]
_WRITTEN: dict[
    Any, tuple[str, int, bytes]
] = {}  # (dtype, shape) of arrays -> form in the header, bytes in the payload, the padding among them
_READ: dict[
    str, tuple[Any, ...]
] = {}  # form -> dtype, shape, bytes in the payload, our name if the elements are tagged
_KEPT = 1 << 10  # of each, at most, 400 bytes each; then all anew: a third of the shapes is new as long as a run lasts
ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode  # ours, whatever a backend does to json
DECODE = json.JSONDecoder().decode


def written(a: np.ndarray) -> Any:
    """How an array without strings is written: see ``_WRITTEN``."""
    form = " ".join([dtype_name(a), *map(str, a.shape)])
    pad = -a.nbytes % 16
    out = form, a.nbytes + pad, PAD[pad]
    if type(a) is np.ndarray:
        if len(_WRITTEN) >= _KEPT:
            _WRITTEN.clear()
        _WRITTEN[a.dtype, a.shape] = out
    return out


def read(form: Any) -> Any:
    """How an array of that form is read: see ``_READ``."""
    name, *shape = form.split(" ")
    dtype, shape = BY_NAME[name], tuple(map(int, shape))
    size = dtype.itemsize
    for n in shape:
        size *= n
    out = dtype, shape, size + -size % 16, name if name in TAGGED else None
    if len(_READ) >= _KEPT:
        _READ.clear()
    _READ[form] = out
    return out


class Writer:
    """Collects values; ``put`` returns the header form, ``parts`` is the payload."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.size = 0

    def bytes(self, b: Any) -> int:
        self.parts.append(b)
        pad = -len(b) % 16
        if pad:
            self.parts.append(PAD[pad])
        self.size += len(b) + pad
        return len(b)

    def put(self, v: Any) -> Any:
        hit = _WRITTEN.get((v.dtype, v.shape)) if type(v) is np.ndarray else None
        if hit is not None:  # nearly always: an array of a type and shape met before
            form, size, pad = hit
            self.parts.append(v.tobytes())
            if pad:
                self.parts.append(pad)
            self.size += size
            return form
        if isinstance(v, np.ndarray):
            if type(v) is not Tagged:  # what a subclass says of its shape and bytes need not be so
                v = np.ma.MaskedArray.filled(v) if isinstance(v, np.ma.MaskedArray) else v
                v = np.ndarray.view(v, np.ndarray)
            d = v.dtype
            if dtype_name(v) == "str":
                text = [as_text(x) for x in v.ravel()]
                return {"s": [v.shape, self.bytes(ENCODE(text).encode())]}
            if not d.isnative:
                v = v.astype(d.newbyteorder("="))
            self.bytes(v.tobytes())
            return written(v)[0]
        if v is None:
            return None
        if isinstance(v, (list, tuple)):
            return {"l": [self.put(x) for x in v]}
        if isinstance(v, dict):
            return {"d": [[k if isinstance(k, (int, str)) else k.item(), self.put(x)] for k, x in v.items()]}
        if isinstance(v, TypeOnly):
            return {"t": [v.dtype, None if v.shape is None else list(v.shape)]}
        if isinstance(v, (np.generic, bool, int, float)):
            return self.put(np.asarray(v))
        if isinstance(v, (str, bytes)):
            return self.put(np.array(v, object))
        raise TypeError(f"expected a NumPy array, got {type(v).__name__}")


class Reader:
    """Takes values out of a payload in the order in which they were put; arrays are read-only views of it."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.data, self.pos = data, 0

    def bytes(self, n: Any) -> Any:
        b = bytes(self.data[self.pos : self.pos + n])
        self.pos += n + (-n % 16)
        return b

    def get(self, form: Any) -> Any:
        if type(form) is str:
            dtype, shape, size, tag = _READ.get(form) or read(form)
            a: np.ndarray = np.ndarray(shape, dtype, self.data, self.pos)
            self.pos += size
            return a if tag is None else from_raw(a, tag)
        if form is None:
            return None
        if "s" in form:
            shape, n = form["s"]
            text = text_of(self.bytes(n))
            out = np.empty(len(text), object)
            out[:] = text
            return out.reshape(shape)
        if "l" in form:
            return [self.get(f) for f in form["l"]]
        if "d" in form:
            return {k: self.get(s) for k, s in form["d"]}
        return TypeOnly(*form["t"])


def memory_file() -> Any:
    """Descriptor of an anonymous file: in memory on Linux, unlinked elsewhere."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("frame")
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def pack_frame(header: dict[str, Any], parts: Any, size: Any) -> tuple[Any, list[Any], Any]:
    """-> (fixed part, list of buffers for the socket, descriptor or None)."""
    text = ENCODE(header).encode()
    text += b" " * (-len(text) % 16)  # keeps the payload aligned behind it
    if len(text) + size <= INLINE:
        return HEAD.pack(len(text), 0, size), [text, *parts], None
    fd = memory_file()
    body = b"".join([text, *parts])
    view = memoryview(body)
    while len(view):
        view = view[os.write(fd, view) :]
    return HEAD.pack(len(text), 1, size), [], fd


def send_frame(sock: Any, header: dict[str, Any], parts: Any = (), size: int = 0) -> None:
    """Blocking send of one frame."""
    head, rest, fd = pack_frame(header, list(parts), size)
    if fd is None:
        sock.sendall(b"".join([head, *rest]))
        return
    try:
        sock.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    finally:
        os.close(fd)


def recv_exact(sock: Any, n: Any) -> Any:
    buf = bytearray(n)
    view, got = memoryview(buf), 0
    while got < n:
        k = sock.recv_into(view[got:])
        if not k:
            return None
        got += k
    return buf


def unhead(data: bytes | bytearray | memoryview) -> tuple[Any, Any, Any]:
    """The fixed part of a frame: length of its header, flags, length of its payload.  ValueError for what is none."""
    n_text, flags, size = HEAD.unpack_from(data)
    if flags > 1 or (not flags and n_text + size > INLINE):
        raise ValueError(f"no frame, but {bytes(data[: HEAD.size])!r}")
    return n_text, flags, size


def text_of(data: bytes | bytearray | memoryview) -> Any:
    """The header of a frame."""
    return DECODE(bytes(data).decode())


def map_body(fd: Any, n_text: Any, size: Any) -> tuple[Any, Any]:
    """Header and payload of a frame that came in a memory file."""
    try:
        m = mmap.mmap(fd, n_text + size)
    finally:
        os.close(fd)
    return text_of(m[:n_text]), memoryview(m)[n_text : n_text + size]


def recv_frame(sock: Any, with_fd: bool = False) -> Any:
    """Blocking receive -> (header, payload), None at the end; with_fd adds the descriptor that came along."""
    head, fd = bytearray(), -1
    while len(head) < HEAD.size:
        data, anc, _, _ = sock.recvmsg(HEAD.size - len(head), socket.CMSG_SPACE(4))
        for _, kind, value in anc:
            if kind == socket.SCM_RIGHTS:
                fd = array.array("i", value[:4])[0]
        if not data:
            return None
        head += data
    n_text, flags, size = unhead(head)
    if flags & 1:
        return map_body(fd, n_text, size)
    body = recv_exact(sock, n_text + size)
    if body is None:
        return None
    out = text_of(body[:n_text]), memoryview(body)[n_text:]
    return (*out, fd) if with_fd else out
