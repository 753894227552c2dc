"""Backends whose graph passes do wrong on purpose: after the real pass one thing about the program is changed."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from harness.backends import coremltools_mil
from harness.backends.coremltools_mil import Passes, RoundTrip, Unsupported
from harness.backends.coremltools_program import unpack

_UNARY = ("abs", "square", "tanh", "exp", "sqrt", "floor", "relu")


class _Wrong(Passes):
    """Plants a fault in what the pass left; ``Unsupported`` where the program has no place for it, or shows nothing."""

    def load(self, model: bytes, format: str) -> Any:
        if not unpack(model)[0]["fires"]:
            raise Unsupported("faults are planted where the pass acts")
        run, after, *rest = super().load(model, format)
        h, consts = unpack(after)
        self.plant(h, consts)
        return (run, after, *rest), (run, pack(h, [(c[0], a) for c, a in zip(h["consts"], consts)]), *rest)

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        right, wrong = (super(_Wrong, self).run(one, inputs) for one in handle)
        if all(np.array_equal(right[n], wrong[n], equal_nan=right[n].dtype.kind == "f") for n in right):
            raise Unsupported("the fault changes no value")
        return wrong

    def plant(self, h: dict[str, Any], consts: list[np.ndarray]) -> None:
        raise NotImplementedError


class OneWeight(_Wrong):
    """One element of the largest float constant that an op computes with is off by a quarter, or by a quarter of 1."""

    name = "passes-one-weight"

    def plant(self, h: dict[str, Any], consts: list[np.ndarray]) -> None:
        floats = [i for i, c in enumerate(h["consts"]) if c[0] in ("f16", "f32") and consts[i].size]
        if not floats:
            raise Unsupported("no float constant")
        i = max(floats, key=lambda i: consts[i].size)
        consts[i] = consts[i].copy()
        flat = consts[i].reshape(-1)
        flat[-1] = flat[-1] * 1.25 + 0.25


class OneOp(_Wrong):
    """The last op of one input and its shape is left out."""

    name = "passes-one-op"

    def plant(self, h: dict[str, Any], consts: list[np.ndarray]) -> None:
        for op in reversed(h["ops"]):
            if op[0] in _UNARY and "v" in op[1]["x"]:
                op[0], op[1] = "identity", {"x": op[1]["x"]}
                return
        raise Unsupported("no op that could be left out")


class Swapped(_Wrong):
    """The first two outputs change places."""

    name = "passes-swapped"

    def plant(self, h: dict[str, Any], consts: list[np.ndarray]) -> None:
        outs = h["outputs"]
        if len(outs) < 2:
            raise Unsupported("one output only")
        outs[0], outs[1] = outs[1], outs[0]


class Idle(Passes):
    """The pass does not run at all."""

    name = "passes-idle"

    def apply(self, model: bytes) -> Any:
        if not unpack(model)[0]["fires"]:
            raise Unsupported("faults are planted where the pass acts")
        real, self.passes.run = self.passes.run, lambda prog, h: None
        try:
            return super().apply(model)
        finally:
            self.passes.run = real


class PurePython(RoundTrip):
    """The export, where coremltools has no native library."""

    def __init__(self) -> None:
        coremltools_mil.find_spec = lambda name: None
        super().__init__()


def pack(h: dict[str, Any], arrays: list[tuple[str, np.ndarray]]) -> bytes:
    """Inverse of ``unpack``; arrays: (our dtype name, array)."""
    blob = bytearray()
    consts: list[Any] = []
    for name, a in arrays:
        if name == "str":
            consts.append(["str", list(a.shape), [str(x) for x in a.ravel()]])
            continue
        consts.append([name, list(a.shape), len(blob)])
        blob += np.ascontiguousarray(a).tobytes()
        blob += b"\0" * (-len(blob) % 8)
    head = json.dumps(dict(h, consts=consts), separators=(",", ":")).encode()
    head += b" " * (-(len(head)) % 8)
    return b"MILP" + struct.pack("<I", len(head)) + head + bytes(blob)
