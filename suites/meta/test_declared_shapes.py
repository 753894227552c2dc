"""What a model declares of its outputs: the shapes that the reference knows without the data."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases.case import Case, draw_case
from harness.engine.batching import _results, build
from suites.tflite import builder, dialect, shapes
from suites.tflite import flatbuffers as fb


def _case(key: str, index: int, draws: int = 1) -> Case:
    return draw_case(dialect.versions[key], 1, 3, index, draws, invalid=False)


def _outputs(case: Case) -> list[dict]:
    graph = fb.decode("Model", build(dialect, [case]).data)["subgraphs"][0]
    return [graph["tensors"][i] for i in graph["outputs"]]


def _shape(tensor: dict) -> tuple[int, ...]:
    return tuple(int(n) for n in tensor.get("shape", ()))


@pytest.mark.parametrize("key", ["tflite/CONV_2D/5", "tflite/CONV_2D/6", "tflite/DEPTHWISE_CONV_2D/3", "tflite/ADD/1"])
def test_a_model_declares_the_shape_that_the_reference_expects(key: str) -> None:
    declared = 0
    for index in range(24):
        case = _case(key, index)
        (tensor,), (expected,) = _outputs(case), case.expected[0]
        flagged = shapes.UNDECLARED in case.inst.attrs
        assert _shape(tensor) == (() if flagged else expected.value.shape)
        declared += not flagged
    assert declared > 12


def test_the_choice_to_declare_nothing_travels_with_the_instance() -> None:
    case = next(c for i in range(200) if shapes.UNDECLARED in (c := _case("tflite/RELU/1", i)).inst.attrs)
    again = type(case.inst).from_json(case.inst.to_json())
    assert again.attrs[shapes.UNDECLARED] is True
    assert _shape(_outputs(Case(case.version, again, 0))[0]) == ()


def test_a_shape_that_a_run_time_operand_decides_is_not_declared() -> None:
    for index in range(300):
        case = _case("tflite/RESHAPE/1", index)
        shape = case.inst.args.get("shape")
        if shape is not None and not shape.const:
            assert _shape(_outputs(case)[0]) == ()
            return
    pytest.fail("no instance of RESHAPE has its shape at run time")


def test_axes_that_another_run_changes_are_open_in_the_signature() -> None:
    for index in range(200):
        case = _case("tflite/RELU/1", index)
        if case.inst.reruns and shapes.UNDECLARED not in case.inst.attrs:
            first, again = (np.shape(row[0].value) for row in case.expected[:2])
            signature = [-1 if n != m else n for n, m in zip(first, again)]
            assert [int(n) for n in _outputs(case)[0].get("shape_signature", first)] == signature
            return
    pytest.fail("no instance of RELU is run again at other extents")


def test_what_is_declared_does_not_depend_on_the_data() -> None:
    """Every op version: other data of the same instance gives results of the declared shape."""
    for key, version in dialect.versions.items():
        for index in range(12):
            case = draw_case(version, 1, 9, index, 3, invalid=False)
            rows = case.expected
            if not rows or case.inst.reruns or "@program" in case.inst.attrs:
                continue
            with_shape = shapes.declared(version, case.inst, case.draws[0], _results(case))
            for i, result in enumerate(with_shape):
                for row in rows:
                    assert result is None or row[i].value.shape == result.shape, f"{key} case {index}"


def test_build_without_results_declares_no_shape() -> None:
    case = _case("tflite/ADD/1", 0)
    model = builder.build(dialect, [case.inst], [case.draws[0]])
    graph = fb.decode("Model", model.data)["subgraphs"][0]
    assert _shape(graph["tensors"][graph["outputs"][0]]) == ()
