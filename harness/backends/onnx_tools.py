"""The tools of the onnx package as subjects: shape inference, and the version converter up and down.

They are judged on the same instances as runtimes.  Shape inference gives types alone; a converted model is run by our
own interpreter, so that a difference is the conversion's.  Neither is a validator: what they make of an invalid model
is no verdict (``info`` says so).
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, shape_inference, version_converter
from opconform_worker import TypeOnly, Unsupported

_NAMES = {
    TensorProto.FLOAT: "f32", TensorProto.UINT8: "u8", TensorProto.INT8: "i8", TensorProto.UINT16: "u16",
    TensorProto.INT16: "i16", TensorProto.INT32: "i32", TensorProto.INT64: "i64", TensorProto.STRING: "str",
    TensorProto.BOOL: "bool", TensorProto.FLOAT16: "f16", TensorProto.DOUBLE: "f64", TensorProto.UINT32: "u32",
    TensorProto.UINT64: "u64", TensorProto.COMPLEX64: "c64", TensorProto.COMPLEX128: "c128",
    TensorProto.BFLOAT16: "bf16", TensorProto.FLOAT8E4M3FN: "f8e4m3fn", TensorProto.FLOAT8E4M3FNUZ: "f8e4m3fnuz",
    TensorProto.FLOAT8E5M2: "f8e5m2", TensorProto.FLOAT8E5M2FNUZ: "f8e5m2fnuz", TensorProto.UINT4: "u4",
    TensorProto.INT4: "i4", TensorProto.FLOAT4E2M1: "f4e2m1",
}  # fmt: skip
for _number, _name in (("FLOAT8E8M0", "f8e8m0"), ("UINT2", "u2"), ("INT2", "i2")):
    if hasattr(TensorProto, _number):
        _NAMES[getattr(TensorProto, _number)] = _name


class _Tool:
    formats = ("onnx",)
    pack = 16

    def version(self) -> str:
        return str(onnx.__version__)

    def info(self) -> dict[str, Any]:
        return {"opset": onnx.defs.onnx_opset_version(), "ir": int(onnx.IR_VERSION), "validates": False}


class ShapeInference(_Tool):
    """``onnx.shape_inference.infer_shapes``: strict, with types checked and data propagated; declared outputs
    removed."""

    name = "onnx-shape-inference"

    def load(self, model: bytes, format: str) -> dict[str, Any]:
        proto = onnx.load_model_from_string(model)
        names = [o.name for o in proto.graph.output]
        for o in proto.graph.output:
            o.ClearField("type")
        done = shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
        types = {v.name: v.type for v in [*done.graph.value_info, *done.graph.output]}
        return {n: _known(types.get(n)) for n in names}

    def run(self, handle: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return handle


def _known(t: Any) -> TypeOnly:
    """What a TypeProto says; nothing where it is no tensor or absent."""
    if t is None or t.WhichOneof("value") != "tensor_type":
        return TypeOnly(None, None)
    tensor = t.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    return TypeOnly(_NAMES.get(tensor.elem_type), shape)


class Converter(_Tool):
    """``onnx.version_converter``: to the newest opset ("up") or to the one before the model's ("down")."""

    def __init__(self, direction: str = "up", name: str = "onnx-converter-up") -> None:
        self.direction, self.name = direction, name
        from harness.spec import registry

        self._dialect = registry.dialect("onnx")

    def load(self, model: bytes, format: str) -> bytes:
        proto = onnx.load_model_from_string(model)
        now = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), None)
        newest = onnx.defs.onnx_opset_version()
        if now is None:
            raise Unsupported("a model without operators of the default domain")
        target = newest if self.direction == "up" else now - 1
        if target == now or target < 1:
            raise Unsupported(f"opset {now}: nothing to convert {self.direction}")
        try:
            done = version_converter.convert_version(proto, target)
        except Exception as e:
            text = str(e)
            if self.direction == "down":  # what an older opset cannot say may be refused
                raise Unsupported(text) from None
            if any(w in text for w in ("No Adapter", "Unsupported", "not supported", "No schema", "no schema")):
                raise Unsupported(text) from None
            raise
        return bytes(done.SerializeToString())

    def run(self, handle: bytes, inputs: dict[str, Any]) -> dict[str, Any]:
        names = self._dialect.parse(handle).outputs
        return dict(zip(names, self._dialect.run_model(handle, inputs)))
