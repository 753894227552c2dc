"""Laws of the TFLite dialect: every version it serves draws, evaluates, builds, parses back and is refused what it
should."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import judge
from harness.core.errors import RuleError, UsageError
from harness.core.instance import Graph, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare.interpreter import run_graph
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.workers.info import BackendInfo
from suites.tflite import dialect
from suites.tflite import flatbuffers as fb
from suites.tflite.schemas import number_of

# Operators that no entry serves yet, each with the reason.
MISSING: dict[str, str] = {}
# Forms of an operator that no entry serves, each with the reason.
FORMS: dict[tuple[str, str], str] = {}
# Operands that the page calls otherwise than today's dialect definition.
RENAMED = {
    "FILL": {"value": "input"},
    "SEGMENT_SUM": {"data": "input"},
    "WHERE": {"input": "condition"},
    "TANH": {"x": "input"},
    "TRANSPOSE": {"x": "input"},
    "WHILE": {},
}
ONE_EACH = sorted({(v.op, v.schema.domain): k for k, v in dialect.versions.items()}.values())


def test_every_operator_with_a_kernel_has_an_entry_or_a_reason() -> None:
    have = {v.op for v in dialect.versions.values()}
    lack = {s.op for s in dialect.schemas} - have
    assert lack == set(MISSING), (
        f"missing {sorted(lack - set(MISSING))}, listed but there {sorted(set(MISSING) - lack)}"
    )


def test_every_form_of_every_version_has_an_entry_or_a_reason() -> None:
    have = {(v.op, v.version) for v in dialect.versions.values()}
    lack = {(s.op, s.domain) for s in dialect.schemas if (s.op, s.version) not in have}
    assert lack == set(FORMS), f"missing {sorted(lack - set(FORMS))}, listed but there {sorted(set(FORMS) - lack)}"


def drawn(key: str, i: int = 0) -> tuple[Any, Any]:
    inst = dialect.versions[key].draw(Prng(case_seed(7, key, i)))
    return inst, arrays_of(inst)


@pytest.mark.parametrize("key", sorted(dialect.versions))
def test_instance_round_trips_evaluates_and_builds(key: str) -> None:
    inst, arrays = drawn(key)
    again = Instance.from_json(json.loads(inst.dumps()))
    assert again.dumps() == inst.dumps()
    assert again.id == inst.id
    want = dialect.evaluate(inst, arrays)
    assert len(want) >= 1
    model = dialect.build([inst], [arrays])
    assert model.data[4:8] == b"TFL3"
    assert len(model.outputs[0]) == len(want)
    text = dialect.notation(inst)
    assert text, text
    assert not any(word in text for word in ("Graph(", "DType(", "array(")), text
    for name, block in blocks(inst.attrs):  # what a block computes is said
        assert f"@{name}" in text or name == "@program"
        assert all(f"tfl.{node.op.lower()}" in text for node in block.nodes), text


def blocks(attrs: Any) -> Iterator[Any]:
    """Graphs among the attributes, with their names."""
    for name, v in attrs.items():
        for x in v if isinstance(v, list) else [v]:
            if isinstance(x, Graph):
                yield name, x


@pytest.mark.parametrize("key", ONE_EACH)
def test_whole_model_interpreter_agrees_with_the_instance(key: str) -> None:
    """build, parse and run_graph give what evaluating the instance gives, bit for bit."""
    inst, arrays = drawn(key, 1)
    if any(e.error.random for e in dialect.evaluate(inst, arrays)):
        pytest.skip("random: no two equal draws")
    want = [e.value for e in dialect.evaluate(inst, arrays)]
    model = dialect.build([inst], [arrays])
    given = {name: arrays[slot] if j is None else arrays[slot][j] for name, slot, j in model.inputs[0]}
    got = dialect.run_model(model.data, given)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        if w.dtype.kind == "O":
            assert [as_bytes(x) for x in g.ravel()] == [as_bytes(x) for x in w.ravel()]
        elif w.dtype.kind == "V":  # a narrow float, of which NumPy does not know that NaN is NaN
            np.testing.assert_array_equal(g.astype(np.float64), w.astype(np.float64))
        else:
            np.testing.assert_array_equal(g, w)


def as_bytes(x: Any) -> Any:
    return x.encode() if isinstance(x, str) else x if isinstance(x, bytes) else x.tobytes()


def test_models_pass_the_generated_reader() -> None:
    """An independent reader (flatc's object API) finds what the instance says: code, version, slots, options."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="needs ai-edge-litert")
    for key in ONE_EACH:
        inst, arrays = drawn(key, 2)
        if "@program" in inst.attrs:
            continue
        m = schema.ModelT.InitFromPackedBuf(bytearray(dialect.build([inst], [arrays]).data))
        row = dialect.versions[key].schema
        code = m.operatorCodes[m.subgraphs[0].operators[0].opcodeIndex]
        assert code.builtinCode == row.extra["code"]
        assert code.version == number_of(inst.version)
        assert code.deprecatedBuiltinCode == min(127, row.extra["code"])
        assert m.buffers[0].data is None
        node = m.subgraphs[0].operators[0]
        if row.extra["options"]:
            options = node.builtinOptions2 if row.extra["union"] == 2 else node.builtinOptions
            assert type(options).__name__ == row.extra["options"] + "T"


def test_packed_instances_are_independent() -> None:
    keys = ["tflite/ADD/4", "tflite/CONV_2D/3q", "tflite/SPLIT/4", "tflite/WHILE/1", "tflite/IF/1"]
    cases = [drawn(k, i) for i in range(2) for k in keys]
    model = dialect.build([c[0] for c in cases], [c[1] for c in cases])
    names = [n for outs in model.outputs for n in outs]
    assert len(set(names)) == len(names)
    graph = dialect.parse(model.data)
    given = {n: a[s] if j is None else a[s][j] for (_, a), ins in zip(cases, model.inputs) for n, s, j in ins}
    got = dict(zip(graph.outputs, run_graph(dialect, graph, given, 1)))
    for (inst, arrays), outs in zip(cases, model.outputs):
        for name, want in zip(outs, dialect.evaluate(inst, arrays)):
            np.testing.assert_array_equal(got[name], want.value)


def test_schema_facts_are_those_of_the_catalogue() -> None:
    """The digest holds what the operator catalogue says; the few differences are named here with their reason."""
    digest = json.loads((Path(__file__).parent / "digest.json").read_text())
    rows: dict[Any, Any] = {}
    for s in dialect.schemas:
        rows.setdefault(s.op, []).append(s)
    for op, want in digest["operators"].items():
        versions = sorted({number_of(s.version) for s in rows.get(op, [])})
        assert versions == want["versions"], op
        if not versions:
            continue
        row = rows[op][-1]
        assert row.extra["code"] == want["code"]
        table = want["options"]
        if op in ("MAXIMUM", "MINIMUM"):
            table = None  # MaximumMinimumOptions exists in the union, no kernel reads it
        assert row.extra["options"] == table, op
        if table:
            assert sorted(row.attrs) == sorted(want["fields"]), op
    for op, names in digest["operands"].items():
        if op in ("LSTM",):
            continue  # the page describes basic_lstm under the same builtin: one code, two sets of operands
        have = [s.name for s in rows[op][-1].inputs]
        renamed = RENAMED.get(op, {})
        extra = ["bias"] if op == "TRANSPOSE_CONV" else []  # the page is older than the bias operand
        assert have == [renamed.get(n, n) for n in names] + extra, op


def test_scales_of_blocks_are_a_tensor_of_their_own() -> None:
    """Schema, BlockwiseQuantization; the reader finds the same parameters again."""
    for i in range(200):
        inst, arrays = drawn("tflite/FULLY_CONNECTED/10h", i)
        q = inst.tensor("filter").quant
        if q.get("block"):
            break
    assert q.get("block") == 32
    assert len(q["scale"]) > inst.tensor("filter").shape[0]
    graph = dialect.parse(dialect.build([inst], [arrays]).data)
    assert graph.meta["tensors"]["i0.filter"]["quant"] == q
    want = dialect.evaluate(inst, arrays)[0].value
    got = run_graph(dialect, graph, {name: arrays[name.partition(".")[2]] for name, _ in graph.inputs}, 1)[0]
    np.testing.assert_array_equal(got, want)


def test_a_multiplier_made_in_f32_may_turn_a_product_near_a_tie() -> None:
    """-26309.50124 steps in exact arithmetic, -26309.49963 with the multiplier of three f32 scales rounded to f32."""
    from harness.core.dtypes import I16, dtype
    from harness.core.instance import Arg

    def quant(scale: Any) -> dict[str, Any]:
        return {"scale": [scale], "zero_point": [0], "axis": 0}

    inst = Instance(
        "tflite",
        "MUL",
        "4q",
        1,
        {"@outputs": [{"dtype": "i16", "quant": quant(0.0027982499450445175)}]},
        {
            "lhs": Arg(I16, (1,), values=[23474], quant=quant(0.0001921874936670065)),
            "rhs": Arg(I16, (1,), values=[-10444], quant=quant(0.0015625000232830644)),
        },
    )
    (want,) = dialect.evaluate(inst, arrays_of(inst))
    for steps, right in ((-26310, True), (-26309, True), (-26308, False), (-26312, False)):
        got = np.array([steps], dtype("i16").np)
        assert (judge([want], Outcome(Status.VALUE, [got])).verdict is Verdict.AGREE) == right


def test_nan_under_a_stride_above_the_window_is_still_ambiguous() -> None:
    """The dialect says what SAME means there, which must not hide that nobody says whether NaN is the largest."""
    from harness.cases.case import fill
    from harness.core.dtypes import F32
    from harness.core.instance import Arg

    attrs = {"filter_height": 2, "filter_width": 1, "stride_h": 1, "stride_w": 2, "padding": "SAME"}
    for value, why in ((float("nan"), "NaN"), (1.0, "")):
        args: dict[str, Any] = {"input": Arg(F32, (1, 2, 2, 1), values=[value, 0.0, 0.0, 0.0])}
        inst = Instance("tflite", "MAX_POOL_2D", 2, 1, dict(attrs), args)
        assert why in (fill(dialect.version_of(inst), inst).ambiguous or "")
        assert bool(why) == bool(fill(dialect.version_of(inst), inst).ambiguous)


def test_a_lone_string_is_a_constant() -> None:
    """It cannot be fed, so no further run may give it another value."""
    seen = 0
    for i in range(300):
        inst, _ = drawn("tflite/NOT_EQUAL/3", i)
        for a in inst.args.values():
            if a.dtype.kind == "s" and not a.shape:
                assert a.const
                seen += 1
    assert seen


@pytest.mark.parametrize("key", ["TRANSPOSE_CONV/3", "CONV_3D_TRANSPOSE/1", "TRANSPOSE_CONV/3q", "TRANSPOSE_CONV/3h"])
def test_an_output_shape_fits_its_input(key: str) -> None:
    """The forward convolution of the output gives the input's shape: a case made smaller must keep that."""
    inst, arrays = drawn(f"tflite/{key}", 0)
    dialect.evaluate(inst, arrays)
    size, stride = arrays["output_shape"], inst.attrs["stride_w"]
    arrays["output_shape"] = size + stride * np.eye(len(size), dtype=size.dtype)[len(size) - 2]
    with pytest.raises(RuleError, match="output-shape-fits"):
        dialect.evaluate(inst, arrays)


def test_flushed_operands_show_through_a_fused_activation() -> None:
    """A subnormal weight times 3e38 is 3: without it the sum is 8.  Beside it stands a sum that RELU clamps."""
    from harness.cases.case import fill
    from harness.engine.verdict import judge_case

    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": "FULLY_CONNECTED",
            "version": 5,
            "opset": 1,
            "outs": 1,
            "attrs": {"fused_activation_function": "RELU"},
            "args": {
                "input": {"dtype": "f32", "shape": [1, 2], "values": [-3e38, 1.0]},
                "filter": {"dtype": "f32", "shape": [2, 2], "const": True, "values": [1e-38, 8.0, 0.0, 0.0]},
                "bias": {"dtype": "f32", "shape": [2], "const": True, "values": [0.0, -1.0]},
            },
        }
    )
    case = fill(dialect.version_of(inst), inst)
    assert case.expected is not None
    assert case.expected[0][0].value.tolist() == [[5.0, 0.0]]
    got = Outcome(Status.VALUE, [np.array([[8.0, 0.0]], np.float32)], "run")
    for flushes, verdict in (((), Verdict.MISMATCH), (("f32",), Verdict.AGREE)):
        assert judge_case(case, BackendInfo("x", flushes=flushes), [got]).verdict is verdict


def test_a_constant_without_elements_is_a_constant() -> None:
    """Schema, Tensor.buffer: a tensor that nobody writes, and of which no element is missing, needs no data."""
    seen = set()
    for key in ("tflite/TRANSPOSE/5", "tflite/FILL/2", "tflite/REDUCE_MAX/3", "tflite/TILE/2", "tflite/GATHER_ND/4"):
        for i in range(200):
            inst, arrays = drawn(key, i)
            empty = {slot for slot, a in inst.args.items() if a.const and 0 in a.shape}
            if not empty:
                continue
            model = dialect.build([inst], [arrays])
            assert not empty & {slot for _, slot, _ in model.inputs[0]}
            graph = dialect.parse(model.data)
            assert {f"i0.{slot}" for slot in empty} <= set(graph.consts)
            got = dialect.run_model(model.data, {name: arrays[slot] for name, slot, _ in model.inputs[0]})
            want = dialect.evaluate(inst, arrays)[0].value
            assert got[0].shape == want.shape
            assert got[0].dtype == want.dtype
            assert list(map(as_bytes, got[0].ravel())) == list(map(as_bytes, want.ravel()))
            seen.add(inst.op)
    assert seen == {"TRANSPOSE", "FILL", "REDUCE_MAX", "TILE", "GATHER_ND"}


def test_a_tensor_that_nobody_writes_and_that_lacks_elements_is_reported() -> None:
    inst, arrays = next(x for x in (drawn("tflite/TRANSPOSE/5", i) for i in range(99)) if x[0].args["perm"].const)
    model = fb.decode("Model", dialect.build([inst], [arrays]).data)
    tensor = model["subgraphs"][0]["tensors"][1]
    assert tensor["name"] == "i0.perm"
    model["buffers"][tensor["buffer"]] = {}
    with pytest.raises(UsageError, match=r"value 'i0.perm' is used before it is made"):
        dialect.run_model(fb.encode("Model", model), {"i0.input": arrays["input"]})
