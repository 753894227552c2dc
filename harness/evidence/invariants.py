"""What the instances of a generator have in common, so that a smaller one is still one of them.

Recorded choices that are lowered give valid instances by construction.  Cutting an axis or replacing an element may
not.  Example: a shape operand of four elements loses one, and a reference that reads only two elements does not notice.
So such a candidate must keep what all draws of its kind (same operands given, same modes) have in common: facts about
ranks, extents, lengths and literal integers.  A fact that holds by chance only keeps an instance larger than necessary.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from harness.core.dtypes import DType
from harness.core.instance import Arg, Instance
from harness.declare import OpVersion
from harness.generate.draw_engines import Prng, case_seed

DRAWS, SECONDS = 240, 0.8  # instances looked at, and the time for them
ENOUGH = 12  # of the same kind, or a fact is not believed
FEW = 3  # distinct values that make a range of an extent
MODES = 16  # distinct values of an attribute that tells kinds of instances apart
LITERALS = 16  # elements of a vector whose values are looked at one by one
_MISSING, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_TINY = 5e-324


def measures(inst: Instance) -> dict[str, int]:
    """Every number about the structure of an instance: ranks, extents from both ends, lengths, literal integers."""
    out: dict[str, int] = {"count outputs": inst.outs}
    for slot, a in inst.args.items():
        if isinstance(a, list):
            out[f"count {slot}"] = len(a)
        for k, one in enumerate(a if isinstance(a, list) else [a]):
            if one.items is None:
                _of_tensor(out, f"{slot}[{k}]" if isinstance(a, list) else slot, one)
    for name, v in inst.attrs.items():
        if isinstance(v, (list, tuple)):
            out[f"count {name}"] = len(v)
            v = v if len(v) <= LITERALS else ()
            out |= {f"value {name}[{i}]": x for i, x in enumerate(v) if type(x) is int}
        elif type(v) is np.ndarray and v.ndim == 1:
            out[f"count {name}"] = len(v)
        elif type(v) is int:
            out[f"value {name}"] = v
    return out


def _of_tensor(out: dict[str, int], name: str, a: Arg) -> None:
    rank = len(a.shape)
    out[f"rank {name}"] = rank
    for i, n in enumerate(a.shape):
        out[f"extent {name}[{i}]"] = n
        out[f"extent {name}[{i - rank}]"] = n
    if a.quant:
        out |= {f"count {part} {name}": len(v) for part, v in a.quant.items() if isinstance(v, list)}
    if a.values is not None and rank <= 1 and len(a.values) <= LITERALS and a.dtype.kind in "iu":
        out |= {f"value {name}[{i}]": int(x) for i, x in enumerate(a.values)}


def _modes(inst: Instance) -> dict[str, Any]:
    """What tells kinds of instances apart: operands given, and attributes that choose among few values."""
    out: dict[str, Any] = {f"given {s}": True for s in inst.args}
    for name, v in inst.attrs.items():
        if isinstance(v, (bool, int, str, DType)) or v is None:
            out[name] = str(v)
        else:
            out[name] = "given"
    return out


@lru_cache(maxsize=64)
def _pool(version: OpVersion, opset: Any) -> list[tuple[dict[str, Any], dict[str, int], dict[str, Any]]]:
    """Modes, measures and reach of the elements of some draws."""
    until, out = time.process_time() + SECONDS, []
    for i in range(DRAWS):
        try:
            inst = version.draw(Prng(case_seed(0x5EED, version.key, i)), opset)
        except Exception:  # a generator that fails now and then has other draws
            continue
        out.append((_modes(inst), measures(inst), _reaches(inst)))
        if time.process_time() > until:
            break
    return out


class Invariants:
    """Facts that hold for an instance and for all draws of its kind; ``kept(candidate)`` asks for every one of them."""

    def __init__(self, version: OpVersion, inst: Instance) -> None:
        pool = _pool(version, inst.opset)
        own, modes = measures(inst), _modes(inst)
        self.names = list(own)
        self.range: dict[str, tuple[int, int]] = {}  # of ranks; of others the sign only
        self.among: dict[str, frozenset[int]] = {}
        self.tied: set[tuple[str, str, int, int]] = set()  # (a, b, factor, offset): a == factor * b + offset
        lengths = {f"count {n}" for n in inst.attrs} & own.keys()
        self.least = {n: min(own[n], *(row.get(n, own[n]) for _, row, _ in pool)) for n in lengths if pool}
        at = {n: i for i, n in enumerate(self.names)}
        rows = np.full((len(pool) + 1, len(self.names)), _MISSING, np.int64)
        for r, row in enumerate([own, *(row for _, row, _ in pool)]):
            for n, x in row.items():
                if n in at:
                    rows[r, at[n]] = x
        for kind in _kinds([m for m, _, _ in pool], modes):
            self._learn(rows[[0, *(1 + i for i in kind)]])
        literal = {s for s, a in inst.args.items() if any(x.values is not None for x in _tensors(a))}
        self.bounds = _bounds([_reaches(inst), *(r for _, _, r in pool)], literal)

    def _learn(self, rows: np.ndarray) -> None:
        """Take in what holds for all of these draws; the first row is the instance itself."""
        have = rows != _MISSING
        known = np.flatnonzero(have.sum(0) > ENOUGH).tolist()
        varied = []
        for i in known:
            name, column = self.names[i], rows[have[:, i], i]
            seen = np.unique(column)
            low, high = int(seen[0]), int(seen[-1])
            if not name.startswith("value ") and len(seen) <= FEW and len(seen) * ENOUGH <= len(column):
                self.among[name] = self.among.get(name, frozenset(seen.tolist())) & frozenset(seen.tolist())
            if name.startswith("rank "):
                self.range[name] = low, high
            elif low >= 0:
                self.range[name] = min(low, 1), _MOST
            if len(seen) > 1:
                varied.append(i)
        counts = {i for i in varied if self.names[i].startswith(("rank ", "count "))}
        table, there = rows[:, varied], have[:, varied]
        for k, i in enumerate(varied):
            both = there & there[:, k : k + 1]
            common = both.sum(0) > ENOUGH
            same = common & ((table == table[:, k : k + 1]) | ~both).all(0)
            self.tied |= {(self.names[i], self.names[j], 1, 0) for j, ok in zip(varied, same) if ok and i < j}
            for m, j in enumerate(varied if i in counts else ()):
                if j in counts and j != i and common[m]:
                    a, b = table[both[:, m], k], table[both[:, m], m]
                    for factor in (1, 2):
                        rest = a - factor * b
                        if (rest == rest[0]).all():
                            self.tied.add((self.names[i], self.names[j], factor, int(rest[0])))

    def broken(self, candidate: Instance) -> Iterator[str]:
        """The facts that do not hold for ``candidate``, in words."""
        now = measures(candidate)
        for n, seen in self.among.items():
            if n in now and now[n] not in seen:
                yield f"{n} is {now[n]}, always one of {sorted(seen)}"
        for n, (low, high) in self.range.items():
            if n in now and not low <= now[n] <= high:
                yield f"{n} is {now[n]}, always within {low} and {high}"
        for n, shortest in self.least.items():
            if now.get(n, shortest) < shortest:
                yield f"{n} is {now[n]}, never below {shortest}"
        for a, b, factor, offset in self.tied:
            if a in now and b in now and now[a] != factor * now[b] + offset:
                yield f"{a} is {now[a]}, always {factor} * {b} + {offset}"
        for slot, (least, most) in self.bounds.items():
            for one in _tensors(candidate.args.get(slot)):
                if not all(least <= x <= most for x in one.values or ()):
                    yield f"{slot} has elements outside of {least:g} and {most:g}"

    def kept(self, candidate: Instance) -> bool:
        """Do all facts hold for ``candidate``?"""
        return next(self.broken(candidate), None) is None


def _kinds(pool: list[dict[str, Any]], modes: dict[str, Any]) -> Iterator[list[int]]:
    """Sets of draws that the instance is one more of, those with enough members: all; those that share one mode with
    it, all modes of few values, all modes, all modes and the operands given."""
    many: dict[str, set[Any]] = {}
    for m in pool:
        for n, v in m.items():
            many.setdefault(n, set()).add(v)
    chosen = [n for n in modes.keys() | many.keys() if len(many.get(n, ())) <= MODES]
    told = [n for n in chosen if not n.startswith("given ")]
    single = [[n] for n in told if len(many.get(n, ())) > 1]
    for wanted in ([], *single, [n for n in told if len(many.get(n, ())) <= FEW], told, chosen):
        found = [i for i, m in enumerate(pool) if all(m.get(n) == modes.get(n) for n in wanted)]
        if len(found) > ENOUGH:
            yield found


def _tensors(a: Arg | list[Arg] | None) -> list[Arg]:
    return [] if a is None else a if isinstance(a, list) else [a]


Reach = tuple[float, float]


def _reach(a: Arg) -> Reach | None:
    """Least and greatest element that the filling of an operand may have, None where it may be anything."""
    if a.items is not None or a.dtype.kind not in "iuf":
        return None
    if a.values is not None:
        return (min(a.values), max(a.values)) if a.values else None
    name, *ends = a.recipe.split(":")
    if name in ("ints", "uniform"):
        return float(ends[0]), float(ends[1])
    return {"index": (0.0, np.inf), "perm": (0.0, np.inf), "prob": (0.0, 1.0), "positive": (_TINY, np.inf)}.get(name)


def _reaches(inst: Instance) -> dict[str, list[Reach | None]]:
    return {s: [_reach(x) for x in _tensors(a) if x.values != []] for s, a in inst.args.items()}


def _bounds(rows: list[dict[str, list[Reach | None]]], literal: set[str]) -> dict[str, Reach]:
    """Least and greatest element of the operands that are never filled beyond a range.  Of literal ones (axes, extents,
    states) only the sign counts, unless all of them are one number."""
    out = {}
    for slot in rows[0]:
        found = [r for row in rows for r in row.get(slot, ())]
        known = [r for r in found if r is not None]
        if len(known) <= ENOUGH or len(known) < len(found):
            continue
        low, high = min(r[0] for r in known), max(r[1] for r in known)
        if slot in literal and low != high:
            low, high = (min(low, 1.0), np.inf) if low >= 0 else (-np.inf, np.inf)
        out[slot] = low, high
    return out
