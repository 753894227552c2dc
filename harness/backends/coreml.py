"""Core ML on macOS: MIL programs and NeuralNetwork specs through ``MLModel.predict``.

Each compute unit (``units``) has a process of its own.  The process is never forked, since Objective-C does not survive
a fork.  ``precision="f16"`` casts the program first.  Core ML returns a scalar output with shape (1,) and an f16 output
as f32; this file restores both.  It writes states before a prediction and reads them after it.

``record=path`` writes every load and prediction to a tape, one JSON line each.  The key of a line is made of the bytes
of the spec, the weights, the compute unit, the inputs and the history of the state.  ``replay=path`` answers from such
a tape through the same ``MLModel`` code, on any system.  A key that the tape lacks is an error, so a changed exporter
is noticed.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from typing import Any

import numpy as np
from opconform_worker import Backend, Unsupported, sibling


class CoreMl(Backend):
    """units: CPU_ONLY, CPU_AND_GPU, CPU_AND_NE, ALL.  precision: f32 or f16."""

    formats = ("mil", "nn")
    family = "coreml"
    platforms = ("darwin",)
    pack = 32
    forks = False

    def __init__(
        self,
        units: str = "CPU_ONLY",
        precision: str = "f32",
        name: str = "coreml-cpu",
        record: Any = None,
        replay: Any = None,
    ) -> None:
        self.name, self.precision = name, precision
        record = record or os.environ.get("OPCONFORM_COREML_RECORD")
        replay = replay or os.environ.get("OPCONFORM_COREML_REPLAY")
        if sys.platform != "darwin" and not replay:
            raise RuntimeError("Core ML is a part of macOS; this is " + platform.system())
        self.mil = sibling("coremltools_program", __spec__)
        self.ct = self.mil.ct
        from coremltools.models import model as module

        self.module = module
        if replay:
            module._MLModelProxy = type("Replay", (ReplayProxy,), {"tape": Tape(replay)})
            module._is_macos, module._macos_version = (lambda: True), (lambda: (15, 0))
        elif record:
            real = module._MLModelProxy
            module._MLModelProxy = type("Record", (RecordProxy,), {"tape": Tape(record, True), "real": real})
        if module._MLModelProxy is None:
            raise RuntimeError("coremltools has no libcoremlpython here")
        self.units = self.ct.ComputeUnit[units]
        self.folder = tempfile.mkdtemp(prefix="opconform-coreml-")
        tempfile.tempdir = self.folder  # packages and compiled models pile up otherwise
        atexit.register(shutil.rmtree, self.folder, True)
        import coremltools.converters._converters_entry as entry

        entry.gc = type("NoGc", (), {"collect": staticmethod(lambda: 0)})  # 66 ms a conversion

    def version(self) -> str:
        system = platform.mac_ver()[0] or "replayed"
        return f"coremltools {self.ct.__version__}, macOS {system} {platform.machine()}"

    def info(self) -> dict[str, Any]:
        return {"spec_version": self.module._MLModelProxy.maximum_supported_specification_version()}

    def load(self, model: bytes, format: str) -> Any:
        if format == "nn":
            return self._load_nn(model)
        h, consts = self.mil.unpack(model)
        if any(len(i[2]) == 0 for i in h["inputs"]):
            raise Unsupported("Core ML has no inputs of rank 0")
        if any(0 in i[2] for i in h["inputs"]):
            raise Unsupported("Core ML has no empty inputs")
        if any(len(i[2]) > 5 for i in h["inputs"]):
            raise Unsupported("Core ML takes inputs of up to rank 5")
        dummy = {}
        if not h["inputs"]:
            h["inputs"] = [["no_input", "f32", [1], "tensor"]]
            dummy = {"no_input": np.zeros(1, np.float32)}
        self.mil.mb.name_count.clear()  # the same program gets the same names whatever was built before
        program = self.mil.build(h, consts)
        wants = [(tuple(v.shape), self.mil.ours(v.dtype)) for v in program.functions["main"].outputs]
        passes = ["common::add_fp16_cast"] if self.precision == "f16" else []
        ct = self.ct
        made = ct.convert(
            program,
            convert_to="mlprogram",
            minimum_deployment_target=getattr(ct.target, h["opset"].replace("ios", "iOS")),
            compute_precision=ct.precision.FLOAT16 if passes else ct.precision.FLOAT32,
            pass_pipeline=ct.PassPipeline(pass_names=passes, pipeline_name="opconform"),
            skip_model_load=True,
        )
        loaded = self._open(made.package_path)
        states = [i[0] for i in h["inputs"] if i[3] == "state"]
        return _Program(loaded, h["outputs"], wants, states, dummy)

    def _load_nn(self, model: bytes) -> Any:
        from coremltools.proto import Model_pb2

        spec = Model_pb2.Model()
        spec.ParseFromString(model)
        dummy = {}
        if not spec.description.input:  # layers that make something from nothing; a model has an input
            extra = spec.description.input.add()
            extra.name = "no_input"
            extra.type.multiArrayType.shape.append(1)
            extra.type.multiArrayType.dataType = 65568  # FLOAT32
            model, dummy = spec.SerializeToString(), {"no_input": np.zeros(1, np.float32)}
        path = os.path.join(self.folder, "model.mlmodel")
        with open(path, "wb") as f:
            f.write(model)
        loaded = self._open(path)
        return _Program(loaded, [o.name for o in spec.description.output], None, [], dummy)

    def _open(self, path: str) -> Any:
        engine = self.module._MLModelProxy.maximum_supported_specification_version()
        loaded = self.ct.models.MLModel(path, compute_units=self.units)
        shutil.rmtree(path, True) if os.path.isdir(path) else os.remove(path)
        if loaded.__proxy__ is None:
            if loaded._framework_error is not None:
                raise loaded._framework_error
            version = loaded._spec.specificationVersion
            raise Unsupported(f"specification version {version}, this system knows {engine}")
        return loaded

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        state: Any = None
        if handle.states:
            state = handle.model.make_state()
            for n in handle.states:
                state.write_state(n, np.asarray(inputs[n]))
        feed = {n: _given(v) for n, v in inputs.items() if n not in handle.states}
        got = handle.model.predict({**feed, **handle.dummy}, state)
        # Conversion renames outputs but keeps their order; a state is no output of the model.
        theirs = iter([o.name for o in handle.model._spec.description.output])
        out = {}
        for i, n in enumerate(handle.names):
            if n in handle.states:
                out[n] = state.read_state(n)
                continue
            key = next(theirs, None)
            if key in got:
                out[n] = _as_wanted(got[key], handle.wants[i] if handle.wants else None)
        return out


class _Program:
    def __init__(self, model: bytes, names: Any, wants: Any, states: Any, dummy: Any) -> None:
        self.model, self.names, self.wants, self.states, self.dummy = model, names, wants, states, dummy


def _given(v: Any) -> Any:
    """Inputs are f32, f16 or i32 arrays; the narrower ones have casts inside the model."""
    if v.dtype == np.bool_ or v.dtype.kind in "iu":
        return v.astype(np.int32)
    return np.ascontiguousarray(v)


def _as_wanted(v: Any, want: Any) -> Any:
    """The declared shape and dtype, where Core ML's own I/O rules changed them without changing a value."""
    v = np.array(v)  # may be strided, and a view of Core ML's memory
    if want is None:
        return v
    shape, dtype = want
    if shape == () and v.shape == (1,):
        v = v.reshape(())
    target = {"f16": np.float16, "bool": np.bool_}.get(dtype) or (
        np.dtype(dtype[0] + str(int(dtype[1:]) // 8)) if dtype[0] in "iu" else None
    )
    if target is not None and v.dtype != target:
        cast = v.astype(target)
        with np.errstate(invalid="ignore"):
            same = np.array_equal(cast.astype(v.dtype), v, equal_nan=v.dtype.kind == "f")
        return cast if same else v  # a value that the declared type cannot hold stays visible
    return v


# -- recorded predictions ---------------------------------------------------------------------------------------


class Tape:
    """Keys and what was seen; a line of JSON each."""

    def __init__(self, path: str, write: bool = False) -> None:
        self.path, self.lines = path, {}
        if write:
            self.file = open(path, "a")  # noqa: SIM115  lives as long as the process
        else:
            with open(path) as f:
                for line in f:
                    o = json.loads(line)
                    self.lines[o.pop("key")] = o

    def put(self, key: Any, **what: Any) -> None:
        self.file.write(json.dumps({"key": key, **what}) + "\n")
        self.file.flush()  # before the process may die

    def get(self, key: Any, what: Any) -> Any:
        try:
            return self.lines[key]
        except KeyError:
            text = f"the recording has no such {what} ({key[:12]}): the exporter or the data changed"
            raise RuntimeError(text) from None


def _hash(*parts: Any) -> Any:
    h = hashlib.sha256()
    for p in parts:
        h.update(p if isinstance(p, bytes) else str(p).encode())
        h.update(b"|")
    return h.hexdigest()


def model_key(path: str, units: Any, function: Any) -> Any:
    """Hash of the spec without its metadata, of the weights, the compute unit and the function."""
    from coremltools.models.utils import load_spec

    spec = load_spec(path)
    spec.description.ClearField("metadata")
    weights = b""
    for folder, _, files in sorted(os.walk(path)):
        for name in sorted(files):
            if name == "weight.bin":
                with open(os.path.join(folder, name), "rb") as f:
                    weights += f.read()
    return _hash(spec.SerializeToString(deterministic=True), weights, units, function)


def _data_key(data: dict[str, np.ndarray]) -> Any:
    return _hash(*(x for n in sorted(data) for x in (n, data[n].dtype, data[n].shape, data[n].tobytes())))


def _put_arrays(data: dict[str, Any]) -> dict[str, Any]:
    return {
        n: [str(v.dtype), list(v.shape), base64.b64encode(np.ascontiguousarray(v).tobytes()).decode()]
        for n, v in ((n, np.asarray(v)) for n, v in data.items())
    }


def _get_arrays(data: dict[str, Any]) -> dict[str, Any]:
    return {n: np.frombuffer(base64.b64decode(b), d).reshape(s).copy() for n, (d, s, b) in data.items()}


class _State:
    """history: what was done to the state so far, which is all that the next prediction depends on."""

    def __init__(self, proxy: Any, real: Any = None) -> None:
        self.proxy, self.real, self.history = proxy, real, "new"

    def write_state(self, name: str, value: Any) -> None:
        if self.real is not None:
            self.real.write_state(name, value)
        self.history = _hash(self.history, _data_key({name: np.asarray(value)}))

    def read_state(self, name: str) -> Any:
        return self.proxy.read(self, name)


class RecordProxy:
    """In the place of coremltools' proxy: does the same and writes it down."""

    tape: Any = None
    real: Any = None

    def __init__(self, path: str, units: Any, function: Any, hints: Any, asset: Any) -> None:
        self.key = model_key(path, units, function)
        try:
            self.inner = self.real(path, units, function, hints, asset)
        except RuntimeError as e:
            self.tape.put(self.key, error=str(e), system=platform.mac_ver()[0])
            raise
        self.tape.put(self.key, error=None, system=platform.mac_ver()[0], machine=platform.machine())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @classmethod
    def maximum_supported_specification_version(cls) -> Any:
        return cls.real.maximum_supported_specification_version()

    def newState(self) -> Any:
        return _State(self, self.inner.newState())

    def predict(self, data: dict[str, np.ndarray], state: Any = None) -> Any:
        before = state.history if state else ""
        key = _hash(self.key, _data_key(data), before)
        if state:
            state.history = key
        try:
            out = self.inner.predict(data, state.real if state else None)
        except RuntimeError as e:
            self.tape.put(key, error=str(e))
            raise
        self.tape.put(key, error=None, outputs=_put_arrays(out))
        return out

    def read(self, state: Any, name: str) -> Any:
        v = state.real.read_state(name)
        self.tape.put(_hash(self.key, state.history, name), error=None, outputs=_put_arrays({name: v}))
        return v


class ReplayProxy:
    """In the place of coremltools' proxy on a system without Core ML."""

    tape: Any = None

    def __init__(self, path: str, units: Any, function: Any, hints: Any, asset: Any) -> None:
        self.key = model_key(path, units, function)
        self._raise(self.tape.get(self.key, "model"))

    @staticmethod
    def maximum_supported_specification_version() -> int:
        return 9

    @staticmethod
    def _raise(o: Any) -> Any:
        if o.get("error"):
            raise RuntimeError(o["error"])
        return o

    def newState(self) -> Any:
        return _State(self)

    def predict(self, data: dict[str, np.ndarray], state: Any = None) -> Any:
        key = _hash(self.key, _data_key(data), state.history if state else "")
        if state:
            state.history = key
        return _get_arrays(self._raise(self.tape.get(key, "prediction"))["outputs"])

    def read(self, state: Any, name: str) -> Any:
        o = self.tape.get(_hash(self.key, state.history, name), "state")
        return _get_arrays(o["outputs"])[name]
