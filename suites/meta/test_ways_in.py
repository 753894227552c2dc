"""The commands of the documentation that a newcomer pastes, run as they stand, on the class of the README."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from suites.meta.test_cli import Cli, env, opconform  # noqa: F401 - fixtures

pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "run": ["--dialect", "onnx", "--op", "Acos", "--cases", "48", "--minimize", "5"],
    "probe": ["--op", "onnx/Acos"],
}


def commands(page: str, word: str) -> list[list[str]]:
    """The commands of the first shell block of a page that has a word."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    block = next(b for b in blocks if word in b)
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines() if line.startswith("opconform ")]


@pytest.fixture
def newcomer(opconform: Cli) -> Cli:  # noqa: F811
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "class MyBackend" in b)
    (opconform.folder / "my_module.py").write_text(block)
    return opconform


def test_a_list_of_ones_own(newcomer: Cli) -> None:
    run, write, again = commands("docs/known-differences.md", "known --write")
    first = newcomer(*run, *SMALL["run"])
    assert first.returncode == 1, first.stdout + first.stderr
    done = newcomer(*write)
    assert done.returncode == 0, done.stderr
    done = newcomer(*again, *SMALL["run"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_probe_and_claims(newcomer: Cli) -> None:
    probe, run = commands("docs/backends.md", "opconform probe")
    done = newcomer(*probe, *SMALL["probe"])
    assert done.returncode == 0, done.stderr
    done = newcomer(*run, *SMALL["run"])
    assert done.returncode in (0, 1), done.stderr
    assert "judged outcomes" in done.stdout


def test_selection(newcomer: Cli) -> None:
    (run,) = commands("docs/backends.md", "--no-empty --static")
    done = newcomer(*run, "--dialect", "onnx", "--op", "Relu", "--op", "SequenceEmpty", "--cases", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 unexplained of" in done.stdout


def test_a_run_against_a_baseline(newcomer: Cli) -> None:
    base = ("run", "--backend", "my_module:MyBackend", *SMALL["run"])
    assert newcomer(*base, "--out", "base").returncode == 1
    for seed in ("0", "1"):
        done = newcomer(*base, "--out", f"now{seed}", "--seed", seed, "--baseline", "base/records.jsonl")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "against the baseline: 0 new" in done.stdout
