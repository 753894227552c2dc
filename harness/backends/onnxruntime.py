"""ONNX Runtime on the CPU, at three optimisation levels.

This file runs in a worker process.  It creates a session with the constructor of the extension module where that
constructor has a known form, at half the cost of the public class.  Otherwise it uses the public class.  Types that the
Python binding rejects (bf16, float8, int4) go through OrtValues over raw bytes, with two int4 elements in a byte.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as _c
from opconform_worker import Backend, Unsupported, dtype_name, from_raw, onnx_bytes, pack, processor, raw, unpack

# Element types that ``run`` can neither take nor give as NumPy arrays: our name, number in ONNX's TensorProto.
SPECIAL = {
    "tensor(bfloat16)": ("bf16", 16),
    "tensor(float8e4m3fn)": ("f8e4m3fn", 17),
    "tensor(float8e4m3fnuz)": ("f8e4m3fnuz", 18),
    "tensor(float8e5m2)": ("f8e5m2", 19),
    "tensor(float8e5m2fnuz)": ("f8e5m2fnuz", 20),
    "tensor(uint4)": ("u4", 21),
    "tensor(int4)": ("i4", 22),
    "tensor(float4e2m1)": ("f4e2m1", 23),
    "tensor(float8e8m0)": ("f8e8m0", 24),
    "tensor(uint2)": ("u2", 25),
    "tensor(int2)": ("i2", 26),
}
_NUMBER = dict(SPECIAL.values())
_PACKED = {"u4": 4, "i4": 4, "f4e2m1": 4, "u2": 2, "i2": 2}
_GAPS = (
    "NOT_IMPLEMENTED",
    "is not currently registered or supported",
    "Unsupported model IR version",
    "only *guarantees* support for models stamped",
    "is under development and support for this is limited",
    "is not a registered function/op",
    "No Op registered for",
    "Could not find an implementation for",
    "CPU QuantizeLinear only supports precision",
)


# How a repro.py runs its MODEL, with OPTIONS, the keywords that the backend is created with.
SCRIPT = """
LEVELS = {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "all": "ORT_ENABLE_ALL"}


def run(runs):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[OPTIONS.get("level", "disable")])
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    return [one(session, feeds) for feeds in runs][-1]


# ONNX Runtime's name of a type that it gives no arrays of: that of ml_dtypes, ONNX's number, bits
NARROW = {
    "tensor(bfloat16)": ("bfloat16", 16, 16), "tensor(float8e4m3fn)": ("float8_e4m3fn", 17, 8),
    "tensor(float8e4m3fnuz)": ("float8_e4m3fnuz", 18, 8), "tensor(float8e5m2)": ("float8_e5m2", 19, 8),
    "tensor(float8e5m2fnuz)": ("float8_e5m2fnuz", 20, 8), "tensor(uint4)": ("uint4", 21, 4),
    "tensor(int4)": ("int4", 22, 4), "tensor(float4e2m1)": ("float4_e2m1fn", 23, 4),
    "tensor(float8e8m0)": ("float8_e8m0fnu", 24, 8), "tensor(uint2)": ("uint2", 25, 2), "tensor(int2)": ("int2", 26, 2),
}


def one(session, feeds):
    kinds = {x.name: x.type for x in [*session.get_inputs(), *session.get_outputs()]}
    if not any(kind in NARROW for kind in kinds.values()):
        return session.run(OUTPUTS, feeds)
    import onnxruntime as ort

    values, kept = {}, []
    for name, a in feeds.items():
        if kinds.get(name) not in NARROW:
            values[name] = ort.OrtValue.ortvalue_from_numpy(a)
            continue
        _, number, bits = NARROW[kinds[name]]
        raw = np.array(a, order="C").view(f"u{a.dtype.itemsize}")
        if bits < 8:  # the binding takes the shape from the array, but reads the elements packed
            numbers, raw = raw.ravel(), np.zeros(a.shape, np.uint8)
            for i, v in enumerate(numbers):
                raw.reshape(-1)[i * bits // 8] |= (int(v) & ((1 << bits) - 1)) << (i * bits % 8)
        kept.append(raw)  # whose memory the value borrows
        values[name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, number)
    return [as_array(v) for v in session.run_with_ort_values(OUTPUTS, values)]


def as_array(value):
    if value.data_type() not in NARROW:
        return value.numpy()
    import ctypes

    import ml_dtypes

    name, _, bits = NARROW[value.data_type()]
    dtype, shape = np.dtype(getattr(ml_dtypes, name)), value.shape()
    count = int(np.prod(shape))
    data = ctypes.string_at(value.data_ptr(), -(-count * bits // 8)) if count else b""
    if bits < 8:
        data = bytes(data[i * bits // 8] >> (i * bits % 8) & ((1 << bits) - 1) for i in range(count))
    return np.frombuffer(data, dtype).reshape(shape)
"""


class OnnxRuntime(Backend):
    """level: "disable", "basic" or "all".  formats: ONNX."""

    formats = ("onnx",)
    family = "onnxruntime"
    packages = ("onnxruntime",)
    script = SCRIPT
    pack = 64
    paths_every = 256  # saving and reading the graph costs a fifth of a model
    path_kinds = ("as written", "rewritten")  # told of the graph that it saves after its optimisations
    isolate_dtypes = tuple(
        _NUMBER
    )  # with one of them all of a model travels as OrtValues: slow, and no strings beside it
    # Apple's builds leave the kernels of f16 out, and those of bf16 (onnxruntime/core/mlas/inc/mlas.h,
    # MLAS_F16VEC_INTRINSICS_SUPPORTED, MlasBf16AccelerationSupported).
    unused = ("asimdhp", "bf16") if sys.platform == "darwin" else ()

    def __init__(self, level: str = "disable", name: str = "onnxruntime") -> None:
        self.name = name
        ort.set_default_logger_severity(4)
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(
            ort.GraphOptimizationLevel,
            {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "all": "ORT_ENABLE_ALL"}[level],
        )
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.options = options
        self.fast = True
        # Where the processor computes f16, MLAS adds up in it: products, pools, softmax (onnxruntime/core/mlas/lib:
        # halfgemm_kernel_neon.cpp, pooling_fp16.cpp, softmax_kernel_neon_fp16.cpp).
        offers = set(processor.words()) - set(self.unused)
        self.acc = {"f16": "f16"} if "asimdhp" in offers else {}

    def version(self) -> str:
        return ort.__version__

    def info(self) -> dict[str, Any]:
        """Highest opset and IR version, found by asking.  oldest_opset: what the documentation promises
        ("Compatibility", ONNX opset 7 and higher); older models are run all the same, but refusing one is no fault."""
        out, tiny = {"oldest_opset": 7}, onnx_bytes.tiny_model
        for key, made in (("opset", lambda v: tiny(opset=v)), ("ir", lambda v: tiny(ir=v))):
            for v in range(40, 0, -1):
                try:
                    self._session(made(v))
                except Exception:
                    continue
                out[key] = v
                break
        return out

    def _session(self, model: bytes) -> Any:
        """The one place that touches the private constructor."""
        if self.fast:
            try:
                s = _c.InferenceSession(self.options, model, False, False)
                s.initialize_session([], [], set())
                return s
            except (TypeError, AttributeError):  # another signature: this release wants the public way
                self.fast = False
        return ort.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])

    def load(self, model: bytes, format: str) -> Any:
        ran = None
        try:
            if self.asked_paths:
                s, ran = self._saved(model)
            else:
                s = self._session(model)
        except Exception as e:
            raise _sorted(e) from None
        inputs = s.inputs_meta if self.fast else s.get_inputs()
        outputs = s.outputs_meta if self.fast else s.get_outputs()
        names, types = [o.name for o in outputs], [o.type for o in outputs]
        known, taken = [i.name for i in inputs], [i.type for i in inputs]
        kinds = set(types)  # a few, of many
        if any(t.startswith("sparse_tensor(") for t in kinds):
            raise Unsupported("sparse outputs, which the Python binding gives no array for")
        kinds.update(taken)
        if any("(tensor(" in t and _inner(t) in SPECIAL for t in kinds):
            raise Unsupported("sequences and optionals of types that the Python binding does not know")
        special, others = {}, []
        if not kinds.isdisjoint(SPECIAL):
            special = {n: t for n, t in zip([*known, *names], [*taken, *types]) if t in SPECIAL}
            others = [n for n, t in zip(names, types) if not t.startswith("tensor(")]
        return s, names, special, set(known), others, (model, ran)

    def _saved(self, model: bytes) -> tuple[Any, Any]:
        """A session, and the bytes of the graph that it runs (None where it cannot be saved)."""
        fd, path = tempfile.mkstemp(suffix=".onnx", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.close(fd)
        self.options.optimized_model_filepath = path
        try:
            session = self._session(model)
            with open(path, "rb") as f:
                return session, f.read()
        except Exception:  # the model's fault, or that of saving: without it that is told
            self.options.optimized_model_filepath = ""
            return self._session(model), None
        finally:
            self.options.optimized_model_filepath = ""
            os.unlink(path)

    def paths(self, handle: Any) -> Any:
        names, (model, ran) = handle[1], handle[5]
        return onnx_bytes.paths(model, ran, names) if ran else {}

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        session, names, special, known, others, _ = handle
        if len(known) != len(inputs):  # a name that optimisation or an unused input has removed
            inputs = {k: v for k, v in inputs.items() if k in known}
        fed: dict[str, Any] = inputs
        maps = [v for v in fed.values() if type(v) is dict]
        counts = [sys.getrefcount(v) for v in maps]
        try:
            if not special:
                got = session.run(names, inputs, None)
                return {n: v if type(v) is np.ndarray else dense(v) for n, v in zip(names, got)}
            return self._run_raw(session, [n for n in names if n not in others], special, inputs, others)
        except Exception as e:
            # The binding of 1.23 and older gives back a reference to a map that it refuses, one that it never took.
            for v, before, now in zip(maps, counts, [sys.getrefcount(v) for v in maps]):
                for _ in range(before - now):
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(v))
            raise _sorted(e) from None

    def _run_raw(self, session: Any, names: Any, special: Any, inputs: dict[str, np.ndarray], others: Any) -> Any:
        """Everything as OrtValues.

        others: outputs that are no tensors.  An OrtValue tells only whether they hold anything.  Their content comes
            from another run, through a binding, which gives all of its outputs as arrays or none.
        """
        session = session if self.fast else session._sess
        feeds, memory = {}, []
        for n, v in inputs.items():
            if not isinstance(v, np.ndarray):
                raise Unsupported("sequences beside types that the Python binding does not know")
            feeds[n], owner = to_ort(v)
            memory.append(owner)  # an OrtValue only borrows the array's memory
        out = list(session.run_with_ort_values(feeds, [*names, *others], None))
        got = {n: from_ort(v, special.get(n)) for n, v in zip(names, out)}
        for n, v in zip(others, out[len(names) :]):
            # the binding ends the process where it copies an optional that holds nothing, or strings
            if not v.has_value():
                got[n] = None
            elif v.is_tensor() and v.data_type() == "tensor(string)":
                raise Unsupported("optional strings beside types that the Python binding does not know")
        others = [n for n in others if n not in got]
        if others:
            binding = _c.SessionIOBinding(session)
            for n, v in feeds.items():
                binding.bind_ortvalue_input(n, v)
            for n in others:
                binding.bind_output(n, _cpu())
            session.run_with_iobinding(binding, None)
            got.update((n, dense(v)) for n, v in zip(others, binding.copy_outputs_to_cpu()))
        del memory  # not before the outputs are copied: one may alias an input
        return got


def _cpu() -> Any:
    return _c.OrtDevice(_c.OrtDevice.cpu(), _c.OrtDevice.default_memory(), 0)


class CrossDialect(OnnxRuntime):
    """Takes MIL instances, said in ONNX where an ONNX operator means the same."""

    formats = ("mil",)

    def __init__(self) -> None:
        OnnxRuntime.__init__(self, "disable", "onnxruntime-cross-dialect")

    def info(self) -> dict[str, Any]:
        return dict(OnnxRuntime.info(self), target_dialect="onnx", known_as="onnxruntime")


def dense(v: Any) -> Any:
    """A sparse output (a constant handed through) as an array; everything else as it is."""
    kind: Any = getattr(_c, "SparseTensor", ())
    if not isinstance(v, kind):
        return v
    out = np.zeros(v.dense_shape(), v.values().dtype)
    at = v.get_coo_data().indices()
    out[tuple(at.T) if at.ndim == 2 else np.unravel_index(at, out.shape)] = v.values()
    return out


def _inner(type_: Any) -> Any:
    return type_[type_.index("tensor(") :].split(")")[0] + ")"


def to_ort(v: Any) -> tuple[Any, Any]:
    """Array -> (OrtValue of the extension, the array whose memory it borrows), whatever the type."""
    name = dtype_name(v)
    if name == "str":
        raise Unsupported("strings beside types that the Python binding does not know")
    # not ascontiguousarray: that makes a vector of a scalar
    if name not in _NUMBER:
        own = np.array(v, order="C")
        return _c.OrtValue.ortvalue_from_numpy(own, _cpu()), own
    if not hasattr(_c.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        raise Unsupported(f"this release's Python binding takes no {name}")
    bytes_ = np.array(raw(v), order="C")
    if name in _PACKED:
        # The binding takes the shape from the array but reads the elements packed: packed bytes first, the rest unused.
        packed = pack(bytes_.ravel().view(np.uint8), _PACKED[name])
        bytes_ = np.zeros(v.shape, np.uint8)
        bytes_.reshape(-1)[: packed.size] = packed
    return _c.OrtValue.ortvalue_from_numpy_with_onnx_type(bytes_, _NUMBER[name]), bytes_


def from_ort(v: Any, type_: Any) -> Any:
    """OrtValue -> array; type_ is the graph's type string when it is one of SPECIAL."""
    if type_ is None:
        if v.is_tensor():
            return v.numpy().copy()
        if v.is_sparse_tensor():
            return dense(v.as_sparse_tensor())
        raise Unsupported("sequences beside types that the Python binding does not know")
    name = SPECIAL[type_][0]
    shape = tuple(v.shape())
    count = int(np.prod(shape, dtype=np.int64))
    width = 2 if name == "bf16" else 1
    bits = _PACKED.get(name, 8 * width)
    size = (count * bits + 7) // 8
    data = np.frombuffer(ctypes.string_at(v.data_ptr(), size) if size else b"", np.uint8)
    if name in _PACKED:
        return from_raw(unpack(data, bits, count).reshape(shape), name)
    return from_raw(data.view(np.uint16 if width == 2 else np.uint8).reshape(shape), name)


def _sorted(e: Any) -> Any:
    """The exception as one of ours where the runtime declares a gap."""
    text = str(e)
    return Unsupported(text) if any(g in text for g in _GAPS) else e
