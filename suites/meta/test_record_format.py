"""Records of format 1 are read in the words of format 2, and a report of them says the same."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.backends import registry as backends
from harness.cases.selection import units
from harness.core import forms
from harness.core.errors import FormatError
from harness.core.record_format import FORMAT, Upgrade
from harness.engine.case_record import record
from harness.engine.engine import Engine
from harness.engine.run_records import end
from harness.mutation.sensitivity import measure
from harness.session import record_writer
from harness.session.session import Plan, header, identity
from suites.meta import golden
from suites.meta.toy import toy

OLD_VERDICTS = {"flaky": "unsteady", "uninformative": "mistrusted"}
OLD_FIELDS = {"neighbours": "company", "prior_models": "before"}


def to_format_1(record: dict[str, Any]) -> dict[str, Any]:
    """The record as a run wrote it before November 2026."""
    out = dict(record)
    if out["t"] == "run":
        out["format"] = 1
    elif out["t"] == "batch":
        out["tally"] = [[b, d, OLD_VERDICTS.get(v, v), n] for b, d, v, n in out["tally"]]
    elif out["t"] == "case":
        out = {OLD_FIELDS.get(k, k): v for k, v in out.items()}
        out["verdict"] = OLD_VERDICTS.get(out["verdict"], out["verdict"])
        out["votes"] = {k: OLD_VERDICTS.get(v, v) for k, v in (out.get("votes") or {}).items()}
    return out


def test_a_report_of_format_1_equals_that_of_format_2(tmp_path: Path) -> None:
    records = golden.records(5)
    old = [to_format_1(r) for r in records]
    assert old != records
    assert any("mistrusted" in json.dumps(r) for r in old)
    golden.write(tmp_path / "new" / "records.jsonl", records)
    golden.write(tmp_path / "old" / "records.jsonl", old)
    new, was = (reports.summarise(str(tmp_path / n)) for n in ("new", "old"))
    assert was.judged == new.judged
    assert was.totals == new.totals
    assert was.cube == new.cube
    assert was.coverage == new.coverage
    assert was.cases == new.cases


def test_old_names_of_backends_and_fields_are_read() -> None:
    up = Upgrade()
    head = up(
        {
            "t": "run",
            "format": 1,
            "backends": {"litert-crossed": {"info": {"asks": "tflite"}}},
            "asked": ["litert-crossed"],
        }
    )
    assert head["format"] == FORMAT
    assert head["asked"] == ["litert-cross-dialect"]
    assert head["backends"] == {"litert-cross-dialect": {"info": {"target_dialect": "tflite"}}}
    case = up({"t": "case", "backend": "litert-crossed", "verdict": "unsteady", "company": ["a"], "before": [["b"]]})
    assert case["backend"] == "litert-cross-dialect"
    assert case["verdict"] == "flaky"
    assert case["neighbours"] == ["a"]
    assert case["prior_models"] == [["b"]]


def test_a_file_may_hold_runs_of_both_formats() -> None:
    up = Upgrade()
    up({"t": "run", "format": 1, "backends": {}})
    assert up({"t": "batch", "tally": [["b", "f32", "mistrusted", 1]]})["tally"] == [["b", "f32", "uninformative", 1]]
    up({"t": "run", "format": FORMAT, "backends": {}})
    row = {"t": "batch", "tally": [["b", "f32", "flaky", 1]]}
    assert up(row) is row


@pytest.mark.parametrize("got", [0, 3, None, "2", True])
def test_another_format_is_refused_in_one_line(tmp_path: Path, got: Any) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"t": "run", "format": got, "backends": {}}) + "\n")
    for reader in (lambda: list(record_writer.read(path)), lambda: reports.summarise(str(path))):
        with pytest.raises(FormatError, match=r"record format .* is (older|newer) than 2"):
            reader()


def test_every_kind_and_field_of_golden_records_is_one_that_a_run_writes(tmp_path: Path) -> None:
    """The golden records come from the builders of the engine; a real run writes the same kinds and fields."""
    with backends.create("suites.meta.toy_backends:OffByOne") as handle:
        out: list[dict[str, Any]] = [{**header("opconform run", [handle], ["onnx"]), **identity(Plan())}]
        engine = Engine([handle], sink=out.append, on_failure=lambda result, votes: record(result, votes))
        engine.run(units(list(toy.versions.values()), 64))
        out += measure(list(toy.versions.values()), instances=8).records()
        out.append(end(False, elapsed=1.0, cases=1, unused=[], beside={}))
    written: dict[str, set[str]] = defaultdict(set)
    for r in out:
        written[r["t"]] |= set(r)
    told = {
        "batch": {"listed", "explained"},
        "run": {"missing"},
        "sensitivity": {"behind"},
    }  # where something is listed
    for r in golden.records(2):
        assert set(r) <= written[r["t"]] | told.get(r["t"], set()), r["t"]
    assert set(written) == set(forms.RECORDS)


def test_coverage_records_of_the_oldest_files_are_read(tmp_path: Path) -> None:
    key = "onnx/Relu/14"
    facts = {"dtype": {"f32": 3}, "choices": {"x: rank 1": 2}, "valid": 2, "counted": 2, "mistrusted": 1}
    rows = [{"t": "run", "format": 1, "backends": {}}, {"t": "coverage", "key": key, **facts}, {"t": "end"}]
    s = reports.summarise(golden.write(tmp_path / "r.jsonl", rows))
    assert s.coverage[key]["instances"] == 3
    assert s.coverage[key]["choices"] == {"x: rank 1": 2}
    assert not s.cube
