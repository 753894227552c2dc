"""What is new and what is gone between two runs.

Random runs rarely draw the same instances.  So two runs are compared by what failed (op version, backend, verdict) and
by its cause (``reports.news``), not by instance.  Instances that are in both runs are also matched by their id.  A
failure that is missing because the other run never reached it is *not run*, never *gone*.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from reports.news import classify
from reports.summary import BAD, Summary, key_order

Group = tuple[str, str, str]  # key, backend name without version, verdict
TRIED = 4  # instances of a type that a backend called unsupported, all of them, before that counts as a lack


def compare(new: Summary, old: Summary) -> dict[str, Any]:
    """Failures that are new, gone or in both runs.

    new, gone: failures of one run only, where both ran that op version on that backend.
    still: failures of both.
    seldom: failures of the new run only, with a new cause, but so rare that the old run need not have shown them.
    not_run: failures of the old run that the new one did not run.
    first_run: failures of the new run that the old one did not run.

    Each entry: key, backend, verdict, n and of (failures and judged outcomes now), was and was_of (before).
    Marks each case of ``new`` with ``baseline``: "new", "same" (that instance failed before) or "kind"
    (others did).

    listed_new, listed_gone: known differences and ambiguities that a backend shows in one run only, although both
    ran one of their op versions on it.  Each: id, backend, verdict, reason, clause, keys (op versions).
    taken, dropped: element types of op versions that a backend took in one run only, although the other run tried
    them at least ``TRIED`` times.  Each: key, backend, dtypes.

    notes: sentences about the records themselves, "now" and "before".
    processor: features of the processors of one run only, "now" and "before".  Runtimes choose kernels by them, so they
    may be the reason of a new failure.
    """
    bad_new, ran_new = _tables(new)
    bad_old, ran_old = _tables(old)
    how = classify(new, old)
    out: dict[str, Any] = {"new": [], "gone": [], "still": [], "not_run": [], "first_run": [], "seldom": []}
    for group in sorted(set(bad_new) | set(bad_old), key=lambda g: (key_order(g[0]), g[1], g[2])):
        pair = group[:2]
        entry = {
            "key": group[0],
            "backend": group[1],
            "verdict": group[2],
            "n": bad_new[group],
            "of": ran_new[pair],
            "was": bad_old[group],
            "was_of": ran_old[pair],
        }
        if not ran_new[pair]:
            out["not_run"].append(entry)
        elif not bad_new[group]:
            out["gone"].append(entry)
        else:
            told = how.get(group) or ("still" if bad_old[group] else "new")
            out["first_run" if told == "new" and not ran_old[pair] else told].append(entry)
    _mark_cases(new, old, how)
    out["notes"] = {"now": [*new.told, *_others(new, old)], "before": old.told}
    out["totals"] = {"now": new.totals, "before": old.totals}
    out["versions"] = {"now": _versions(new), "before": _versions(old)}
    out["started"] = {"now": _started(new), "before": _started(old)}
    here, there = _processors(new), _processors(old)
    both = bool(here and there)  # an older record does not tell
    out["processor"] = {"now": sorted(here - there) if both else [], "before": sorted(there - here) if both else []}
    out["listed_new"], out["listed_gone"] = _listed(new, old), _listed(old, new)
    out["taken"], out["dropped"] = _taken(new, old), _taken(old, new)
    return out


def processors(diff: dict[str, Any]) -> str:
    """What the processors of two runs offered to the backends in one of them alone, in words."""
    sides = (("only now", diff["processor"]["now"]), ("no longer", diff["processor"]["before"]))
    return "; ".join(f"{word} {' '.join(names)}" for word, names in sides if names)


def _tables(s: Summary) -> tuple[Counter[Group], Counter[tuple[str, str]]]:
    bad: Counter[Group] = Counter()
    ran: Counter[tuple[str, str]] = Counter()
    for (key, _, label, _, verdict), n in s.cube.items():
        name = s.backends[label]["name"]
        if verdict != "unsupported":
            ran[key, name] += n
        if verdict in BAD:
            bad[key, name, verdict] += n
    return bad, ran


def _listed(one: Summary, other: Summary) -> list[dict[str, Any]]:
    """What is listed and occurred on a backend in ``one`` alone."""
    here, there = _occurred(one), _occurred(other)
    asked = {(key, other.backends[label]["name"]) for key, _, label, _, _ in other.cube}
    out = []
    for (name, backend), keys in sorted(here.items()):
        if (name, backend) in there or not any((key, backend) in asked for key in keys):
            continue
        verdict, ledger = ("known", one.known) if name in one.known else ("ambiguous", one.ambiguity)
        entry = ledger[name]
        out.append(
            {
                "id": name,
                "backend": backend,
                "verdict": verdict,
                "reason": entry.get("reason", ""),
                "clause": entry.get("clause", ""),
                "keys": sorted(keys, key=key_order),
            }
        )
    return out


def _occurred(s: Summary) -> dict[tuple[str, str], set[str]]:
    """Op versions by listed difference and backend."""
    out: dict[tuple[str, str], set[str]] = defaultdict(set)
    for c in s.cases:
        name = c.get("known") or c.get("ambiguity")
        if name:
            out[name, s.backends[c["backend"]]["name"]].add(c["key"])
    return out


def _taken(one: Summary, other: Summary) -> list[dict[str, Any]]:
    """Element types of op versions that a backend took in ``one`` alone, grouped by op version and backend."""
    here, there = _support(one), _support(other)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (key, backend, dtype), (took, _) in here.items():
        took_there, lacked_there = there.get((key, backend, dtype), (0, 0))
        if took and not took_there and lacked_there >= TRIED:
            found[key, backend].append(dtype)
    return [
        {"key": k, "backend": b, "dtypes": sorted(found[k, b])}
        for k, b in sorted(found, key=lambda g: (key_order(g[0]), g[1]))
    ]


def _support(s: Summary) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(op version, backend, type) -> instances taken, and those called unsupported."""
    took: Counter[tuple[str, str, str]] = Counter()
    lacked: Counter[tuple[str, str, str]] = Counter()
    for (key, _, label, dtype, verdict), n in s.cube.items():
        (lacked if verdict == "unsupported" else took)[key, s.backends[label]["name"], dtype] += n
    for key, by in s.unasked.items():  # what was unsupported again and again is not asked any more
        for label, types in by.items():
            for dtype, why in types.items():
                lacked[key, s.backends[label]["name"], dtype] += sum(why.values())
    return {cell: (took[cell], lacked[cell]) for cell in took.keys() | lacked.keys()}


def _mark_cases(new: Summary, old: Summary, how: dict[Group, str]) -> None:
    name_of = {label: info["name"] for label, info in {**old.backends, **new.backends}.items()}
    before = {(c["id"], name_of[c["backend"]], c["verdict"]) for c in old.cases}
    for c in new.cases:
        name = name_of[c["backend"]]
        if (c["id"], name, c["verdict"]) in before:
            c["baseline"] = "same"
        else:
            c["baseline"] = "new" if how.get((c["key"], name, c["verdict"]), "new") == "new" else "kind"


def _versions(s: Summary) -> dict[str, str]:
    return {label: str(info.get("version", "")) for label, info in s.backends.items()}


def _others(new: Summary, old: Summary) -> list[str]:
    """A sentence where the instances of two runs have no seed in common."""
    now, before = ({str(r["seed"]) for r in s.runs if r.get("seed") is not None} for s in (new, old))
    if not now or not before or now & before:
        return []
    return [
        f"seed {' '.join(sorted(now))}, {' '.join(sorted(before))} before: other instances, so that a rare failure "
        "may come or go by chance"
    ]


def _processors(s: Summary) -> set[str]:
    """Names of instructions, and of processors that were emulated."""
    return {
        w
        for r in s.runs
        for part in str(r.get("cpu") or "").split(", ")
        for w in ([part] if part.endswith(" emulated") else part.split())
    }


def _started(s: Summary) -> str | None:
    return min((str(r["started"]) for r in s.runs if r.get("started")), default=None)
