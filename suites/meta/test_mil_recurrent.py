"""What the pages of MIL's recurrent layers say, and where two readings of them stand side by side."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.mil import dialect

ledger = cache(load_ledger)


def told(case: Case, *values: Any) -> Verdict:
    """Of an answer, with the ledger at hand."""
    outputs = [np.asarray(v, e.value.dtype) for v, e in zip(values, case.expected[0])]
    return judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, outputs, "run")], ledger()).verdict


def lstm(**attrs: Any) -> Case:
    """One unit, two steps; weights of the gates in the order input, forget, output, cell."""
    tensors = {
        "x": ([2, 1, 1], [1.0, 2.0]),
        "initial_h": ([1, 1], [0.5]),
        "initial_c": ([1, 1], [0.75]),
        "weight_ih": ([4, 1], [1.0, -0.5, 0.25, 2.0]),
        "weight_hh": ([4, 1], [0.5, 1.0, -1.0, 0.25]),
        "bias": ([4], [0.25, 1.0, 0.5, -0.25]),
        "peephole": ([3], [0.5, -0.25, 1.0]),
    }
    args = {k: {"dtype": "f32", "shape": shape, "values": v} for k, (shape, v) in tensors.items()}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "mil",
            "op": "lstm",
            "version": "ios15",
            "opset": "ios15",
            "attrs": attrs,
            "args": args,
            "outs": 3,
        }
    )
    return Case(dialect.version_of(inst), inst, 0)


def by_hand(clipped: str, limit: float, cell: Any = np.tanh) -> list[Any]:
    """The last h, that again, and the last c of ``lstm``.  clipped: what the limit bounds."""

    def sigmoid(v: float) -> float:
        return float(1 / (1 + np.exp(-v)))

    def bound(v: float, what: str) -> float:
        return float(np.clip(v, -limit, limit)) if what == clipped else v

    h, c = 0.5, 0.75
    for x in (1.0, 2.0):
        i = sigmoid(bound(x + 0.5 * h + 0.25 + 0.5 * c, "sums"))
        f = sigmoid(bound(-0.5 * x + h + 1.0 - 0.25 * c, "sums"))
        z = bound(cell(bound(2.0 * x + 0.25 * h - 0.25, "sums")), "gate")
        c = bound(f * c + i * z, "state")
        o = sigmoid(bound(0.25 * x - h + 0.5 + c, "sums"))
        h = o * np.tanh(c)
    return [[[[h]]], [[h]], [[c]]]


def test_clip_bounds_the_cell_state_or_else_the_cell_gate() -> None:
    """lstm: "Cell gate is clipped"; what enters the gates is no reading of that."""
    case = lstm(clip=0.5)
    assert case.ambiguous is None
    assert told(case, *by_hand("state", 0.5)) is Verdict.AGREE
    assert told(case, *by_hand("gate", 0.5)) is Verdict.AMBIGUOUS
    assert told(case, *by_hand("sums", 0.5)) is Verdict.MISMATCH
    assert told(case, *by_hand("nothing", 0.5)) is Verdict.MISMATCH


def test_a_clip_that_nothing_reaches_opens_nothing() -> None:
    case = lstm(clip=50.0)
    assert told(case, *by_hand("nothing", 0.0)) is Verdict.AGREE
    assert told(case, *by_hand("state", 0.5)) is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("scaled_tanh", np.tanh),
        ("hard_sigmoid", lambda v: float(np.clip(0.2 * v + 0.5, 0, 1))),
    ],
)
def test_an_activation_has_the_parameters_that_its_op_has_by_default(name: str, function: Any) -> None:
    """scaled_tanh iOS15: alpha and beta 1; sigmoid_hard iOS15: 0.2 and 0.5."""
    case = lstm(cell_activation=name)
    assert case.ambiguous is None
    assert told(case, *by_hand("nothing", 0.0, function)) is Verdict.AGREE
    assert told(case, *by_hand("nothing", 0.0, lambda v: 0.0)) is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("key", "slots"),
    [
        ("lstm/ios15", ("recurrent_activation", "cell_activation", "activation")),
        ("lstm/ios17", ("recurrent_activation", "cell_activation", "activation")),
        ("gru/ios15", ("recurrent_activation", "activation")),
        ("rnn/ios15", ("activation",)),
    ],
)
def test_all_activations_of_the_page_are_drawn_and_judged(key: str, slots: tuple[str, ...]) -> None:
    v = dialect.versions[f"mil/{key}"]
    seen = [v.draw(Prng(case_seed(43, key, i))) for i in range(300)]
    hard = "sigmoid_hard" if "rnn" in key else "hard_sigmoid"
    for slot in slots:
        assert {hard, "scaled_tanh", "linear", "relu", "sigmoid", "tanh"} <= {i.attrs.get(slot) for i in seen}
    cases = [draw_case(v, None, 43, i, 1, invalid=False) for i in range(60)]
    assert sum(c.ambiguous is None for c in cases) > 50
