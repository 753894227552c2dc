"""``opconform known``: every known difference can be run by hand, and crashes stand apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.evidence import known_report
from harness.ledger.loader import load_ledger
from suites.meta.runtimes import running


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[known_report.KnownReportRow]]:
    out = tmp_path_factory.mktemp("known")
    with running("onnxruntime") as h:
        return out, known_report.collect(load_ledger(), [h], out, ["Div", "Resize"])


def test_a_script_shows_the_difference(written: tuple[Path, list[known_report.KnownReportRow]]) -> None:
    _, rows = written
    row = next(r for r in rows if r.verdict == "mismatch" and r.folder is not None)
    assert row.folder is not None
    done = subprocess.run([sys.executable, str(row.folder / "repro.py")], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "different" in done.stdout
    assert "expected" in done.stdout


def test_a_crash_is_listed_apart_and_crashes(written: tuple[Path, list[known_report.KnownReportRow]]) -> None:
    out, rows = written
    row, *more = [r for r in rows if r.crash]  # older releases have more of them
    text = (out / known_report.INDEX).read_text()
    head, _, rest = text.partition("## Crashes and hangs")
    isolate_dtypes, _, others = rest.partition("\n## ")
    assert row.entry.id in isolate_dtypes
    assert row.entry.id not in others
    assert "stand" in head
    assert all(r.entry.id in isolate_dtypes and r.entry.id not in others for r in more)
    assert row.folder is not None
    done = subprocess.run([sys.executable, str(row.folder / "repro.py")], capture_output=True, text=True)
    assert done.returncode < 0, "the process was to die of a signal"


# One of each kind that a script must see: next to its bound, signs of zeros, empty optionals, types that NumPy lacks,
# memory that was never written, models that are refused or accepted.
TELLING = [
    ("onnxruntime", "ort-acos-accuracy"),
    ("onnxruntime", "ort-saturate-elsewhere"),
    ("onnx-reference", "oref-optional-list"),
    ("litert-xnnpack", "xnnpack-neg-zero"),
    ("litert-opt", "litert-hybrid-sparse-without-blocks"),
    ("litert-opt", "litert-opt-tanh-accuracy"),
]


def every(backend: str, ids: set[str] | None, out: Path) -> list[tuple[str, int, str]]:
    """Known differences of a backend whose script does not show them: id, exit status, what it said last."""
    ledger = load_ledger()
    if ids is not None:
        ledger.entries = [e for e in ledger.entries if e.id in ids]
    with running(backend) as h:
        rows = known_report.collect(ledger, [h], out)
    stand = [r for r in rows if r.folder is not None]
    assert stand
    assert ids is None or {r.entry.id for r in stand} == ids
    wrong = []
    for r in stand:
        script = [sys.executable, str(r.folder / "repro.py")]
        done = subprocess.run(script, capture_output=True, text=True, timeout=60)
        clean = done.returncode == 1 and "Traceback" not in done.stderr
        clean &= done.stdout.startswith("refused") == (r.verdict == "wrongly_rejected")
        if not (done.returncode < 0 if r.verdict == "crashed" else clean):
            wrong.append((r.entry.id, done.returncode, (done.stderr or done.stdout)[-200:]))
    return wrong


@pytest.mark.parametrize("backend", sorted({b for b, _ in TELLING}))
def test_scripts_show_what_is_hard_to_show(backend: str, tmp_path: Path) -> None:
    assert not every(backend, {i for b, i in TELLING if b == backend}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["onnxruntime", "onnx-reference", "litert-ref", "litert-opt", "litert-xnnpack"])
def test_every_script_shows_its_difference(backend: str, tmp_path: Path) -> None:
    assert not every(backend, None, tmp_path)


def test_what_no_longer_occurs_is_stated(written: tuple[Path, list[known_report.KnownReportRow]]) -> None:
    out, rows = written
    gone = known_report.KnownReportRow(rows[0].entry, "onnxruntime", rows[0].key, "agree", None)
    assert f"* {gone.entry.id} " in known_report.index([*rows, gone], out).partition("## Not seen")[2]


def test_nothing_to_write_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["known", "--backend", "onnxruntime", "--op", "NoSuchOp", "--out", str(tmp_path)]) == 2
    assert "no known difference" in capsys.readouterr().err
