"""The reach law: each goal of an op version is met in so many draws, or stands in ``suites/<dialect>/unreached.toml``.

The part of the law that rotates takes other op versions each day; the whole is slow.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import cli
from harness.cases.case import draw_case, fill
from harness.cases.selection import hash_key
from harness.core.errors import FormatError
from harness.core.instance import Instance
from harness.declare import OpVersion, registry
from harness.generate.draw_engines import mix
from harness.reach import survey, unreached
from harness.reach.goals import goals_of
from harness.reach.unreached import Unreached, written, wrong_clause

SHARDS = 12  # days after which every op version was looked at
SLICES = 8  # tests that a day's part is cut into, for several workers
PATIENCE = 3  # a goal that is met late, as when a generator was changed, counts if it is met in so many times the draws
ALL = [v for name in registry.names() for v in registry.dialect(name).versions.values()]
LEDGERS: dict[str, Unreached] = {}


def ledger(name: str) -> Unreached:
    return LEDGERS.setdefault(name, Unreached(registry.dialect(name)))


def broken(v: OpVersion, whole: bool) -> list[str]:
    """Where an op version departs from the law.  whole: all draws are made, though nothing is missing any more.

    An open goal that few draws meet stays open: a change of the generator may move it."""
    mine = ledger(v.dialect.name)
    clauses, gaps = mine.clauses(v), mine.open_goals(v)
    needed = set(goals_of(v).ids) - clauses.keys() - gaps
    often = survey.met_in(v, survey.OFTEN)
    left = None if whole else needed - often
    met = often | survey.met_in(v, survey.DRAWS - survey.OFTEN, first=survey.OFTEN, needed=left)
    out = [f"{v.key}: {g} is met and ruled out: {clauses[g]}" for g in sorted(met & clauses.keys())]
    out += [f"{v.key}: {g} is met now, and still listed as open" for g in sorted(often & gaps)]
    late = needed - met
    if late:
        late -= survey.met_in(v, (PATIENCE - 1) * survey.DRAWS, first=survey.DRAWS, needed=late)
    return out + [f"{v.key}: {g} is not met" for g in sorted(late)]


def day_of(v: OpVersion) -> int:
    return mix(hash_key(v.key)) % SHARDS


HOW = "; `python scripts/reach.py` lists what is open, a clause is written by hand"


@pytest.mark.parametrize("part", range(SLICES))
def test_op_versions_of_the_day_keep_the_reach_law(part: int) -> None:
    today = datetime.datetime.now(datetime.timezone.utc).date().toordinal() % SHARDS
    mine = [v for v in ALL if day_of(v) == today][part::SLICES]
    assert not [line for v in mine for line in broken(v, whole=False)], HOW


@pytest.mark.slow
@pytest.mark.parametrize("day", range(SHARDS))
def test_all_op_versions_keep_the_reach_law(day: int) -> None:
    assert not [line for v in ALL if day_of(v) == day for line in broken(v, whole=True)], HOW


@pytest.mark.parametrize("name", registry.names())
def test_each_entry_of_the_ledger_names_op_versions_and_goals(name: str) -> None:
    assert ledger(name).path.exists(), "every dialect has a ledger"
    assert not list(ledger(name).problems())


def test_goals_are_derived_without_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a generator was asked")

    made = registry.dialect("onnx").versions["onnx/Conv/11"]
    v = OpVersion(made.dialect, made.entry, made.schema)
    expected = goals_of(made).ids
    monkeypatch.setattr(v.meaning, "drawer", never)
    monkeypatch.setattr(OpVersion, "draw", never)
    monkeypatch.setattr(OpVersion, "begin", never)
    for p in v.meaning.params.values():
        monkeypatch.setattr(type(p), "draw", never)
    assert goals_of(v).ids == expected


def _met(key: str, **changed: Any) -> set[str]:
    """Goals that a written instance meets; changed: slot -> fields of its argument, or attributes."""
    dialect = registry.dialect(key.partition("/")[0])
    v = dialect.versions[key]
    inst = draw_case(v, v.opsets[-1], 0, 0, lazy=True).inst
    told = inst.to_json()
    told["args"], told["attrs"] = {}, {}
    for name, x in changed.items():
        told["args" if isinstance(x, dict) else "attrs"][name] = x
    for x in told["args"].values():
        x.setdefault("dtype", "f32")
        x.setdefault("recipe", "small")
        x.setdefault("seed", 1)
    return goals_of(v).met(fill(v, Instance.from_json(told)))


def test_shapes_of_two_operands_meet_goals_of_broadcasting() -> None:
    met = _met("onnx/Add/14", A={"shape": [3, 1, 1, 4, 1]}, B={"shape": [2, 4, 0]})
    assert {"rank:A=5", "rank:B=3", "broadcast:B<A", "broadcast:A=1,B", "broadcast:A,B:rank>4"} <= met
    assert {"extent:A[1]=1", "extent:A[2]=1", "extent:B[2]=0"} <= met
    assert not {"broadcast:A<B", "broadcast:B=1,A", "broadcast:A<>B", "extent:A[0]=1"} & met


def test_a_state_of_integers_is_no_parameter() -> None:
    ids = goals_of(registry.dialect("tflite").versions["tflite/SVDF/4q"]).ids
    assert not [g for g in ids if g.startswith("relation:activation_state")]
    assert "rank:activation_state=2" in ids


def test_attributes_meet_goals_of_axes_and_pairs() -> None:
    axes = {"shape": [2], "dtype": "i64", "values": [-1, 0], "const": True}
    met = _met("onnx/ReduceSum/13", data={"shape": [2, 3, 200]}, axes=axes, keepdims=0)
    assert {"axis:axes=-1,r=3", "axis:axes=0,r=3", "list:axes=unsorted", "list:axes=mixed signs"} <= met
    assert {"attr-pair:keepdims=0,noop_with_empty_axes=omitted", "constant:axes", "limit:data>=128"} <= met
    assert not {"list:axes=all", "list:axes=repeated", "limit:data>=256", "attr:keepdims=omitted"} & met


def test_an_axis_may_be_told_by_an_operand_of_floats() -> None:
    one = {"shape": [1], "values": [2.0]}
    met = _met("onnx/Tile/1", input={"shape": [2, 3, 1]}, tiles=one, axis={"shape": [1], "values": [1.0]})
    assert "axis:axis=1,r=3" in met


def test_an_axis_of_a_list_is_one_of_its_tensors() -> None:
    items = [{"dtype": "f32", "shape": [2, 1], "recipe": "small", "seed": k} for k in (1, 2)]
    told = {"kind": "seq", "shape": [], "items": items}
    assert "axis:axis=-1,r=2" in _met("onnx/ConcatFromSequence/11", input_sequence=told, axis=-1)


def test_an_op_of_which_nothing_is_asked_is_no_goal() -> None:
    ids = goals_of(registry.dialect("onnx").versions["onnx/LSTM/14"]).ids
    assert "outputs:{Y}" in ids
    assert "outputs:{}" not in ids
    assert "outputs:{}" in goals_of(registry.dialect("onnx").versions["onnx/MaxPool/12"]).ids
    parts = goals_of(registry.dialect("mil").versions["mil/split/ios15"]).ids
    assert "list:split_sizes=empty" not in parts
    assert "list:split_sizes=one" in parts


def test_integers_meet_goals_of_their_relation_to_the_extent() -> None:
    k = {"shape": [1], "dtype": "i64", "values": [4]}
    met = _met("onnx/TopK/11", X={"shape": [9, 5]}, K=k, axis=-1)
    assert {"relation:K=extent-1", "run-time:K"} <= met
    assert "relation:K=extent" not in met


def test_elements_meet_goals_of_special_values() -> None:
    x = {"shape": [4], "values": [{"f": "nan"}, -0.0, {"f": "-inf"}, 2.5]}
    met = {g for g in _met("onnx/Relu/14", X=x) if g.startswith("data:")}
    assert met == {f"data:{w}:X" for w in ("nan", "nan first", "-inf", "-0", "tie")}


def test_zero_points_and_scales_meet_goals_of_quantised_operands() -> None:
    q = {"scale": [0.5], "zero_point": [-128], "axis": 0}
    far = {"scale": [64.0], "zero_point": [127], "axis": 0}
    a = {"shape": [2], "dtype": "i8", "quant": q}
    b = {"shape": [2], "dtype": "i8", "quant": far}
    met = _met("tflite/ADD/2q", lhs=a, rhs=b)
    assert {"zero-point:lhs=lowest", "zero-point:rhs=highest", "scales:lhs,rhs=far apart"} <= met
    assert not {"zero-point:lhs=0", "scales:lhs,rhs=equal"} & met


@pytest.mark.parametrize(
    "clause",
    ["", "none", "no runtime takes it: all refuse", "Conv: that is rare and nobody does it", "all: agreed on it"],
)
def test_what_is_no_clause_is_refused(clause: str) -> None:
    assert wrong_clause(clause) is not None


def test_a_sentence_of_the_specification_is_a_clause() -> None:
    assert wrong_clause("Conv-11, input X: 'the size is (N x C x H x W)'") is None


def _ledger(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Unreached:
    """The ledger of ONNX with other content."""
    (tmp_path / "unreached.toml").write_text(text)
    fake = type("Module", (), {"__file__": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(unreached.importlib, "import_module", lambda _: fake)
    return Unreached(registry.dialect("onnx"))


TABLE = '[[ruled_out]]\nops = ["onnx/Relu/*"]\ngoals = ["{}"]\nclause = "Relu-14, input X: a sentence that says so"\n'


def test_an_entry_that_names_no_goal_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(_ledger(TABLE.format("rank:Y=1"), tmp_path, monkeypatch).problems())
    assert not list(_ledger(TABLE.format("rank:X=*"), tmp_path, monkeypatch).problems())
    assert list(_ledger(TABLE.replace("Relu/", "Rely/").format("*"), tmp_path, monkeypatch).problems())


def test_a_ledger_with_an_unknown_field_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match=r"expected the fields clause goals ops, got .*reason"):
        _ledger(TABLE.format("*") + 'reason = "so"\n', tmp_path, monkeypatch)
    with pytest.raises(FormatError, match="malformed"):
        _ledger("[[", tmp_path, monkeypatch)


def test_the_law_fails_for_a_goal_that_is_ruled_out_and_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = _ledger(TABLE.format("rank:X=1"), tmp_path, monkeypatch)
    monkeypatch.setitem(LEDGERS, "onnx", mine)
    monkeypatch.setattr(survey, "OFTEN", 200)
    monkeypatch.setattr(survey, "DRAWS", 201)
    lines = broken(registry.dialect("onnx").versions["onnx/Relu/14"], whole=True)
    assert any("rank:X=1 is met and ruled out: Relu-14" in line for line in lines)


def test_the_law_fails_for_an_unmet_goal_and_for_an_open_one_that_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[[open]]\nops = ["onnx/Relu/14"]\ngoals = ["rank:X=1"]\n'
    monkeypatch.setitem(LEDGERS, "onnx", _ledger(text, tmp_path, monkeypatch))
    monkeypatch.setattr(survey, "OFTEN", 20)
    monkeypatch.setattr(survey, "DRAWS", 21)
    lines = broken(registry.dialect("onnx").versions["onnx/Relu/14"], whole=True)
    assert "onnx/Relu/14: rank:X=1 is met now, and still listed as open" in lines
    assert any("is not met" in line for line in lines)


def test_open_goals_that_are_written_are_read_as_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [v for v in registry.dialect("onnx").versions.values() if v.op in ("Add", "Relu", "TopK")]
    gaps = {v.key: set(goals_of(v).ids[::3]) | {g for g in goals_of(v).ids if g.startswith("rank")} for v in versions}
    mine = _ledger(written(gaps, versions), tmp_path, monkeypatch)
    assert {v.key: mine.open_goals(v) for v in versions} == gaps


def test_the_list_shows_each_goal_with_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "reach", "--op", "onnx/Relu/14", "--draws", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("rank:X=1 " in line and line.rstrip().endswith("met") for line in lines)
    assert lines[-1].split()[:3] == [
        "onnx/Relu/14",
        str(len(goals_of(registry.dialect("onnx").versions["onnx/Relu/14"]).ids)),
        "goals",
    ]


def test_an_extent_of_a_dialect_without_empty_tensors_is_not_asked_to_be_the_highest_number() -> None:
    ids = set(goals_of(registry.dialect("nn").versions["nn/loadConstantND/1"]).ids)
    assert "relation:shape=1" in ids
    assert "relation:shape=INT_MAX" not in ids
    assert "relation:stride=INT_MAX" in goals_of(registry.dialect("nn").versions["nn/convolution/1"]).ids


def test_a_rule_that_no_text_states_is_no_goal() -> None:
    v = registry.dialect("mil").versions["mil/squeeze/ios15"]
    assert "axes-distinct" in v.dialect.unsayable_rules(v)
    assert "rule:axes-distinct" not in goals_of(v).ids
    assert "rule:axes-in-range" in goals_of(v).ids


def test_a_default_in_a_narrower_type_is_the_default() -> None:
    v = registry.dialect("mil").versions["mil/log/ios15"]
    for seed in range(200):
        case = draw_case(v, "ios15", seed, 0)
        if case.inst.attrs.get("@T") == "f16" or case.inst.tensor("x").dtype.name == "f16":
            inst = Instance.from_json({**case.inst.to_json(), "attrs": {**case.inst.attrs, "epsilon": 2.0**-149}})
            break
    goals = goals_of(v)
    default = v.schema.attrs["epsilon"].default
    inst.attrs["epsilon"] = float(np.float16(default))
    assert "attr:epsilon=default" in goals.met(fill(v, inst))


def test_a_list_of_axes_stands_beside_no_extent() -> None:
    ids = goals_of(registry.dialect("onnx").versions["onnx/Scan/11"]).ids
    assert "relation:scan_input_axes=negative" in ids
    assert "relation:scan_input_axes=far beyond" not in ids


def test_a_map_is_no_constant() -> None:
    ids = goals_of(registry.dialect("onnx").versions["onnx/DictVectorizer/1"]).ids
    assert "run-time:X" in ids
    assert "constant-empty:X" not in ids
    assert "constant-empty:X" in goals_of(registry.dialect("onnx").versions["onnx/ZipMap/1"]).ids


@pytest.mark.parametrize(
    ("key", "goals"),
    [
        ("tflite/FILL/1", ["data:repeated:input", "data:mixed:input", "constant-empty:input", "relation:dims=extent"]),
        ("tflite/SPLIT/1", ["constant-empty:split_dim"]),
        ("tflite/SPARSE_TO_DENSE/1", ["rank:sparse_values=2"]),
        ("onnx/Compress/9", ["rule:one-axis"]),
    ],
)
def test_what_one_number_and_a_stated_rank_cannot_show_is_no_goal(key: str, goals: list[str]) -> None:
    ids = goals_of(registry.dialect(key.partition("/")[0]).versions[key]).ids
    assert not {*goals} & {*ids}
    assert any(g.startswith(("data:0:", "constant-empty:", "rank:")) for g in ids)


@pytest.mark.parametrize(
    ("key", "not_derived", "derived"),
    [
        ("NON_MAX_SUPPRESSION_V5/1", ["relation:max_output_size=INT_MAX"], "relation:max_output_size=0"),
        ("PACK/1", ["rank:values=8"], "rank:values=7"),
        ("UNPACK/1", ["relation:num=0", "attr:num=default"], "relation:num=1"),
        ("EMBEDDING_LOOKUP_SPARSE/1", ["limit:dense_shape>=16"], "limit:indices>=16"),
        ("EMBEDDING_LOOKUP/1q", ["scale:value=per axis"], "zero-point:value=0"),
        ("MAXIMUM/1", ["broadcast:lhs,rhs:rank>4"], "broadcast:lhs<>rhs"),
        ("MATRIX_SET_DIAG/1", ["same-tensor:input,diagonal"], "rank:diagonal=1"),
        ("PRELU/1", [], "same-tensor:input,alpha"),
    ],
)
def test_what_no_result_could_show_is_no_goal(key: str, not_derived: list[str], derived: str) -> None:
    """A length of 2^31 - 1, nine axes, an operator without results, sixteen axes, what a later version adds, one tensor
    of two ranks."""
    ids = {*goals_of(registry.dialect("tflite").versions[f"tflite/{key}"]).ids}
    assert not ids & {*not_derived}
    assert derived in ids
