"""Element types of an instance's outputs, and the quantisation that operands and outputs carry."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import DType, dtype, int_range
from harness.core.instance import Arg, Instance
from harness.declare import Draw, OpVersion, Slot

OWN = "own-scales"  # a tag of entries that move elements between tensors whose scales nothing relates
_SCALES = (0.0078125, 0.1, 0.5, 1.0, 0.00392156862745098, 0.037, 0.25, 2.0, 0.0123)


def draw_quant(d: Draw, dt: DType) -> dict[str, Any]:
    """Per-tensor scale and zero point for an integer type; 16-bit tensors are symmetric (zero point 0).

    Source: TFLite 8-bit quantization specification; scales are stored as f32.
    """
    lo, hi = int_range(dt)
    zero = 0 if dt.bits > 8 else d.pick((0, lo, hi, (lo + hi + 1) // 2, d.int(lo, hi)))
    scale = d.pick(_SCALES)
    if dt.bits == 16:
        scale /= 64
    return {"scale": [float(np.float32(scale))], "zero_point": [zero], "axis": 0}


def share(version: OpVersion, d: Draw, inst: Instance) -> None:
    """Give every operand of the main type without parameters, and the outputs of that type, one common set; where
    nothing demands that (``OWN``), now and then each has its own."""
    schema, own = version.schema, OWN in version.entry.sampling.tags and d.chance(8)
    main = next(iter(schema.types))
    quant: dict[str, Any] | None = None
    for slot in schema.inputs:
        if slot.type != main:
            continue
        a = inst.args.get(slot.name)
        for one in a if isinstance(a, list) else [a]:
            if one is not None and one.quant is None and one.dtype.kind in "iu":
                if quant is None:
                    quant = draw_quant(d, one.dtype)
                one.quant = draw_quant(d, one.dtype) if own else quant
    if quant is None:
        return
    outs = inst.attrs.setdefault("@outputs", [])
    outs.extend([None] * (inst.outs - len(outs)))
    for i in range(inst.outs):
        slot = schema.outputs[min(i, len(schema.outputs) - 1)]
        if own and slot.type == main:
            quant = draw_quant(d, _bound(version, slot, inst))
        if outs[i] is None:
            t = _bound(version, slot, inst)
            outs[i] = {"dtype": t.name, "quant": quant} if slot.type == main else {"dtype": t.name}
        elif slot.type == main and "quant" not in outs[i]:
            outs[i] = {**outs[i], "quant": quant}


def misquantised(a: Arg) -> str | None:
    """What is wrong with the quantisation that an argument carries.

    Source: schema.fbs, QuantizationParameters and BlockwiseQuantization.
    """
    q = a.quant
    needs = {"scale", "zero_point"}
    if not isinstance(q, dict) or not needs <= q.keys() <= {*needs, "axis", "block"}:
        return f"expected scale, zero_point and perhaps axis or block, got {q!r}"
    scale, zero, axis, block = q["scale"], q["zero_point"], q.get("axis", 0), q.get("block")
    if not isinstance(scale, list) or not scale or not all(_is(x, float, int) and 0 < x < 1e39 for x in scale):
        return f"scale: expected positive numbers, got {scale!r}"
    if a.dtype.kind not in "iu":
        return f"expected integers, got {a.dtype}"
    low, high = int_range(a.dtype)
    if not isinstance(zero, list) or not all(_is(x, int) and low <= x <= high for x in zero):
        return f"zero_point: expected values of {a.dtype}, got {zero!r}"
    if len(zero) != len(scale) and block is None:
        return f"expected a zero point for each of {len(scale)} scales, got {len(zero)}"
    if not _is(axis, int) or (block is not None and not (_is(block, int) and block > 0)):
        return f"expected numbers of an axis and of elements in a block, got {axis!r} and {block!r}"
    if len(scale) > 1 and block is None and a.shape and dict(enumerate(a.shape)).get(axis) != len(scale):
        return f"expected a scale for each position of axis {axis} of {list(a.shape)}, got {len(scale)}"
    return None


def _is(x: Any, *types: type) -> bool:
    return type(x) in types


def output_types(version: OpVersion, inst: Instance) -> list[tuple[DType, Any]]:
    """(dtype, quantisation or None) of every output that the instance asks for.

    From ``@outputs`` where the draw fixed them, else from the input whose type name the output shares.
    """
    declared = inst.attrs.get("@outputs")
    outs: list[tuple[DType, Any]] = []
    slots = version.schema.outputs
    for i in range(inst.outs):
        if declared is not None and i < len(declared) and declared[i] is not None:
            o = declared[i]
            outs.append((dtype(o["dtype"]) if isinstance(o["dtype"], str) else o["dtype"], o.get("quant")))
            continue
        slot = slots[min(i, len(slots) - 1)]
        outs.append((_bound(version, slot, inst), None))
    return outs


def _bound(version: OpVersion, slot: Slot, inst: Instance) -> DType:
    for s in version.schema.inputs:
        if s.type == slot.type:
            a = inst.args.get(s.name)
            a = a[0] if isinstance(a, list) and a else a
            if a is not None and not isinstance(a, list):
                return a.dtype
    return version.schema.dtypes(slot.type)[0]
