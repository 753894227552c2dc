"""The adapters of the real runtimes: types the bindings refuse, gaps, crashes, infos."""

import json

import ml_dtypes as ml
import numpy as np
import pytest

from harness.backends import registry
from harness.core.errors import UsageError
from harness.core.outcome import Model, Status
from harness.workers import worker
from harness.workers.info import declared
from harness.workers.wire import Job
from harness.workers.worker import processor
from suites.meta.runtimes import running

NARROW = {
    10: np.float16,
    16: ml.bfloat16,
    17: ml.float8_e4m3fn,
    18: ml.float8_e4m3fnuz,
    19: ml.float8_e5m2,
    20: ml.float8_e5m2fnuz,
    21: ml.uint4,
    22: ml.int4,
}


@pytest.fixture(scope="module", params=["onnxruntime", "onnxruntime-all", "onnx-reference"])
def onnx_backend(request):
    with running(request.param) as h:
        yield h


def onnx_model(op, types, shapes, out, opset=21, **attrs):
    onnx = pytest.importorskip("onnx")
    typed = enumerate(zip(types, shapes, strict=True))
    ins = [onnx.helper.make_tensor_value_info(f"x{i}", t, s) for i, (t, s) in typed]
    node = onnx.helper.make_node(op, [i.name for i in ins], ["y"], name="n0", **attrs)
    graph = onnx.helper.make_graph([node], "g", ins, [onnx.helper.make_tensor_value_info("y", out, None)])
    m = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    return Model("onnx", m.SerializeToString(), [[(i.name, i.name, None) for i in ins]], [["y"]])


def ask(h, model, *values):
    return h.run([Job(model, [[list(values)]])])[0].outcomes[0][0]


@pytest.mark.parametrize("number", NARROW)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (5,)])
def test_narrow_types_pass_in_and_out(onnx_backend, number, shape):
    v = (np.arange(np.prod(shape, dtype=int)) % 7 + 1).reshape(shape).astype(NARROW[number])
    out = ask(onnx_backend, onnx_model("Cast", [number], [shape], 1, to=1), v)
    if out.status is Status.UNSUPPORTED:
        pytest.skip(out.message)
    assert out.outputs[0].shape == shape
    np.testing.assert_array_equal(out.outputs[0], v.astype(np.float32))
    back = ask(onnx_backend, onnx_model("Cast", [1], [shape], number, to=number), v.astype(np.float32))
    if number in (21, 22) and onnx_backend.name.startswith("onnxruntime"):
        return  # whose rounding of 4-bit casts is its own matter
    assert back.outputs[0].dtype == v.dtype
    assert back.outputs[0].shape == shape
    assert back.outputs[0].tobytes() == v.tobytes()


def test_borrowed_memory_is_kept():
    """An OrtValue of a narrow type borrows the array's memory, and Unsqueeze's output the input's."""
    with running("onnxruntime") as h:
        rng = np.random.default_rng(0)
        m = onnx_model("Unsqueeze", [16, 7], [(64, 33), (1,)], 16)
        for _ in range(20):
            v = rng.normal(size=(64, 33)).astype(ml.bfloat16)
            out = ask(h, m, v, np.array([0], np.int64))
            assert out.outputs[0].tobytes() == v.tobytes()


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-all"])
def test_a_sparse_constant_next_to_narrow_types_is_an_array(name):
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    values, at = h.make_tensor("v", 1, [2], [2.0, -1.0]), h.make_tensor("i", 7, [2], [0, 3])
    nodes = [
        h.make_node("Identity", ["x"], ["y"]),
        h.make_node("Constant", [], ["z"], sparse_value=h.make_sparse_tensor(values, at, [2, 2])),
    ]
    x, y = (h.make_tensor_value_info(n, 16, [1]) for n in "xy")
    graph = h.make_graph(nodes, "g", [x], [y, h.make_tensor_value_info("z", 1, [2, 2])])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    with running(name) as b:
        out = ask(b, Model("onnx", m.SerializeToString(), [[("x", "x", None)]], [["y", "z"]]), np.ones(1, ml.bfloat16))
    assert out.status is Status.VALUE, out
    np.testing.assert_array_equal(out.outputs[1], np.array([[2, 0], [0, -1]], np.float32))


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-all"])
def test_a_sequence_next_to_narrow_types_is_a_list(name):
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    nodes = [h.make_node("Identity", ["x"], ["y"]), h.make_node("SplitToSequence", ["a"], ["s"], axis=0)]
    x, y = (h.make_tensor_value_info(n, 16, [1]) for n in "xy")
    s = h.make_tensor_sequence_value_info("s", 1, None)
    graph = h.make_graph(nodes, "g", [x, h.make_tensor_value_info("a", 1, [2, 2])], [y, s])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    a, bf16 = np.float32([[1, 2], [3, 4]]), np.ones(1, ml.bfloat16)
    with running(name) as b:
        ins: list[tuple[str, str, int | None]] = [("x", "x", None), ("a", "a", None)]
        out = ask(b, Model("onnx", m.SerializeToString(), [ins], [["y", "s"]]), bf16, a)
    assert out.status is Status.VALUE, out
    assert out.outputs[0].dtype == bf16.dtype
    np.testing.assert_array_equal(out.outputs[1], [a[:1], a[1:]])


def test_strings(onnx_backend):
    v = np.array(["a", "ä", ""], object)
    out = ask(onnx_backend, onnx_model("Identity", [8], [(3,)], 8), v)
    assert [str(x) for x in out.outputs[0]] == list(v)


def test_gaps_are_unsupported_and_nonsense_is_rejected(onnx_backend):
    x = np.ones(3, np.float32)
    new = ask(onnx_backend, onnx_model("Relu", [1], [(3,)], 1, opset=99), x)
    assert new.status is Status.UNSUPPORTED, new
    bad = ask(onnx_backend, onnx_model("Gather", [1], [(3,)], 1), x)
    assert bad.status is Status.REJECTED
    garbage = ask(onnx_backend, Model("onnx", b"\x08garbage", [[("x", "x", None)]], [["y"]]), x)
    assert garbage.status is Status.REJECTED


def test_a_runtime_that_dies_is_reported():
    """Division by zero in integers: SIGFPE in ONNX Runtime at the time of writing; a later release may refuse it."""
    with running("onnxruntime") as h:
        a, zero = np.array([7], np.int32), np.array([0], np.int32)
        out = ask(h, onnx_model("Mod", [6, 6], [(1,), (1,)], 6), a, zero)
        assert out.status in (Status.CRASHED, Status.REJECTED, Status.VALUE)
        again = ask(h, onnx_model("Mod", [6, 6], [(1,), (1,)], 6), a, np.array([4], np.int32))
        assert again.outputs[0].tolist() == [3]


def test_the_highest_opset_is_found():
    with running("onnxruntime") as h:
        assert h.info.opset >= 21
        assert h.info.more["ir"] >= 9


# -- LiteRT -----------------------------------------------------------------------------------------------------

LITERT = ("litert-ref", "litert-opt", "litert-xnnpack")
TYPES = {
    np.float32: 0,
    np.float16: 1,
    np.int32: 2,
    np.uint8: 3,
    object: 5,
    np.int8: 9,
    ml.int4: 17,
    ml.bfloat16: 18,
    ml.uint4: 20,
    ml.float8_e5m2: 22,
}


ARM = ["aarch64", "asimd", "asimdhp", "asimddp"]


@pytest.mark.parametrize(
    ("offers", "build", "added_in"),
    [
        (ARM, (), {"f16": "f16"}),
        (["aarch64", "asimd"], (), {}),
        (["x86_64", "avx2", "f16c"], (), {}),
        ([], (), {}),
        (ARM, ("asimdhp",), {}),
    ],
)
def test_what_f16_is_added_up_in_follows_from_the_processor(monkeypatch, offers, build, added_in):
    """ONNX Runtime has kernels of f16 for Arm, except in Apple's build."""
    onnxruntime = pytest.importorskip("harness.backends.onnxruntime")
    monkeypatch.setattr(processor, "words", lambda: offers)
    monkeypatch.setattr(onnxruntime.OnnxRuntime, "unused", build)
    info = declared("onnxruntime", json.loads(json.dumps(worker.Server(onnxruntime.OnnxRuntime()).greeting())))
    assert info.acc == added_in
    assert info.cpu == tuple(w for w in offers if w not in build)


def lite_model(op, values, out, options=None, shape=(2, 3), version=1):
    from suites.tflite import flatbuffers

    tensors = [
        {"shape": list(v.shape), "type": TYPES[v.dtype.type if v.dtype != object else object], "name": f"x{i}"}
        for i, v in enumerate(values)
    ]
    tensors.append({"shape": list(shape), "type": out, "name": "y"})
    node = {"opcode_index": 0, "inputs": list(range(len(values))), "outputs": [len(values)]}
    if options:
        node.update(builtin_options_type=options[0], builtin_options=options[1])
    code = {"deprecated_builtin_code": min(op, 127), "version": version, "builtin_code": op}
    graph = {
        "name": "main",
        "inputs": node["inputs"],
        "outputs": node["outputs"],
        "tensors": tensors,
        "operators": [node],
    }
    model = {"version": 3, "buffers": [{}], "operator_codes": [code], "subgraphs": [graph]}
    data = flatbuffers.encode("Model", model)
    return Model("tflite", data, [[(f"x{i}", f"x{i}", None) for i in range(len(values))]], [["y"]])


@pytest.fixture(scope="module", params=LITERT)
def lite(request):
    with running(request.param) as h:
        yield h


RESHAPE, ADD, WHERE = 22, 0, 109


@pytest.mark.parametrize("t", TYPES, ids=lambda t: getattr(t, "__name__", str(t)))
def test_types_of_litert(lite, t):
    v = np.array([["a", "ä", "c"]] * 2, object) if t is object else (np.arange(6).reshape(2, 3) + 1).astype(t)
    out = ask(lite, lite_model(RESHAPE, [v], TYPES[t], (17, {"new_shape": [2, 3]})), v)
    if lite.name == "litert-xnnpack" and out.status is Status.UNSUPPORTED:
        assert "not delegated" in out.message
        return
    got = out.outputs[0]
    assert got.dtype == v.dtype
    assert got.shape == v.shape
    assert got.tolist() == v.tolist()


def test_many_sets_through_one_interpreter(lite):
    rng = np.random.default_rng(0)
    sets = [[[rng.normal(size=(2, 3)).astype(np.float32) for _ in range(2)]] for _ in range(8)]
    (r,) = lite.run([Job(lite_model(ADD, sets[0][0], 0, (11, {})), sets)])
    for given, row in zip(sets, r.outcomes, strict=True):
        np.testing.assert_array_equal(row[0].outputs[0], given[0][0] + given[0][1])


def test_sets_of_different_shapes():
    with running("litert-opt") as h:
        sets = [[[np.ones((n, 3), np.float32), np.ones((n, 3), np.float32)]] for n in (2, 5, 1, 2)]
        (r,) = h.run([Job(lite_model(ADD, sets[0][0], 0, (11, {})), sets)])
        assert [row[0].outputs[0].shape for row in r.outcomes] == [(2, 3), (5, 3), (1, 3), (2, 3)]


def test_dynamic_and_empty_outputs():
    with running("litert-ref") as h:
        x = np.array([[0, 1, 0], [2, 0, 0]], np.float32)
        assert ask(h, lite_model(WHERE, [x], 4), x).outputs[0].tolist() == [[0, 1], [1, 0]]
        assert ask(h, lite_model(WHERE, [x], 4), x * 0).outputs[0].shape == (0, 2)


def test_versions_and_types_it_lacks_are_unsupported(lite):
    x = np.ones((2, 3), np.float32)
    assert ask(lite, lite_model(ADD, [x, x], 0, (11, {}), version=99), x, x).status is Status.UNSUPPORTED
    s = np.array([["a", "b", "c"]] * 2, object)
    assert ask(lite, lite_model(ADD, [s, s], 5, (11, {})), s, s).status is Status.UNSUPPORTED


def test_xnnpack_answers_only_for_itself():
    with running("litert-xnnpack") as h:
        x = np.ones((2, 3), np.float32)
        assert ask(h, lite_model(ADD, [x, x], 0, (11, {})), x, x).status is Status.VALUE
        sets = [[[v]] for v in (x, x, np.ones((4, 3), np.float32))]  # the same shape again, and another
        (r,) = h.run([Job(lite_model(WHERE, [x], 4), sets)])
        for (out,) in r.outcomes:
            assert out.status is Status.UNSUPPORTED
            assert "not delegated" in out.message


# -- names ------------------------------------------------------------------------------------------------------


def test_an_export_without_the_writer_of_weights_is_missing():
    with registry.create("suites.meta.pass_backends:PurePython") as h:
        assert "no libmilstoragepython" in (h.missing() or "")


def test_unknown_names_are_refused():
    for name in ("nope", ":Class", "module:"):
        with pytest.raises(UsageError):
            registry.find(name)


def test_direct_runs_a_file(tmp_path):
    with running("onnxruntime"):
        pass
    m = onnx_model("Relu", [1], [(3,)], 1)
    (tmp_path / "m.onnx").write_bytes(m.data)
    x = np.array([-1, 0, 2], np.float32)
    assert registry.direct("onnxruntime", tmp_path / "m.onnx", [{"x0": x}], ["y"])[0].tolist() == [0, 0, 2]
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x00")
    with pytest.raises(RuntimeError, match="rejected in load"):
        registry.direct("onnxruntime", tmp_path / "bad.onnx", [{"x0": x}], ["y"])
