"""Runs cases on a backend of another dialect.

A backend whose ``info`` has ``target_dialect: <dialect>`` gets instances of its ``formats``, translated into that
dialect (``harness.cases.translation``).  The verdict is on the original instance, under the original bound.  The other
dialect may list differences of this runtime under the name ``info["known_as"]``; they explain a difference here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from harness.cases.case import Case
from harness.cases.result import Result
from harness.cases.translated_tensors import Untranslatable, same
from harness.cases.translation import Translation
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.engine.learned_support import UNASKED
from harness.engine.verdict import judge_case
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo


@cache
def crossing(dialect: str, newest: Any) -> Translation:
    """The way into a dialect, models at ``newest`` at most (None: its last opset)."""
    return Translation(registry.dialect(dialect), newest)


def cross(case: Case, info: BackendInfo) -> Case | Outcome:
    """The case of the other dialect that asks the same, or why there is none."""
    way = crossing(str(info.target_dialect), info.opset)
    try:
        way.twins_of(case.version, case.inst)
        if case.expected is None:
            return Outcome(Status.UNSUPPORTED, None, UNASKED, "the reference has no answer")
        version, inst, draws = way.cross(case.version, case.inst, case.draws, case.expected)
    except Untranslatable as e:
        return Outcome(Status.UNSUPPORTED, None, UNASKED, str(e))
    return Case(version, inst, case.index, case.count, _draws=draws)


def translate_all(cases: Sequence[Case], info: BackendInfo) -> tuple[dict[int, Case], dict[int, Outcome]]:
    """What is asked instead of each case, and what cannot be asked, by id of the original."""
    asked: dict[int, Case] = {}
    settled: dict[int, Outcome] = {}
    for c in cases:
        if c.problem:
            continue
        got = cross(c, info)
        if isinstance(got, Case):
            asked[id(c)] = got
        elif not c.problem:
            settled[id(c)] = got
    return asked, settled


def judge_cross_dialect(
    case: Case, asked: Case, info: BackendInfo, outcomes: list[Outcome], ledger: Ledger | None = None
) -> Result:
    """The verdict on ``case``, from what a backend did with ``asked``, its translation.

    The two share the meaning alone, and a refusal says nothing about that: it is a gap.  So is a result beyond the
    original's bound, if it keeps within the one that the other dialect states.
    """
    result = judge_case(case, info, outcomes, ledger)
    if result.origin is not None:
        result.origin, asked = asked, asked.at(result.run)
        case, outcomes = result.case, [result.outcome]
    result.asked = asked
    if not result.verdict.bad:
        return result
    if result.verdict is Verdict.WRONGLY_REJECTED:
        return _gap(result, f"refused as {asked.version.key}: {result.outcome.message}")
    theirs = judge_case(asked, replace(info, name=(*info.known_as, info.name)[0]), outcomes, ledger)
    if theirs.verdict in (Verdict.KNOWN, Verdict.AMBIGUOUS):
        result.verdict, result.known, result.ambiguity = theirs.verdict, theirs.known, theirs.ambiguity
    elif not theirs.verdict.bad and _same_answer(case, asked):
        return _gap(result, f"within what {asked.version.key} allows, which is more")
    return result


def _same_answer(case: Case, asked: Case) -> bool:
    """Do the two references say the same?  Else one of them is wrong, and that is no matter of bounds."""
    ours, theirs = case.expected or [], asked.expected or []
    return len(ours) == len(theirs) and all(
        len(a) == len(b) and all(same(x.value, y.value) for x, y in zip(a, b)) for a, b in zip(ours, theirs)
    )


def _gap(result: Result, why: str) -> Result:
    out = Outcome(Status.UNSUPPORTED, None, result.outcome.phase, why, result.outcome.millis)
    return replace(result, verdict=Verdict.UNSUPPORTED, outcome=out, judgement=None)
