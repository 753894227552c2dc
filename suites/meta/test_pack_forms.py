"""The forms of packs, read by others: the rules of native in NumPy, ONNX's own backend tests, ONNX Runtime."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.cases.case import draw_case
from harness.compare import judge
from harness.core.errors import UsageError
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.engine import Engine
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.packs import tensors
from harness.packs.bounds import POINTWISE
from harness.packs.covering import Uncoverable, covering, edges
from harness.packs.files import opened
from harness.packs.frozen import freeze
from harness.packs.judging import case_of, judge_pack
from harness.packs.writing import PackPlan, pack

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "packs"
OPS = ["Softmax", "Conv", "ReduceLogSumExp", "Exp", "Add", "MatMul", "Cast", "QuantizeLinear", "Gather", "Acos", "Div"]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def frozen(ops=OPS, n=8, dialect="onnx"):
    """Valid instances of the newest op versions with the rules of their outputs."""
    versions = {v.op: v for v in registry.dialect(dialect).versions.values() if v.op in ops}
    for v in versions.values():
        for index in range(n):
            case = draw_case(v, v.opsets[-1], 5, index, invalid=False)
            if not case.problem:
                yield freeze(case, Ledger())


def beyond(a: np.ndarray) -> np.ndarray:
    """The next numbers away from zero."""
    if a.dtype.kind in "iu":
        return a + np.where(a < np.iinfo(a.dtype).max, 1, 0).astype(a.dtype)
    return np.nextafter(a, np.copysign(np.asarray(np.inf, a.dtype), a)).astype(a.dtype)


def test_rules_of_native_packs_agree_with_the_judge(tmp_path):
    """Each element at, and just beyond, what the stated bound allows."""
    checker, told, same = example("check_native"), example("check_native").POINTWISE, 0
    assert told == POINTWISE
    pack(PackPlan("onnx", "native", tmp_path / "p", OPS, opsets=(17, None), each=8))
    with opened(tmp_path / "p") as read:
        for entry in read.entries:
            case, described = case_of(read, entry), read.json(str(Path(entry.model).parent / "case.json"))
            stored = tensors.read((tmp_path / "p" / Path(entry.model).parent / "tensors.safetensors").read_bytes(), "x")
            if case.inst.rule is not None:
                assert described["must"] == "refuse"
                assert all("outputs" not in run for run in described["runs"])
                continue
            outputs = described["runs"][0]["outputs"]
            if len(outputs) != 1 or outputs[0]["rule"] not in POINTWISE:
                continue
            (e,), (output,) = case.expected[0], outputs
            value = e.value
            if not value.size or output["expected"]["dtype"] not in (
                "f16",
                "f32",
                "f64",
                "bf16",
                "u8",
                "i8",
                "i64",
                "bool",
            ):
                continue
            assert tensors.digest(stored[output["expected"]["tensor"]]) == tensors.digest(value)
            tried = [value]
            if output["rule"] == "within":
                with quiet:
                    low, high = (
                        (stored[output["reference"]] + s * stored[output["bound"]]).astype(value.dtype) for s in (-1, 1)
                    )
                tried += [
                    low,
                    high,
                    beyond(low),
                    beyond(high),
                    np.full_like(value, np.nan),
                    np.full_like(value, np.inf),
                ]
            elif value.dtype.kind in "iu":
                tried += [value + np.ones((), value.dtype)]
            for a in tried:
                passed = checker.passes(a, output, stored)
                for at in list(np.ndindex(value.shape))[:6]:
                    if "open" in output and stored[output["open"]][at]:
                        continue
                    one = value.copy()
                    one[at] = a[at]
                    verdict = judge([e], Outcome(Status.VALUE, [one])).verdict
                    assert passed[at] == (verdict is not Verdict.MISMATCH), (entry.id, at, one[at], output["rule"])
                    same += 1
    assert same > 2000


def test_tolerance_covers_every_derived_bound_and_states_how_loose_it_is():
    """In the reader's own arithmetic, at the last number that the bound allows."""
    covered = left_out = 0
    for f in frozen(n=24):
        pairs = [pair for row in f.outputs for pair in row]
        try:
            line = covering(pairs)
        except Uncoverable:
            left_out += 1
            continue
        for e, rule in pairs:
            if rule.name == "exact" or not e.value.size:
                continue
            for end in edges(e, rule):
                wide = e.value.dtype if e.value.dtype.isbuiltin == 1 else np.float32
                with quiet:
                    a, b = end.astype(wide), e.value.astype(wide)
                    np.testing.assert_allclose(a, b, rtol=line.rtol, atol=line.atol)
            covered += 1
        assert line.loosest >= line.typical >= 1.0 or (line.rtol == line.atol == 0)
    assert covered > 50
    assert left_out


def test_exact_instances_get_no_tolerance():
    rows = [f.outputs[0] for f in frozen(["Gather"]) if f.outputs[0][0][0].dtype.name in ("f32", "i64", "f64")]
    lines = [covering(row) for row in rows if row[0][1].name == "exact"]
    assert lines
    assert {(x.rtol, x.atol) for x in lines} == {(0.0, 0.0)}


def test_onnx_backend_test_agrees_with_the_judge(tmp_path):
    """The onnx package's own loader and runner with ONNX Runtime: what the judge passes, passes there."""
    packed = pack(PackPlan("onnx", "onnx-node", tmp_path / "p", OPS, opsets=(17, None), each=10))
    reader = example("backend_test")
    suite = reader.Pack(reader.Runtime, str(tmp_path / "p")).test_suite
    result = unittest.TestResult()
    suite.run(result)
    failed = {t.id().rpartition(".")[2] for t, _ in [*result.failures, *result.errors]}
    skipped = {t.id().rpartition(".")[2] for t, _ in result.skipped}
    ids = {f"test_{e.id.lower()}_cpu": e for e in packed.entries}
    assert len(ids) == len(packed.entries) > 150
    ran = set(ids) - skipped
    assert len(ran) > 0.6 * len(ids)
    with opened(tmp_path / "p") as read, backends.create("onnxruntime") as handle:
        engine, passed = Engine([handle]), 0
        for name in sorted(ran):
            (r,) = engine.judge([case_of(read, ids[name])])
            if name in failed:
                assert r.verdict not in (Verdict.AGREE, Verdict.UNINFORMATIVE), name
            passed += r.verdict in (Verdict.AGREE, Verdict.UNINFORMATIVE) and name not in failed
    assert passed > 0.5 * len(ids)


def test_tests_of_onnx_runtime_web_agree_with_the_judge(tmp_path):
    """Models made from the .jsonc as its runner makes them: with its thresholds a right answer does not fail."""
    packed = pack(PackPlan("onnx", "ort-jsonc", tmp_path / "p", OPS, opsets=(17, None), each=10))
    reader = example("run_jsonc")
    found = {}
    for file in (tmp_path / "p").glob("ops/*.jsonc"):
        head, _, text = file.read_text().partition("\n")
        assert head.startswith("//")
        found.update({test["name"]: reader.run(test) for test in json.loads(text)})
    assert set(found) == {e.id for e in packed.entries}
    with opened(tmp_path / "p") as read, backends.create("onnxruntime") as handle:
        engine = Engine([handle])
        for entry in packed.entries:
            (r,) = engine.judge([case_of(read, entry)])
            if found[entry.id] == "failed":
                assert r.verdict not in (Verdict.AGREE, Verdict.UNINFORMATIVE), entry.id
    passed = sum(v == "passed" for v in found.values())
    assert passed > 0.7 * len(found) > 100


def test_onnx_runtime_web_reads_its_own_form_and_agrees_with_the_judge(tmp_path):
    web = EXAMPLES.parent / "runners"
    if shutil.which("node") is None or not (web / "node_modules/onnxruntime-web").is_dir():
        pytest.skip("needs node, and npm ci --ignore-scripts in examples/runners")
    packed = pack(
        PackPlan("onnx", "ort-jsonc", tmp_path / "p", ["Add", "Softmax", "ReduceMax"], opsets=(17, 22), each=4)
    )
    script = ["node", str(EXAMPLES / "run_jsonc.mjs"), str(tmp_path / "p")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {e.id for e in packed.entries}
    failed = [e for e in packed.entries if found[e.id] == "failed"]
    with opened(tmp_path / "p") as read, backends.create(f"exec:node {web / 'ort_web.mjs'}") as handle:
        engine = Engine([handle])
        for entry in failed:
            (r,) = engine.judge([case_of(read, entry)])
            assert r.verdict not in (Verdict.AGREE, Verdict.UNINFORMATIVE), entry.id
    assert sum(v == "passed" for v in found.values()) > 0.7 * len(found) > 10


def test_the_sample_of_tflite_gives_the_verdicts_of_a_run(tmp_path):
    packed = pack(PackPlan("tflite", "native", tmp_path / "p", ["SOFTMAX", "RESHAPE", "NEG"], each=4))
    script = [sys.executable, str(EXAMPLES / "run_tflite.py"), str(tmp_path / "p"), str(tmp_path / "r")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    judged = judge_pack(tmp_path / "p", tmp_path / "r", tmp_path / "out")
    counts = judged.summary.tally["tflite", "litert-ref"]
    statuses = json.loads((tmp_path / "r/results.json").read_text())["statuses"]
    own = {id for id, s in statuses.items() if "a value of " in str(s)}  # types that the script does not feed
    mine = Counter({"unsupported": len(own)})
    with opened(tmp_path / "p") as read, backends.create("litert-ref") as handle:
        engine = Engine([handle], ledger=load_ledger())
        for entry in (e for e in packed.entries if e.id not in own):
            mine.update(r.verdict.value for r in engine.judge([case_of(read, entry)]))
    assert counts["agree"] > 10
    assert {k: n for k, n in counts.items() if n} == dict(mine)


def test_the_sample_of_mil_needs_macos(tmp_path):
    if sys.platform == "darwin":
        pytest.skip("Core ML is there")
    script = [sys.executable, str(EXAMPLES / "run_mil.py"), str(tmp_path / "p"), str(tmp_path / "r")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"run_mil.py: Core ML needs macOS, this is {sys.platform}\n"


def test_packages_of_mil_compute_what_is_expected(tmp_path):
    """Read back from the .mlpackage, and run by the reference as a whole program."""
    packed = pack(PackPlan("mil", "native", tmp_path / "p", ["softmax", "reduce_sum", "split", "less"], each=6))
    again = pack(PackPlan("mil", "native", tmp_path / "q", ["softmax", "reduce_sum", "split", "less"], each=6))
    assert packed.sum == again.sum
    mil, same, results = registry.dialect("mil"), 0, {}
    with opened(tmp_path / "p") as read:
        for entry in packed.entries:
            case = case_of(read, entry)
            if case.inst.rule is not None:
                continue
            folder = (tmp_path / "p" / entry.model).parent
            told = read.json(str(Path(entry.model).parent / "case.json"))["runs"][0]
            stored = tensors.read((folder / "tensors.safetensors").read_bytes(), "")
            inputs = {x["name"]: stored[x["value"]["tensor"]] for x in told["inputs"]}
            got = mil.run_model(tmp_path / "p" / entry.model, inputs or {"no_input": np.zeros(1, np.float32)})
            results.update({f"{entry.id}/0/{o['name']}": v for o, v in zip(told["outputs"], got, strict=True)})
            same += 1
    (tmp_path / "r").mkdir()
    np.savez(tmp_path / "r" / "a.npz", **results)
    told = {"format": "opconform-results-1", "backend": {"name": "interpreter", "validates": False}}
    refused = {e.id: "rejected" for e in packed.entries if e.rule is not None}
    (tmp_path / "r" / "results.json").write_text(json.dumps({**told, "statuses": refused}))
    judged = judge_pack(tmp_path / "p", tmp_path / "r", tmp_path / "out")
    counts = judged.summary.tally["mil", "interpreter"]
    assert set(counts) <= {"agree", "uninformative", "unsupported", "ambiguous"}, counts
    assert same > 15
    assert any(e.more for e in packed.entries)


def test_a_dialect_without_a_file_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match="passes has no model files for others"):
        pack(PackPlan("passes", "native", tmp_path / "p"))


@pytest.mark.parametrize(("dialect", "suffix"), [("tflite", ".tflite"), ("nn", ".mlmodel")])
def test_other_dialects_have_their_model_files(tmp_path, dialect, suffix):
    packed = pack(PackPlan(dialect, "native", tmp_path / "p", each=1, families=["reduction"]))
    assert packed.entries
    assert all(e.model.endswith(suffix) for e in packed.entries)
