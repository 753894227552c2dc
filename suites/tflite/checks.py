"""What a TFLite file must be before anything in it is computed: indices that exist, data of the stated size, valid
quantisation parameters.

Source: schema.fbs.  An index of -1 stands for an optional operand that is left out, and for nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.core.dtypes import BY_NAME, DType
from harness.core.errors import FormatError
from harness.core.instance import Arg
from suites.tflite import custom, schemas
from suites.tflite import flatbuffers as fb
from suites.tflite.builder import CODES, RESOURCE, TYPES
from suites.tflite.quantisation import misquantised

DTYPES = {code: BY_NAME[name] for name, code in TYPES.items()}
OPS = {code: name for name, code in CODES.items()}
_TYPE_NAMES = {code: name for name, code in fb.ENUMS["TensorType"].items()}


def check_model(model: dict[str, Any], size: int) -> None:
    """Check the tables of a decoded model.  size: bytes of the file.

    Raises FormatError that names the place in the file, what was expected there, and what came."""
    graphs = model.get("subgraphs", [])
    if not graphs:
        raise FormatError("subgraphs: expected at least one, got none")
    for i, c in enumerate(model.get("operator_codes", [])):
        code = code_of(c)
        if code not in OPS:
            raise FormatError(f"operator_codes[{i}]: expected a builtin operator of the schema, got number {code}")
        if OPS[code] == "CUSTOM" and op_of(c) not in custom.OPS:
            raise FormatError(
                f"operator_codes[{i}].custom_code: expected {' or '.join(custom.OPS)}, got {c.get('custom_code', '')!r}"
            )
    for i, b in enumerate(model.get("buffers", [])):
        if b.get("offset", 0) > 1 and b["offset"] + b.get("size", 0) > size:
            raise FormatError(
                f"buffers[{i}]: expected data inside of the file of {size} bytes, got {b.get('size', 0)} "
                f"bytes at {b['offset']}"
            )
    for i, g in enumerate(graphs):
        _check_graph(model, g, f"subgraphs[{i}]")


def code_of(c: dict[str, Any]) -> int:
    """Number of the builtin operator: the older field holds at most 127."""
    return max(c.get("deprecated_builtin_code", 0), c.get("builtin_code", 0))


def op_of(c: dict[str, Any]) -> str:
    """Name of an operator code's operator; of a custom one, the name that the file gives it."""
    name = OPS[code_of(c)]
    return str(c.get("custom_code", "")) if name == "CUSTOM" else name


def _check_graph(model: dict[str, Any], g: dict[str, Any], where: str) -> None:
    tensors = g.get("tensors", [])
    for i, t in enumerate(tensors):
        _check_tensor(model, tensors, t, f"{where}.tensors[{i}]")
    for what in ("inputs", "outputs"):
        _check_indices(g.get(what, ()), len(tensors), f"{where}.{what}", "tensor")
    for i, op in enumerate(g.get("operators", [])):
        at = f"{where}.operators[{i}]"
        codes = model.get("operator_codes", [])
        _check_indices([op.get("opcode_index", 0)], len(codes), f"{at}.opcode_index", "operator code")
        _check_indices(op.get("inputs", ()), len(tensors), f"{at}.inputs", "tensor", least=-1)
        for what in ("outputs", "intermediates"):
            _check_indices(op.get(what, ()), len(tensors), f"{at}.{what}", "tensor")
        _check_options(model, op_of(codes[op.get("opcode_index", 0)]), op, at)


def _check_indices(given: Iterable[Any], n: int, where: str, what: str, least: int = 0) -> None:
    for k in given:
        if not least <= k < n:
            low = "-1 (left out) or " if least < 0 else ""
            raise FormatError(f"{where}: expected {low}the index of one of {n} {what}s, got {k}")


def _check_tensor(model: dict[str, Any], tensors: list[Any], t: dict[str, Any], where: str) -> None:
    code, shape = t.get("type", 0), [int(n) for n in t.get("shape", ())]
    if code not in DTYPES and code != RESOURCE:
        raise FormatError(
            f"{where}.type: expected a type that holds numbers or text, got {_TYPE_NAMES.get(code, f'number {code}')}"
        )
    if any(n < 0 for n in shape):
        raise FormatError(f"{where}.shape: expected extents from 0 on, got {shape}")
    buffers = model.get("buffers", [])
    index = t.get("buffer", 0)
    if index:
        _check_indices([index], len(buffers), f"{where}.buffer", "buffer")
    if code == RESOURCE:
        return
    d = DTYPES[code]
    if index and d.kind != "s" and "sparsity" not in t:
        _check_size(buffers[index], d, shape, where)
    if "quantization" in t:
        _check_quantisation(tensors, t["quantization"], d, shape, f"{where}.quantization")


def _check_size(buffer: dict[str, Any], d: DType, shape: list[int], where: str) -> None:
    have = buffer["size"] if buffer.get("offset", 0) > 1 else len(buffer.get("data", ()))
    n = math.prod(shape)
    need = -(-n * d.bits // 8) if d.kind in "iu" else n * d.np.itemsize
    if have and have != need:  # without data: a tensor that an operator writes
        raise FormatError(f"{where}: expected {need} bytes of data for {d} {shape}, got {have}")


def _check_quantisation(tensors: list[Any], q: dict[str, Any], d: DType, shape: list[int], where: str) -> None:
    block = q.get("details", {}).get("block_size") if isinstance(q.get("details"), dict) else None
    if block is not None:
        scales = q["details"].get("scales", 0)
        _check_indices([scales], len(tensors), f"{where}.details.scales", "tensor")
        if block < 1 or not shape or shape[-1] % block:
            raise FormatError(
                f"{where}.details: expected a block size that divides the last axis of {shape}, got {block}"
            )
        return
    scale = q.get("scale", ())
    if not len(scale):
        return
    zero = q.get("zero_point", ())
    if len(zero) not in (0, len(scale)):
        raise FormatError(f"{where}.zero_point: expected one for each of {len(scale)} scales, got {len(zero)}")
    bad = [float(s) for s in scale if not 0 < s < np.inf]
    if bad:
        raise FormatError(f"{where}.scale: expected positive numbers, got {bad[0]!r}")
    if d.kind in "iu":
        why = misquantised(Arg(d, tuple(shape), quant=quant_of(q)))
        if why is not None:
            raise FormatError(f"{where}: {why}")


def quant_of(q: dict[str, Any]) -> dict[str, Any] | None:
    """Scales and zero points of a QuantizationParameters table, None where it has no scale."""
    if not len(q.get("scale", ())):
        return None
    zero = q.get("zero_point")
    return {
        "scale": [float(s) for s in q["scale"]],
        "zero_point": [int(z) for z in zero] if zero is not None and len(zero) else [0] * len(q["scale"]),
        "axis": int(q.get("quantized_dimension", 0)),
    }


def _check_options(model: dict[str, Any], op: str, raw: dict[str, Any], where: str) -> None:
    """The options of a node: enum members that exist, subgraphs that exist."""
    rows = schemas.rows(op)
    if not rows:
        raise FormatError(f"{where}: {op}: no kernel of the runtime takes this operator")
    schema = rows[-1]
    if op in custom.OPS:
        try:
            custom.unpack(op, bytes(raw.get("custom_options", b"")))
        except FormatError as e:
            raise FormatError(f"{where}.{e}") from None
        return
    field = options_of(schema)
    table = schema.extra["options"]
    kind = raw.get(f"{field}_type", 0)
    known = (
        fb.union_number("builtinOptions2" if schema.extra["union"] == 2 else "builtinOptions", table) if table else 0
    )
    if kind and table and kind != known:
        raise FormatError(f"{where}.{field}: {op}: expected {table}, number {known}, got a table of number {kind}")
    for name, value in raw.get(field, {}).items():
        a = schema.attrs.get(name)
        if a is None:
            continue
        at = f"{where}.{field}.{name}"
        if a.type in ("graph", "graphs"):
            _check_indices([value] if a.type == "graph" else value, len(model["subgraphs"]), at, "subgraph")
        elif a.type == "dtype":
            if value not in DTYPES:
                raise FormatError(f"{at}: expected a type that holds numbers or text, got number {value}")
        elif a.enum is not None and member(a.enum, value) is None:
            raise FormatError(f"{at}: expected {' or '.join(a.enum)}, got number {value}")


def options_of(schema: Any) -> str:
    """Field of an operator table that holds its options."""
    return "builtin_options2" if schema.extra["union"] == 2 else "builtin_options"


def member(members: tuple[str, ...], number: int) -> str | None:
    """Name of an enum member, None for a number that the enum has not."""
    numbers = next(m for m in fb.ENUMS.values() if tuple(m) == members)
    return next((k for k, v in numbers.items() if v == number), None)
