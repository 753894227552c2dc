"""The walk through whole graphs: it lays control flow flat, names the faulty layer, and hides nothing.

A small net of its own runs always; the listed graphs when their packages are here (``-m slow``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.backends import registry
from harness.core.errors import OpconformError, UsageError
from harness.core.instance import Instance
from harness.workers.pool import BackendHandle
from suites.onnx import run_model
from suites.onnx_models import __main__ as command
from suites.onnx_models import listed
from suites.onnx_models.unfold import opset, unfold
from suites.onnx_models.walk import layer_name, walk

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@pytest.fixture(scope="module")
def ort() -> Iterator[BackendHandle]:
    with registry.create("onnxruntime", deadline=300.0) as handle:
        why = handle.missing()
        if why:
            pytest.skip(why)
        yield handle


def value(name: str, kind: int = FLOAT, shape: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def net(*extra: onnx.NodeProto, domain: str = "") -> onnx.ModelProto:
    """Conv, If (whose taken branch holds a Loop over a MatMul, with a scanned output), LeakyRelu, Gemm, Softmax."""
    rng = np.random.default_rng(7)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.uniform(-1, 1, shape).astype(np.float32), name)

    turn = helper.make_graph(
        [
            helper.make_node("MatMul", ["v", "square"], ["product"], name="turn_matmul"),
            helper.make_node("Tanh", ["product"], ["v_next"]),
            helper.make_node("Add", ["v_next", "flat"], ["row"]),
            helper.make_node("Identity", ["go"], ["go_next"]),
        ],
        "turn",
        [value("i", INT64, []), value("go", BOOL, []), value("v", FLOAT, [1, 6])],
        [value("go_next", BOOL, []), value("v_next", FLOAT, [1, 6]), value("row", FLOAT, [1, 6])],
    )
    then = helper.make_graph(
        [
            helper.make_node("Loop", ["turns", "", "flat"], ["last", "rows"], name="loop", body=turn),
            helper.make_node("ReduceSum", ["rows", "first"], ["sum"], keepdims=0),
            helper.make_node("Add", ["sum", "last"], ["branch"]),
        ],
        "then",
        [],
        [value("branch", FLOAT, None)],
    )
    other = helper.make_graph([helper.make_node("Neg", ["flat"], ["branch"])], "other", [], [value("branch")])
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["features"], name="conv"),
        helper.make_node("Reshape", ["features", "one_row"], ["flat"]),
        helper.make_node("ReduceMax", ["flat"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "limit"], ["taken"]),
        helper.make_node("If", ["taken"], ["chosen"], name="if", then_branch=then, else_branch=other),
        helper.make_node("LeakyRelu", ["chosen"], ["bent"], alpha=0.1, name="bend"),
        *extra,
        helper.make_node("Gemm", ["bent", "dense"], ["scores"], name="gemm"),
        helper.make_node("Softmax", ["scores"], ["y"], axis=1),
    ]
    fixed = [
        weights("kernel", 2, 1, 2, 2),
        weights("square", 6, 6),
        weights("dense", 6, 4),
        numpy_helper.from_array(np.array([1, 6], np.int64), "one_row"),
        numpy_helper.from_array(np.array([0], np.int64), "first"),
        numpy_helper.from_array(np.array(3, np.int64), "turns"),
        numpy_helper.from_array(np.array(-100, np.float32), "limit"),
    ]
    graph = helper.make_graph(nodes, "net", [value("x", FLOAT, [1, 1, 2, 4])], [value("y", FLOAT, [1, 4])], fixed)
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


X = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 1, 2, 4)}
# of the net laid flat: outside; three turns, the value they leave, three slices and their Concat; the branch, its value
ROWS = 7 + (3 * 4 + 1 + 3 + 1) + (2 + 1)


def corrupt(model: onnx.ModelProto, weight: str, by: float = 1.01) -> onnx.ModelProto:
    """The model with one of its initializers a little off."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    t = next(t for t in out.graph.initializer if t.name == weight)
    t.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(t) * by).astype(np.float32), weight))
    return out


def test_control_flow_is_laid_flat_without_changing_a_bit() -> None:
    flat = unfold(net(), X)
    assert not {n.op_type for n in flat.graph.node} & {"If", "Loop"}
    assert opset(flat) == 17
    made = [o for n in flat.graph.node for o in n.output]
    assert len(made) == len(set(made)) == ROWS
    (want,), (got,) = run_model(net(), X), run_model(flat, X)
    assert want.tobytes() == got.tobytes()
    onnx.checker.check_model(flat)


def test_the_other_branch_is_taken_too() -> None:
    model = corrupt(net(), "limit", -1.0)
    flat = unfold(model, X)
    assert [n.op_type for n in flat.graph.node].count("Neg") == 1
    assert "Loop" not in {n.op_type for n in flat.graph.node}
    assert run_model(model, X)[0].tobytes() == run_model(flat, X)[0].tobytes()


def test_every_layer_of_a_good_run_is_within_its_bound(ort: BackendHandle) -> None:
    found = walk(net(), X, ort)
    assert found.good(), str(found)
    assert found.gaps == {}, str(found)
    assert found.fault is None, str(found)
    assert len(found.report.rows) == ROWS
    assert found.own["y"].tobytes() == run_model(net(), X)[0].tobytes()


@pytest.mark.parametrize(
    ("weight", "layer"),
    [("kernel", "Conv features"), ("square", "MatMul loop#0/product"), ("dense", "Gemm scores")],
)
def test_a_planted_fault_is_named(ort: BackendHandle, weight: str, layer: str) -> None:
    """The backend runs other weights than the reference; every layer behind the first faulty one is wrong as well."""
    found = walk(net(), X, ort, subject=corrupt(net(), weight))
    first = found.report.first
    assert first is not None
    assert first.name.replace("if/", "") == layer
    wrong = [r.name for r in found.report.rows if r.out]
    assert len(wrong) == (3 if weight == "square" else 1), "what lies behind is judged on the inputs that it got"
    assert not found.good()
    assert first.name in str(found)


def test_a_planted_attribute_is_named(ort: BackendHandle) -> None:
    other = net()
    bend = next(n for n in other.graph.node if n.name == "bend")
    bend.attribute[0].f = 0.1001
    found = walk(net(), X, ort, subject=other)
    assert [r.name for r in found.report.rows if r.out] == ["LeakyRelu bent"]


def test_the_fault_is_an_instance_with_its_values(ort: BackendHandle) -> None:
    found = walk(net(), X, ort, subject=corrupt(net(), "dense"))
    assert found.fault is not None
    inst = Instance.from_json(json.loads(found.fault.dumps()))
    assert inst.key == "onnx/Gemm/13"
    assert inst.tensor("B").shape == (6, 4)
    values = inst.tensor("B").values
    assert values is not None
    assert len(values) == 24


def test_nodes_without_a_meaning_are_reported_and_the_rest_is_judged(ort: BackendHandle) -> None:
    foreign = helper.make_node("Gelu", ["bent"], ["idle"], domain="com.microsoft")
    model = net(foreign, domain="com.microsoft")
    model.graph.output.append(value("idle", FLOAT, [1, 6]))
    found = walk(model, X, ort)
    assert list(found.gaps) == ["Gelu idle"]
    assert len(found.report.rows) == ROWS
    assert not found.good()
    assert found.good(["com.microsoft.Gelu"])
    assert "not judged, 1 layers: no meaning here for com.microsoft.Gelu" in str(found)


def test_a_backend_that_refuses_is_an_error(ort: BackendHandle) -> None:
    model = net(helper.make_node("NoSuchOp", ["bent"], ["idle"]))
    with pytest.raises(OpconformError, match="NoSuchOp"):
        walk(model, X, ort)


def test_the_command_names_the_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPCONFORM_GRAPHS", str(tmp_path))
    onnx.save(net(), tmp_path / "net.onnx")
    drawn = ["--input", "x=1,1,2,4:uniform:-1:1"]
    assert command.main([str(tmp_path / "net.onnx"), *drawn, "--table"]) == 0
    told = capsys.readouterr().out
    assert f"{ROWS} layers within their bounds" in told
    assert "Conv features" in told
    onnx.save(net(helper.make_node("NoSuchOp", ["bent"], ["idle"])), tmp_path / "refused.onnx")
    assert command.main([str(tmp_path / "refused.onnx"), str(tmp_path / "net.onnx"), *drawn]) == 1
    told = capsys.readouterr().out
    assert "refused.onnx: not run: onnxruntime: " in told
    assert f"{ROWS} layers within" in told
    for bad in (
        ["nowhere.onnx"],
        ["no-such-graph"],
        [str(tmp_path / "net.onnx")],
        [str(tmp_path / "net.onnx"), "--input", "x=a:unit"],
    ):
        assert command.main(bad) == 2
        assert capsys.readouterr().err.count("\n") == 1


# -- the list -----------------------------------------------------------------------------------------------------


def test_the_list_names_graphs_of_many_makers() -> None:
    every = listed.graphs().values()
    assert len({g.maker for g in every if "==" in g.package}) >= 6
    assert all(len(g.sha256) == 64 and g.inputs for g in every)


def test_other_content_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPCONFORM_GRAPHS", str(tmp_path))
    one = listed.graphs()["nudenet"]
    (tmp_path / one.package / one.file).parent.mkdir(parents=True)
    (tmp_path / one.package / one.file).write_bytes(b"another")
    assert listed.find(one) is None
    with pytest.raises(UsageError, match="takes"):
        listed.draw(net(), {})


def load(name: str) -> tuple[listed.Listed, onnx.ModelProto]:
    one = listed.graphs()[name]
    path = listed.find(one)
    if path is None:
        pytest.skip(f"{one.package} is not here: {listed.HOW}")
    return one, onnx.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(listed.graphs()))
def test_listed_graphs_layer_by_layer(ort: BackendHandle, name: str) -> None:
    one, model = load(name)
    inputs = listed.draw(model, one.inputs)
    found = walk(model, inputs, ort)
    assert found.good(one.gaps), str(found)
    assert bool(found.gaps) == bool(one.gaps)
    if not found.gaps:  # laying flat changed nothing: the graph as it came gives the same bits
        for mine, plain in zip(found.own.values(), run_model(model, inputs), strict=True):
            assert mine.tobytes() == plain.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(listed.graphs()))
def test_a_fault_planted_in_a_listed_graph_is_named(ort: BackendHandle, name: str) -> None:
    """The weights of one layer amid the graph are 5 % off, for the backend alone."""
    one, model = load(name)
    inputs = listed.draw(model, one.inputs)
    flat = unfold(model, inputs)
    uses = [i for n in flat.graph.node for i in n.input]
    fixed = {t.name for t in flat.graph.initializer}
    held = {n.output[0]: n for n in flat.graph.node if n.op_type == "Constant"}
    able = [
        n
        for n in flat.graph.node
        if n.op_type in ("Conv", "MatMul", "Gemm", "ConvTranspose")
        and len(n.input) > 1
        and (n.input[1] in fixed or n.input[1] in held)
        and uses.count(n.input[1]) == 1
    ]
    if not able:  # weights that are computed on the way, or a quantised graph: its scales then
        able = [n for n in flat.graph.node if n.op_type == "Conv"]
        able = able or [n for n in flat.graph.node if n.op_type == "Mul" and n.input[1] in fixed]
    target = able[len(able) // 2]
    subject = onnx.ModelProto()
    subject.CopyFrom(flat)
    node = next(n for n in subject.graph.node if n.output[0] == target.output[0])
    scale = numpy_helper.from_array(np.array(1.05, np.float32), "planted/scale")
    subject.graph.initializer.append(scale)
    at = list(subject.graph.node).index(node)
    weight = node.input[1]
    node.input[1] = "planted/weight"
    rest = list(subject.graph.node)
    del subject.graph.node[:]
    subject.graph.node.extend(
        [*rest[:at], helper.make_node("Mul", [weight, "planted/scale"], ["planted/weight"]), *rest[at:]]
    )
    found = walk(flat, inputs, ort, subject=subject)
    assert found.report.first is not None, str(found)
    assert found.report.first.name == layer_name(target), str(found)


# -- models that cannot be read -----------------------------------------------------------------------------------


def nested(levels: int) -> bytes:
    """A model of Ifs inside each other, written by hand: protobuf's own writer refuses it."""

    def field(number: int, data: bytes) -> bytes:
        size, out = len(data), bytearray([number << 3 | 2])
        while size > 127:
            out.append(size & 127 | 128)
            size >>= 7
        return bytes([*out, size]) + data

    graph = b""
    for _ in range(levels):
        attribute = field(1, b"then_branch") + field(6, graph) + bytes([20 << 3 & 127 | 128, 1, 5])
        graph = field(1, field(4, b"If") + field(5, attribute))
    return bytes([1 << 3, 8]) + field(7, graph) + field(8, bytes([2 << 3, 18]))


def calls(depth: int) -> onnx.ModelProto:
    """A model whose functions call each other, so many deep."""
    inner, functions = [helper.make_node("Relu", ["x"], ["y"])], []
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    for i in range(depth):
        functions.append(helper.make_function("own", f"F{i}", ["x"], ["y"], inner, imports))
        inner = [helper.make_node(f"F{i}", ["x"], ["y"], domain="own")]
    graph = helper.make_graph(inner, "g", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    return helper.make_model(graph, functions=functions, ir_version=9, opset_imports=imports)


def test_a_model_with_functions_of_its_own_is_walked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(calls(3), tmp_path / "calls.onnx")
    assert command.main([str(tmp_path / "calls.onnx"), "--input", "x=2:unit"]) == 0, capsys.readouterr()
    assert "1 layers within" in capsys.readouterr().out


def unreadable() -> dict[str, bytes]:
    model = net()
    outside, vast = net(), net()
    t = outside.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "weights.bin"), ("length", str(2 << 30))):
        t.external_data.add(key=key, value=text)
    vast.graph.initializer[0].dims[:] = [1 << 29, 1, 1, 1]
    mute = net()
    mute.graph.initializer[0].data_type = 99
    models = {
        "weights elsewhere": outside,
        "2 GiB of weights claimed": vast,
        "an unknown type": mute,
        "calls of calls": calls(3000),
    }
    return {
        "truncated": model.SerializeToString()[:-40],
        "no model": b"hello",
        "empty": b"",
        "Ifs in Ifs": nested(3000),
        **{name: m.SerializeToString() for name, m in models.items()},
    }


@pytest.mark.parametrize("what", list(unreadable()))
def test_a_model_that_cannot_be_read_is_one_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.onnx").write_bytes(unreadable()[what])
    onnx.save(net(), tmp_path / "net.onnx")
    files = [str(tmp_path / "bad.onnx"), str(tmp_path / "net.onnx")]
    assert command.main([*files, "--input", "x=1,1,2,4:uniform:-1:1"]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1, said.err
    assert "bad.onnx: " in said.err, said.err
    assert len(said.err) < 700, said.err
    assert f"{ROWS} layers within" in said.out  # the others are walked all the same


def test_inputs_beyond_the_machine_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(net(), tmp_path / "net.onnx")
    assert command.main([str(tmp_path / "net.onnx"), "--input", f"x=1,1,{1 << 21},{1 << 21}:unit"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
