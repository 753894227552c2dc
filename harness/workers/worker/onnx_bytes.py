"""ONNX models as bytes, for a Python that need not have the onnx package.

It writes a smallest model, and reads from the optimised graph of a runtime which nodes compute the outputs.  Field
numbers: onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Runs under any Python from 3.8 on.

AS_WRITTEN, REWRITTEN, FOLDED = "as written", "rewritten", "folded"
MOST = 5  # ops that a path names


def fields(data: bytes | memoryview) -> Iterator[Any]:
    """(number, value) of each field of a message: bytes, or a number."""
    at, end = 0, len(data)
    while at < end:
        key, at = data[at], at + 1  # nearly all numbers take one byte
        if key > 127:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == 2:
            size, at = data[at], at + 1
            if size > 127:
                size, at = _varint(data, at - 1)
            value, at = data[at : at + size], at + size
        elif kind == 0:
            value, at = _varint(data, at)
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def _varint(data: bytes | memoryview, at: Any) -> tuple[Any, Any]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


class Graph:
    """Of the main graph of a model: made, {value: (op, inputs)}; constants: names of values that are in the model."""

    def __init__(self, model: bytes) -> None:
        graph = next(v for n, v in fields(bytes(model)) if n == 7)
        self.made: dict[str, Any] = {}
        self.constants: set[str] = set()
        for n, v in fields(graph):
            if n == 1:
                self._node(v)
            elif n == 5:
                self.constants.update(x.decode() for k, x in fields(v) if k == 8)

    def _node(self, node: Any) -> None:
        inputs, outputs, op, domain = [], [], "", ""
        for n, v in fields(node):
            if n == 1:
                inputs.append(v.decode())
            elif n == 2:
                outputs.append(v.decode())
            elif n == 4:
                op = v.decode()
            elif n == 7:
                domain = v.decode()
        name = op if domain in ("", "ai.onnx") else f"{domain}.{op}"
        for o in outputs:
            self.made[o] = name, inputs, outputs[0]

    def ops(self, output: Any) -> list[Any]:
        """The ops that a value comes from, each as often as it is there, in order."""
        found, seen, waiting = [], set(), [output]
        while waiting:
            made = self.made.get(waiting.pop())
            if made is None or made[2] in seen:
                continue
            seen.add(made[2])
            if made[0] != "Constant":  # a constant in the model, however it is written
                found.append(made[0])
            waiting += made[1]
        return sorted(found)


def paths(given: Any, ran: Any, outputs: Any) -> Any:
    """{output: path} of a model, from its bytes and those of the graph that ran."""
    before, after = Graph(given), Graph(ran)
    out = {}
    for name in outputs:
        was, now = before.ops(name), after.ops(name)
        if was == now:
            out[name] = AS_WRITTEN
        elif not now:
            out[name] = FOLDED
        else:
            kinds = list(dict.fromkeys(now))
            more = f" + {len(kinds) - MOST} more" if len(kinds) > MOST else ""
            out[name] = f"{REWRITTEN}: {' + '.join(kinds[:MOST])}{more}"
    return out


def tiny_model(opset: int = 13, ir: int = 4) -> bytes:
    """Bytes of a one-node Relu model, without the onnx package."""

    def field(n: int, v: int | bytes) -> bytes:
        return bytes([n << 3]) + bytes([v]) if isinstance(v, int) else bytes([n << 3 | 2, len(v)]) + v

    def value(name: bytes) -> bytes:
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, b"")))

    node = field(1, b"x") + field(2, b"y") + field(4, b"Relu")
    graph = field(1, node) + field(2, b"g") + field(11, value(b"x")) + field(12, value(b"y"))
    return field(1, ir) + field(7, graph) + field(8, field(2, opset))
