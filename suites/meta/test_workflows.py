"""What actionlint and zizmor cannot tell of the workflow files: names from other files, time limits, shell syntax."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FILES = [*WORKFLOWS, ROOT / "action.yml"]


def _environments() -> set[str]:
    """Environments that tox.ini defines, factors spelled out."""
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    listed = {e.strip() for e in tox["tox"]["env_list"].replace("\n", ",").split(",") if e.strip()}
    return listed | {s.split(":", 1)[1] for s in tox.sections() if s.startswith("testenv:")}


def _jobs(path: Path) -> dict[str, Any]:
    text = yaml.safe_load(path.read_text())
    return text["jobs"] if "jobs" in text else {"action": text["runs"]}


def _shell(path: Path) -> list[str]:
    return [s["run"] for job in _jobs(path).values() for s in job["steps"] if "run" in s]


def test_workflow_files_are_found() -> None:
    assert {"ci.yml", "nightly.yml", "release.yml"} <= {p.name for p in WORKFLOWS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_every_job_has_a_time_limit(path: Path) -> None:
    assert [name for name, job in _jobs(path).items() if "timeout-minutes" not in job] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_every_tox_environment_exists(path: Path) -> None:
    known, jobs = _environments(), _jobs(path)
    named = [e for run in _shell(path) for e in re.findall(r"tox\s+run\s+-e\s+([\w,-]+)", run)]
    rows = [row for job in jobs.values() for row in job.get("strategy", {}).get("matrix", {}).get("include", [])]
    # rows of the nightly matrix that the step "run, other releases" hands to tox
    own = {"locked", "coreml", "onnx-tools"}
    named += [row["backends"] for row in rows if row.get("backends", "locked") not in own]
    assert {e for name in named for e in name.split(",")} <= known
    assert path.name != "nightly.yml" or len(named) >= 8


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_step_is_valid_bash(path: Path) -> None:
    for run in _shell(path):
        text = re.sub(r"\$\{\{.*?\}\}", "X", run)
        got = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert got.returncode == 0, f"{run}\n{got.stderr}"
