"""Runs models with the reference for a worker in another Python, which has nothing of ours.

Started by a backend as ``python -c "..."`` of the host's own Python; one request and one answer at a time."""

from __future__ import annotations

import socket

from harness.workers import worker


def main(fd: int) -> None:
    """Answer requests on a socket until its other end is closed."""
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
            answer = {"names": list(names), "values": [out.put(v) for v in dialect.run_model(model, inputs)]}
        except Exception as e:
            answer, out = {"error": worker.named(e)}, worker.Writer()
        worker.send_frame(sock, answer, out.parts, out.size)
