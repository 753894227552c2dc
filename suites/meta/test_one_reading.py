"""One question has one answer in MIL and in NeuralNetwork, and where two stay possible nobody is accused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.mil import dialect as mil
from suites.nn import dialect as nn

ledger = cache(load_ledger)
SOMEBODY, LOWERED = BackendInfo("somebody"), BackendInfo("coremltools-nn")


def case(dialect: str, op: str, version: Any, args: dict[str, Any], attrs: dict[str, Any], outs: int = 1) -> Case:
    """args: slot -> (type, shape, values, constant or not)."""
    fields = {k: dict(zip(("dtype", "shape", "values", "const"), a)) for k, a in args.items()}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": dialect,
            "op": op,
            "version": version,
            "opset": version,
            "attrs": attrs,
            "args": fields,
            "outs": outs,
        }
    )
    return Case(registry.version_of(inst), inst, 0)


def told(c: Case, *values: Any, by: BackendInfo = SOMEBODY) -> Verdict:
    assert c.expected is not None, c.problem
    outputs = [np.asarray(v, e.value.dtype).reshape(e.value.shape) for v, e in zip(values, c.expected[0])]
    return judge_case(c, by, [Outcome(Status.VALUE, outputs, "run")], ledger()).verdict


def scatter(dialect: str) -> Case:
    data, updates = ("f32", [1, 3], [1.0, 2.0, 3.0]), ("f32", [1, 3], [4.0, 5.0, 6.0])
    if dialect == "mil":
        args = {"data": data, "indices": ("i32", [1, 3], [0, 2, 0]), "updates": updates}
        return case("mil", "scatter_along_axis", "ios15", args, {"axis": 1, "mode": "update"})
    args = {"container": data, "indices": ("f32", [1, 3], [0.0, 2.0, 0.0]), "updates": updates}
    return case("nn", "scatterAlongAxis", 1, args, {"axis": 1, "mode": "SCATTER_UPDATE"})


@pytest.mark.parametrize("dialect", ["mil", "nn"])
def test_the_later_of_two_updates_of_one_place_stays(dialect: str) -> None:
    c = scatter(dialect)
    assert told(c, [6.0, 2.0, 5.0]) is Verdict.AGREE
    assert told(c, [4.0, 2.0, 5.0]) is Verdict.MISMATCH


def _places(op: str, at: np.ndarray, axis: int) -> list[str]:
    """Where the updates of one slice go, as text."""
    if op == "scatter_along_axis":
        at = np.moveaxis(at, axis, -1).reshape(-1, at.shape[axis])[0]
    return [str(i) for i in (at.reshape(-1, at.shape[-1]) if op == "scatter_nd" else at.ravel())]


@pytest.mark.parametrize("key", ["scatter/ios15", "scatter_along_axis/ios15", "scatter_nd/ios17"])
def test_two_updates_of_one_place_are_drawn(key: str) -> None:
    v, twice = mil.versions[f"mil/{key}"], 0
    for i in range(400):
        inst = v.draw(Prng(case_seed(5, key, i)))
        if inst.attrs.get("mode") == "update":
            c = Case(v, inst, 0)
            assert c.expected is not None, c.problem
            at = c.draws[0]["indices"]
            places = _places(v.op, at, inst.attrs.get("axis", 0)) if at.size else []
            twice += len(set(places)) < len(places)
    assert twice > 3


def reversed_rnn(dialect: str) -> Case:
    """h = x + 0.5 h from 0 over 1, 2, 4: from the end 4, 4, 3."""
    if dialect == "mil":
        args = {
            "x": ("f32", [3, 1, 1], [1.0, 2.0, 4.0]),
            "initial_h": ("f32", [1, 1], [0.0]),
            "weight_ih": ("f32", [1, 1], [1.0], True),
            "weight_hh": ("f32", [1, 1], [0.5], True),
        }
        attrs = {"direction": "reverse", "output_sequence": True, "activation": "linear"}
        return case("mil", "rnn", "ios15", args, attrs, 2)
    args = {
        "x": ("f32", [3, 1, 1, 1, 1], [1.0, 2.0, 4.0]),
        "h": ("f32", [1, 1, 1, 1, 1], [0.0]),
        "weightMatrix": ("f32", [1, 1], [1.0], True),
        "recursionMatrix": ("f32", [1, 1], [0.5], True),
    }
    attrs = {
        "inputVectorSize": 1,
        "outputVectorSize": 1,
        "activation": "linear",
        "sequenceOutput": True,
        "reverseInput": True,
    }
    return case("nn", "simpleRecurrent", 1, args, attrs, 2)


@pytest.mark.parametrize("dialect", ["mil", "nn"])
def test_a_reversed_sequence_has_one_of_two_output_orders(dialect: str) -> None:
    c = reversed_rnn(dialect)
    assert told(c, [4.0, 4.0, 3.0], [3.0]) is Verdict.AGREE
    assert told(c, [3.0, 4.0, 4.0], [3.0]) is Verdict.AMBIGUOUS
    assert told(c, [4.0, 3.0, 4.0], [3.0]) is Verdict.MISMATCH


def simple(activation: str, state: list[int]) -> Case:
    args = {
        "x": ("f32", [1, 2, 1, 1, 1], [0.5, -0.25]),
        "h": ("f32", state, [0.0, 0.0]),
        "weightMatrix": ("f32", [1, 1], [1.0], True),
        "recursionMatrix": ("f32", [1, 1], [1.0], True),
    }
    return case(
        "nn", "simpleRecurrent", 1, args, {"inputVectorSize": 1, "outputVectorSize": 1, "activation": activation}
    )


@pytest.mark.parametrize(
    ("activation", "usual"),
    [
        ("linear", lambda x: x),
        ("scaledTanh", np.tanh),
        ("sigmoidHard", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    ],
)
def test_an_activation_without_numbers_has_the_usual_ones_or_zeros(activation: str, usual: Any) -> None:
    for text in (activation, f"{activation}(0.0,0.0)"):
        c = simple(text, [1, 2, 1, 1, 1])
        assert told(c, usual(np.array([0.5, -0.25]))) is Verdict.AGREE
        assert told(c, [0.0, 0.0]) is Verdict.AMBIGUOUS
        assert told(c, [0.5, 0.5]) is Verdict.MISMATCH
    c = simple(f"{activation}(0.0,0.25)", [1, 2, 1, 1, 1])  # one number is given, and counts
    assert told(c, [0.0 if activation == "scaledTanh" else 0.25] * 2) is Verdict.AGREE


def test_the_state_of_a_recurrent_layer_may_have_its_axes_at_either_end() -> None:
    for shape in ([1, 2, 1, 1, 1], [2, 1, 1, 1, 1]):
        assert told(simple("linear", shape), [0.5, -0.25]) is Verdict.AGREE
    other = simple("linear", [1, 1, 2, 1, 1])
    assert other.expected is None
    assert "state-shape" in other.problem


def test_the_logarithm_of_a_neural_network_adds_its_epsilon_or_not() -> None:
    c = case("nn", "unary.LOG", 1, {"x": ("f32", [2], [1.0, 3.0])}, {"epsilon": 0.5})
    assert told(c, np.log([1.0, 3.0])) is Verdict.AGREE
    assert told(c, np.log([1.5, 3.5])) is Verdict.AMBIGUOUS
    assert told(c, np.log([1.25, 3.25])) is Verdict.MISMATCH
    c = case("mil", "log", "ios15", {"x": ("f32", [2], [1.0, 3.0])}, {"epsilon": 0.5, "@U": "f32"})
    assert told(c, np.log([1.5, 3.5]), by=LOWERED) is Verdict.AGREE
    assert told(c, np.log([1.0, 3.0]), by=LOWERED) is Verdict.AMBIGUOUS
    assert told(c, np.log([1.0, 3.0])) is Verdict.MISMATCH


def test_no_entry_accuses_on_one_of_two_readings() -> None:
    assert not {e.id for e in ledger().entries} & {"ct-nn-log-epsilon", "ct-nn-rnn-state"}


def test_activations_without_numbers_are_drawn() -> None:
    for op in ("simpleRecurrent", "gru", "uniDirectionalLSTM"):
        v = nn.versions[next(k for k in nn.versions if f"/{op}/" in k)]
        seen = [str(v.draw(Prng(case_seed(5, op, i))).attrs) for i in range(150)]
        assert any("'scaledTanh'" in s for s in seen)
        assert any("'sigmoidHard'" in s for s in seen)
