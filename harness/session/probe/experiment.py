"""What every question of a probe needs: instances of a kind, what the backend makes of them, and what was found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from harness.cases.case import Case
from harness.cases.result import Result
from harness.cases.selection import Selection, versions
from harness.cases.wanted import draw_within
from harness.core.errors import UsageError
from harness.declare import OpVersion
from harness.engine.engine import Engine
from harness.workers.claims import EVERYTHING, Claims, tensors_of
from harness.workers.pool import BackendHandle

DRAWS = 60  # instances drawn of an op version in the search for one of a kind
OPS = 24  # op versions that are asked for a kind


class Experiment:
    """Questions to one backend.

    selection: op versions to ask.  cases: instances of each of them.
    claims: what the backend can claim so far.
    found: the same, as attributes of a class.
    measured: sentences about it.
    takers: op versions of which it takes some instance.
    why: first words of its refusals.
    """

    def __init__(self, handle: BackendHandle, selection: Selection, cases: int) -> None:
        self.handle, self.cases = handle, cases
        chosen = [v for v in versions(selection) if v.dialect.format in handle.info.formats]
        if not chosen:
            raise UsageError(f"{handle.name} takes models of {' '.join(handle.info.formats)}, which no selected op has")
        self.versions = chosen
        self.opset = selection.opset
        handle.declared = replace(handle.info, claims=EVERYTHING, opset=None, oldest_opset=None, dtypes=None)
        self.engine = Engine([handle], wanted=None)
        self.claims = Claims()
        self.found: dict[str, Any] = {}
        self.measured: list[str] = []
        self.takers: list[OpVersion] = []
        self.why: Counter[str] = Counter()

    def results(self, cases: Iterable[Case], acc: dict[str, str] | None = None) -> list[Result]:
        """The results of cases, by opset, each in a model of its own.  acc: judged as if the backend claimed this."""
        by: dict[tuple[str, Any], list[Case]] = defaultdict(list)
        for c in cases:
            if not c.problem:
                by[c.version.dialect.name, c.inst.opset].append(c)
        out: list[Result] = []
        before = self.handle.info
        if acc is not None:
            self.handle.declared = replace(before, acc=acc)
        engine = self.engine if acc is None else Engine([self.handle], wanted=None)
        for some in by.values():
            for c in some:
                out += engine.judge([c])
        self.handle.declared = before
        return out

    def tell(self, text: str) -> None:
        self.measured.append(text)

    def drawn(self, v: OpVersion, n: int, fits: Callable[[Case], object], claims: Claims | None = None) -> list[Case]:
        """Valid instances of an op version within the claims that are of a kind."""
        within = self.claims if claims is None else claims
        opsets = within.opsets_of(v.opsets if self.opset is None else [self.opset])
        out: list[Case] = []
        for i in range(DRAWS if opsets else 0):
            case = draw_within(within, v, opsets[-1], 1, i, invalid=False, lazy=True)
            if case is not None and not case.problem and fits(case):
                out.append(case)
                if len(out) == n:
                    break
        return out

    def limit(self, name: str, value: Any, **change: Any) -> None:
        self.found.setdefault("limits", {})[name] = value
        self.claims = replace(self.claims, **change)


def rank_of(case: Case) -> int:
    return max((len(a.shape) for _, a in tensors_of(case.inst)), default=0)


def odd(case: Case) -> bool:
    """Has it an empty axis, a constant or symbolic extents, which are asked apart?"""
    return bool(case.inst.reruns) or any(0 in a.shape or a.const or a.dynamic for _, a in tensors_of(case.inst))
