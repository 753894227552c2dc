"""`opconform sensitivity`: planted faults on several processes, resumed, and told by dialect and backend."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness import cli
from harness.session import sensitivity_run

ARGS = [
    "sensitivity",
    "--op",
    "onnx/Relu",
    "--op",
    "tflite/ABS",
    "--backend",
    "onnxruntime",
    "--backend",
    "litert-ref",
    "--instances",
    "6",
    "--jobs",
    "2",
]


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["t"] for line in path.read_text().splitlines()]


def test_a_measurement_is_reported_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert cli.main([*ARGS, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "onnx: caught " in said
    assert "tflite: caught " in said
    path = out / "records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    whole = sorted(x for x in lines if '"t":"sensitivity"' in x)
    at = next(i for i, x in enumerate(lines) if '"t":"measured"' in x)
    path.write_text("".join(lines[: at + 1]) + lines[at + 1][:20])  # killed in the middle of a line
    assert cli.main([*ARGS, "--out", str(out)]) == 0
    again = [x for x in path.read_text().splitlines(keepends=True) if '"t":"sensitivity"' in x]
    assert sorted(again) == whole
    assert kinds(path).count("run") == 2
    assert capsys.readouterr().out == said


def test_the_table_shows_shares_weak_faults_and_the_entries_that_hide_most() -> None:
    def record(fault: str, caught: int, behind: dict[str, list[str]]) -> dict[str, object]:
        return {"key": "toy/Add/1", "dtype": "f32", "fault": fault, "planted": 1, "caught": caught, "behind": behind}

    itself = {**record("other mode", 1, {"b 1": []}), "identified": {"b 1": ["narrow"]}}
    found = [
        record("wrong axis", 1, {"b 1": ["too-wide"]}),
        record("wrong axis", 1, {"b 1": []}),
        record("k-ulp error", 0, {}),
        record("k-ulp error", 1, {"b 1": ["too-wide", "other"]}),
        itself,
    ]
    assert sensitivity_run.table(found) == [
        "toy: caught 4 of 5 planted faults, 80.00 %",
        "  weakest: k-ulp error: 1 of 2, 50.00 %",
        "  b 1: the list hides 2 of 4, 50.00 %; the listed defect itself: 1",
        "hides 2: too-wide",
        "hides 1: other",
    ]


def test_each_verb_of_the_readme_is_there() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", readme, re.DOTALL))
    verbs = set(re.findall(r"^opconform ([a-z-]+)", blocks, re.MULTILINE))
    assert {"run", "campaign", "sensitivity", "replay"} <= verbs
    for verb in sorted(verbs):
        with pytest.raises(SystemExit) as done:
            cli.parser().parse_args([verb, "--help"])
        assert done.value.code == 0, verb
