"""Whether an answer is bit for bit what the model of a defect gives: faults that no listed difference may hide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.cases.case import Case
from harness.cases.given import Given
from harness.core.quiet import quiet
from harness.declare import Expected
from harness.ledger.defect_models import NOTHING, Model, Near, Such, Turned, outputs_told


def reproduces(told: Model, case: Case, outputs: Sequence[Any]) -> bool:
    """Does the model of a defect give these outputs of the first run bit for bit?  An element for which it allows an
    error, or which the type does not hold, has to be right; an output of which a test alone tells never counts."""
    given = Given(case, 0)
    with quiet:
        try:
            said = outputs_told(told, given)
        except Exception:  # ``explains`` tells of a model that fails
            return False
        return (
            said is not None
            and len(said) == len(outputs) == len(given.expected)
            and all(_exactly(x, a, e) for x, a, e in zip(said, outputs, given.expected, strict=True))
        )


def _exactly(told: Any, a: Any, e: Expected) -> bool:
    if told is NOTHING:
        return a is None
    if isinstance(told, (Such, Turned)):
        return False
    due = e.value
    value = due if told is None else told.value if isinstance(told, (Expected, Near)) else told
    if not isinstance(a, np.ndarray) or not isinstance(due, np.ndarray):
        return False
    value = np.asarray(value)
    if a.shape != value.shape:
        return False
    if a.dtype.kind in "OSU" or value.dtype.kind in "OSU":
        return bool(np.all(a == value))
    held = value.astype(a.dtype)
    exact = (held.astype(value.dtype) == value) | ((value != value) & (held != held))
    if isinstance(told, Near):
        exact &= np.asarray(told.within) == 0
    right = _same_bits(a, due) if a.shape == due.shape and a.dtype == due.dtype else np.zeros(a.shape, bool)
    return bool(np.all(np.where(exact, _same_bits(a, held), right)))


def _same_bits(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where two arrays of one type are the same; NaN is NaN."""
    if x.dtype.kind == "c":
        return _same_bits(x.real, y.real) & _same_bits(x.imag, y.imag)
    kind = f"u{x.dtype.itemsize}"
    bits = [np.ascontiguousarray(v).view(kind).reshape(v.shape) for v in (x, y)]
    return np.asarray((bits[0] == bits[1]) | ((x != x) & (y != y)))
