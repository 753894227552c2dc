"""Conditions, defect models and planted faults see the same run of an instance."""

from __future__ import annotations

import numpy as np

from harness.cases.case import Case, draw_case
from harness.cases.given import Given
from harness.cases.instance_view import InstanceView
from harness.cases.result import Result
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.ledger.facts import Facts
from harness.mutation.fault_context import FaultContext


def drawn(reruns: bool, invalid: bool = False) -> Case:
    """A case that is run again at other extents, or is not."""
    v = registry.dialect("onnx").versions["onnx/Add/14"]
    cases = (draw_case(v, v.opsets[-1], 0, i, invalid=invalid) for i in range(500))
    return next(c for c in cases if bool(c.inst.reruns) == reruns and (c.inst.rule is not None) == invalid)


def test_a_view_shows_the_extents_data_and_result_of_its_run() -> None:
    case = drawn(reruns=True)
    for run in range(1 + len(case.inst.reruns)):
        view = InstanceView(case, run)
        for slot, arg in view.inst.args.items():
            assert view[slot].shape == arg.shape
        assert view.expected is case.expected[run]
    assert InstanceView(case, 0).inst is case.inst
    assert InstanceView(case, 1).inst.args != case.inst.args
    assert view["nothing"] is None
    assert view.attr("nothing", 3) == 3


def test_conditions_defect_models_and_faults_read_that_view() -> None:
    case = drawn(reruns=True)
    wrong = Result(case, "b", Verdict.MISMATCH, Outcome(Status.VALUE), draw=1)
    facts, given, context = Facts(case, {}, wrong), Given(case, 1), FaultContext(case, 1)
    assert facts["runs"] == 2
    for slot in case.inst.args:
        shape = InstanceView(case, 1)[slot].shape
        assert facts["shape"](slot) == shape == given[slot].shape == context[slot].shape
        assert facts["elements"](slot) == given[slot].ravel().tolist()
    assert given.expected is context.expected
    assert np.array_equal(given.reevaluate()[0].value, context.reevaluate()[0])


def test_an_invalid_instance_has_data_and_no_result() -> None:
    view = InstanceView(drawn(reruns=False, invalid=True))
    assert view.expected == []
    assert view.arrays
