"""The tools of the onnx package as backends: shape inference, and the version converter up and down.

They are judged on the same instances as runtimes.  Shape inference gives types alone.  The reference interpreter runs a
converted model, so a difference comes from the conversion.  Neither tool validates models, so an invalid instance gets
no verdict (``validates`` in ``info``).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference, version_converter
from opconform_worker import Reader, TypeOnly, Unsupported, Writer, recv_frame, send_frame

_NAMES = {
    TensorProto.FLOAT: "f32",
    TensorProto.UINT8: "u8",
    TensorProto.INT8: "i8",
    TensorProto.UINT16: "u16",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.STRING: "str",
    TensorProto.BOOL: "bool",
    TensorProto.FLOAT16: "f16",
    TensorProto.DOUBLE: "f64",
    TensorProto.UINT32: "u32",
    TensorProto.UINT64: "u64",
    TensorProto.COMPLEX64: "c64",
    TensorProto.COMPLEX128: "c128",
    TensorProto.BFLOAT16: "bf16",
    TensorProto.FLOAT8E4M3FN: "f8e4m3fn",
    TensorProto.FLOAT8E4M3FNUZ: "f8e4m3fnuz",
    TensorProto.FLOAT8E5M2: "f8e5m2",
    TensorProto.FLOAT8E5M2FNUZ: "f8e5m2fnuz",
    TensorProto.UINT4: "u4",
    TensorProto.INT4: "i4",
}
for _number, _name in (
    ("FLOAT4E2M1", "f4e2m1"),
    ("FLOAT8E8M0", "f8e8m0"),
    ("UINT2", "u2"),
    ("INT2", "i2"),
    ("FLOAT6E2M3", "f6e2m3"),
    ("FLOAT6E3M2", "f6e3m2"),
):
    if hasattr(TensorProto, _number):
        _NAMES[getattr(TensorProto, _number)] = _name


class _Tool:
    formats = ("onnx",)
    packages = ("onnx",)
    family = "onnx-tools"
    pack = 16

    def version(self) -> str:
        return str(onnx.__version__)

    def info(self) -> dict[str, Any]:
        return {"opset": onnx.defs.onnx_opset_version(), "ir": int(onnx.IR_VERSION), "validates": False}


class ShapeInference(_Tool):
    """``onnx.shape_inference.infer_shapes``; declared outputs are removed first.

    strict: types are checked, data is propagated and errors are raised.  Without it the package passes over an op that
        it cannot infer.  Then a missing type is no answer, but a wrong one is still wrong.
    """

    def __init__(self, strict: bool = True, name: str = "onnx-shape-inference") -> None:
        self.strict, self.name = strict, name

    def load(self, model: bytes, format: str) -> dict[str, Any]:
        proto = onnx.load_model_from_string(model)
        names = _untyped(proto)
        s = self.strict
        done = shape_inference.infer_shapes(proto, check_type=s, strict_mode=s, data_prop=s)
        return _types(done, names)

    def run(self, handle: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return handle


class DataPropagation(_Tool):
    """Shape inference with the values in the model: what it propagates, element by element.

    Every input becomes an initializer.  Every output of i64 with at most one axis becomes the shape of a
    ConstantOfShape; the extents inferred for that are the propagated values.  If all are known they are judged as
    values, otherwise only the inferred type is.  Each instance has a model of its own, since a refused probe is no
    answer.
    """

    name = "onnx-data-propagation"
    pack = 1

    def load(self, model: bytes, format: str) -> Any:
        return onnx.load_model_from_string(model)

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        proto = onnx.ModelProto()
        proto.CopyFrom(handle)
        opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 0)
        names = _untyped(proto)
        given = {k: a for k, a in inputs.items() if isinstance(a, np.ndarray) and a.dtype.kind in "ifb" and a.size < 64}
        for name, a in given.items():
            proto.graph.initializer.append(numpy_helper.from_array(a, name))
        if proto.ir_version >= 4:
            kept = [i for i in proto.graph.input if i.name not in given]
            del proto.graph.input[:]
            proto.graph.input.extend(kept)
        plain = _types(shape_inference.infer_shapes(proto, data_prop=True), names)
        probes = {n: t for n, t in plain.items() if t.dtype == "i64" and t.shape is not None and len(t.shape) <= 1}
        if opset < 9 or not probes:  # ConstantOfShape came with opset 9
            return plain
        for name, t in probes.items():
            at = name
            if not t.shape:
                at = f"{name}?1"
                attrs: dict[str, Any] = {"axes": [0]} if opset < 13 else {}
                if not attrs:
                    proto.graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), f"{name}?0"))
                ins = [name] if attrs else [name, f"{name}?0"]
                proto.graph.node.append(helper.make_node("Unsqueeze", ins, [at], **attrs))
            proto.graph.node.append(helper.make_node("ConstantOfShape", [at], [f"{name}?"]))
            proto.graph.output.append(onnx.ValueInfoProto(name=f"{name}?"))
        found = _types(shape_inference.infer_shapes(proto, data_prop=True), [f"{n}?" for n in probes])
        for name, t in probes.items():
            shape = found[f"{name}?"].shape
            if shape is not None and all(isinstance(x, int) for x in shape):
                plain[name] = np.array(shape, np.int64).reshape(() if not t.shape else (len(shape),))
        return plain


def _untyped(proto: Any) -> list[str]:
    """Take the declared types off the outputs; their names."""
    for o in proto.graph.output:
        o.ClearField("type")
    return [o.name for o in proto.graph.output]


def _types(done: Any, names: list[str]) -> dict[str, Any]:
    types = {v.name: v.type for v in [*done.graph.value_info, *done.graph.output]}
    return {n: _known(types.get(n)) for n in names}


def _known(t: Any) -> TypeOnly:
    """What a TypeProto says; nothing where it is no tensor or absent."""
    if t is None or t.WhichOneof("value") != "tensor_type":
        return TypeOnly(None, None)
    tensor = t.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    return TypeOnly(_NAMES.get(tensor.elem_type), shape)


_GAPS = (
    "No Adapter",
    "Unsupported",
    "not supported",
    "No schema",
    "no schema",
    "no registered schema",
    "is a param instead of an int",
)


def _declared(text: str) -> bool:
    """Is a refusal the converter's stated gap: a pair of versions without an adapter, or an adapter that finds what the
    other version cannot say?  Anything else went wrong on the way."""
    return any(w in text for w in ("/version_converter/adapters/", "/version_converter/convert.h", *_GAPS))


class Converter(_Tool):
    """``onnx.version_converter``: to the newest opset ("up") or to the one before the model's ("down")."""

    def __init__(self, direction: str = "up", name: str = "onnx-converter-up") -> None:
        self.direction, self.name = direction, name
        self._reference: Any = None

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
            if _declared(text):
                raise Unsupported(text) from None
            raise
        return bytes(done.SerializeToString())

    def run(self, handle: bytes, inputs: dict[str, Any]) -> dict[str, Any]:
        """What our reference makes of the converted model, in a process of the host's Python."""
        if self._reference is None:
            self._reference = _reference()
        w = Writer()
        header = {"dialect": "onnx", "model": w.bytes(handle), "names": list(inputs)}
        header["values"] = [w.put(v) for v in inputs.values()]
        send_frame(self._reference, header, w.parts, w.size)
        frame = recv_frame(self._reference)
        if frame is None:
            raise MemoryError("the reference ended while it ran the converted model")
        answer, reader = frame[0], Reader(frame[1])
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return dict(zip(answer["names"], map(reader.get, answer["values"])))


def _reference() -> Any:
    """The socket of a process that runs models with the reference."""
    home = json.loads(os.environ["OPCONFORM_HOST"])
    ours, theirs = socket.socketpair()
    code = f"import sys; sys.path[:] = {home['path']!r}; from harness.backends.native import serve; "
    with theirs:
        subprocess.Popen(
            [home["python"], "-c", code + f"serve({theirs.fileno()})"],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
        )
    return ours
