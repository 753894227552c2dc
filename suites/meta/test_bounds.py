"""Law: every tolerance gives a bound that fits its output, is neither NaN nor negative, and admits the reference."""

import warnings

import numpy as np
import pytest

from harness.cases.case import draw_case
from harness.compare import judge
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.tolerance import widened
from suites.programs import ProgramDialect

CASES = 12
DIALECTS = [d for d in registry.names() if not isinstance(registry.dialect(d), ProgramDialect)]


def complaints(v):
    """What is wrong with the bounds of one op version, in words."""
    out = []
    for i in range(CASES):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a bound on the real part alone
            case = draw_case(v, v.opsets[-1], 3, i, 1, invalid=False)
            if case.problem or case.expected is None or case.ambiguous is not None:
                continue
            for n, e in enumerate(case.expected[0]):
                if not isinstance(e.value, np.ndarray) or not e.value.size or e.dtype.kind == "s":
                    continue
                if not e.error.pointwise:
                    continue
                where = f"{v.key} output {n} ({e.error.label}, {e.dtype}, case {i}, {case.inst.id})"
                try:
                    bound = np.asarray(e.error.bound(e.context()), np.float64)
                    np.broadcast_to(bound, e.value.shape)
                except Exception as x:
                    out.append(f"{where}: {type(x).__name__}: {x}")
                    continue
                wide = widened(e.value if e.wide is None else e.wide)
                here = np.broadcast_to(bound, e.value.shape)
                if e.error.moves_integers and e.dtype.kind in "iu":
                    low, high = e.error.span(e.context())
                    if ((wide < low) | (wide > high)).any():
                        out.append(f"{where}: the reference is not among the integers that its bound lets pass")
                if (here < 0).any() or (np.isnan(here) & np.isfinite(wide)).any():
                    out.append(f"{where}: negative or NaN bound where the result is finite")
            verdict = judge(case.expected[0], Outcome(Status.VALUE, [e.value for e in case.expected[0]])).verdict
            if verdict not in (Verdict.AGREE, Verdict.UNINFORMATIVE) and not any(
                e.error.random for e in case.expected[0]
            ):
                out.append(f"{v.key} case {i}: the reference's own answer is called {verdict.value}")
    return out


@pytest.mark.parametrize("dialect", DIALECTS)
def test_bounds_fit(dialect):
    bad = [c for v in registry.dialect(dialect).versions.values() for c in complaints(v)[:2]]
    assert not bad, "\n".join(bad)
