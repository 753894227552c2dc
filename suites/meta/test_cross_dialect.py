"""Instances of MIL said in ONNX and TFLite: the same question, or a reason why it cannot be asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case, fill
from harness.cases.translated_tensors import Untranslatable, same, spelled
from harness.cases.translation import Translation
from harness.core.dtypes import F32
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import Slotted, permuted, registry
from harness.engine.cross_dialect import cross, judge_cross_dialect
from harness.engine.engine import Engine
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from harness.workers.pool import BackendHandle
from suites.meta.runtimes import running

ONNX = BackendInfo("onnxruntime-cross-dialect", "1.0", target_dialect="onnx", known_as=("onnxruntime",))


def instance(op: str, attrs: dict | None = None, version: str = "ios15", **args: Any) -> Case:
    """A case of a MIL op; args: values (f32) or {"dtype", "shape", "values", ...}."""
    made = {
        k: a
        if isinstance(a, dict) or (isinstance(a, list) and isinstance(a[0], dict))
        else {"dtype": "f32", "shape": list(np.shape(a)), "values": np.ravel(a).tolist()}
        for k, a in args.items()
    }
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "mil",
            "op": op,
            "version": version,
            "opset": "ios17",
            "attrs": attrs or {},
            "args": made,
            "outs": 1,
        }
    )
    return fill(registry.version_of(inst), inst)


@pytest.mark.parametrize(("target", "ops"), [("onnx", 75), ("tflite", 45)])
def test_a_translated_instance_has_the_same_answer(target: str, ops: int) -> None:
    """Both references agree to the last bit on every instance that crosses, and most shared meanings do cross."""
    way, crossed, bad = Translation(registry.dialect(target)), set(), []
    for v in registry.dialect("mil").versions.values():
        for i in range(6):
            case = draw_case(v, v.opsets[-1], 11, i, invalid=False)
            assert case.expected is not None, case.problem
            try:
                twin, inst, draws = way.cross(v, case.inst, case.draws, case.expected)
            except Untranslatable:
                continue
            crossed.add(v.op)
            theirs = twin.evaluate(way.target.call_of(inst, draws[0], twin))
            for e, other in zip(case.expected[0], theirs, strict=True):
                if e.dtype is not other.dtype or not same(e.value, other.value):
                    bad.append(f"{case.inst.dumps()[:200]} as {inst.dumps()[:200]}")
    assert not bad, "\n".join(bad[:10])
    assert len(crossed) >= ops, sorted(crossed)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (instance("gelu", x=[1.0]), "no operator of ONNX means gelu"),
        (instance("fill", shape={"dtype": "i32", "shape": [1], "values": [2], "const": True}), "evaluates by itself"),
        (instance("matmul", {"transpose_y": True}, x=[[1.0, 2.0]], y=[[3.0, 4.0]]), "cannot say transpose_y = True"),
        (
            instance(
                "scatter_nd",
                {"mode": "sub"},
                data=[1.0, 2.0],
                updates=[3.0],
                indices={"dtype": "i32", "shape": [1, 1], "values": [0]},
            ),
            "has no reduction 'sub'",
        ),
        (instance("reduce_argmax", {"axis": 0}, x=[1.0, 2.0]), "gives i64|cannot say dtype"),
        (
            instance(
                "conv",
                version="ios17",
                x=np.ones((1, 1, 3)),
                weight={"dtype": "f16", "shape": [1, 1, 1], "values": [1.0]},
            ),
            "wants one type",
        ),
    ],
)
def test_an_instance_without_translation_has_a_reason(case: Case, why: str) -> None:
    assert case.expected is not None, case.problem
    with pytest.raises(Untranslatable, match=why):
        Translation(registry.dialect("onnx")).cross(case.version, case.inst, case.draws, case.expected)


def test_a_broken_rule_does_not_run_cross_dialect() -> None:
    case = instance("add", x=[1.0], y=[2.0])
    broken = fill(case.version, replace(case.inst, rule="broadcast"))
    got = cross(broken, ONNX)
    assert isinstance(got, Outcome)
    assert got.status is Status.UNSUPPORTED
    assert "breaks a rule" in got.message


def test_the_newest_opset_of_the_backend_is_kept() -> None:
    case = instance("relu", x=[1.0])
    for newest, version in ((13, 13), (14, 14), (28, 14)):
        got = cross(case, replace(ONNX, opset=newest))
        assert isinstance(got, Case)
        assert got.version.version == version
        assert got.inst.opset == newest


def test_layouts_and_index_types_are_undone() -> None:
    nchw = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    codec = permuted("input", "nchw", "nhwc")
    nhwc = spelled(codec, nchw)
    assert nhwc.shape == (2, 4, 5, 3)
    assert np.array_equal(codec.to_ours(nhwc), nchw)
    with pytest.raises(Untranslatable, match="one way"):
        spelled(Slotted("input", lambda x: x), nchw)
    case = instance(
        "gather", {"axis": 0}, "ios17", x=[1.0, 2.0, 3.0], indices={"dtype": "u8", "shape": [2], "values": [2, 0]}
    )
    got = cross(case, ONNX)
    assert isinstance(got, Case)
    assert got.draws[0]["indices"].dtype in (np.int32, np.int64)


# -- verdicts


def test_the_original_is_judged_and_the_twin_explains() -> None:
    case = instance("sigmoid", x=[0.0, 1.0])
    asked = cross(case, ONNX)
    assert isinstance(asked, Case)
    assert asked.version.op == "Sigmoid"
    assert case.expected is not None
    right = case.expected[0][0].value
    wrong = right + np.float32(0.25)

    def verdict(status: Status, value: np.ndarray | None) -> Verdict:
        out = Outcome(status, None if value is None else [value], "run", "words")
        judged = judge_cross_dialect(case, asked, ONNX, [out])
        assert judged.case is case
        assert judged.asked is asked
        assert judged.backend == ONNX.name
        return judged.verdict

    assert verdict(Status.VALUE, right) is Verdict.AGREE
    assert verdict(Status.VALUE, wrong) is Verdict.MISMATCH
    assert verdict(Status.REJECTED, None) is Verdict.UNSUPPORTED
    assert verdict(Status.CRASHED, None) is Verdict.CRASHED


@pytest.fixture(scope="module")
def runtime() -> Iterator[BackendHandle]:
    with running("onnxruntime-cross-dialect") as h:
        yield h


def test_a_wrong_reference_is_outvoted(runtime: BackendHandle) -> None:
    """The oracle sees what it is there for: a reference that is wrong."""
    engine = Engine([runtime], ledger=load_ledger())
    for op, args in (
        ("add", {"x": [1.0, 2.0], "y": [3.0, 4.0]}),
        ("softmax", {"x": [1.0, 2.0, 3.0]}),
        ("relu", {"x": [[1.0, 2.0], [3.0, 4.0]]}),
    ):
        right, wrong = instance(op, **args), instance(op, **args)
        assert wrong.expected is not None
        e = wrong.expected[0][0]
        assert e.dtype is F32
        e.value = e.value + np.float32(0.5)
        if e.wide is not None:
            e.wide = e.wide + 0.5
        assert [j.verdict for j in engine.judge([right, wrong])] == [Verdict.AGREE, Verdict.MISMATCH], op


def test_what_is_listed_of_the_runtime_explains_it_here(runtime: BackendHandle) -> None:
    case = instance("squeeze", {"axes": [0]}, x=np.zeros((2, 1)))
    (judged,) = Engine([runtime], ledger=load_ledger()).judge([case])
    assert judged.verdict is Verdict.KNOWN
    assert judged.known == "ort-squeeze-no-axes"
    (judged,) = Engine([runtime]).judge([case])
    assert judged.verdict is Verdict.MISMATCH
    assert judged.judgement is not None
    assert judged.judgement.kind == "shape"


# -- symbolic axes


@pytest.fixture(scope="module")
def symbolic() -> Iterator[BackendHandle]:
    with running("coremltools-symbolic") as h:
        yield h


def test_expressions_over_symbols_give_the_shape(symbolic: BackendHandle) -> None:
    """Agreement where the expression fits, a mismatch of shape where it does not, a gap where nothing can be a
    symbol."""
    shape = {"dtype": "i32", "shape": [1], "values": [0], "const": True}
    cases = [
        instance("flatten2d", {"axis": 1}, x=np.ones((2, 3, 4))),
        instance("reshape", None, "ios17", x=[1.0, 2.0], shape=shape),
        instance("relu", x={"dtype": "f32", "shape": [1, 1], "values": [2.0]}),
    ]
    judged = list(Engine([symbolic]).judge(cases))
    assert [j.verdict for j in judged] == [Verdict.AGREE, Verdict.MISMATCH, Verdict.UNSUPPORTED], json.dumps(
        [j.outcome.message for j in judged]
    )
    assert judged[1].judgement is not None
    assert judged[1].judgement.kind == "shape"
    (shape_of,) = judged[0].outcome.outputs or ()
    assert list(shape_of.shape) == [2, 12]
