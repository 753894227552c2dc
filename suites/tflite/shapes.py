"""Which output shapes a model declares.

A converter writes the shape of every tensor that it can compute without the data.  Delegates read it before any kernel
prepares: XNNPACK does not take a node whose output has no shape.  So one instance in ``UNDECLARED_EVERY`` is a model
without output shapes, as a converter writes them for unknown extents.  Its attribute ``UNDECLARED`` says so.

Source: schema.fbs, Tensor.shape and Tensor.shape_signature.
"""

from __future__ import annotations

from typing import Any

from harness.core.instance import Graph, Instance
from harness.declare import Call, OpVersion, Results, Slotted

UNDECLARED = "@undeclared_shapes"
UNDECLARED_EVERY = 24

# Operators whose output has as many elements as the data says, whatever the operands are called.
BY_DATA = frozenset(
    (
        "BROADCAST_ARGS",
        "EMBEDDING_LOOKUP_SPARSE",
        "RANGE",
        "SEGMENT_SUM",
        "SKIP_GRAM",
        "UNIQUE",
        "WHERE",
    )
)


class _Recorded(dict[str, Any]):
    """The inputs of a call, with the slots that were read."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        super().__init__(inputs)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def parameter_slots(version: OpVersion, inst: Instance, given: dict[str, Any]) -> frozenset[str]:
    """Operands that the version reads as parameters (axes, sizes, shapes) and not as data: found by decoding the first
    instance that is asked for."""
    known: frozenset[str] | None = version.__dict__.get("_tflite_parameter_slots")
    if known is None:
        read: set[str] = set()
        for codec in version.param_codecs.values():
            inputs = _Recorded(given)
            codec.decode(Call(version, inst.attrs, inputs, inst.opset, None, version.dialect.call_of(inst, given).outs))
            read |= inputs.read
        data = {c.slot for c in version.tensor_codecs.values() if isinstance(c, Slotted)}  # read for their shape too
        known = version.__dict__["_tflite_parameter_slots"] = frozenset(read - data)
    return known


def declared(version: OpVersion, inst: Instance, given: dict[str, Any], results: Results) -> Results:
    """The outputs whose shape the model declares, None for the others."""
    if not results or UNDECLARED in inst.attrs or version.op in BY_DATA:
        return []
    if any(
        isinstance(x, Graph) or (isinstance(x, list) and x and isinstance(x[0], Graph)) for x in inst.attrs.values()
    ):
        return []
    for slot in parameter_slots(version, inst, given):
        a = inst.args.get(slot)
        if a is not None and (isinstance(a, list) or not a.const):
            return []
    return results
