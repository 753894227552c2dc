"""What pytest is asked for and cannot be done is told, and never passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reports
from harness.session.record_writer import RecordWriter

ROOT = Path(__file__).parents[2]
ASKED = ("suites/onnx", "-m", "onnx", "-k", "Relu/14", "--backend", "onnxruntime")


def run(*args: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ASKED, *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--cases", "0"], "argument --cases: expected a positive number, got 0"),
        (["--draws", "-1"], "argument --draws: expected a positive number, got -1"),
        (["--records", "/dev"], "--records: expected a file, got /dev"),
        (["--evidence", "/dev/null"], "--evidence: cannot write below /dev/null"),
        (
            ["--backend", "nobody"],
            "ERROR: --backend: unknown backend 'nobody', expected module:Class, exec:COMMAND, ep:PROVIDER or one of ",
        ),
        (["--backend", "suites.meta.bad_backends:NotABackend"], "NotABackend has no 'version'"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_a_bad_option_is_a_usage_error(args: list[str], told: str) -> None:
    code, text = run(*args)
    assert code == 4, text
    assert told in text, text
    assert "Traceback" not in text, text


def test_records_are_such_as_a_report_reads(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    code, text = run("--cases", "4", "-k", "Relu and 14 and not Leaky", "--records", str(path))
    s = reports.summarise(path)
    assert code == 0, text
    assert sum(s.totals.values()) == 12, text
    assert s.judged, text
    assert s.clean, text
    assert not s.interrupted, text
    assert not s.notes, text
    assert list(s.backends) == ["onnxruntime"]
    assert s.backends["onnxruntime"]["version"]
    code, text = run("--cases", "4", "-n", "2", "--records", str(tmp_path / "apart/records.jsonl"))
    s = reports.summarise(tmp_path / "apart")
    assert code == 0, text
    assert sum(s.totals.values()) == 4, text
    assert not s.interrupted, text
    assert not s.notes, text
    with RecordWriter(path):
        code, text = run("--cases", "4", "--records", str(path))
    assert code == 4
    assert f"--records: another run is writing {path}" in text
    path.write_text("no record\n")
    code, text = run("--cases", "4", "--records", str(path))
    assert code == 4
    assert f"--records: {path}:1: not a record" in text
    assert path.read_text() == "no record\n"


def test_a_backend_that_is_requested_and_not_here_fails() -> None:
    code, text = run("--backend-python", "/no/python", "--cases", "1")
    assert code == 1, text
    assert "onnxruntime: cannot start /no/python: No such file or directory" in text, text
