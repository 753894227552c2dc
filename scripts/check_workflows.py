"""What a schema cannot tell of the workflow files: do the things they name exist?

Every ``tox -e`` environment is defined in tox.ini, every job needed exists, every matrix value used is defined, every
action is pinned to a version, and what runs in shell parses as shell.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent


def environments() -> set[str]:
    """Environments that tox.ini defines, factors spelled out."""
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    listed = {e.strip() for e in tox["tox"]["env_list"].replace("\n", ",").split(",") if e.strip()}
    return listed | {s.split(":", 1)[1] for s in tox.sections() if s.startswith("testenv:")}


def problems(path: Path, known: set[str]) -> list[str]:
    """What is wrong with one workflow file, a line each."""
    flow = yaml.safe_load(path.read_text())
    jobs: dict[str, Any] = flow["jobs"]
    out = []
    for name, job in jobs.items():
        where = f"{path.name}: {name}"
        needs = job.get("needs", [])
        for other in [needs] if isinstance(needs, str) else needs:
            if other not in jobs:
                out.append(f"{where}: needs {other!r}, which is no job")
        if "timeout-minutes" not in job:
            out.append(f"{where}: no timeout-minutes")
        out += _matrix(where, job)
        for step in job.get("steps", []):
            uses, run = step.get("uses"), step.get("run")
            if uses and not re.fullmatch(r"[\w-]+/[\w/-]+@(v\d+(\.\d+)*|[0-9a-f]{40})", uses):
                out.append(f"{where}: {uses!r} is not pinned to a version")
            if run:
                missing = [e for e in _tox(run) if e not in known and "${{" not in e]
                out += [f"{where}: tox has no environment {e!r}" for e in missing]
                out += _shell(where, run)
    return out


def _matrix(where: str, job: dict[str, Any]) -> list[str]:
    matrix = job.get("strategy", {}).get("matrix", {})
    defined = set(matrix) | {k for extra in matrix.get("include", []) for k in extra}
    used = set(re.findall(r"\$\{\{[^}]*?matrix\.([\w-]+)", str(job)))
    return [f"{where}: matrix.{name} is used but not defined" for name in sorted(used - defined)]


def _tox(run: str) -> list[str]:
    return [e for found in re.findall(r"tox\s+(?:run\s+)?-e\s+(\S+)", run) for e in found.split(",")]


def _shell(where: str, run: str) -> list[str]:
    text = re.sub(r"\$\{\{.*?\}\}", "X", run)
    got = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    return [f"{where}: {got.stderr.strip()}"] if got.returncode else []


def main() -> int:
    """Check all workflows; 1 when something is wrong."""
    known = environments()
    found = [p for path in sorted((ROOT / ".github/workflows").glob("*.yml")) for p in problems(path, known)]
    print("\n".join(found) or "workflow files: every name they use exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
