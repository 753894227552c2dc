"""The package ``opconform``: its names, its types as another project sees them, and one source of the version."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given, settings

import opconform
from harness.core.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [
    "Backend",
    "Conformance",
    "Instance",
    "NonConformance",
    "Tolerance",
    "__version__",
    "check",
    "conforms",
    "instances",
]


def test_public_names_are_those_documented() -> None:
    assert sorted(opconform.__all__) == dir(opconform) == sorted(PUBLIC)
    assert all(name in str(opconform.__doc__) for name in PUBLIC)
    assert all(getattr(opconform, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'judge'; public names: Backend, "):
        _ = opconform.judge


@settings(max_examples=5, database=None)
@given(opconform.instances("onnx", "Relu", opset=14))
def test_instances_draws_instances_of_the_op(drawn: opconform.Instance) -> None:
    assert isinstance(drawn, opconform.Instance)
    assert drawn.key == "onnx/Relu/14"


def test_instances_of_an_unknown_op_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no op 'NoSuchOp'"):
        opconform.instances("onnx", "NoSuchOp")


def test_import_loads_neither_hypothesis_nor_a_runtime() -> None:
    code = "import sys, opconform; print(*{m.split('.')[0] for m in sys.modules})"
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "harness" in got
    assert not {"hypothesis", "onnx", "onnxruntime", "coremltools", "pytest"} & set(got)


def test_subclass_without_load_cannot_be_created() -> None:
    class Half(opconform.Backend):
        name = "half"
        formats = ("onnx",)

        def version(self) -> str:
            return "1"

        def run(self, handle: object, inputs: dict[str, object]) -> dict[str, object]:
            return inputs

    with pytest.raises(TypeError, match="load"):
        Half()  # type: ignore[abstract]


CONSUMER = """
from opconform import Backend, Instance, Tolerance, __version__, instances

class Mine:
    name = "mine"
    formats = ("onnx",)
    def version(self) -> str:
        return "1"
    def load(self, model: bytes, format: str) -> bytes:
        return model
    def run(self, handle: bytes, inputs: dict[str, object]) -> dict[str, object]:
        return inputs

class Late(Mine):
    def version(self) -> int:  # type: ignore[override]
        return 1

right: Backend = Mine()
wrong: Backend = Late()
reveal_type(instances("onnx", "Relu"))
reveal_type(__version__)
reveal_type(Instance.dumps)
def tolerance(t: Tolerance) -> None:
    reveal_type(t)
"""


def test_another_project_sees_the_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "consumer.py"]
    got = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    errors = [line for line in got.splitlines() if ": error: " in line]
    assert len(errors) == 1, got
    assert 'expression has type "Late", variable has type "Backend"' in errors[0], got
    shown = re.findall(r'Revealed type is "(.*)"', got)
    assert len(shown) == 4, got
    assert not any("Any" in s for s in shown), got
    assert "SearchStrategy[harness.core.instance.Instance]" in shown[0], got
    assert "harness.tolerance." in shown[3], got


def test_version_is_stated_in_pyproject_alone() -> None:
    stated = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert stated
    assert opconform.__version__ == metadata.version("opconform") == stated[1]
    files = [p for room in ("harness", "suites", "reports", "opconform") for p in (ROOT / room).rglob("*.py")]
    literal = re.compile(rf"""["']{re.escape(stated[1])}\b""")
    assert len(files) > 100
    assert [str(p) for p in files if literal.search(p.read_text())] == []
