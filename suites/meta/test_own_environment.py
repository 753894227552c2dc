"""A plug-in in an environment of its own: its repro.py, and pytest with a Python for each backend."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.workers.spec import Place, placed_at
from suites.meta.test_cli import Cli, env, one_line, opconform  # noqa: F401 - fixtures

CLASS = """
import json
import numpy as np
class Wrong:
    name = "wrong"
    formats = ("toy",)
    validates = False
    dtypes = ("f32",)
    unsupported_ops = ("MatMul", "Max", "Flip", "Sum")
    def version(self):
        return "1"
    def load(self, model, format):
        return json.loads(model)
    def run(self, handle, inputs):
        out = {}
        for n in handle:
            a = {k: inputs[v] for k, v in n["ins"].items()}
            for k, c in n["consts"].items():
                a[k] = np.frombuffer(bytes.fromhex(c["hex"]), np.float32).reshape(c["shape"])
            out[n["out"]] = a["x"] - a["y"]
        return out
"""


def test_repro_of_a_class_needs_nothing_of_opconform(opconform: Cli, tmp_path: Path) -> None:  # noqa: F811
    (opconform.folder / "mine.py").write_text(CLASS)
    assert opconform.run("mine:Wrong", "--cases", "16", "--no-invalid").returncode == 1
    script = next((opconform.folder / ".opconform/run/failures").rglob("repro.py"))
    outside = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in ("harness", "suites", "reports", "opconform", "native_ref"):  # importing them fails
        (hidden / f"{name}.py").write_text("raise ImportError('not here')")
    run = [sys.executable, str(script)]
    done = subprocess.run(run, env={**outside, "PYTHONPATH": str(hidden)}, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "different" in done.stdout
    (opconform.folder / "mine.py").write_text(CLASS.replace('a["x"] - a["y"]', 'a["x"] + a["y"]'))
    done = subprocess.run(run, env={**outside, "PYTHONPATH": str(hidden)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (opconform.folder / "mine.py").unlink()
    shutil.rmtree(opconform.folder / "__pycache__", ignore_errors=True)
    done = subprocess.run(run, env=outside, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot be asked here" in done.stdout


def test_each_backend_has_its_python(tmp_path: Path) -> None:
    place = placed_at(["a=/x/python", "/y/python"], "Haswell", [], ["a", "b"])
    assert place.of("a") == Place("/x/python", "Haswell")
    assert place.of("b") == Place("/y/python", "Haswell")
    assert placed_at(["*Mine=/x/python"], None, []).of("my_module:Mine").python == "/x/python"
    file = tmp_path / "with=sign"
    file.write_text("")
    assert placed_at([str(file)], None, []).python == str(file)
    assert "--backend-python" in place.options


def test_one_of_two_backends_in_a_python_that_is_not_there(opconform: Cli) -> None:  # noqa: F811
    two = ("--backend", "suites.meta.toy_backends:SwappedAxis", "--cases", "4", "--op", "Add")
    assert opconform.run("Right", *two, "--backend-python", "*:Right=" + sys.executable).returncode == 0
    one_line(opconform.run("Right", *two, "--backend-python", "*:Right=/no/python"), "Right", "/no/python")


def test_pytest_asks_a_plug_in_in_its_own_python(tmp_path: Path) -> None:
    """The class can be imported there alone: the Python sets a variable that it wants."""
    (tmp_path / "there.py").write_text(
        "import os\n"
        "if os.environ.get('RUNTIME_IS_HERE') != '1':\n"
        "    raise ImportError('the runtime is not here')\n"
        "from onnx.reference import ReferenceEvaluator\n"
        "class There:\n"
        "    name, formats, opsets, dtypes, validates = 'there', ('onnx',), (14, 14), ('f32',), False\n"
        "    def version(self):\n        return '1'\n"
        "    def load(self, model, format):\n        return ReferenceEvaluator(model)\n"
        "    def run(self, handle, inputs):\n        return dict(zip(handle.output_names, handle.run(None, inputs)))\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nRUNTIME_IS_HERE=1 exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    ask = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "suites", "-m", "opset_onnx14"]
    ask += ["-k", "Relu/14", "--backend", "there:There", "--cases", "2", "-rs"]
    done = subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "the runtime is not here" in done.stdout + done.stderr
    done = subprocess.run([*ask, "--backend-python", f"*:There={python}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("values", [["/x", "/y"]])
def test_two_pythons_for_all_backends_are_refused(opconform: Cli, values: list[str]) -> None:  # noqa: F811
    options = [x for v in values for x in ("--backend-python", v)]
    one_line(opconform.run("Right", *options), "--backend-python", "expected once")


WRONG = """
import onnxruntime


class Wrong:
    name = "wrong"
    formats = ("onnx",)
    opsets = (7, 21)

    def version(self):
        return "1"

    def load(self, model, format):
        return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def run(self, handle, inputs):
        return {k: v + 1 for k, v in zip([o.name for o in handle.get_outputs()], handle.run(None, inputs))}
"""


def test_pytest_shows_the_votes_of_the_other_backends(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "wrong.py").write_text(WRONG)
    ask = ["--pyargs", "suites", "-m", "opset_onnx17 and activation and wrong_Wrong", "-k", "Relu/14"]
    which = ["--backend", "wrong:Wrong", "--backend", "onnxruntime", "--cases", "4", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *ask, *which], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    votes = [line for line in done.stdout.splitlines() if line.startswith("  votes: ")]
    assert votes
    assert set(votes) == {"  votes: wrong is against the reference and onnxruntime"}
