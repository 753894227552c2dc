"""The files around the code that others use: the action, the licence, the changelog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import opconform

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
LINES, MODULES = 350, 12  # of a module, and in a room, of the harness: at most
MODULE = """
from onnx.reference import ReferenceEvaluator

class Right:
    name = "right"
    formats = ("onnx",)
    opsets = (14, 14)
    dtypes = ("f32",)
    validates = False

    def version(self):
        return "1"

    def load(self, model, format):
        return ReferenceEvaluator(model)

    def run(self, handle, inputs):
        return dict(zip(handle.output_names, handle.run(None, inputs)))

class Wrong(Right):
    name = "wrong"

    def run(self, handle, inputs):
        return {o: x - 1 for o, x in super().run(handle, inputs).items()}
"""


def _step(name: str) -> dict[str, Any]:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return next(s for s in steps if s["name"] == name)


@pytest.mark.parametrize(("name", "code"), [("Right", 0), ("Wrong", 1)])
def test_action_runs_a_backend_and_gives_its_code(tmp_path: Path, name: str, code: int) -> None:
    (tmp_path / "my_module.py").write_text(MODULE)
    step = _step("run the backend")
    given = {"BACKEND": f"my_module:{name}", "DIALECT": "onnx", "OP": "Relu Ab*", "OPSET": "onnx14", "CASES": "2"}
    given |= {"SEED": "0", "ARTIFACT": "opconform-report"}
    assert set(step["env"]) == set(given)
    github = {n: str(tmp_path / n) for n in ("RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    got = subprocess.run(
        shell, cwd=tmp_path, env={**os.environ, **github, **given, "PATH": path}, capture_output=True, text=True
    )
    assert got.returncode == 0, got.stdout + got.stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "GITHUB_OUTPUT").read_text().splitlines())
    assert outputs["code"] == str(code), got.stdout + got.stderr
    assert (Path(outputs["folder"]) / "report.html").is_file()
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text().startswith("# opconform")


def test_metadata_name_the_licence_and_its_text() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_changelog_names_this_version() -> None:
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert sections[0] == "[Unreleased]"
    released = [s for s in sections if s.startswith(f"[{opconform.__version__}] - ")]
    first = f"the first release will be {opconform.__version__}." in (ROOT / "CHANGELOG.md").read_text()
    assert released or first


def test_no_module_of_the_harness_is_long() -> None:
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in (ROOT / "harness").rglob("*.py")}
    assert len(lines) > 100
    assert {str(p.relative_to(ROOT)): n for p, n in lines.items() if n > LINES} == {}, "split it by meaning"


def test_no_room_of_the_harness_has_many_modules() -> None:
    modules = (p.relative_to(ROOT) for p in (ROOT / "harness").rglob("*.py") if p.name != "__init__.py")
    rooms = Counter(p.parent for p in modules if p.parent.name != "verbs")  # which holds a module for every verb
    assert len(rooms) > 15
    assert {str(room): n for room, n in rooms.items() if n > MODULES} == {}, "move what belongs elsewhere"
