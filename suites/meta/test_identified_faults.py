"""A planted fault that is the listed defect itself is told apart from one that an entry hides."""

from __future__ import annotations

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.instance import Instance
from harness.declare import registry
from harness.ledger.defect_models import NOTHING, Near, Such
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.mutation.exact_answers import reproduces
from harness.mutation.sensitivity import Sight, measure
from harness.workers.info import BackendInfo

ORT = BackendInfo("onnxruntime", "1.32.0", formats=("onnx",))


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return load_ledger()


def sights(ledger: Ledger, key: str, dtype: str, fault: str) -> list[Sight]:
    found = measure(
        [registry.dialect("onnx").versions[key]], seed=5, instances=40, faults=[fault], ledger=ledger, backends=[ORT]
    )
    return [s for s in found.sights if s.dtype == dtype and s.shown]


def test_ties_away_from_zero_are_the_listed_defect_of_narrow_casts(ledger: Ledger) -> None:
    (tied,) = sights(ledger, "onnx/Cast/25", "f8e4m3fn", "ties broken otherwise")
    assert tied.caught >= 0
    assert not tied.hidden
    assert tied.identified == {"onnxruntime 1.32.0": ["ort-cast-int4-ties"]}
    assert not [s for s in sights(ledger, "onnx/Cast/25", "f32", "stale memory") if s.identified]


@pytest.mark.parametrize(
    ("key", "dtype", "fault"),
    [
        ("onnx/Tanh/6", "f32", "subnormals flushed"),
        ("onnx/Sin/22", "f64", "subnormals flushed"),
        ("onnx/DFT/17", "f64", "k-ulp error"),
        ("onnx/STFT/17", "f64", "k-ulp error"),
        ("onnx/AffineGrid/20", "f16", "k-ulp error"),
        ("onnx/LogSoftmax/13", "f64", "NaN dropped"),
    ],
)
def test_entries_of_small_errors_hide_no_other_fault(ledger: Ledger, key: str, dtype: str, fault: str) -> None:
    (s,) = sights(ledger, key, dtype, fault)
    assert s.caught >= 0
    assert not s.hidden


def test_only_a_model_that_gives_the_same_bits_reproduces_an_answer(ledger: Ledger) -> None:
    inst = next(e.instance for e in ledger.entries if e.id == "ort-cast-int4-ties")
    assert isinstance(inst, Instance)
    case = Case(registry.version_of(inst), inst, 0)
    assert case.expected is not None
    right = case.expected[0][0].value
    wrong = np.array([1, 3, -5]).astype(right.dtype)
    assert reproduces(lambda g: [np.array([1.0, 3.0, -5.0])], case, [wrong])
    assert reproduces(lambda g: [Near(np.array([1.0, 3.0, -5.0]), 0)], case, [wrong])
    assert reproduces(lambda g: [None], case, [right])
    assert reproduces(lambda g: [NOTHING], case, [None])
    assert not reproduces(lambda g: [np.array([1.0, 3.0, -4.0])], case, [wrong])
    assert not reproduces(lambda g: [np.array([1.0, 3.0, -99.0])], case, [wrong])  # what i4 does not hold
    assert not reproduces(lambda g: [Near(np.array([1.0, 3.0, -5.0]), 1)], case, [wrong])
    assert not reproduces(lambda g: [Such(lambda a: True, wrong)], case, [wrong])
    assert not reproduces(lambda g: None, case, [wrong])
