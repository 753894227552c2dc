"""What is new between two runs, matched by cause.

Two runs with one seed have the same instances, so whatever fails only now is new.  With another seed, rare failures and
the op versions that show a defect change by chance.  Then a failure is new only if

* nothing with the same cause failed before: the same words of a rejection or a crash in any op, the same wrong result
  in any op, or otherwise the same kind of difference in the same op; and
* the older run would have shown it: at the same rate, chance would seldom leave it out.

A failure that is rarer than that is listed apart, as seldom.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from harness.core.outcome import Verdict
from reports.causes import CLASSES, result_of, signature
from reports.summary import Summary

CHANCE = 0.01  # what the older run would have left out more seldom than this is new
SPREAD = 1e-4  # ... and more seldom than this in an op, where other ops had the cause already
Entry = tuple[str, str, str]  # key, backend, verdict


def cause_of(c: Mapping[str, Any], backend: str) -> tuple[str, ...]:
    """The cause of a failure as another run would show it."""
    name, told = CLASSES[c["verdict"]], signature(c)
    if c["verdict"] == Verdict.MISMATCH.value and not result_of(c):
        return backend, name, told, c["key"].split("/")[1]
    if c.get("rule"):
        return backend, name, told, c["key"].split("/")[1]
    return backend, name, told


def same_seed(new: Summary, old: Summary) -> bool:
    """Have two runs instances in common?"""
    now, before = ({str(r["seed"]) for r in s.runs if r.get("seed") is not None} for s in (new, old))
    return not now or not before or bool(now & before)


def classify(new: Summary, old: Summary) -> dict[Entry, str]:
    """Of each op version, backend and verdict with failures in the new run: "new", "seldom" or "still"."""
    names = {label: str(info["name"]) for label, info in {**old.backends, **new.backends}.items()}
    ran_new, ran_old = _ran(new), _ran(old)
    before: Counter[tuple[str, ...]] = Counter()
    at_before: Counter[tuple[str, ...]] = Counter()  # with the op
    key_before: Counter[tuple[str, ...]] = Counter()  # with the op version
    earlier: list[Mapping[str, Any]] = list(old.cases)
    for c in earlier:
        if c["verdict"] in CLASSES:
            cause = cause_of(c, names[c["backend"]])
            before[cause] += 1
            at_before[_at(cause, _op(c))] += 1
            key_before[_at(cause, c["key"])] += 1
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    failing: list[Mapping[str, Any]] = list(new.cases)
    for c in failing:
        if c["verdict"] in CLASSES:
            groups[_at(cause_of(c, names[c["backend"]]), _op(c))].append(c)
    strict = same_seed(new, old)
    out: dict[Entry, str] = {}
    for at, some in groups.items():
        cause, op, backend = at[:-1], at[-1], at[0]
        n, was = ran_new[op, backend], ran_old[op, backend]
        missed = (n / (n + was)) ** len(some) if n + was else 1.0
        if at_before[at]:
            how = "still"
        elif before[cause]:
            how = "new" if missed < SPREAD else "still"
        elif not was and not _drawn(old, op):
            how = "new"
        else:
            how = "new" if missed < CHANCE else "seldom"
        for case in some:
            told = ("still" if key_before[_at(cause, case["key"])] else "new") if strict else how
            entry = case["key"], backend, case["verdict"]
            out[entry] = min(told, out.get(entry, told), key=_WORST.index)
    return out


_WORST = ("new", "still", "seldom")  # of several causes of one op version, what is told of it


def _at(cause: tuple[str, ...], place: str) -> tuple[str, ...]:
    return (*cause, place)


def _op(c: Mapping[str, Any]) -> str:
    return str(c["key"].rpartition("/")[0])


def _ran(s: Summary) -> Counter[tuple[str, str]]:
    """Judged outcomes by op and backend."""
    out: Counter[tuple[str, str]] = Counter()
    for (key, _, label, _, verdict), n in s.cube.items():
        if Verdict(verdict).judged:
            out[key.rpartition("/")[0], str(s.backends[label]["name"])] += n
    return out


def _drawn(s: Summary, op: str) -> bool:
    return any(key.rpartition("/")[0] == op for key in s.coverage)
