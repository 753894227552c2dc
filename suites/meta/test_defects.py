"""Models of defects: what an entry may say that a backend gives, and that nothing else is excused by it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.cases.given import Given
from harness.core.dtypes import F32, I64
from harness.core.errors import FormatError
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.defect_models import NOTHING, Near, Such, Turned
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

ENTRY = """
[[known]]
id = "shape-of-it"
backend = "toy"
op = "onnx/*"
reason = "as the test says"
clause = "as the test says"
{}
"""


def case(op="LeakyRelu", x=(1.0, -2.0, -4.0, np.nan), version=16, attrs=None):
    a = np.array(x, np.float32)
    inst = Instance.from_json(
        {
            "format": 2,
            "dialect": "onnx",
            "op": op,
            "version": version,
            "opset": 17,
            "attrs": attrs or {"alpha": 0.5},
            "args": {"X": {"dtype": "f32", "shape": list(a.shape), "values": [0.0] * a.size}},
            "outs": 1,
        }
    )
    out = Case(registry.version_of(inst), inst, 0)
    out._draws = [{"X": a}]
    return out


def verdict(tmp_path, fields, answer, defects="", c=None):
    (tmp_path / "x.toml").write_text(ENTRY.format(fields))
    if defects:
        head = "import numpy as np\nfrom harness.ledger.defect_models import Near, Such, Turned\n"
        (tmp_path / "defects").mkdir(exist_ok=True)
        (tmp_path / "defects" / "toy.py").write_text(head + defects)
    ledger = load_ledger([tmp_path])
    outcome = Outcome(Status.VALUE, [np.asarray(answer, np.float32)])
    return judge_case(c or case(), BackendInfo("toy"), [outcome], ledger)


HALF = "def told(g):\n    return [np.where(g['X'] < 0, g['X'], g['X'] * 1).astype(np.float32)]\n"
NEAR = "def told(g):\n    return [Near(g['X'].astype(np.float64), 0.25)]\n"
OTHER = "def told(g):\n    return [Near(g['X'].astype(np.float64), 0.25, np.full(4, np.nan))]\n"
AGAIN = "def told(g):\n    return g.reevaluate({'alpha': None})\n"
TURNED = "def told(g):\n    return g.reevaluate(inputs={'X': -g['X'][:4]})\n"
FLIPPED = """def told(g):
    x = g.reevaluate({'alpha': None}, {'X': g['X'][::-1].copy()})
    return [Turned(x[0], lambda y: np.moveaxis(y, 0, 0)[::-1])]
"""
SUCH = "def told(g):\n    return [Such(lambda a: a.shape == (2,) and a[0] == 5, np.array([5, 0]))]\n"
PASS = "def told(g):\n    return None\n"
RIGHT = "def told(g):\n    return [None]\n"


NONE = r"expected a function of defects/\*.py beside the file, got none"


@pytest.mark.parametrize(
    ("defects", "answer", "found"),
    [
        (HALF, [1, -2, -4, np.nan], "known"),
        (HALF, [1, -2, -3, np.nan], "mismatch"),
        (HALF, [1, -2, -4, 0], "mismatch"),
        (HALF, [[1, -2, -4, np.nan]], "mismatch"),
        (NEAR, [1.2, -2, -4, np.nan], "known"),
        (NEAR, [1.3, -2, -4, np.nan], "mismatch"),
        (OTHER, [1.2, np.nan, -4, np.nan], "known"),
        (OTHER, [1.2, np.nan, -4.5, np.nan], "mismatch"),
        (OTHER, [1.2, -2, 0, np.nan], "mismatch"),
        (SUCH, [5, 7], "known"),
        (SUCH, [4, 7], "mismatch"),
        (SUCH, [5, 7, 7], "mismatch"),
        (AGAIN, [1, -0.02, -0.04, np.nan], "known"),
        (AGAIN, [1, -0.02, -0.05, np.nan], "mismatch"),
        (TURNED, [-0.5, 2, 4, np.nan], "known"),
        (TURNED, [-0.5, 2, 5, np.nan], "mismatch"),
        (PASS, [1, -2, -4, np.nan], "mismatch"),
        (RIGHT, [1, -2, -4, np.nan], "mismatch"),
        (FLIPPED, [1, -0.02, -0.04, np.nan], "known"),
        (FLIPPED, [1, -0.02, -0.05, np.nan], "mismatch"),
        (FLIPPED, -1, "mismatch"),
    ],
)
def test_a_defect_model_excuses_only_its_own_answer(tmp_path, defects, answer, found):
    assert verdict(tmp_path, 'defect_model = "told"', answer, defects).verdict.value == found


def test_a_defect_model_may_state_a_missing_output(tmp_path):
    (tmp_path / "x.toml").write_text(ENTRY.format('defect_model = "told"'))
    (tmp_path / "defects").mkdir()
    (tmp_path / "defects" / "toy.py").write_text(
        "from harness.ledger.defect_models import NOTHING\n\n\ndef told(g):\n    return [NOTHING]\n"
    )
    for came, found in ((None, Verdict.KNOWN), (np.zeros(4, np.float32), Verdict.MISMATCH)):
        outcome = Outcome(Status.VALUE, [came])
        assert judge_case(case(), BackendInfo("toy"), [outcome], load_ledger([tmp_path])).verdict is found


def test_a_wrong_type_is_reported_for_any_values(tmp_path):
    (tmp_path / "x.toml").write_text(ENTRY.format('defect_model = "told"'))
    (tmp_path / "defects").mkdir(exist_ok=True)
    (tmp_path / "defects" / "toy.py").write_text("import numpy as np\n" + HALF)
    outcome = Outcome(Status.VALUE, [np.array([1, -2, -4, np.nan], np.float64)])
    assert judge_case(case(), BackendInfo("toy"), [outcome], load_ledger([tmp_path])).verdict is Verdict.MISMATCH


def test_one_of_several_models_is_enough(tmp_path):
    both = HALF + AGAIN.replace("told", "other")
    for answer in ([1, -2, -4, np.nan], [1, -0.02, -0.04, np.nan]):
        assert verdict(tmp_path, 'defect_model = ["told", "other"]', answer, both).verdict is Verdict.KNOWN
    assert verdict(tmp_path, 'defect_model = ["told", "other"]', [0, 0, 0, 0], both).verdict is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("fields", "defects", "words"),
    [
        ('defect_model = "told"', "", NONE),
        ('defect_model = "gone"', HALF, NONE),
        ('defect_model = "_told"', HALF.replace("told", "_told"), NONE),
        ('defect_model = "np"', HALF, NONE),
        ('defect_model = "Near"', HALF, NONE),  # what a file imports is no model
        ('defect_model = "told"\nverdict = "crashed"', HALF, "defect_model explains a mismatch alone"),
        ('wide = "told"\nverdict = "crashed"', HALF, "wide explains a mismatch alone"),
        ('wide = "any number"\ndefect_model = "told"', HALF, "wide says why nothing is known of the answer"),
        ('wide = " "', HALF, "wide must be a text"),
    ],
)
def test_a_model_that_is_not_there_is_reported(tmp_path, fields, defects, words):
    with pytest.raises(FormatError, match=words) as e:
        verdict(tmp_path, fields, [0, 0, 0, 0], defects)
    assert str(e.value).startswith("x.toml:2: known shape-of-it: ")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("body", ["    return [1 / 0]\n", "    return [None, None]\n"])
def test_a_model_that_fails_leaves_no_verdict(tmp_path, body):
    j = verdict(tmp_path, 'defect_model = "told"', [0, 0, 0, 0], "def told(g):\n" + body)
    assert j.verdict is Verdict.UNKNOWN
    assert "known shape-of-it: defect_model: " in j.outcome.message


@pytest.mark.parametrize(
    ("when", "answer", "holds"),
    [
        ("zeroed", [], True),
        ("zeroed", [1, 2], False),
        ("zeroed", [[]], False),
        ("zeroed", [1, -1, -9, np.nan], False),
        ("expected_shape == (4,) and actual_shape == (2,)", [1, 2], True),
        ("expected_shape == actual_shape", [1, 2], False),
        ("all(p[0] > 0 for p in wrong_at)", [1, -1, -9, np.nan], True),
        ("all(p[0] > 2 for p in wrong_at)", [1, -1, -9, np.nan], False),
        ("all(p[0] > 0 for p in wrong_at)", [1, 2], False),  # nowhere is not everywhere
        ("which == 0", [1, 2], True),
        ("which == 1", [1, 2], False),
        ("wrong_at == [(2,)] and wrong_pairs == [(-2.0, -9.0)]", [1, -1, -9, np.nan], True),
    ],
)
def test_where_and_of_what_shape(tmp_path, when, answer, holds):
    assert (verdict(tmp_path, f"when = {json.dumps(when)}", answer).verdict is Verdict.KNOWN) == holds


def test_what_the_other_instance_leaves_open_is_open(tmp_path):
    """A maximum over NaN is open; so it is of the instance with other attributes."""
    inst = Instance.from_json(
        {
            "format": 2,
            "dialect": "onnx",
            "op": "MaxPool",
            "version": 12,
            "opset": 17,
            "attrs": {"kernel_shape": [1]},
            "args": {"X": {"dtype": "f32", "shape": [1, 1, 3], "values": [0.0] * 3}},
            "outs": 1,
        }
    )
    c = Case(registry.version_of(inst), inst, 0)
    c._draws = [{"X": np.array([[[1, np.nan, 3]]], np.float32)}]
    wider = "def told(g):\n    return g.reevaluate({'kernel_shape': [2]})\n"
    assert verdict(tmp_path, 'defect_model = "told"', [[[5, 3]]], wider, c).verdict is Verdict.KNOWN
    assert verdict(tmp_path, 'defect_model = "told"', [[[5, 3, 3]]], wider, c).verdict is Verdict.MISMATCH


def test_an_ambiguity_may_name_a_reading(tmp_path):
    other = ENTRY.replace("known", "ambiguous").replace("reason", "question") + 'readings = ["ours", "the other"]\n'
    (tmp_path / "defects").mkdir(exist_ok=True)
    (tmp_path / "defects" / "toy.py").write_text(AGAIN)
    (tmp_path / "x.toml").write_text(other.format('defect_model = "told"'))
    ledger = load_ledger([tmp_path])
    for answer, found in (([1, -0.02, -0.04, np.nan], "ambiguous"), ([1, -0.03, -0.04, np.nan], "mismatch")):
        outcome = Outcome(Status.VALUE, [np.asarray(answer, np.float32)])
        assert judge_case(case(), BackendInfo("toy"), [outcome], ledger).verdict.value == found


@pytest.mark.parametrize(
    "entry",
    [
        e
        for e in load_ledger().entries
        if e.defect_model and ("openvino" in e.backends or e.id.startswith(("ort-arm", "ort-sve")))
    ],
    ids=lambda e: e.id,
)
def test_listed_models_excuse_their_answers_and_no_others(entry):
    """The instance of an entry, answered as one of its models says, and then otherwise at an element that is wrong.
    What is said but for an error is answered with most of that error, or with what else may come."""
    run = int("runs" in (entry.when.names if entry.when else ()))  # what shows in the second run
    inst = entry.instance if run else replace(entry.instance, reruns=())
    c = fill(registry.version_of(inst), inst)
    openvino = "openvino" in entry.backends
    info = BackendInfo(entry.backends[0].rstrip("*"), "" if openvino else "1.32", flushes=("f32", "bf16") * openvino)
    met = 0

    def judged(row):
        first = [Outcome(Status.VALUE, [e.value for e in c.expected[0]])] * run
        return judge_case(c, info, [*first, Outcome(Status.VALUE, row)], own).verdict

    for told in entry.defect_model:
        given = Given(c, run)
        with quiet:
            outputs = told(given)
        if outputs is None:
            continue
        values = [o if getattr(o, "shows", None) is None else o.shows for o in outputs]
        values = [o.expected if isinstance(o, Turned) else o for o in values]  # of a symmetric instance
        own = Ledger([entry])
        for share in (0, 0.9, None):
            with quiet:
                row = [
                    getattr(o, "value", o)
                    if not (share != 0 and isinstance(o, Near))
                    else o.other
                    if share is None
                    else o.value + share * np.asarray(o.within)
                    for o in values
                ]
                row = [
                    None
                    if v is NOTHING
                    else np.array(v)
                    if isinstance(o, Such)
                    else np.array(e.value if v is None else v, e.value.dtype)
                    for o, v, e in zip(outputs, row, given.expected)
                ]
            if judged(row) is Verdict.KNOWN:
                values = row
                break
        else:
            continue
        met += 1
        if isinstance(outputs[0], Such):  # anything of its shape may pass; nothing of another does
            assert judged([np.stack([values[0]] * 3), *values[1:]]) is Verdict.MISMATCH
        elif np.shape(values[0]) == given.expected[0].value.shape and values[0].dtype != bool:
            at = np.unravel_index(np.argmax(values[0] != given.expected[0].value), values[0].shape)
            told_or_due = values[0][at], given.expected[0].value[at]  # in a type of powers of two 3 may be either
            values[0][at] = next(x for x in np.array([3, 5, 96]).astype(values[0].dtype) if x not in told_or_due)
            assert judged(values) is Verdict.MISMATCH
    assert met, "no model says what may come of the entry's own instance"


def test_a_name_belongs_to_one_file(tmp_path):
    (tmp_path / "defects").mkdir()
    (tmp_path / "defects" / "other.py").write_text("import numpy as np\n" + HALF)
    with pytest.raises(FormatError, match="told is the name of a model in another file already"):
        verdict(tmp_path, 'defect_model = "told"', [0, 0, 0, 0], HALF)


TWO = """
[[known]]
id = "half"
backend = "toy"
op = "onnx/*"
kind = ["value", "nan"]
defect_model = "told"
reason = "as the test says"
clause = "as the test says"

[[known]]
id = "lost"
backend = "toy"
op = "onnx/*"
when = "all(e != e and a == 0 for e, a in wrong_pairs)"
reason = "as the test says"
clause = "as the test says"
"""


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([1, -2, -4, np.nan], {"half": 1}),
        ([1, -1, -2, 0], {"lost": 1}),
        ([1, -2, -4, 0], {"half": 1, "lost": 1}),
        ([1, -2, -2, 0], {"half": 1, "lost": 1}),
        ([1, -2, -4, 7], {}),
        ([1, -7, -4, 0], {}),
        ([7, -2, -4, 0], {}),
    ],
)
def test_two_listed_differences_in_one_answer(tmp_path, answer, found):
    """Each explains its elements as if the others were right; what neither explains is a mismatch."""
    (tmp_path / "x.toml").write_text(TWO)
    (tmp_path / "defects").mkdir()
    (tmp_path / "defects" / "toy.py").write_text("import numpy as np\n" + HALF)
    ledger = load_ledger([tmp_path])
    judged = judge_case(case(), BackendInfo("toy"), [Outcome(Status.VALUE, [np.asarray(answer, np.float32)])], ledger)
    assert judged.verdict is (Verdict.KNOWN if found else Verdict.MISMATCH)
    assert judged.known in ([*found] or [None])
    assert ledger.counts() == found


PAIR = """
[[known]]
id = "{}"
backend = "toy"
op = "onnx/*"
defect_model = "{}"
reason = "as the test says"
clause = "as the test says"
"""


def test_two_outputs_of_which_each_is_a_listed_difference(tmp_path):
    (tmp_path / "x.toml").write_text(PAIR.format("first", "zeros") + PAIR.format("second", "nothing"))
    (tmp_path / "defects").mkdir()
    (tmp_path / "defects" / "toy.py").write_text(
        "from harness.ledger.defect_models import NOTHING\n"
        "def zeros(g):\n    return [g.expected[0].value * 0, None]\n"
        "def nothing(g):\n    return [None, NOTHING]\n"
    )
    inst = Instance("onnx", "TopK", 11, 17, {}, {"X": Arg(F32, (3,)), "K": Arg(I64, (1,))}, 2)
    c = Case(registry.version_of(inst), inst, 0)
    c._draws = [{"X": np.array([3, 1, 2], np.float32), "K": np.array([2])}]
    ledger = load_ledger([tmp_path])

    def found(*outputs):
        return judge_case(c, BackendInfo("toy"), [Outcome(Status.VALUE, list(outputs))], ledger).verdict

    zeros, right = np.zeros(2, np.float32), np.array([0, 2])
    assert found(zeros, right) is Verdict.KNOWN
    assert found(zeros, None) is Verdict.KNOWN
    assert found(zeros + 1, None) is Verdict.MISMATCH
    assert found(zeros, right[::-1]) is Verdict.MISMATCH
