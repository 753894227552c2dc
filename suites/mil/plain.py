"""The plain description of a pymil program: what a ``Model`` of format "mil" holds.

    b"MILP" | u32 header length | header JSON | arrays, each at a multiple of 8
    header = {"opset": "ios17", "inputs": [[name, dtype, shape, kind]], "consts": [[dtype, shape, offset]],
              "ops": [[op, {slot: ref}, [out names]]], "outputs": [name]}
    ref    = {"v": name} | {"c": const index} | {"l": [ref]} | {"p": literal} | {"s": [list constant]} | {"b": block}
    block  = {"inputs": [name], "ops": [...], "outputs": [ref]}

kind is "tensor" or "state"; dtypes are ours; sub-byte integers take a byte an element; string constants carry their
values in place of the offset.  It says what the ``mb.*`` calls say, needs coremltools only where it is turned into a
program (``harness/backends/coremltools_program.py``), and is what our interpreter runs.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType, of
from harness.core.errors import FormatError
from harness.core.instance import Arg, Graph, Node

MAGIC = b"MILP"
_BYTES = {"i4": np.int8, "i2": np.int8, "u4": np.uint8, "u2": np.uint8}  # a plain byte an element, sign extended


class Program:
    """A plain program being built: ops side by side in one function."""

    def __init__(self, opset: str) -> None:
        self.opset = opset
        self.inputs: list[list[Any]] = []
        self.ops: list[list[Any]] = []
        self.outputs: list[str] = []
        self.extra: dict[str, Any] = {}  # more of the header: passes to run
        self._consts: list[list[Any]] = []
        self._blob = bytearray()

    def const(self, a: np.ndarray, dtype: DType | None = None) -> dict[str, int]:
        """A reference to a constant; ``dtype`` where the array alone does not tell (u1, u3, u6)."""
        d = dtype or of(a)
        if d.kind == "s":
            self._consts.append(
                ["str", list(a.shape), [x.decode() if isinstance(x, bytes) else str(x) for x in a.ravel()]]
            )
        else:
            self._consts.append([d.name, list(a.shape), len(self._blob)])
            raw = a.astype(_BYTES[d.name]) if d.name in _BYTES else a
            self._blob += np.ascontiguousarray(raw).tobytes()
            self._blob += b"\0" * (-len(self._blob) % 8)
        return {"c": len(self._consts) - 1}

    def dumps(self) -> bytes:
        body = {"opset": self.opset, "inputs": self.inputs, "consts": self._consts, "ops": self.ops}
        head = json.dumps({**body, "outputs": self.outputs, **self.extra}, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        return MAGIC + struct.pack("<I", len(head)) + head + bytes(self._blob)


def loads(data: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Header and constants; raises FormatError."""
    if data[:4] != MAGIC:
        raise FormatError("not a plain MIL program: it does not start with MILP")
    try:
        (n,) = struct.unpack_from("<I", data, 4)
        h = json.loads(data[8 : 8 + n])
        consts = []
        for name, shape, where in h["consts"]:
            if name == "str":
                consts.append(np.array(where, object).reshape(shape))
                continue
            d = BY_NAME[name].np
            count = int(np.prod(shape, dtype=np.int64))
            a = np.frombuffer(data, _BYTES.get(name, d), count, 8 + n + where).reshape(shape)
            consts.append(a.astype(d) if name in _BYTES else a)
    except (struct.error, KeyError, ValueError, TypeError) as e:
        raise FormatError(f"plain MIL program: {type(e).__name__}: {e}") from e
    return h, consts


def graph(data: bytes) -> Graph:
    """The program as a Graph: every constant argument becomes an entry of ``consts``, blocks become attributes."""
    h, consts = loads(data)
    g = _block_graph({"inputs": [], "ops": h["ops"], "outputs": [{"v": n} for n in h["outputs"]]}, h, consts)
    for name, dtype, shape, kind in h["inputs"]:
        dims = tuple(n if isinstance(n, int) else 1 for n in shape)
        free = tuple(i for i, n in enumerate(shape) if not isinstance(n, int))
        g.inputs.append((name, Arg(BY_NAME[dtype], dims, kind=kind, dynamic=free)))
    g.meta["opset"] = h["opset"]
    return g


def _block_graph(b: dict[str, Any], h: dict[str, Any], consts: list[np.ndarray]) -> Graph:
    g = Graph()
    g.inputs = [(n, Arg(BY_NAME["f32"], ())) for n in b["inputs"]]
    made: dict[str, str] = {}

    def value(r: dict[str, Any], at: str) -> str | list[str]:
        if "v" in r:
            return r["v"]
        if "l" in r:
            return [value(x, f"{at}.{i}") for i, x in enumerate(r["l"])]  # type: ignore[misc]
        name = made.setdefault(at, f"{at}#const")
        if "c" in r:
            g.consts[name] = consts[r["c"]]
            d = BY_NAME[h["consts"][r["c"]][0]]
            if of(consts[r["c"]]) is not d:  # u1, u3 and u6 live in uint8 arrays
                g.meta.setdefault("dtypes", {})[name] = d.name
        elif "s" in r:
            g.consts[name] = np.array(r["s"], object if any(isinstance(x, str) for x in r["s"]) else np.int64)
        else:
            p = r["p"]
            kind = {str: object, bool: np.bool_, float: np.float32}.get(
                type(p[0] if isinstance(p, list) and p else p), np.int32
            )
            g.consts[name] = np.array(p, kind)
        return name

    for i, (op, args, outs) in enumerate(b["ops"]):
        inputs: dict[str, str | list[str] | None] = {}
        attrs: dict[str, Any] = {}
        for slot, r in args.items():
            if "b" in r:
                attrs[slot] = _block_graph(r["b"], h, consts)
            else:
                inputs[slot] = value(r, f"{outs[0] if outs else i}:{slot}")
        g.nodes.append(Node(op, inputs, list(outs), attrs))
    g.outputs = [value(r, f"out{i}") for i, r in enumerate(b["outputs"])]  # type: ignore[misc]
    return g
