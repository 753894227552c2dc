"""The harness catches planted faults: the verdict and the minimal instance, on a toy dialect."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends import registry as backends
from harness.cases.case import draw_case
from harness.cases.result import Result
from harness.cases.selection import units
from harness.core.features import Pairs
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.evidence.failure import Evidence
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.session.record_writer import read
from harness.session.resume import resumed
from harness.workers.info import BackendInfo
from suites.meta.toy import toy

CASES = 96


def run(name: str, tmp: Path, ops: tuple[str, ...] = (), cases: int = CASES, ledger: Ledger | None = None):
    """Records of a run of the toy dialect on one of its backends."""
    spec = f"suites.meta.toy_backends:{name}"
    with backends.create(spec, deadline=2.0) as main, backends.create(spec, deadline=2.0) as spare:
        out: list[dict] = []
        evidence = Evidence(lambda _: spare, tmp, ledger=ledger)
        chosen = [v for v in toy.versions.values() if not ops or v.op in ops]
        engine = Engine([main], sink=out.append, on_failure=evidence, ledger=ledger)
        summary = engine.run(units(chosen, cases))
        return summary, out


def bad(records: list[dict]) -> list[dict]:
    return [r for r in records if r["t"] == "case" and Verdict(r["verdict"]).bad]


def test_a_right_backend_has_no_mismatch_and_every_case_is_counted_once(tmp_path: Path) -> None:
    summary, records = run("Right", tmp_path)
    assert bad(records) == []
    assert not summary.problems, summary.examples
    tallied: Counter[Any] = Counter()
    for r in records:
        if r["t"] == "batch":
            assert sum(n for *_, n in r["tally"]) == r["count"]
            tallied[r["key"]] += r["count"]
    assert set(tallied.values()) == {CASES}


def test_pairs_of_features_are_counted_once_each() -> None:
    cover = Pairs()
    pairs: set[Any] = set()
    for i in range(400):
        found = sorted({f"{k}={i % k * (i % 3)}" for k in range(2, 14 + i % 7)})
        assert cover.meet(found) == bool(set(combinations(found, 2)) - pairs)
        pairs |= set(combinations(found, 2))
        assert cover.count == len(pairs)


@pytest.mark.parametrize(
    ("pack", "together"),
    [(16, True), (1, False), ({"toy": 16}, True), ({"toy": 1, "other": 16}, False), ({"other": 16}, False)],
)
def test_how_many_share_a_model_may_depend_on_the_format(pack: Any, together: bool, monkeypatch: Any) -> None:
    with backends.create("suites.meta.toy_backends:Right") as handle:
        handle.start()
        monkeypatch.setattr(handle, "declared", replace(handle.info, pack=pack))
        sizes, submit = [], handle.submit

        def note(job: Any) -> None:
            sizes.append(len(job.tag[2].cases))
            submit(job)

        monkeypatch.setattr(handle, "submit", note)
        engine = Engine([handle], invalid=False)
        for _ in range(2):  # first it learns that they pass: until then each goes alone
            sizes.clear()
            engine.run(units([v for v in toy.versions.values() if v.op == "Add"], 48))
    assert sizes
    assert (max(sizes) > 1) is together


def test_types_that_go_apart_share_no_model_with_others(monkeypatch: Any) -> None:
    with backends.create("suites.meta.toy_backends:Right") as handle:
        handle.start()
        monkeypatch.setattr(handle, "declared", replace(handle.info, isolate_dtypes=frozenset({"i32", "bool"})))
        models, submit = [], handle.submit

        def note(job: Any) -> None:
            models.append({c.dtype_name for c in job.tag[2].cases})
            submit(job)

        monkeypatch.setattr(handle, "submit", note)
        engine = Engine([handle], invalid=False)
        engine.run(units(list(toy.versions.values()), 64))
    assert {"f32"} in models
    assert any(m <= {"i32", "bool"} for m in models)
    assert not any("f32" in m and len(m) > 1 for m in models)


@pytest.mark.parametrize(
    ("name", "op", "shape"),
    [("SwappedAxis", "Flip", None), ("DroppedNan", "Max", None), ("OffByOne", "MatMul", ([1, 3], [3, 1]))],
)
def test_a_planted_fault_is_found_and_made_small(name: str, op: str, shape, tmp_path: Path) -> None:
    _, records = run(name, tmp_path)
    found = bad(records)
    assert {r["key"] for r in found} == {f"toy/{op}/1"}
    assert {r["verdict"] for r in found} == {"mismatch"}
    small = next(r["minimal"] for r in found if r["minimal"])
    args = small["args"]
    if op == "Flip":  # two axes, the flipped one of two elements, no more
        assert sorted(args["x"]["shape"]) in ([1, 2], [2, 2])
    if op == "Max":
        assert all(a["shape"] in ([], [1]) for a in args.values())
    if shape:
        assert (args["x"]["shape"], args["y"]["shape"]) == shape
        assert args["x"]["values"][-1] != 0
        assert set(args["x"]["values"]) <= {0, 1}
    folder = Path(next(r["folder"] for r in found if r["folder"]))
    assert {"instance.json", "repro.py", "inputs.npz", "model.json"} <= {p.name for p in folder.iterdir()}


def test_a_minimal_instance_is_not_one_that_is_listed(tmp_path: Path) -> None:
    """Or the evidence of something new would be of something known."""
    (tmp_path / "x.toml").write_text(
        '[[known]]\nid = "small"\nbackend = "*"\nop = "toy/MatMul"\nreason = "r"\nclause = "c"\n'
        "when = \"shape('x')[1] < 5\"\n"
    )
    ledger = load_ledger([tmp_path])
    _, records = run("OffByOne", tmp_path, ("MatMul",), ledger=ledger)
    small = [r["minimal"] for r in bad(records) if r["minimal"]]
    assert small
    assert all(m["args"]["x"]["shape"][1] == 5 for m in small)
    known = sum(n for r in records if r["t"] == "batch" for *_, verdict, n in r["tally"] if verdict == "known")
    assert ledger.entries[0].hits == known > 0, "shrinking counts for nothing"


def test_an_invalid_instance_that_is_accepted_names_its_rule(tmp_path: Path) -> None:
    _, records = run("Lenient", tmp_path)
    found = bad(records)
    assert {r["verdict"] for r in found} == {"wrongly_accepted"}
    assert {r["rule"] for r in found} >= {"type:T", "tied-type:T", "tied-dim:k", "axis-in-range:axis"}


def test_a_backend_that_dies_and_hangs_loses_no_other_case(tmp_path: Path) -> None:
    summary, records = run("Dies", tmp_path, ("Flip", "Sum"))
    verdicts = summary.tally["toy", "dies"]
    assert sum(verdicts.values()) == 2 * CASES
    assert set(verdicts) <= {"agree", "crashed", "timed_out", "uninformative"}
    for r in bad(records):
        args = r["instance"]["args"]["x"]
        if r["verdict"] == "crashed":
            assert r["key"] == "toy/Flip/1"
            assert args["dtype"] == "bool"
            assert len(args["shape"]) == 1
        else:
            assert r["key"] == "toy/Sum/1"
            assert 0 in args["shape"]
    assert verdicts["crashed"] > 0


def test_an_interrupted_run_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    from harness.core.record_format import FORMAT
    from harness.session.record_writer import RecordWriter

    path = tmp_path / "records.jsonl"
    chosen = list(toy.versions.values())
    every = list(units(chosen, 64))
    with backends.create("suites.meta.toy_backends:Right") as handle:
        release = handle.info.version  # started, it has its name
        asked = {handle.name: release}
        with RecordWriter(path) as w:
            w.write({"t": "run", "format": FORMAT, "backends": {handle.name: {"version": asked[handle.name]}}})
            Engine([handle], sink=w.write).run(every[:7])
        with open(path, "ab") as f:
            f.write(b'{"t":"batch","key":"toy/Add')  # the process was killed while writing
        with RecordWriter(path) as w:
            rest = list(units(chosen, 64, done=resumed(path, lambda _: asked).done))
            assert len(rest) == len(every) - 7
            for other in ({**asked, "newcomer": "1"}, {handle.name: "2.0"}):  # whom nobody has asked for anything
                assert not resumed(path, lambda _, other=other: other).done
            Engine([handle], sink=w.write).run(rest)
    seen = [(r["key"], r["first"]) for r in read(path) if r["t"] == "batch"]
    assert len(seen) == len(set(seen)) == len(every)


def test_an_opset_beyond_the_backend_teaches_nothing_about_types() -> None:
    """Being asked at an opset that it does not know must not count as a gap of the types at those that it knows."""
    handle: Any = SimpleNamespace(name="b", info=BackendInfo("b", formats=("toy",), opset=3))
    version = next(iter(toy.versions.values()))
    for opset, learnt in ((4, False), (3, True)):
        engine = Engine([handle])
        case = draw_case(version, 1, 0, 0, invalid=False)
        case.inst.opset = opset
        gap = Outcome(Status.UNSUPPORTED, None, "load", "no")
        for _ in range(4):
            engine._note_verdict(Result(case, "b", Verdict.UNSUPPORTED, gap), {})
        engine.learned_support["b"].closed(version.key, -1)
        case.index = 1  # of the cases that follow, one in many is asked again
        settled, _ = engine.learned_support["b"].plan([case])
        assert bool(settled) is learnt


def test_a_run_has_as_many_cases_as_each_dialect_says_unless_asked() -> None:
    relu = registry.dialect("onnx").versions["onnx/Relu/14"]
    program = next(iter(registry.dialect("rewrites").versions.values()))
    for asked, due in ((None, (32, 256)), (40, (40, 40))):
        found = list(units([relu, program], asked))
        assert tuple(sum(u.count for u in found if u.version is v) for v in (relu, program)) == due
