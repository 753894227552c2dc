"""Finds the fact about an instance that separates the failing from the passing ones.

The facts are those of ``harness.core.features``.  For each (op version, backend, verdict) with failures, every fact has
a score, Youden's J: its share among the failures minus its share among the passing instances.  The best fact names a
cluster.  Its failures are set aside, and the rest is searched again, so two defects of one op become two clusters.  A
fact counts only if chance alone would hardly give one of those tried such a score; a failure or two of many instances
name none.  Remaining failures of the same kind in several op versions are searched once more together.

The numbers come from these records:

* failures: from case records, scaled to the tallies if only some were recorded
* instances of each dtype and opset: from the tallies of the batches
* instances of any other fact, and the share of invalid instances: from the ``cover`` of the batches, which counts drawn
  instances for all backends together (in long runs a sample of them)

Valid instances are compared with valid ones, invalid ones with invalid ones.  A fact that was never counted separates
nothing; then the cluster states only what its failures have in common.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import comb
from typing import Any

from harness.core.features import features
from harness.core.outcome import Verdict

ENOUGH = 0.5  # J from which a fact is called separating
CHANCE = 0.05  # ... if fewer than this many facts would look as good by chance
ROUNDS = 4  # clusters per op version, backend and verdict before the rest is one heap


def find_clusters(
    cases: list[dict[str, Any]],
    cube: Counter[tuple[str, Any, str, str, str]],
    coverage: dict[str, dict[str, Any]],
    bad: tuple[str, ...],
) -> list[dict[str, Any]]:
    """Clusters of all failing cases, largest first; ``members`` lists the case records (the same objects)."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for c in cases:
        if c["verdict"] in bad:
            groups[c["key"], c["backend"], c["verdict"]].append(c)
    counts = Counts(cube, coverage)
    out: list[dict[str, Any]] = []
    unexplained: dict[tuple[str, str, str], list[tuple[_Group, list[dict[str, Any]]]]] = defaultdict(list)
    for (key, backend, verdict), members in groups.items():
        failed = max(counts.verdict[key, backend, verdict], len(members))
        group = _Group(members, failed, counts, key, backend, verdict == Verdict.WRONGLY_ACCEPTED.value)
        found, left = _split(group)
        out += [{"key": key, "backend": backend, "verdict": verdict, **c} for c in found]
        for kind in sorted({str(c.get("kind") or "") for c in left}):
            rest = [c for c in left if str(c.get("kind") or "") == kind]
            unexplained[backend, verdict, kind].append((group, rest))
    for (backend, verdict, _), pool in unexplained.items():
        out += [{"backend": backend, "verdict": verdict, **c} for c in _pooled(pool)]
    out.sort(key=lambda c: (-c["failed"], c["key"], c["backend"], c["predicate"]))
    return out


class Counts:
    """How many instances have a fact: exact from the tallies for dtype and opset, else from coverage."""

    def __init__(self, cube: Counter[tuple[str, Any, str, str, str]], coverage: dict[str, dict[str, Any]]) -> None:
        self.coverage = coverage
        self.ran: Counter[tuple[str, str]] = Counter()
        self.verdict: Counter[tuple[str, str, str]] = Counter()
        self.exact: Counter[tuple[str, str, str]] = Counter()
        for (key, opset, backend, dtype, verdict), n in cube.items():
            if not Verdict(verdict).decided:
                continue
            self.ran[key, backend] += n
            self.verdict[key, backend, verdict] += n
            self.exact[key, backend, f"dtype={dtype}"] += n
            self.exact[key, backend, f"opset={opset}"] += n

    def share(self, key: str, invalid: bool) -> float:
        """Share of the instances of ``key`` that are valid (or broken on purpose); 1 where nobody counted."""
        c = self.coverage.get(key) or {}
        if not c.get("instances"):
            return 1.0
        valid = c["valid"] / c["instances"]
        return float(1.0 - valid if invalid else valid)

    def total(self, key: str, backend: str, fact: str, invalid: bool) -> float | None:
        """Valid (or broken) instances of ``key`` that ``backend`` ran and that have ``fact``; None if uncounted."""
        if fact.startswith(("dtype=", "opset=")):
            return self.exact[key, backend, fact] * self.share(key, invalid)
        c = self.coverage.get(key) or {}
        if invalid:
            rule = fact.removeprefix("breaks ")
            if fact == rule or not c.get("instances") or rule not in c["rules"]:
                return None
            return float(c["rules"][rule] * self.ran[key, backend] / c["instances"])
        if fact not in c.get("choices", {}) or not c.get("counted"):
            return None
        return float(c["choices"][fact] * self.ran[key, backend] * self.share(key, False) / c["counted"])

    def kinds(self, key: str) -> tuple[set[str], set[str]]:
        """Attribute and slot names of an op version, as far as coverage has seen them."""
        attrs, slots = set(), set()
        for fact in (self.coverage.get(key) or {}).get("choices", {}):
            if fact.endswith(" omitted"):
                attrs.add(fact[:-8])
            elif fact.endswith(": absent"):
                slots.add(fact[:-8])
        return attrs, slots


class _Group:
    """The failures of one op version on one backend with one verdict, and what is needed to score a fact on
    them.
    """

    def __init__(
        self,
        members: list[dict[str, Any]],
        failed: float,
        counts: Counts,
        key: str,
        backend: str,
        invalid: bool,
    ) -> None:
        attrs, slots = counts.kinds(key)
        # Shrinking changes the facts, so they are those of the instance as it was drawn.
        self.facts = {id(c): features(c.get("instance") or {}, attrs, slots) for c in members}
        self.members, self.counts, self.key, self.backend = members, counts, key, backend
        self.scale = failed / len(members)  # case records may be a sample of what the tallies count
        self.invalid = invalid  # instances that break a rule are judged among themselves
        self.passed = max(counts.ran[key, backend] * counts.share(key, invalid) - failed, 0.0)
        self.have = Counter(f for facts in self.facts.values() for f in facts)

    def passing_with(self, fact: str) -> float | None:
        """Passing instances that have ``fact``; None where nobody counted, or fewer were counted than failed."""
        total = self.counts.total(self.key, self.backend, fact, self.invalid)
        failing = self.scale * self.have[fact]
        if total is None or self.passed <= 0 or total < 0.8 * failing:
            return None
        return min(max(total - failing, 0.0), self.passed)

    def by_chance(self, n: int, of: int, passing: float) -> float:
        """How likely ``n`` of ``of`` failures have a fact that has nothing to do with them."""
        share = min((n + passing) / (of + self.passed), 1.0)
        return sum(comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(n, of + 1))

    def rarest_first(self, facts: list[str]) -> list[str]:
        """Those that few passing instances have tell most, so they come first; the uncounted come last."""

        def share(fact: str) -> float:
            passing = self.passing_with(fact)
            return 2.0 if passing is None else passing / self.passed

        return sorted(facts, key=lambda f: (share(f), f))

    def best(self, left: list[dict[str, Any]]) -> str | None:
        """The fact that separates ``left`` best from the passing instances; ties go to the rarer, then
        shorter one.
        """
        have = Counter(f for c in left for f in self.facts[id(c)])
        ranked: list[tuple[float, float, int, str]] = []
        for fact, n in have.items():
            passing = self.passing_with(fact)
            if passing is None:
                continue
            score = n / len(left) - passing / self.passed
            if score >= ENOUGH and self.by_chance(n, len(left), passing) * len(have) < CHANCE:
                ranked.append((-round(score, 6), passing, len(fact), fact))
        return min(ranked)[3] if ranked else None

    def cluster(self, hit: list[dict[str, Any]], fact: str | None, of: int) -> dict[str, Any]:
        """``hit``: the failures it explains, out of ``of`` that were still unexplained."""
        have = Counter(f for c in hit for f in self.facts[id(c)])
        failed = round(self.scale * len(hit))
        kinds = {c.get("kind") or "" for c in hit}
        out: dict[str, Any] = {
            "failed": failed,
            "recorded": len(hit),
            "members": hit,
            "score": None,
            "kind": kinds.pop() if len(kinds) == 1 else "",
            "separates": fact is not None,
            "common": self.rarest_first([f for f, n in have.items() if n == len(hit) and f != fact]),
            "exact": self.counts.share(self.key, self.invalid) == 1
            and (fact is None or fact.startswith(("dtype=", "opset="))),
            "all_failed": round(self.scale * len(self.members)),
            "all_passed": round(self.passed),
        }
        passing = self.passing_with(fact) if fact else None
        if fact is not None:
            out |= {"predicate": fact, "passed": round(passing or 0.0)}
            if passing is not None:
                out["score"] = round(len(hit) / of - passing / self.passed, 4)
        elif self.passed <= 0:
            out |= {"predicate": "every instance", "passed": 0, "separates": True}
        else:
            out |= {"predicate": "no single fact", "passed": round(self.passed)}
        out["total"] = out["passed"] + failed
        return out


class _Pool(_Group):
    """Failures of several op versions that look alike: too few in each to tell why, perhaps enough together."""

    def __init__(self, parts: list[tuple[_Group, list[dict[str, Any]]]]) -> None:
        self.parts = [g for g, _ in parts]
        self.members = [c for _, rest in parts for c in rest]
        self.facts = {id(c): g.facts[id(c)] for g, rest in parts for c in rest}
        self.passed = sum(g.passed for g in self.parts)

    def passing_with(self, fact: str) -> float | None:
        """Summed over the op versions; one that has failures with an uncounted fact corrupts_process it."""
        total = 0.0
        for g in self.parts:
            passing = g.passing_with(fact)
            if passing is None and g.have[fact] and g.passed > 0:
                return None
            total += passing or 0.0
        return total if self.passed > 0 else None


def _pooled(pool: list[tuple[_Group, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Clusters of what no fact explained within one op version, searched again over all of them."""
    together = _Pool(pool)
    left, out = list(together.members), []
    for _ in range(ROUNDS):
        fact = together.best(left) if left else None
        if fact is None:
            break
        hit = {id(c) for c in left if fact in together.facts[id(c)]}
        for group, rest in pool:
            mine = [c for c in rest if id(c) in hit]
            if mine:
                out.append({"key": group.key, **group.cluster(mine, fact, len(rest))})
        left = [c for c in left if id(c) not in hit]
    rest_ids = {id(c) for c in left}
    for group, rest in pool:
        mine = [c for c in rest if id(c) in rest_ids]
        if mine:
            out.append({"key": group.key, **group.cluster(mine, None, len(rest))})
    return out


def _split(group: _Group) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Clusters of one op version, and the failures that none of its facts explains."""
    left, out = list(group.members), []
    rules = {str(c["rule"]) for c in left if c.get("rule")}
    if group.invalid and rules:  # a broken rule is a cause by construction: one cluster for each
        for rule in sorted(rules):
            hit = [c for c in left if c.get("rule") == rule]
            out.append(group.cluster(hit, f"breaks {rule}", len(left)))
        return out, []
    for _ in range(ROUNDS):
        fact = group.best(left) if left else None
        if fact is None:
            break
        hit = [c for c in left if fact in group.facts[id(c)]]
        out.append(group.cluster(hit, fact, len(left)))
        left = [c for c in left if fact not in group.facts[id(c)]]
    if left and group.passed <= 0:
        out.append(group.cluster(left, None, len(left)))
        left = []
    return out, left
