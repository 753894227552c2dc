"""A backend in another Python: the worker is one folder that needs NumPy and the runtime, nothing of ours."""

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
import venv
from pathlib import Path

import ml_dtypes as ml
import numpy as np
import pytest

import harness.backends
from harness.backends import registry
from harness.core.outcome import Status
from harness.workers import process, worker
from harness.workers.spec import Place
from suites.meta.test_runtimes import ask, onnx_model

HERE = Path(harness.backends.__file__).parent
OTHER = os.environ.get("OPCONFORM_OTHER_PYTHON")  # an interpreter with NumPy and onnxruntime or tflite-runtime

RUNTIMES = ("onnxruntime.py", "onnx_reference.py", "litert.py", "coreml.py", "openvino.py", "onnx_tools.py")
ALONE = [*sorted(process.WORKER.glob("*.py")), *(HERE / name for name in RUNTIMES)]


@pytest.mark.parametrize("path", ALONE, ids=lambda p: p.name)
def test_worker_files_import_nothing_of_ours_and_parse_in_python_3_8(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 or (node.level == 1 and path.parent == process.WORKER), f"{path}:{node.lineno}"
            names = [node.module or "."]
        for n in names:
            assert n.split(".")[0] not in ("harness", "native_ref", "suites", "reports"), f"{path}:{node.lineno}"


PATHS = """
import sys

class Paths:
    formats = ("onnx",)

    def version(self):
        try:
            import frames
        except ImportError:
            return sys.modules["opconform_worker"].__name__
        return "a module of the worker: " + frames.__file__

    def load(self, model, format): ...
    def run(self, handle, inputs): ...
"""


@pytest.mark.parametrize("start", ["worker", "worker/__main__.py"])
def test_the_worker_alone_starts_by_its_path_and_hides_no_module(start, tmp_path):
    """From a copy of its folder, which holds modules called frames and backend, as a runtime may, too."""
    shutil.copytree(process.WORKER, tmp_path / "worker")
    (tmp_path / "paths.py").write_text(PATHS)
    ours, theirs = socket.socketpair()
    page = worker.memory_file()
    os.ftruncate(page, 4096)
    with ours, theirs, (tmp_path / "log").open("w+b") as log:
        config = {"file": str(tmp_path / "paths.py"), "class": "Paths", "log": log.fileno(), "page": page}
        command = [sys.executable, "-S", str(tmp_path / start), str(theirs.fileno()), json.dumps(config)]
        env = {**os.environ, "PYTHONPATH": str(Path(np.__file__).parents[1])}
        fds = (theirs.fileno(), page, log.fileno())
        with subprocess.Popen(command, pass_fds=fds, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL) as p:
            theirs.close()
            frame = worker.recv_frame(ours)
            ours.close()
            assert p.wait(30) == 0
        os.close(page)
        log.seek(0)
        assert frame is not None, log.read().decode()
    assert frame[0]["greeting"]["version"] == "opconform_worker", frame[0]


@pytest.mark.skipif(not OTHER, reason="set OPCONFORM_OTHER_PYTHON to an interpreter with a runtime")
def test_a_runtime_in_another_python():
    assert OTHER is not None
    version = subprocess.run(
        [OTHER, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    found = 0
    for name in ("onnxruntime", "litert-ref"):
        with registry.create(name, Place(OTHER)) as h:
            if h.missing():
                continue
            found += 1
            assert h.info.python == version
            if name == "onnxruntime":
                x = np.array([-1, 0, 2.5], np.float32)
                assert ask(h, onnx_model("Relu", [1], [(3,)], 1, opset=13), x).outputs[0].tolist() == [0, 0, 2.5]
                out = ask(h, onnx_model("Cast", [1], [(3,)], 16, opset=13, to=16), x)
                assert out.status is not Status.VALUE or out.outputs[0].dtype == ml.bfloat16
    assert found, "neither onnxruntime nor a TFLite runtime is there"


def test_an_interpreter_without_numpy_is_reported(tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'numpy'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    with registry.create("onnxruntime", Place(str(fake))) as h:
        why = h.missing()
    assert "no sign of life" in why
    assert "No module named 'numpy'" in why


@pytest.fixture
def onnx_alone(tmp_path, monkeypatch):
    """A Python that has onnx and what it needs, and nothing of ours."""
    onnx = pytest.importorskip("onnx")
    venv.create(tmp_path / "other", symlinks=True)
    python = tmp_path / "other/bin/python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    installed = Path(onnx.__file__).parents[1]
    for name in ("onnx", "numpy", "numpy.libs", "ml_dtypes", "google", "typing_extensions.py"):
        if (installed / name).exists():
            (site / name).symlink_to(installed / name)
    monkeypatch.chdir(tmp_path)  # a worker's path holds the folder that it was started in
    assert subprocess.run([python, "-c", "import harness"], capture_output=True).returncode
    return str(python)


@pytest.mark.parametrize(
    "name", ["onnx-shape-inference", "onnx-data-propagation", "onnx-converter-up", "onnx-converter-down"]
)
def test_the_tools_of_onnx_need_nothing_of_ours(name, onnx_alone):
    x = np.array([-1, 0, 2.5], np.float32)
    with registry.create(name, Place(onnx_alone)) as h:
        out = ask(h, onnx_model("Relu", [1], [(3,)], 1, opset=17), x)
        assert out.status is Status.VALUE, out
        if "converter" in name:
            assert out.outputs[0].tolist() == [0, 0, 2.5]
