"""OpenVINO on the CPU: reads ONNX and TFLite models.  It is an extra
(``pip install 'opconform[openvino]'``) and runs on request only.

This file runs in a worker process.  It requests inference in f32, in accuracy mode, on one thread, with subnormals
kept.  The CPU plug-in converts wider types to f32 and i32 ("CPU Device: Supported Inference Data Types").  So models
with 64-bit floats, and integers beyond 32 bits, are unsupported.

A compiled model stays alive as long as its process.  In 2026.4.1, once a compiled model has run and been released, a
later model can end the process, whatever its ops.  Example: Squeeze of f16, released, then Squeeze of f32.  Each model
holds threads, so a process serves few models.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
from typing import Any

import numpy as np
import openvino as ov
from opconform_worker import Backend, Unsupported, dtype_name, from_raw, pack, raw, unpack

# Element types that NumPy does not know: OpenVINO's name -> ours, bits of one element.
_SPECIAL = {
    "bf16": ("bf16", 16),
    "f8e4m3": ("f8e4m3fn", 8),
    "f8e5m2": ("f8e5m2", 8),
    "f8e8m0": ("f8e8m0", 8),
    "f4e2m1": ("f4e2m1", 4),
    "i4": ("i4", 4),
    "u4": ("u4", 4),
    "u2": ("u2", 2),
}
_SETTINGS = {
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "ACCURACY",
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "CPU_DENORMALS_OPTIMIZATION": False,
}
_I32 = np.iinfo(np.int32)
_WIDE = ("i64", "u64", "u32")
_HANDS_ON = ("Concat", "Convert", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_GAPS = re.compile(
    r"No (conversion rule|translator) found|not (currently |yet )?(supported|implemented|registered)"
    r"|(n't|not) (currently )?support|unsupported|unimplemented|only supports?\b"
    r"|only .{1,120} (is|are) (currently )?(supported|allowed)|supported only|Unknown activation function"
    r"|does not contain.{1,60}implementation|Cannot find a function builder|No suitable implementations"
    r"|The translation is incomplete|cannot be folded to Constant"
    r"|Unexpected type:|tensor should be either input, constant",  # of TFLite: types and variables it lacks
    re.IGNORECASE | re.DOTALL,
)
_SCHEMA = re.compile(rb"_Onnx_ver(\d+)")


# How a repro.py runs its MODEL, with OPTIONS, the keywords that the backend is created with.
SCRIPT = '''
KEPT = []  # compiled models, which its processes never release


def run(runs):
    import openvino as ov

    core = ov.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_NUM_THREADS": 1,
                "NUM_STREAMS": 1, "CPU_DENORMALS_OPTIMIZATION": False}
    # from memory, as it was asked: an initialiser without elements is an input where the same model is a file
    source = (MODEL.read_bytes(), b"") if MODEL.suffix == ".onnx" else (str(MODEL),)
    compiled = core.compile_model(core.read_model(*source), "CPU", settings)
    KEPT.append(compiled)
    request = compiled.create_infer_request()
    for feeds in runs:
        for port in compiled.inputs:
            name = next((n for n in port.get_names() if n in feeds), None)
            if name is None:
                raise RuntimeError(f"an input that the model does not name: {port.get_names()}")
            request.set_tensor(port, tensor(feeds[name], port.get_element_type()))
        request.infer()
    return [array(request.get_tensor(next(p for p in compiled.outputs if n in p.get_names()))) for n in OUTPUTS]


def tensor(a, kind):
    import openvino as ov

    t = ov.Tensor(kind, list(a.shape))
    if not a.size:
        return t
    if a.dtype == object:
        t.bytes_data = np.array([str(x).encode() for x in a.ravel()], "S").reshape(a.shape)
    elif kind.bitwidth < 8 and kind.get_type_name() != "boolean":
        put(t, packed(a.view(np.uint8).ravel(), kind.bitwidth))
    else:
        put(t, np.ascontiguousarray(a).reshape(-1).view(np.uint8))
    return t


def put(t, data):
    t.data.reshape(-1).view(np.uint8)[:] = data


def packed(values, bits):
    """Several values a byte, the first in the low bits."""
    out = np.zeros(-(-values.size * bits // 8), np.uint8)
    for i, v in enumerate(values):
        out[i * bits // 8] |= (int(v) & ((1 << bits) - 1)) << (i * bits % 8)
    return out


def array(t):
    kind = t.get_element_type()
    shape = tuple(t.get_shape())
    if kind.get_type_name() == "string":
        return np.array([x.decode("utf-8", "replace") for x in np.ravel(t.bytes_data)], object).reshape(shape)
    name = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
            "f4e2m1": "float4_e2m1fn", "i4": "int4", "u4": "uint4", "u2": "uint2"}.get(kind.get_type_name())
    if name is None:
        return np.array(t.data).reshape(shape)
    import ml_dtypes

    data = t.data.reshape(-1).view(np.uint8)
    bits = kind.bitwidth
    if bits < 8:
        data = np.array([data[i * bits // 8] >> (i * bits % 8) & ((1 << bits) - 1) for i in range(np.prod(shape))],
                        np.uint8)
    return data.view(getattr(ml_dtypes, name)).reshape(shape)
'''


class OpenVino(Backend):
    """formats: ONNX and TFLite, both through OpenVINO's own front ends."""

    name = "openvino"
    formats = ("onnx", "tflite")
    packages = ("openvino",)
    script = SCRIPT
    # The low-precision passes take a graph as a whole: beside an 8-bit op, 16-bit ones are quantised to 8 bits too.
    pack = {"onnx": 8, "tflite": 1}
    recycle = 100
    paths_every = 256
    flushes = ("f32", "bf16")  # subnormal constants are zeroed when a graph is compiled, whatever the property says

    def __init__(self, name: str = "openvino") -> None:
        self.name = name
        self._core: Any = None
        self._kept: list[Any] = []

    @property
    def core(self) -> Any:
        """Made in the serving process: a process that has threads must not fork."""
        if self._core is None:
            self._core = ov.Core()
        return self._core

    def version(self) -> str:
        return ov.__version__.split("-")[0]

    def info(self) -> dict[str, Any]:
        top = highest_opset()
        return {} if top is None else {"opset": top}

    def load(self, model: bytes, format: str) -> Any:
        try:
            net = read_tflite(self.core, model) if format == "tflite" else self.core.read_model(bytes(model), b"")
        except Exception as e:
            raise _sorted(e) from None
        require_narrow(net)
        bounds = {n for p in net.inputs if only_bounds(p) for n in p.get_names()}
        try:
            compiled = self.core.compile_model(net, "CPU", _SETTINGS)
            request = compiled.create_infer_request()
        except Exception as e:
            raise _sorted(e) from None
        self._kept.append(compiled)
        return _Loaded(request, bounds)

    def paths(self, handle: Any) -> Any:
        """The primitive that computes an output, and the layers of the compiled graph that it comes from."""
        out: dict[str, str] = {}
        for result in handle.request.get_compiled_model().get_runtime_model().get_results():
            name = result.get_friendly_name().split("/sink_port")[0]
            out.update((n, path_of(result)) for names, _, _ in handle.outs for n in names if name in names)
        return out

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        try:
            for names, port, kind in handle.ins:
                name = next((n for n in names if n in inputs), None)
                if name is None:  # without a value it would compute with whatever lies in memory
                    raise RuntimeError(
                        f"no input of the loaded model is called {sorted(set(inputs) - handle.known)}, "
                        f"but one is called {sorted(names)}"
                    )
                if kind in _WIDE and name not in handle.bounds and isinstance(inputs[name], np.ndarray):
                    require_fits(inputs[name], kind)
                handle.request.set_tensor(port, to_tensor(inputs[name], kind))
            handle.request.infer()
            out: dict[str, Any] = {}
            for names, port, kind in handle.outs:
                value = from_tensor(handle.request.get_tensor(port), kind)
                out.update((n, value) for n in names)
        except Exception as e:
            raise _sorted(e) from None
        return out


class _Loaded:
    """An infer request; names, port and element type of the inputs and outputs; known: names of all inputs; bounds:
    of those that only bound slices."""

    def __init__(self, request: Any, bounds: Any) -> None:
        self.request, self.bounds = request, bounds
        model = request.get_compiled_model()
        self.ins, self.outs = (
            [(p.get_names(), p, p.get_element_type().get_type_name()) for p in ports]
            for ports in (model.inputs, model.outputs)
        )
        self.known = {n for names, _, _ in self.ins for n in names}


def path_of(result: Any) -> str:
    """ "jit_avx512: Softmax": the primitive of the last layer before a result that moves more than its layout, and all
    layers; "folded" for a constant."""
    layers: list[str] = []
    primitives: list[tuple[bool, int, str]] = []
    seen: set[str] = set()
    waiting = [result]
    while waiting:
        node = waiting.pop(0)
        if node.get_friendly_name() in seen:
            continue
        seen.add(node.get_friendly_name())
        facts = node.get_rt_info()
        layer = str(facts["layerType"].astype(str)) if "layerType" in facts else ""
        if layer not in ("", "Output", "Input", "Const"):
            layers.append(layer)
            if "primitiveType" in facts:
                primitive = str(facts["primitiveType"].astype(str)).rpartition("_")[0]
                primitives.append((layer in ("Reorder", "Reshape", "Convert"), len(primitives), primitive))
        waiting += [i.get_source_output().get_node() for i in node.inputs()]
    primitive = min(primitives, default=(0, 0, "unknown"))[2]
    return f"{primitive}: {' + '.join(list(dict.fromkeys(layers))[:5])}" if layers else "folded"


def require_narrow(net: Any) -> None:
    """Raise Unsupported for what the CPU plug-in would narrow: 64-bit floats, constants that need more than 32 bits."""
    for op in net.get_ops():
        kinds = [op.get_output_element_type(i).get_type_name() for i in range(op.get_output_size())]
        if "f64" in kinds:
            raise Unsupported(f"64-bit floats, which the CPU plug-in computes in 32 bits: {op.get_type_name()}")
        if op.get_type_name() == "Constant" and kinds[0] in _WIDE and not only_bounds(op.output(0)):
            require_fits(op.data, kinds[0])


def only_bounds(output: Any, depth: int = 4) -> Any:
    """Does the value serve as a bound of slices alone?  Those may be as large as they like ("to the end"); what is
    sliced, their first input, may not."""
    users = [(t.get_node(), t.get_index()) for t in output.get_target_inputs()]
    return bool(users) and all(
        (u.get_type_name() in ("Slice", "StridedSlice") and at > 0)
        or (depth > 0 and u.get_type_name() in _HANDS_ON and only_bounds(u.output(0), depth - 1))
        for u, at in users
    )


def require_fits(v: Any, name: str) -> None:
    if v.size and (int(v.max()) > _I32.max or int(v.min()) < _I32.min):
        raise Unsupported(f"{name} values beyond the 32 bits that the CPU plug-in computes with")


def read_tflite(core: Any, model: bytes) -> Any:
    """The TFLite front end reads files only."""
    fd, path = tempfile.mkstemp(suffix=".tflite")
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(model)
        return core.read_model(path)
    finally:
        os.unlink(path)


def highest_opset() -> Any:
    """The newest opset of the ONNX release that the front end is linked with: that is the one it claims, and above it
    falls back without a word.  Only the names of the schemas in the library tell it; None if they are not there."""
    here = os.path.dirname(ov.__file__)
    found = [0]
    for path in glob.glob(os.path.join(here, "libs", "*openvino_onnx_frontend*")):
        with open(path, "rb") as f:
            found += [int(v) for v in _SCHEMA.findall(f.read())]
    return max(found) or None


def to_tensor(v: Any, kind: Any) -> Any:
    """Array -> what a request takes for an input of OpenVINO's type ``kind``.  Raises Unsupported."""
    if not isinstance(v, np.ndarray):
        raise Unsupported("sequences and optionals")
    name = dtype_name(v)
    if name == "str":
        t = ov.Tensor(ov.Type.string, list(v.shape))
        if v.size:
            text = [x if isinstance(x, bytes) else x.encode("utf-8", "surrogateescape") for x in v.ravel()]
            t.bytes_data = np.array(text, "S").reshape(v.shape)
        return t
    if kind not in _SPECIAL:
        return ov.Tensor(np.array(v, order="C"))
    bits = _SPECIAL[kind][1]
    t = ov.Tensor(getattr(ov.Type, kind), list(v.shape))
    if v.size:
        data = np.array(raw(v), order="C").reshape(-1)
        if bits < 8:
            data = pack(data.view(np.uint8), bits)
        bytes_of(t)[:] = data.view(np.uint8)
    return t


def from_tensor(t: Any, kind: Any) -> Any:
    """A tensor of a request as an array of ours."""
    shape = tuple(t.get_shape())
    if kind == "string":
        out = np.empty(shape, object)
        if out.size:
            out.reshape(-1)[:] = [x.decode("utf-8", "surrogateescape") for x in np.ravel(t.bytes_data)]
        return out
    if kind not in _SPECIAL:
        return np.array(t.data).reshape(shape)
    name, bits = _SPECIAL[kind]
    count = int(np.prod(shape, dtype=np.int64))
    data: np.ndarray = bytes_of(t).copy() if count else np.zeros(0, np.uint8)
    if bits < 8:
        data = unpack(data, bits, count)
    return from_raw(data.view(np.uint16 if bits == 16 else np.uint8).reshape(shape), name)


def bytes_of(t: Any) -> Any:
    """A tensor's memory; the packed types come as vectors of bytes."""
    return t.data.reshape(-1).view(np.uint8)


def _sorted(e: Any) -> Any:
    """The exception as one of ours where OpenVINO declares a gap."""
    return Unsupported(str(e)) if _GAPS.search(str(e)) else e
