"""The Core ML backend off macOS: its own code and ``MLModel`` for real, the proxy played from a recording."""

import numpy as np
import pytest

ct = pytest.importorskip("coremltools", reason="needs coremltools")

from coremltools.converters.mil import Builder as mb  # noqa: E402
from coremltools.converters.mil.backend.mil import load as writer  # noqa: E402
from coremltools.converters.mil.mil import types  # noqa: E402
from coremltools.models import model as module  # noqa: E402

from harness.backends import coreml  # noqa: E402
from harness.core.outcome import Model, Status  # noqa: E402
from harness.workers.pool import BackendHandle  # noqa: E402
from harness.workers.spec import Spec  # noqa: E402
from harness.workers.wire import Job  # noqa: E402
from suites.mil import dialect as mil  # noqa: E402

writes_programs = pytest.mark.skipif(
    writer.BlobWriter is None, reason="this coremltools has no libraries: there is no wheel for Linux and Arm"
)


class FakeProxy:
    """Plays Core ML: adds 1 to ``x``; gives it back the way Core ML does, f32 for f16, strided, (1,) for a scalar."""

    loads = 0

    def __init__(self, path, units, function, hints, asset):
        FakeProxy.loads += 1
        spec = ct.models.utils.load_spec(path)
        self.outputs = [o.name for o in spec.description.output]
        self.scalar = [not o.type.multiArrayType.shape for o in spec.description.output]
        if 13 in spec.description.input[0].type.multiArrayType.shape:
            raise RuntimeError("Error compiling model: no")

    @staticmethod
    def maximum_supported_specification_version():
        return 9

    def newState(self):
        return FakeState()

    def predict(self, data, state):
        x = np.asarray(next(iter(data.values())), np.float32)
        if (x < 0).any():
            raise RuntimeError("Error: negative")
        if state is not None:
            state.values["s"] = state.values["s"] + x
            return {self.outputs[0]: state.values["s"].astype(np.float32)}
        y = np.repeat(x + 1, 2, axis=-1)[..., ::2]
        return {n: y.sum().reshape(1) if s else y for n, s in zip(self.outputs, self.scalar, strict=True)}

    batchPredict = None


class FakeState:
    def __init__(self):
        self.values = {}

    def write_state(self, name, value):
        self.values[name] = np.array(value, np.float32)

    def read_state(self, name):
        return self.values[name]


def program(out="y", dtype=types.fp32, op=None, shape=(2, 3)):
    target = ct.target.iOS16 if dtype == types.fp16 else ct.target.iOS15

    @mb.program(input_specs=[mb.TensorSpec(shape=shape, dtype=dtype)], opset_version=target)
    def prog(x):
        if op is not None:
            return op(x, out)
        return mb.add(x=x, y=np.float32(1) if dtype == types.fp32 else np.float16(1), name=out)

    return mil.packed(prog)


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    tape = tmp_path / "tape.jsonl"
    monkeypatch.setattr(module, "_MLModelProxy", FakeProxy)
    monkeypatch.setattr(coreml.sys, "platform", "darwin")
    monkeypatch.setattr(module, "_is_macos", lambda: True)
    monkeypatch.setattr(module, "_macos_version", lambda: (15, 0))
    monkeypatch.setattr(coreml.tempfile, "tempdir", None)
    backend = coreml.CoreMl(record=str(tape))
    monkeypatch.setattr(coreml.sys, "platform", "linux")
    return backend, tape


CASES = {
    "f32": (program(), np.arange(6, dtype=np.float32).reshape(2, 3)),
    "f16": (program(dtype=types.fp16), np.arange(6, dtype=np.float16).reshape(2, 3)),
    "scalar": (
        program("scalar", op=lambda x, n: mb.reduce_sum(x=x, axes=[0, 1], keep_dims=False, name=n)),
        np.ones((2, 3), np.float32),
    ),
}


def replayed(tape, **kw):
    kwargs = {"replay": str(tape), "name": "coreml-cpu", **kw}
    return BackendHandle(Spec("coreml-cpu", "CoreMl", file=coreml.__file__, kwargs=kwargs, memory=0))


def ask(h, model, x, out="y"):
    m = Model("mil", model, [[("x", "x", None)]], [[out]])
    return h.run([Job(m, [[[x]]])])[0].outcomes[0][0]


@writes_programs
@pytest.mark.parametrize("case", CASES)
def test_recorded_and_replayed_in_a_worker_is_the_same(recorder, case):
    backend, tape = recorder
    model, x = CASES[case]
    out = "scalar" if case == "scalar" else "y"
    direct = backend.run(backend.load(model, "mil"), {"x": x})[out]
    assert direct.shape == (() if case == "scalar" else (2, 3))
    assert direct.dtype == (np.float16 if case == "f16" else np.float32)
    np.testing.assert_array_equal(direct, (x + 1).sum() if case == "scalar" else x + 1)
    with replayed(tape) as h:
        got = ask(h, model, x, out)
        assert got.status is Status.VALUE, got
        np.testing.assert_array_equal(got.outputs[0], direct)
        assert got.outputs[0].dtype == direct.dtype
        assert got.outputs[0].shape == direct.shape


@writes_programs
def test_an_unknown_model_or_input_is_an_error_not_a_guess(recorder):
    backend, tape = recorder
    model, x = CASES["f32"]
    backend.run(backend.load(model, "mil"), {"x": x})
    with replayed(tape) as h:
        other = ask(h, program(shape=(2, 4)), np.ones((2, 4), np.float32))
        assert other.status is Status.REJECTED
        assert "no such model" in other.message
        moved = ask(h, model, x + 1)
        assert moved.status is Status.REJECTED
        assert "no such prediction" in moved.message


@writes_programs
def test_refusals_are_recorded_too(recorder):
    backend, tape = recorder
    with pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match="Error compiling"):
        backend.load(program(shape=(13,)), "mil")
    model, x = CASES["f32"]
    with pytest.raises(RuntimeError, match="negative"):
        backend.run(backend.load(model, "mil"), {"x": -x})
    with replayed(tape) as h:
        assert "Error compiling" in ask(h, program(shape=(13,)), np.ones(13, np.float32)).message
        got = ask(h, model, -x)
        assert got.status is Status.REJECTED
        assert "negative" in got.message
        assert got.phase == "run"


def test_neural_network_specs(recorder):
    backend, tape = recorder
    from coremltools.models import datatypes, neural_network

    b = neural_network.NeuralNetworkBuilder(
        [("x", datatypes.Array(3))], [("y", datatypes.Array(3))], disable_rank5_shape_mapping=True
    )
    b.add_activation("a", "RELU", "x", "y")
    data = b.spec.SerializeToString()
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(backend.run(backend.load(data, "nn"), {"x": x})["y"], x + 1)
    with replayed(tape) as h:
        m = Model("nn", data, [[("x", "x", None)]], [["y"]])
        (r,) = h.run([Job(m, [[[x]]])])
        np.testing.assert_array_equal(r.outcomes[0][0].outputs[0], x + 1)


def test_a_network_without_inputs_is_given_one(recorder):
    backend, _ = recorder
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=4)
    spec.description.output.add(name="y")
    layer = spec.neuralNetwork.layers.add(name="fill", output=["y"])
    layer.fillStatic.targetShape.append(3)
    spec.neuralNetwork.arrayInputShapeMapping = 1
    loaded = backend.load(spec.SerializeToString(), "nn")
    assert list(loaded.dummy) == ["no_input"]
    assert [i.name for i in loaded.model._spec.description.input] == ["no_input"]


def test_states_depend_on_their_history(recorder):
    _, tape = recorder
    t = coreml.Tape(str(tape), True)
    proxy = coreml.RecordProxy.__new__(coreml.RecordProxy)
    proxy.tape, proxy.real, proxy.key, proxy.inner = t, FakeProxy, "k", FakeProxy.__new__(FakeProxy)
    proxy.inner.outputs, proxy.inner.scalar = ["y"], [False]
    x = np.ones(3, np.float32)
    s = proxy.newState()
    s.write_state("s", np.zeros(3, np.float32))
    first, second, left = proxy.predict({"x": x}, s), proxy.predict({"x": x}, s), s.read_state("s")
    assert first["y"][0] == 1
    assert second["y"][0] == 2
    assert left[0] == 2
    again = coreml.ReplayProxy.__new__(coreml.ReplayProxy)
    again.tape, again.key = coreml.Tape(str(tape)), "k"
    s = again.newState()
    s.write_state("s", np.zeros(3, np.float32))
    assert again.predict({"x": x}, s)["y"][0] == 1
    assert again.predict({"x": x}, s)["y"][0] == 2
    assert s.read_state("s")[0] == 2
    with pytest.raises(RuntimeError, match="no such prediction"):
        again.predict({"x": x}, s)


def test_what_core_ml_cannot_take_is_unsupported(recorder):
    backend, _ = recorder
    with pytest.raises(coreml.Unsupported, match="up to rank 5"):
        backend.load(program(shape=(1,) * 6), "mil")


def test_without_macos_and_without_a_recording_the_error_states_why():
    h = BackendHandle(Spec("coreml-cpu", "CoreMl", file=coreml.__file__))
    import sys

    if sys.platform != "darwin":
        assert "Core ML is a part of macOS" in h.missing()


def test_values_that_the_declared_type_cannot_hold_stay_visible():
    assert coreml._as_wanted(np.array([1.5], np.float32), ((1,), "i32")).dtype == np.float32
    assert coreml._as_wanted(np.array([2.0], np.float32), ((1,), "i32")).dtype == np.int32
