"""The OpenVINO backend: its own code against a played module, and the runtime itself where it can be had.

It is an extra.  The real one is asked where ``openvino`` is installed, or in the interpreter that
``OPCONFORM_OPENVINO_PYTHON`` names.
"""

import importlib.util
import os
import sys
import types
from pathlib import Path

import ml_dtypes as ml
import numpy as np
import pytest

import harness.backends
from harness.backends import registry
from harness.core.outcome import Status
from harness.workers import worker
from harness.workers.spec import Place
from suites.meta.runtimes import running
from suites.meta.test_runtimes import ADD, ask, lite_model, onnx_model

FILE = Path(harness.backends.__file__).with_name("openvino.py")
PYTHON = os.environ.get("OPCONFORM_OPENVINO_PYTHON")
BITS = {"bf16": 16, "f8e4m3": 8, "i4": 4, "u4": 4, "u2": 2}


class Type:
    """An element type; the narrow ones have no array of their own."""

    def __init__(self, name):
        self.name = name

    def get_type_name(self):
        return self.name


class Tensor:
    """Of an array, or of a type and a shape with memory as OpenVINO lays it out: packed types are flat bytes."""

    def __init__(self, first, shape=None):
        if shape is None:
            self.data, self.shape = first, first.shape
            return
        self.shape = tuple(shape)
        n, bits = int(np.prod(shape)), BITS.get(first.name, 8)
        flat = bits < 8
        self.data = np.zeros(-(-n * bits // 8) if flat else self.shape, np.float16 if bits == 16 else np.uint8)
        self.bytes_data = None

    def get_shape(self):
        return self.shape


class Node:
    def __init__(self, kind, element, data=None, users=()):
        self.kind, self.element, self.data, self.users = kind, element, data, users

    def get_type_name(self):
        return self.kind

    def get_output_size(self):
        return 1

    def get_output_element_type(self, i):
        return Type(self.element)

    def output(self, i):
        """Users are nodes, which take the value as their second input, or (node, number of the input)."""
        users = [n if isinstance(n, tuple) else (n, 1) for n in self.users]
        users = [types.SimpleNamespace(get_node=lambda n=n: n, get_index=lambda at=at: at) for n, at in users]
        return types.SimpleNamespace(get_target_inputs=lambda: users)


class Port:
    def __init__(self, name, element):
        self.name, self.element = name, element

    def get_names(self):
        return {self.name}

    def get_element_type(self):
        return Type(self.element)


class Request:
    """Hands x on as y."""

    def __init__(self, kind):
        self.kind, self.tensors = kind, {}

    def get_compiled_model(self):
        return types.SimpleNamespace(inputs=[Port("x", self.kind)], outputs=[Port("y", self.kind)])

    def set_tensor(self, port, tensor):
        self.tensors[port.name] = tensor

    def infer(self):
        self.tensors["y"] = self.tensors["x"]

    def get_tensor(self, port):
        return self.tensors[port.name]


class Core:
    """The model's bytes are the element type of x and y, or what to raise."""

    seen: dict = {}

    def read_model(self, model, weights=None):
        if weights is None:
            Core.seen["path"] = model
            model = Path(model).read_bytes()
        text = model.decode()
        if " " in text:
            raise RuntimeError(text)
        ops = [Node("Parameter", text)]
        if text == "i64":
            ops.append(Node("Constant", "i64", np.array([1 << 40])))
        return types.SimpleNamespace(get_ops=lambda: ops, kind=text, inputs=[])

    def compile_model(self, net, device, settings):
        Core.seen.update(device=device, settings=settings)
        return types.SimpleNamespace(create_infer_request=lambda: Request(net.kind))


@pytest.fixture
def played(monkeypatch, tmp_path):
    """The backend's module on a played ``openvino``."""
    fake = types.ModuleType("openvino")
    fake.Core, fake.Tensor, fake.__version__ = Core, Tensor, "2026.1.0-123-releases"
    fake.Type = types.SimpleNamespace(**{n: Type(n) for n in [*BITS, "string"]})
    fake.__file__ = str(tmp_path / "__init__.py")
    (tmp_path / "libs").mkdir()
    library = tmp_path / "libs" / "libopenvino_onnx_frontend.so.1"
    library.write_bytes(b"\0Relu_Onnx_ver6\0Swish_Onnx_ver24\0Add_Onnx_ver7")
    monkeypatch.setitem(sys.modules, "openvino", fake)
    monkeypatch.setitem(sys.modules, "opconform_worker", worker)
    spec = importlib.util.spec_from_file_location("openvino_under_test", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_claims_the_opset_of_the_schemas_it_holds(played, tmp_path):
    assert played.OpenVino().info() == {"opset": 24}
    assert played.OpenVino().version() == "2026.1.0"
    (tmp_path / "libs" / "libopenvino_onnx_frontend.so.1").unlink()
    assert played.OpenVino().info() == {}


def test_it_asks_for_exact_arithmetic(played):
    played.OpenVino().load(b"f32", "onnx")
    settings = Core.seen["settings"]
    assert Core.seen["device"] == "CPU"
    assert settings["INFERENCE_PRECISION_HINT"] == "f32"
    assert settings["EXECUTION_MODE_HINT"] == "ACCURACY"
    assert settings["CPU_DENORMALS_OPTIMIZATION"] is False


def test_tflite_goes_through_a_file_that_is_gone_afterwards(played):
    played.OpenVino().load(b"f32", "tflite")
    assert Core.seen["path"].endswith(".tflite")
    assert not Path(Core.seen["path"]).exists()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (5,)])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("f32", np.float32),
        ("bf16", ml.bfloat16),
        ("f8e4m3", ml.float8_e4m3fn),
        ("i4", ml.int4),
        ("u4", ml.uint4),
        ("u2", ml.uint2),
    ],
)
def test_values_pass_in_and_out(played, kind, dtype, shape):
    v = (np.arange(np.prod(shape, dtype=int)) % 4).reshape(shape).astype(dtype)
    b = played.OpenVino()
    got = b.run(b.load(kind.encode(), "onnx"), {"x": v})["y"]
    assert got.dtype == v.dtype
    assert got.shape == v.shape
    assert got.tobytes() == v.tobytes()


def test_packed_elements_lie_low_first(played):
    assert played.pack(np.array([1, 2, 3], np.uint8), 4).tolist() == [0x21, 0x03]
    assert played.unpack(np.array([0x21, 0x03], np.uint8), 4, 3).tolist() == [1, 2, 3]


def test_what_the_plug_in_narrows_is_a_gap(played):
    b = played.OpenVino()
    for model in (b"f64", b"i64"):
        with pytest.raises(worker.Unsupported):
            b.load(model, "onnx")
    handle = b.load(b"u64", "onnx")
    with pytest.raises(worker.Unsupported, match="32 bits"):
        b.run(handle, {"x": np.array([1 << 33], np.uint64)})
    with pytest.raises(worker.Unsupported, match="sequences"):
        b.run(handle, {"x": [np.zeros(1, np.float32)]})


def test_bounds_of_slices_may_be_as_large_as_they_like(played):
    """The end of a slice that has none is the largest int64."""
    cut, more = Node("Slice", "f32"), Node("Add", "i64")
    for users, want in (
        ([cut], True),
        ([cut, more], False),
        ([Node("Unsqueeze", "i64", users=[cut])], True),
        ([Node("Unsqueeze", "i64", users=[more])], False),
        ([], False),
        ([(cut, 0)], False),
        ([(cut, 2), (cut, 0)], False),
    ):
        assert played.only_bounds(Node("Constant", "i64", users=users).output(0)) is want


def test_an_input_that_lost_its_name_is_refused(played):
    b = played.OpenVino()
    with pytest.raises(RuntimeError, match="called \\['a'\\], but one is called \\['x'\\]"):
        b.run(b.load(b"f32", "onnx"), {"a": np.zeros(2, np.float32)})


@pytest.mark.parametrize(
    "words",
    [
        "No conversion rule found for operations: Foo-1",
        "Unexpected type: RESOURCE",
        "No translator found for IF node.",
        "only supports resize on",
    ],
)
def test_gaps_are_distinguished_from_refusals(played, words):
    with pytest.raises(worker.Unsupported):
        played.OpenVino().load(words.encode(), "onnx")
    with pytest.raises(RuntimeError):
        played.OpenVino().load(b"Check 'rank == 4' failed", "onnx")


# -- the runtime itself ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real():
    with running("openvino", Place(PYTHON), hint="pip install openvino, or set OPCONFORM_OPENVINO_PYTHON") as h:
        yield h


def test_it_is_run_on_request_alone():
    assert "openvino" in registry.names()
    assert registry.formats_of("openvino") == ("onnx", "tflite")
    assert "openvino" not in registry.names("onnx")
    assert "openvino" not in registry.names("tflite")


def test_both_formats(real):
    x = np.array([[-1, 0, 2.5], [1e-40, np.inf, -np.inf]], np.float32)
    out = ask(real, onnx_model("Relu", [1], [(2, 3)], 1), x)
    assert out.outputs[0].tolist() == np.maximum(x, 0).tolist()
    out = ask(real, lite_model(ADD, [x, x], 0, (11, {})), x, x)
    assert out.outputs[0].tolist() == (x + x).tolist()


@pytest.mark.parametrize("number", [9, 10, 16, 17, 21, 22])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_types_pass_through_the_runtime(real, number, shape):
    kinds = {9: bool, 10: np.float16, 16: ml.bfloat16, 17: ml.float8_e4m3fn, 21: ml.uint4, 22: ml.int4}
    v = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(kinds[number])
    out = ask(real, onnx_model("Cast", [1], [shape], number, to=number), v.astype(np.float32))
    if out.status is Status.UNSUPPORTED:
        pytest.skip(out.message)
    assert out.outputs[0].dtype == v.dtype
    assert out.outputs[0].shape == shape
    assert out.outputs[0].astype(np.float32).tolist() == v.astype(np.float32).tolist()


def test_gaps_of_the_runtime(real):
    assert real.info.opset >= 17
    x = np.ones(3, np.float64)
    assert ask(real, onnx_model("Relu", [11], [(3,)], 11), x).status is Status.UNSUPPORTED
    wide = ask(real, onnx_model("Abs", [7], [(1,)], 7), np.array([1 << 40], np.int64))
    assert wide.status is Status.UNSUPPORTED
    assert "32 bits" in wide.message
    unknown = ask(real, onnx_model("NoSuchOp", [1], [(3,)], 1), x.astype(np.float32))
    assert unknown.status is Status.UNSUPPORTED
    assert ask(real, onnx_model("Gather", [1], [(3,)], 1), x.astype(np.float32)).status is Status.REJECTED
