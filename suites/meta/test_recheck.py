"""A wrong answer is asked for again before it is told: what stands, what needs neighbours, what was seen once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case, fill
from harness.cases.selection import units
from harness.cli import main
from harness.core.dtypes import dtype
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.batching import Pack
from harness.engine.case_record import paragraph
from harness.engine.engine import Engine
from harness.engine.recheck import SURE, Recheck
from harness.engine.requery import judge_beside
from harness.engine.two_runs import TwoRuns
from harness.evidence.failure import Evidence
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.session.replay import replay_neighbours
from harness.workers.pool import BackendHandle
from harness.workers.wire import Job, JobResult
from suites.meta.toy import toy


def run(name: str, tmp: Path, cases: int = 64, again: bool = True) -> tuple[Any, list[dict[str, Any]]]:
    """Summary and case records of a run of the toy dialect."""
    spec = f"suites.meta.toy_backends:{name}"
    with backends.create(spec, deadline=2.0) as main, backends.create(spec, deadline=2.0) as spare:
        out: list[dict[str, Any]] = []
        engine = Engine(
            [main],
            sink=out.append,
            on_failure=Evidence(lambda _: spare, tmp),
            recheck=Recheck(lambda _: spare) if again else None,
        )
        summary = engine.run(units(list(toy.versions.values()), cases))
    return summary, [r for r in out if r["t"] == "case"]


def ledger_of(folder: Path, id: str, op: str, verdict: str, *more: str) -> Ledger:
    """A ledger of one known difference of every backend; more: further lines of its table."""
    fields = {"id": id, "backend": "*", "op": op, "verdict": verdict, "reason": "it does", "clause": "it should not"}
    lines = [f'{k} = "{v}"' for k, v in fields.items()]
    (folder / "toy.toml").write_text("\n".join(["[[known]]", *lines, *more]))
    return load_ledger([folder])


def test_a_persistent_fault_is_reported_as_before(tmp_path: Path) -> None:
    with_, without = (run("DroppedNan", tmp_path / str(a), again=a)[0] for a in (True, False))
    assert with_.tally == without.tally
    assert with_.failures


def test_an_answer_that_never_occurs_again_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FRAIL", str(tmp_path / "erred"))
    summary, records = run("Moody", tmp_path)
    assert {r["verdict"] for r in records} == {"flaky"}
    assert not summary.failures
    assert not summary.problems
    assert "right when asked again" in records[0]["message"]
    (tmp_path / "erred").unlink()
    assert run("Moody", tmp_path / "raw", again=False)[0].failures  # it had been told without the second question


def test_an_answer_that_a_used_process_spoils_names_what_it_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, records = run("Tired", tmp_path)
    bad = [r for r in records if r["verdict"] == "mismatch"]
    assert summary.failures == len(bad) == SURE * len({r["dtype"] for r in records})  # then it is not looked for
    assert {r["verdict"] for r in records} == {"mismatch", "flaky"}
    assert {r["key"] for r in records} == {"toy/Add/1"}
    for r in bad:
        assert not r["neighbours"]
        assert 15 <= len(r["prior_models"]) <= 29, len(r["prior_models"])  # of one run or two
    monkeypatch.setattr("harness.declare.registry.version_of", toy.version_of)
    file = Path(bad[0]["replay"].split()[2])
    said = subprocess.run([sys.executable, str(file.parent / "repro.py")], capture_output=True, text=True, timeout=60)
    assert said.returncode == 1, said
    assert "expected" in said.stdout, said
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Tired"], explain=False)
    assert judged.verdict is Verdict.MISMATCH
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Right"], explain=False)
    assert judged.verdict is Verdict.AGREE


def test_a_neighbour_that_spoils_an_answer_is_named(tmp_path: Path) -> None:
    summary, records = run("Overwrites", tmp_path)
    wrong = [r for r in records if r["verdict"] == "mismatch"]
    assert summary.failures == len(wrong) >= SURE
    assert {r["verdict"] for r in records} <= {"mismatch", "flaky"}, "after a few, nobody looks for what it takes"
    for r in wrong:
        assert len(r["neighbours"]) == 2, r["neighbours"]
        assert "flip" in " ".join(r["neighbours"]).lower(), r["neighbours"]
        assert r["key"].split("/")[1] != "Flip"
        assert r["replay"].split()[2].endswith("neighbours.json")
    text = paragraph(wrong[0])
    assert "right alone, wrong in one model of 2" in text


@pytest.mark.parametrize(("name", "verdict"), [("Jealous", "wrongly_rejected"), ("JealousAndDies", "crashed")])
def test_a_model_that_fails_though_its_instances_pass_is_reported(name: str, verdict: str, tmp_path: Path) -> None:
    summary, records = run(name, tmp_path)
    assert summary.failures == len(records) > 0
    for r in records:
        assert r["verdict"] == verdict
        assert r["key"] == "toy/Max/1"
        assert len(r["neighbours"]) == 2, r["neighbours"]
        assert "flip" in r["neighbours"][0].lower(), r["neighbours"]
        assert r["replay"].split()[2].endswith("neighbours.json")
        assert (Path(r["folder"]) / "repro.py").exists()
    assert not run(name, tmp_path / "raw", again=False)[0].failures  # nobody had heard of it


def test_what_fails_together_is_not_hidden_by_what_fails_alone() -> None:
    """No half of the model has a Flip and a Max and lacks the Add that is refused anyway."""
    drawn = {}
    for op in ("Flip", "Add", "Sum", "Max"):
        v = toy.versions[f"toy/{op}/1"]
        cases = (draw_case(v, v.opsets[-1], 0, i, invalid=False) for i in range(64))
        drawn[op] = next(c for c in cases if c.dtype_name == "f32" and not c.inst.reruns)
    pack = Pack(toy, 1, list(drawn.values()), [])
    with backends.create("suites.meta.toy_backends:JealousAndPoor") as handle:
        handle.start()
        (job,) = pack.jobs(handle.name, 16, 1)
        (result,) = handle.run([job])
        assert not result.unblamed
        assert result.masked == [0, 2, 3]
        more = pack.take(result)
        assert more is not None
        assert not pack.done
        (second,) = handle.run([more])
        assert pack.take(second) is None
        assert pack.done
    ((_, neighbours, _),) = pack.unblamed
    assert drawn["Flip"] in neighbours
    assert drawn["Max"] in neighbours
    assert drawn["Add"] not in neighbours
    refused = [op for op, c in drawn.items() if pack.answer(handle.name, c)[0][0].status is not Status.VALUE]
    assert refused == ["Add"]


def test_a_listed_failure_of_a_model_is_known(tmp_path: Path) -> None:
    spec = "suites.meta.toy_backends:Jealous"
    with backends.create(spec) as main, backends.create(spec) as spare:
        ledger = ledger_of(tmp_path, "max-after-flip", "toy/Max", "wrongly_rejected", 'message = "too much"')
        out: list[dict[str, Any]] = []
        engine = Engine(
            [main],
            ledger=ledger,
            sink=out.append,
            on_failure=Evidence(lambda _: spare, None),
            recheck=Recheck(lambda _: spare, ledger),
        )
        assert not engine.run(units(list(toy.versions.values()), 64)).failures
    assert {r["known"] for r in out if r["t"] == "case"} == {"max-after-flip"}


def test_a_death_that_never_occurs_again_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FRAIL", str(tmp_path / "died"))
    summary, records = run("Frail", tmp_path)
    assert not summary.failures
    assert not summary.problems
    assert {r["verdict"] for r in records} == {"flaky"}
    assert all("SIGSEGV" in r["message"] and "right when asked again" in r["message"] for r in records)


def test_a_death_that_takes_an_earlier_model_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, records = run("Remembers", tmp_path)
    bad = [r for r in records if r["verdict"] == "crashed"]
    assert summary.failures == len(bad) > 0
    for r in bad:
        assert r["key"] == "toy/MatMul/1"
        assert not r["neighbours"]
        ((flip,),) = r["prior_models"]
        assert "flip" in flip.lower()
    assert "right in a fresh process, wrong in one that has served 1 before" in paragraph(bad[0])
    folder = Path(bad[0]["folder"])
    assert {"earlier-0.json", "earlier-0-0.npz", "repro.py"} <= {p.name for p in folder.iterdir()}
    compile((folder / "repro.py").read_text(), "repro.py", "exec")
    monkeypatch.setattr("harness.declare.registry.version_of", toy.version_of)
    file = Path(bad[0]["replay"].split()[2])
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Remembers"], explain=False)
    assert judged.verdict is Verdict.CRASHED
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Right"], explain=False)
    assert judged.verdict is Verdict.AGREE


def test_a_listed_death_need_not_occur_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FRAIL", str(tmp_path / "died"))
    spec = "suites.meta.toy_backends:Frail"
    with backends.create(spec) as main, backends.create(spec) as spare:
        ledger = ledger_of(tmp_path, "frail", "toy/*", "crashed", 'message = "SIGSEGV"')
        engine = Engine([main], ledger=ledger, recheck=Recheck(lambda _: spare, ledger))
        (tally,) = engine.run(units([v for v in toy.versions.values() if v.op == "Sum"], 64)).tally.values()
    assert tally["known"] == 1, tally
    assert not tally["flaky"], tally


def test_neighbours_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.declare.registry.version_of", toy.version_of)
    _, records = run("Overwrites", tmp_path)
    file = Path(records[0]["replay"].split()[2])
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Overwrites"], explain=False)
    assert judged.verdict is Verdict.MISMATCH
    (judged,) = replay_neighbours(file, ["suites.meta.toy_backends:Right"], explain=False)
    assert judged.verdict is Verdict.AGREE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"at": 0, "instances": [], "before": 1}',
        '{"at": 3, "instances": []}',
        '{"at": 0, "instances": [{}]}',
        '["a"]',
    ],
    ids=str,
)
def test_a_broken_neighbours_file_is_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "neighbours.json"
    path.write_text(text)
    code, said = main(["replay", str(path)]), capsys.readouterr().err
    assert code == 2, said
    assert said.count("\n") == 1, said
    assert "neighbours.json" in said, said


def test_a_listed_spoiler_gets_a_process_of_its_own(tmp_path: Path) -> None:
    spec = "suites.meta.toy_backends:Overwrites"
    with backends.create(spec) as main, backends.create(spec) as spare:
        ledger = ledger_of(
            tmp_path,
            "flip-overwrites",
            "toy/Flip",
            "crashed",
            """when = "rank('x') >= 0\"""",
            "corrupts_process = true",
        )
        summary = Engine([main], ledger=ledger, recheck=Recheck(lambda _: spare, ledger)).run(
            units(list(toy.versions.values()), 64)
        )
        assert not summary.failures
        assert main.stats["spawns"] > 64 // 2
    (tally,) = summary.tally.values()
    assert set(tally) <= {"agree", "uninformative", "wrongly_accepted"}, tally


def test_only_so_many_of_a_kind_are_rechecked(tmp_path: Path) -> None:
    spec = "suites.meta.toy_backends:DroppedNan"
    with backends.create(spec) as main, backends.create(spec) as spare:
        engine = Engine([main], recheck=Recheck(lambda _: spare))
        summary = engine.run(units([v for v in toy.versions.values() if v.op == "Max"], 400))
        kinds = 4  # value kinds of the toy's Max: types times what differs
        assert summary.failures > SURE * kinds >= spare.stats["tasks"] > 0


def empty_sum() -> Case:
    """What the backend Dies hangs on."""
    v = toy.versions["toy/Sum/1"]
    args = {"x": Arg(dtype("f32"), (0, 3), values=[])}
    return fill(v, Instance("toy", "Sum", 1, 1, {"axes": [0], "keepdims": False}, args, outs=1))


def waited(outcome: Outcome) -> float:
    """Seconds after which a backend was given up."""
    found = re.search(r"no answer within ([\d.]+) s", outcome.message)
    assert found is not None, outcome
    return float(found[1])


@pytest.mark.parametrize(("verdict", "known"), [("timed_out", True), ("crashed", False)])
def test_a_listed_hang_is_rechecked_with_part_of_the_deadline(
    verdict: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one fresh process, and in the two whose results are compared."""
    deadline, case = 1.6, empty_sum()
    ledger = ledger_of(tmp_path, "sum-of-nothing", "toy/Sum", verdict, """when = "size('x') == 0\"""")
    with backends.create("suites.meta.toy_backends:Dies", deadline=deadline) as handle:
        info = handle.info
        judged = judge_beside(handle, info, case, [case], ledger)
        assert (judged.known is not None) is known
        assert judged.outcome.status is Status.TIMED_OUT
        assert (waited(judged.outcome) < deadline) is known
        real, given = BackendHandle.run, list[bool]()

        def run(self: BackendHandle, jobs: list[Job]) -> list[JobResult]:
            given.extend(j.hangs for j in jobs)
            return real(self, jobs)

        monkeypatch.setattr(BackendHandle, "run", run)
        with TwoRuns(lambda _: handle.spec, ledger, deadline) as twice:
            assert not twice(judged, info).nondeterministic
    assert given == [True, True]  # it has just hung, listed or not


def test_what_passed_of_a_failed_model_keeps_what_is_listed_of_it() -> None:
    """Its job is of some of the cases of another one."""
    v = toy.versions["toy/Sum/1"]
    drawn = [c for i in range(64) if not (c := draw_case(v, v.opsets[-1], 0, i, invalid=False)).inst.reruns][:3]
    pack = Pack(toy, 1, drawn, [])
    jobs = pack.jobs("b", 3, 1, hanging={id(c) for c in drawn}, isolate_dtypes=frozenset())
    job = max(jobs, key=lambda j: len(j.tag[2].cases))
    values = [[Outcome(Status.VALUE) for _ in job.tag[2].cases] for _ in job.feeds]
    more = pack.take(JobResult(job, values, masked=[0, 1]))
    assert job.hangs
    assert more is not None
    assert more.hangs
