"""Two listed differences that edit one program explain its answer together, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.edits import Edited, Near, each_or_right, edited, followed
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

ORT = BackendInfo("onnxruntime-all", "1.32.0", formats=("onnx",))
NOT_KEPT, POWER = "ort-layer-norm-mean-not-kept", "ort-layer-norm-power-of-two"


@pytest.fixture(scope="module")
def listed() -> Ledger:
    ledger = load_ledger()
    ledger.read_for(ORT)
    return ledger


def _case(listed: Ledger, axes: int, exponent: float) -> Case:
    """A layer normalisation of a square matrix whose mean keeps its axis or not, and whose exponent is not 2."""
    entry = listed.by_id[NOT_KEPT]
    data = json.loads(entry.instance.dumps())
    graph = data["attrs"]["program"]["graph"]
    graph["nodes"][0]["attrs"]["keepdims"] = axes
    graph["consts"]["c0"]["hex"] = np.float32(exponent).tobytes().hex()
    inst = Instance.from_json(data)
    return fill(registry.version_of(inst), inst, 0)


def _only(listed: Ledger, *ids: str) -> Ledger:
    return Ledger([replace(listed.by_id[i], hits=0) for i in ids])


def _judged(case: Case, answer: Any, ledger: Ledger) -> Any:
    return judge_case(case, ORT, [Outcome(Status.VALUE, [answer])], ledger)


def test_two_edits_explain_what_neither_explains_alone(listed: Ledger) -> None:
    case = _case(listed, 0, 3)
    answer = _case(listed, 1, 2).expected[0][0].value  # the mean is kept, the power is a square
    both = _only(listed, NOT_KEPT, POWER)
    result = _judged(case, answer, both)
    assert (result.verdict, result.known) == (Verdict.KNOWN, NOT_KEPT)
    assert [e.hits for e in both.entries] == [1, 1]
    for one in (NOT_KEPT, POWER):
        assert _judged(case, answer, _only(listed, one)).verdict is Verdict.MISMATCH


def test_another_wrong_value_beside_two_edits_is_a_mismatch(listed: Ledger) -> None:
    case = _case(listed, 0, 3)
    answer = _case(listed, 1, 2).expected[0][0].value.copy()
    answer[0, 0] += 1
    result = _judged(case, answer, _only(listed, NOT_KEPT, POWER))
    assert result.verdict is Verdict.MISMATCH
    assert result.known is None


def test_an_edit_that_is_not_listed_for_the_program_plays_no_part(listed: Ledger) -> None:
    case = _case(listed, 0, 3)
    answer = _case(listed, 1, 2).expected[0][0].value
    elsewhere = _only(listed, NOT_KEPT, POWER)
    elsewhere.entries[1].backends = ("onnxruntime",)
    assert _judged(case, answer, elsewhere).verdict is Verdict.MISMATCH


class _Program:
    """Stands for what a model looks at: numbers that were added, the expected output being their sum."""

    def __init__(self, *added: int) -> None:
        self.added, self.expected = added, [Near(np.array(float(sum(added))), 0.0)]

    def changed(self, attrs: Any, inputs: Any = None) -> _Program:
        return _Program(*self.added, attrs["program"])


def _adds(n: int) -> Any:
    return lambda g: edited(g, n)


def test_two_models_come_before_three_and_none_comes_twice() -> None:
    models = [(name, _adds(k)) for name, k in (("a", 1), ("b", 10), ("c", 100))]
    found = [("".join(whose), float(row[0].value)) for whose, row in followed(models, _Program(), lambda m, g: None)]
    assert [w for w, _ in found] == ["ab", "ac", "ba", "bc", "ca", "cb", "abc", "acb", "bac", "bca", "cab", "cba"]
    assert {v for w, v in found if len(w) == 3} == {111.0}


def test_a_model_that_fails_on_an_edited_program_says_nothing() -> None:
    def fails(g: Any) -> Any:
        if g.added:
            raise KeyError("c0")
        return edited(g, 5)

    found = list(followed([("a", _adds(1)), ("fails", fails)], _Program(), lambda m, g: None))
    assert [w for w, _ in found] == [["fails", "a"]]


def test_the_results_of_the_last_edit_go_back_through_those_before_it() -> None:
    def doubled(g: Any) -> Edited:
        return Edited(g.changed({"program": 3}), lambda row: [Near(2 * x.value, x.within + 1) for x in row])

    found = list(followed([("double", doubled), ("add", _adds(4))], _Program(), lambda m, g: None))
    assert [(w, float(r[0].value), float(r[0].within)) for w, r in found] == [
        (["double", "add"], 14.0, 1.0),
        (["add", "double"], 14.0, 1.0),
    ]


def test_elements_that_may_be_right_are_near_those_of_the_edited_program(listed: Ledger) -> None:
    row = _case(listed, 1, 2).expected[0]
    (item,) = each_or_right(row)
    assert isinstance(item, Near)
    assert np.array_equal(item.value, row[0].value)
    assert (np.asarray(item.within) > 0).all()


def test_room_for_unrounded_values_is_no_room_for_another_model(listed: Ledger) -> None:
    """Values of f64 in place of f32 have 2**29 times their bound, which must not multiply what else may be off."""
    inst = listed.by_id["ort-matmul-activations-in-8-bits"].instance
    case = fill(registry.version_of(inst), inst, 0)
    off = case.expected[0][0].value * np.float32(1 + 2**-6)
    assert _judged(case, off, listed).verdict is Verdict.MISMATCH
