"""A runtime in any language: verdicts through the runner protocol, what a faulty runner gets, what it is told."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends import registry as backends
from harness.backends.runner.messages import Payload, value
from harness.cases.case import draw_case
from harness.cli import main
from harness.core.errors import UsageError
from harness.core.outcome import Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.session import check_runner
from harness.session.check_runner import SCHEMA, check, hold
from harness.workers.pool import BackendHandle
from harness.workers.spec import BackendError
from harness.workers.worker import ProtocolError
from suites.meta import browser
from suites.meta.toy import toy

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = ROOT / "examples" / "runners"
TOY = f"{sys.executable} {Path(__file__).with_name('runner.py')}"
REFERENCE = f"{sys.executable} {RUNNERS / 'onnx_reference.py'}"
FAULTS = {
    "": (Verdict.AGREE, ""),
    "noise": (Verdict.AGREE, ""),
    "nameless": (Verdict.AGREE, ""),
    "crash": (Verdict.CRASHED, "killed by SIGSEGV"),
    "exit": (Verdict.CRASHED, "exited with code 3"),
    "hang": (Verdict.TIMED_OUT, "no answer within"),
    "json": (Verdict.UNKNOWN, "expected JSON"),
    "bytes": (Verdict.UNKNOWN, "bytes: expected"),
}


def cases(n):
    v = toy.versions["toy/Add/1"]
    drawn = (draw_case(v, v.opsets[-1], 0, i, 1, invalid=False) for i in range(100))
    return [c for c in drawn if c.dtype_name == "f32" and c.expected and c.expected[0][0].value.size][:n]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_runner_gets_the_verdict_that_a_class_gets(fault):
    verdict, message = FAULTS[fault]
    with backends.create(f"exec:{TOY} {fault}", deadline=1.0 if fault == "hang" else 20.0) as handle:
        judged = list(Engine([handle]).judge(cases(1 if fault == "hang" else 3)))
        assert handle.name == "toy-runner" + (fault and f"-{fault}")
        assert handle.info.version == "2.0"
    assert judged
    for j in judged:
        assert j.verdict is verdict, j.outcome.message
        assert message in j.outcome.message


def test_the_resident_memory_of_a_runner_is_limited():
    spec = replace(backends.find(f"exec:{TOY} eat"), memory=400 << 20)
    with BackendHandle(spec) as handle:
        (judged,) = Engine([handle]).judge(cases(1))
    assert judged.verdict is Verdict.CRASHED
    assert "the limit is 400 MiB" in judged.outcome.message


def test_a_runner_gives_the_same_verdicts_as_the_class_behind_it():
    v = toy.versions["toy/Max/1"]
    drawn = [draw_case(v, v.opsets[-1], 7, i, 1) for i in range(40)]
    found = []
    for name in ("suites.meta.toy_backends:Right", f"exec:{TOY}"):
        with backends.create(name) as handle:
            found.append([(j.case.inst.id, j.verdict) for j in Engine([handle]).judge(drawn)])
    assert found[0] == found[1]
    assert len(found[0]) == 40


@pytest.mark.parametrize("name", ["exec:", "exec:  ", "exec:a 'b"])
def test_a_command_that_a_shell_would_not_take_is_refused(name):
    with pytest.raises(UsageError, match="exec:"):
        backends.find(name)


def test_a_command_that_is_not_there_is_one_line(capsys):
    assert main(["run", "--dialect", "onnx", "--op", "Relu", "--backend", "exec:/no/such/runner"]) == 2
    assert "cannot start '/no/such/runner': No such file or directory" in capsys.readouterr().err


def test_what_hello_declares_is_checked():
    with backends.create(f"exec:{TOY} pack") as handle, pytest.raises(BackendError, match="pack: expected a positive"):
        handle.start()


WRONG = {
    "no object": (3, "expected an object"),
    "no type": ({"shape": [1]}, "dtype"),
    "type": ({"dtype": "float", "shape": [1], "offset": 0, "bytes": 4}, "dtype"),
    "extent": ({"dtype": "f32", "shape": [-1], "offset": 0, "bytes": 4}, "shape"),
    "bytes": ({"dtype": "f32", "shape": [2], "offset": 0, "bytes": 4}, "bytes: expected 8"),
    "offset": ({"dtype": "f32", "shape": [1], "offset": 2, "bytes": 4}, "offset"),
    "behind": ({"dtype": "f32", "shape": [1], "offset": -4, "bytes": 4}, "offset"),
    "strings": ({"dtype": "str", "shape": [2], "strings": ["a"]}, "expected 2 strings"),
    "sequence": ({"sequence": 3}, "sequence"),
    "map": ({"map": [[1]]}, "map"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_that_is_none_is_named(name):
    form, message = WRONG[name]
    with pytest.raises(ProtocolError, match=message):
        value(form, b"abcd", "output 0")


def test_values_survive_the_protocol():
    import ml_dtypes
    import numpy as np

    values = [
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.array([], np.int64),
        np.array(True),
        np.array(["a", "ä"], object),
        np.array([1, 2], ml_dtypes.bfloat16),
        [np.ones(2, np.float32), np.zeros((0, 2), np.int8)],
        {"k": np.float64([1.5])},
        None,
    ]
    out = Payload()
    forms = [out.put(v) for v in values]
    for form in json.loads(json.dumps(forms)):
        hold(form, "value")
    back = [value(json.loads(json.dumps(f)), b"".join(out.parts), "v") for f in forms]
    for v, b in zip(values, back):
        if isinstance(v, np.ndarray):
            assert v.dtype == b.dtype
            np.testing.assert_array_equal(v, b)
    assert [x.shape for x in back[5]] == [(2,), (0, 2)]
    assert back[6]["k"] == 1.5
    assert back[7] is None


def test_the_sample_in_python_passes_every_step():
    steps = list(check(REFERENCE))
    assert len(steps) > 7
    assert [s for s in steps if s.wrong] == []


@pytest.mark.parametrize(
    ("command", "step", "told"),
    [
        ("cat", "hello", "id 0"),
        ("false", "hello", "ended with code 1"),
        (f"{TOY} pack", "hello", "pack"),
        (TOY, "formats", "expected one of onnx"),
    ],
)
def test_check_runner_reports_what_is_wrong(command, step, told):
    wrong = [s for s in check(command) if s.wrong]
    assert [s.name for s in wrong] == [step]
    if command != "cat":
        assert told in wrong[0].wrong


@pytest.mark.parametrize(("claimed", "key", "opset"), [(None, "onnx/Relu/14", 14), ((7, 12), "onnx/Relu/6", 7)])
def test_check_runner_asks_at_an_opset_that_is_claimed(claimed, key, opset):
    v, at = check_runner._at("onnx", claimed)
    assert (v.key, at) == (key, opset)


def test_check_runner_reports_that_no_opset_fits():
    with pytest.raises(check_runner.Wrongly, match="opsets: expected some of onnx/Relu"):
        check_runner._at("onnx", (90, 99))


def test_check_runner_reports_it_on_the_command_line(capsys):
    assert main(["check-runner", "false"]) == 1
    assert "wrong  hello: the runner's process ended with code 1" in capsys.readouterr().out
    assert main(["check-runner", "/no/such/runner"]) == 2


def test_the_schema_is_one():
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text()))


def test_the_samples_are_short():
    every = (p for p in RUNNERS.rglob("*") if not {"node_modules", "target"} & set(p.parts))
    files = [p for p in every if p.suffix in (".mjs", ".cpp", ".rs", ".java", ".py")]
    assert len(files) >= 5
    assert [p.name for p in files if len(p.read_text().splitlines()) > 150] == []


@pytest.fixture(scope="session")
def opencv(tmp_path_factory):
    """The C++ sample, built."""
    if not Path("/usr/include/opencv4/opencv2/dnn.hpp").exists() or shutil.which("g++") is None:
        pytest.skip("needs g++, libopencv-dnn-dev and nlohmann-json3-dev")
    out = tmp_path_factory.mktemp("opencv") / "opencv_dnn"
    flags = ["-I/usr/include/opencv4", "-lopencv_dnn", "-lopencv_core"]
    source = RUNNERS / "opencv_dnn.cpp"
    subprocess.run(["g++", "-std=c++17", "-O1", "-Wall", "-Werror", source, "-o", out, *flags], check=True)
    return out


def test_the_sample_in_cpp_passes_every_step(opencv):
    assert [s for s in check(str(opencv)) if s.wrong] == []


def installed(package):
    if shutil.which("node") is None or not (RUNNERS / "node_modules" / package).is_dir():
        pytest.skip("needs node, and npm ci --ignore-scripts in examples/runners")


def _left_out(case):
    """LiteRT leaves these out (``litert-fused-tanh-left-out``); the list is for its Python package."""
    return case.inst.attrs.get("fused_activation_function") in {"TANH", "SIGN_BIT"}


@pytest.mark.parametrize(
    ("runtime", "package", "op"),
    [("ort", "onnxruntime-web", "onnx/Add/14"), ("litert", "@litertjs/core", "tflite/MUL/1")],
)
def test_the_sample_in_a_browser_computes(runtime, package, op):
    installed(package)
    if not browser.find():
        pytest.skip("needs Chromium, or OPCONFORM_CHROMIUM")
    with backends.create(f"exec:node {RUNNERS / 'browser.mjs'} {runtime} wasm", deadline=60.0) as handle:
        v = registry.dialect(op.split("/")[0]).versions[op]
        opset = max(o for o in v.opsets if o <= (handle.info.opset or o))
        drawn = (draw_case(v, opset, 0, i, 1, invalid=False) for i in range(100))
        judged = list(Engine([handle]).judge([c for c in drawn if c.dtype_name == "f32" and not _left_out(c)][:6]))
        assert "HeadlessChrome" in handle.info.more["engine"]
    verdicts = [j.verdict for j in judged]
    assert Verdict.AGREE in verdicts
    assert set(verdicts) <= {Verdict.AGREE, Verdict.UNINFORMATIVE}


def test_a_browser_that_cannot_be_had_is_one_line(tmp_path):
    installed("onnxruntime-web")
    (tmp_path / "node").symlink_to(shutil.which("node"))
    env = {"PATH": str(tmp_path)}
    run = [tmp_path / "node", RUNNERS / "browser.mjs", "ort", "wasm"]
    done = subprocess.run(run, env=env, input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("browser.mjs: expected Chromium")
    assert done.stderr.count("\n") == 1


def test_the_sample_in_javascript_passes_every_step():
    installed("onnxruntime-web")
    assert [s for s in check(f"node {RUNNERS / 'ort_web.mjs'}") if s.wrong] == []
