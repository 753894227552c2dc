"""A result that differs from run to run is told so: in the terminal, the record and the folder of the failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main
from harness.core.dtypes import dtype
from harness.core.forms import wrong_record
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.case_record import paragraph, record
from harness.engine.two_runs import MEMORY, OTHERWISE, difference
from harness.evidence.repro_folder import NONDETERMINISTIC
from harness.session.replay import replay
from harness.workers.unwritten import PATTERNS, words
from suites.meta.toy import toy

NOTHING = Instance(
    "toy", "Sum", 1, 1, {"axes": [0], "keepdims": False}, {"x": Arg(dtype("f32"), (0, 3), values=[])}, outs=1
)


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.declare.registry.version_of", toy.version_of)


def once(name: str) -> Any:
    (result,) = replay(NOTHING, [f"suites.meta.toy_backends:{name}"], explain=False)
    return result


def test_replay_names_memory_that_is_never_written() -> None:
    result = once("Unwritten")
    assert result.verdict is Verdict.MISMATCH  # though a young process finds the zeros that are right
    assert result.nondeterministic == f"{MEMORY} (output 0, 3 of 3 elements)"
    assert not np.array_equal(result.second.outputs[0], result.outcome.outputs[0])
    told = record(result, {result.backend: result.verdict.value})
    assert told["nondeterministic"] == result.nondeterministic
    assert wrong_record(told) is None
    assert wrong_record({**told, "nondeterministic": 1}) is not None
    assert result.nondeterministic in paragraph(told)


def test_replay_distinguishes_a_random_result_from_memory() -> None:
    result = once("Dice")
    assert result.verdict is Verdict.MISMATCH
    assert result.nondeterministic.startswith(OTHERWISE)


def test_replay_reports_nothing_if_the_result_repeats() -> None:
    result = once("Right")
    assert result.verdict.value in ("agree", "uninformative")
    assert not result.nondeterministic
    assert result.second is None


def test_minimize_writes_both_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "instance.json", tmp_path / "out"
    file.write_text(json.dumps(NOTHING.to_json()))
    code = main(["minimize", str(file), "--backend", "suites.meta.toy_backends:Unwritten", "--out", str(out)])
    assert code == 1
    assert MEMORY in capsys.readouterr().out
    (said,) = out.glob(f"*/{NONDETERMINISTIC}")
    assert said.read_text().startswith(MEMORY)
    assert words(1) in said.read_text()
    for k, code in enumerate((1, 0)):  # the second pattern is 0, which is right
        env = {**{n: v for n, v in os.environ.items() if n not in PATTERNS[0]}, **PATTERNS[k]}
        got = subprocess.run([sys.executable, str(said.parent / "repro.py")], env=env, capture_output=True, text=True)
        assert got.returncode == code or not PATTERNS[k], got
    first, second = (np.load(said.parent / f"actual{x}.npz") for x in ("", "-second"))
    assert first.files == second.files
    assert any(not np.array_equal(first[n], second[n]) for n in first.files)


def test_difference_compares_bits_and_ends() -> None:
    def outcome(*outputs: Any) -> Outcome:
        return Outcome(Status.VALUE, list(outputs), "run")

    nan, zero = np.array([np.nan, 0.0], np.float32), np.array([1.0, -0.0], np.float32)
    assert difference([outcome(nan)], [outcome(nan.copy())]) is None
    assert difference([outcome(zero)], [outcome(np.abs(zero))]) == "output 0, 1 of 2 elements"
    assert difference([outcome(None, [zero])], [outcome(None, [nan])]) == "output 1, 2 of 2 elements"
    assert difference([outcome(zero)], [outcome(zero[:1])]) == "output 0, its type or extents"
    died = Outcome(Status.CRASHED, None, "run", "killed")
    assert difference([outcome(zero)], [died]) == "value, then crashed"
    assert difference([outcome(zero)], [Outcome(Status.TIMED_OUT, None, "run")]) is None  # says nothing of the model
    assert difference([outcome(zero)], [Outcome(Status.CRASHED, None, "start")]) is None


def test_patterns_are_two() -> None:
    assert len(PATTERNS) == 2
    assert PATTERNS[0] != PATTERNS[1]
