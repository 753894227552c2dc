"""Known differences that excuse any wrong answer: few, each with its reason, and fewer from release to release."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness import cli
from harness.ledger.entry import LedgerEntry
from harness.ledger.loader import load_ledger

MOST = 0.05  # of the entries that excuse wrong answers, those that excuse any
# Entries without a condition on the answer and without the reason ``wide``, by folder: lower it, never raise it.
WITHOUT_REASON = {
    "onnxruntime-old": 7,
    "onnx-reference": 5,
    "onnxruntime": 3,
    "coremltools": 1,
}
ENTRY = """
[[known]]
id = "some"
backend = "b"
op = "toy/Add"
reason = "it does"
clause = "it should not"
instance = '{"format": 1, "dialect": "toy", "op": "Add", "version": 1, "opset": 1, "attrs": {}, "args": {}}'
"""


@pytest.fixture(scope="module")
def entries() -> list[LedgerEntry]:
    return [e for e in load_ledger().entries if e.of_answers]


def test_an_entry_without_a_condition_on_the_answer_states_why(entries: list[LedgerEntry]) -> None:
    """`opconform list unconditioned` tells which: they want behaves_as, defect_model or a condition on the answer, or
    else wide."""
    found = Counter(e.folder for e in entries if e.unconditioned and not e.wide)
    assert not {folder: n for folder, n in found.items() if n > WITHOUT_REASON.get(folder, 0)}


def test_few_entries_have_no_condition_on_the_answer(entries: list[LedgerEntry]) -> None:
    wide = [e.id for e in entries if e.wide]
    assert len(wide) <= MOST * len(entries), f"{len(wide)} of {len(entries)}"
    assert not [e.id for e in entries if e.wide and not e.unconditioned], "wide is said of a narrow entry"


CASES = {
    "nothing": ("", True),
    "the instance": ("when = \"rank('x') > 1\"", True),
    "the kind": ('kind = "dtype"', True),
    "wide": ('wide = "uninitialised memory"', True),
    "wrong elements": ('when = "wrong_pairs and all(c == 0 for e, c in wrong_pairs)"', False),
    "distance": ('when = "ulp < 4"', False),
    "behaves_as": ('behaves_as = \'{"attrs": {"axis": 1}}\'', False),
    "no answer": ('verdict = "crashed"', False),
}


@pytest.mark.parametrize(("more", "unconditioned"), CASES.values(), ids=CASES)
def test_what_is_a_condition_on_the_answer(more: str, unconditioned: bool, tmp_path: Any) -> None:
    (tmp_path / "some.toml").write_text(ENTRY + more + "\n")
    (entry,) = load_ledger([tmp_path]).entries
    assert entry.unconditioned is unconditioned


def test_the_list_shows_them_and_their_share(capsys: pytest.CaptureFixture[str], entries: list[LedgerEntry]) -> None:
    assert cli.main(["list", "unconditioned"]) == 0
    said = capsys.readouterr().out
    open_ = [e for e in entries if e.unconditioned]
    assert all(e.id in said for e in open_)
    assert f"{len(open_)} of {len(entries)}" in said
