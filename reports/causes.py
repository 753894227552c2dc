"""What to do first: the causes of failures, across op versions.

A cause is what one change would settle.  Each failure has several candidates:

* the words of a rejection or a crash, without names and numbers (``pattern_of``)
* what is wrong about a result: its type, its rank, its extents, or the pattern of its wrong elements
* a fact about the instance without the name of its operand, such as "a constant in int32_data", if most failures of
  some kinds have it and chance does not explain that
* the op with the kind of difference

The candidate that settles most failures is a cause.  Its failures are set aside, and the rest is searched again.
Crashes come first, then silent wrong values, then rejections, then invalid instances that were accepted.  Numbers are
estimates if only some failures were recorded.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import exp, lgamma
from math import log as math_log
from typing import Any

from harness.core.features import features, pattern_of
from harness.core.outcome import Verdict
from reports.clusters import Counts

FIRST = 10  # causes that are told first
MOST = 0.8  # share of the failures of one kind that have a fact: from there on the fact may be their cause
TIMES = 3.0  # ... if it is so many times as frequent as among all instances
CHANCE = 0.01  # ... and chance would do that less often
CLASSES = {
    Verdict.CRASHED.value: "crash",
    Verdict.TIMED_OUT.value: "crash",
    Verdict.MISMATCH.value: "wrong value",
    Verdict.WRONGLY_REJECTED.value: "refusal",
    Verdict.WRONGLY_ACCEPTED.value: "accepted",
}
ORDER = list(dict.fromkeys(CLASSES.values()))
# Facts about an operand that are told without its name, and how.
_OPERAND = re.compile(r".+: (?P<what>rank 0|empty axis|constant(?: in \w+)?|dynamic|quantised per \w+)")
_WORDS = {"rank": "an operand of", "empty": "an operand with an"}
_LACKS = re.compile(r"\b(?:not|un|yet)[ -]?(?:yet )?(?:implement|support)", re.IGNORECASE)
_WHOLE = ("dtype=", "shapes differ", "run again", "all operands constant")

Rec = Mapping[str, Any]
Candidate = tuple[str, str]  # kind ("message", "result", "fact", "op") and words


def result_of(c: Rec) -> str:
    """What is wrong about a result, without the op; empty where that tells nothing across ops."""
    diff = c.get("diff") or {}
    kind = str(c.get("kind") or "")
    if kind == "dtype" and diff.get("got_dtype"):
        return f"results come as {diff['got_dtype']} instead of another type"
    if kind == "shape" and diff.get("got_shape") is not None:
        want, got = len(diff.get("shape") or ()), len(diff["got_shape"])
        return f"results come with rank {got} instead of another" if want != got else ""
    return kind if kind in ("missing", "type") else ""


def signature(c: Rec) -> str:
    """What two failures of one cause have in common, whatever their instances: the words of a refusal or a crash, what
    is wrong about a result."""
    if c["verdict"] != Verdict.MISMATCH.value:
        return str(c["rule"]) if c.get("rule") else pattern_of(c.get("message") or "")
    return result_of(c) or str(c.get("kind") or "value")


def find_causes(
    cases: Iterable[Rec],
    cube: Counter[tuple[str, Any, str, str, str]],
    coverage: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Causes, by class and size.  Each has backend, class, kind, text, ops, verdict, and

    failed: failures that it would settle.  share: of all failures.  first: whether it is one of the largest.
    cases: numbers of some cases that show it, in ``cases``.  clusters: numbers of the clusters with its failures.
    """
    counts = Counts(cube, coverage)
    by_group: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    every = list(cases)
    for i, c in enumerate(every):
        if c["verdict"] in CLASSES:
            by_group[c["key"], c["backend"], c["verdict"]].append(i)
    weight: dict[int, float] = {}
    for group, some in by_group.items():
        weight.update(dict.fromkeys(some, max(counts.verdict[group], len(some)) / len(some)))
    facts = {i: _facts(every[i], counts) for i in weight}
    shares = _Shares(every, facts, counts)
    out: list[dict[str, Any]] = []
    for backend in sorted({every[i]["backend"] for i in weight}):
        for name in ORDER:
            mine = {i for i in weight if every[i]["backend"] == backend and CLASSES[every[i]["verdict"]] == name}
            out += [{"backend": backend, "class": name, **c} for c in _greedy(mine, facts, shares, weight, every)]
    total = sum(weight.values()) or 1.0
    out.sort(key=lambda c: -c["failed"])
    crash = next((c for c in out if c["class"] == ORDER[0]), None)
    first = out[:FIRST] if crash is None or crash in out[:FIRST] else [*out[: FIRST - 1], crash]
    for c in out:
        c["first"], c["share"] = any(c is f for f in first), round(c["failed"] / total, 4)
    out.sort(key=lambda c: (not c["first"], ORDER.index(c["class"]), -c["failed"], c["text"]))
    return out


def _facts(c: Rec, counts: Counts) -> dict[str, set[str]]:
    """Facts without the names of operands, each with those that it stands for."""
    out: dict[str, set[str]] = defaultdict(set)
    for fact in features(c.get("instance") or {}, *counts.kinds(c["key"])):
        found = _OPERAND.fullmatch(fact)
        if found is not None:
            what = found["what"]
            head = _WORDS.get(what.split()[0], "an operand that is")
            out[f"{head} {'a ' if what.startswith('constant') else ''}{what}"].add(fact)
        elif fact.startswith(_WHOLE):
            out[fact.replace("dtype=", "element type ")].add(fact)
    return out


class _Shares:
    """How frequent a fact is among the instances that a backend ran."""

    def __init__(self, every: list[Rec], facts: Mapping[int, Mapping[str, set[str]]], counts: Counts) -> None:
        at: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for i, some in facts.items():
            for fact, names in some.items():
                at[every[i]["backend"], fact][every[i]["key"]] |= names
        ran = Counter[str]()
        for (_, backend), n in counts.ran.items():
            ran[backend] += n
        self._base: dict[tuple[str, str], float] = {}
        for (backend, fact), keys in at.items():
            told = [[counts.total(key, backend, f, False) for f in some] for key, some in keys.items()]
            if any(n is not None for some in told for n in some):  # else nobody counted it
                with_it = sum(max((n or 0.0 for n in some), default=0.0) for some in told)
                self._base[backend, fact] = with_it / max(ran[backend], 1)

    def explains(self, backend: str, fact: str, have: int, of: int) -> bool:
        """Have so many failures of one kind the fact that chance would hardly do it?"""
        base = min(self._base.get((backend, fact), 1.0), 1.0)
        return have >= MOST * of and have >= TIMES * base * of and _at_least(have, of, base) < CHANCE


def _at_least(n: int, of: int, p: float) -> float:
    """How likely at least ``n`` of ``of`` are, each of probability p."""
    if not 0 < p < 1:
        return float(p >= 1 or n == 0)
    log = [
        lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) + k * math_log(p) + (of - k) * math_log(1 - p)
        for k in range(n, of + 1)
    ]
    return sum(map(exp, log))


def _primary(c: Rec) -> Candidate:
    """The kind of failure: what two of one cause have in common, whatever their instances."""
    if c.get("rule"):
        return "rule", f"the rule {c['rule']}"
    op = c["key"].split("/")[1]
    if c["verdict"] == Verdict.MISMATCH.value:
        result = result_of(c)
        return ("result", result) if result else ("op", f"{op}: {c.get('kind') or 'value'}")
    return ("message", pattern_of(c["message"])) if c.get("message") else ("op", op)


def _greedy(
    mine: set[int],
    facts: Mapping[int, Mapping[str, set[str]]],
    shares: _Shares,
    weight: Mapping[int, float],
    every: list[Rec],
) -> list[dict[str, Any]]:
    """The candidate that settles most, then of the rest the one that settles most, and so on."""
    members: dict[Candidate, set[int]] = defaultdict(set)
    for i in mine:
        members[_primary(every[i])].add(i)
    kinds = list(members.values())
    for i in mine:
        members["op", every[i]["key"].split("/")[1]].add(i)
        if every[i]["verdict"] == Verdict.WRONGLY_REJECTED.value and _LACKS.search(every[i].get("message") or ""):
            members["lack", "the runtime says that it does not implement or support it"].add(i)
    for some in kinds:
        have = Counter(f for i in some if not every[i].get("rule") for f in facts[i])
        backend = every[next(iter(some))]["backend"]
        for fact, n in have.items():
            if shares.explains(backend, fact, n, len(some)):
                members["fact", fact] |= {i for i in some if fact in facts[i]}
    out, left = [], set(mine)
    prefer = {"result": 0, "message": 1, "rule": 1, "lack": 2, "fact": 2, "op": 3}
    while left:
        size = {k: sum(weight[i] for i in v) for k, v in members.items() if v}
        best = min(size, key=lambda k: (-round(size[k], 6), prefer[k[0]], k[1]))
        hit = members.pop(best)
        left -= hit
        for some in members.values():
            some -= hit
        ops = Counter(every[i]["key"].split("/")[1] for i in hit)
        shown = sorted(hit, key=lambda i: (every[i].get("minimal") is None, i))
        out.append(
            {
                "kind": best[0],
                "text": best[1],
                "failed": round(size[best]),
                "ops": [op for op, _ in ops.most_common()],
                "verdict": every[shown[0]]["verdict"],
                "cases": shown[:3],
                "clusters": sorted({k for i in shown if (k := every[i].get("cluster_index")) is not None})[:40],
            }
        )
    return out


def sentence(cause: Rec) -> str:
    """A cause in words."""
    ops, text = cause["ops"], str(cause["text"])
    if cause["kind"] == "op" and len(ops) == 1:
        return text
    named = ", ".join(ops[:4]) + (f" and {len(ops) - 4} more ops" if len(ops) > 4 else "")
    return f"{text} ({named})"
