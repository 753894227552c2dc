"""How a constant is written in a model is a recorded choice of the instance: said in its notation, its facts, its
file."""

from __future__ import annotations

from dataclasses import replace

import onnx
import pytest

from harness.core.dtypes import BY_NAME
from harness.core.features import features
from harness.core.instance import Arg, Instance
from harness.declare.validation import validation_error
from harness.generate.draw_engines import Prng, Replay, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import builder, dialect, notation
from suites.onnx.crossing import same

FIELDS = {
    "f32": "float_data",
    "f64": "double_data",
    "i64": "int64_data",
    "u64": "uint64_data",
    "u32": "uint64_data",
    "c64": "float_data",
    "c128": "double_data",
}


def identity(dtype: str, encoding: str, opset: int = 13) -> Instance:
    one = Arg(BY_NAME[dtype], (2,), True, values=[1, 0], encoding=encoding)
    return Instance("onnx", "Identity", 13, opset, {}, {"input": one})


def written(inst: Instance) -> str:
    """The encoding that a model shows."""
    m = onnx.load_from_string(dialect.build([inst], [arrays_of(inst)]).data)
    if not m.graph.initializer:
        assert m.graph.node[0].op_type == "Constant"
        return "Constant"
    t = m.graph.initializer[0]
    return "" if t.HasField("raw_data") else next(f.name for f, _ in t.ListFields() if f.name.endswith("_data"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "u32", "u64", "bool", "c64"])
def test_a_model_holds_a_constant_in_the_stated_encoding(dtype: str) -> None:
    field = FIELDS.get(dtype, "int32_data")
    assert dialect.encodings(BY_NAME[dtype], 13) == (field, "Constant")
    for encoding in ("", field, "Constant"):
        inst = identity(dtype, encoding)
        assert written(inst) == encoding
        assert validation_error(dialect.version_of(inst), inst) is None
        assert (f"constant in {encoding}, " in notation.text(inst)) == bool(encoding)
        assert (f"input: constant in {encoding}" in features(inst.to_json())) == bool(encoding)
        again = Instance.from_json(inst.to_json())
        assert again.tensor("input").encoding == encoding
        assert again.id == inst.id
        arrays = arrays_of(inst)
        got = dialect.run_model(dialect.build([inst], [arrays]).data, {})
        assert same(got[0], dialect.evaluate(inst, arrays)[0].value)
    assert len({identity(dtype, e).id for e in ("", field, "Constant")}) == 3


@pytest.mark.parametrize(
    ("inst", "words"),
    [
        (identity("f32", "int32_data"), "expected 'float_data' or 'Constant', got 'int32_data'"),
        (identity("f16", "raw"), "expected 'int32_data' or 'Constant', got 'raw'"),
        (Instance("onnx", "Neg", 1, 6, {}, {"X": Arg(BY_NAME["f32"], (1,), False, encoding="float_data")}), "an input"),
    ],
)
def test_an_encoding_that_the_format_lacks_is_refused(inst: Instance, words: str) -> None:
    inst = replace(inst, version=dialect.at(inst.op, None, int(inst.opset)).version)
    said = validation_error(dialect.version_of(inst), inst)
    assert said is not None
    assert "encoding: expected" in said
    assert words in said


def test_a_constant_node_takes_the_types_of_its_schema() -> None:
    """Constant-1 makes floats alone; strings have no raw bytes and so one field."""
    assert dialect.encodings(BY_NAME["i64"], 8) == ("int64_data",)
    assert dialect.encodings(BY_NAME["str"], 13) == ("Constant",)
    assert dialect.encodings(BY_NAME["str"], 1) == ()
    v = dialect.versions["onnx/CastMap/1"]
    for opset in (1, 13):
        for i in range(200):
            v.draw(Prng(case_seed(31, v.key, i)), opset)


def test_every_encoding_is_drawn_by_choice_and_not_by_the_seed_of_the_data() -> None:
    v = dialect.versions["onnx/Add/14"]
    met: dict[str, int] = {}
    for i in range(300):
        engine = Prng(case_seed(31, v.key, i))
        inst = v.draw(engine, 14)
        assert v.draw(Replay(engine.choices), 14).dumps() == inst.dumps()
        for slot in inst.args:
            a = inst.tensor(slot)
            if a.const:
                assert a.encoding in ("", *builder.encodings(a.dtype, 14))
                met[a.encoding] = met.get(a.encoding, 0) + 1
                other = replace(
                    inst, args={k: replace(inst.tensor(k), seed=inst.tensor(k).seed + 1) for k in inst.args}
                )
                assert [other.tensor(k).encoding for k in inst.args] == [inst.tensor(k).encoding for k in inst.args]
    assert {"", "Constant", "float_data", "int32_data"} <= set(met)
    assert met[""] > sum(met.values()) / 2
