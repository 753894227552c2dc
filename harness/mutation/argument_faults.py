"""Faults of the arguments: the reference evaluated once more with an attribute, parameter or input changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.dtypes import int_range, of
from harness.declare.params import Axes, Axis, Choice, Each, Integer, Ints, Pads
from harness.mutation.fault_context import FaultContext, Outputs


def dropped_bias(s: FaultContext) -> Outputs | None:
    """An optional input that is given is not read."""
    m = s.case.version.meaning
    if m is None or s.decoded is None:
        return None
    given = [n for n, t in m.tensors.items() if t.optional and s.decoded[0].get(n) is not None]
    return _first(s.reevaluate({n: None}) for n in reversed(given))


def operands_swapped(s: FaultContext) -> Outputs | None:
    """The first two inputs exchanged."""
    if s.decoded is None:
        return None
    tensors = [(n, v) for n, v in s.decoded[0].items() if isinstance(v, np.ndarray)]
    if len(tensors) < 2 or tensors[0][1].shape != tensors[1][1].shape or tensors[0][1].dtype != tensors[1][1].dtype:
        return None
    (a, x), (b, y) = tensors[:2]
    return s.reevaluate({a: y, b: x})


def wrong_axis(s: FaultContext) -> Outputs | None:
    """The neighbour of the axis that was asked for."""

    def tries() -> Iterator[Outputs | None]:
        for name, p in s.params.items():
            v = s.decoded[1].get(name) if s.decoded else None
            rank = len(s.env.get(getattr(p, "dim", ""), ())) if isinstance(p, (Axis, Axes)) else 0
            if rank < 2 or v is None:
                continue
            if isinstance(p, Axis):
                yield s.reevaluate(params={name: (v + 1) % rank})
            elif len(v) == 1:
                yield s.reevaluate(params={name: ((v[0] + 1) % rank,)})

    return _first(tries())


def pad_off_by_one(s: FaultContext) -> Outputs | None:
    """One more before, one less after: the shape stays."""

    def tries() -> Iterator[Outputs | None]:
        for name, p in s.params.items():
            v = s.decoded[1].get(name) if s.decoded else None
            if not (isinstance(p, Pads) or (name.startswith("pad") and isinstance(p, Ints))) or not v or len(v) % 2:
                continue
            n = len(v) // 2
            for i in range(n):
                if v[i] > 0 or v[n + i] > 0:
                    step = 1 if v[n + i] > 0 else -1
                    moved = list(v)
                    moved[i] += step
                    moved[n + i] -= step
                    yield s.reevaluate(params={name: tuple(moved)})

    return _first(tries())


def parameter_off_by_one(s: FaultContext) -> Outputs | None:
    """One integer parameter is one too large."""

    def tries() -> Iterator[Outputs | None]:
        for name, p in s.params.items():
            v = s.decoded[1].get(name) if s.decoded else None
            if isinstance(p, Integer) and isinstance(v, int):
                yield s.reevaluate(params={name: v + 1})
            elif isinstance(p, (Each, Ints)) and isinstance(v, tuple) and v and all(isinstance(x, int) for x in v):
                for i in range(len(v)):
                    yield s.reevaluate(params={name: (*v[:i], v[i] + 1, *v[i + 1 :])})

    return _first(tries())


def other_mode(s: FaultContext) -> Outputs | None:
    """Another of the named modes."""

    def tries() -> Iterator[Outputs | None]:
        for name, p in s.params.items():
            if isinstance(p, Choice) and s.decoded is not None:
                for o in p.options:
                    if o != s.decoded[1].get(name):
                        yield s.reevaluate(params={name: o})

    return _first(tries())


def ignored_attribute(s: FaultContext) -> Outputs | None:
    """An attribute that is written is not read: its default holds."""
    attrs = s.case.inst.attrs
    schema = s.case.version.schema.attrs

    def tries() -> Iterator[Outputs | None]:
        for name, v in attrs.items():
            a = schema.get(name)
            if a is not None and not a.required and not _same(a.default, v):
                yield s.respelled({k: x for k, x in attrs.items() if k != name})

    return _first(tries())


def wrong_default(s: FaultContext) -> Outputs | None:
    """An attribute that is left out is taken for something else than its default."""
    attrs = s.case.inst.attrs

    def tries() -> Iterator[Outputs | None]:
        for name, a in s.case.version.schema.attrs.items():
            if name in attrs or a.default is None:
                continue
            for v in _others(a):
                yield s.respelled({**attrs, name: v})

    return _first(tries())


def _others(a: Any) -> list[Any]:
    d = a.default
    if a.enum:
        return [x for x in a.enum if x != d]
    if isinstance(d, bool):
        return [not d]
    if isinstance(d, int):
        return [1 - d] if d in (0, 1) else [d + 1]
    if isinstance(d, float):
        return [d + 0.5 if d else 1.0]
    return []


def saturates(s: FaultContext) -> Outputs | None:
    """Integer results are clipped where they should wrap around."""
    if s.decoded is None:
        return None
    wide: dict[str, Any] = {}
    for n, v in s.decoded[0].items():
        if isinstance(v, np.ndarray) and of(v).kind in "iu" and of(v).bits < 64:
            wide[n] = v.astype(np.int64)
    if not wide:
        return None
    exact = _plain(s, {**s.decoded[0], **wide}, s.decoded[1])
    if exact is None or len(exact) < len(s.expected):
        return None
    out: Outputs = []
    for e, x in zip(s.expected, exact, strict=False):
        v = e.value
        if isinstance(v, np.ndarray) and isinstance(x, np.ndarray) and e.dtype.kind in "iu" and x.dtype == np.int64:
            if x.shape != v.shape or not np.array_equal(x.astype(v.dtype), v):
                return None  # not a question of the result's width
            low, high = int_range(e.dtype)
            v = np.clip(x, low, min(high, 2**63 - 1)).astype(v.dtype)
        out.append(v)
    return out


def _plain(s: FaultContext, tensors: dict[str, Any], params: dict[str, Any]) -> list[Any] | None:
    """The meaning's own results, before the dialect's output type."""
    m = s.case.version.meaning
    if m is None or s.case.version.entry.spelling.out is not None:
        return None
    try:
        with np.errstate(all="ignore"):
            raw = m.fn(**tensors, **params)
    except Exception:
        return None
    return list(raw) if isinstance(raw, (tuple, list)) else [raw]


def truncated_division(s: FaultContext) -> Outputs | None:
    """Quotients rounded toward zero where they should be rounded down, or the reverse: sign(a b) f(|a|, |b|) and its
    counterpart f(a, b) - 1 on inexact negative quotients."""
    if s.decoded is None:
        return None
    two = [(n, v) for n, v in s.decoded[0].items() if isinstance(v, np.ndarray)]
    if len(two) != 2 or any(of(v).kind not in "if" for _, v in two) or len(s.expected) != 1:
        return None
    (_, x), (_, y) = two
    e = s.expected[0]
    v = e.value
    with np.errstate(all="ignore"):
        if np.any(y == 0) or not isinstance(v, np.ndarray) or e.dtype.kind not in "if":
            return None
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return None
        fx, fy = x.astype(np.float64), y.astype(np.float64)
        if not (np.isfinite(fx).all() and np.isfinite(fy).all()):
            return None
        q = fx / fy
        w = v.astype(np.float64)
        floor, trunc = np.floor(q), np.trunc(q)
        for quotient, other in ((floor, trunc), (trunc, floor)):
            if w.shape != q.shape:
                return None
            if np.array_equal(w, quotient):
                return [other.astype(v.dtype)]
            if np.array_equal(w, fx - quotient * fy):
                return [(fx - other * fy).astype(v.dtype)]
    return None


def ties_broken_otherwise(s: FaultContext) -> Outputs | None:
    """Step functions (rounding, quantising) decide ties the other way: the inputs are a hair larger in magnitude."""
    if s.decoded is None or not all(_steps(e) for e in s.expected):
        return None
    moved = {
        n: (v.astype(np.float64) * (1 + 2.0**-40))
        for n, v in s.decoded[0].items()
        if isinstance(v, np.ndarray) and of(v).kind == "f" and v.size
    }
    if not moved:
        return None
    name = next(iter(moved))
    raw = _plain(s, {**s.decoded[0], name: moved[name]}, s.decoded[1])
    if raw is None or len(raw) != len(s.expected):
        return None
    out = []
    for e, r in zip(s.expected, raw, strict=True):
        if not isinstance(r, np.ndarray) or r.shape != e.value.shape or of(r).kind not in "fiub":
            return None
        with np.errstate(all="ignore"):
            out.append(r.astype(e.value.dtype))
    return out


def _steps(e: Any) -> bool:
    v = e.value
    if not isinstance(v, np.ndarray) or not (e.error.exact or e.error.moves_integers):
        return False
    if e.dtype.kind in "iu":
        return True
    if e.dtype.kind != "f" or not v.size:
        return False
    w = v.astype(np.float64)
    w = w[np.isfinite(w)]
    return bool(w.size) and bool(np.all(w == np.round(w)))


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    except Exception:
        return False


def _first(results: Iterator[Outputs | None] | Any) -> Outputs | None:
    return next((r for r in results if r is not None), None)
