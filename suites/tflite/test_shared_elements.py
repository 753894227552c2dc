"""One tensor among the values of a variadic operand twice: one tensor of the file, two places of the operator."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.dtypes import F32
from harness.core.instance import SAME, Arg, Instance
from harness.declare import registry
from harness.generate.recipes import arrays_of
from suites.tflite import flatbuffers as fb

dialect = registry.dialect("tflite")


@pytest.mark.parametrize("op", ["PACK", "CONCATENATION", "ADD_N"])
def test_two_places_are_one_tensor(op: str) -> None:
    slot = {"ADD_N": "inputs"}.get(op, "values")
    attrs = {"PACK": {"axis": 0, "values_count": 3}, "CONCATENATION": {"axis": 0}}.get(op, {})
    a, b = Arg(F32, (2,), values=[1.0, 2.0]), Arg(F32, (2,), values=[3.0, 4.0])
    inst = Instance("tflite", op, 1, 1, {**attrs, SAME: {f"{slot}#2": f"{slot}#0"}}, {slot: [a, b, a]}, 1)
    model = dialect.build([inst], [arrays_of(inst)])
    graph = fb.decode("Model", model.data)["subgraphs"][0]
    places = list(graph["operators"][0]["inputs"])
    assert places[0] == places[2] != places[1]
    assert len(graph["inputs"]) == 2
    (got,) = dialect.run_model(model.data, [np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
    (want,) = dialect.evaluate(inst, arrays_of(inst))
    np.testing.assert_array_equal(got, want.value)
    assert f"%{slot}0, %{slot}1, %{slot}0" in dialect.notation(inst)
