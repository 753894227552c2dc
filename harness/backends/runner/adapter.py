"""The backend that a command is: it is started in a worker process and ended with it."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import sys
import weakref
from collections.abc import Iterable
from typing import Any

from opconform_worker import DECLARED, Backend, ProtocolError, Unsupported, sibling

messages = sibling("messages", __spec__)
Ended, Payload, Process, listed, value = (
    messages.Ended,
    messages.Payload,
    messages.Process,
    messages.listed,
    messages.value,
)
OURS = ("forks", "memory")  # what this adapter declares itself


class Runner(Backend):
    """The backend that a command is.  command: one text, split as a shell splits it."""

    memory = "resident"  # Java, WebAssembly and sanitizers reserve far more addresses than they use

    def __init__(self, command: str) -> None:
        self.command = shlex.split(command)
        self.number = itertools.count(1)
        self.process: Any = None
        process = Process(self.command)
        try:
            process.send({"id": 0, "method": "hello", "protocol": messages.PROTOCOL})
            hello = self._answer(process, 0)[0]
        finally:
            process.close()
        for need in ("name", "version", "formats"):
            if need not in hello:
                raise TypeError(f"hello: {need!r} is missing, got {' '.join(sorted(hello))}")
        self.said: dict[str, Any] = hello
        for key in set(DECLARED) - set(OURS):
            if key in hello:  # whatever a class may declare; the host checks it
                setattr(self, key, hello[key])

    def version(self) -> str:
        return str(self.said["version"])

    def info(self) -> dict[str, Any]:
        return self.said.get("info", {})

    def load(self, model: bytes, format: str) -> Handle:
        if self.process is None:
            self.process = Process(self.command)
            self._ask("hello", protocol=messages.PROTOCOL)
        number = next(self.number)
        self._ask("load", [model], len(model), model=number, format=format)
        handle = Handle(number)
        weakref.finalize(handle, self._release, self.process, number)
        return handle

    def run(self, handle: Handle, inputs: dict[str, Any]) -> Any:
        out = Payload()
        forms = [{"name": name, **out.put(v)} for name, v in inputs.items()]
        header, payload = self._ask("run", out.parts, out.size, model=handle.number, inputs=forms)
        outputs = listed(header, "outputs", "the answer to run")
        values = [value(o, payload, f"output {i}") for i, o in enumerate(outputs)]
        if any("name" not in o for o in outputs):  # the runtime lost the names: by position
            return values
        return {o["name"]: v for o, v in zip(outputs, values)}

    def _ask(self, method: str, parts: Iterable[bytes] = (), size: int = 0, **more: Any) -> Any:
        number = next(self.number)
        try:
            self.process.send({"id": number, "method": method, **more}, parts, size)
            return self._answer(self.process, number)
        except Ended as e:
            follow(e)
        except ProtocolError:
            self.process.close()  # what comes next from it means nothing
            self.process = None
            raise

    def _release(self, process: Any, number: int) -> None:
        """Tell the command that a model is done with, once nobody holds its handle any more."""
        if process is self.process:
            try:
                process.send({"id": next(self.number), "method": "release", "model": number})
            except Ended as e:
                follow(e)

    @staticmethod
    def _answer(process: Any, number: int) -> tuple[dict[str, Any], bytes]:
        """The result of the request with that number; raises what its error says."""
        while True:
            header, payload = process.receive()
            if header.get("id") == number:
                break
            if not isinstance(header.get("id"), int) or header["id"] > number:
                raise ProtocolError(f"id: expected {number}, got {header.get('id')!r:.100}")
        if "error" in header:
            error = header["error"]
            kind, text = (error.get("kind"), error.get("message", "")) if isinstance(error, dict) else (None, "")
            if kind == "unsupported":
                raise Unsupported(text)
            if kind == "out_of_memory":
                raise MemoryError(text)
            if kind == "rejected":
                raise RuntimeError(text)
            raise ProtocolError(f"error: expected kind unsupported, rejected or out_of_memory, got {error!r:.100}")
        if not isinstance(header.get("result"), dict):
            raise ProtocolError(f"expected result or error, got {sorted(header)}")
        return header["result"], payload


def follow(ended: Any) -> None:
    """End this process as the command ended, since this process is what the host looks at."""
    sys.stderr.write(f"\n{ended}\n")
    sys.stderr.flush()
    if ended.code < 0:
        signal.signal(-ended.code, signal.SIG_DFL)
        os.kill(os.getpid(), -ended.code)
    os._exit(ended.code if ended.code > 0 else 70)


class Handle:
    """A loaded model."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number
