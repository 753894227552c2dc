"""The verdict on one case and one backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harness.cases.case import Case
from harness.compare import Judgement
from harness.core.outcome import Outcome, Verdict


@dataclass(slots=True)
class Result:
    """The verdict on one case and one backend.

    judgement: of the data draw that decided; None where there was nothing to compare.
    draw: number of that data draw.
    known, ambiguity: id of the entry that explains it.
    asked: the case of another dialect that the backend got instead (``harness.engine.cross_dialect``).
    neighbours: the cases of the model with which the answer shows, this one among them; alone it is right
        (``harness.engine.recheck``).
    before: the cases of each model that the process must have served first.
    origin, run: the case with all its runs, and the number of the run that ``case`` is, where it is one of several.
    nondeterministic: how two runs of the model differ, in words.  second: what the other run gave
        (``harness.engine.two_runs``).
    """

    case: Case
    backend: str
    verdict: Verdict
    outcome: Outcome
    judgement: Judgement | None = None
    draw: int = 0
    known: str | None = None
    ambiguity: str | None = None
    asked: Case | None = None
    neighbours: tuple[Case, ...] = ()
    prior_models: tuple[tuple[Case, ...], ...] = ()
    origin: Case | None = None
    run: int = 0
    nondeterministic: str = ""
    second: Outcome | None = None

    @property
    def given(self) -> Case:
        """The case as the backend got it, with all its runs."""
        return self.origin or self.asked or self.case

    def about(self, case: Case) -> Result:
        """The same, said of another form of what was given."""
        if self.asked is not None:
            return replace(self, asked=case, origin=None, run=0)
        return replace(self, case=case, origin=None, run=0)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What must stay the same while a failure is made smaller."""
        kind = self.judgement.kind if self.judgement is not None else first_words(self.outcome.message)
        return self.verdict, self.outcome.status, kind


def first_words(message: str) -> str:
    """The part of a backend's message that names the kind of failure: no numbers, names or paths."""
    words = [w for w in message.split()[:12] if w.isalpha()]
    return " ".join(words[:6])
