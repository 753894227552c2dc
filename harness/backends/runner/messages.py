"""Messages of the runner protocol, over the standard input and output of a command.

``docs/runner-protocol.md`` describes them.  ``runner_protocol.schema.json`` in this folder states their form.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from opconform_worker import ProtocolError, Unsupported, die_with, dtype_name, from_raw, raw, storage

PROTOCOL = 1
START = b"\x1e"  # record separator, as before each text of a JSON text sequence (RFC 7464)
HEADER = 1 << 26  # bytes of a message's JSON, at most
PAYLOAD = 1 << 30  # bytes behind it, at most
ALIGNMENT = 16
PIPE = 1 << 16  # bytes read at once: what a pipe holds; a larger buffer is filled with a pattern for each read
NOISE = 1 << 14  # bytes of what is printed between two messages that go into the log


class Ended(Exception):
    """The command has ended.  code: as ``subprocess`` tells it."""

    def __init__(self, code: int) -> None:
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        super().__init__(f"the runner's process {how}")
        self.code = code


class Process:
    """The command, running.  Messages go out and come in; whatever else it prints goes into the log."""

    def __init__(self, command: list[str]) -> None:
        here = os.getpid()
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                preexec_fn=lambda: die_with(here),
            )
        except OSError as e:
            raise RuntimeError(f"cannot start {command[0]!r}: {e.strerror}") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.pipes = self.process.stdin, self.process.stdout
        self.into, self.out = (p.fileno() for p in self.pipes)
        os.set_blocking(self.into, False)
        self.both = selectors.DefaultSelector()
        self.both.register(self.out, selectors.EVENT_READ)
        self.both.register(self.into, selectors.EVENT_WRITE)
        self.buffer, self.noise = bytearray(), 0

    def send(self, header: dict[str, Any], parts: Iterable[bytes] = (), size: int = 0) -> None:
        """Write one message; what the command prints meanwhile is taken in, or both sides would wait."""
        if size:
            header["payload"] = size
        text = json.dumps(header, separators=(",", ":")).encode()
        data = memoryview(b"".join([START, text, b"\n", *parts]))
        while data:
            try:
                data = data[os.write(self.into, data) :]
            except BlockingIOError:
                for key, _ in self.both.select():
                    if key.fd == self.out:
                        self._more()
            except BrokenPipeError:
                self._ended()

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """The next message: its header and its payload."""
        header = self._header()
        size = header.get("payload", 0)
        if not isinstance(size, int) or not 0 <= size <= PAYLOAD:
            raise ProtocolError(f"payload: expected a number of bytes up to {PAYLOAD}, got {size!r}")
        while len(self.buffer) < size:
            self._more()
        payload = bytes(self.buffer[:size])
        del self.buffer[:size]
        return header, payload

    def _header(self) -> dict[str, Any]:
        while True:
            at = self.buffer.find(START)
            if at:  # what is printed between messages is no message
                noise = self.buffer if at < 0 else self.buffer[:at]
                sys.stderr.write(noise[: max(0, NOISE - self.noise)].decode("utf-8", "replace"))
                self.noise += len(noise)
                del self.buffer[: len(noise)]
            end = self.buffer.find(b"\n") if self.buffer else -1
            if end < 0:
                if len(self.buffer) > HEADER:
                    raise ProtocolError(f"a message whose JSON has no end after {HEADER >> 20} MiB")
                self._more()
                continue
            text = bytes(self.buffer[1:end])
            del self.buffer[: end + 1]
            try:
                header = json.loads(text)
            except ValueError as e:
                raise ProtocolError(f"expected JSON, got {text[:100]!r}: {e}") from None
            self.noise = 0
            if not isinstance(header, dict):
                raise ProtocolError(f"expected a JSON object, got {text[:100]!r}")
            return header

    def _more(self) -> None:
        data = os.read(self.out, PIPE)
        if not data:
            self._ended()
        self.buffer += data

    def _ended(self) -> None:
        raise Ended(self.process.wait())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.both.close()
        for pipe in self.pipes:
            pipe.close()


class Payload:
    """Values on their way out: raw little-endian elements, one tensor behind the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def put(self, v: Any) -> dict[str, Any]:
        """The form of a value in a message's JSON."""
        if v is None:
            return {"absent": True}
        if isinstance(v, (list, tuple)):
            return {"sequence": [self.put(x) for x in v]}
        if isinstance(v, dict):
            return {"map": [[k, self.put(x)] for k, x in v.items()]}
        name, form = dtype_name(v), {"shape": list(v.shape)}
        if name == "str":
            return {"dtype": "str", **form, "strings": [_text(x) for x in v.ravel()]}
        data = np.ascontiguousarray(raw(v)).tobytes()
        out = {"dtype": name, **form, "offset": self.size, "bytes": len(data)}
        self.parts += [data, b"\0" * (-len(data) % ALIGNMENT)]
        self.size += len(data) + -len(data) % ALIGNMENT
        return out


def _text(x: Any) -> str:
    text = x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else str(x)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unsupported("a string that is not UTF-8 has no form in JSON") from None
    return text


def value(form: Any, payload: bytes, where: str) -> Any:
    """A value that came in; ProtocolError, naming the output, for a form that is none."""
    if not isinstance(form, dict):
        raise ProtocolError(f"{where}: expected an object, got {form!r:.100}")
    if form.get("absent"):
        return None
    if "sequence" in form:
        return [value(x, payload, f"{where}[{i}]") for i, x in enumerate(listed(form, "sequence", where))]
    if "map" in form:
        pairs = listed(form, "map", where)
        if not all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], (int, str)) for p in pairs):
            raise ProtocolError(f"{where}: map: expected [key, value] pairs")
        return {k: value(x, payload, f"{where}[{k!r}]") for k, x in pairs}
    shape, name = listed(form, "shape", where), form.get("dtype", "")
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise ProtocolError(f"{where}: shape: expected extents, got {shape!r:.100}")
    count = 1
    for n in shape:
        count *= n
    if name == "str":
        text = listed(form, "strings", where)
        if len(text) != count or not all(isinstance(t, str) for t in text):
            raise ProtocolError(f"{where}: expected {count} strings, got {len(text)}")
        out = np.empty(count, object)
        out[:] = text
        return out.reshape(shape)
    try:
        kind = storage(name)
    except (KeyError, TypeError):
        raise ProtocolError(f"{where}: dtype: expected the name of an element type, got {name!r:.100}") from None
    offset, size = form.get("offset"), form.get("bytes")
    if size != count * kind.itemsize:
        raise ProtocolError(f"{where}: bytes: expected {count * kind.itemsize} for {name} {shape}, got {size!r}")
    if not isinstance(offset, int) or offset < 0 or offset + size > len(payload):
        raise ProtocolError(f"{where}: offset: {offset!r} leads out of the payload of {len(payload)} bytes")
    return from_raw(np.frombuffer(payload, kind, count, offset).reshape(shape), name)


def listed(form: dict[str, Any], key: str, where: str) -> list[Any]:
    v = form.get(key)
    if not isinstance(v, list):
        raise ProtocolError(f"{where}: {key}: expected a list, got {v!r:.100}")
    return v
