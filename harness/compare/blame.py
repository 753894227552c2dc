"""Who is alone: the reference, a backend, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.outcome import Outcome, Status, Verdict
from native_ref import compare

REFERENCE = "reference"


@dataclass(frozen=True)
class Blame:
    """alone: who differs from everybody else who agrees, None when there is no such party.  text: in a sentence."""

    alone: str | None
    text: str


def blame(votes: Mapping[str, Verdict | str], family: Callable[[str], str] = str) -> Blame:
    """Which backend, or the reference, to suspect, from the verdicts of all backends on one case.

    One dissenter among several is to blame.  If all of three or more independent backends dissent, the reference is
    suspect, and a person should review it.

    family: of a backend, by its name.  Backends of one family share their code and count once.
    """
    said = {n: Verdict(v) for n, v in votes.items()}
    agree = sorted(n for n, v in said.items() if v in (Verdict.AGREE, Verdict.UNINFORMATIVE))
    differ = sorted(n for n, v in said.items() if v in (Verdict.MISMATCH, Verdict.KNOWN, Verdict.AMBIGUOUS))
    if not differ:
        return Blame(None, "all that ran agree with the reference" if agree else "nobody gave a value")
    if agree:
        who = differ[0] if len(differ) == 1 else None
        verb = "is" if len(differ) == 1 else "are"
        return Blame(who, f"{', '.join(differ)} {verb} against the reference and {', '.join(agree)}")
    if len({family(n) for n in differ}) >= 2:
        return Blame(REFERENCE, f"the reference is alone against {', '.join(differ)}: review the oracle")
    return Blame(None, f"{', '.join(differ)} against the reference, with no third opinion")


def groups(
    expected: Sequence[Any], outcomes: Mapping[str, Outcome], verdicts: Mapping[str, Verdict]
) -> list[list[str]]:
    """Parties that agree with each other, the largest group first; the reference is a party like any other."""
    out: list[tuple[list[str], Sequence[Any]]] = [([REFERENCE], [e.value for e in expected])]
    for name, o in outcomes.items():
        if o.status is not Status.VALUE or o.outputs is None:
            continue
        if verdicts.get(name) in (Verdict.AGREE, Verdict.UNINFORMATIVE):
            out[0][0].append(name)
            continue
        for members, values in out[1:]:
            if _alike(values, o.outputs):
                members.append(name)
                break
        else:
            out.append(([name], o.outputs))
    return sorted((m for m, _ in out), key=len, reverse=True)


def _alike(x: Sequence[Any], y: Sequence[Any]) -> bool:
    """Equal up to a few ulp: two implementations with the same idea of the result."""
    if len(x) != len(y):
        return False
    for a, b in zip(x, y, strict=True):
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if not _alike(a, b):
                return False
        elif not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            if a is not b:
                return False
        elif a.dtype != b.dtype or a.shape != b.shape:
            return False
        elif a.dtype.kind in "OSUc":
            if not np.array_equal(a, b):
                return False
        elif a.size and compare(a, b, ulps=16.0 if a.dtype.kind not in "iub" else 0.0).bad:
            return False
    return True
