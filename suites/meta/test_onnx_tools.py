"""The tools of the onnx package as subjects: what their adapters make of a model, and nothing unexplained in them.

All op versions are asked in the slow form (and by the nightly job); the default run takes a few of every kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.backends.registry import create
from harness.cases.selection import Selection
from harness.core.outcome import Model, Outcome, Status, TypeOnly, Verdict
from harness.session.session import Plan, run
from harness.workers.wire import Job

onnx = pytest.importorskip("onnx")
INFERENCE = ("onnx-shape-inference", "onnx-shape-inference-lenient", "onnx-data-propagation")
CONVERTERS = ("onnx-converter-up", "onnx-converter-down")


def ask(name: str, node: Any, feeds: dict[str, np.ndarray], opset: int, out: int = 7) -> Outcome:
    h = onnx.helper
    types = {k: h.np_dtype_to_tensor_dtype(a.dtype) for k, a in feeds.items()}
    graph = h.make_graph(
        [node],
        "g",
        [h.make_tensor_value_info(k, types[k], list(a.shape)) for k, a in feeds.items()],
        [h.make_tensor_value_info("y", out, None)],
    )
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    model = Model("onnx", m.SerializeToString(), [[(k, k, None) for k in feeds]], [["y"]])
    with create(name) as handle:
        return handle.run([Job(model, [[list(feeds.values())]])])[0].outcomes[0][0]


def output(o: Outcome) -> Any:
    assert o.status is Status.VALUE, o.message
    assert o.outputs is not None
    return o.outputs[0]


@pytest.mark.parametrize("name", INFERENCE[:2])
def test_inference_gives_types_alone(name: str) -> None:
    node = onnx.helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    o = ask(name, node, {"a": np.zeros((2, 3), np.int64), "b": np.zeros((5, 3), np.int64)}, 17)
    assert output(o) == TypeOnly("i64", (7, 3))


def test_strict_inference_refuses_what_the_lenient_form_is_silent_about() -> None:
    node = onnx.helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
    feeds = {"a": np.zeros((2, 3), np.int64), "b": np.zeros((5, 4), np.int64)}
    assert ask("onnx-shape-inference", node, feeds, 17).status is Status.REJECTED
    assert output(ask("onnx-shape-inference-lenient", node, feeds, 17)).dtype in ("i64", None)


@pytest.mark.parametrize(
    ("op", "feeds", "want"),
    [
        ("Shape", {"a": np.zeros((2, 0, 5), np.float32)}, np.array([2, 0, 5])),
        ("Mul", {"a": np.array([3, 4]), "b": np.array([5, 6])}, np.array([15, 24])),
        ("Add", {"a": np.array([3, 4]), "b": np.array([5])}, np.array([8, 9])),
        ("Gather", {"a": np.array([3, 4, 9]), "b": np.array([2, 0])}, np.array([9, 3])),
    ],
)
def test_propagated_values_are_read(op: str, feeds: dict[str, np.ndarray], want: np.ndarray) -> None:
    """Through the extents of a ConstantOfShape; were propagation off, only a type would come back."""
    got = output(ask("onnx-data-propagation", onnx.helper.make_node(op, list(feeds), ["y"]), feeds, 25))
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, want)


def test_a_pair_of_versions_without_an_adapter_is_a_gap() -> None:
    x = np.array([True, False])
    o = ask("onnx-converter-up", onnx.helper.make_node("And", ["a", "b"], ["y"]), {"a": x, "b": x}, 6, 9)
    assert o.status is Status.UNSUPPORTED
    assert "No Adapter" in o.message


def test_a_converted_model_is_run() -> None:
    x = np.array([[1.0, 2.0]], np.float32)
    o = ask("onnx-converter-up", onnx.helper.make_node("Softmax", ["a"], ["y"], axis=0), {"a": x}, 12, 1)
    np.testing.assert_allclose(output(o), [[0.26894142, 0.7310586]], rtol=1e-6)


def unexplained(out: Path, names: tuple[str, ...], cases: int, ops: tuple[str, ...] = ()) -> list[str]:
    done = run(Plan(Selection(("onnx",), ops=ops), names=names, cases=cases, minimize=0, out=out))
    assert not done.summary.problems, done.summary.examples
    for name in names:
        assert done.summary.tally["onnx", name][Verdict.AGREE.value] > 0
    return [f"{k[1]}: {v} {n}" for k, c in done.summary.tally.items() for v, n in c.items() if Verdict(v).bad]


FEW = ("Add", "Softmax", "Squeeze", "Shape", "Slice", "If", "GroupNormalization")


def test_nothing_unexplained_in_a_few_ops(tmp_path: Path) -> None:
    assert not unexplained(tmp_path, (*INFERENCE, *CONVERTERS), 2, FEW)


@pytest.mark.slow
@pytest.mark.parametrize(("names", "cases"), [(INFERENCE, 48), (CONVERTERS, 8)], ids=["inference", "converters"])
def test_nothing_unexplained_in_all_ops(names: tuple[str, ...], cases: int, tmp_path: Path) -> None:
    assert not unexplained(tmp_path, names, cases)
