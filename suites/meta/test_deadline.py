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
from harness.core.instance import Arg, Instance
from harness.core.limits import timed
from harness.declare import registry
from harness.session.session import minimize, replay

SLOW = "fits-time: expected what the reference evaluates within 1 s"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 1.0)


def regex() -> Instance:
    """Forty times a, then b, against a pattern that backtracks 2^40 times."""
    x = Arg(BY_NAME["str"], (1,), values=["a" * 40 + "b"])
    return Instance("onnx", "RegexFullMatch", 20, 20, args={"X": x}, attrs={"pattern": "(a+)+$"})


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


@pytest.mark.parametrize("make", [regex, loop])
def test_an_instance_without_an_end_is_refused_by_name(make, monkeypatch) -> None:
    monkeypatch.setattr("suites.semantics.control.ENDLESS", 1 << 60)
    inst = make()
    began = time.process_time()
    with pytest.raises(UsageError, match=SLOW):
        replay(inst, ["onnx-reference"])
    assert "fits-time" in fill(registry.version_of(inst), inst).problem
    assert time.process_time() - began < 10


def test_minimize_refuses_it_too(tmp_path) -> None:
    with pytest.raises(UsageError, match=SLOW):
        minimize(regex(), "onnx-reference", tmp_path)


def test_what_catches_the_deadline_is_stopped_again(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.1)
    monkeypatch.setattr(limits, "AGAIN", 0.1)
    with pytest.raises(RuleError, match="fits-time"), timed, timed:
        try:
            while True:
                np.sin(1.0)
        except RuleError:
            while True:
                np.sin(1.0)


def test_outside_no_alarm_is_left() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with timed:
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    assert signal.getsignal(signal.SIGVTALRM) is before
