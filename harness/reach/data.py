"""Kinds of goals about elements: special values in each operand and at both ends of it, extremes side by side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np

from harness.core.dtypes import DType, float_max, int_range
from harness.reach.facts import Facts, Filled, Operand

_FLOAT = (
    "nan",
    "nan first",
    "nan last",
    "inf",
    "-inf",
    "0",
    "-0",
    "subnormal",
    "highest",
    "lowest",
    "tie",
    "cancelling",
)
_SIGNED = ("lowest", "highest", "-1", "0", "repeated")
_UNSIGNED = ("highest", "0", "repeated")
_BIG = 1 << 24  # integers beyond it are no longer all f32 numbers


def data(f: Facts) -> list[str]:
    """Values that each operand must hold once; of two integer operands of one type the lowest beside -1, 0 beside 0."""
    out = []
    for o in f.operands:
        if o.name in f.states:
            continue
        out += [f"data:{w}:{o.name}" for w in _words_of(o)]
    return out + [f"data:lowest:{a.name},-1:{b.name}" for a, b in _integers(f)]


_OF_SEVERAL = {"repeated", "cancelling", "mixed"}  # words about two elements: a scalar has one


def _words_of(o: Operand) -> list[str]:
    words = dict.fromkeys(w for d in o.dtypes for w in _words(d))
    return [w for w in words if o.high or w not in _OF_SEVERAL]


@cache
def _goals_of(o: Operand) -> frozenset[str]:
    return frozenset(f"data:{w}:{o.name}" for w in _words_of(o))


def _words(d: DType) -> tuple[str, ...]:
    if d.kind == "f":
        return (*_FLOAT, "2^24") if d.bits >= 32 else _FLOAT if d.bits > 8 else ()
    if d.kind in "iu":
        words = _SIGNED if int_range(d)[0] < 0 else _UNSIGNED
        return (*words, "2^24") if d.bits >= 32 else words
    if d.kind == "b":
        return "all true", "all false", "mixed"
    return ("empty string",) if d.kind == "s" else ()


def _integers(f: Facts) -> list[tuple[Operand, Operand]]:
    signed = [o for o in f.operands if any(d.kind == "i" for d in o.dtypes) and not o.slot.variadic]
    signed = [o for o in signed if o.name not in f.states]
    return [(a, b) for a, b in combinations(signed, 2) if a.slot.type == b.slot.type]


def data_met(f: Facts, x: Filled) -> Iterator[str]:
    for o in f.operands:
        args = x.args.get(o.name)
        if args and not _goals_of(o) <= x.before:
            for a, array in zip(args, x.arrays(o.name)):
                if a.items is None and array.size:
                    for w in _found(a.dtype, array, f"data:cancelling:{o.name}" in x.before):
                        yield f"data:{w}:{o.name}"
    for p, q in _integers(f):
        one, other = x.arrays(p.name), x.arrays(q.name)
        if one and other and one[0].dtype.kind == "i" == other[0].dtype.kind and one[0].size and other[0].size:
            lowest = int_range(x.args[p.name][0].dtype)[0]
            if (one[0] == lowest).any() and (other[0] == -1).any():
                yield f"data:lowest:{p.name},-1:{q.name}"


def _found(d: DType, a: np.ndarray, cancels: bool) -> Iterator[str]:
    if d.kind == "f":
        if d.bits > 8:
            yield from _in_floats(d, a.ravel(), cancels)
    elif d.kind in "iu":
        yield from _in_integers(d, a)
    elif d.kind == "b":
        every, some = bool(a.all()), bool(a.any())
        yield "all true" if every else "mixed" if some else "all false"
    elif d.kind == "s" and any(s in ("", b"") for s in a.ravel().tolist()):
        yield "empty string"


def _in_integers(d: DType, a: np.ndarray) -> Iterator[str]:
    lo, hi = int_range(d)
    low, high = int(a.min()), int(a.max())
    if low == lo and lo < 0:
        yield "lowest"
    if high == hi:
        yield "highest"
    if low <= 0 <= high and not a.all():
        yield "0"
    if low < 0 and (a == -1).any():
        yield "-1"
    if a.size > high - low + 1 or (a.size > 1 and _repeats(a)):
        yield "repeated"
    if d.bits >= 32 and max(high, -low) > _BIG:
        yield "2^24"


def _repeats(a: np.ndarray) -> bool:
    flat = np.sort(a, axis=None)
    return bool((flat[1:] == flat[:-1]).any())


_LOOKED_AT = 64  # elements of which two may cancel
_TINY = {"f16": 2.0**-14, "f64": 2.0**-1022}  # smallest normal number; bf16 has that of f32


def _in_floats(d: DType, flat: np.ndarray, cancels: bool) -> Iterator[str]:
    wide = flat if d.bits >= 32 else flat.astype(np.float32)
    top, tiny = float_max(d), _TINY.get(d.name, 2.0**-126)
    low, high = float(wide.min()), float(wide.max())  # NaN where there is one
    if low != low:
        nan = np.isnan(wide)
        yield "nan"
        if nan[0]:
            yield "nan first"
        if nan[-1]:
            yield "nan last"
        rest = wide[~nan]
        if not rest.size:
            return
        wide, low, high = rest, float(rest.min()), float(rest.max())
    if high == np.inf:
        yield "inf"
    if low == -np.inf:
        yield "-inf"
    if high >= top and (high == top or (wide == top).any()):
        yield "highest"
    if low <= -top and (low == -top or (wide == -top).any()):
        yield "lowest"
    size = np.abs(wide)
    least = float(size.min())
    if least == 0.0:
        signs = np.signbit(wide[size == 0])
        if signs.any():
            yield "-0"
        if not signs.all():
            yield "0"
    if least < tiny and ((size > 0) & (size < tiny)).any():
        yield "subnormal"
    if (size - np.floor(size) == 0.5).any():
        yield "tie"
    if low < 0 < high and not cancels:
        some = wide[:_LOOKED_AT]
        if not set(some[some > 0].tolist()).isdisjoint((-some[some < 0]).tolist()):
            yield "cancelling"
    if d.bits >= 32 and ((size > _BIG) & (size < np.inf)).any():
        yield "2^24"
