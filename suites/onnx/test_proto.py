"""Our encoder and decoder against the protobuf classes of the onnx package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.dtypes import ALL, BY_NAME, DType
from harness.core.errors import FormatError
from suites.onnx import proto
from suites.onnx.decode import GraphProto, Ref, decode, decode_tensor
from suites.onnx.proto import CODES, Sparse, Type

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def some(d: DType, shape: tuple[int, ...]) -> np.ndarray:
    n = int(np.prod(shape))
    if d.kind == "s":
        return np.array([f"s{i}é" for i in range(n)], object).reshape(shape)
    if d.kind == "c":
        return (np.arange(n) - 2j * np.arange(n)).astype(d.np).reshape(shape)
    if d.kind == "b":
        return (np.arange(n) % 3 == 0).reshape(shape)
    if d.name == "f8e8m0":  # powers of two only
        return (2.0 ** (np.arange(n) % 200 - 100.0)).astype(d.np).reshape(shape)
    lo = {"i": -(1 << min(d.bits, 60) - 1), "u": 0}.get(d.kind, -2)
    top = (1 << min(d.bits, 60)) - 1 + lo if d.kind in "iu" else 3
    return (
        np.linspace(lo, top, n)
        .astype(np.int64)
        .astype(np.float64 if d.kind == "f" else np.int64)
        .astype(d.np)
        .reshape(shape)
    )


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("name", [d.name for d in ALL if d.name in CODES])
def test_tensor_of_every_type(name: str, raw: bool) -> None:
    for shape in ((), (0, 3), (5,), (3, 7)):
        a = some(BY_NAME[name], shape)
        data = proto.encode(proto.tensor("t", a, raw=raw))
        t = onnx.TensorProto()
        t.ParseFromString(data)
        assert t.name == "t"
        assert tuple(t.dims) == shape
        assert t.data_type == CODES[name]
        theirs = numpy_helper.to_array(t)
        assert theirs.dtype == a.dtype or name == "str"
        assert theirs.tolist() == a.tolist()
        ours = decode_tensor(data)
        assert ours.dtype == a.dtype
        assert ours.tolist() == a.tolist()
        assert ours.shape == shape
        again = numpy_helper.from_array(theirs, "t") if name != "str" else t  # what onnx itself writes
        assert decode_tensor(again.SerializeToString()).tolist() == a.tolist()


def test_attributes() -> None:
    sparse = Sparse(np.array([1.5], np.float32), np.array([2], np.int64), (3,))
    cases = [
        (proto.INT, -5),
        (proto.INT, 1 << 40),
        (proto.FLOAT, -0.0),
        (proto.FLOAT, 0.0),
        (proto.STRING, "é\n"),
        (proto.INTS, [1, -2, 300]),
        (proto.INTS, []),
        (proto.FLOATS, [1.5, -0.0]),
        (proto.STRINGS, ["a", ""]),
        (proto.TENSOR, np.arange(3, dtype=np.float32)),
    ]
    for kind, value in cases:
        a = onnx.AttributeProto()
        a.ParseFromString(proto.encode(proto.attribute("a", value, kind)))
        assert a.type == kind
        assert a.name == "a"
        got = onnx.helper.get_attribute_value(a)
        if kind == proto.TENSOR:
            assert numpy_helper.to_array(got).tolist() == value.tolist()
        elif kind == proto.STRING:
            assert got.decode() == value
        elif kind == proto.STRINGS:
            assert [x.decode() for x in got] == value
        else:
            assert (list(got) if isinstance(value, list) else got) == value
            assert str(got) == str(value)
    a = onnx.AttributeProto()
    a.ParseFromString(proto.encode(proto.attribute("s", sparse, proto.SPARSE)))
    assert list(a.sparse_tensor.dims) == [3]
    assert a.type == proto.SPARSE
    optional = proto.parse_type("optional(seq(f16))", (2, None, "N"))
    a.ParseFromString(proto.encode(proto.attribute("t", optional, proto.TYPE)))
    shape = a.tp.optional_type.elem_type.sequence_type.elem_type.tensor_type.shape
    assert [d.WhichOneof("value") for d in shape.dim] == ["dim_value", None, "dim_param"]


@pytest.mark.parametrize("text", ["f32", "seq(i64)", "optional(seq(str))", "map(str,f32)", "seq(map(i64,f32))"])
def test_types_round_trip(text: str) -> None:
    t = proto.parse_type(text, ("N", 3, None) if "map" not in text else ())
    body = proto.value_info("v", proto.type_proto(t))
    v = onnx.ValueInfoProto()
    v.ParseFromString(proto.encode(body))
    assert v.name == "v"
    graph = proto.graph("g", [proto.node("Foo", ["v"], ["w"])], [body], [proto.value_info("w", None)])
    m = decode(proto.model(graph, {"": 9}, 4))
    assert m.graph.inputs == [("v", t)]
    assert m.graph.outputs == [("w", None)]
    assert m.opsets == {"": 9}


def test_sparse_initializer_and_functions() -> None:
    import onnx.helper as h

    node = h.make_node("Foo", ["x"], ["y"], domain="me")
    body = h.make_node("Elu", ["a"], ["b"])
    ref = onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    body.attribute.append(ref)
    f = h.make_function("me", "Foo", ["a"], ["b"], [body], [h.make_opsetid("", 13)], attributes=["slope"])
    g = h.make_graph([node], "g", [], [])
    sp = h.make_sparse_tensor(h.make_tensor("s", 1, [1], [4.0]), h.make_tensor("i", 7, [1, 2], [0, 1]), [2, 2])
    g.sparse_initializer.append(sp)
    m = decode(h.make_model(g, functions=[f]).SerializeToString())
    assert isinstance(m.graph.initializers["s"], Sparse)
    assert m.graph.initializers["s"].indices.shape == (1, 2)
    assert m.functions[0].nodes[0].attrs["alpha"] == Ref("slope")
    assert m.functions[0].opsets == {"": 13}
    ours = proto.function(
        "me",
        "Foo",
        ["a"],
        ["b"],
        [proto.node("Elu", ["a"], ["b"], [proto.ref_attribute("alpha", "slope", proto.FLOAT)])],
        {"": 13},
        ["slope"],
    )
    theirs = onnx.FunctionProto()
    theirs.ParseFromString(proto.encode(ours))
    assert theirs.node[0].attribute[0].ref_attr_name == "slope"
    assert (list(theirs.input), theirs.node[0].op_type, theirs.domain) == (["a"], "Elu", "me")


def same(g: GraphProto, o: onnx.GraphProto) -> None:
    assert [n.op for n in g.nodes] == [n.op_type for n in o.node]
    assert [n for n, _ in g.inputs] == [v.name for v in o.input]
    for t in o.initializer:
        a = numpy_helper.to_array(t)
        b = g.initializers[t.name]
        assert a.shape == b.shape, t.name
        assert a.tolist() == b.tolist(), t.name
    for n, m in zip(g.nodes, o.node):
        assert n.inputs == list(m.input)
        assert n.outputs == list(m.output)
        assert set(n.attrs) == {a.name for a in m.attribute}
        for a in m.attribute:
            w = onnx.helper.get_attribute_value(a)
            v = n.attrs[a.name]
            if a.type == onnx.AttributeProto.GRAPH:
                same(v, w)
            elif a.type == onnx.AttributeProto.TENSOR:
                assert numpy_helper.to_array(w).tolist() == v.tolist()
            elif a.type == onnx.AttributeProto.STRING:
                assert v == w.decode()
            elif a.type == onnx.AttributeProto.STRINGS:
                assert v == [x.decode() for x in w]
            else:
                assert v == (list(w) if isinstance(v, list) else w)


def test_models_that_ship_with_onnx() -> None:
    files = sorted(DATA.glob("*/*/model.onnx"))
    assert len(files) > 100
    for f in files:
        data = f.read_bytes()
        m = decode(data)
        theirs = onnx.load_from_string(data)
        same(m.graph, theirs.graph)
        assert m.ir == theirs.ir_version
        assert m.opsets == {o.domain: o.version for o in theirs.opset_import}
    for f in sorted(DATA.glob("*/*/test_data_set_*/*.pb")):
        data = f.read_bytes()
        t = onnx.TensorProto()
        t.ParseFromString(data)
        np.testing.assert_array_equal(decode_tensor(data), numpy_helper.to_array(t))


def test_damaged_files_are_reported() -> None:
    good = next(iter(sorted(DATA.glob("simple/*/model.onnx")))).read_bytes()
    for bad in (b"", b"\x08", good[: len(good) // 2], b"PK\x03\x04" + good, b"\xff" * 50):
        with pytest.raises(FormatError):
            decode(bad)


def test_type_of_container_kinds() -> None:
    assert proto.parse_type("seq(f32)") == Type("seq", None, None, Type("tensor", BY_NAME["f32"], None))
