"""Finds out why a model fails although each of its instances passes alone.

The model was rejected, or ended its process.  It runs again in a fresh process.  If it fails there, the fewest
instances that fail together are a true difference.  If it passes, the models that the first process had served last run
before it.  If it fails then, that is a true difference that needs those models; otherwise the verdict is ``flaky``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.cases.case import Case
from harness.cases.result import Result
from harness.core.outcome import Verdict
from harness.engine.batching import served
from harness.engine.requery import Requery, flaky, forms
from harness.engine.verdict import BY_STATUS
from harness.workers.info import BackendInfo
from harness.workers.wire import Unblamed


def settle(
    asker: Requery, failure: Unblamed, info: BackendInfo, neighbours: Sequence[Case], origins: Mapping[int, Case]
) -> tuple[Case, Result] | None:
    """The verdict on a failure of a model whose cases pass alone, and the case that tells it; None if no fault.

    origins: by id of a case, the one of another dialect for which it was asked."""
    status = failure.outcome.status

    def said(k: int, case: Case) -> Result:
        of = origins.get(id(neighbours[k]))
        return Result(of or case, info.name, BY_STATUS[status], failure.outcome, asked=case if of else None)

    def ask(beside: Sequence[Case], which: Sequence[int], at: int) -> Result:
        return asker.ask(said(at, beside[at]), info, [beside[k] for k in which])

    every = list(range(len(neighbours)))
    if len(neighbours) > 1 and asker.left > 0:
        with asker.timed():
            for beside in forms(neighbours, failure.sets[0]):
                found = ask(beside, every, every[-1])
                if found.verdict is Verdict.UNSUPPORTED:
                    return None
                if found.outcome.status is status:
                    return _least(asker, found, neighbours, beside, ask)
    prior_models = served(failure.prior_models)
    if prior_models and not origins and asker.left > 0:
        with asker.timed():
            beside = forms(neighbours, failure.sets[0])[0]
            later = asker.used(info, beside, prior_models, None, lambda got: got.outcome.status is status)
        if later is not None:
            return neighbours[later[0]], later[1]
    first = said(every[-1], neighbours[-1])
    if len(neighbours) == 1 and asker.ledger is not None:  # a death that is listed need not come each time
        asker.ledger.explain(first, info)
    return neighbours[-1], flaky(first) if first.verdict.bad else first


def _least(
    asker: Requery,
    found: Result,
    neighbours: Sequence[Case],
    beside: Sequence[Case],
    ask: Callable[[Sequence[Case], Sequence[int], int], Result],
) -> tuple[Case, Result]:
    """The fewest of the cases that fail together, told of the last one, or of one of which it is listed."""
    status = found.outcome.status

    def fails(which: list[int]) -> Result | None:
        got = ask(beside, which, which[-1])
        return got if got.outcome.status is status else None

    which, found = asker.fewest(list(range(len(neighbours))), 2, fails, found)
    at = which[-1]
    for k in reversed(which[:-1]):
        if found.known is None and (got := ask(beside, which, k)).known is not None:
            at, found = k, got
    return neighbours[at], replace(found, neighbours=() if found.known else tuple(beside[k] for k in which))
