"""The numbers of a mismatch, computed only when there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.compare import pattern
from harness.core.dtypes import DType, float_max
from harness.tolerance import ulp

MAP = 4096  # cells of the index map at most


@dataclass(slots=True)
class Measure:
    """The size of a mismatch.

    bad: which elements are wrong.
    error, limit: |a - h| and the bound in force.  ulps: the error in units of the last place.  All None for strings.
    numbers: what a condition may ask for (``harness.ledger.facts``).
    """

    bad: np.ndarray
    error: np.ndarray | None = None
    limit: np.ndarray | None = None
    ulps: np.ndarray | None = None
    numbers: dict[str, Any] = field(default_factory=dict)


def measure(e: Any, actual: Any, bound: Any, ulps: float, kind: str) -> Measure | None:
    """The elements that are wrong, and by how much; None where there are none to compare.  Arguments as of
    ``describe``."""
    want, d = e.value, e.dtype
    arrays = isinstance(want, np.ndarray) and isinstance(actual, np.ndarray)
    if not arrays or kind in ("shape", "dtype", "distribution"):
        return None
    if d.kind == "s":
        bad = np.array([str(x) != str(y) for x, y in zip(want.ravel(), actual.ravel(), strict=True)])
        return Measure(bad.reshape(want.shape), numbers={"count": int(bad.sum()), "size": int(bad.size)})
    error, limit, factor = _errors(e, actual, bound, ulps, kind)
    bad = _bad(e, actual, error, limit, kind, bound)
    if d.kind in "iub":
        u = error
    else:
        with np.errstate(all="ignore"):
            u = error / ulp(np.abs(_wide(e)), d if d.kind == "f" else _part(d))
    u = np.where(np.isnan(u), np.inf, u)
    numbers = {
        "count": int(np.count_nonzero(bad)),
        "size": int(bad.size),
        "factor": factor,
        "wrong_abs": _number(float(error[bad].max()) if bad.any() else 0.0),
        "max_ulp": _number(float(u[bad].max()) if bad.any() else 0.0),
    }
    if d.kind == "f":
        numbers["clamped"] = _clamped(e, actual, bad)
    return Measure(bad, error, limit, u, numbers)


def describe(e: Any, actual: Any, bound: Any, ulps: float, kind: str) -> dict[str, Any]:
    """The "diff" of a case record.  bound: absolute (scalar or array), ulps: in units of the last place besides."""
    want = e.value
    out: dict[str, Any] = {"dtype": e.dtype.name}
    if isinstance(want, np.ndarray):
        out["shape"] = list(want.shape)
    if isinstance(actual, np.ndarray):
        out["got_shape"], out["got_dtype"] = list(actual.shape), str(_dtype_name(actual))
    m = measure(e, actual, bound, ulps, kind)
    if m is None:
        out.update(count=0, size=int(getattr(want, "size", 0)), elements=[], pattern=None)
        if kind in ("shape", "dtype") and isinstance(actual, np.ndarray) and isinstance(want, np.ndarray):
            out["pattern"] = pattern.of_shape(want, actual)
        return out
    d: DType = e.dtype
    error, limit, u, bad = m.error, m.limit, m.ulps, m.bad
    if error is None or limit is None or u is None:
        return {**out, **_places(bad, want, actual, None, None, d)}
    out.update(_places(bad, want, actual, error, limit, d))
    inside = error[np.isfinite(error)]
    out["max_abs"] = _number(float(inside.max()) if inside.size else 0.0)
    out.update(m.numbers)
    out["p99_ulp"] = _number(float(np.quantile(u.ravel(), 0.99, method="higher")) if u.size else 0.0)
    out["ulp_histogram"] = _histogram(u)
    for x in out["elements"]:
        x["ulp"] = _number(float(u[tuple(x["index"])]))
    if d.kind == "f":
        out["bias_z"], out["bound_relative"] = _bias(e, actual), _relative(e, limit)
    out["pattern"] = pattern.of_values(want, actual, bad, limit)
    return out


def _part(d: DType) -> DType:
    from harness.core.dtypes import F32, F64

    return F32 if d.name == "c64" else F64


def _wide(e: Any) -> np.ndarray:
    w = e.wide if e.wide is not None and not e.error.exact else e.value
    return np.asarray(w, np.complex128 if w.dtype.kind == "c" else np.float64)


def _errors(e: Any, actual: np.ndarray, bound: Any, ulps: float, kind: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """|a - h| (inf where the class of value differs), the bound in force, the smallest factor on it that passes."""
    d: DType = e.dtype
    if d.kind in "iub":
        x, y = actual.astype(object).ravel(), e.value.astype(object).ravel()  # flat: a lone object becomes an int64
        error = np.abs(x - y) if d.kind != "b" else (actual != e.value).astype(object)
        error = np.asarray(error, np.float64).reshape(e.value.shape)
    else:
        h = _wide(e)
        a = actual.astype(h.dtype)
        with np.errstate(all="ignore"):
            error = np.abs(a - h)
            same = (a == h) | (np.isnan(a) & np.isnan(h))
        overflow = np.isinf(np.abs(a)) & (actual == e.value)  # the wide result is beyond the type's range
        error = np.where(same | overflow, 0.0, np.where(np.isnan(error), np.inf, error))
        error = np.asarray(error, np.float64)
    limit = np.zeros(e.value.shape)
    if kind != "choice":
        limit = limit + np.asarray(bound, np.float64)
    if ulps:
        limit = limit + ulps * ulp(np.abs(_wide(e)), d if d.kind == "f" else _part(d))
    with np.errstate(all="ignore"):
        ratio = np.where((error == 0) | np.isinf(limit), 0.0, error / limit)  # nothing is bound there, nothing wrong
    top = float(ratio.max()) if ratio.size else 0.0
    return error, limit, _number(top)


def _bias(e: Any, actual: np.ndarray) -> float | None:
    """Mean of a - h over its standard error: far from 0 where the errors share a sign.  None below 10 numbers."""
    with np.errstate(all="ignore"):
        signed = (actual.astype(np.float64) - _wide(e)).ravel()
        signed = signed[np.isfinite(signed)]
        spread = float(signed.std(ddof=1)) if signed.size >= 10 else 0.0
    return round(float(signed.mean()) / (spread / math.sqrt(signed.size)), 2) if spread else None


def _relative(e: Any, limit: np.ndarray) -> float | None:
    """Median of bound / |h|: how ill-conditioned the instance is, in units of the result."""
    with np.errstate(all="ignore"):
        q = (limit / np.abs(_wide(e))).ravel()
    q = q[np.isfinite(q)]
    return float(np.median(q)) if q.size else None


def _bad(e: Any, actual: np.ndarray, error: np.ndarray, limit: np.ndarray, kind: str, bound: Any) -> np.ndarray:
    if kind == "choice":
        return ~np.asarray(bound, bool)
    if kind == "zero_sign":
        return (error == 0) & (np.signbit(actual) != np.signbit(e.value)) & (actual == 0)
    bad = np.asarray(~(error <= limit))
    if kind == "nan":  # not a matter of distance: an unbounded limit does not excuse it
        bad |= np.isnan(actual.astype(_wide(e).dtype)) != np.isnan(_wide(e))
    return bad


def _clamped(e: Any, actual: np.ndarray, bad: np.ndarray) -> float:
    """Share of the wrong elements at which an infinity or NaN was expected and an end of the finite range came."""
    v, a = e.value.astype(np.float64)[bad], actual.astype(np.float64)[bad]
    return float(np.mean(~np.isfinite(v) & (np.abs(a) == float_max(e.dtype)))) if v.size else 0.0


def _places(bad: np.ndarray, want: np.ndarray, actual: np.ndarray, error: Any, limit: Any, d: DType) -> dict[str, Any]:
    """Count, the first, the worst and some other bad elements, the map of where they are."""
    flat = np.flatnonzero(bad.ravel())
    out: dict[str, Any] = {"count": int(flat.size), "size": int(bad.size), "elements": [], "map": _map(bad)}
    if not flat.size:
        return out
    picks = {int(flat[0]): "first"}
    if error is not None:
        with np.errstate(all="ignore"):
            ratio = np.where(limit.ravel() > 0, error.ravel() / limit.ravel(), np.inf)[flat]
            ratio = np.where(np.isinf(ratio), 1e300 + np.minimum(error.ravel()[flat], 1e299), ratio)
        picks.setdefault(int(flat[int(np.argmax(ratio))]), "worst")
    rng = np.random.Generator(np.random.PCG64(bad.size))
    for i in rng.choice(flat, size=min(4, flat.size), replace=False):
        picks.setdefault(int(i), "random")
    for at, why in picks.items():
        index = [int(k) for k in np.unravel_index(at, bad.shape)]
        w, a = want.reshape(-1)[at], actual.reshape(-1)[at]
        item = {
            "index": index,
            "expected": _value(w, d),
            "actual": _value(a, d),
            "expected_hex": _hex(w, d),
            "actual_hex": _hex(a, d),
            "ulp": None,
            "bound": None,
            "why": why,
        }
        if limit is not None:
            item["bound"] = _number(float(limit.reshape(-1)[at]))
        out["elements"].append(item)
    return out


def _map(bad: np.ndarray) -> dict[str, Any]:
    """The last two axes as a picture, everything before them laid out as rows; thinned to MAP cells."""
    w = bad.shape[-1] if bad.ndim else 1
    grid = bad.reshape(-1, max(1, w))
    step_h = max(1, math.ceil(grid.shape[0] / max(1, MAP // max(1, min(w, 64)))))
    step_w = max(1, math.ceil(grid.shape[1] / 64))
    h2, w2 = math.ceil(grid.shape[0] / step_h), math.ceil(grid.shape[1] / step_w)
    padded = np.zeros((h2 * step_h, w2 * step_w), bool)
    padded[: grid.shape[0], : grid.shape[1]] = grid
    cells = padded.reshape(h2, step_h, w2, step_w).any(axis=(1, 3))
    return {"shape": [h2, w2], "cells": "".join("1" if c else "0" for c in cells.ravel())}


def _histogram(u: np.ndarray) -> dict[str, int]:
    """Counts by powers of two: "0", "1" (0 < u <= 1), "2" (1 < u <= 2), ..., "inf"."""
    v = u.ravel()
    out: dict[str, int] = {}
    zero = int((v == 0).sum())
    if zero:
        out["0"] = zero
    inf = int(np.isinf(v).sum())
    some = v[(v > 0) & np.isfinite(v)]
    if some.size:
        top = np.maximum(0, np.ceil(np.log2(some))).astype(int)
        for p, n in zip(*np.unique(top, return_counts=True), strict=True):
            out[str(1 << int(p)) if p < 63 else f"2^{int(p)}"] = int(n)
    if inf:
        out["inf"] = inf
    return out


def _number(v: float) -> Any:
    """JSON has no infinity."""
    return v if math.isfinite(v) else None if math.isnan(v) else ("inf" if v > 0 else "-inf")


def _value(v: Any, d: DType) -> Any:
    if d.kind == "s":
        return str(v)
    if d.kind == "b":
        return bool(v)
    if d.kind in "iu":
        return int(v)
    if d.kind == "c":
        return repr(complex(v))
    f = float(v)
    return f if math.isfinite(f) else repr(f)


def _hex(v: Any, d: DType) -> str:
    if d.kind == "s":
        return str(v).encode("utf-8", "surrogateescape").hex()
    raw = np.asarray(v).reshape(1)
    return "0x" + raw.tobytes()[::-1].hex()


def _dtype_name(a: np.ndarray) -> Any:
    from harness.core.dtypes import of

    try:
        return of(a)
    except ValueError:
        return a.dtype
