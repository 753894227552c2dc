"""What the judge says of one answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.compare import diff as diffs
from harness.core.dtypes import of
from harness.core.outcome import Verdict
from harness.tolerance import Tolerance


@dataclass(slots=True)
class Judgement:
    """What a comparison found.

    verdict: agree, mismatch, uninformative, or unknown when the bound itself could not be computed.
    output: number of the output that decided.
    kind: what is wrong: missing, type, length, dtype, shape, nan, inf, zero_sign, flush, value, integer, string,
        choice, distribution, bound, or "".
    unjudged: number of elements, in all outputs, that passed only because their bound is infinite, or wider than a
        tenth of the expected value (of a quantised result: of the type's range).
    klass, formula: of the tolerance.
    comparison: counts of the native kernel.
    sample: of a random op, the probability integral transform of its elements, for pooling.
    """

    verdict: Verdict
    output: int = 0
    kind: str = ""
    klass: str = ""
    formula: str = ""
    detail: str = ""
    comparison: Any = None
    sample: np.ndarray | None = None
    _expected: Any = None
    _actual: Any = None
    _bound: Any = None
    _ulps: float = 0.0
    unjudged: int = 0
    _diff: dict[str, Any] | None = field(default=None, repr=False)
    _measured: diffs.Measure | None = field(default=None, init=False, repr=False)

    def diff(self) -> dict[str, Any]:
        """The numbers of a mismatch (see the record format); computed on demand, {} where there is none."""
        if self._diff is None:
            if self.verdict is not Verdict.MISMATCH or self._expected is None:
                self._diff = {}
            else:
                self._diff = diffs.describe(self._expected, self._actual, self._bound, self._ulps, self.kind)
                if self.detail:
                    self._diff["detail"] = self.detail
        return self._diff

    def numbers(self) -> dict[str, Any]:
        """Those of ``diff`` that say how much is wrong and by how much: a fraction of its price."""
        if self._diff is not None or self.verdict is not Verdict.MISMATCH or self._expected is None:
            return self.diff()
        m = self._measure()
        return {} if m is None else m.numbers

    def _measure(self) -> diffs.Measure | None:
        """Kept, since several conditions of several entries ask for it."""
        if self._measured is None:
            self._measured = diffs.measure(self._expected, self._actual, self._bound, self._ulps, self.kind)
        return self._measured

    def wrong(self) -> tuple[list[tuple[Any, Any]], list[tuple[int, ...]]]:
        """Of the wrong elements what is expected and what came, as Python's numbers or texts, and where they stand;
        none where a whole is wrong."""
        bad = self.bad()
        if bad is None:
            return [], []
        pairs = list(zip(*(_plain(x[bad]) for x in (self._expected.value, self._actual))))
        return pairs, list(map(tuple, np.argwhere(bad).tolist()))

    def bad(self) -> np.ndarray | None:
        """Mask of the wrong elements; None where a whole is wrong, or nothing is."""
        if self.verdict is not Verdict.MISMATCH or self._expected is None:
            return None
        m = self._measure()
        return None if m is None else m.bad

    def open(self) -> Any:
        """Mask of the elements of the wrong output that were left out of the judgement; None where none were."""
        return None if self._expected is None else self._expected.open

    def came(self) -> tuple[int, ...]:
        """Shape of the wrong output as it came, or was inferred; empty of what is no array."""
        return tuple(getattr(self._actual, "shape", None) or ())


def _plain(x: np.ndarray) -> list[Any]:
    """Elements as Python's own."""
    d = of(x)
    out: list[Any] = (x.astype(np.float64) if d.kind == "f" else x.astype(object) if d.kind in "iub" else x).tolist()
    return out


AGREE = Judgement(Verdict.AGREE)
UNINFORMATIVE = Judgement(Verdict.UNINFORMATIVE)


def wrong(
    e: Any, a: Any, i: int, kind: str, detail: str = "", comparison: Any = None, bound: Any = 0.0, ulps: float = 0.0
) -> Judgement:
    error: Tolerance = e.error
    formula = error.formula
    if kind == "value":
        try:
            formula = error.numbers(e.context())
        except Exception:  # the formula without its numbers is still the formula
            formula = error.formula
    if kind == "integer" and not error.moves_integers:
        formula = "EXACT: integers are equal"
    return Judgement(
        Verdict.MISMATCH, i, kind, formula.split(":")[0], formula, detail, comparison, None, e, a, bound, ulps
    )
