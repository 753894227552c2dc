"""``opconform known``: every known difference can be run by hand, and crashes stand apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.backends import registry
from harness.run import dossier
from harness.run.known import load_ledger


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dossier.Row]]:
    out = tmp_path_factory.mktemp("known")
    with registry.create("onnxruntime") as h:
        why = h.missing()
        if why is not None:
            pytest.skip(why)
        return out, dossier.collect(load_ledger(), [h], out, ["Mod", "Resize"])


def test_a_script_shows_the_difference(written: tuple[Path, list[dossier.Row]]) -> None:
    _, rows = written
    row = next(r for r in rows if r.verdict == "mismatch" and r.folder is not None)
    assert row.folder is not None
    done = subprocess.run([sys.executable, str(row.folder / "repro.py")], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "different" in done.stdout and "expected" in done.stdout


def test_a_crash_is_listed_apart_and_crashes(written: tuple[Path, list[dossier.Row]]) -> None:
    out, rows = written
    (row,) = [r for r in rows if r.crash]
    text = (out / dossier.INDEX).read_text()
    head, _, rest = text.partition("## Crashes and hangs")
    apart, _, others = rest.partition("\n## ")
    assert row.entry.id in apart and row.entry.id not in others and "stand" in head
    assert row.folder is not None
    done = subprocess.run([sys.executable, str(row.folder / "repro.py")], capture_output=True, text=True)
    assert done.returncode < 0, "the process was to die of a signal"


def test_what_no_longer_occurs_is_said(written: tuple[Path, list[dossier.Row]]) -> None:
    out, rows = written
    gone = dossier.Row(rows[0].entry, "onnxruntime", rows[0].key, "agree", None)
    assert f"* {gone.entry.id} " in dossier.index([*rows, gone], out).partition("## Not seen")[2]


def test_nothing_to_write_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["known", "--backend", "onnxruntime", "--op", "NoSuchOp", "--out", str(tmp_path)]) == 2
    assert "no known difference" in capsys.readouterr().err
