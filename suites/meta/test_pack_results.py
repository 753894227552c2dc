"""Results of a pack: every kind of file, statuses, and what the verdicts are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness.cli import main
from harness.core.dtypes import of
from harness.packs import tensors
from harness.packs.files import opened
from harness.packs.judging import case_of, judge_pack
from harness.packs.onnx_node import proto
from harness.packs.writing import PackPlan, pack
from harness.session import record_writer

OPS = ["Softmax", "Add", "SplitToSequence", "Cast", "StringConcat"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A pack, and the right outputs by ID/RUN/OUTPUT."""
    folder = tmp_path_factory.mktemp("results") / "pack"
    pack(PackPlan("onnx", "native", folder, OPS, opsets=(17, None), each=8))
    right = {}
    with opened(folder) as read:
        for entry in read.entries:
            for r, row in enumerate(case_of(read, entry).expected or ()):
                right.update({f"{entry.id}/{r}/{i}": e.value for i, e in enumerate(row)})
        entries = read.entries
    stored = {k.split("/")[0] for k, _ in flat(right)}
    NOTHING_STORED.update(e.id for e in entries if e.rule is None and e.id not in stored)
    return folder, entries, right


NOTHING_STORED: set[str] = set()  # instances all of whose outputs are empty sequences


def results(path, entries, backend=None, **statuses):
    """Write results.json; instances that must be refused are."""
    path.mkdir(parents=True, exist_ok=True)
    told = {e.id: "rejected" for e in entries if e.rule is not None}
    told |= {e.id: "value" for e in entries if e.id in NOTHING_STORED} | statuses
    about = {"name": "board", "version": "1", **(backend or {})}
    (path / "results.json").write_text(
        json.dumps({"format": "opconform-results-1", "backend": about, "statuses": told})
    )


def flat(right):
    """The arrays, those of sequences one by one."""
    for key, v in right.items():
        for k, x in [(f"{key}/{i}", x) for i, x in enumerate(v)] if isinstance(v, list) else [(key, v)]:
            yield k, np.asarray(x)


def as_npz(path, right):
    def plain(a):
        if of(a).kind == "s":
            return a.astype(str)
        return a if a.dtype.isbuiltin == 1 else a.view(f"V{a.dtype.itemsize}")

    np.savez(path / "a.npz", **{k: plain(a) for k, a in flat(right)})


def as_safetensors(path, right):
    whole = dict(flat(right))
    texts = {k: a.astype(str) for k, a in whole.items() if of(a).kind == "s"}
    numbers = {k: a for k, a in whole.items() if k not in texts}
    half = len(numbers) // 2
    for name, keys in (("a", list(numbers)[:half]), ("b", list(numbers)[half:])):
        (path / f"{name}.safetensors").write_bytes(tensors.write({k: numbers[k] for k in keys}))
    np.savez(path / "texts.npz", **texts)


def as_pb(path, right):
    for key, v in right.items():
        id, run, k = key.split("/")
        folder = path / id / f"test_data_set_{run}"
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(v, list) and not v:
            from onnx import SequenceProto

            (folder / f"output_{k}.pb").write_bytes(SequenceProto(elem_type=1).SerializeToString())
        else:
            (folder / f"output_{k}.pb").write_bytes(proto(v, ""))


@pytest.mark.parametrize("write", [as_npz, as_safetensors, as_pb])
def test_right_outputs_agree_in_every_kind_of_file(made, tmp_path, write):
    folder, entries, right = made
    results(tmp_path / "r", entries)
    write(tmp_path / "r", right)
    judged = judge_pack(folder, tmp_path / "r", tmp_path / "out")
    counts = judged.summary.tally["onnx", "board"]
    assert set(counts) <= {"agree", "uninformative"}, counts
    assert sum(counts.values()) == len(entries)


def verdict_of(tmp_path, id, entries):
    """The verdict of the record about an instance."""
    key = next(e for e in entries if e.id == id)
    found = [r for r in record_writer.read(tmp_path / "out" / "records.jsonl") if r["t"] == "case"]
    return [(r["verdict"], r["message"]) for r in found if r["key"] == key.key]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("crashed", "crashed"), ("timed_out", "timed_out"), ("rejected", "wrongly_rejected"), ("unsupported", None)],
)
def test_statuses_are_verdicts(made, tmp_path, status, verdict):
    folder, entries, right = made
    id = next(e.id for e in entries if e.key.startswith("onnx/Softmax") and e.rule is None)
    results(tmp_path / "r", entries, **{id: {"status": status, "message": "no such kernel"}})
    as_npz(tmp_path / "r", {k: v for k, v in right.items() if not k.startswith(f"{id}/")})
    judged = judge_pack(folder, tmp_path / "r", tmp_path / "out")
    counts = judged.summary.tally["onnx", "board"]
    assert counts[verdict or "unsupported"] == 1
    assert verdict_of(tmp_path, id, entries) == ([] if verdict is None else [(verdict, "no such kernel")])


def test_an_answer_to_an_instance_that_breaks_a_rule_is_wrong(made, tmp_path):
    folder, entries, right = made
    broken = next(e for e in entries if e.rule is not None)
    results(tmp_path / "r", [e for e in entries if e.id != broken.id])
    as_npz(tmp_path / "r", {**right, f"{broken.id}/0/0": np.zeros(1, np.float32)})
    judged = judge_pack(folder, tmp_path / "r", tmp_path / "out")
    assert judged.summary.tally["onnx", "board"]["wrongly_accepted"] == 1


def test_wrong_values_types_and_missing_outputs_are_mismatches(made, tmp_path, capsys):
    folder, entries, right = made
    ids = [e.id for e in entries if e.key.startswith("onnx/Softmax") and e.rule is None]
    answers = [right[f"{id}/0/0"] for id in ids]
    keys = [f"{id}/0/0" for id, a in zip(ids, answers) if a.dtype in (np.float32, np.float64) and a.size]
    wrong = dict(right)
    wrong[keys[0]] = right[keys[0]] + 1
    wrong[keys[1]] = right[keys[1]].astype(np.float16)
    results(tmp_path / "r", entries)
    as_npz(tmp_path / "r", wrong)
    code = main(["judge", str(folder), str(tmp_path / "r"), "--out", str(tmp_path / "out")])
    assert code == 1
    records = [r for r in record_writer.read(tmp_path / "out" / "records.jsonl") if r["t"] == "case"]
    assert {r["kind"] for r in records if r["verdict"] == "mismatch"} == {"value", "dtype"}
    assert "2 unexplained of" in capsys.readouterr().out
    assert all((Path(r["folder"]) / "repro.py").is_file() for r in records if r["folder"])


def test_a_refusal_of_what_the_backend_does_not_claim_is_no_failure(made, tmp_path):
    folder, entries, right = made
    id = next(e.id for e in entries if e.key.startswith("onnx/Softmax") and e.rule is None)
    drawn = {of(np.asarray(a)).name for a in right.values() if not isinstance(a, list)}
    others = sorted(drawn - {of(right[f"{id}/0/0"]).name, "str"})
    results(tmp_path / "r", entries, {"dtypes": others}, **{id: "rejected"})
    as_npz(tmp_path / "r", {k: v for k, v in right.items() if not k.startswith(f"{id}/")})
    counts = judge_pack(folder, tmp_path / "r", tmp_path / "out").summary.tally["onnx", "board"]
    assert counts["agree"]
    assert counts["wrongly_rejected"] == 0


def test_partial_results_are_judged_on_demand(made, tmp_path):
    folder, _, right = made
    results(tmp_path / "r", [])
    as_npz(tmp_path / "r", dict(list(right.items())[:5]))
    judged = judge_pack(folder, tmp_path / "r", tmp_path / "out", partial=True)
    assert 0 < judged.summary.cases <= 5


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["onnx", "tflite", "mil", "nn"])
def test_a_whole_dialect_has_every_op_version_and_stays_below_50_megabytes(tmp_path, dialect):
    out = tmp_path / "p.tar.xz"
    packed = pack(PackPlan(dialect, "native", out))
    assert out.stat().st_size < 50_000_000
    lacking = {k: why for k, why in packed.short.items() if dialect != "mil" or not why[1].startswith("no Package")}
    assert lacking == {}
    assert len(packed.entries) >= 10 * (packed.op_versions - len(packed.short))
