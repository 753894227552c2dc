"""What to do first, and what is new: causes across op versions, matched across seeds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import reports
from harness import cli
from harness.cli.closing import exit_code
from reports.causes import find_causes, sentence, signature
from suites.meta import golden

OPS = ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg")


def instance(op: str, n: int, **arg: Any) -> dict[str, Any]:
    x = {"dtype": "f32", "shape": [2, 3], "recipe": "small", "seed": n, **arg}
    return {
        "format": 1,
        "dialect": "onnx",
        "op": op,
        "version": 13,
        "opset": 13,
        "attrs": {},
        "args": {"X": x},
        "outs": 1,
    }


def case(op: str, n: int, verdict: str, **facts: Any) -> dict[str, Any]:
    arg = facts.pop("arg", {})
    return {
        "t": "case",
        "id": f"{op}{n}{verdict}{facts.get('seed', '')}",
        "key": f"onnx/{op}/13",
        "opset": 13,
        "backend": "young",
        "dtype": "f32",
        "verdict": verdict,
        "message": facts.pop("message", ""),
        "kind": facts.pop("kind", ""),
        "diff": facts.pop("diff", {}),
        "instance": instance(op, n, **arg),
        "rule": facts.pop("rule", None),
    }


def cube(cases: list[dict[str, Any]], passing: int = 40) -> Counter[tuple[str, Any, str, str, str]]:
    out: Counter[tuple[str, Any, str, str, str]] = Counter()
    for c in cases:
        out[c["key"], 13, "young", "f32", c["verdict"]] += 1
    for op in OPS:
        out[f"onnx/{op}/13", 13, "young", "f32", "agree"] += passing
    return out


def coverage(constant: int) -> dict[str, Any]:
    choices = {"X: constant": constant, "X: constant in raw": 0, "X: rank 2": 50}
    one = {"choices": choices, "counted": 50, "instances": 50, "valid": 50, "rules": {}}
    return {f"onnx/{op}/13": one for op in OPS}


def test_one_message_is_one_cause_across_ops() -> None:
    cases = [
        case(op, n, "wrongly_rejected", message=f"layers/a.cpp:{n}: no layer '{op}'") for op in OPS for n in range(3)
    ]
    (cause,) = find_causes(cases, cube(cases), {})
    assert (cause["kind"], cause["failed"], cause["class"], len(cause["ops"])) == ("message", 18, "refusal", 6)
    assert cause["text"] == "a.cpp:*: no layer *"
    assert "and 2 more ops" in sentence(cause)


def test_crashes_come_first_then_wrong_values_then_rejections() -> None:
    cases = [case("Abs", n, "wrongly_rejected", message="no") for n in range(9)]
    cases += [case("Exp", n, "mismatch", kind="value") for n in range(5)]
    cases += [case("Log", 0, "crashed", message="killed by SIGSEGV (in run)")]
    causes = find_causes(cases, cube(cases), {})
    assert [c["class"] for c in causes] == ["crash", "wrong value", "refusal"]
    assert [c["failed"] for c in causes] == [1, 5, 9]
    assert sum(c["share"] for c in causes) == 1


def test_a_rare_crash_comes_first() -> None:
    cases = [case("Abs", n, "wrongly_rejected", message=f"reason {chr(97 + n % 12)}") for n in range(60)]
    cases += [case("Log", 0, "crashed", message="killed by SIGSEGV (in run)")]
    causes = find_causes(cases, cube(cases), {})
    assert causes[0]["class"] == "crash"
    assert sum(c["first"] for c in causes) <= 10


def test_a_fact_that_failures_share_is_their_cause() -> None:
    arg = {"const": True}
    words = ["inputs are empty", "no input left", "cannot bind", "nothing to run", "no blob", "lonely"]
    cases = [
        case(op, n, "wrongly_rejected", message=m, arg=arg) for op, m in zip(OPS, words, strict=True) for n in range(4)
    ]
    (cause,) = find_causes(cases, cube(cases), coverage(constant=5))
    assert (cause["kind"], cause["failed"]) == ("fact", 24)
    assert "constant" in cause["text"]
    common = find_causes(cases, cube(cases), coverage(constant=48))
    assert all(c["kind"] != "fact" or "constant" not in c["text"] for c in common), "as frequent among all instances"


def test_wrong_results_are_joined_by_what_is_wrong() -> None:
    diff = {"dtype": "bool", "got_dtype": "f32", "shape": [2], "got_shape": [2]}
    cases = [case(op, n, "mismatch", kind="dtype", diff=diff) for op in OPS for n in range(2)]
    cases += [case("Abs", n, "mismatch", kind="shape", diff={"shape": [], "got_shape": [1, 1]}) for n in range(3)]
    texts = {c["text"]: c["failed"] for c in find_causes(cases, cube(cases), {})}
    assert texts == {
        "results come as f32 instead of another type": 12,
        "results come with rank 2 instead of another": 3,
    }
    assert signature(cases[0]) == "results come as f32 instead of another type"


def test_a_sample_of_records_is_scaled_to_the_tallies() -> None:
    cases = [case("Abs", n, "wrongly_rejected", message="no") for n in range(4)]
    (cause,) = find_causes(cases, Counter({("onnx/Abs/13", 13, "young", "f32", "wrongly_rejected"): 40}), {})
    assert cause["failed"] == 40


def write(path: Path, seed: int, cases: list[dict[str, Any]], passing: int = 40) -> Path:
    """Records of a run over all ops."""
    rows: list[dict[str, Any]] = [
        {"t": "run", "format": 16, "command": "x", "seed": seed, "backends": {"young": {"version": "1", "formats": []}}}
    ]
    rows[0]["format"] = golden.records(seed=1)[0]["format"]
    for op in OPS:
        mine = [c for c in cases if c["key"] == f"onnx/{op}/13"]
        tally = Counter(c["verdict"] for c in mine)
        told = [["young", "f32", v, n] for v, n in tally.items()] + [["young", "f32", "agree", passing]]
        rows += mine
        rows.append(
            {
                "t": "batch",
                "key": f"onnx/{op}/13",
                "opset": 13,
                "first": seed * 1000,
                "count": passing + len(mine),
                "tally": told,
                "cover": {"dtype": {"f32": passing}, "valid": passing, "counted": passing, "choices": {}},
            }
        )
    rows.append({"t": "end", "elapsed": 1.0, "cases": 0, "interrupted": False})
    return golden.write(path, rows)


def refusals(op: str, n: int, words: str) -> list[dict[str, Any]]:
    return [case(op, i, "wrongly_rejected", message=words) for i in range(n)]


def test_another_seed_of_the_same_runtime_has_nothing_new(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", 0, [*refusals("Abs", 3, "no layer 'Abs'"), case("Exp", 0, "mismatch")])
    new = write(tmp_path / "new.jsonl", 1, [*refusals("Log", 2, "no layer 'Log'"), case("Neg", 0, "mismatch")])
    d = reports.diff(old, new)
    assert d["new"] == d["first_run"] == []
    assert [e["key"] for e in d["still"]] == ["onnx/Log/13"], "the same words, in another op"
    assert [e["key"] for e in d["seldom"]] == ["onnx/Neg/13"]
    assert [e["key"] for e in d["gone"]] == ["onnx/Abs/13", "onnx/Exp/13"]


def test_what_the_older_run_would_have_shown_is_new(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", 0, refusals("Abs", 3, "no layer 'Abs'"))
    new = write(tmp_path / "new.jsonl", 1, [case("Neg", n, "mismatch", kind="value") for n in range(12)])
    assert [e["key"] for e in reports.diff(old, new)["new"]] == ["onnx/Neg/13"]
    spread = write(tmp_path / "spread.jsonl", 1, refusals("Neg", 40, "no layer 'Neg'"))
    assert [e["key"] for e in reports.diff(old, spread)["new"]] == ["onnx/Neg/13"], "known words, but in all of an op"


def test_with_the_same_seed_any_further_failure_is_new(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", 0, refusals("Abs", 3, "no layer 'Abs'"))
    new = write(tmp_path / "new.jsonl", 0, refusals("Abs", 3, "no layer 'Abs'") + refusals("Log", 1, "no layer 'Log'"))
    assert [e["key"] for e in reports.diff(old, new)["new"]] == ["onnx/Log/13"]
    other = write(tmp_path / "other.jsonl", 0, refusals("Abs", 3, "out of range"))
    assert [e["key"] for e in reports.diff(old, other)["new"]] == ["onnx/Abs/13"], "another cause in the same op"


def test_a_baseline_fails_by_what_is_new(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", 0, refusals("Abs", 3, "no layer 'Abs'"))
    new = write(tmp_path / "new.jsonl", 0, refusals("Abs", 3, "no layer 'Abs'") + refusals("Log", 1, "oh"))
    for records, code in ((old, 0), (new, 1)):
        out = tmp_path / records.stem
        assert cli.main(["report", str(records), "--out", str(out), "--baseline", str(old)]) == code
    assert cli.main(["report", str(old), "--out", str(tmp_path / "alone")]) == 1
    s = reports.summarise(old)
    assert exit_code(s) == 1
    assert exit_code(s, {"new": [], "first_run": []}) == 0


def test_the_summary_begins_with_what_to_do_first(tmp_path: Path) -> None:
    cases = [*refusals("Abs", 3, "no layer 'Abs'"), case("Log", 0, "crashed", message="killed by SIGSEGV")]
    result = reports.render(write(tmp_path / "r.jsonl", 0, cases), tmp_path / "out")
    text = result.markdown.read_text()
    assert text.index("## What to do first") < text.index("## Clusters")
    assert "causeBox()" in result.html.read_text()
    assert '"causes"' in result.json.read_text()
