"""The reference as a backend: it parses the model again and runs it in the whole-model interpreter.

The expected values come from the same kernels.  So agreement shows that builder, parser and interpreter keep the
meaning.  The tests check the kernels themselves, against loops that follow the definition and against multi-precision
arithmetic.
"""

from __future__ import annotations

import socket
from typing import Any

from harness.workers import worker


class Native:
    """Takes every format that an installed dialect has."""

    name = "native-ref"
    pack = 64

    def __init__(self) -> None:
        from harness.declare import registry

        self._dialects = {registry.dialect(n).format: registry.dialect(n) for n in registry.names()}
        self.formats = tuple(self._dialects)

    def version(self) -> str:
        import native_ref
        from harness.core import VERSION

        return f"{VERSION} {native_ref.isa}"

    def info(self) -> dict[str, Any]:
        """An interpreter runs what it can; it makes no claim to refuse the rest."""
        return {"validates": False}

    def load(self, model: bytes, format: str) -> Any:
        """The dialect and the parsed graph; parse errors are refusals."""
        d = self._dialects[format]
        graph = d.parse(model)
        return d, model, graph.outputs

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        d, model, outputs = handle
        return dict(zip(outputs, d.run_model(model, inputs)))


def serve(fd: int) -> None:
    """Run models for a worker in another Python, which has nothing of ours: one request and one answer at a time on a
    socket, until its other end is closed.  The worker starts this as ``python -c "..."`` of the host's own Python."""
    from harness.declare import registry

    sock = socket.socket(fileno=fd)
    while (frame := worker.recv_frame(sock)) is not None:
        header, payload = frame[:2]
        reader, out = worker.Reader(payload), worker.Writer()
        try:
            dialect = registry.dialect(header["dialect"])
            model = reader.bytes(header["model"])
            inputs = dict(zip(header["names"], map(reader.get, header["values"])))
            names = dialect.parse(model).outputs
            answer: dict[str, Any] = {
                "names": list(names),
                "values": [out.put(v) for v in dialect.run_model(model, inputs)],
            }
        except Exception as e:
            answer, out = {"error": worker.named(e)}, worker.Writer()
        worker.send_frame(sock, answer, out.parts, out.size)
