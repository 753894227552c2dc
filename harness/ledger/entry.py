"""One listed difference or ambiguity: which answers it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.given import Given
from harness.cases.result import Result
from harness.core.dtypes import int_range, of
from harness.core.errors import FormatError
from harness.core.limits import timed
from harness.core.outcome import Verdict
from harness.declare import Underspecified, underspecified
from harness.ledger.defect_models import Model, PerNode, explains, room, share, tested
from harness.ledger.facts import OUTCOME, Facts
from harness.ledger.predicate import PLAIN, Condition
from harness.ledger.releases import Range, within
from harness.workers.info import BackendInfo

ELEMENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nan": lambda x: np.isnan(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "inf": lambda x: np.isinf(x.astype(np.float64)) if of(x).kind == "f" else np.zeros(x.shape, bool),
    "lowest": lambda x: x == int_range(of(x))[0] if of(x).kind == "i" else np.zeros(x.shape, bool),
}
REFUSALS = {Verdict.WRONGLY_REJECTED.value, Verdict.CRASHED.value, Verdict.TIMED_OUT.value}


@dataclass
class LedgerEntry:
    """One table of a file; ``docs/known-differences.md`` lists the fields.

    hits: number of verdicts that it explains.
    own: it stands in a user's list (``harness.ledger.loader``).
    drawn: of an entry without an instance, how many instances of a run it describes.
    """

    id: str
    source: str
    kind_of: str
    backends: tuple[str, ...]
    ops: tuple[str, ...]
    clause: str
    reason: str = ""
    versions: tuple[Range, ...] = ()
    op_versions: tuple[Any, ...] = ()
    opsets: tuple[Any, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: Condition | None = None
    verdicts: tuple[str, ...] = (Verdict.MISMATCH.value,)
    kinds: tuple[str, ...] = ()
    message: re.Pattern[str] | None = None
    link: str = ""
    instance: Any = None
    readings: tuple[str, ...] = ()
    hits: int = 0
    corrupts_process: bool = False
    neighbours: tuple[Any, ...] = ()
    cpu: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    elements: str = ""
    defect_model: tuple[Model, ...] = ()
    refused_if: Callable[[Given], Any] | None = None
    wide: str = ""
    intermittent: str = ""
    status: str = ""
    own: bool = False
    drawn: int = 0
    _there: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def folder(self) -> str:
        """The folder in which it is listed, or its file where that stands in none."""
        return self.source.partition("/")[0]

    def told(self) -> dict[str, Any]:
        """What a record says of it, so that a report needs no list."""
        return {
            "id": self.id,
            "reason": self.reason,
            "clause": self.clause,
            "link": self.link,
            "status": self.status,
            "kind": self.kind_of,
            "readings": list(self.readings),
        }

    def about(self, info: BackendInfo) -> bool:
        """Does it speak of this backend?  What is listed of the runtime that only loads its models says nothing about
        what it computes."""
        loader = None if self.kind_of == "ambiguous" else info.front_end
        return any(
            fnmatchcase(name, b) and (loader is None or b == "*" or not fnmatchcase(loader, b))
            for b in self.backends
            for name in (info.name, *info.known_as)
        )

    def of_loading(self, info: BackendInfo) -> bool:
        """Does it speak of the runtime that loads the models of this backend?"""
        return info.front_end is not None and any(fnmatchcase(info.front_end, b) for b in self.backends)

    def _blames(self, result: Result, info: BackendInfo) -> bool:
        """Does it speak of what gave this answer?  Where another runtime loads the models, a failure to load one is
        that runtime's, and so is the acceptance of an invalid one."""
        loading = result.outcome.phase == "load" or result.verdict is Verdict.WRONGLY_ACCEPTED
        return self.about(info) or (loading and self.of_loading(info))

    def matches(self, result: Result, info: BackendInfo) -> bool:
        if not self.speaks_of(result, info):
            return False
        if result.verdict is Verdict.MISMATCH:
            return not self.defect_model or self._given(result, info)
        return self.refused_if is None or result.verdict.value not in REFUSALS or self._refused(result)

    def speaks_of(self, result: Result, info: BackendInfo) -> bool:
        """Does everything but the model of the defect hold?"""
        inst = result.case.inst
        if self.elements or result.verdict.value not in self.verdicts:
            return False
        if not self._blames(result, info):
            return False
        if not any(fnmatchcase(f"{inst.dialect}/{inst.op}", o) for o in self.ops):
            return False
        if self.op_versions and inst.version not in self.op_versions:
            return False
        if self.opsets and inst.opset not in self.opsets:
            return False
        if self.dtypes and str(result.case.dtype) not in self.dtypes:
            return False
        if self.neighbours and not self.intermittent and len(result.neighbours) < 2:
            return False
        if self.kinds and (result.judgement is None or result.judgement.kind not in self.kinds):
            return False
        if self.message is not None and not self.message.search(result.outcome.message):
            return False
        facts = Facts(result.case, PLAIN, result)
        if not self.there(info):
            return False
        if self.when is not None and self.when.names & {"wrong_pairs", "wrong_at"} and not facts["wrong_pairs"]:
            return False  # what is said of wrong elements does not hold of an answer that has none to compare
        return self._holds(facts)

    def per_node(self, result: Result) -> Iterator[PerNode]:
        """What its models say of the nodes of a program.  Raises FormatError, naming the entry, where one fails."""
        for told in self.defect_model:
            try:
                said = told(Given(result.case, result.draw))
            except Exception as e:
                raise FormatError(f"{self.source}: {self.id}: defect_model: {type(e).__name__}: {e}") from None
            if isinstance(said, PerNode):
                yield said

    def shares(self, result: Result) -> Iterator[list[Any]]:
        """Which parts of a wrong answer its models say (``harness.ledger.defect_models.share``).  Raises FormatError,
        naming the entry, where one fails on an instance for which its condition holds."""
        for told in self.defect_model:
            try:
                masks = share(told, result, bool(self.kinds) and "nan" not in self.kinds)
            except Exception as e:
                if self.of_outcome:
                    continue  # nobody has asked yet whether its condition holds
                raise FormatError(f"{self.source}: {self.id}: defect_model: {type(e).__name__}: {e}") from None
            if masks is not None and any(np.any(m) for m in masks):
                yield masks

    def _given(self, result: Result, info: BackendInfo) -> bool:
        """Is the answer what one of the models of the defect says?  Draws that are pooled over a run are no single
        answer that a model could tell.  Raises FormatError, naming the entry, where a model fails."""
        if result.outcome.outputs is None:
            return True
        try:
            with timed:
                return any(explains(told, result, info) for told in self.defect_model)
        except Exception as e:
            raise FormatError(
                f"{self.source}: {self.kind_of} {self.id}: defect_model: {type(e).__name__}: {e}"
            ) from None

    def room(self, result: Result, info: BackendInfo) -> list[Any]:
        """How far the listed answer may be off, by the model that explains it: an array for each output, or None."""
        return next((room(told, result) for told in self.defect_model if explains(told, result, info)), [])

    def tests(self, result: Result, info: BackendInfo) -> bool:
        """Does the model that explains the answer only test an output, in place of saying what it is?"""
        return next((tested(told, result) for told in self.defect_model if explains(told, result, info)), False)

    def _refused(self, result: Result) -> bool:
        """Is this one of the instances that the defect has refused?  Raises FormatError, naming the entry, where the
        function fails."""
        assert self.refused_if is not None
        try:
            return bool(self.refused_if(Given(result.case, result.draw)))
        except Exception as e:
            raise FormatError(f"{self.source}: {self.kind_of} {self.id}: refused_if: {type(e).__name__}: {e}") from None

    def underspecified(self, case: Case, info: BackendInfo) -> Underspecified | None:
        """Of an instance of one run: the elements of its first operand that the entry says are open."""
        if not (self.about(info) and self._fits(case, info) and self._told(case)):
            return None
        x = case.draws[0].get(case.version.schema.inputs[0].name) if case.draws else None
        return underspecified(self.id, ELEMENTS[self.elements](x)) if isinstance(x, np.ndarray) else None

    def _holds(self, facts: Facts) -> bool:
        """Does the condition hold?  Raises FormatError, naming the entry, where it cannot be evaluated."""
        try:
            return self.when is None or self.when(facts)
        except Exception as e:
            raise FormatError(f"{self.source}: {self.kind_of} {self.id}: when: {type(e).__name__}: {e}") from None

    def _told(self, case: Case) -> bool:
        """Does the condition hold of an instance that has no outcome yet?  One that cannot be evaluated predicts
        nothing; ``matches`` tells of it."""
        try:
            return self._holds(Facts(case, PLAIN))
        except FormatError:
            return False

    def fails_beside_others(self, case: Case, info: BackendInfo) -> bool:
        """Is this one of the instances that go wrong in neighbours?"""
        return self._fits(case, info) and self._told(case)

    def there(self, info: BackendInfo) -> bool:
        """Are release and processor those of the entry?  An unknown processor may be any."""
        at = info.version, info.cpu
        known = self._there.get(at)
        if known is None:
            known = self._there[at] = within(info.version, self.versions) and (
                not info.cpu or all((w.lstrip("!") in info.cpu) != w.startswith("!") for w in self.cpu)
            )
        return known

    def _fits(self, case: Case, info: BackendInfo) -> bool:
        """Are version, opset, type, release and processor those of the entry?"""
        return (
            (not self.op_versions or case.inst.version in self.op_versions)
            and (not self.opsets or case.inst.opset in self.opsets)
            and (not self.dtypes or case.dtype_name in self.dtypes)
            and self.there(info)
        )

    @property
    def of_outcome(self) -> bool:
        """Does its condition ask for the answer?"""
        return self.when is not None and bool(self.when.names & OUTCOME)

    def describes(self, case: Case, info: BackendInfo) -> bool:
        """Is this one of the instances that the entry says go wrong, as far as an instance alone tells?"""
        broken, accepted = case.inst.rule is not None, Verdict.WRONGLY_ACCEPTED.value
        return (
            (accepted in self.verdicts if broken else self.verdicts != (accepted,))
            and (self.about(info) or self.of_loading(info))
            and any(fnmatchcase(f"{case.inst.dialect}/{case.inst.op}", o) for o in self.ops)
            and self._fits(case, info)
            and (self.of_outcome or self._told(case))
        )

    @cached_property
    def predictive(self) -> bool:
        """Does the instance alone tell that it will be refused, end the process, or damage it?"""
        return (
            self.when is not None
            and not self.neighbours
            and self.refused_if is None
            and not self.when.names & OUTCOME
            and (self.corrupts_process or all(v in REFUSALS for v in self.verdicts))
        )

    @property
    def of_answers(self) -> bool:
        """Does it excuse wrong answers?"""
        return self.kind_of == "known" and Verdict.MISMATCH.value in self.verdicts

    @property
    def unconditioned(self) -> bool:
        """Does it excuse wrong answers of the instances that it speaks of, whatever they are?  What is of the wrong
        type or shape (``kinds``) is no narrower: the values are not looked at."""
        told = self.when is not None and bool(self.when.names & OUTCOME)
        return self.of_answers and not (self.defect_model or self.elements or told)

    @property
    def may_hang(self) -> bool:
        return Verdict.TIMED_OUT.value in self.verdicts

    def predicts(self, case: Case, info: BackendInfo) -> bool:
        """Will the backend refuse this instance in one of its runs, as far as its condition says?"""
        if self.when is None or not self._fits(case, info):
            return False
        runs = len(case.inst.reruns)
        return any(self._told(case.at(r)) for r in range(1 + runs)) if runs else self._told(case)

    def concerns(self, keys: Iterable[str], backends: Iterable[BackendInfo]) -> bool:
        """Could it have matched in a run over these op versions and backends?"""
        if not any(self.about(b) and self.there(b) and (b.cpu or not self.cpu) for b in backends):
            return False
        for key in keys:
            op, version = key.rsplit("/", 1)
            if any(fnmatchcase(op, o) for o in self.ops) and (
                not self.op_versions or version in {str(v) for v in self.op_versions}
            ):
                return True
        return False
