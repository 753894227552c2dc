"""From outcomes to a verdict: one case and one backend, and what explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.result import Result
from harness.compare import judge, look
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from harness.core.quiet import quiet
from harness.declare import Expected, Underspecified, gathered, may_be, open_at
from harness.ledger.ledger import Ledger
from harness.workers.info import BackendInfo

BY_STATUS = {
    Status.REJECTED: Verdict.WRONGLY_REJECTED,
    Status.UNSUPPORTED: Verdict.UNSUPPORTED,
    Status.CRASHED: Verdict.CRASHED,
    Status.TIMED_OUT: Verdict.TIMED_OUT,
    Status.HARNESS_ERROR: Verdict.UNKNOWN,
}


def plainly_agrees(case: Case, info: BackendInfo, outcomes: list[Outcome]) -> bool:
    """Does a first look show that all runs of a valid instance gave the right answer?

    It does for most instances, and ``judge_case`` would say the same.
    """
    rows = case.expected
    if rows is None:
        return False
    for r, outcome in enumerate(outcomes):
        if outcome.status is not Status.VALUE:
            return False
        if look(rows[r if r < len(rows) else 0], outcome.outputs or (), info.flushes) != 1:
            return False
    return True


def judge_case(
    case: Case,
    info: BackendInfo,
    outcomes: list[Outcome],
    ledger: Ledger | None = None,
    neighbours: tuple[Case, ...] = (),
) -> Result:
    """The verdict of one backend on one case: the worst of its runs, then what explains it.  neighbours: the cases
    of its model, where that is known to matter.

    What goes wrong in one of several runs of a drawn case is told of that run alone; whether it shows alone is for
    ``harness.engine.recheck`` to find out."""
    worst: Result | None = None
    for r, outcome in enumerate(outcomes):
        one = _one(case, info, outcome, r)
        if one.verdict is Verdict.MISMATCH:
            _set_aside(case, info, one, ledger)
        if worst is None or _weight(one) > _weight(worst):
            worst = one
        if one.verdict.bad:
            break
    assert worst is not None
    worst.neighbours = neighbours
    if worst.verdict.bad:
        if case.drawn and len(outcomes) > 1:
            case = case.at(worst.draw)
            worst = replace(worst, case=case, origin=worst.case, run=worst.draw, draw=0)
        refused = worst.verdict is Verdict.WRONGLY_REJECTED
        excusable = refused or (worst.verdict is Verdict.MISMATCH and not _typed(worst))
        if refused and ledger is not None:  # a refusal has a cause, whatever the data
            ledger.explain(worst, info)
        if not worst.verdict.bad:
            return worst
        why = (case.ambiguous if refused else _all_open(case, worst)) if excusable else None
        if excusable and case.problem:
            return _failed(worst, case.problem)
        if why is not None:
            worst.verdict, worst.ambiguity = Verdict.AMBIGUOUS, str(why)
        elif ledger is not None and ledger.explain(worst, info) is None and worst.verdict is Verdict.MISMATCH:
            _explain_in_parts(case, info, worst, ledger)
            if worst.verdict is Verdict.MISMATCH:
                _explain_in_turn(worst, info, ledger)
    return worst


def _explain_in_parts(case: Case, info: BackendInfo, wrong: Result, ledger: Ledger) -> None:
    """Two listed differences in one answer.  Each has to explain its part as if the other part were right."""
    row = (case.expected or [[]])[wrong.draw if wrong.draw < len(case.expected or ()) else 0]
    outputs = wrong.outcome.outputs or ()
    if len(row) != len(outputs):
        return
    try:
        for entry, masks in ledger.shares(wrong, info):
            own, rest = (
                _one(case, info, replace(wrong.outcome, outputs=_set_right(row, outputs, masks, whose)), wrong.draw)
                for whose in (False, True)
            )
            both_wrong = own.verdict is rest.verdict is Verdict.MISMATCH
            if both_wrong and entry.matches(own, info) and ledger.explain(rest, info) is not None:
                ledger.met(entry.id)
                wrong.verdict, wrong.known = Verdict.KNOWN, entry.id
                return
    except FormatError as error:
        _failed(wrong, str(error))


def _explain_in_turn(wrong: Result, info: BackendInfo, ledger: Ledger) -> None:
    """Listed differences of which one edits the program, and another is that of the edited one."""
    try:
        entries = ledger.one_after_another(wrong, info)
    except FormatError as error:
        _failed(wrong, str(error))
        return
    for entry in entries:
        ledger.met(entry.id)
    if entries:
        wrong.verdict, wrong.known = Verdict.KNOWN, entries[0].id


def _set_right(row: Sequence[Expected], outputs: Sequence[Any], masks: Sequence[Any], at: bool) -> list[Any]:
    """Outputs with the elements as they are expected where a mask says ``at``."""
    out: list[Any] = []
    for e, a, m in zip(row, outputs, masks):
        if isinstance(m, bool):
            out.append(e.value if m is at else a)
        else:
            out.append(np.where(m == at, e.value, a).astype(e.value.dtype))
    return out


def _failed(result: Result, problem: str) -> Result:
    """No verdict: what explains wrong answers is itself broken."""
    result.outcome = Outcome(Status.HARNESS_ERROR, result.outcome.outputs, "judge", problem)
    result.verdict, result.judgement = Verdict.UNKNOWN, None
    return result


def _weight(result: Result) -> int:
    """How much a run says about the whole."""
    return 3 if result.verdict.bad else {Verdict.UNKNOWN: 2, Verdict.AMBIGUOUS: 1}.get(result.verdict, 0)


def _typed(result: Result) -> bool:
    """Is the type wrong?  Values may be open, that is not."""
    return result.judgement is not None and result.judgement.kind in ("dtype", "type")


def _underspecified(case: Case, run: int) -> str | None:
    """What the spec leaves open in one of the runs."""
    found = case.underspecified
    return found[run if run < len(found) else 0] if found else None


def _all_open(case: Case, wrong: Result) -> str | None:
    """Why the spec says nothing of any element of a wrong answer."""
    why = _underspecified(case, wrong.draw)
    return None if isinstance(why, Underspecified) and not why.whole else why


def _set_aside(case: Case, info: BackendInfo, wrong: Result, ledger: Ledger | None) -> None:
    """Judge the rest of a wrong answer, where the spec or an entry leaves some of its elements open.

    If the rest is right, the verdict is ambiguous.
    """
    if _typed(wrong):
        return
    listed = None if ledger is None else ledger.underspecified(case, info, wrong.draw)
    why = gathered(_underspecified(case, wrong.draw), listed)
    rest = None if why is None else _without_open(case, wrong.outcome, wrong.draw, why)
    if rest is None and case.problem:
        _failed(wrong, case.problem)
    if why is None or rest is None:
        return
    closed = _one(case, info, rest[1], wrong.draw, rest[0])
    if closed.verdict in (Verdict.AGREE, Verdict.UNINFORMATIVE):
        wrong.verdict, wrong.ambiguity = Verdict.AMBIGUOUS, str(why)
        if ledger is not None:
            ledger.met(str(why))
    elif closed.judgement is not None:
        wrong.judgement = closed.judgement


def _without_open(case: Case, outcome: Outcome, run: int, why: str) -> tuple[list[Expected], Outcome] | None:
    """What to judge where some elements are open: the expected outputs, and the outcome with these elements as the
    reference has them.  None where all is open."""
    if not isinstance(why, Underspecified) or why.whole:
        return None
    rows, v = case.expected or [[]], case.version
    arrays = case.draws[run if run < len(case.draws) else 0]
    row, out = list(rows[run if run < len(rows) else 0]), list(outcome.outputs or ())
    with quiet:
        call = v.dialect.call_of(case.inst, arrays, v)
        for i, (e, a) in enumerate(zip(row, out)):
            if type(e.value) is not np.ndarray or type(a) not in (np.ndarray, TypeOnly):
                continue
            if type(a) is TypeOnly or a.shape != e.value.shape:
                if _same_type(a, e) and may_be(why, i, a):
                    out[i] = e.value
                continue
            if a.dtype != e.value.dtype:
                continue  # no element of it is open
            try:
                at = open_at(call, why, i, a)
            except Exception as error:  # a mask that does not fit is our defect: no verdict, said aloud
                case.problem = f"ambiguity: output {i}: {type(error).__name__}: {error}"
                return None
            out[i], row[i] = np.where(at, e.value, a).astype(a.dtype), replace(e, open=at)
    return row, replace(outcome, outputs=out)


def _same_type(a: np.ndarray | TypeOnly, e: Expected) -> bool:
    """Has an answer the type that is expected?  Of a type that a backend does not tell nothing is wrong."""
    if type(a) is TypeOnly:
        return a.dtype is None or a.dtype == e.dtype.name
    return bool(a.dtype == e.value.dtype)


def _one(case: Case, info: BackendInfo, outcome: Outcome, r: int, row: list[Expected] | None = None) -> Result:
    """The verdict on one run.  row: what is expected, where that is not all that the reference says."""
    if case.inst.rule is not None:
        if not info.validates and outcome.status in (Status.VALUE, Status.REJECTED):
            gap = Outcome(Status.UNSUPPORTED, None, outcome.phase, "makes no claim about invalid models")
            return Result(case, info.name, Verdict.UNSUPPORTED, gap, None, r)
        if outcome.status is Status.VALUE:
            return Result(case, info.name, Verdict.WRONGLY_ACCEPTED, outcome, None, r)
        if outcome.status is Status.REJECTED:
            return Result(case, info.name, Verdict.AGREE, outcome, None, r)
        return Result(case, info.name, BY_STATUS[outcome.status], outcome, None, r)
    if outcome.status is Status.REJECTED and not _claimed(case, info):
        gap = Outcome(Status.UNSUPPORTED, None, outcome.phase, outcome.message, outcome.millis)
        return Result(case, info.name, Verdict.UNSUPPORTED, gap, None, r)
    if outcome.status is Status.REJECTED and (why := case.version.schema.refusable):
        told = f"{why}, which may be refused: {outcome.message}"
        gap = Outcome(Status.UNSUPPORTED, None, outcome.phase, told, outcome.millis)
        return Result(case, info.name, Verdict.UNSUPPORTED, gap, None, r)
    if outcome.status is not Status.VALUE:
        return Result(case, info.name, BY_STATUS[outcome.status], outcome, None, r)
    rows = case.expected
    assert rows is not None
    expected = row or rows[r if r < len(rows) else 0]
    try:
        with quiet:
            claimed = info.accuracy(case.inst.dialect, case.inst.op)
            judgement = judge(expected, outcome, acc=info.acc, flushes=info.flushes, claimed=claimed)
    except Exception as e:  # a bound that cannot be computed is our defect, and no reason to stop the run
        failed = Outcome(Status.HARNESS_ERROR, outcome.outputs, "judge", f"{type(e).__name__}: {e}")
        return Result(case, info.name, Verdict.UNKNOWN, failed, None, r)
    return Result(case, info.name, judgement.verdict, outcome, judgement, r)


def _claimed(case: Case, info: BackendInfo) -> bool:
    """Is a model of this opset and of these element types what the backend's makers promise to take?"""
    if info.below(case.inst.opset):
        return False
    return info.dtypes is None or all(d is None or str(d) in info.dtypes for d in case.types[1:])
