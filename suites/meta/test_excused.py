"""The share of valid instances that is excused: counted in fixed draws, explained by a sentence above one in ten."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness import cli
from harness.cases.case import draw_case
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from harness.declare import Part, Underspecified, gathered, other_shape, registry, underspecified
from harness.engine.verdict import judge_case
from harness.ledger.ledger import elements_of
from harness.ledger.loader import load_ledger
from harness.reach import excused
from harness.reach.excused import MOST, Sentences, Share, share_of
from harness.tolerance.underspecified import Openness, openness
from harness.workers.info import BackendInfo

ledger = cache(load_ledger)
DRAWS, SURE = 40, 400  # of every op version, and where these few say that it departs from the law


def share(key: str, draws: int) -> Share:
    v = registry.dialect(key.split("/")[0]).versions[key]
    return share_of(v, draws, elements_of(ledger(), v))


@pytest.mark.parametrize("name", registry.names())
def test_more_than_a_tenth_excused_needs_a_sentence(name: str) -> None:
    told, over = Sentences(registry.dialect(name)), set[str]()
    for key in registry.dialect(name).versions:
        if share(key, DRAWS).excused > MOST:
            over.add(key)
            if not told.of(key):
                s = share(key, SURE)
                why = f"{key}: {s.excused:.1%} excused: {dict(s.reasons)}; {told.path} has no sentence"
                assert s.excused <= MOST, why
    met = {p for key in over for p in told.patterns(key)}
    for pattern in told.table.keys() - met:
        keys = [k for k in registry.dialect(name).versions if pattern in told.patterns(k)]
        assert any(share(k, SURE).excused > MOST / 2 for k in keys), f"{told.path}: {pattern} is no longer needed"


@pytest.mark.parametrize(
    "key",
    [
        "onnx/Gradient/1",
        "onnx/Slice/11",
        "onnx/MaxRoiPool/22",
        *(f"onnx/Resize/{v}" for v in (10, 11, 13, 18, 19)),
    ],
)
def test_open_elements_of_these_have_readings(key: str) -> None:
    s = share(key, 200)
    s = s if s.counts[Openness.READINGS] else share(key, 2000)  # of Slice one instance in 200 is open
    assert s.counts[Openness.READINGS]
    assert s.excused == 0, s.reasons


def test_how_much_is_open() -> None:
    at = np.array([True, False])
    some, read = underspecified("some", at), underspecified("read", at, np.zeros(2))
    other, extent = other_shape("other", 0, np.zeros(3)), other_shape("extent", 0, shapes=((0, None),))
    assert [openness(w) for w in (some, read, other, extent, "all")] == [
        Openness.PARTLY,
        Openness.READINGS,
        Openness.READINGS,
        Openness.PARTLY,
        Openness.WHOLLY,
    ]
    assert openness(gathered(read, some)) is Openness.PARTLY
    assert openness(Underspecified(Part("none"))) is Openness.WHOLLY


# -- readings of another shape


def answers(key: str, wanted: str, *outputs: object) -> tuple[Verdict, list[np.ndarray]]:
    """The verdict on the first drawn case that leaves ``wanted`` open; outputs: made from those of the reference."""
    v = registry.dialect("onnx").versions[key]
    for i in range(2000):
        case = draw_case(v, v.opsets[-1], 3, i, invalid=False)
        if case.expected is None or wanted not in str(case.ambiguous):
            continue
        values = [e.value for e in case.expected[0]]
        plain = judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, values, "run")])
        if plain.verdict is Verdict.UNINFORMATIVE:
            continue
        told = [f(case, a) for f, a in zip((*outputs, *(lambda c, a: a,) * 9), values)]
        return judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, told, "run")]).verdict, values
    raise AssertionError(f"{key} draws no {wanted}")


def test_a_gradient_of_several_elements_is_their_sum_or_each() -> None:
    why = "Gradient of a tensor"
    assert answers("onnx/Gradient/1", why)[0] is Verdict.AGREE

    def each(case: object, a: np.ndarray) -> np.ndarray:
        (part,) = [p for p in case.underspecified[0].parts if p.at[0] is not None]
        return part.others[0].astype(a.dtype)

    assert answers("onnx/Gradient/1", why, each)[0] is Verdict.AMBIGUOUS
    assert answers("onnx/Gradient/1", why, lambda c, a: each(c, a) + a.dtype.type(8))[0] is Verdict.MISMATCH
    assert answers("onnx/Gradient/1", why, lambda c, a: a + a.dtype.type(8))[0] is Verdict.MISMATCH
    assert answers("onnx/Gradient/1", why, lambda c, a: each(c, a).astype(np.complex64))[0] is Verdict.MISMATCH


def test_a_slice_from_before_the_first_takes_nothing_or_begins_at_the_first() -> None:
    key, why = "onnx/Slice/11", "a start before the first"

    def first(case: object, a: np.ndarray) -> np.ndarray:
        return case.underspecified[0].parts[0].others[0]

    assert answers(key, why, first)[0] is Verdict.AMBIGUOUS
    assert answers(key, why, lambda c, a: np.zeros((*first(c, a).shape, 1), a.dtype))[0] is Verdict.MISMATCH


def test_after_no_iteration_the_rows_that_were_never_made_have_any_extent() -> None:
    v = registry.dialect("onnx").versions["onnx/Loop/16"]
    for i in range(2000):
        case = draw_case(v, v.opsets[-1], 3, i, invalid=False)
        why = case.underspecified[0] if case.expected else None
        if isinstance(why, Underspecified):
            break
    assert isinstance(why, Underspecified)
    assert case.expected is not None
    k = next(j for j, at in enumerate(why.parts[0].at) if at is not None)
    values = [e.value for e in case.expected[0]]

    def verdict(a: object) -> Verdict:
        told = Outcome(Status.VALUE, [*values[:k], a, *values[k + 1 :]], "run")
        return judge_case(case, BackendInfo("somebody"), [told]).verdict

    shape, dtype = values[k].shape, values[k].dtype
    assert verdict(np.zeros((0, *(n + 1 for n in shape[1:])), dtype)) is Verdict.AMBIGUOUS
    assert verdict(np.zeros((1, *shape[1:]), dtype)) is Verdict.MISMATCH
    assert verdict(np.zeros((0, *shape[1:], 2), dtype)) is Verdict.MISMATCH
    name = case.expected[0][k].dtype.name
    assert verdict(TypeOnly(name, (0, *(n + 1 for n in shape[1:])))) is Verdict.AMBIGUOUS
    assert verdict(TypeOnly(name, (None, *(None for _ in shape[1:])))) is Verdict.AGREE
    assert verdict(TypeOnly(name, (2, *shape[1:]))) is Verdict.MISMATCH


def test_the_score_of_a_machine_has_a_stated_shape_and_its_label_is_of_the_list() -> None:
    key, why = "onnx/SVMClassifier/1", "without support vectors"
    assert answers(key, why)[0] is Verdict.AGREE
    assert answers(key, why, lambda c, a: a, lambda c, a: a + 4)[0] is Verdict.MISMATCH
    assert answers(key, why, lambda c, a: a, lambda c, a: a[:, :1])[0] is Verdict.MISMATCH
    assert answers(key, why, lambda c, a: a[:0])[0] is Verdict.MISMATCH


# -- the file, and the list


def test_a_sentence_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = type("Module", (), {"__file__": str(tmp_path / "x")})
    monkeypatch.setattr(excused.importlib, "import_module", lambda name: here)
    file = tmp_path / "excused.toml"
    for text, words in (
        ('[above_a_tenth]\n"onnx/Add/*" = "overflow"\n', "onnx/Add/.*expected a sentence, got 'overflow'"),
        ('[above]\n"onnx/Add/*" = "x"\n', "expected the table above_a_tenth, got above"),
    ):
        file.write_text(text)
        with pytest.raises(FormatError, match=words):
            Sentences(registry.dialect("onnx"))
    file.write_text('[above_a_tenth]\n"onnx/Add/*" = "The sum leaves its type."\n')
    assert Sentences(registry.dialect("onnx")).of("onnx/Add/14") == "The sum leaves its type."
    assert not Sentences(registry.dialect("onnx")).of("onnx/Sub/14")


def test_the_list_shows_shares_and_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "excused", "--op", "onnx/OptimizedRNN", "--op", "onnx/Add", "--draws", "60"]) == 0
    (line,) = capsys.readouterr().out.strip().splitlines()
    assert line.startswith("onnx/OptimizedRNN/1")
    assert "wholly 0.0 %" in line
    assert "of 60" in line
    assert "cuDNN's" in line
