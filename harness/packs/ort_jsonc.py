"""The form ``ort-jsonc``: the operator tests of ONNX Runtime Web (js/web/test/data/ops/*.jsonc).

One file for each op version holds its instances: node, attributes, inputs and outputs.  The format has no tolerance.
Its reader compares floats with a threshold of its own (js/web/test/test-runner.ts), which ``ABSOLUTE`` and ``RELATIVE``
are.  An instance whose derived bound is wider is left out: a right answer might fail there.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np

from harness.backends.exporting import onnx_files
from harness.core.dtypes import DType, of
from harness.core.instance import SKIPPED
from harness.core.quiet import quiet
from harness.declare import Expected, OpVersion
from harness.packs.bounds import EXACT, WITHIN, Rule
from harness.packs.covering import Uncoverable, covering, edges
from harness.packs.frozen import Frozen, LeftOut

ABSOLUTE, RELATIVE = 1e-4, 1e-6  # of the backend wasm, the narrowest: |a - b| < ABSOLUTE, or a / b below 1 + RELATIVE
# our element type -> the format's; the reader compares no other outputs
TYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "str": "string",
}
COMPARED = frozenset(["f32", "f64", "i8", "i16", "i32", "u8", "u16", "u32", "bool", "str"])
# onnx.proto3, TensorProto.DataType
NUMBERS = {
    name: number
    for number, name in enumerate(
        [
            "f32",
            "u8",
            "i8",
            "u16",
            "i16",
            "i32",
            "i64",
            "str",
            "bool",
            "f16",
            "f64",
            "u32",
            "u64",
            "c64",
            "c128",
            "bf16",
        ],
        1,
    )
}
SAFE = 2**53  # integers beyond are no numbers in JavaScript
ATTRIBUTES = {"float": "float", "int": "int", "str": "string", "floats": "floats", "ints": "ints", "strs": "strings"}


class OrtJsonc:
    """A file for each op version, and ``instances/ID.json`` for ``opconform judge``."""

    name = "ort-jsonc"
    dialects: tuple[str, ...] = ("onnx",)

    def __init__(self) -> None:
        self.tests: dict[str, list[dict[str, Any]]] = {}

    def files(self, frozen: Frozen) -> tuple[dict[str, bytes], str, dict[str, Any]]:
        """See ``Form``."""
        case = frozen.case
        if not frozen.outputs:
            raise LeftOut("the form has no instances that must be refused")
        rows = [pair for row in frozen.outputs for pair in row]
        if case.inst.attrs.get(SKIPPED) or _gap(frozen):
            raise LeftOut("an operand or output in the middle is left out")
        if case.inst.shared():
            raise LeftOut("one tensor for two operands")
        for e, rule in rows:
            _comparable(e, rule)
        v = case.version
        version = onnx_files.imported(bytes(frozen.model.data), v.op)  # of the op's own domain
        test: dict[str, Any] = {
            "name": frozen.id,
            "operator": v.op,
            "opset": {"domain": v.schema.domain, "version": version},
            "attributes": [_attribute(v, k, x) for k, x in case.inst.attrs.items() if not k.startswith("@")],
            "cases": [
                {
                    "name": f"{frozen.id}/{r}",
                    "inputs": [_tensor(x) for x in _operands(frozen, r)],
                    "outputs": [_tensor(e.value) for e, _ in row],
                }
                for r, row in enumerate(frozen.outputs)
            ],
        }
        try:
            line = covering(rows)
        except Uncoverable as e:
            raise LeftOut(e.why) from None
        name = f"{v.op}-{v.version}.jsonc"
        self.tests.setdefault(name, []).append(test)
        told = {"tolerance": {"rtol": line.rtol, "atol": line.atol}}
        return {f"instances/{frozen.id}.json": case.inst.dumps().encode() + b"\n"}, f"ops/{name}", told

    def rest(self) -> dict[str, bytes]:
        """See ``Form``."""
        head = "// Written by opconform pack. This format has no tolerance; manifest.json has that of each test.\n"
        return {
            f"ops/{name}": (head + json.dumps(tests, indent=1, allow_nan=False) + "\n").encode()
            for name, tests in sorted(self.tests.items())
        }


def _gap(frozen: Frozen) -> bool:
    """Is an operand absent before one that is given?"""
    given = [frozen.case.draws[0].get(s.name) is not None for s in frozen.case.version.schema.inputs]
    return any(b and not a for a, b in pairwise(given))


def _operands(frozen: Frozen, run: int) -> list[Any]:
    """The operands of a run in their order, constants too: the format knows inputs alone."""
    out: list[Any] = []
    for slot in frozen.case.version.schema.inputs:
        v = frozen.case.draws[run].get(slot.name)
        if v is not None:
            out += v if isinstance(v, list) else [v]
    return out


def _attribute(version: OpVersion, name: str, v: Any) -> dict[str, Any]:
    """An attribute with its type.  Raises LeftOut for one that has no form, such as a graph or a tensor."""
    if isinstance(v, DType):
        number = NUMBERS.get(v.name)
        if number is None:
            raise LeftOut(f"attribute {name}: {v.name}")
        return {"name": name, "data": number, "type": "int"}
    kind = ATTRIBUTES.get(version.schema.attrs[name].type)
    if kind is None:
        raise LeftOut(f"attribute {name}: {version.schema.attrs[name].type}")
    values = v if isinstance(v, list) else [v]
    if kind.startswith("float") and not all(map(math.isfinite, values)):
        raise LeftOut(f"attribute {name}: NaN or infinity")
    if kind.startswith("int") and any(abs(x) > SAFE for x in values):
        raise LeftOut(f"attribute {name}: an integer beyond 2**53")
    return {"name": name, "data": v, "type": kind}


def _tensor(a: Any) -> dict[str, Any]:
    """A tensor.  Raises LeftOut for what JSON has no number for."""
    if not isinstance(a, np.ndarray):
        raise LeftOut("a sequence, an optional or a map")
    d = of(a)
    if d.name not in TYPES:
        raise LeftOut(f"the form has no {d.name}")
    if d.kind == "f" and not np.isfinite(a).all():
        raise LeftOut("NaN or infinity, which JSON has no number for")
    if d.kind in "iu" and any(abs(x) > SAFE for x in a.ravel().tolist()):
        raise LeftOut("an integer beyond 2**53")
    data = [x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in a.ravel().tolist()]
    return {"data": data, "dims": list(a.shape), "type": TYPES[d.name]}


def _comparable(e: Expected, rule: Rule) -> None:
    """Raises LeftOut where the reader would fail a right answer."""
    if not isinstance(e.value, np.ndarray) or e.dtype.name not in COMPARED:
        raise LeftOut(f"the reader compares no {e.dtype.name} outputs")
    if rule.name == EXACT and rule.open is None:
        return
    if rule.name != WITHIN or rule.open is not None:
        raise LeftOut("the reader compares these outputs exactly")
    with quiet:
        for end in edges(e, rule):
            a, b = end.astype(np.float64), e.value.astype(np.float64)
            near = (a == b) | (np.abs(a - b) < ABSOLUTE)
            ratio = (a * b > 0) & (a / b < 1 + RELATIVE) & (b / a < 1 + RELATIVE)
            if not (near | ratio).all():
                raise LeftOut("the derived bound is wider than the reader's threshold")
