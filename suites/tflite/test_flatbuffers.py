"""Our FlatBuffers writer and reader against the object API that flatc generated."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suites.tflite import flatbuffers as fb

schema = pytest.importorskip(
    "ai_edge_litert.schema_py_generated", reason="needs ai-edge-litert as the independent reader"
)


def model(**tensor: Any) -> dict[str, Any]:
    return {
        "version": 3,
        "description": "x",
        "buffers": [{}, {"data": bytes(range(7))}, {"data": np.arange(3, dtype=np.uint8)}],
        "operator_codes": [{"deprecated_builtin_code": 0, "version": 6, "builtin_code": 0}],
        "subgraphs": [
            {
                "name": "main",
                "inputs": [0, 1],
                "outputs": [2],
                "tensors": [
                    {"shape": (2, 3), "type": 0, "name": "a", **tensor},
                    {"shape": [], "name": "b", "buffer": 1},
                    {"shape": [1], "name": "c", "shape_signature": [-1], "has_rank": True},
                ],
                "operators": [
                    {
                        "opcode_index": 0,
                        "inputs": [0, 1],
                        "outputs": [2],
                        "builtin_options_type": 11,
                        "builtin_options": {"fused_activation_function": 3, "pot_scale_int16": False},
                    }
                ],
            }
        ],
    }


def test_object_api_reads_what_we_write() -> None:
    q = {"scale": [0.5, 0.25], "zero_point": [-3, 1 << 40], "quantized_dimension": 1}
    got = schema.ModelT.InitFromPackedBuf(bytearray(fb.encode("Model", model(quantization=q))))
    g = got.subgraphs[0]
    assert (got.version, got.description, g.name) == (3, b"x", b"main")
    assert list(g.tensors[0].shape) == [2, 3]
    assert list(g.tensors[0].quantization.scale) == [0.5, 0.25]
    assert list(g.tensors[0].quantization.zeroPoint) == [-3, 1 << 40]
    assert g.tensors[0].quantization.quantizedDimension == 1
    assert list(got.buffers[1].data) == list(range(7))
    assert list(got.buffers[2].data) == [0, 1, 2]
    assert g.operators[0].builtinOptions.fusedActivationFunction == 3
    assert g.operators[0].builtinOptions.potScaleInt16 == 0
    assert list(g.tensors[2].shapeSignature) == [-1]
    assert g.tensors[2].hasRank


def test_we_read_what_the_object_api_writes() -> None:
    import flatbuffers

    data = fb.encode("Model", model())
    builder = flatbuffers.Builder(1024)
    builder.Finish(schema.ModelT.InitFromPackedBuf(bytearray(data)).Pack(builder), b"TFL3")
    theirs, ours = fb.decode("Model", bytes(builder.Output())), fb.decode("Model", data)
    assert (
        theirs["subgraphs"][0]["operators"][0]["builtin_options"]
        == ours["subgraphs"][0]["operators"][0]["builtin_options"]
    )
    assert plain(theirs["buffers"]) == plain(ours["buffers"])
    assert plain(theirs["subgraphs"][0]["tensors"][0]["shape"]) == [2, 3]


def plain(v: Any) -> Any:
    """Nested values with arrays as lists."""
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, list):
        return [plain(x) for x in v]
    return v.tolist() if isinstance(v, np.ndarray) else v


def test_round_trip_and_alignment() -> None:
    m = model()
    data = fb.encode("Model", m)
    back = fb.decode("Model", data)
    assert plain(back["subgraphs"]) == plain(json.loads(json.dumps(m["subgraphs"])))
    for b in back["buffers"][1:]:
        at = data.find(b["data"].tobytes())
        assert at % 16 == 0


def test_every_table_with_every_field() -> None:
    """All 170 tables: each scalar field set to a value of its own comes back, through the object API too."""
    for table in json.loads((Path(fb.__file__).parent / "tables.json").read_text())["tables"]:
        value = {}
        for name, (slot, kind, _) in fb.table_fields(table).items():
            if kind == "bool":
                value[name] = True
            elif kind in ("f32", "f64"):
                value[name] = slot + 0.5
            elif kind in fb._SIZE:
                value[name] = slot + 1
            elif kind.startswith("[") and kind[1:-1] in fb._SIZE:
                value[name] = [0, 1, 0, 1]
        data = fb.encode(table, value)
        assert plain(fb.decode(table, data)) == value
        cls = getattr(schema, table)
        got = cls.GetRootAs(bytearray(data), 0)
        for name, v in value.items():
            method = "".join(w[0].upper() + w[1:] for w in name.split("_"))
            read = next((getattr(got, m) for m in dir(got) if m.lower() == method.lower()), None)
            assert read is not None, (table, name)
            if isinstance(v, list):
                assert [read(i) for i in range(4)] == v, (table, name)
            else:
                assert read() == v, (table, name)


@pytest.mark.parametrize("data", [b"", b"12345678", b"\x08\0\0\0TFL3", b"\xff\xff\xff\x7fTFL3" + bytes(20)])
def test_garbage_is_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError, match="TFLite"):
        fb.decode("Model", data)


def test_truncations_never_raise_anything_else() -> None:
    data = fb.encode("Model", model())
    for n in range(0, len(data), 3):
        with contextlib.suppress(ValueError):
            fb.decode("Model", data[:n])


def test_unknown_field_is_named() -> None:
    with pytest.raises(KeyError, match="Tensor has no field 'shap'"):
        fb.encode("Tensor", {"shap": [1]})


@pytest.mark.parametrize(
    ("table", "value", "words"),
    [
        ("Tensor", {"type": 300}, "Tensor.type: expected an i8, got 300"),
        ("Tensor", {"shape": [1 << 40]}, "Tensor.shape: expected an i32, got 1099511627776"),
        ("Tensor", {"shape": [1.5]}, "Tensor.shape: expected an integer, got 1.5"),
        ("QuantizationParameters", {"scale": ["x"]}, "QuantizationParameters.scale: expected a number, got 'x'"),
    ],
)
def test_a_number_that_does_not_fit_is_named(table: Any, value: Any, words: Any) -> None:
    with pytest.raises(ValueError, match=words):
        fb.encode(table, value)


def test_arrays_of_any_type_are_written_as_numbers() -> None:
    got = fb.decode("QuantizationParameters", fb.encode("QuantizationParameters", {"scale": np.arange(3)}))
    assert got["scale"].dtype == np.float32
    assert got["scale"].tolist() == [0, 1, 2]
