"""What is new and what is gone between two runs.

Random runs rarely draw the same instances, so two runs are compared by what failed (op version, backend,
verdict), not by which instance showed it; instances that are in both are matched by their id as well.  A
failure that is missing because the other run never got there is *not run*, never *gone*.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from reports.summary import BAD, Summary, key_order

Group = tuple[str, str, str]  # key, backend name without version, verdict


def compare(new: Summary, old: Summary) -> dict[str, Any]:
    """new, gone: failures of one run only, where both ran that op version on that backend.  still: in both.
    not_run: failures of the old run that the new one did not run; first_run: the other way round.

    Each entry: key, backend, verdict, n and of (failures and judged outcomes now), was and was_of (before).
    Marks each case of ``new`` with ``baseline``: "new", "same" (that instance failed before) or "kind"
    (others did).
    """
    bad_new, ran_new = _tables(new)
    bad_old, ran_old = _tables(old)
    out: dict[str, Any] = {"new": [], "gone": [], "still": [], "not_run": [], "first_run": []}
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
        elif not ran_old[pair]:
            out["first_run"].append(entry)
        elif not bad_old[group]:
            out["new"].append(entry)
        elif not bad_new[group]:
            out["gone"].append(entry)
        else:
            out["still"].append(entry)
    _mark_cases(new, old, bad_old)
    out["totals"] = {"now": new.totals, "before": old.totals}
    out["versions"] = {"now": _versions(new), "before": _versions(old)}
    out["started"] = {"now": _started(new), "before": _started(old)}
    out["known_new"] = sorted(set(new.known) - set(old.known))
    out["known_gone"] = sorted(k for k in old.known if k not in new.known)
    return out


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


def _mark_cases(new: Summary, old: Summary, bad_old: Counter[Group]) -> None:
    name_of = {label: info["name"] for label, info in {**old.backends, **new.backends}.items()}
    before = {(c["id"], name_of[c["backend"]], c["verdict"]) for c in old.cases}
    for c in new.cases:
        name = name_of[c["backend"]]
        if (c["id"], name, c["verdict"]) in before:
            c["baseline"] = "same"
        else:
            c["baseline"] = "kind" if bad_old[c["key"], name, c["verdict"]] else "new"


def _versions(s: Summary) -> dict[str, str]:
    return {label: str(info.get("version", "")) for label, info in s.backends.items()}


def _started(s: Summary) -> str | None:
    return min((str(r["started"]) for r in s.runs if r.get("started")), default=None)
