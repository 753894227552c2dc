"""One loaded model, several runs: other extents and other data, and who is told when one of them goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case, fill
from harness.cases.reruns import _same, args_of, at_run, up_to
from harness.cases.selection import units
from harness.core.dtypes import F32
from harness.core.errors import FormatError, Unsupported
from harness.core.instance import SAME, Arg, Graph, Instance, Node
from harness.core.outcome import Verdict
from harness.declare import OpVersion, registry
from harness.engine.batching import build
from harness.engine.engine import Engine
from harness.engine.recheck import SURE, Recheck
from harness.evidence.failure import Evidence, load_instance
from harness.generate.recipes import arrays_of
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from suites.meta.toy import Toy, toy

EVERY = [v for name in ("onnx", "tflite") for v in registry.dialect(name).versions.values()]


def rerun_cases(versions: list[OpVersion], cases: int = 40, opset: Any = None) -> list[Case]:
    drawn = (
        draw_case(v, opset or v.opsets[-1], 3, i, invalid=False, lazy=True) for v in versions for i in range(cases)
    )
    return [c for c in drawn if c.inst.reruns]


def shapes(args: dict[str, Any]) -> list[tuple[int, ...]]:
    return [x.shape for a in args.values() for x in (a if isinstance(a, list) else [a])]


def test_other_extents_are_valid_and_change_nothing_else() -> None:
    some = rerun_cases(EVERY[::7], 30)
    assert len(some) > 100
    assert len({c.version.op for c in some}) > 40
    for c in some:
        first, other = c.inst, at_run(c.inst, 1)
        assert c.expected is not None, (c.inst.dumps(), c.problem)
        assert not c.problem, (c.inst.dumps(), c.problem)
        assert len(c.draws) == len(c.expected) == 2
        assert first.args.keys() == other.args.keys()
        assert shapes(first.args) != shapes(other.args)
        for slot, a in first.args.items():
            many, others = (x if isinstance(x, list) else [x] for x in (a, other.args[slot]))
            for x, y in zip(many, others, strict=True):
                assert (x.dtype, x.kind, x.const, len(x.shape)) == (y.dtype, y.kind, y.const, len(y.shape))
                if x.const:
                    assert x == y
                if c.version.dialect.declares_extents:  # what changes is symbolic in the model
                    assert {i for i, (n, m) in enumerate(zip(x.shape, y.shape)) if n != m} <= set(x.dynamic)


def test_operands_of_one_tensor_have_its_other_extents() -> None:
    """Two slots that the model gives one tensor are given one in every run."""
    v = registry.dialect("onnx").versions["onnx/Add/13"]
    some = [draw_case(v, 13, seed, i, lazy=True).inst for seed in (24112715, 3) for i in range(2000)]
    both = [inst for inst in some if SAME in inst.attrs and inst.reruns]
    assert len(both) > 3
    for inst in both:
        assert at_run(inst, 1).shared() == inst.shared(), inst.dumps()


@pytest.mark.parametrize("op", ["IF", "WHILE", "STABLEHLO_COMPOSITE"])
def test_blocks_run_at_other_extents(op: str) -> None:
    """What a block declares of its tensors is all that differs, and the answers are those of an instance of its own."""
    some = rerun_cases([registry.dialect("tflite").versions[f"tflite/{op}/1"]], 400)
    assert len(some) > 12
    for c in some:
        assert c.expected is not None, (c.inst.dumps(), c.problem)
        assert not c.problem, (c.inst.dumps(), c.problem)
        first, second = (tuple(np.shape(e.value) for e in row) for row in c.expected)
        assert list(map(len, first)) == list(map(len, second))
    assert any(a.value.shape != b.value.shape for c in some for a, b in zip(*c.expected or ()))


def block(value: int, extent: int, size: int) -> Graph:
    """y = reshape(x + value, [size]), of an x that it declares with this extent."""
    nodes = [Node("ADD", {"a": "x", "b": "c"}, ["s"]), Node("RESHAPE", {"x": "s"}, ["y"], {"shape": [size]})]
    return Graph(
        [("x", Arg(F32, (extent,)))],
        nodes,
        ["y"],
        {"c": np.array([value], np.float32)},
        {"tensors": {"s": {"dtype": "f32", "shape": [extent]}}},
    )


def test_blocks_that_differ_by_more_than_declared_extents_are_others() -> None:
    here = {"body": block(1, 3, 3), "@outputs": [{"dtype": "f32", "shape": [3]}]}
    assert _same(here, {"body": block(1, 5, 3), "@outputs": [{"dtype": "f32", "shape": [5]}]})
    assert not _same(here, {**here, "body": block(2, 3, 3)})
    assert not _same(here, {**here, "body": block(1, 3, 5)})
    assert not _same(here, {**here, "@outputs": [{"dtype": "f32", "shape": [3, 1]}]})
    assert not _same(here, {**here, "@outputs": [{"dtype": "f16", "shape": [3]}]})


def test_a_drawn_case_is_the_same_again() -> None:
    for c in rerun_cases(EVERY[::40]):
        again = draw_case(c.version, c.inst.opset, 3, c.index, invalid=False)
        assert again.inst.dumps() == c.inst.dumps()


def test_reruns_travel_in_json() -> None:
    c = rerun_cases(EVERY[::20])[0]
    text = c.inst.dumps()
    back = Instance.from_json(json.loads(text))
    assert back.dumps() == text
    assert json.loads(text)["format"] == 2
    assert json.loads(at_run(c.inst, 1).dumps())["format"] == 1
    with pytest.raises(FormatError):
        Instance.from_json({**json.loads(text), "format": 3})
    with pytest.raises(FormatError, match=r"reruns: expected slots among .*, got \['nowhere'\]"):
        Instance.from_json({**json.loads(text), "reruns": [{"nowhere": {"dtype": "f32", "shape": []}}]})
    short = json.loads(text)
    slot = next(s for s, a in short["reruns"][0].items() if isinstance(a, dict))
    short["reruns"][0][slot]["values"] = [1] * 9999
    assert fill(c.version, Instance.from_json(short)).problem.startswith("data: FormatError")


def test_each_run_is_an_instance_of_its_own() -> None:
    """What is told of one run alone has that run's data, beyond the named runs too."""
    for c in rerun_cases(EVERY[::40]) + [
        Case(v, draw_case(v, v.opsets[-1], 1, 0, invalid=False).inst, 0, 3, drawn=True) for v in EVERY[::50]
    ]:
        c.count = 3
        c._draws = None
        for r in range(len(c.draws)):
            alone, through = arrays_of(at_run(c.inst, r)), fill(c.version, up_to(c.inst, r)).draws[-1]
            for slot, a in c.draws[r].items():
                for x, y, z in zip(*(v if isinstance(v, list) else [v] for v in (a, alone[slot], through[slot]))):
                    if isinstance(x, np.ndarray):
                        assert x.tobytes() == y.tobytes() == z.tobytes(), (c.inst.dumps(), r, slot)


def test_what_differs_between_runs_is_fed() -> None:
    """What a builder writes into the model is the same in all runs of it."""
    for c in [
        Case(v, draw_case(v, v.opsets[-1], 8, i, invalid=False).inst, i, 2, drawn=True)
        for v in EVERY[::3]
        for i in (9, 10)
    ]:
        try:
            model = build(c.version.dialect, [c])
        except Unsupported:
            continue
        fed = {(slot, k) for _, slot, k in model.inputs[0]}
        for slot in c.inst.shared():  # the model feeds another slot's tensor to it
            name, _, k = slot.partition("#")
            fed.add((name, int(k) if k else None))
        for other in c.draws[1:]:
            for slot, x in other.items():
                many = isinstance(c.inst.args[slot], list)
                pairs = zip(x, c.draws[0][slot]) if many else [(x, c.draws[0][slot])]
                for k, (now, before) in enumerate(pairs):
                    assert (slot, k if many else None) in fed or now is before or bits(now) == bits(before)


def test_runs_beyond_the_named_ones_take_turns() -> None:
    inst = next(c.inst for c in rerun_cases(EVERY[::40]))
    assert shapes(args_of(inst, 2)) == shapes(inst.args)
    assert shapes(args_of(inst, 3)) == shapes(args_of(inst, 1))
    assert args_of(inst, 2) != inst.args or all(not isinstance(a, list) and a.const for a in inst.args.values())


def bits(x: np.ndarray) -> Any:
    return x.tolist() if x.dtype == object else x.tobytes()


# -- what is told of a backend that goes wrong in a later run


def run(
    name: str, tmp: Path, monkeypatch: pytest.MonkeyPatch, draws: int = 1, ledger: Ledger | None = None
) -> tuple[Any, list[dict[str, Any]]]:
    monkeypatch.setattr(Toy, "rerun_every", 2)
    monkeypatch.setattr("harness.declare.registry.version_of", toy.version_of)
    spec = f"suites.meta.toy_backends:{name}"
    with backends.create(spec, deadline=2.0) as main, backends.create(spec, deadline=2.0) as spare:
        out: list[dict[str, Any]] = []
        engine = Engine(
            [main],
            draws=draws,
            sink=out.append,
            on_failure=Evidence(lambda _: spare, tmp),
            ledger=ledger,
            recheck=Recheck(lambda _: spare, ledger),
        )
        summary = engine.run(units(list(toy.versions.values()), 96))
        return summary, [r for r in out if r["t"] == "case"]


def judge(path: Path, name: str) -> Verdict:
    inst = load_instance(path)
    with backends.create(f"suites.meta.toy_backends:{name}", deadline=2.0) as handle:
        (result,) = Engine([handle]).judge([fill(toy.version_of(inst), inst)])
        return result.verdict


def test_a_right_backend_stays_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for draws in (1, 4):
        summary, records = run("Right", tmp_path, monkeypatch, draws)
        assert not summary.failures, (summary.problems, records[:1])
        assert not summary.problems, (summary.problems, records[:1])
        assert not records, (summary.problems, records[:1])


@pytest.mark.parametrize(("name", "verdict"), [("Keeps", "mismatch"), ("KeepsAndDies", "crashed")])
def test_a_failure_that_needs_the_run_before_is_reported_with_it(
    name: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, records = run(name, tmp_path, monkeypatch)
    assert records
    assert {r["verdict"] for r in records} == {verdict}
    assert {r["key"].split("/")[1] for r in records} == {"MatMul"}
    for r in records:
        assert len((r["minimal"] or r["instance"])["reruns"]) == 1, r
    first = records[0]
    assert "run 2 of the same loaded model" in first["notation"]
    assert all("values" in a for run in first["minimal"]["reruns"] for a in run.values()), first["minimal"]
    folder = Path(first["folder"])
    assert (folder / "inputs-0.npz").exists()
    assert judge(folder / "instance.json", name) is Verdict(verdict)
    assert judge(folder / "instance.json", "Right") is Verdict.AGREE
    assert summary.failures == len(records)


def test_a_listed_difference_may_ask_for_a_second_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy.toml").write_text("""
[[known]]
id = "keeps-the-first-extent"
backend = "*"
op = "toy/MatMul"
when = "runs > 1"
reason = "goes on with the inner extent of the first run"
clause = "toy MatMul"
""")
    summary, records = run("Keeps", tmp_path, monkeypatch, ledger=load_ledger([tmp_path]))
    assert not summary.failures
    assert records
    assert {(r["verdict"], r["known"]) for r in records} == {("known", "keeps-the-first-extent")}


@pytest.mark.parametrize("name", ["DroppedNan", "OffByOne"])
def test_a_failure_of_one_run_alone_is_reported_for_that_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, records = run(name, tmp_path, monkeypatch, draws=4)
    assert len(records) > 5
    assert {r["verdict"] for r in records} == {"mismatch"}
    found: Counter[Verdict] = Counter()
    for i, r in enumerate(records):
        if i < SURE:
            assert "reruns" not in r["instance"]
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(r["instance"]))
        found[judge(path, name)] += 1
    assert set(found) == {Verdict.MISMATCH}, found


def test_the_script_of_a_folder_runs_all_of_them(tmp_path: Path) -> None:
    """A failure that takes a run before it, on a real runtime: the script asks for both and compares the last."""
    version = registry.dialect("onnx").versions["onnx/Relu/14"]
    case = next(c for c in rerun_cases([version], 200, 14))
    from harness.cases.result import Result
    from harness.compare import judge as compare
    from harness.core.outcome import Outcome, Status
    from harness.evidence.repro_folder import write_folder

    whole = fill(version, case.inst)
    assert whole.expected is not None
    (last,) = whole.expected[1]
    wrong = Outcome(Status.VALUE, [last.value + np.ones((), last.value.dtype)])
    result = Result(whole, "onnxruntime", Verdict.MISMATCH, wrong, compare([last], wrong), 1)
    folder = write_folder(tmp_path, result, "0")
    assert sorted(p.name for p in folder.glob("inputs*")) == ["inputs-0.npz", "inputs.npz"]
    done = subprocess.run([sys.executable, str(folder / "repro.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 different" in done.stdout, done.stderr
    for name in ("expected.npz", "wide.npz"):
        saved = dict(np.load(folder / name))
        np.savez(folder / name, **{k: v + np.ones((), v.dtype) for k, v in saved.items()})
    assert subprocess.run([sys.executable, str(folder / "repro.py")], capture_output=True).returncode == 1
