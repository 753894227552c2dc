"""``--seconds`` is a bound, also of a backend that hangs; ``-m`` for generated tests imports no test module."""

from __future__ import annotations

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
    assert without_modules(config) == frozenset()  # type: ignore[arg-type]
    config.option.markexpr = "opset_onnx17 and conv"
    assert without_modules(config) == {"opset_onnx17", "conv"}  # type: ignore[arg-type]
