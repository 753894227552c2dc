"""Python environments that hold one release of a runtime each: built when first needed, kept for the next time.

pip does the work, so its settings hold: another index, a folder of wheels (``PIP_NO_INDEX``, ``PIP_FIND_LINKS``), a
proxy.  An environment lies below the user's cache folder, or below ``OPCONFORM_CACHE``.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.core.errors import UsageError

BESIDE = ("numpy", "ml_dtypes")  # what a worker needs beside its runtime: types that NumPy lacks come from the second
LIMIT = 900.0  # seconds for one installation
READY = "opconform.json"  # in an environment that was built to its end: the release that it holds
# Prints "yes" if a compiled module of the package knows where NumPy 1 keeps its functions, and none where NumPy 2 does.
_OF_NUMPY_1 = """
import sys
from importlib.metadata import files

found = [f.locate().read_bytes() for f in files(sys.argv[1]) or () if f.suffix in (".so", ".pyd")]
old, new = (any(name in data for data in found) for name in (b"numpy.core.", b"numpy._core"))
print("yes" if old and not new else "no")
"""


class NoRelease(UsageError):
    """A release has no wheel for this Python or machine, or cannot be installed: one line says which and why."""


def cache_folder() -> Path:
    """Where the environments are kept."""
    told = os.environ.get("OPCONFORM_CACHE")
    if told:
        return Path(told)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opconform"


def here() -> str:
    """This Python and machine in words."""
    return f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform.system()} {platform.machine()}"


@dataclass
class Releases:
    """The releases of a package and their environments.  module: what must import in each.

    log: takes a line on what is done."""

    package: str
    module: str
    root: Path
    log: Callable[[str], None] = lambda _: None

    @cached_property
    def versions(self) -> list[Version]:
        """The releases with a wheel for this Python and machine, the oldest first.  Raises UsageError if there is
        none."""
        text = _output(
            [*self.pip, "index", "versions", self.package, "--only-binary", ":all:", "--disable-pip-version-check"]
        )
        found = re.search(r"Available versions: (.*)", text)
        if found is None:
            raise UsageError(
                f"{self.package}: expected a package with wheels for {here()}, pip found none: {last(text)}"
            )
        return sorted(Version(v) for v in found[1].replace(",", " ").split())

    @cached_property
    def pip(self) -> list[str]:
        """The command of pip: this Python's own, else that of an environment which has nothing but pip."""
        own = [sys.executable, "-m", "pip"]
        if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
            return own
        tools = self.root / "pip"
        if not (tools / "bin" / "python").exists():
            self.log("an environment with pip")
            _checked([sys.executable, "-m", "venv", "--clear", str(tools)], "an environment with pip")
        return [str(tools / "bin" / "python"), "-m", "pip"]

    def span(self, first: str | None, last_: str | None) -> list[Version]:
        """The final releases from one to another, both included; None: no limit.  Raises UsageError where none is
        there, and names the nearest ones."""
        low, high = (None if v in (None, "newest", "oldest") else _version(v) for v in (first, last_))
        some = [v for v in self.versions if not v.is_prerelease]
        out = [v for v in some if (low is None or v >= low) and (high is None or v <= high)]
        if not out:
            raise UsageError(
                f"{self.package}: no wheel from {first} to {last_} for {here()}; there are {some[0]} to {some[-1]}"
                if some
                else f"{self.package}: no wheel of a final release for {here()}"
            )
        return out

    def folder(self, version: Version) -> Path:
        """The place of the environment of a release."""
        tag = f"py{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"
        return self.root / "environments" / f"{self.package}-{version}-{tag}"

    def python(self, version: Version) -> str:
        """The interpreter of the environment of a release, which is built where it is not there yet.  Raises
        NoRelease."""
        folder = self.folder(version)
        python = folder / "bin" / "python"
        if not (folder / READY).exists():
            self.log(f"{self.package} {version}: building its environment")
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            _checked([sys.executable, "-m", "venv", "--without-pip", str(folder)], f"{self.package} {version}")
            self._fill(version, python)
            (folder / READY).write_text(json.dumps({"package": self.package, "version": str(version)}))
        return str(python)

    def _fill(self, version: Version, python: Path) -> None:
        """Install the release; one that was built for NumPy 1 gets it, since it may import and then refuse all."""
        wanted = [f"{self.package}=={version}", *BESIDE]
        self._install(version, python, wanted)
        if _run([str(python), "-c", _OF_NUMPY_1, self.package]).stdout.strip() == "yes":
            self._install(version, python, [*wanted, "numpy<2"])
        done = _run([str(python), "-c", f"import {self.module}"])
        if done.returncode:
            why = last(done.stderr) if done.stderr else f"exit code {done.returncode}"
            raise NoRelease(f"{self.package} {version}: does not import with {here()}: {why}")

    def _install(self, version: Version, python: Path, wanted: list[str]) -> None:
        if self.uv:
            command = [*self.uv, "pip", "install", "--quiet", "--python", str(python)]
        else:
            command = [*self.pip, "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, "--only-binary", ":all:", *wanted], capture_output=True, text=True, check=False, timeout=LIMIT
        )
        if done.returncode:
            lacks = re.search(r"No matching distribution|no wheels? with|no version of|unsatisfiable", done.stderr)
            told = f"no wheel for {here()}" if lacks else f"cannot be installed for {here()}: {last(done.stderr)}"
            raise NoRelease(f"{self.package} {version}: {told}")

    @cached_property
    def uv(self) -> list[str]:
        """The command of uv, which installs faster; nothing where it is not there, or pip is told of a folder of
        wheels."""
        command = [sys.executable, "-m", "uv"]
        if os.environ.get("PIP_NO_INDEX") or subprocess.run([*command, "--version"], capture_output=True).returncode:
            return []
        return command


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise UsageError(f"expected a release such as 1.20 or 1.20.1, got {text!r}") from None


def last(text: str) -> str:
    """The last line that says something."""
    lines = [x.strip() for x in text.splitlines() if x.strip() and not x.startswith("[notice]")]
    return lines[-1][:200] if lines else "no reason given"


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)


def _output(command: list[str]) -> str:
    done = _run(command)
    return done.stdout + done.stderr


def _checked(command: list[str], what: str) -> None:
    done = _run(command)
    if done.returncode:
        raise UsageError(f"{what}: cannot make an environment: {last(done.stderr or done.stdout)}")
