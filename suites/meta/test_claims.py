"""Claims are hard: what is claimed is asked, the rest is neither drawn nor counted; a user selects in the same way."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cases.case import draw_case
from harness.cases.wanted import beyond, draw_within
from harness.compare import judge
from harness.core.dtypes import BY_NAME
from harness.core.errors import FormatError
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.session.check_runner import hold
from harness.tolerance.claimed import Accuracy
from harness.workers.claims import EVERYTHING, Claims, claims_of, common
from harness.workers.info import ATTRIBUTES
from harness.workers.worker import ProtocolError
from suites.meta.test_backend_info import read
from suites.meta.test_cli import Cli, env, one_line, opconform  # noqa: F401 - fixtures

MODULE = "suites.meta.claim_backends"


def drawn(path: Path) -> Counter[str]:
    """Outcomes by op in the records of a run, those of unsupported instances apart."""
    out: Counter[str] = Counter()
    for line in (path / "records.jsonl").read_text().splitlines():
        r = json.loads(line)
        for _, dtype, verdict, n in r["tally"] if r["t"] == "batch" else ():
            out[r["key"].split("/")[1]] += n
            out[f"dtype {dtype}"] += n
            out[verdict] += n
    return out


def test_a_run_draws_only_what_a_backend_claims(opconform: Cli) -> None:  # noqa: F811
    done = opconform.run(f"{MODULE}:Young", "--cases", "64", "--no-invalid", "--out", "out")
    assert done.returncode == 0, done.stdout
    seen = drawn(opconform.folder / "out")
    assert seen["Add"] > 40, "what is beyond the claims is drawn anew, not lost"
    assert (seen["Flip"], seen["Sum"], seen["dtype i32"], seen["unsupported"]) == (0, 0, 0, 0)
    assert set(seen) - {"Add", "Max", "MatMul", "dtype f32", "agree", "uninformative"} == set()


def test_claimed_instances_run(opconform: Cli) -> None:  # noqa: F811
    done = opconform.run(f"{MODULE}:Boastful", "--cases", "64")
    assert done.returncode == 1
    assert "wrongly rejected" in done.stdout


def test_each_backend_runs_within_its_own_claims(opconform: Cli) -> None:  # noqa: F811
    both = ("--backend", "suites.meta.toy_backends:Right")
    done = opconform.run(f"{MODULE}:Young", *both, "--cases", "64", "--no-invalid", "--out", "out")
    assert done.returncode == 0, done.stdout
    tally: Counter[tuple[str, str]] = Counter()
    for line in (opconform.folder / "out/records.jsonl").read_text().splitlines():
        r = json.loads(line)
        for backend, _, _, n in r["tally"] if r["t"] == "batch" else ():
            tally[backend, r["key"].split("/")[1]] += n
    assert tally["right", "Flip"] > 30
    assert tally["young", "Flip"] == 0
    assert 0 < tally["young", "Add"] < tally["right", "Add"]


def test_an_approximation_may_be_off_by_what_it_claims(opconform: Cli) -> None:  # noqa: F811
    assert opconform.run(f"{MODULE}:Narrow", "--op", "Add", "--cases", "32").returncode == 0


def test_a_run_in_which_nothing_was_judged_is_no_success(opconform: Cli) -> None:  # noqa: F811
    done = opconform.run(f"{MODULE}:Unclaimed", "--cases", "8")
    assert done.returncode == 2, done.stdout
    assert "nothing was judged: no instance that was asked for is within the claims" in done.stderr
    assert '"opsets": [7, 9]' in done.stderr
    assert opconform("report", ".opconform/run").returncode == 2


def test_only_unsupported_outcomes_are_no_success(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "gaps.py").write_text(
        "from suites.meta.toy_backends import Right\n"
        "class Gaps(Right):\n"
        "    name = 'gaps'\n"
        "    def load(self, model, format):\n"
        "        raise NotImplementedError('no op at all')\n"
    )
    done = opconform.run("gaps:Gaps", "--cases", "8")
    assert done.returncode == 2, done.stdout
    assert "nothing was judged" in done.stderr
    assert "no op at all" in done.stderr


def test_a_malformed_claim_is_one_line(opconform: Cli) -> None:  # noqa: F811
    one_line(opconform.run(f"{MODULE}:Malformed"), "limits: expected fields among max_rank", '"rank"')


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("limits", [4], "limits: expected an object"),
        ("limits", {"max_rank": -1}, "limits: max_rank: expected a whole number, 0 or more, got -1"),
        ("limits", {"static": "no"}, "limits: static: expected true or false"),
        ("limits", {"constant": ["W"]}, "limits: constant: 0: expected OP:SLOT"),
        ("unsupported_ops", "Loop", "unsupported_ops: expected a list"),
        ("absolute", {"Erf": -1}, "absolute: Erf: expected a number, 0 or more"),
        ("absolute", ["Erf"], "absolute: expected {op: absolute error}"),
    ],
)
def test_a_malformed_claim_is_reported(attribute: str, value: Any, text: str) -> None:
    with pytest.raises(FormatError) as e:
        read({attribute: value})
    assert str(e.value).startswith(text)


GOOD = {
    "max_rank": 4,
    "min_rank": 1,
    "empty": False,
    "static": True,
    "input": True,
    "input_dtypes": ["f32"],
    "constant": ["Conv:W", "*"],
    "int64_as_int32": True,
}


def test_a_runner_has_the_same_fields() -> None:
    hello = {"name": "x", "version": "1", "formats": ["onnx"], "unsupported_ops": ["Loop"], "absolute": {"Erf": 1e-6}}
    hold({**hello, "limits": GOOD}, "hello")
    for wrong in ({"rank": 4}, {"max_rank": -1}, {"input_dtypes": "f32"}, {"constant": ["W"]}, {"static": "no"}):
        assert ATTRIBUTES["limits"](wrong) is not None
        with pytest.raises(ProtocolError):
            hold({**hello, "limits": wrong}, "hello")
    assert ATTRIBUTES["limits"](GOOD) is None


def test_claims_are_joined_and_shared() -> None:
    a = claims_of({"opsets": [7, 17], "dtypes": ["f32", "i64"], "limits": {"max_rank": 4, "static": True}})
    b = claims_of({"opsets": [9, 21], "dtypes": ["f32"], "unsupported_ops": ["Loop"], "limits": {"empty": False}})
    both = a.both(b)
    assert (both.opsets, both.dtypes, both.max_rank, both.empty, both.static) == (
        (9, 17),
        frozenset({"f32"}),
        4,
        False,
        True,
    )
    either = common([a, b])
    assert (either.opsets, either.dtypes, either.max_rank, either.empty, either.static) == (
        (7, 21),
        frozenset({"f32", "i64"}),
        None,
        True,
        False,
    )
    assert not either.unsupported_ops
    assert common([]) == EVERYTHING


def relu(**how: Any) -> Instance:
    arg = Arg(BY_NAME[how.pop("dtype", "f32")], how.pop("shape", (2, 3)))
    return Instance("onnx", "Relu", 14, 14, args={"X": replace(arg, **how)})


@pytest.mark.parametrize(
    ("claims", "inst", "why"),
    [
        (Claims(opsets=(15, 20)), relu(), "opset 14"),
        (Claims(dtypes=frozenset({"f16"})), relu(), "f32"),
        (Claims(unsupported_ops=("onnx/R*",)), relu(), "Relu"),
        (Claims(unsupported_ops=("onnx/Relu/14",)), relu(), "Relu"),
        (Claims(max_rank=1), relu(), "rank 2"),
        (Claims(empty=False), relu(shape=(2, 0)), "extent 0"),
        (Claims(static=True), relu(dynamic=(0,)), "symbolic"),
        (Claims(constant=("Relu:X",)), relu(), "run time"),
        (Claims(constant=("*",)), relu(), ""),
        (Claims(constant=("Relu:X",)), relu(const=True), ""),
        (Claims(opsets=("ios15", "ios16")), relu(), ""),
        (Claims(min_rank=3), relu(), "rank 2 is below 3"),
        (Claims(min_rank=3), relu(const=True), ""),
        (Claims(input_dtypes=frozenset({"f16"})), relu(), "f32 at run time"),
        (Claims(input_dtypes=frozenset({"f16"})), relu(const=True), ""),
        (Claims(input=True), relu(const=True), "no operand comes at run time"),
        (Claims(input=True, min_rank=2), relu(), ""),
        (Claims(opsets=(7, 14), dtypes=frozenset({"f32"}), max_rank=2, empty=False, static=True), relu(), ""),
    ],
)
def test_what_is_beyond_a_claim(claims: Claims, inst: Instance, why: str) -> None:
    told = claims.beyond(inst, registry.version_of(inst).schema)
    assert (why in told) if why else told == ""


def test_opsets_have_numbers_or_names() -> None:
    named = claims_of({"opsets": ["ios15", "ios16"]})
    assert named.opsets_of(["ios15", "ios17"]) == ["ios15"]
    assert named.opsets_of([7, 14]) == [7, 14], "it says nothing of a dialect that counts its opsets"
    assert common([named, claims_of({"opsets": ["ios16", "ios17"]})]).opsets == ("ios15", "ios17")
    assert common([named, claims_of({"opsets": [7, 14]})]).opsets is None
    assert ATTRIBUTES["opsets"](["ios15", "ios16"]) is None
    for wrong in (["ios16", "ios15"], ["ios15", 16], ["ios15"], [0, 3]):
        assert ATTRIBUTES["opsets"](wrong) is not None


def test_an_operand_of_one_type_alone_needs_no_claim() -> None:
    v = registry.dialect("onnx").versions["onnx/Reshape/13"]
    case = next(c for i in range(99) if (c := draw_case(v, 13, 0, i, invalid=False)).dtype_name == "f32")
    assert Claims(dtypes=frozenset({"f32"})).beyond(case.inst, v.schema) == ""


@pytest.mark.parametrize("key", ["onnx/Conv/11", "onnx/Gather/13", "onnx/Concat/13", "mil/conv/ios15", "tflite/ADD/1"])
def test_what_is_drawn_within_claims_is_within_them_and_valid(key: str) -> None:
    v = registry.dialect(key.split("/")[0]).versions[key]
    claims = Claims(max_rank=4, empty=False, static=True, constant=("*",))
    cases = [c for i in range(24) if (c := draw_within(claims, v, v.opsets[-1], 1, i, invalid=False)) is not None]
    assert len(cases) > 8
    for c in cases:
        assert not c.problem
        assert claims.beyond(c.inst, v.schema) == ""
        assert c.expected is not None


def test_values_that_i32_cannot_hold_are_beyond() -> None:
    v = registry.dialect("onnx").versions["onnx/Add/14"]
    claims = Claims(int64_as_int32=True)
    cases = [draw_case(v, 14, 0, i, invalid=False) for i in range(200)]
    found = [c for c in cases if c.dtype_name == "i64"]
    for c in found:
        arrays = [*c.draws[0].values(), *(e.value for row in c.expected or () for e in row)]
        large = any(a.size and np.abs(a.astype(np.float64)).max() >= 2.0**31 for a in arrays)
        assert bool(beyond(c, claims)) == large
    assert {bool(beyond(c, claims)) for c in found} == {True, False}


def test_an_absolute_error_is_added_to_the_bound() -> None:
    v = registry.dialect("onnx").versions["onnx/Erf/13"]
    case = next(c for i in range(99) if (c := draw_case(v, 13, 0, i, invalid=False)).dtype_name == "f32" and c.size > 8)
    row = case.expected[0]
    off = Outcome(Status.VALUE, [(row[0].value + np.float32(1e-3)).astype(np.float32)], "run", "")
    assert judge(row, off).verdict is Verdict.MISMATCH
    assert judge(row, off, claimed=Accuracy(2e-3)).verdict is not Verdict.MISMATCH
    assert judge(row, off, claimed=Accuracy(5e-4)).verdict is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dtype", "float32"), ("--dtype", "expected a name among", "float32")),
        (("--max-rank", "-1"), ("--max-rank",)),
        (("--exclude-op", "Nothing"), ("no op matches 'Nothing'",)),
    ],
)
def test_a_selection_that_is_none(opconform: Cli, options: tuple[str, ...], words: tuple[str, ...]) -> None:  # noqa: F811
    one_line(opconform.run("Right", *options), *words)


def test_a_user_selects_instances(opconform: Cli) -> None:  # noqa: F811
    options = ("--dtype", "f32", "--max-rank", "2", "--no-empty", "--static", "--constant-operands")
    without = ("--exclude-op", "Flip", "--exclude-op", "Sum", "--no-invalid", "--out", "out")
    done = opconform.run("SwappedAxis", *options, *without)
    assert done.returncode == 0, done.stdout
    seen = drawn(opconform.folder / "out")
    assert set(seen) - {"Add", "Max", "MatMul", "dtype f32", "agree", "uninformative"} == set()
