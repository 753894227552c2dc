"""What the spec leaves open is open at the elements that it speaks of, and nowhere else: the rest is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case, fill
from harness.cases.result import Result
from harness.core.dtypes import of
from harness.core.errors import FormatError
from harness.core.instance import Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import Part, Underspecified, first_of, gathered, open_at, registry, underspecified
from harness.engine.verdict import judge_case
from harness.ledger.files import read
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.programs import ProgramDialect
from suites.semantics.elementwise.common import NAN_UNDERSPECIFIED

# programs have no operands of their own
SYSTEMS = [n for n in registry.names() if not isinstance(registry.dialect(n), ProgramDialect)]
DRAWS = 16
SOMEBODY = BackendInfo("somebody")


def case_of(
    op: str,
    version: Any,
    args: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    dialect: str = "onnx",
    opset: Any = None,
    **more: Any,
) -> Case:
    """args: slot -> (type, shape, values)."""
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": dialect,
            "op": op,
            "version": version,
            "opset": opset or version,
            "outs": 1,
            "attrs": attrs or {},
            "args": {k: dict(zip(("dtype", "shape", "values"), a)) for k, a in args.items()},
            **more,
        }
    )
    return fill(registry.dialect(dialect).version_of(inst), inst)


def result(case: Case, *changes: tuple[int, Any], ledger: Ledger | None = None) -> Result:
    """The verdict on what the reference gives, but for these elements of the first output."""
    assert case.expected is not None, case.problem
    outputs = [e.value.copy() for e in case.expected[0]]
    for at, value in changes:
        outputs[0].reshape(-1)[at] = value
    return judge_case(case, SOMEBODY, [Outcome(Status.VALUE, outputs, "run")], ledger)


RELU = {"X": ("f32", [4], [{"f": "nan"}, 1.0, -1.0, 2.0])}


def test_what_a_nan_leaves_open_is_that_element():
    case = case_of("Relu", 14, RELU)
    assert result(case).verdict is Verdict.AGREE
    assert result(case, (0, 0.0)).verdict is Verdict.AMBIGUOUS
    assert result(case, (0, 0.0)).ambiguity == NAN_UNDERSPECIFIED
    for wrong in ([(2, -1.0)], [(0, 0.0), (2, -1.0)]):
        found = result(case, *wrong)
        assert found.verdict is Verdict.MISMATCH
        assert found.judgement is not None
        assert [e["index"] for e in found.judgement.diff()["elements"]] == [[2]]  # nothing is said of what is open


@pytest.mark.parametrize(
    ("x", "scale"),
    [([{"f": "nan"}, 5.0], [1.0]), ([1.0, 5.0], [{"f": "nan"}, 1.0]), ([0.0, 5.0], [0.0, 1.0])],
    ids=["element", "scale", "none over none"],
)
def test_a_quotient_that_is_nan_leaves_its_integer_open(x: Any, scale: Any) -> None:
    args = {"x": ("f32", [2], x), "y_scale": ("f32", [len(scale)] if len(scale) > 1 else [], scale)}
    case = case_of("QuantizeLinear", 13, args, {"axis": 0})
    for value in (0, 255, 7):
        assert result(case, (0, value)).verdict in (Verdict.AGREE, Verdict.AMBIGUOUS)
    assert result(case, (0, 255), (1, 4)).verdict is Verdict.MISMATCH


def test_a_nan_stays_one_in_float8() -> None:
    args = {"x": ("f32", [2], [{"f": "nan"}, 4.0]), "y_scale": ("f32", [], [1.0])}
    case = case_of("QuantizeLinear", 19, {**args, "y_zero_point": ("f8e4m3fn", [], [0.0])})
    assert result(case).verdict is Verdict.AGREE
    assert result(case, (0, 0.0)).verdict is Verdict.MISMATCH


def test_no_shape_is_open_where_elements_are():
    case = case_of("Relu", 14, RELU)
    for outputs in ([np.zeros(3, np.float32)], [np.zeros((4, 1), np.float32)], [np.zeros(4, np.float64)]):
        found = judge_case(case, SOMEBODY, [Outcome(Status.VALUE, outputs, "run")])
        assert found.verdict is Verdict.MISMATCH


def test_an_integer_mean_is_one_of_the_integers_next_to_it():
    case = case_of("ReduceMean", 18, {"data": ("i32", [2, 2], [1, 2, 10, 11])}, {"keepdims": 0})
    assert result(case).verdict is Verdict.AGREE  # 24 / 4
    case = case_of("ReduceMean", 13, {"data": ("i32", [2, 2], [1, 2, -10, -11])}, {"axes": [1], "keepdims": 0})
    for one, other in ((1, -10), (2, -11), (1, -11)):
        assert result(case, (0, one), (1, other)).verdict in (Verdict.AGREE, Verdict.AMBIGUOUS)
    for at, wrong in ((0, 0), (0, 3), (1, -9), (1, -12), (1, 10)):
        assert result(case, (at, wrong)).verdict is Verdict.MISMATCH


def test_every_run_is_looked_at():
    """An answer of the first run that may be otherwise hides no wrong one of the second."""
    again = {"X": {"dtype": "f32", "shape": [2], "values": [1.0, -1.0]}}
    case = case_of("Relu", 14, {"X": ("f32", [2], [{"f": "nan"}, -1.0])}, reruns=[again])
    assert case.expected is not None
    assert len(case.expected) == 2
    open_, right, wrong = (Outcome(Status.VALUE, [np.array(x, np.float32)], "run") for x in ([0, 0], [1, 0], [1, -1]))
    assert judge_case(case, SOMEBODY, [open_, right]).verdict is Verdict.AMBIGUOUS
    assert judge_case(case, SOMEBODY, [open_, wrong]).verdict is Verdict.MISMATCH
    nothing = Outcome(Status.VALUE, [np.zeros(2, np.float32)], "run")
    assert judge_case(case, SOMEBODY, [open_, nothing]).verdict is Verdict.MISMATCH  # no NaN in the second run


def test_a_border_of_zeros_is_open_where_the_type_has_none():
    args = {"data": ("f8e8m0", [2], [1, 2]), "pads": ("i64", [2], [0, 1])}
    case = case_of("Pad", 24, args, {"mode": "constant"})
    for zero in (2.0**-127, float("nan")):
        assert result(case, (2, zero)).verdict in (Verdict.AGREE, Verdict.AMBIGUOUS)
    assert result(case, (1, 4)).verdict is Verdict.MISMATCH
    given = case_of("Pad", 24, {**args, "constant_value": ("f8e8m0", [], [4])}, {"mode": "constant"})
    assert result(given, (2, 2)).verdict is Verdict.MISMATCH
    assert given.underspecified == [None]


def test_flushing_shows_next_to_underspecified_elements():
    """A subnormal taken for zero: times 3 it is 0, times -inf NaN, which is open here beside a sum that overflows."""
    inf = {"f": "-inf"}
    case = case_of(
        "BATCH_MATMUL",
        1,
        {
            "x": ("f32", [2, 1, 2], [0.0, -1e-38, 3.0, 1.0]),
            "y": ("f32", [2, 3, 2], [0.0, 0.0, 0.0, 3.0, 0.0, inf, 3e38, inf, 0.0, 0.0, 0.0, 0.0]),
        },
        {"adj_x": False, "adj_y": True},
        "tflite",
        1,
    )
    got = np.array([0, 0, np.nan, -np.inf, 0, 0], np.float32).reshape(2, 1, 3)
    flushing = BackendInfo("flushing", flushes=("f32",))
    right = judge_case(case, flushing, [Outcome(Status.VALUE, [got], "run")]).verdict
    assert right in (Verdict.AGREE, Verdict.AMBIGUOUS)
    assert judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [got], "run")]).verdict is Verdict.MISMATCH
    got[0, 0, 0] = 1
    assert judge_case(case, flushing, [Outcome(Status.VALUE, [got], "run")]).verdict is Verdict.MISMATCH


def test_a_reading_of_a_sum_has_the_room_of_the_sum():
    x = np.array([1.1, 2.2, 3.3, 4.4, 5.5, 6.6], np.float32)
    w = np.array([[[0.1, 0.2, 0.3, 0.7], [0.3, 0.1, 0.7, np.nan]]], np.float32)
    case = case_of(
        "Conv", 11, {"X": ("f32", [1, 2, 3], x.tolist()), "W": ("f32", [1, 2, 4], w.ravel().tolist())}, {"pads": [1, 1]}
    )
    padded = np.pad(x.reshape(2, 3).astype(np.float64), ((0, 0), (1, 1)))
    products = [np.nan_to_num(w[0].astype(np.float64)) * padded[:, k : k + 4] for k in range(2)]
    left_out = np.float32([[[np.nan, products[1].sum()]]])  # where the NaN stands over the padding

    def verdict(ulps: float) -> Verdict:
        got = (left_out * (1 + ulps * 2.0**-23)).astype(np.float32)
        return judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [got], "run")]).verdict

    assert verdict(0) is Verdict.AMBIGUOUS
    assert verdict(2) is Verdict.AMBIGUOUS
    assert verdict(1000) is Verdict.MISMATCH


def test_the_room_of_a_reading_is_in_the_layout_of_the_output():
    """TFLite's channels come last, those of the meaning second."""
    weights = [0.5, np.nan, 0.5, 0.5]  # [out, height, width, in]
    case = case_of(
        "CONV_2D",
        1,
        {"input": ("f32", [1, 2, 3, 1], [1, 2, 3, 4, 5, 6]), "filter": ("f32", [1, 2, 2, 1], weights)},
        {"stride_h": 1, "stride_w": 1, "padding": "SAME", "fused_activation_function": "NONE"},
        "tflite",
        1,
    )
    nan = np.nan
    left_out = np.array([nan, nan, 4.5, nan, nan, 3.0], np.float32).reshape(1, 2, 3, 1)
    for got in (left_out, np.full_like(left_out, nan)):
        assert judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [got], "run")]).verdict in (
            Verdict.AMBIGUOUS,
            Verdict.AGREE,
        )
    left_out[0, 1, 2] = 4
    assert judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [left_out], "run")]).verdict is Verdict.MISMATCH


def test_dropout_beyond_a_type_without_infinities_is_nan_or_the_highest_number():
    case = case_of(
        "Dropout",
        22,
        {"data": ("f8e5m2fnuz", [1], [57344.0]), "ratio": ("f32", [], [0.75]), "training_mode": ("bool", [], [True])},
    )
    dtype = case.expected[0][0].value.dtype
    for value, right in ((0, True), (np.nan, True), (57344, True), (-57344, False), (49152, False)):
        got = np.array([value]).astype(dtype)
        found = judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [got], "run")]).verdict
        assert (found is Verdict.MISMATCH) is not right, value


def test_reasons_are_gathered():
    a, b = underspecified("a", np.array([True, False])), underspecified("b", np.array([False, True]))
    assert underspecified("none", np.array([False])) is None
    assert gathered(None, None) is None
    both = gathered(a, None, b)
    assert both == "a"
    assert [p.why for p in both.parts] == ["a", "b"]
    assert both.without("a") == "b"
    assert both.without("a").without("b") is None
    assert [m.tolist() for m, _ in both.masks(0)] == [[True, False], [False, True]]
    assert gathered(a, "all").masks(0) is None
    assert gathered("all").without("all") is None
    check = first_of(lambda i, p: None, lambda i, p: b, lambda i, p: a)
    assert check({}, {}) == "b"
    assert len(check({}, {}).parts) == 2
    per_result = Underspecified(Part("c", (None, np.array([True]))))
    assert list(per_result.masks(0)) == []
    assert len(list(per_result.masks(1))) == 1


# -- entries that speak of elements

ENTRY = """
[[ambiguous]]
id = "lowest"
op = "onnx/Neg"
question = "?"
clause = "-"
readings = ["itself", "the largest"]
"""


def ledger_of(tmp_path: Any, text: str) -> Ledger:
    path = tmp_path / "x.toml"
    path.write_text(text)
    return Ledger(read(path))


def test_an_entry_may_be_about_elements(tmp_path):
    ledger = ledger_of(tmp_path, ENTRY + 'elements = "lowest"\n')
    case = case_of("Neg", 13, {"X": ("i8", [3], [-128, 5, 0])})
    found = result(case, (0, 127), ledger=ledger)
    assert (found.verdict, found.ambiguity) == (Verdict.AMBIGUOUS, "lowest")
    assert ledger.counts() == {"lowest": 1}
    assert result(case, (0, 127), (1, 5), ledger=ledger).verdict is Verdict.MISMATCH
    assert result(case, (1, 5), ledger=ledger).verdict is Verdict.MISMATCH
    whole = ledger_of(tmp_path, ENTRY)
    assert result(case, (1, 5), ledger=whole).verdict is Verdict.AMBIGUOUS


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('elements = "odd"', "elements 'odd', expected one of nan inf lowest"),
        ('elements = "nan"\nkind = "nan"', "kind speaks of a whole answer, elements of some of it"),
    ],
)
def test_limits_of_the_field_elements(tmp_path, more, words):
    with pytest.raises(FormatError, match=words):
        ledger_of(tmp_path, ENTRY + more)


@pytest.mark.parametrize("entry", [e for e in load_ledger().entries if e.elements], ids=lambda e: e.id)
def test_entries_of_elements_excuse_no_others(entry):
    """The entry's own instance, answered wrongly at an element that it does not speak of."""
    case = fill(registry.dialect(entry.instance.dialect).version_of(entry.instance), entry.instance)
    own = Ledger([entry])
    at = entry.underspecified(case, SOMEBODY)
    assert at is not None, "its instance has no such element"
    ((mask, _),) = at.masks(0)
    assert case.expected is not None
    value = case.expected[0][0].value
    mask = np.broadcast_to(mask, value.shape).reshape(-1)
    other = int(np.flatnonzero(~mask)[0])
    wrong = 100 if not np.any(value.reshape(-1)[other] == 100) else 99
    assert result(case, (int(np.flatnonzero(mask)[0]), 77), ledger=own).verdict is Verdict.AMBIGUOUS
    assert result(case, (other, wrong), ledger=own).verdict is not Verdict.AMBIGUOUS


# -- entries that say what the backend takes the instance for

IGNORED = """
[[known]]
id = "interleave"
backend = "*"
op = "mil/concat"
behaves_as = '{"attrs":{"interleave":false}}'
reason = "interleave is ignored"
clause = "-"
"""


def test_a_difference_may_be_bound_to_one_wrong_answer(tmp_path):
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "mil",
            "op": "concat",
            "version": "ios15",
            "opset": "ios15",
            "outs": 1,
            "attrs": {"axis": 0, "interleave": True},
            "args": {"values": [{"dtype": "i32", "shape": [2], "values": v} for v in ([1, 2], [3, 4])]},
        }
    )
    case = fill(registry.dialect("mil").version_of(inst), inst)
    ledger = ledger_of(tmp_path, IGNORED)

    def answer(*values: int) -> Result:
        outcome = Outcome(Status.VALUE, [np.array(values, np.int32)], "run")
        return judge_case(case, SOMEBODY, [outcome], ledger)

    assert answer(1, 3, 2, 4).verdict is Verdict.AGREE
    assert answer(1, 2, 3, 4).verdict is Verdict.KNOWN  # what concat without interleave gives
    assert answer(1, 2, 4, 3).verdict is Verdict.MISMATCH  # wrong in another way
    assert ledger.counts() == {"interleave": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "behaves_as: Expecting value"),
        ("[]", "behaves_as: expected"),
        ('{"outs": 2}', "behaves_as: expected"),
        ('{"args": {"x": 1}}', "slots can only be left out"),
    ],
)
def test_limits_of_behaves_as(tmp_path, text, words):
    with pytest.raises(FormatError, match=words):
        ledger_of(tmp_path, IGNORED.replace('{"attrs":{"interleave":false}}', text))
    with pytest.raises(FormatError, match="behaves_as explains a mismatch alone"):
        ledger_of(tmp_path, IGNORED + 'verdict = "crashed"')


# -- laws over all op versions


@cache
def open_cases(system: str) -> list[tuple[Case, Underspecified]]:
    """Drawn cases that leave some elements open, and not all."""
    out = []
    for v in registry.dialect(system).versions.values():
        for i in range(DRAWS):
            c = draw_case(v, v.opsets[i % len(v.opsets)], 77, i, 1, False, lazy=True)
            why = c.underspecified[0] if not c.problem and c.expected is not None and c.underspecified else None
            if isinstance(why, Underspecified) and why.masks(0) is not None:
                out.append((c, why))
            assert not c.problem, f"{v.key}: {c.problem}"
    return out


def masks(c: Case, why: Underspecified) -> Iterator[tuple[int, Any, np.ndarray]]:
    """Output, what is expected, and the elements that may be anything."""
    assert c.expected is not None
    call = c.version.dialect.call_of(c.inst, c.draws[0], c.version)
    for i, e in enumerate(c.expected[0]):
        if isinstance(e.value, np.ndarray):
            at = open_at(call, why, i, e.value)
            assert at.shape == e.value.shape
            yield i, e, at


@pytest.mark.parametrize("system", SYSTEMS)
def test_masks_fit_the_results(system):
    met: Counter[str] = Counter()
    with quiet:
        for c, why in open_cases(system):
            for _ in masks(c, why):
                met[str(why)] += 1
    assert met.total() > 20, "hardly an instance leaves elements open"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_wrong_element_that_is_settled_is_reported(system):
    """Beside others that are open; wherever it would be told without them."""
    told = 0
    for c, why in open_cases(system):
        with quiet:
            found = list(masks(c, why))
        i, e, at = found[0] if found else (0, None, np.zeros(0, bool))
        free = np.flatnonzero(~at)
        if not free.size or of(e.value).kind not in "fiu" or e.error.fixed_ulps is None:
            continue
        k = int(free[len(free) // 2])
        old = float(e.value.reshape(-1)[k])
        if not np.isfinite(old):
            continue
        assert c.expected is not None
        outputs = [x.value.copy() for x in c.expected[0]]
        outputs[i].reshape(-1)[k] = 2 if old == 0 else 0  # no reading of a small integer
        verdict = judge_case(c, SOMEBODY, [Outcome(Status.VALUE, outputs, "run")]).verdict
        assert verdict is Verdict.MISMATCH, f"{c.inst.dumps()}: {verdict} at {k}, {why}"
        told += 1
    assert told > 10


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_a_nan_leaves_settled_does_not_hang_on_it(system):
    """Whatever stands in its place, the elements that are not open stay as they are."""
    seen = 0
    for c, why in open_cases(system):
        if not all(p.why == NAN_UNDERSPECIFIED or p.why.startswith("NaN in ") for p in why.parts) or "q" in str(
            c.inst.version
        ):
            continue
        with quiet:
            settled = [(i, ~at) for i, _, at in masks(c, why)]
            for number in (0.0, 3.0):
                changed = {k: _without_nan(v, number) for k, v in c.draws[0].items()}
                again = c.version.evaluate(c.version.dialect.call_of(c.inst, changed, c.version))
                assert c.expected is not None
                for i, at in settled:
                    a, b = c.expected[0][i].value[at], again[i].value[at]
                    assert ((a == b) | ((a != a) & (b != b))).all(), c.inst.dumps()
        seen += 1
    assert seen > 5


def _without_nan(v: Any, number: float) -> Any:
    if isinstance(v, list):
        return [_without_nan(x, number) for x in v]
    if not isinstance(v, np.ndarray) or of(v).kind != "f":
        return v
    return np.where(np.isnan(v.astype(np.float64)), number, v.astype(np.float64)).astype(v.dtype)


@pytest.mark.parametrize("system", ["onnx", "mil", "tflite"])
def test_what_an_overflow_leaves_settled_is_exact(system):
    """Integers that are not open are what the same meaning gives in f64, where nothing wraps."""
    seen = 0
    for c, why in open_cases(system):
        v, m = c.version, c.version.meaning
        if (
            m is None
            or v.entry.spelling.out is not None
            or not all(p.why.startswith("integer overflow") for p in why.parts)
        ):
            continue
        call = v.dialect.call_of(c.inst, c.draws[0], v)
        tensors, params = v.decode(call)
        given = [x for t in tensors.values() if t is not None for x in (t if isinstance(t, list) else [t])]
        if any(np.abs(x.astype(np.float64)).max(initial=0) >= 2.0**53 for x in given):
            continue  # sums of such numbers that cancel are not exact in f64
        with quiet:
            wide = {
                k: [x.astype(np.float64) for x in t]
                if isinstance(t, list)
                else None
                if t is None
                else t.astype(np.float64)
                for k, t in tensors.items()
            }
            real = m.fn(**wide, **params)
            for i, e, at in masks(c, why):
                got = real[i] if isinstance(real, tuple) else real
                ok = at | (np.asarray(got, np.float64) == e.value.astype(np.float64)) | (np.abs(got) > 2.0**53)
                assert ok.all(), c.inst.dumps()
        seen += 1
    assert seen > 2


def test_conditions_see_the_wrong_elements(tmp_path):
    entry = """
[[known]]
id = "zero"
backend = "*"
op = "onnx/Neg"
when = "all(a == 0 and e < 0 for e, a in wrong_pairs)"
reason = "negatives are zero"
clause = "-"
"""
    case = case_of("Neg", 13, {"X": ("i8", [3], [1, -5, 2])})
    ledger = ledger_of(tmp_path, entry)
    assert result(case, (0, 0), (2, 0), ledger=ledger).verdict is Verdict.KNOWN
    assert result(case, (0, 0), (1, 0), ledger=ledger).verdict is Verdict.MISMATCH  # 5 came as 0, too
    assert result(case, (0, 1), ledger=ledger).verdict is Verdict.MISMATCH
    short = judge_case(case, SOMEBODY, [Outcome(Status.VALUE, [np.zeros(2, np.int8)], "run")], ledger)
    assert short.verdict is Verdict.MISMATCH  # of another shape: there is no element to speak of


def test_a_contraction_that_leaves_the_type_on_its_way_may_be_infinite_and_no_other_number():
    """200 * 200 + 200 * 200 is beyond f16, an eighth of it is not: which operands meet first is not said."""

    def einsum(x: float) -> Case:
        rows = (([1, 2], [x, x]), ([1, 2], [200.0, 200.0]), ([1], [0.125]))
        inst = Instance.from_json(
            {
                "format": 1,
                "dialect": "onnx",
                "op": "Einsum",
                "version": 12,
                "opset": 12,
                "outs": 1,
                "attrs": {"equation": "ij,ij,k->ik"},
                "args": {"Inputs": [{"dtype": "f16", "shape": s, "values": v} for s, v in rows]},
            }
        )
        return fill(registry.dialect("onnx").version_of(inst), inst)

    case = einsum(200.0)
    assert result(case).verdict is Verdict.AGREE
    assert result(case, (0, np.inf)).verdict is Verdict.AMBIGUOUS
    assert result(case, (0, 5000.0)).verdict is Verdict.MISMATCH
    assert result(einsum(100.0), (0, np.inf)).verdict is Verdict.MISMATCH
