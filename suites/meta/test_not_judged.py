"""Elements under an infinite or useless bound are not judged: they are counted as such, and an answer of which they are
more than half counts for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reports
from harness import tolerance as classes
from harness.compare import judge
from harness.core.dtypes import F32, I8, of
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare.expected import Expected
from suites.meta import golden

WIDE = np.linspace(1, 64, 64)


def expected(bounds: np.ndarray) -> Expected:
    """Floats of which each element has a bound of its own."""
    error = classes.bounded(lambda c: bounds, "as given")
    return Expected(WIDE.astype(np.float32), WIDE, F32, error, lambda: classes.Context({}, {}, WIDE, F32))


def bounds(unbound: int, what: float) -> np.ndarray:
    return np.where(np.arange(64) < unbound, what, 1e-3 * WIDE)


def judged(some: list[Expected], *actual: Any) -> Any:
    return judge(some, Outcome(Status.VALUE, list(actual)))


@pytest.mark.parametrize("useless", [np.inf, np.nan, 20.0], ids=str)
def test_elements_under_a_useless_bound_are_counted(useless: float) -> None:
    near = (WIDE * (1 + 1e-4)).astype(np.float32)
    for unbound in (0, 1, 32, 33, 64):
        j = judged([expected(bounds(unbound, useless))], near)
        wide = np.fmin(bounds(unbound, useless), np.inf) if useless == useless else bounds(unbound, np.inf)
        assert j.unjudged == np.count_nonzero(wide > 0.1 * WIDE)
        assert j.verdict is (Verdict.UNINFORMATIVE if unbound > 32 else Verdict.AGREE)


def test_a_wrong_element_next_to_unbound_ones_is_a_mismatch() -> None:
    wrong = WIDE.astype(np.float32)
    wrong[-1] *= 2
    assert judged([expected(bounds(60, np.inf))], wrong).verdict is Verdict.MISMATCH


def test_a_right_element_is_judged_whatever_its_bound() -> None:
    j = judged([expected(bounds(64, np.inf))], WIDE.astype(np.float32))
    assert j.verdict is Verdict.AGREE
    assert not j.unjudged


def test_elements_of_all_outputs_count_together() -> None:
    near = (WIDE * (1 + 1e-4)).astype(np.float32)
    sharp, open_ = expected(bounds(0, 0)), expected(bounds(64, np.inf))
    one = judged([sharp, open_], near, near)
    assert one.verdict is Verdict.AGREE, "half of them are judged"
    assert one.unjudged == 64, "half of them are judged"
    assert judged([sharp, open_, open_], near, near, near).verdict is Verdict.UNINFORMATIVE


def test_a_quantised_bound_of_a_tenth_of_the_range_judges_nothing() -> None:
    want = np.arange(64, dtype=np.int8)
    got = want + 3
    for steps, unjudged in ((5.0, 0), (30.0, 64)):
        error = classes.quantised(real=lambda c: want.astype(np.float64), tie=steps)
        e = Expected(want, None, of(want), error, lambda: classes.Context({}, {}, want.astype(np.float64), I8))
        j = judged([e], got)
        assert j.unjudged == unjudged
        assert j.verdict is (Verdict.UNINFORMATIVE if unjudged else Verdict.AGREE)


def run_of(tmp_path: Path, uninformative: int) -> Path:
    """Records of one op version on one backend: 10 answers to valid instances, some of which say too little."""
    tally = [
        ["f32", "agree", 10 - uninformative],
        ["f32", "uninformative", uninformative],
        ["f32", "unsupported", 5],
        ["f32", "unknown", 1],
    ]
    return golden.one_unit(tmp_path / "records.jsonl", tally, elements=[[7, 100, 10, uninformative]])


def test_the_report_lists_op_versions_that_are_mostly_uninformative(tmp_path: Path) -> None:
    for n, listed in ((5, False), (6, True)):
        done = reports.render(run_of(tmp_path, n), tmp_path / "out")
        found = done.summary.uninformative
        assert [e["key"] for e in found] == ["onnx/Relu/14"] * listed
        assert ("Mostly uninformative" in done.markdown.read_text()) is listed
        data = json.loads(done.json.read_text())
        assert list(data["elements"]["onnx/Relu/14"].values()) == [[7, 100, 10, n]]


def test_judged_elements_have_the_same_count_everywhere(tmp_path: Path) -> None:
    """Not what is unsupported, says too little, or has no verdict."""
    done = reports.render(run_of(tmp_path, 3), tmp_path / "out")
    assert done.summary.judged == 7
    assert done.summary.unjudged == {"uninformative": 3, "unsupported": 5, "unknown": 1}
    assert (
        "0 unexplained** of 7 judged outcomes (3 uninformative, 5 unsupported not counted)" in done.markdown.read_text()
    )
    assert 'assertions="7"' in done.junit.read_text()
    assert "0 unexplained of 7" in done.html.read_text()
