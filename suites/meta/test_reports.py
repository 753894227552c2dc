"""Records -> summary, clusters, comparison, JSON, Markdown, JUnit: on golden records with known defects."""

from __future__ import annotations

import base64
import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import reports
from harness import cli
from harness.core.errors import FormatError, UsageError
from harness.core.features import features
from harness.core.outcome import Verdict
from harness.engine.run_records import batch
from reports.html import assets
from suites.meta import golden

RUN = golden.records(seed=2)
BAD = {"mismatch", "wrongly_rejected", "wrongly_accepted", "crashed", "timed_out"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return golden.write(tmp_path / "run.jsonl", RUN)


def tallied(rows: list[dict[str, Any]]) -> Counter[str]:
    """Outcomes per verdict, counted the plain way."""
    return Counter(verdict for r in rows if r["t"] == "batch" for _, _, verdict, n in r["tally"] for _ in range(n))


def embedded(html: str) -> dict[str, Any]:
    """The data inside a page."""
    packed = re.search(r'id="data">([^<]*)<', html)
    assert packed
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_totals_are_those_of_the_tallies(run: Path) -> None:
    s = reports.summarise(run)
    want = tallied(RUN)
    assert s.totals == dict(want)
    assert s.bad == sum(n for v, n in want.items() if v in BAD)
    assert s.judged == sum(n for v, n in want.items() if Verdict(v).judged) > 0
    assert s.judged + sum(s.unjudged.values()) == sum(want.values())
    assert {c["verdict"] for c in s.cases} == {r["verdict"] for r in RUN if r["t"] == "case"}
    assert len(s.cases) == sum(r["t"] == "case" for r in RUN)
    assert not s.interrupted
    assert not s.notes


def test_golden_records_show_every_verdict() -> None:

    assert set(tallied(RUN)) == {v.value for v in Verdict}


def test_clusters_find_the_planted_predicates(run: Path) -> None:
    found = {(c["key"], c["backend"], c["verdict"]): c for c in reports.summarise(run).clusters}
    want = {
        ("onnx/Softmax/13", "onnxruntime", "mismatch"): "dtype=f16",
        ("onnx/MatMul/13", "onnxruntime", "crashed"): "A: empty axis",
        ("tflite/CONV_2D/1", "litert-ref", "wrongly_rejected"): "strides: all 3",
        ("tflite/FLOOR_DIV/1", "litert-xnnpack", "mismatch"): "A: data special",
        ("tflite/FLOOR_DIV/1", "litert-ref", "wrongly_accepted"): "breaks axis-in-range",
        ("mil/reduce_sum/ios15", "coremltools", "timed_out"): "data: empty axis",
    }
    assert {k: found[k]["predicate"] for k in want} == want
    two = found["onnx/Conv/11", "onnxruntime", "mismatch"]  # the defect needs two facts; one leads, the other is shared
    assert {two["predicate"], *two["common"]} >= {"group=2", "dilations: uneven"}


def test_cluster_counts_are_honest(run: Path) -> None:
    """Failures and passes with the predicate are what a plain count over all drawn instances says."""
    s = reports.summarise(run)
    c = next(c for c in s.clusters if c["key"] == "onnx/Softmax/13")
    rows = [r for r in RUN if r["t"] == "batch" and r["key"] == c["key"]]
    f16 = [
        (v, n) for r in rows for b, d, v, n in r["tally"] if b == "onnxruntime" and d == "f16" and v != "uninformative"
    ]
    assert c["failed"] == sum(n for v, n in f16 if v == "mismatch")
    covers = [r["cover"] for r in rows]
    broken = sum(sum(x.get("rules", {}).values()) for x in covers) / sum(sum(x["dtype"].values()) for x in covers)
    passed = sum(n for v, n in f16 if v != "mismatch") - broken * sum(n for _, n in f16)
    assert not c["exact"]
    assert c["passed"] == max(0, round(passed))


def test_without_coverage_no_predicate_is_claimed(tmp_path: Path) -> None:
    rows = [{k: v for k, v in r.items() if k != "cover"} for r in RUN]
    clusters = reports.summarise(golden.write(tmp_path / "r.jsonl", rows)).clusters
    assert clusters
    for c in clusters:
        told = c["predicate"].startswith(("dtype=", "opset=", "breaks "))  # in the tallies, or by construction
        assert told or not c["separates"], c["predicate"]


def test_failures_spread_evenly_name_no_predicate() -> None:
    """Every second instance fails, whatever it looks like: nothing may be blamed."""
    from reports.clusters import find_clusters

    cases: list[Any] = []
    cube: Counter[Any] = Counter()
    choices: Counter[Any] = Counter()
    for i in range(400):
        inst = {"attrs": {"axis": i % 3}, "args": {"x": {"dtype": "f32", "shape": [i % 5, 2]}}, "opset": 13}
        choices.update(features(inst))
        cube["onnx/A/1", 13, "b", "f32", "mismatch" if i // 7 % 2 else "agree"] += 1
        if i // 7 % 2:
            cases.append({"key": "onnx/A/1", "backend": "b", "verdict": "mismatch", "instance": inst})
    drawn = {"instances": 400, "valid": 400, "counted": 400}
    coverage = {"onnx/A/1": {"choices": dict(choices), **drawn}}
    clusters = find_clusters(cases, cube, coverage, ("mismatch",))
    assert [c["separates"] for c in clusters] == [False]
    assert clusters[0]["predicate"] == "no single fact"


def test_one_failure_names_no_predicate() -> None:
    """A single failure shares many facts with few instances by chance."""
    from reports.clusters import find_clusters

    cases: list[Any] = []
    cube: Counter[Any] = Counter()
    choices: Counter[Any] = Counter()
    for i in range(300):
        inst = {
            "attrs": {"axis": i % 6, "k": i % 11},
            "args": {"x": {"dtype": "f32", "shape": [i % 4]}},
            "opset": 13,
        }
        choices.update(features(inst))
        cube["onnx/A/1", 13, "b", "f32", "mismatch" if i == 77 else "agree"] += 1
        if i == 77:
            cases.append({"key": "onnx/A/1", "backend": "b", "verdict": "mismatch", "instance": inst, "kind": "nan"})
    drawn = {"instances": 300, "valid": 300, "counted": 300}
    clusters = find_clusters(cases, cube, {"onnx/A/1": {"choices": dict(choices), **drawn}}, ("mismatch",))
    assert [(c["predicate"], c["separates"], c["kind"]) for c in clusters] == [("no single fact", False, "nan")]


def test_failures_too_few_in_one_op_are_explained_together() -> None:
    """Two failures in each of ten ops, all with f16, name it only when looked at together."""
    from reports.clusters import find_clusters

    cases: list[Any] = []
    cube: Counter[Any] = Counter()
    coverage: dict[str, Any] = {}
    for op in range(10):
        key = f"onnx/Op{op}/1"
        choices: Counter[Any] = Counter()
        for i in range(40):
            dtype = "f16" if i in (3, 17) else "f32"
            inst = {
                "attrs": {"axis": i % 5},
                "args": {f"x{op}": {"dtype": dtype, "shape": [i % 4]}},
                "opset": 13,
            }
            choices.update(features(inst))
            cube[key, 13, "b", dtype, "mismatch" if dtype == "f16" else "agree"] += 1
            if dtype == "f16":
                cases.append({"key": key, "backend": "b", "verdict": "mismatch", "instance": inst, "kind": "value"})
        coverage[key] = {"choices": dict(choices), "instances": 40, "valid": 40, "counted": 40}
    alone = find_clusters(
        cases[:2], Counter({c: n for c, n in cube.items() if c[0] == "onnx/Op0/1"}), coverage, ("mismatch",)
    )
    together = find_clusters(cases, cube, coverage, ("mismatch",))
    assert {c["predicate"] for c in together} == {"dtype=f16"}
    assert [(c["failed"], c["passed"]) for c in together] == [(2, 0)] * 10
    assert {c["key"] for c in together} == set(coverage)
    assert sum(c["failed"] for c in alone) == 2


def test_broken_rules_are_distinguished() -> None:
    from reports.clusters import find_clusters

    cases = [
        {
            "key": "onnx/A/1",
            "backend": "b",
            "verdict": "wrongly_accepted",
            "rule": rule,
            "instance": {"rule": rule},
        }
        for rule in ["r1", "r1", "r2"]
    ]
    cube = Counter({("onnx/A/1", 13, "b", "f32", "wrongly_accepted"): 3, ("onnx/A/1", 13, "b", "f32", "agree"): 97})
    coverage = {
        "onnx/A/1": {
            "choices": {},
            "counted": 80,
            "instances": 100,
            "valid": 80,
            "rules": {"r1": 10, "r2": 10},
        }
    }
    found = {
        c["predicate"]: (c["failed"], c["passed"]) for c in find_clusters(cases, cube, coverage, ("wrongly_accepted",))
    }
    assert found == {"breaks r1": (2, 8), "breaks r2": (1, 9)}


def test_integers_beyond_doubles_stay_whole(tmp_path: Path) -> None:
    row = next(r for r in RUN if r["t"] == "case" and r["verdict"] == "mismatch")
    element = {"index": [0], "expected": 2**53 + 1, "actual": -(2**62) - 1, "why": "first"}
    row = row | {"diff": row["diff"] | {"elements": [element]}}
    html = reports.render(golden.write(tmp_path / "r.jsonl", [RUN[0], row]), tmp_path).html.read_text()
    shown = embedded(html)["cases"][0]["diff"]["elements"][0]
    assert (shown["expected"], shown["actual"]) == (str(2**53 + 1), str(-(2**62) - 1))


def test_two_defects_of_one_op_become_two_clusters() -> None:
    from reports.clusters import find_clusters

    cases: list[Any] = []
    cube: Counter[Any] = Counter()
    choices: Counter[Any] = Counter()
    for i in range(600):
        args = {"x": {"dtype": "f32", "shape": [2]}}
        inst = {"attrs": {"axis": i % 4, "mode": "ab"[i % 7 == 0]}, "args": args, "opset": 13}
        fails = i % 4 == 3 or i % 7 == 0
        choices.update(features(inst))
        cube["onnx/A/1", 13, "b", "f32", "mismatch" if fails else "agree"] += 1
        if fails:
            cases.append({"key": "onnx/A/1", "backend": "b", "verdict": "mismatch", "instance": inst})
    drawn = {"instances": 600, "valid": 600, "counted": 600}
    coverage = {"onnx/A/1": {"choices": dict(choices), **drawn}}
    clusters = find_clusters(cases, cube, coverage, ("mismatch",))
    assert {c["predicate"] for c in clusters} == {"axis=3", "mode=b"}
    assert sum(c["failed"] for c in clusters) == len(cases)


def test_truncated_last_line_is_reported_and_the_rest_counts(run: Path) -> None:
    whole = reports.summarise(run)
    data = run.read_bytes()
    cut = data[: data.rindex(b'{"t":"end"') + 9]
    run.write_bytes(cut)
    s = reports.summarise(run)
    assert s.totals == whole.totals
    assert any("cut short" in n for n in s.notes)
    assert s.interrupted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("not json\n", ":1: not a record"),
        ('{"t":"run","format":1}\n{"t":"ba\n{"t":"end"}\n', ":2: not a record"),
        ('{"t":"batch"}\n', "begin with a 'run' record"),
        ("[1,2]\n", "expected an object"),
        ('{"t":"run","format":0}\n', "older"),
        ('{"t":"run","format":3}\n', "newer"),
        ('{"t":"run"}\n', "format None"),
        ('{"t":"run","format":2}\n{"t":"case","id":"x"}\n', "'case' record: expected also key opset backend verdict"),
        ('{"t":"run","form', "not a record"),
        ('{"t":"run","format":1,"backends":7}\n', ":1: a 'run' record: backends: expected an object, got 7"),
        ('{"t":"run","format":1,"backends":{"x":"1.0"}}\n', 'backends: x: expected an object, got "1.0"'),
        (
            '{"t":"run","format":1}\n{"t":"batch","key":"onnx/Abs/13","opset":13,"first":0,"count":1,"tally":[["x"]]}\n',
            ":2: a 'batch' record: tally: 0: expected [backend, type, verdict, number], got [\"x\"]",
        ),
        (
            '{"t":"run","format":1}\n{"t":"case","id":"a","key":3,"opset":13,"backend":"x","verdict":"agree"}\n',
            ":2: a 'case' record: key: expected dialect/op/version, got 3",
        ),
        ('{"t":"run","format":1}\n{"t":["case"]}\n', "expected an object with a field 't'"),
        (
            '{"t":"run","format":1}\n{"t":"coverage","key":"onnx/Abs/13","dtype":[1]}\n',
            "a 'batch' record: cover: dtype: expected an object, got [1]",
        ),
    ],
)
def test_what_is_no_record_file_is_a_format_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(FormatError, match=re.escape(words)) as e:
        reports.summarise(path)
    assert "bad.jsonl" in str(e.value)
    assert "\n" not in str(e.value)


def test_missing_files_are_format_errors(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such record file"):
        reports.summarise(tmp_path / "none.jsonl")
    with pytest.raises(FormatError, match="no record files"):
        reports.summarise(tmp_path)


def test_unknown_record_kinds_are_skipped(tmp_path: Path) -> None:
    rows = [*RUN[:1], {"t": "something-new", "x": 1}, *RUN[1:]]
    assert reports.summarise(golden.write(tmp_path / "r.jsonl", rows)).totals == dict(tallied(RUN))


def test_cases_without_a_type_are_counted_under_a_dash(tmp_path: Path) -> None:
    rows = [
        RUN[0],
        {
            "t": "batch",
            "key": "onnx/A/1",
            "opset": 1,
            "first": 0,
            "count": 1,
            "tally": [["b", "None", "agree", 1]],
            "cover": {"dtype": {"None": 1}},
        },
        RUN[-1],
    ]
    s = reports.summarise(golden.write(tmp_path / "r.jsonl", rows))
    assert {c[3] for c in s.cube} == {"-"}
    assert s.coverage["onnx/A/1"]["dtype"] == {"-": 1}


def test_the_same_measurement_of_two_machines_counts_once(tmp_path: Path) -> None:
    fault = {"t": "sensitivity", "key": "onnx/A/1", "dtype": "f32", "fault": "x", "planted": 1, "caught": 1}
    for i in range(2):
        golden.write(tmp_path / f"{i}.jsonl", [RUN[0] | {"started": str(i)}, fault, RUN[-1]])
    assert len(reports.summarise(tmp_path).sensitivity) == 1


def test_machines_that_started_together_are_both_read(tmp_path: Path) -> None:
    """Two jobs of a matrix may start in the same second with the same words; what only one of them saw must show."""
    tally = {"t": "batch", "key": "onnx/A/1", "opset": 1, "first": 0, "count": 2}
    rows = {"3.12.1": [["b", "f32", "agree", 2]], "3.13.0": [["b", "f32", "agree", 1], ["b", "f32", "mismatch", 1]]}
    for python, found in rows.items():
        golden.write(tmp_path / f"{python}.jsonl", [RUN[0] | {"python": python}, tally | {"tally": found}, RUN[-1]])
    s = reports.summarise(tmp_path)
    assert s.bad == 1
    assert len(s.runs) == 2
    assert any("otherwise on another machine" in n for n in s.notes)
    merged = tmp_path / "all.jsonl"
    reports.merge([tmp_path], merged)
    assert reports.summarise(merged).totals == s.totals


def test_saved_instances_of_one_op_are_all_counted(tmp_path: Path) -> None:
    """Their batches are numbered downward, and Python gives -1 and -2 the same hash."""
    tally = [["b", "f32", "agree", 1]]
    batches = [{"t": "batch", "key": "onnx/A/1", "opset": 1, "first": -i, "count": 1, "tally": tally} for i in (1, 2)]
    golden.write(tmp_path / "a.jsonl", [RUN[0], *batches, RUN[-1]])
    s = reports.summarise(tmp_path)
    assert sum(s.cube.values()) == 2
    assert not any("more than once" in n for n in s.notes)


def test_a_merged_file_shows_which_run_was_cut_short(tmp_path: Path) -> None:
    for i, rows in enumerate(([], [RUN[-1]])):
        golden.write(tmp_path / f"{i}.jsonl", [RUN[0] | {"command": f"opconform run --shard {i + 1}/2"}, *rows])
    reports.merge([tmp_path], tmp_path / "all.jsonl")
    s = reports.summarise(tmp_path / "all.jsonl")
    assert s.interrupted
    assert any("--shard 1/2" in n for n in s.notes)


def test_shards_add_up(tmp_path: Path) -> None:
    """Two shards of one run, one compressed, give the summary of the whole."""
    head, end = RUN[0], RUN[-1]
    body = RUN[1:-1]
    half = {k for i, k in enumerate(golden.OPS) if i % 2}
    for i, pick in enumerate((True, False)):
        part = [r for r in body if "key" in r and (r["key"] in half) == pick]
        text = [head | {"selection": {"shard": [i + 1, 2]}}, *part, end]
        golden.write(tmp_path / f"{i}.jsonl", text)
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress((tmp_path / "1.jsonl").read_bytes()))
    (tmp_path / "1.jsonl").unlink()
    s = reports.summarise(tmp_path)
    assert s.totals == dict(tallied(RUN))
    assert len(s.runs) == 2
    assert not any("shards" in n for n in s.notes)
    assert "of a run in 2 shards these records hold 2 alone" in reports.summarise(tmp_path / "1.jsonl.gz").notes


def test_a_page_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, run: Path) -> None:
    made = reports.render(run, tmp_path / "out")
    before = made.html.read_bytes()
    (made.html.parent / "report.html.part").mkdir()  # as good as a full disk
    with pytest.raises(UsageError, match=r"cannot write .*report.html"):
        reports.render(run, tmp_path / "out")
    assert made.html.read_bytes() == before


def test_a_comparison_of_other_instances_is_reported(tmp_path: Path, run: Path) -> None:
    golden.write(tmp_path / "other.jsonl", [RUN[0] | {"seed": 7}, *RUN[1:]])
    (told,) = reports.diff(run, tmp_path / "other.jsonl")["notes"]["now"]
    assert told.startswith("seed 7, ")
    assert reports.diff(run, run)["notes"]["now"] == []


def test_the_same_file_twice_counts_once(tmp_path: Path, run: Path) -> None:
    golden.write(tmp_path / "copy.jsonl", RUN)
    s = reports.summarise([run, tmp_path / "copy.jsonl"])
    assert s.totals == dict(tallied(RUN))
    assert any("already read" in n for n in s.notes)


def test_a_resumed_run_counts_no_batch_twice(tmp_path: Path) -> None:
    """The second session of a run repeats the batch that the first was stopped in."""
    at = [i for i, r in enumerate(RUN) if r["t"] == "batch"][20]
    again = next(i for i in range(at, 0, -1) if RUN[i - 1]["t"] == "batch")
    stop = {"t": "end", "elapsed": 1.0, "cases": 9, "interrupted": True}
    rows = [*RUN[: at + 1], stop, RUN[0] | {"started": "2026-03-13T00:00:00Z"}, *RUN[again:]]
    s = reports.summarise(golden.write(tmp_path / "r.jsonl", rows))
    assert s.totals == dict(tallied(RUN))
    assert len(s.cases) == sum(r["t"] == "case" for r in RUN)
    assert any("more than once" in n for n in s.notes)
    assert not s.interrupted  # the last session came to its end


def test_versions_of_one_backend_stay_apart(tmp_path: Path) -> None:
    old = golden.records(seed=3, backends={"onnxruntime": "1.23.0"})
    golden.write(tmp_path / "a.jsonl", RUN)
    golden.write(tmp_path / "b.jsonl", old)
    s = reports.summarise(tmp_path)
    assert {"onnxruntime 1.31.1", "onnxruntime 1.23.0", "litert-ref"} <= set(s.backends)
    assert sum(s.totals.values()) == sum((tallied(RUN) + tallied(old)).values())
    assert {c["backend"] for c in s.cases} <= set(s.backends)


def test_the_limit_cuts_cases_but_not_counts(run: Path) -> None:
    s = reports.summarise(run, limit=50)
    assert len(s.cases) == 50
    assert s.totals == dict(tallied(RUN))
    assert sum(s.omitted.values()) == sum(r["t"] == "case" for r in RUN) - 50
    assert any("not shown one by one" in n for n in s.notes)


def test_known_differences_and_ambiguities(run: Path) -> None:
    s = reports.summarise(run)
    assert s.known["coremltools/gather-negative-axis"]["hits"] == tallied(RUN)["known"]
    assert s.known["litert-xnnpack/relu6-nan"]["hits"] == 0
    assert s.ambiguity["resize-integer-rounding"]["hits"] == tallied(RUN)["ambiguous"]
    met = [e for e in [*s.known.values(), *s.ambiguity.values()] if e["hits"]]
    assert len(met) == 2
    assert all(e["reason"] and e["clause"] for e in met)


def test_ledger_entries_as_the_engine_writes_them(tmp_path: Path) -> None:
    rows = [
        RUN[0],
        batch(
            "onnx/A/1",
            1,
            0,
            7,
            {("x", "f32", "known"): 3, ("x", "f32", "ambiguous"): 4},
            listed=[
                {"id": "a", "reason": "r", "clause": "c", "kind": "known"},
                {"id": "b", "reason": "q", "clause": "c", "kind": "ambiguous", "readings": ["x"]},
            ],
            explained=[["x", "a", 3], ["x", "b", 4]],
        ),
        {"t": "end", "elapsed": 1.0, "cases": 0, "interrupted": False, "unused": ["gone"]},
    ]
    s = reports.summarise(golden.write(tmp_path / "r.jsonl", rows))
    assert {k: e["hits"] for k, e in s.known.items()} == {"a": 3, "gone": 0}
    assert s.ambiguity["b"]["hits"] == 4
    assert s.ambiguity["b"]["readings"] == ["x"]


def test_diff_shows_new_gone_and_not_run(tmp_path: Path, run: Path) -> None:
    base = golden.write(tmp_path / "base.jsonl", golden.records(seed=2, fixed=frozenset({"MatMul", "Conv"})))
    d = reports.diff(base, run)
    assert {(e["key"], e["backend"]) for e in d["new"]} == {
        ("onnx/MatMul/13", "onnxruntime"),
        ("onnx/Conv/11", "onnxruntime"),
    }
    assert not d["gone"]
    assert not d["not_run"]
    assert d["still"]
    back = reports.diff(run, base)
    assert {e["key"] for e in back["gone"]} == {"onnx/MatMul/13", "onnx/Conv/11"}
    assert not back["new"]
    less = golden.write(tmp_path / "less.jsonl", golden.records(seed=2, keep=0.3))
    part = reports.diff(run, less)
    gone_keys = {e["key"] for e in part["gone"]}
    assert "tflite/CONV_2D/1" in {e["key"] for e in part["not_run"]}
    assert "tflite/CONV_2D/1" not in gone_keys


def release(path: Path, version: str, tally: list[tuple[str, str, int]], listed: dict[str, str], cpu: str = "") -> Path:
    """Records of a run of one op on a release: verdicts by type, and the op versions of what is listed."""
    rows: list[dict[str, Any]] = [
        {"t": "run", "format": 1, "seed": 0, "backends": {"ort": {"version": version}}, "started": version, "cpu": cpu},
        {
            "t": "batch",
            "key": "onnx/Cast/21",
            "opset": 21,
            "first": 0,
            "count": sum(n for *_, n in tally),
            "tally": [["ort", dtype, verdict, n] for dtype, verdict, n in tally],
        },
        *(
            {
                "t": "case",
                "id": name,
                "key": key,
                "opset": 21,
                "backend": "ort",
                "dtype": "f32",
                "verdict": "known",
                "known": name,
            }
            for name, key in listed.items()
        ),
        *(
            batch(key, 21, 0, 0, {}, listed=[{"id": name, "reason": f"why {name}", "clause": "c", "kind": "known"}])
            for name, key in listed.items()
        ),
        {"t": "end", "elapsed": 1.0, "cases": 0, "interrupted": False, "unused": []},
    ]
    return golden.write(path, rows)


def test_diff_of_two_machines_shows_how_the_processors_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = [("f32", "agree", 9)]
    old = release(tmp_path / "old.jsonl", "1.0", tally, {}, "x86_64 avx2 avx512f")
    new = release(tmp_path / "new.jsonl", "1.0", tally, {}, "x86_64 avx2 avx_vnni, Haswell emulated")
    want = {"now": ["Haswell emulated", "avx_vnni"], "before": ["avx512f"]}
    assert reports.diff(old, new)["processor"] == want
    assert cli.main(["diff", str(old), str(new)]) == 0
    line = "only now Haswell emulated avx_vnni; no longer avx512f"
    assert f"the processors differ: {line}" in capsys.readouterr().out
    assert line in reports.render(new, tmp_path / "out", old).markdown.read_text()
    older = release(tmp_path / "older.jsonl", "1.0", tally, {})
    assert reports.diff(older, new)["processor"] == {"now": [], "before": []}, "old records do not tell"


def test_what_two_processors_make_of_the_same_counts_twice_where_it_differs(tmp_path: Path) -> None:
    one = release(tmp_path / "a.jsonl", "1.0", [("f32", "agree", 9)], {}, "x86_64 avx2")
    same = release(tmp_path / "b.jsonl", "1.0", [("f32", "agree", 9)], {}, "x86_64 avx2 avx512f")
    other = release(tmp_path / "c.jsonl", "1.0", [("f32", "mismatch", 9)], {}, "x86_64 ssse3")
    assert reports.summarise([one, same]).totals == {"agree": 9}
    assert reports.summarise([one, other]).totals == {"agree": 9, "mismatch": 9}


def test_diff_of_two_releases_shows_listed_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacks = [("f32", "agree", 9), ("i4", "unsupported", 4), ("u4", "unsupported", 3)]
    old = release(tmp_path / "old.jsonl", "1.0", lacks, {"gone": "onnx/Cast/21", "both": "onnx/Cast/21"})
    takes = [("f32", "agree", 9), ("i4", "known", 1), ("u4", "agree", 1), ("f64", "agree", 1)]
    new = release(
        tmp_path / "new.jsonl",
        "2.0",
        takes,
        {"added": "onnx/Cast/21", "both": "onnx/Cast/21", "elsewhere": "onnx/Relu/14"},
    )
    d = reports.diff(old, new)
    assert [(e["id"], e["keys"], e["reason"]) for e in d["listed_new"]] == [("added", ["onnx/Cast/21"], "why added")]
    assert [e["id"] for e in d["listed_gone"]] == ["gone"]
    # u4 was tried three times only, f64 not at all: that says nothing
    assert [(e["key"], e["dtypes"]) for e in d["taken"]] == [("onnx/Cast/21", ["i4"])]
    assert not d["dropped"]
    assert reports.diff(new, old)["dropped"] == d["taken"]
    assert cli.main(["diff", str(old), str(new)]) == 0
    said = capsys.readouterr().out
    assert "ort 1.0 -> 2.0" in said
    assert "why added" in said
    assert "i4" in said
    text = reports.render(new, tmp_path / "out", old).markdown.read_text()
    assert "| only now | added | ort | why added |" in text
    assert "| only now | onnx/Cast/21 | ort | i4 |" in text


def test_a_run_against_itself_has_no_change(run: Path) -> None:
    d = reports.diff(run, run)
    assert not any(d[kind] for kind in ("new", "gone", "not_run", "first_run"))
    assert not any(d[kind] for kind in ("listed_new", "listed_gone", "taken", "dropped"))
    assert all(e["n"] == e["was"] for e in d["still"])


def test_merge_never_writes_over_what_it_reads(tmp_path: Path) -> None:
    path = golden.write(tmp_path / "records.jsonl", RUN)
    before = path.read_bytes()
    for sources in ([path], [tmp_path], [tmp_path / "records.jsonl", tmp_path]):
        with pytest.raises(UsageError, match="would be lost"):
            reports.merge(sources, path)
        assert path.read_bytes() == before
    with pytest.raises(FormatError, match="expected a record file, got a device"):
        reports.summarise("/dev/zero")


def test_merge_keeps_every_record(tmp_path: Path, run: Path) -> None:
    other = golden.write(tmp_path / "in" / "other.jsonl", golden.records(seed=9, keep=0.2))
    n = reports.merge([run, other], tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert n == len(lines) == len(run.read_text().splitlines()) + len(other.read_text().splitlines())
    assert reports.summarise(tmp_path / "all.jsonl").totals == reports.summarise([run, other]).totals


def test_page_holds_the_summary_and_forbids_requests(tmp_path: Path, run: Path) -> None:
    r = reports.render(run, tmp_path / "out", baseline=run)
    html = r.html.read_text("utf-8")
    assert embedded(html) == json.loads(r.json.read_text())
    assert r.summary.to_json()["totals"] == embedded(html)["totals"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    style, script = assets()
    assert html.count("<script") == 2
    assert script in html
    assert style in html


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    rows = [dict(r) for r in RUN[:40]]
    rows.append(
        next(r for r in RUN if r["t"] == "case") | {"message": "</script><script>alert(1)</script>", "id": "evil"}
    )
    html = reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path).html.read_text()
    assert html.count("<script") == 2
    assert any("alert(1)" in c["message"] for c in embedded(html)["cases"])


def test_non_finite_numbers_survive(tmp_path: Path) -> None:
    """NaN and infinity are no JSON, though Python reads them; the page must still be.  A run writes words."""
    assert not any(word in json.dumps(RUN) for word in ("NaN,", "Infinity,"))
    row = next(r for r in RUN if r["t"] == "case" and r["verdict"] == "mismatch")
    rows = [RUN[0], row | {"diff": row["diff"] | {"max_ulp": float("nan"), "factor": float("-inf")}}, RUN[-1]]
    run = golden.write(tmp_path / "run.jsonl", rows)
    assert "NaN" in run.read_text()
    assert "-Infinity" in run.read_text()
    text = reports.render(run, tmp_path / "out").json.read_text()
    json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} in report.json"))


def test_markdown_and_junit(tmp_path: Path, run: Path) -> None:
    r = reports.render(run, tmp_path / "out", baseline=run)
    md = r.markdown.read_text()
    assert f"**{r.summary.bad:,} unexplained**" in md
    for c in r.summary.clusters[:5]:
        assert c["predicate"] in md
        assert c["key"] in md
    assert "`litert-xnnpack/relu6-nan`" in md
    assert "0 new" in md
    width = {line.count("|") - line.count("\\|") for line in md.split("## ")[0].splitlines() if line.startswith("|")}
    assert len(width) == 1
    root = ET.parse(r.junit).getroot()
    failed = {t.get("name") for t in root.iter("testcase") if t.find("failure") is not None}
    want = {f"{k}/{b}" for (k, _, b, _, v), n in r.summary.cube.items() if v in BAD and n}
    assert failed == want
    assert int(root.get("failures", "")) == len(want)
    assert "opconform replay" in (root.find(".//failure").text or "")


def test_junit_survives_control_characters(tmp_path: Path) -> None:
    rows = [dict(r) for r in RUN]
    for r in rows:
        if r["t"] == "case":
            r["message"] = "bad \x00\x1b[31m & <tag> \ufffe"
    out = reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path)
    assert ET.parse(out.junit).getroot().tag == "testsuites"


def test_clean_run_renders(tmp_path: Path) -> None:
    rows = [r for r in golden.records(seed=4, fixed=frozenset(k.split("/")[1] for k in golden.OPS)) if r["t"] != "case"]
    rows = [r | {"tally": [t for t in r["tally"] if t[2] == "agree"]} if r["t"] == "batch" else r for r in rows]
    r = reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path)
    assert r.summary.bad == 0
    assert "0 unexplained" in r.html.read_text()
    assert 'failures="0"' in r.junit.read_text()


def test_an_unavailable_backend_is_reported(tmp_path: Path) -> None:
    head = {"t": "run", "format": 1, "seed": 0, "backends": {}, "missing": {"litert-ref": "no module named x"}}
    out = reports.render(golden.write(tmp_path / "r.jsonl", [head, {"t": "end", "elapsed": 1.0}]), tmp_path)
    assert "> r.jsonl: litert-ref was not run: no module named x" in out.markdown.read_text()


def test_what_has_no_verdict_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"t": "run", "format": 1, "seed": 0, "backends": {"odd": {"version": "1"}}},
        {
            "t": "batch",
            "key": "onnx/Relu/14",
            "opset": 14,
            "first": 0,
            "count": 5,
            "tally": [["odd", "f32", "agree", 3], ["odd", "f32", "unknown", 2]],
            "listed": [{"id": "met", "reason": "its counts were lost, the case was kept", "kind": "known"}],
        },
        {
            "t": "case",
            "id": "a",
            "key": "onnx/Relu/14",
            "opset": 14,
            "backend": "odd",
            "dtype": "f32",
            "verdict": "unknown",
            "phase": "run",
            "message": "run returned list",
        },
        {
            "t": "case",
            "id": "b",
            "key": "onnx/Relu/14",
            "opset": 14,
            "backend": "odd",
            "dtype": "f32",
            "verdict": "known",
            "known": "met",
        },
        {"t": "end", "elapsed": 1.0, "cases": 5, "interrupted": False, "unused": ["gone"]},
    ]
    path = golden.write(tmp_path / "r.jsonl", rows)
    out = reports.render(path, tmp_path)
    root = ET.parse(out.junit).getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "2")
    error, whole = root.iter("error")
    assert whole.get("message") == "listed differences that did not occur: gone"
    assert error.get("message") == "2 of 5 instances without verdict"
    assert error.text == "run: run returned list"
    head = out.markdown.read_text()
    assert "**2 without verdict**" in head
    assert "**listed differences that did not occur: gone**" in head
    assert cli.main(["report", str(path), "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "0 unexplained of 3 judged outcomes, 2 without verdict" in said
    assert "known differences that did not occur: gone\n" in said


def test_memory_does_not_grow_with_batches(tmp_path: Path) -> None:
    """100,000 batch lines are folded into the counters."""
    line = {
        "t": "batch",
        "key": "onnx/Add/14",
        "opset": 14,
        "count": 64,
        "tally": [["b", "f32", "agree", 64]],
    }
    path = tmp_path / "long.jsonl"
    with open(path, "w") as f:
        f.write(json.dumps({"t": "run", "format": 2, "seed": 1}) + "\n")
        for i in range(100_000):
            f.write(json.dumps(line | {"first": i * 64}) + "\n")
    import tracemalloc

    tracemalloc.start()
    s = reports.summarise(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert s.judged == 6_400_000
    assert peak < 80e6  # about 400 bytes a batch, to recognise repeats; the lines themselves are 150 bytes
