"""Laws over all declared op versions: what is drawn can be built, checked, parsed, run; neighbours agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.cases.case import draw_case
from harness.core.dtypes import BY_NAME
from harness.core.instance import Arg, Instance
from harness.declare import OpVersion
from harness.engine.batching import build
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.onnx import builder, dialect, notation, schemas
from suites.onnx.crossing import neighbours, said_at, same, values
from suites.onnx.test_schema import tomllib

CHANGED = tomllib.loads((Path(__file__).parent / "changed.toml").read_text())
VERSIONS = sorted(dialect.versions.values(), key=lambda v: (v.op, int(v.version)))
OPS = sorted({v.op for v in VERSIONS})
GROUPS = [OPS[i : i + 12] for i in range(0, len(OPS), 12)]


def random_op(v: OpVersion) -> bool:
    e = v.entry.error
    if not e:
        assert v.meaning is not None
        e = v.meaning.error
    return (e[0] if isinstance(e, tuple) else e).random


def draws(v: OpVersion, n: int, opset: Any = None) -> Iterator[tuple[Instance, dict[str, Any]]]:
    for i in range(n):
        inst = v.draw(Prng(case_seed(20, v.key, i)), opset)
        yield inst, arrays_of(inst)


def feeds(model: Any, i: int, arrays: dict[str, Any]) -> dict[str, Any]:
    return {n: arrays[s] if k is None else arrays[s][k] for n, s, k in model.inputs[i]}


def asked(names: list[str], expected: list[Any]) -> list[tuple[str, Any]]:
    """The outputs that have a name, with that."""
    return [(n, e) for n, e in zip(names, expected, strict=True) if n]


@pytest.mark.parametrize("ops", GROUPS, ids=lambda g: f"{g[0]}-{g[-1]}")
def test_a_built_model_passes_the_checker_and_means_what_the_instance_means(ops: list[str]) -> None:
    for v in VERSIONS:
        if v.op not in ops:
            continue
        for inst, arrays in draws(v, 3):
            expected = dialect.evaluate(inst, arrays)
            model = dialect.build([inst], [arrays])
            declared = [[builder.type_of(e.value, e.dtype) for e in expected]]
            told = not v.op.startswith("Optional")  # an optional's value does not tell its type
            known = not v.schema.deprecated and "left" not in v.schema.extra  # to the checker
            if None not in declared[0] and told and known:
                onnx.checker.check_model(builder.build([inst], [arrays], declared).data)
            got = dialect.run_model(model.data, feeds(model, 0, arrays))
            for g, (_, e) in zip(got, asked(model.outputs[0], expected), strict=True):
                if any(isinstance(x, dict) and not x for x in arrays.values()):  # which does not tell its types
                    assert g.shape == e.value.shape, notation.text(inst)
                else:
                    assert same(g, e.value), notation.text(inst)


@pytest.mark.parametrize("ops", GROUPS, ids=lambda g: f"{g[0]}-{g[-1]}")
def test_what_a_backend_is_asked_passes_the_checker(ops: list[str]) -> None:
    """IR, Graphs: type and rank of every output of the main graph are said, so that who asks the checker first refuses
    no valid model.  Only what may be a sequence or an optional has its type left to inference."""
    for v in VERSIONS:
        known = not v.schema.deprecated and "left" not in v.schema.extra  # to the checker
        if v.op not in ops or not known:
            continue
        case = draw_case(v, v.opsets[-1], 20, 0, invalid=False)
        model = build(dialect, [case])
        graph = onnx.load_from_string(model.data).graph
        plan = schemas.plan(v.op, v.opsets[-1])
        assert plan is not None
        assert case.expected
        named = [j for j, n in enumerate(model.outputs[0]) if n]
        for j, out, (_, e) in zip(named, graph.output, asked(model.outputs[0], case.expected[0]), strict=True):
            if plan.tensor(j):
                assert out.type.tensor_type.elem_type, v.key
                assert len(out.type.tensor_type.shape.dim) == e.value.ndim, v.key
        if all(map(plan.tensor, range(case.inst.outs))):
            onnx.checker.check_model(model.data)


def test_the_checker_refuses_every_deprecated_version() -> None:
    """A deprecated version keeps the meaning that its text states, and a runtime may refuse it as the format's own
    checker does."""
    seen = set()
    for v in VERSIONS:
        if not v.schema.deprecated:
            continue
        inst, arrays = next(draws(v, 1))
        declared = [[builder.type_of(e.value, e.dtype) for e in dialect.evaluate(inst, arrays)]]
        with pytest.raises(onnx.checker.ValidationError, match=f"{v.op} is deprecated"):
            onnx.checker.check_model(builder.build([inst], [arrays], declared).data)
        seen.add(f"{v.op}/{v.version}")
    trees = {"TreeEnsembleClassifier/5", "TreeEnsembleRegressor/5"}
    assert seen == {"Scatter/11", "Upsample/10", "GroupNormalization/18", *trees}


@pytest.mark.parametrize("ops", GROUPS[::3], ids=lambda g: f"{g[0]}-{g[-1]}")
def test_many_instances_share_a_model(ops: list[str]) -> None:
    for opset in (9, 13, 21):
        cases = [
            c for v in VERSIONS if v.op in ops and opset in v.opsets and not random_op(v) for c in draws(v, 2, opset)
        ]
        model = dialect.build([i for i, _ in cases], [a for _, a in cases])
        onnx.load_from_string(model.data)
        g = dialect.parse(model.data)
        everything: dict[str, Any] = {}
        for i, (_, arrays) in enumerate(cases):
            everything |= feeds(model, i, arrays)
        got = dict(zip(g.outputs, dialect.run_model(model.data, everything)))
        for i, (inst, arrays) in enumerate(cases):
            for name, e in asked(model.outputs[i], dialect.evaluate(inst, arrays)):
                assert same(got[name], e.value), notation.text(inst)


def test_notation_is_the_textual_syntax() -> None:
    """What a person would paste into onnx.parser parses, for the ops without containers and odd attributes."""
    seen = 0
    for name in ("Relu", "Add", "Conv", "ReduceSum", "Concat", "Slice", "Softmax", "Gemm", "Clip", "Resize", "LSTM"):
        for v in VERSIONS:
            if v.op != name or int(v.version) < 7:
                continue
            for inst, _ in draws(v, 3):
                text = "\n".join(x for x in notation.text(inst).splitlines() if not x.startswith("#"))
                if "inf" in text or '""' in text.split("{", 1)[1]:
                    continue
                typed = (
                    text.replace("=> (y)", "=> (float y)")
                    .replace("=> (y0", "=> (float y0")
                    .replace(", y1", ", float y1", 1)
                )
                typed = typed.replace(", y2)", ", float y2)", 1) if "float y2" not in typed else typed
                head, body = typed.split("{", 1)
                m = onnx.parser.parse_model(head + "{" + body.replace("float y", "y"))
                assert m.graph.node[0].op_type == name
                seen += 1
    assert seen > 60


PAIRS = [p for p in neighbours() if not random_op(p[0])]


@pytest.mark.parametrize("ops", GROUPS, ids=lambda g: f"{g[0]}-{g[-1]}")
def test_neighbouring_versions_agree_or_are_listed(ops: list[str]) -> None:
    for a, b in PAIRS:
        if a.op not in ops:
            continue
        listed = f"{a.version}-{b.version}" in CHANGED.get(a.op, {})
        equal = differ = 0
        for old, new in ((a, b), (b, a)):
            for inst, arrays in draws(old, 400 if listed else 6):
                if listed and differ:  # shown
                    break
                there = said_at(inst, new)
                if there is None:
                    continue
                x, y = values(inst, arrays), values(there, arrays)
                if x is None or y is None:
                    continue
                agree = same(x, y)
                assert agree or listed, f"{a.op} {a.version} and {b.version} differ:\n{notation.text(inst)}"
                equal, differ = equal + agree, differ + (not agree)
        assert not listed or differ, f"{a.op} {a.version}-{b.version} is listed as changed, but nothing shows it"


def test_changes_are_of_pairs_that_exist() -> None:
    pairs = {(a.op, f"{a.version}-{b.version}") for a, b in PAIRS}
    assert {(op, p) for op, row in CHANGED.items() for p in row} <= pairs


def test_a_float_attribute_means_its_f32() -> None:
    """LeakyRelu's default alpha of 0.01 is the f32 next to it, whether written or left out."""
    x = np.array([-1.0], np.float64)
    for attrs in ({}, {"alpha": float(np.float32(0.01))}):
        inst = Instance("onnx", "LeakyRelu", 16, 17, attrs, {})
        got = dialect.versions["onnx/LeakyRelu/16"].evaluate(dialect.call_of(inst, {"X": x}))
        assert got[0].value[0] == -float(np.float32(0.01))


@pytest.mark.parametrize("version", [9, 14, 15])
@pytest.mark.parametrize("training", [0, 1])
def test_batch_normalization_of_a_vector_is_that_of_one_channel(version: int, training: int) -> None:
    """BatchNormalization-9: "also accepts single dimension input of size N in which case C is assumed to be 1"."""
    if training and version < 14:
        return
    v = next(v for v in VERSIONS if (v.op, v.version) == ("BatchNormalization", version))
    x = np.array([1, -2, 4, 0.5], np.float32)
    stats = {k: np.array([a], np.float32) for k, a in zip((s.name for s in v.schema.inputs[1:]), (2, -1, 0.25, 4))}
    attrs = {"training_mode": training} if version >= 14 else {}
    outs = 1 + 2 * training
    flat, column = (v.evaluate(v.call(attrs, {"X": a, **stats}, version, n_outs=outs)) for a in (x, x[:, None]))
    assert flat[0].value.shape == x.shape
    assert len(flat) == outs
    for a, b in zip(flat, column):
        np.testing.assert_array_equal(a.value, b.value.reshape(a.value.shape))
    drawn = {len(inst.tensor("X").shape) for inst, _ in draws(v, 400)}
    assert 1 in drawn
    assert 2 in drawn


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.float64(1.5), np.array(1.5)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_values_of_a_map_have_the_type_that_the_model_declares(dtype: str, value: Any) -> None:
    """However they came: a number of Python tells no type, one that travelled another."""
    items = [Arg(BY_NAME["str"], (1,), values=["a"]), Arg(BY_NAME[dtype], (1,), values=[1.5])]
    inst = Instance(
        "onnx",
        "DictVectorizer",
        1,
        13,
        {"string_vocabulary": ["a", "b"]},
        {"X": Arg(BY_NAME[dtype], (), kind="map", items=items)},
    )
    model = dialect.build([inst], [arrays_of(inst)])
    (got,) = dialect.run_model(model.data, {model.inputs[0][0][0]: {"a": value}})
    assert got.dtype == BY_NAME[dtype].np
    assert got.tolist() == [1.5, 0.0]
