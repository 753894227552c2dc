"""Packs: what is written, that plain ONNX Runtime and ``judge`` give the verdicts of a run, and damaged files."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.cases.case import Case
from harness.cli import main
from harness.core.instance import Instance
from harness.core.outcome import Verdict
from harness.declare import registry
from harness.engine.engine import Engine
from harness.ledger.loader import load_ledger
from harness.packs.files import opened
from harness.packs.judging import judge_pack
from harness.packs.writing import PackPlan, pack
from harness.session import record_writer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "packs"
# of every kind of answer: plain, of several runs, of any order, drawn at random, a sequence, invalid, known differences
OPS = ["Softmax", "Conv", "ReduceSum*", "Add", "TopK", "Cast", "SplitToSequence", "Acos", "Bernoulli", "Gather", "Div"]


def plan(out, form="native", ops=("Softmax", "Add"), each=4, **more):
    return PackPlan(
        more.pop("dialect", "onnx"), form, out, ops, opsets=more.pop("opsets", (17, None)), each=each, **more
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A native pack, and what plain ONNX Runtime makes of it."""
    root = tmp_path_factory.mktemp("packs")
    packed = pack(plan(root / "pack", ops=OPS, each=10))
    script = [sys.executable, str(EXAMPLES / "run_ort.py"), str(root / "pack"), str(root / "results")]
    got = subprocess.run(script, capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    return root / "pack", root / "results", packed


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small pack with results that are right."""
    root = tmp_path_factory.mktemp("small")
    pack(plan(root / "pack", each=3))
    results = root / "results"
    results.mkdir()
    with opened(root / "pack") as read:
        cases = [case_of(read, e) for e in read.entries]
        arrays = {
            f"{e.id}/{r}/{i}": x.value.view(f"V{x.value.itemsize}") if x.value.dtype.isbuiltin != 1 else x.value
            for e, c in zip(read.entries, cases)
            for r, row in enumerate(c.expected or ())
            for i, x in enumerate(row)
        }
        np.savez(results / "a.npz", **arrays)
        told = {"format": "opconform-results-1", "backend": {"name": "board", "version": "1"}}
        (results / "results.json").write_text(json.dumps(told))
    return root


def case_of(read, entry):
    inst = Instance.from_json(read.json(entry.instance))
    return Case(registry.version_of(inst), inst, entry.index, 1, drawn=True)


def verdicts(path):
    """(id of the instance, verdict, what explains it) of the "case" records."""
    return {(r["id"], r["verdict"], r["known"] or r["ambiguity"]) for r in record_writer.read(path) if r["t"] == "case"}


def test_judge_gives_the_verdicts_of_a_run(made, tmp_path):
    folder, results, packed = made
    judged = judge_pack(folder, results, tmp_path / "judged")
    statuses = json.loads((results / "results.json").read_text())["statuses"]
    own = {id for id, s in statuses.items() if "run_ort.py: " in str(s)}  # types the script does not feed
    assert len(own) < len(packed.entries) / 4
    with opened(folder) as read, backends.create("onnxruntime") as handle:
        cases = {e.id: case_of(read, e) for e in read.entries if e.id not in own}
        engine = Engine([handle], ledger=load_ledger(backends=[handle.info]))
        ran = {id: r for id, c in cases.items() for r in engine.judge([c])}
    wanted = {r.verdict for r in ran.values()}
    assert {Verdict.AGREE, Verdict.KNOWN} <= wanted
    assert any(c.inst.reruns for c in cases.values())
    assert any(c.inst.rule for c in cases.values())
    notable = (Verdict.AGREE, Verdict.UNSUPPORTED, Verdict.UNINFORMATIVE)
    expected = {
        (r.case.inst.id, r.verdict.value, r.known or r.ambiguity) for r in ran.values() if r.verdict not in notable
    }
    assert verdicts(judged.path) == expected
    counts = judged.summary.tally["onnx", "onnxruntime"]
    for v in Verdict:
        n = sum(r.verdict is v for r in ran.values()) + (len(own) if v is Verdict.UNSUPPORTED else 0)
        assert counts[v.value] == n, v


def test_judge_writes_the_report_of_a_run(made, tmp_path, capsys):
    folder, results, _ = made
    main(["judge", str(folder), str(results), "--out", str(tmp_path)])
    assert (tmp_path / "report.html").is_file()
    assert "unexplained of" in capsys.readouterr().out
    records = list(record_writer.read(tmp_path / "records.jsonl"))
    assert records[0]["backends"]["onnxruntime"]["version"]
    assert records[-1]["t"] == "end"
    assert all(f"judge {folder}" in r["replay"] for r in records if r["t"] == "case" and r["replay"])


def test_pack_holds_each_op_version_and_the_hash_of_every_file(made):
    folder, _, packed = made
    counts: dict[Any, Any] = {}
    for e in packed.entries:
        counts[e.key] = counts.get(e.key, 0) + 1
    assert set(counts.values()) == {10}
    assert packed.short == {}
    listed = {n: s for e in packed.entries for n, s in e.files.items()}
    assert {f"{p.relative_to(folder)}" for p in folder.rglob("*") if p.is_file()} == {
        *listed,
        "manifest.json",
        "manifest.sha256",
    }
    assert all(hashlib.sha256((folder / n).read_bytes()).hexdigest() == s for n, s in listed.items())


@pytest.mark.parametrize("form", ["native", "onnx-node"])
def test_pack_is_the_same_for_the_same_seed(tmp_path, form):
    a, b, c = (pack(plan(tmp_path / n / "p.tar.xz", form, seed=s)) for n, s in (("a", 1), ("b", 1), ("c", 2)))
    assert a.sum == b.sum != c.sum
    assert (tmp_path / "a/p.tar.xz").read_bytes() == (tmp_path / "b/p.tar.xz").read_bytes()


def test_archive_is_judged_as_its_folder(small, tmp_path):
    pack(plan(tmp_path / "p.tar.xz", each=3))
    judged = judge_pack(tmp_path / "p.tar.xz", small / "results", tmp_path / "out")
    assert set(judged.summary.tally["onnx", "board"]) <= {"agree", "uninformative"}
    assert judged.changed == []


@pytest.fixture
def copy(small, tmp_path):
    """A copy of the small pack and its results, to be damaged."""
    return Path(shutil.copytree(small, tmp_path / "copy"))


def refused(capsys, *args):
    """The one line of a request that cannot be carried out."""
    assert main(["judge", *map(str, args)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    return err


def edit(path, change):
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def test_damaged_pack_is_one_line(copy, tmp_path, capsys):
    folder, results, out = copy / "pack", copy / "results", tmp_path / "out"
    model = next(folder.glob("cases/*/model.onnx"))
    model.write_bytes(model.read_bytes()[:-1])
    assert "model.onnx has not the hash" in refused(capsys, folder, results, "--out", out)
    model.unlink()
    assert "model.onnx: No such file" in refused(capsys, folder, results, "--out", out)
    (folder / "manifest.json").write_text("{}")
    assert "manifest.json has not the hash" in refused(capsys, folder, results, "--out", out)
    (folder / "manifest.json").unlink()
    assert "not a pack: manifest.json" in refused(capsys, folder, results, "--out", out)
    assert "no such file" in refused(capsys, tmp_path / "nowhere", results, "--out", out)
    (tmp_path / "p.tar.xz").write_bytes(b"\xfd7zXZ\0 and no more")
    assert "not a pack" in refused(capsys, tmp_path / "p.tar.xz", results, "--out", out)
    assert not out.exists()


def test_damaged_results_are_one_line(copy, tmp_path, capsys):
    folder, results, out = copy / "pack", copy / "results", tmp_path / "out"
    index = results / "results.json"

    def told(change):
        shutil.copy(index, tmp_path / "kept")
        edit(index, change)
        line = refused(capsys, folder, results, "--out", out)
        shutil.copy(tmp_path / "kept", index)
        return line

    assert "these are results of the pack 0" in told(lambda o: o.update(pack="0" * 64))
    assert "expected a name" in told(lambda o: o.update(backend={}))
    assert "no field colour" in told(lambda o: o["backend"].update(colour=1))
    assert "acc: expected" in told(lambda o: o["backend"].update(acc=3))
    assert "Nobody-1-000 is no instance" in told(lambda o: o.update(statuses={"Nobody-1-000": "crashed"}))
    assert "expected one of value rejected" in told(lambda o: o.update(statuses={"Softmax-13-000": "fine"}))
    assert "expected format opconform-results-1" in told(lambda o: o.update(format="x"))
    data = (results / "a.npz").read_bytes()
    (results / "a.npz").write_bytes(data[:200])
    assert "not an .npz" in refused(capsys, folder, results, "--out", out)
    (results / "a.npz").unlink()
    assert "no outputs and no statuses" in refused(capsys, folder, results, "--out", out, "--partial")
    assert "neither outputs nor a status of 6 of 6" in refused(capsys, folder, results, "--out", out)
    (results / "x.safetensors").write_bytes(b"nothing")
    assert "not a safetensors file" in refused(capsys, folder, results, "--out", out)
    (results / "x.safetensors").unlink()
    np.savez(results / "b.npz", y=np.zeros(1))
    assert "expected ID/RUN/OUTPUT" in refused(capsys, folder, results, "--out", out)
    assert "expected a folder with results.json" in refused(capsys, folder, tmp_path / "none", "--out", out)
