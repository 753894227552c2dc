"""Past one machine: slices of a campaign brought home complete, records as tables."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import reports
from harness.cases.selection import Selection
from harness.cli import main
from harness.core.errors import UsageError
from harness.session import cluster
from harness.session.session import Plan
from suites.meta import golden

PLAN = Plan(Selection(["nn"], ops=["activation.*"]), ["nn-definition"], cases=2, minimize=0.0)


class FakeRay:
    """The calls that the driver makes, carried out in this process when they are asked for; Ctrl-C after ``slices``."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slices = 1

    def init(self, **_: Any) -> None: ...

    def shutdown(self) -> None: ...

    def remote(self, **_: Any) -> Any:
        def wrap(function: Any) -> Any:
            def later(plan: Plan, name: str, *rest: Any) -> Any:
                self.asked.append(name)
                return lambda: function(plan, name, *rest)

            return SimpleNamespace(remote=later)

        return wrap

    def cancel(self, task: Any, force: bool) -> None: ...

    def wait(self, tasks: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        if len(self.asked) > self.slices:
            raise KeyboardInterrupt
        return tasks[:num_returns], tasks[num_returns:]

    def get(self, task: Any) -> Any:
        return task()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_slices_are_copied_back_and_the_next_run_resumes(ray: FakeRay, tmp_path: Path) -> None:
    plan, ray.slices = replace(PLAN, out=tmp_path), 2
    out = cluster.run(plan, "local", jobs=1, seconds=300.0)
    assert out.interrupted
    assert len(out.records) == 2
    assert ray.asked == ["round-0-part-1-of-1", "round-1-part-1-of-1", "round-2-part-1-of-1"]
    seeds = [json.loads(p.read_text().split("\n", 1)[0])["seed"] for p in out.records]
    assert seeds == [0, 1]
    summary = reports.summarise([str(p) for p in out.records])
    assert summary.judged
    assert not summary.bad
    ray.asked.clear()
    cluster.run(plan, "local", jobs=1, seconds=300.0)
    assert ray.asked[0] == "round-2-part-1-of-1"  # the one that was under way is asked for again


def test_a_failure_of_a_slice_is_replayable_after_copying(ray: FakeRay, tmp_path: Path) -> None:
    plan = replace(PLAN, out=tmp_path, names=["suites.meta.test_scale:Wrong"])
    out = cluster.run(plan, "local", jobs=1, seconds=300.0)
    cases = reports.summarise([str(p) for p in out.records]).cases
    placed = [c for c in cases if c["folder"]]
    assert placed
    for c in placed:
        assert (Path(c["folder"]) / "instance.json").is_file(), c["folder"]
        assert Path(c["replay"].split()[2]).is_file(), c["replay"]


class Wrong:
    """Refuses everything."""

    name = "wrong"
    formats = ("nn",)

    def version(self) -> str:
        return "1"

    def load(self, model: bytes, format: str) -> Any:
        raise ValueError("not today")

    def run(self, handle: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}


STARTS_IN_A_SECOND = """
import time
from suites.meta.toy_backends import Right
time.sleep(1)
class Slow(Right):
    name = "slow"
"""


def test_a_last_slice_too_short_for_a_start_is_no_problem(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_start.py").write_text(STARTS_IN_A_SECOND)
    monkeypatch.syspath_prepend(tmp_path)
    first = cluster.run(replace(PLAN, out=tmp_path), "local", jobs=1, seconds=300.0)
    assert first.interrupted
    ray.slices = 10
    out = cluster.run(replace(PLAN, out=tmp_path, names=["slow_start:Slow"], seconds=0.5), "local", jobs=1)
    assert out.problem is None
    assert out.records == first.records


def test_a_slice_that_cannot_run_states_why(ray: FakeRay, tmp_path: Path) -> None:
    plan = replace(PLAN, out=tmp_path, names=["no.such.module:Backend"])
    with pytest.raises(UsageError, match=r"ray: round-0-part-1-of-1: .*no\.such\.module"):
        cluster.run(plan, "local", jobs=1)


def test_a_wrong_name_is_reported_before_a_cluster_is_started(ray: FakeRay, tmp_path: Path) -> None:
    ray.init = lambda **_: pytest.fail("started")
    with pytest.raises(UsageError, match="no_such_backend"):
        cluster.run(replace(PLAN, out=tmp_path, names=["no_such_backend"]), "local", jobs=1)


def test_without_ray_it_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["campaign", "--ray", "--dialect", "nn", "--seconds", "1"]) == 2
    assert capsys.readouterr().err == "opconform: --ray needs Ray: pip install 'opconform[scale]'\n"


@pytest.mark.slow
def test_a_real_cluster_of_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="extra `scale` is not installed")
    plan = replace(PLAN, out=tmp_path, seconds=20.0)
    out = cluster.run(plan, "local", jobs=2, seconds=8.0)
    assert {p.parent.name for p in out.records} >= {"round-0-part-1-of-2", "round-0-part-2-of-2"}
    assert reports.summarise([str(p) for p in out.records]).judged


def test_tables_hold_what_the_report_counts(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="extra `scale` is not installed")
    pytest.importorskip("pyarrow", reason="extra `scale` is not installed")
    records = golden.write(tmp_path / "records.jsonl", golden.records(cases=1000, seed=3))
    outcomes, cases = reports.export(records, tmp_path / "tables")
    summary = reports.summarise(records)
    rows = duckdb.sql(f"select verdict, sum(n)::bigint from '{outcomes}' group by 1").fetchall()
    assert dict(rows) == summary.totals
    (n,) = duckdb.sql(f"select count(*) from '{cases}' where verdict = 'mismatch'").fetchall()[0]
    assert n == sum(c["verdict"] == "mismatch" for c in summary.cases)
    (text,) = duckdb.sql(f"select instance from '{cases}' limit 1").fetchall()[0]
    assert json.loads(text)["op"]


def test_export_without_pyarrow_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "t")]) == 2
    assert capsys.readouterr().err == "opconform: export needs pyarrow: pip install 'opconform[scale]'\n"
