"""Execution providers of ONNX Runtime: how they are asked for, what they declare, and one that runs."""

import os
import subprocess
import sys

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.backends.providers import table
from harness.cases.case import draw_case
from harness.cli import main
from harness.core.dtypes import BY_NAME
from harness.core.errors import UsageError
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.ledger.loader import load_ledger
from harness.tolerance.claimed import Accuracy
from harness.workers.claims import Claims, absolute, limits
from harness.workers.info import BackendInfo
from harness.workers.spec import BackendError, Place
from suites.meta.test_known import judged

F32 = BY_NAME["f32"]


def test_a_provider_is_a_backend_of_its_own_name():
    spec = backends.find("ep:ggml")
    assert spec.name == "onnxruntime-ggml"
    assert spec == backends.find("onnxruntime-ggml")
    assert spec.kwargs["options"] == {"device": "cpu", "threads": "1", "weights": "f32"}
    given = backends.find("ep:ggml:device=gpu,threads=2")
    assert given.name == "ep:ggml:device=gpu,threads=2"
    assert given.kwargs["options"] == {"device": "gpu", "threads": "2", "weights": "f32"}


def test_a_library_makes_any_name_a_provider():
    spec = backends.find("ep:Mine:library=/opt/libmine.so,level=2")
    assert (spec.kwargs["library"], spec.kwargs["options"]) == ("/opt/libmine.so", {"level": "2"})


@pytest.mark.parametrize("name", ["ep:", "ep:Nothing", "ep:ggml:device", "ep:ggml:=cpu"])
def test_what_names_no_provider_is_one_line(name):
    with pytest.raises(UsageError, match="expected"):
        backends.find(name)


def test_a_provider_that_is_not_here_states_what_brings_it():
    with backends.create("ep:QNNExecutionProvider") as handle, pytest.raises(BackendError, match="qnn"):
        handle.start()
    with backends.create("ep:CUDAExecutionProvider") as handle, pytest.raises(BackendError, match="onnxruntime-gpu"):
        handle.start()


def test_the_list_names_each_provider_and_its_package(capsys):
    assert main(["list", "providers"]) == 0
    told = capsys.readouterr().out
    for p in table.PROVIDERS:
        assert p.name in told
        assert p.package in told


@pytest.mark.parametrize("p", table.PROVIDERS, ids=lambda p: p.name)
def test_what_a_provider_declares_has_the_form_and_a_source(p):
    assert limits(p.declares.get("limits", {})) is None
    assert absolute(p.declares.get("absolute", {})) is None
    assert bool(p.declares) == bool(p.source)


def test_accuracy_grows_with_the_logarithm_of_the_result():
    exp = Accuracy(ulp=3.0, ulp_per_log=2.0)
    want = np.exp(np.array([0.0, 10.0]))
    assert exp.beside(want, F32) == pytest.approx([3 * 2.0**-23, 23 * 2.0 ** (14 - 23)])
    assert np.isfinite(exp.beside(np.array([0.0, np.inf, np.nan]), F32)).all()
    assert Accuracy(1e-3).beside(want, F32) == 1e-3
    assert Accuracy(1e-3).larger(exp) == Accuracy(1e-3, 3.0, 2.0)
    assert not Accuracy()


def test_finite_leaves_out_nan_and_infinity_given_or_expected():
    claims = Claims(finite=True)
    fine = [np.array([1.0, 2.0], np.float32), np.array(["a"], object), np.array([3])]
    assert claims.beyond_values(fine, fine) == ""
    for bad in (np.nan, np.inf):
        assert claims.beyond_values([np.float32([bad])], []) == "a value that is not finite"
        assert claims.beyond_values([], [np.float32([bad]).astype(BY_NAME["bf16"].np)]) == "a value that is not finite"


@pytest.mark.skipif("OPCONFORM_WEBGPU_PYTHON" not in os.environ, reason="needs onnxruntime-webgpu (.ci/run has it)")
def test_webgpu_computes_without_cpu_fallback(monkeypatch):
    monkeypatch.setenv("VK_ICD_FILENAMES", os.environ["OPCONFORM_WEBGPU_ICD"])
    place = Place(python=os.environ["OPCONFORM_WEBGPU_PYTHON"])
    with backends.create("ep:WebGpuExecutionProvider", place) as handle:
        v = registry.dialect("onnx").versions["onnx/Mul/14"]
        drawn = [draw_case(v, 14, 0, i, 1, invalid=False) for i in range(200)]
        f32 = [c for c in drawn if c.dtype_name == "f32"][:12]
        f64 = [c for c in drawn if c.dtype_name == "f64"][:3]
        judged = list(Engine([handle]).judge([*f32, *f64]))
        assert handle.info.more["provider"] == "WebGpuExecutionProvider"
    assert {j.verdict for j in judged if j.case.dtype_name == "f64"} == {Verdict.UNSUPPORTED}
    assert Verdict.AGREE in {j.verdict for j in judged if j.case.dtype_name == "f32"}


ENTRY = """
[[known]]
id = "relu"
backend = {backend}
op = "onnx/Relu"
verdict = ["mismatch", "wrongly_rejected", "wrongly_accepted"]
reason = "made up"
clause = "none"
"""
PROVIDED = BackendInfo("onnxruntime-ggml", "1.32.0", front_end="onnxruntime")


@pytest.mark.parametrize(
    ("backend", "verdict", "phase", "known"),
    [
        ("onnxruntime*", Verdict.MISMATCH, "", False),  # its kernels are its own
        ("*", Verdict.MISMATCH, "", True),
        ("onnxruntime*", Verdict.WRONGLY_REJECTED, "run", False),
        ("onnxruntime*", Verdict.WRONGLY_REJECTED, "load", True),  # ONNX Runtime loads the model
        ("onnxruntime", Verdict.WRONGLY_REJECTED, "load", True),
        ("onnxruntime*", Verdict.WRONGLY_ACCEPTED, "", True),
        ("onnxruntime-webgpu", Verdict.WRONGLY_REJECTED, "load", False),  # another provider's list
        ("onnxruntime-ggml", Verdict.MISMATCH, "", True),
        ("onnxruntime-ggml", Verdict.WRONGLY_REJECTED, "run", True),
    ],
)
def test_a_provider_inherits_what_is_listed_of_loading_alone(tmp_path, backend, verdict, phase, known):
    result = judged(verdict=verdict, kind="value")
    result.outcome = Outcome(Status.VALUE if verdict is not Verdict.WRONGLY_REJECTED else Status.REJECTED, phase=phase)
    (tmp_path / "x.toml").write_text(ENTRY.format(backend=f'"{backend}"'))
    listed = load_ledger([tmp_path])
    assert (listed.explain(result, PROVIDED) is not None) == known
    fresh = load_ledger([tmp_path])
    assert bool(fresh.unused(["onnx/Relu/14"], [PROVIDED])) == (backend in ("onnxruntime-ggml", "*"))


def test_a_provider_with_options_has_the_list_of_that_provider(tmp_path):
    plain, given = (backends.find(f"ep:ggml{o}").kwargs for o in ("", ":device=gpu"))
    assert (plain["known_as"], given["known_as"]) == ([], ["onnxruntime-ggml"])
    (tmp_path / "x.toml").write_text(ENTRY.format(backend='"onnxruntime-ggml"'))
    info = BackendInfo("ep:ggml:device=gpu", "1.32.0", known_as=("onnxruntime-ggml",), front_end="onnxruntime")
    assert load_ledger([tmp_path]).explain(judged(kind="value"), info) is not None


def test_pytest_takes_a_provider(pytestconfig):
    """Under pytest, too, ``--provider X`` is ``--backend ep:X``."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "suites",
        "-m",
        "opset_onnx17 and conv",
    ]
    done = subprocess.run(
        [*command, "--provider", "Nothing"], cwd=pytestconfig.rootpath, capture_output=True, text=True
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "provider 'Nothing'" in done.stderr
    assert "library=" in done.stderr
