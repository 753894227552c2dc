"""What a backend is not asked any more has no verdict, and is counted in records and report."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.cases.case import draw_case
from harness.core.forms import wrong_record
from harness.engine import learned_support
from reports.compare import compare
from suites.meta import golden
from suites.meta.test_harness import run
from suites.meta.toy import toy

CASES = 240
WHY = "as before: none was taken with rank:x=2"


def told(records: list[dict[str, Any]], of: str) -> Counter[str]:
    out: Counter[str] = Counter()
    for r in records:
        if r["t"] == "batch":
            assert wrong_record(r) is None
            assert sum(n for *_, n in r["tally"]) + sum(n for *_, n in r.get("unasked", ())) == r["count"]
            for *_, which, n in r.get(of, ()):
                out[which] += n
    return out


def test_a_type_that_never_passes_runs_one_in_twenty_and_no_verdict_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, steered = run("Narrow", tmp_path / "a", ("Flip",), CASES)
    monkeypatch.setattr(learned_support, "SURE_OF_TRAIT", float("inf"))
    monkeypatch.setattr(learned_support, "GAP", CASES)
    _, every = run("Narrow", tmp_path / "b", ("Flip",), CASES)
    before, after = told(every, "tally"), told(steered, "tally")
    left_out = told(steered, "unasked")
    assert not told(every, "unasked")
    assert after["agree"] == before["agree"], "what passes is asked"
    assert before["unsupported"] == after["unsupported"] + left_out.total()
    assert set(left_out) == {WHY}
    v = toy.versions["toy/Flip/1"]
    late = [c.inst for i in range(16, CASES) if (c := draw_case(v, 1, 0, i)).inst.rule is None]
    late = [inst for inst in late if len(inst.args["x"].shape) == 2]
    assert 0.85 < left_out.total() / len(late) < 1, "one in twenty is asked"


def test_the_report_shows_what_did_not_run(tmp_path: Path) -> None:
    path = golden.one_unit(tmp_path / "r.jsonl", [["f32", "agree", 7]], unasked=[["f32", WHY, 5], ["f16", "other", 4]])
    done = reports.render(path, tmp_path / "out")
    assert "7 judged outcomes (9 unasked not counted)" in done.markdown.read_text()
    data = json.loads(done.json.read_text())
    assert data["not_asked"] == 9
    ((_, types),) = data["unasked"]["onnx/Relu/14"].items()
    assert types == {"f32": {WHY: 5}, "f16": {"other": 4}}
    assert done.summary.judged == 7


def test_a_unit_that_did_not_run_is_reported(tmp_path: Path) -> None:
    done = reports.render(golden.one_unit(tmp_path / "r.jsonl", [], unasked=[["f32", WHY, 16]]), tmp_path / "out")
    assert done.summary.nothing_judged.startswith("nothing was judged: 16 unasked")


def test_a_type_that_is_no_longer_run_is_a_lack_against_the_baseline(tmp_path: Path) -> None:
    old = golden.one_unit(tmp_path / "old.jsonl", [["f32", "agree", 16]], unasked=[])
    new = golden.one_unit(tmp_path / "new.jsonl", [["f32", "unsupported", 3]], unasked=[["f32", WHY, 13]])
    before, after = (reports.render(p, tmp_path / p.stem).summary for p in (old, new))
    assert [e["key"] for e in compare(after, before)["dropped"]] == ["onnx/Relu/14"]
