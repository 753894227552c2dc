"""The field ``refused_if``: a refusal is excused where a function says that the backend refuses the instance."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.meta.test_defects import ENTRY, case

REFUSES = "def refuses(g):\n    return g['X'].size > 3\n"
REFUSAL = 'verdict = "wrongly_rejected"\nrefused_if = "refuses"'


def verdict(folder: Path, x: tuple[float, ...], fields: str = REFUSAL, function: str = REFUSES) -> Verdict:
    (folder / "x.toml").write_text(ENTRY.format(fields))
    (folder / "defects").mkdir(exist_ok=True)
    (folder / "defects" / "toy.py").write_text(function)
    refused = Outcome(Status.REJECTED, None, "run", "no")
    return judge_case(case(x=x), BackendInfo("toy"), [refused], load_ledger([folder])).verdict


@pytest.mark.parametrize(
    ("x", "found"), [((1.0, 2.0, 3.0, 4.0), Verdict.KNOWN), ((1.0, 2.0), Verdict.WRONGLY_REJECTED)], ids=["four", "two"]
)
def test_the_function_decides(tmp_path: Path, x: tuple[float, ...], found: Verdict) -> None:
    assert verdict(tmp_path, x) is found


def test_a_function_that_fails_leaves_no_verdict(tmp_path: Path) -> None:
    assert verdict(tmp_path, (1.0,), function="def refuses(g):\n    return 1 / 0\n") is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('refused_if = "refuses"', "refused_if explains a refusal alone"),
        ('verdict = "crashed"\nrefused_if = "gone"', "expected a function of"),
        ('verdict = "crashed"\nrefused_if = ""', "refused_if must be a text"),
    ],
)
def test_a_contradictory_table_is_reported(tmp_path: Path, fields: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        verdict(tmp_path, (1.0,), fields)


def test_refused_if_does_not_predict_for_learned_support(tmp_path: Path) -> None:
    """A condition alone would keep instances from each other's models before they are asked."""
    verdict(tmp_path, (1.0,), REFUSAL + '\nwhen = "opset > 1"')
    assert not load_ledger([tmp_path]).entries[0].predictive
