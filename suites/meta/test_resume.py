"""A run that is killed and resumed, or cut into shards, or run under another hash seed or instruction set: the records
tell the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reports import summarise

RECORDS = "out/records.jsonl"
# Random ops, whose draws are judged over the whole run; listed differences, refusals and gaps.
OPS = ("ReduceMax", "Sum", "RandomUniform", "Bernoulli", "Range")


def run(folder: Path, *options: str, env: dict[str, str] | None = None, wait: bool = True) -> subprocess.Popen[bytes]:
    """Run or resume in ``folder/out``."""
    command = [
        sys.executable,
        "-m",
        "harness.cli",
        "run",
        "--dialect",
        "onnx",
        "--backend",
        "onnx-reference",
        "--cases",
        "600",
        "--out",
        "out",
        *options,
    ]
    for op in OPS:
        command += ["--op", op]
    p = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if wait:
        _, err = p.communicate(timeout=300)
        assert p.returncode in (0, 1), err.decode()
    return p


def batches(path: Path) -> int:
    return path.read_bytes().count(b'"t":"batch"') if path.exists() else 0


def killed(folder: Path, more: int) -> bool:
    """Start or resume the run and kill it once that many more batches are in its records; False where it ended
    first."""
    path = folder / RECORDS
    goal = batches(path) + more
    p = run(folder, wait=False)
    while p.poll() is None and batches(path) < goal:
        time.sleep(0.05)
    over = p.poll() is not None
    if not over:
        os.killpg(p.pid, signal.SIGKILL)
    p.communicate()
    return not over


def shown(path: Path) -> dict[str, Any]:
    """What a report shows of a run, but for times, and for what the machine had time to make smaller."""
    page = summarise(path).to_json()
    for name in ("runs", "elapsed", "notes", "clusters"):
        del page[name]
    page["cases"] = sorted((c["key"], c["id"], c["backend"], c["verdict"], c["known"] or "") for c in page["cases"])
    return page


def recorded(*paths: Path) -> dict[tuple[Any, ...], Any]:
    """What the records say of each unit: verdicts, what explains them, what they cover and teach."""
    out = {}
    for path in paths:
        for line in path.read_text().splitlines():
            r = json.loads(line)
            if r["t"] == "batch":
                told = {k: r.get(k) for k in ("tally", "explained", "cover", "learnt")}
                # A pair of features is told with the first unit that has it, whichever of a stage that is.
                (told["cover"] or {}).pop("sets", None)
                out[r["key"], str(r["opset"]), r["first"]] = told
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    run(out, env={"PYTHONHASHSEED": "1"})
    return out / RECORDS


def test_a_report_of_a_run_killed_several_times_equals_that_of_the_whole_run(whole: Path, tmp_path: Path) -> None:
    kills = 0
    for more in (1, 2, 1, 30, 2):
        kills += killed(tmp_path, more)
    assert kills >= 3, "the run was over before it could be killed"
    unfinished = summarise(tmp_path / RECORDS)
    assert unfinished.interrupted, "what was judged is covered, and it is said to be a part"
    assert unfinished.coverage, "what was judged is covered, and it is said to be a part"
    run(tmp_path)
    want, got = shown(whole), shown(tmp_path / RECORDS)
    assert sum(c["valid"] for c in want["coverage"].values()) > 500
    assert any(e["hits"] for e in want["known"].values())
    for name in want:
        assert got[name] == want[name], name


def test_a_kill_that_loses_the_last_second_of_records_loses_nothing_in_the_end(whole: Path, tmp_path: Path) -> None:
    """The records cut off in the middle of a line, and in the middle of the saved instances."""
    lines = whole.read_bytes().splitlines(keepends=True)
    path = tmp_path / RECORDS
    path.parent.mkdir()
    path.write_bytes(b"".join(lines[:4]) + lines[4][:30])
    run(tmp_path)
    want, got = shown(whole), shown(path)
    for name in want:
        assert got[name] == want[name], name


def test_hash_seed_and_instruction_set_change_no_record(whole: Path, tmp_path: Path) -> None:
    run(tmp_path, env={"PYTHONHASHSEED": "2", "OPCONFORM_ISA": "base"})
    assert recorded(tmp_path / RECORDS) == recorded(whole)


def test_shards_merged_equal_the_whole_run(whole: Path, tmp_path: Path) -> None:
    parts = []
    for i in (1, 2):
        (tmp_path / str(i)).mkdir()
        run(tmp_path / str(i), "--shard", f"{i}/2")
        parts.append(tmp_path / str(i) / RECORDS)
    assert all(batches(p) for p in parts)
    assert recorded(*parts) == recorded(whole)
    assert summarise(parts).to_json()["coverage"] == summarise(whole).to_json()["coverage"]
