"""A foreign backend that misbehaves: the right verdict and a message that says what it did, case by case."""

from typing import Any

import pytest

from harness.backends import registry as backends
from harness.cases.case import draw_case
from harness.core.outcome import Status, Verdict
from harness.engine.case_record import paragraph, record
from harness.engine.engine import Engine
from suites.meta.toy import toy

CASES = 6
RUDE = {
    "Raises": (Verdict.WRONGLY_REJECTED, "KeyError: 'no such kernel'", ""),
    "Unsupporting": (Verdict.UNSUPPORTED, "needs a licence", ""),
    "Unfinished": (Verdict.UNSUPPORTED, "one day", ""),
    "Elsewhere": (Verdict.UNSUPPORTED, "no kernel for these types", ""),
    "Narrow": (Verdict.UNSUPPORTED, "too narrow", ""),
    "Wide": (Verdict.WRONGLY_REJECTED, "too narrow", ""),
    "WrongContainer": (Verdict.UNKNOWN, "run returned ndarray, expected a dict", ""),
    "Positional": (Verdict.AGREE, "", ""),
    "OneTooMany": (Verdict.UNKNOWN, "values, expected a dict", ""),
    "WrongNumber": (Verdict.MISMATCH, "", "missing"),
    "WrongType": (Verdict.MISMATCH, "", "dtype"),
    "WrongDtype": (Verdict.MISMATCH, "", "dtype"),
    "Objects": (Verdict.MISMATCH, "", "dtype"),
    "Mapped": (Verdict.AGREE, "", ""),
    "Speechless": (Verdict.WRONGLY_REJECTED, "Odd: (its text: KeyError)", ""),
    "AllNan": (Verdict.MISMATCH, "", "nan"),
    "Transposed": (Verdict.MISMATCH, "", "shape"),
    "Aborts": (Verdict.CRASHED, "SIGABRT", ""),
    "Segfaults": (Verdict.CRASHED, "SIGSEGV", ""),
    "Exits": (Verdict.CRASHED, "exited with code 0", ""),
    "Hangs": (Verdict.TIMED_OUT, "no answer within", ""),
    "EatsMemory": (Verdict.CRASHED, "out of memory", ""),
    "Chatters": (Verdict.AGREE, "", ""),
}


def cases():
    """Valid sums of f32 that are neither empty nor square nor scalar, so that every misdeed shows."""
    v = toy.versions["toy/Add/1"]
    out: list[Any] = []
    i = 0
    while len(out) < CASES:
        case = draw_case(v, v.opsets[-1], 0, i, 1, invalid=False)
        i += 1
        shape = case.expected[0][0].value.shape if case.expected else ()
        if case.dtype.name == "f32" and len(shape) == 2 and shape[0] != shape[1] and 0 not in shape:
            out.append(case)
    return out


@pytest.mark.parametrize("name", RUDE)
def test_a_rude_plug_in_gets_the_verdict_it_deserves(name):
    verdict, message, kind = RUDE[name]
    with backends.create(f"suites.meta.contract_backends:{name}", deadline=0.2) as handle:
        chosen = cases()[: 2 if name == "Hangs" else CASES]
        judged = list(Engine([handle], wanted=None).judge(chosen))  # as in a replay, where claims are not held
    assert len(judged) == len(chosen)
    for j in judged:
        assert j.verdict is verdict, (name, j.verdict, j.outcome.message)
        assert message in j.outcome.message
        if kind:
            assert j.judgement.kind == kind
        if verdict is Verdict.UNKNOWN:
            assert j.outcome.status is Status.HARNESS_ERROR


def test_unclaimed_instances_do_not_run_on_a_plug_in():
    with backends.create("suites.meta.contract_backends:Narrow") as handle:
        assert list(Engine([handle]).judge(cases())) == []
    with backends.create("suites.meta.contract_backends:Wide") as handle:
        assert len(list(Engine([handle]).judge(cases()))) == CASES


def test_words_of_a_backend_are_one_line_and_rule_no_terminal():
    with backends.create("suites.meta.contract_backends:Loud") as handle:
        (judged,) = Engine([handle]).judge(cases()[:1])
        text = paragraph(record(judged, {}))
    assert "\n  load: first line \\x1b[31msecond line\\x1b[0m\\x00 third\n" in text
    assert all(c.isprintable() or c == "\n" for c in text)


def test_a_backend_that_does_not_validate_gets_no_invalid_models():
    v = toy.versions["toy/Add/1"]
    drawn = (draw_case(v, v.opsets[-1], 0, i) for i in range(64))
    invalid = [c for c in drawn if c.inst.rule is not None]
    with backends.create("suites.meta.contract_backends:Trusting") as handle:
        found = list(Engine([handle]).judge(invalid))
    assert invalid
    assert found == []  # `validates` is a claim: what is not claimed is not asked
