"""Known differences: what a condition can say, what a file must say, what is matched, what is left over."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from harness.cases.case import fill
from harness.cases.selection import Selection
from harness.core.dtypes import F16, F32
from harness.core.errors import FormatError
from harness.core.instance import Arg, Graph, Instance, Node
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.ledger.facts import OUTCOME, Facts
from harness.ledger.files import read
from harness.ledger.ledger import Ledger
from harness.ledger.loader import folders, load_ledger
from harness.ledger.predicate import PLAIN, condition
from harness.ledger.releases import in_releases
from harness.ledger.tables import tomllib
from harness.session import session
from harness.workers.info import BackendInfo

BASE = """
[[known]]
id = "relu-nan"
backend = "onnxruntime*"
op = "onnx/Relu"
reason = "NaN becomes 0"
clause = "y = max(0, x), NaN propagates"
"""


def judged(
    when_arrays=None,
    attrs=None,
    op="Relu",
    version=14,
    dtype=F32,
    verdict=Verdict.MISMATCH,
    message="",
    kind="nan",
    diff=None,
    args=None,
):
    args = args if args is not None else {"X": Arg(dtype, (2, 3))}
    inst = Instance("onnx", op, version, 17, attrs or {}, args)
    arrays = when_arrays or {"X": np.array([[1, np.nan, 2], [0, -1, 3]], dtype.np)}
    case = SimpleNamespace(inst=inst, draws=[arrays], dtype=dtype, dtype_name=str(dtype))
    numbers = diff or {"count": 2, "size": 8, "max_ulp": 3.5, "factor": "inf", "wrong_abs": 0.25, "clamped": 1.0}
    return SimpleNamespace(
        case=case,
        verdict=verdict,
        draw=0,
        known=None,
        ambiguity=None,
        outcome=Outcome(Status.VALUE, message=message),
        judgement=SimpleNamespace(kind=kind, diff=lambda: numbers, numbers=lambda: numbers),
    )


def info(name="onnxruntime", version="1.31.1", cpu=()):
    return BackendInfo(name, version, cpu=tuple(cpu))


def ledger(tmp_path, text):
    (tmp_path / "x.toml").write_text(text)
    return load_ledger([tmp_path])


def explained(tmp_path, text, j=None, p=None):
    j = j or judged()
    return ledger(tmp_path, text).explain(j, p or info()) is not None


def test_a_match_changes_the_verdict_and_counts(tmp_path):
    led, j = ledger(tmp_path, BASE), judged()
    entry = led.explain(j, info())
    assert entry is not None
    assert j.verdict is Verdict.KNOWN
    assert j.known == "relu-nan"
    assert led.counts() == {"relu-nan": 1}


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('versions = ">=1.20,<1.32"', True),
        ('versions = "<1.31"', False),
        ("op_versions = [14]", True),
        ("op_versions = [6]", False),
        ("opsets = [17, 18]", True),
        ("opsets = [16]", False),
        ('dtypes = ["f32"]', True),
        ('dtypes = ["f16"]', False),
        ('verdict = "crashed"', False),
        ('verdict = ["crashed", "mismatch"]', True),
        ('kind = "nan"', True),
        ('kind = "value"', False),
        ('kind = ["inf", "nan"]', True),
        ('kind = ["inf", "value"]', False),
        ('message = "no such"', False),
        ("when = \"any_nan('X')\"", True),
        ("when = \"any_nan('Y')\"", False),
        ('when = "any_inf()"', False),
    ],
)
def test_every_field_narrows(tmp_path, line, match):
    assert explained(tmp_path, BASE + line + "\n") is match


def test_other_backends_ops_and_good_verdicts_are_left_alone(tmp_path):
    assert not explained(tmp_path, BASE, p=info("litert-ref"))
    assert not explained(tmp_path, BASE, judged(op="Selu"))
    assert not explained(tmp_path, BASE, judged(verdict=Verdict.WRONGLY_REJECTED))
    assert explained(tmp_path, BASE, p=info("onnxruntime-all"))
    assert explained(tmp_path, BASE + 'versions = "==9.*"', p=info(version="coremltools 9.0, macOS 15.1"))
    assert not explained(tmp_path, BASE + 'versions = ">=1"', p=info(version="unknown"))
    assert in_releases("1.32.0", ">=1.24")
    assert not in_releases("1.23.2", ">=1.24")


@pytest.mark.parametrize(
    ("version", "match"),
    [
        ("2.0.3", True),
        ("2.3.0", False),
        ("tflite-runtime 2.14.0", True),
        ("tflite-runtime 2.15.0", False),
        ("other 2.14.0", False),
    ],
)
def test_one_of_several_ranges_and_packages_by_name(tmp_path, version, match):
    line = 'versions = ["<2.3", "tflite-runtime <2.15"]'
    assert explained(tmp_path, BASE + line, p=info(version=version)) is match


CONDITIONS = {
    "opset == 17 and version == 14 and dtype == 'f32' and outs == 1 and rule is None": True,
    "attr('axis') is None and attr('axis', -1) < 0": True,
    "rank('X') == 2 and shape('X')[1] == 3 and size('X') == 6 and prod(shape('X')) == 6": True,
    "any(d == 0 for d in shape('X'))": False,
    "len([d for d in shape('X') if d > 2]) == 1": True,
    "has('X') and not has('B') and dtype_of('X') == 'f32' and not const('X')": True,
    "encoding('X') == '' and encoding('Z') == ''": True,
    "any_nan() and any_negative('X') and any_zero('X') and not any_negative_zero('X') and not any_inf('X')": True,
    "lowest('X') == -1 and highest('X') == 3": True,
    "ulp <= 4 and factor > 1000 and 0.2 < share < 0.3": True,
    "error == 0.25 and clamped == 1": True,
    "any(s == 'X' and i == 0 and size(s, i) == 6 for s, i in slots) and len(slots) == 1": True,
    "recipe('X') == 'small' or shape('Z') != ()": True,
    "{'f32', 'f16'} == set(['f16', dtype])": True,
    "(1 if rank('X') == 2 else 0) == 1": True,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions(tmp_path, text):
    assert explained(tmp_path, BASE + f"when = {json.dumps(text)}\n") is CONDITIONS[text]


def test_a_tensor_in_an_attribute_has_a_type(tmp_path):
    text = "dtype_of('value') == 'i8' and dtype_of('X') == 'f32' and dtype_of('axis') is None and dtype_of('Z') is None"
    args = {"X": Arg(F32, (2, 3))}
    attrs = {"value": np.array([1], np.int8), "axis": 1}
    assert explained(tmp_path, BASE + f"when = {json.dumps(text)}\n", judged(args=args, attrs=attrs))


def test_what_a_slot_and_a_body_are_made_of(tmp_path):
    quant = {"scale": [0.5, 0.25], "zero_point": [0, 3], "axis": 0}
    args = {"X": Arg(F32, (2, 3), dynamic=(0,), quant=quant), "W": Arg(F32, (0,), const=True)}
    body = Graph(
        [("x", args["X"]), ("y", args["X"]), ("z", args["X"])], [Node("Add", {"A": ["x"]}, ["s"], {})], ["s", "z"]
    )
    text = (
        "dynamic('X') and not dynamic('W') and zero_points('X') == (0, 3) and zero_points('W') == ()"
        " and unread('body') == 1 and unread('axis') == 0 and ops('body') == ['Add'] and ops('axis') == []"
        " and any(const(s, i) and size(s, i) == 0 for s, i in slots)"
    )
    assert explained(
        tmp_path, BASE + f"when = {json.dumps(text)}\n", judged(args=args, attrs={"body": body, "axis": 1})
    )
    assert not explained(tmp_path, BASE + f"when = {json.dumps(text)}\n")


def test_what_a_body_returns_and_reads(tmp_path):
    x, inner = Arg(F32, (2,)), Graph([], [Node("Add", {"A": "far", "B": "s"}, ["t"])], ["t"])
    nodes = [Node("Add", {"A": "k", "B": "y"}, ["s"]), Node("If", {"cond": "test"}, ["u"], {"then_branch": inner})]
    body = Graph([("x", x), ("y", x)], nodes, ["y", "k", "s", "u"], {"k": np.ones(2, np.float32)})
    text = (
        "returns('body') == [1, -1, None, None] and operands('body') == [(), (), (-1, 1), (-1,)]"
        " and outer('body') == ['far', 'test'] and returns('axis') == operands('axis') == outer('axis') == []"
    )
    assert explained(tmp_path, BASE + f"when = {json.dumps(text)}\n", judged(attrs={"body": body, "axis": 1}))


def test_variadic_slots_take_an_index(tmp_path):
    args = {"X": [Arg(F32, (2,)), Arg(F16, (3, 4))]}
    arrays = {"X": [np.ones(2, np.float32), np.full((3, 4), -0.0, np.float16)]}
    text = BASE + "when = \"shape('X', 1) == (3, 4) and dtype_of('X', 1) == 'f16' and any_negative_zero('X')\"\n"
    assert explained(tmp_path, text, judged(arrays, args=args))


def test_a_condition_may_be_in_several_lines(tmp_path):
    text = BASE + "when = \"\"\"\n  rank('X') == 2\n  and (dtype == 'f16'\n    or any_nan('X'))\"\"\"\n"
    for x, hit in ((np.nan, True), (1, False)):
        assert explained(tmp_path, text, judged({"X": np.full(2, x, np.float32)})) is hit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os')", "unknown name '__import__'"),
        ("shape('X').__class__", "Attribute is not allowed"),
        ("(lambda: 1)()", "Lambda is not allowed"),
        ("rank(", "no expression"),
        ("[x := 1]", "NamedExpr is not allowed"),
        ("open('f')", "unknown name 'open'"),
        ("f'{opset}'", "JoinedStr is not allowed"),
        ("axis < 0", "unknown name 'axis'"),
        ("exec('1')", "unknown name 'exec'"),
    ],
)
def test_conditions_can_do_nothing_else(text, words):
    with pytest.raises(ValueError, match=words):
        condition(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BASE.replace('op = "onnx/Relu"\n', ""), "field 'op' is missing"),
        (BASE.replace('clause = "y = max(0, x), NaN propagates"\n', ""), "field 'clause' is missing"),
        (BASE + 'colour = "red"\n', "unknown field 'colour'"),
        (BASE + 'when = "axis < 0"\n', "unknown name 'axis'"),
        (BASE + 'versions = "about 3"\n', "versions"),
        (BASE + 'message = "("\n', "message"),
        (BASE + 'verdict = "agree"\n', "verdict 'agree'"),
        (BASE + "op_versions = 14\n", "op_versions must be a list"),
        (BASE + 'shown_by = "x"\n', "shown_by needs the instance"),
        (BASE + "dtypes = []\n", "dtypes must be"),
        (BASE.replace("onnx/Relu", "Relu"), "dialect/op"),
        (BASE.replace("relu-nan", "relu nan"), "id is made of"),
        (BASE + "link = 3\n", "link must be a text"),
        (BASE + 'instance = "{"\n', "instance"),
        (BASE + BASE, "already taken"),
        ("[[unknown]]\nid = 'x'\n", "expected [[known]]"),
        ("[known]\nid = 'x'\n", "expected [[known]]"),
        ("id = ", "x.toml"),
        (BASE.replace("[[known]]", "[[ambiguous]]"), "unknown field 'reason'"),
    ],
)
def test_a_file_that_is_wrong_states_where(tmp_path, text, words):
    with pytest.raises(FormatError, match=r"x\.toml") as e:
        ledger(tmp_path, text)
    assert words in str(e.value)


AMBIGUOUS = """
[[ambiguous]]
id = "zero-size-mean"
op = ["onnx/Relu", "mil/*"]
question = "What is the mean of nothing?"
clause = "silent"
readings = ["NaN", "0"]
"""


def test_ambiguities_come_after_known_differences(tmp_path):
    j = judged()
    assert explained(tmp_path, AMBIGUOUS, j)
    assert j.verdict is Verdict.AMBIGUOUS
    assert j.ambiguity == "zero-size-mean"
    assert j.known is None
    j = judged()
    led = ledger(tmp_path, AMBIGUOUS + BASE)
    led.explain(j, info())
    assert j.verdict is Verdict.KNOWN


def test_what_never_matched_is_reported_where_it_could_have(tmp_path):
    led = ledger(tmp_path, BASE + AMBIGUOUS)
    assert led.unused(["onnx/Relu/14"], [BackendInfo("onnxruntime-all", "1.31.1")]) == ["relu-nan"]
    assert led.unused(["onnx/Selu/6"], [BackendInfo("onnxruntime", "1.31.1")]) == []
    assert led.unused(["onnx/Relu/14"], [BackendInfo("litert-ref", "1.31.1")]) == []
    sixth = ledger(tmp_path, BASE + "op_versions = [6]")
    assert sixth.unused(["onnx/Relu/14"], [BackendInfo("onnxruntime", "1.31.1")]) == []
    old = ledger(tmp_path, BASE + 'versions = "<1.24"')
    assert old.unused(["onnx/Relu/14"], [BackendInfo("onnxruntime", "1.31.1")]) == []
    assert old.unused(["onnx/Relu/14"], [BackendInfo("onnxruntime", "1.20.1")]) == ["relu-nan"]
    led = ledger(tmp_path, BASE + AMBIGUOUS)
    led.explain(judged(), info())
    assert led.unused(["onnx/Relu/14"], [BackendInfo("onnxruntime", "1.31.1")]) == []


@pytest.mark.parametrize(
    ("offers", "fits"),
    [(["x86_64", "avx2"], True), (["x86_64", "avx2", "avx512_vnni"], False), (["aarch64", "asimd"], False), ([], True)],
)
def test_an_entry_holds_for_some_processors(tmp_path, offers, fits):
    led = ledger(tmp_path, BASE + 'cpu = ["avx2", "!avx512_vnni"]')
    here = info(cpu=offers)
    assert led.unused(["onnx/Relu/14"], [here]) == (["relu-nan"] if fits and offers else [])
    assert (led.explain(judged(), here) is not None) is fits, "where nobody knows the processor it may be any"


def test_a_condition_that_cannot_be_evaluated_leaves_no_verdict(tmp_path):
    led = ledger(tmp_path, BASE + "when = \"shape('X')[7] == 1\"")
    j = judged()
    assert led.explain(j, info()) is None
    assert j.verdict is Verdict.UNKNOWN
    assert j.outcome.message == "x.toml: known relu-nan: when: IndexError: tuple index out of range"
    assert not led.entries[0].predicts(j.case, info()), "and predicts nothing"


EVERY = [e for e in load_ledger().entries if e.when is not None and e.instance is not None]


@pytest.mark.parametrize("entry", EVERY, ids=[e.id for e in EVERY])
def test_every_condition_holds_of_its_own_instance(entry):
    case = fill(registry.version_of(entry.instance), entry.instance)
    runs = [case.at(r) if entry.instance.reruns else case for r in range(1 + len(entry.instance.reruns))]
    told = [entry._holds(Facts(c, PLAIN)) for c in runs]  # FormatError where it cannot be evaluated
    assert any(told) or entry.when.names & OUTCOME or "runs" in entry.when.names


def test_an_unsupported_instance_does_not_make_an_entry_stale(tmp_path):
    inst = json.dumps(Instance("onnx", "Relu", 14, 14, {}, {"X": Arg(F32, (1,))}).to_json())
    led = ledger(tmp_path, BASE + f"instance = '{inst}'")
    both = [BackendInfo("onnxruntime", "1"), BackendInfo("onnxruntime-all", "1")]
    led.lacks.add((led.entries[0].instance.id, "onnxruntime"))
    assert led.unused(["onnx/Relu/14"], both[:1]) == []
    assert led.unused(["onnx/Relu/14"], both) == ["relu-nan"]
    crossed = BackendInfo("onnxruntime-cross-dialect", "1", formats=("mil",))
    assert led.unused(["onnx/Relu/14"], [both[0], crossed]) == [], "it takes models of another dialect"


def test_what_was_not_replayed_or_shows_elsewhere_is_not_called_gone(tmp_path):
    inst = Instance("onnx", "Relu", 14, 14, {}, {"X": Arg(F32, (1,))})
    table = BASE + f"instance = '{json.dumps(inst.to_json())}'\n"
    keys, plain, full = ["onnx/Relu/14"], BackendInfo("onnxruntime", "1"), BackendInfo("onnxruntime-all", "1")
    led = ledger(tmp_path, table)
    assert led.unused(keys, [plain], {inst.dumps()}) == ["relu-nan"]
    assert led.unused(keys, [plain], set()) == []
    led = ledger(tmp_path, table + 'shown_by = "*-all"')
    assert led.unused(keys, [plain]) == []
    assert led.unused(keys, [plain, full]) == ["relu-nan"]
    led.explain(judged(), plain)
    assert led.unused(keys, [plain, full]) == []


@pytest.mark.parametrize(("ops", "told"), [(("Relu",), ["relu-nan"]), (("Selu",), [])])
def test_a_run_of_some_ops_on_a_named_backend_reports_stale_entries(tmp_path, monkeypatch, ops, told):
    inst = Instance("onnx", "Relu", 14, 14, {}, {"X": Arg(F32, (1,))})
    led = ledger(tmp_path, BASE + f"instance = '{json.dumps(inst.to_json())}'")
    monkeypatch.setattr(session, "load_ledger", lambda backends, own=(): led)
    plan = session.Plan(Selection(("onnx",), ops=ops, opset=14), ["onnxruntime"], out=tmp_path / "run", cases=1)
    assert session.run(plan).unused == told


def test_an_empty_ledger_explains_nothing():
    assert Ledger().explain(judged(), info()) is None


def test_the_files_in_the_tree_parse_and_name_real_ops():
    entries = load_ledger().entries
    places = folders()
    assert places
    assert all(p.name == "known" for p in places)
    for e in entries:
        assert e.reason.strip(), e.id
        assert e.clause.strip(), e.id


def test_minimal_instances_are_instances(tmp_path):
    inst = Instance("onnx", "Relu", 14, 17, {}, {"X": Arg(F32, (2,))})
    (tmp_path / "y.toml").write_text(BASE + f"instance = '{inst.dumps()}'\n")
    assert read(tmp_path / "y.toml")[0].instance.id == inst.id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('status = "solved"', "status 'solved', expected unreported, reported, confirmed or fixed in RELEASE"),
        ('status = "fixed in the next"', "expected unreported"),
        ('status = "reported"', "status reported needs the link to the issue"),
        ('status = "confirmed"\nlink = ""', "status confirmed needs the link"),
        ("link = 7", "link must be a text, got 7"),
    ],
)
def test_a_status_that_is_none_is_refused(tmp_path, text, why):
    with pytest.raises(FormatError, match=re.escape(why)):
        ledger(tmp_path, BASE + text + "\n")


def test_a_status_goes_into_the_records(tmp_path):
    led = ledger(tmp_path, BASE + 'status = "fixed in 1.32"\n')
    assert led.entries[0].told()["status"] == "fixed in 1.32"


def test_an_intermittent_difference_is_not_reported_as_gone(tmp_path):
    inst = Instance("onnx", "Relu", 14, 14, {}, {"X": Arg(F32, (1,))})
    table = BASE + f"instance = '{json.dumps(inst.to_json())}'\n"
    keys, here = ["onnx/Relu/14"], [BackendInfo("onnxruntime", "1")]
    assert ledger(tmp_path, table).unused(keys, here) == ["relu-nan"]
    led = ledger(tmp_path, table + 'intermittent = "memory that nobody wrote"\n')
    assert led.unused(keys, here) == []
    assert led.explain(judged(), here[0]) is not None
    with pytest.raises(FormatError, match="intermittent needs the instance"):
        ledger(tmp_path, BASE + 'intermittent = "memory that nobody wrote"\n')


def test_every_known_difference_has_a_status():
    paths = [path for folder in folders() for path in sorted(folder.rglob("*.toml"))]
    assert len(paths) > 100
    for path in paths:
        for table in tomllib.loads(path.read_text()).get("known", ()):
            assert "status" in table, f"{path.name}: {table['id']}"
            assert "link" in table, f"{path.name}: {table['id']}"
