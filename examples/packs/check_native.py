"""The rules of a native pack in NumPy: ``passes`` says which elements of an output are within their bounds."""

from __future__ import annotations

import numpy as np

POINTWISE = ("exact", "within", "between")


def passes(actual: np.ndarray, told: dict, tensors: dict[str, np.ndarray]) -> np.ndarray:
    """Mask of the elements that pass.

    actual: an output, of the shape and element type that ``told["expected"]`` states.  told: the output in case.json,
    with a rule of ``POINTWISE``.  tensors: those of the instance, by name."""
    want = tensors[told["expected"]["tensor"]]
    if want.dtype.kind == "c" and told["rule"] == "within":
        parts = np.stack([actual.real, actual.imag], -1)
        return _within(parts, told, tensors).all(-1)
    with np.errstate(all="ignore"):
        ok = (actual == want) | ((actual != actual) & (want != want))
        if told.get("signed_zero"):
            a, w = actual.astype(np.float64), want.astype(np.float64)
            ok &= ~((a == 0) & (w == 0) & (np.signbit(a) != np.signbit(w)))
        if told["rule"] == "within":
            ok |= _within(actual.astype(np.float64), told, tensors) & (want == want)
        elif told["rule"] == "between":
            ok |= (tensors[told["low"]] <= actual) & (actual <= tensors[told["high"]])
    return ok | tensors[told["open"]] if "open" in told else ok


def _within(a: np.ndarray, told: dict, tensors: dict[str, np.ndarray]) -> np.ndarray:
    """Finite numbers within the bound, and infinities where the bound reaches the overflow threshold."""
    reference, bound = tensors[told["reference"]], tensors[told["bound"]]
    both = np.isfinite(a) & np.isfinite(reference)
    near = both & (np.abs(a - reference) <= bound)
    if told.get("signed_zero"):
        near &= ~((a == 0) & (reference == 0) & (np.signbit(a) != np.signbit(reference)))
    over = np.isinf(a) & np.isfinite(reference) & (np.sign(a) == np.sign(reference))
    return near | (over & (np.abs(reference) + bound >= told.get("overflow", np.inf)))
