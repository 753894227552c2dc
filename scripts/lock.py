"""Write constraints.txt: one version of every package that CI installs, for each supported Python.

    python scripts/lock.py          # asks pip what it would install, downloads nothing but metadata

Linux wheels are resolved; a package whose newest release differs between Pythons gets one line for each.  Every Python
has to be there, as python3.10 and so on: ``pip install --python-version`` chooses wheels for another one, but reads
markers and Requires-Python for the one that it runs in.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
BY_TORCH = re.compile(r"(nvidia|cuda)-|triton$")  # what a build of PyTorch for GPUs needs, and pins itself
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def wanted() -> list[str]:
    """Requirements of the package, of the extras that CI installs, and of its build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
        *project["project"]["optional-dependencies"]["networks"],
        *project["project"]["optional-dependencies"]["docs"],
        *project["build-system"]["requires"],
    ]


def resolve(python: str, requirements: list[str]) -> dict[str, str]:
    """Name -> version of what pip would install for one Python; raises CalledProcessError where it finds no way."""
    with tempfile.TemporaryDirectory() as tmp:
        asked, report, venv = Path(tmp, "asked.txt"), Path(tmp, "report.json"), Path(tmp, "venv")
        asked.write_text("\n".join(requirements))
        subprocess.run([f"python{python}", "-m", "venv", venv], check=True)
        pip = [str(venv / "bin/python"), "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
        subprocess.run([*pip, "--report", str(report), "--only-binary=:all:", "-r", str(asked)], check=True)
        found = json.loads(report.read_text())["install"]
    packages = {}
    for i in found:
        name = re.sub(r"[-_.]+", "-", i["metadata"]["name"]).lower()
        if not BY_TORCH.match(name):
            packages[name] = i["metadata"]["version"].split("+")[0]  # 2.13.0+cpu is a build of 2.13.0: any will do
    return packages


def lines(resolved: dict[str, dict[str, str]]) -> list[str]:
    """One line a package where all Pythons agree, else one for each version."""
    pythons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, packages in resolved.items():
        for name, version in packages.items():
            pythons[name][version].append(python)
    out = []
    for name, versions in sorted(pythons.items()):
        if len(versions) == 1:
            out.append(f"{name}=={next(iter(versions))}")
            continue
        for version, where in sorted(versions.items(), key=lambda v: PYTHONS.index(v[1][0])):
            out.append(f"{name}=={version}; " + " or ".join(f'python_version == "{p}"' for p in where))
    return out


def main() -> None:
    """Resolve for every Python and write the file."""
    requirements = wanted()
    absent = [p for p in PYTHONS if subprocess.run(["env", f"python{p}", "-c", ""], capture_output=True).returncode]
    if absent:
        sys.exit(f"lock.py: expected all of {' '.join('python' + p for p in PYTHONS)}, cannot run {' '.join(absent)}")
    resolved = {p: resolve(p, requirements) for p in PYTHONS}
    head = [
        "# One version of everything that CI installs.  Written by scripts/lock.py; do not edit.",
        "# Use: pip install -c constraints.txt -e '.[dev]'",
    ]
    (ROOT / "constraints.txt").write_text("\n".join([*head, *lines(resolved), ""]))


if __name__ == "__main__":
    main()
