"""``--seconds`` is a bound, also of a backend that hangs; ``-m`` for generated tests imports no test module."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suites.meta.test_cli import Cli, env, opconform  # noqa: F401 - fixtures

HANGS = """
import time
from suites.meta.toy_backends import Right
class Hangs(Right):
    name = "hangs"
    def run(self, handle, inputs):
        time.sleep(600)
"""


def test_seconds_bound_a_backend_that_hangs(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "hanging.py").write_text(HANGS)
    start = time.monotonic()
    done = opconform.run("hanging:Hangs", "--seconds", "6", "--cases", "64", "--no-invalid")
    took = time.monotonic() - start
    assert done.returncode == 2, done.stdout + done.stderr
    assert took < 40, "one hang has a deadline of 20 s, of which several follow each other"
    assert "nothing was judged: the time was over" in done.stderr


# Wrong in the first process; each later one, which is to confirm it or to make it small, hangs.
WRONG_THEN_HANGS = """
import os, time
from pathlib import Path
from suites.meta.toy_backends import Right
FIRST = Path("first-process")
class Hangs(Right):
    name = "hangs"
    def run(self, handle, inputs):
        if not FIRST.exists():
            FIRST.write_text(str(os.getpid()))
        if FIRST.read_text() != str(os.getpid()):
            time.sleep(600)
        return {k: v + 1 if v.dtype == "float32" else v for k, v in super().run(handle, inputs).items()}
"""

STARTS_SLOWLY = """
import time
from suites.meta.toy_backends import Right
time.sleep(600)
class Slow(Right):
    name = "slow"
"""


def test_seconds_limit_rechecks(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "hanging.py").write_text(WRONG_THEN_HANGS)
    start = time.monotonic()
    done = opconform.run("hanging:Hangs", "--seconds", "8", "--cases", "64", "--no-invalid")
    assert time.monotonic() - start < 25, "each question hangs for 20 s, and is repeated"
    assert done.returncode in (1, 2), done.stdout + done.stderr


def test_seconds_bound_the_start_of_a_backend(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "slow.py").write_text(STARTS_SLOWLY)
    start = time.monotonic()
    done = opconform.run("slow:Slow", "--seconds", "3")
    assert time.monotonic() - start < 25
    assert done.returncode == 2
    assert "gave no sign of life within 3 s" in done.stderr


def test_the_deadline_of_a_model_is_an_option(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "hanging.py").write_text(HANGS)
    limits = ("--deadline", "0.5", "--memory", "2.5")
    done = opconform.run("hanging:Hangs", "--op", "Add", "--cases", "2", "--no-invalid", "--minimize", "0", *limits)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = (opconform.folder / ".opconform" / "run" / "records.jsonl").read_text().splitlines()
    cases = [r for r in map(json.loads, lines) if r["t"] == "case"]
    assert {r["verdict"] for r in cases} == {"timed_out"}
    assert all(float(re.findall(r"within ([\d.]+) s", r["message"])[0]) < 8 for r in cases), "20 s without the option"
    assert all(r["replay"].endswith("--deadline 0.5 --memory 2.5") for r in cases)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "soon"])
def test_a_limit_that_is_none_is_one_line(opconform: Cli, text: str) -> None:  # noqa: F811
    done = opconform.run("hanging:Hangs", "--deadline", text)
    assert done.returncode == 2
    assert f"expected a number above 0, got {text}" in done.stderr


def test_generated_tests_alone_import_no_test_module(tmp_path: Path) -> None:
    ask = [sys.executable, "-X", "importtime", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*ask, "--pyargs", "suites", "-m", "opset_onnx17 and conv", "--backend", "onnx-reference"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "3/" in done.stdout
    assert "suites.meta.test_" not in done.stderr
    assert "coremltools" not in done.stderr


@pytest.mark.parametrize("expression", ["not conv", "conv or slow", "conv and not slow"])
def test_other_expressions_see_every_module(expression: str) -> None:
    from types import SimpleNamespace

    from harness.plugin.markers import without_modules

    config = SimpleNamespace(option=SimpleNamespace(markexpr=expression), getoption=lambda _: [])
    assert without_modules(config) == frozenset()
    config.option.markexpr = "opset_onnx17 and conv"
    assert without_modules(config) == {"opset_onnx17", "conv"}
