"""An instance that the reference would compute for ever is refused by name; the host goes on."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from harness.cases.case import draw_case, fill
from harness.core import limits
from harness.core.dtypes import BY_NAME
from harness.core.errors import RuleError, UsageError
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.limits import timed
from harness.declare import registry
from harness.session.replay import minimize, replay

SLOW = "fits-time: expected what the reference evaluates within 1 s"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 1.0)


def loop() -> Instance:
    """A loop of 2^62 trips."""
    v = registry.dialect("onnx").versions["onnx/Loop/13"]
    for index in range(200):
        inst = draw_case(v, 13, 0, index, lazy=True).inst
        trips = inst.args.get("M")
        if inst.rule is None and isinstance(trips, Arg) and not isinstance(inst.args.get("cond"), Arg):
            many = replace(trips, values=[1 << 62])
            return replace(inst, args={**inst.args, "M": many}, reruns=())
    raise AssertionError("no loop with a number of trips and no condition")


def nested() -> Instance:
    """A loop of 90,000 trips whose body is a loop of 90,000 trips: each alone is short of what counts as no end."""
    inst = loop()
    inner = inst.attrs["body"]
    states = [n for n, _ in inner.inputs[2:]]
    ends = [f"end{k}" for k in range(len(inner.outputs) - 1)]
    again = Node("Loop", {"M": "trips", "cond": None, "v_initial": [f"{n}_0" for n in states]}, ends, {"body": inner})
    outer = Graph(
        [("i_0", inner.inputs[0][1]), ("on_0", inner.inputs[1][1]), *((f"{n}_0", a) for n, a in inner.inputs[2:])],
        [again, Node("Identity", {"input": "on_0"}, ["on_1"])],
        ["on_1", *ends],
        {"trips": np.array(90_000)},
    )
    return replace(inst, args={**inst.args, "M": replace(inst.tensor("M"), values=[90_000])}, attrs={"body": outer})


@pytest.mark.parametrize("make", [loop, nested])
def test_an_instance_without_an_end_is_refused_by_name(make, monkeypatch) -> None:
    if make is loop:
        monkeypatch.setattr("suites.semantics.control.ENDLESS", 1 << 60)
    inst = make()
    began = time.process_time()
    with pytest.raises(UsageError, match=SLOW):
        replay(inst, ["onnx-reference"])
    assert "fits-time" in fill(registry.version_of(inst), inst).problem
    assert time.process_time() - began < 10


def test_a_regular_expression_takes_linear_time() -> None:
    """Forty times a, then b: RE2 does not backtrack, where Python's matcher takes 2^40 steps."""
    x = Arg(BY_NAME["str"], (1,), values=["a" * 40 + "b"])
    inst = Instance("onnx", "RegexFullMatch", 20, 20, args={"X": x}, attrs={"pattern": "(a+)+$"})
    case = fill(registry.version_of(inst), inst)
    assert not case.problem
    assert case.expected is not None
    assert not case.expected[0][0].value[0]


def test_minimize_refuses_it_too(tmp_path) -> None:
    with pytest.raises(UsageError, match=SLOW):
        minimize(nested(), "onnx-reference", tmp_path)


def test_what_catches_the_deadline_is_stopped_again(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.1)
    monkeypatch.setattr(limits, "AGAIN", 0.1)

    def catches_it() -> None:
        try:
            while True:
                np.sin(1.0)
        except RuleError:
            while True:
                np.sin(1.0)

    with pytest.raises(RuleError, match="fits-time"), timed, timed:
        catches_it()


def test_outside_no_alarm_is_left() -> None:
    timed.stop()
    before = signal.getsignal(signal.SIGVTALRM)
    for _ in range(3):
        with timed:
            assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    ends = time.process_time() + 10
    while signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0:  # until two ticks have seen no evaluation
        assert time.process_time() < ends
    assert signal.getsignal(signal.SIGVTALRM) is before


def test_each_evaluation_has_the_whole_time() -> None:
    """Many short evaluations together take longer than one may."""
    ends = time.process_time() + 2.5
    while time.process_time() < ends:
        with timed:
            np.sin(np.zeros(10_000))
