"""A Markdown summary for CI pages: the figures, the largest clusters, what changed, and how to replay."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from harness.core.escape import markdown as md
from harness.core.escape import markdown_code
from reports.compare import processors
from reports.summary import hidden_faults, identified_faults

SHOWN = 20


def markdown(data: dict[str, Any]) -> str:
    """data: ``Summary.to_json()`` with ``diff`` (a comparison or None)."""
    bad = data["bad_verdicts"]
    head = f"**{data['bad']:,} unexplained** of {data['judged']:,} judged outcomes{_apart(data)}"
    if data["undecided"]:
        head += f", **{data['undecided']:,} without verdict**"
    if data["unused"]:
        head += f", **listed differences that did not occur: {md(' '.join(data['unused']))}**"
    lines = ["# opconform", "", head + (" · interrupted" if data["interrupted"] else ""), ""]
    lines += [f"> {md(n)}" for n in data["notes"]] + ([""] if data["notes"] else [])
    lines += (
        _backends(data, bad)
        + _causes(data)
        + _changes(data.get("diff"))
        + _clusters(data)
        + _uninformative(data)
        + _sensitivity(data)
        + _known(data)
    )
    return "\n".join(lines)


def _apart(data: dict[str, Any]) -> str:
    """What was not judged, beside the number of what was."""
    told = [f"{n:,} {v}" for v, n in data["unjudged"].items() if v != "unknown"]
    told += [f"{data['not_asked']:,} unasked"] if data["not_asked"] else []
    return f" ({', '.join(told)} not counted)" if told else ""


def _uninformative(data: dict[str, Any]) -> list[str]:
    rows = [[e["key"], b, n, of] for e in data["uninformative"] for b, (n, of) in e["backends"].items()]
    if not rows:
        return []
    head = ["op version", "backend", "uninformative", "of"]
    more = len(rows) - SHOWN
    return [
        "## Mostly uninformative",
        "",
        *_table(head, rows[:SHOWN], 2),
        *([f"... and {more} more, see report.html.", ""] if more > 0 else []),
    ]


class _Span(str):
    """A part of a table that is Markdown already."""


def _table(head: list[str], rows: list[list[Any]], numbers: int = 1) -> list[str]:
    """numbers: first column that is right-aligned."""
    rule = [_Span("---")] * numbers + [_Span("---:")] * (len(head) - numbers)
    lines: list[list[Any]] = [head, rule, *rows]
    return ["| " + " | ".join(map(_cell, row)) + " |" for row in lines] + [""]


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}" if value else "·"
    return value if isinstance(value, _Span) else md(value)


def _backends(data: dict[str, Any], bad: list[str]) -> list[str]:
    cube = data["cube"]
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for _, _, b, _, v, n in cube["rows"]:
        sums[cube["backends"][b]][cube["verdicts"][v]] += n
    shown = [v for v in cube["verdicts"] if v in data["totals"]]
    rows = []
    for backend, counts in sorted(sums.items()):
        version = data["backends"].get(backend, {}).get("version", "")
        name = backend if str(version) in backend else f"{backend} {version}".strip()
        rows.append([name, *(counts[v] for v in shown)])
    return _table(["backend", *(_Span(f"**{md(v)}**") if v in bad else v for v in shown)], rows) if rows else []


def _changes(diff: dict[str, Any] | None) -> list[str]:
    if diff is None:
        return []
    lines = ["## Against the baseline", ""]
    lines.append(
        f"{len(diff['new'])} new, {len(diff['gone'])} gone, {len(diff['still'])} still there, "
        f"{len(diff['not_run'])} not run this time."
    )
    lines.append("")
    moved = processors(diff)
    lines += [f"The processors differ: {md(moved)}.", ""] if moved else []
    for kind in ("new", "gone"):
        rows = [[kind, e["key"], e["backend"], e["verdict"], e["n"], e["was"]] for e in diff[kind][:SHOWN]]
        if rows:
            lines += _table(["", "op version", "backend", "verdict", "now", "before"], rows, 4)
    for one, other, head, cells in (
        ("listed_new", "listed_gone", "listed difference | backend | reason", ("id", "backend", "reason")),
        ("taken", "dropped", "op version | backend | types taken", ("key", "backend", "dtypes")),
    ):
        marked = [("only now", e) for e in diff[one][:SHOWN]] + [("no longer", e) for e in diff[other][:SHOWN]]
        rows = [[word, *(e[c] if isinstance(e[c], str) else " ".join(e[c]) for c in cells)] for word, e in marked]
        if rows:
            lines += _table(["", *head.split(" | ")], rows, 4)
    return lines


def _causes(data: dict[str, Any]) -> list[str]:
    """What to do first."""
    first = [c for c in data["causes"] if c["first"]]
    if len(first) < 2:
        return []
    share = sum(c["share"] for c in first)
    rows = [[c["class"], c["sentence"], c["backend"], c["failed"]] for c in first]
    told = f"{len(first)} of {len(data['causes'])} causes would settle {share:.0%} of the failures."
    return ["## What to do first", "", told, "", *_table(["", "cause", "backend", "fail"], rows, 3)]


def _clusters(data: dict[str, Any]) -> list[str]:
    if not data["clusters"]:
        return []
    first: dict[int, dict[str, Any]] = {}
    for c in data["cases"]:
        if c["cluster_index"] is not None:
            first.setdefault(c["cluster_index"], c)
    rows = []
    for i, cl in enumerate(data["clusters"][:SHOWN]):
        replay = first.get(i, {}).get("replay") or ""
        rows.append(
            [
                cl["key"],
                cl["backend"],
                cl["verdict"],
                cl["predicate"],
                _Span(markdown_code(replay, cell=True)),
                cl["failed"],
                cl["passed"],
            ]
        )
    more = len(data["clusters"]) - SHOWN
    head = ["op version", "backend", "verdict", "when", "replay", "fail", "pass"]
    return ["## Clusters", "", *_table(head, rows, 5), *([f"... and {more} more.", ""] if more > 0 else [])]


def _sensitivity(data: dict[str, Any]) -> list[str]:
    planted = sum(r["planted"] for r in data["sensitivity"])
    if not planted:
        return []
    caught = sum(r["caught"] for r in data["sensitivity"])
    out = [f"Sensitivity: {caught:,} of {planted:,} planted faults caught ({100 * caught / planted:.1f} %)."]
    same = identified_faults(data["sensitivity"])
    for backend, (hidden, met) in sorted(hidden_faults(data["sensitivity"]).items()):
        out.append(
            f"Known differences of {md(backend)} hide {hidden:,} of the {met:,} that meet them; "
            f"{same[backend]:,} are the listed defect itself."
        )
    return [*out, ""]


def _known(data: dict[str, Any]) -> list[str]:
    idle = [k for k, e in data["known"].items() if not e["hits"]]
    lines = [f"{len(data['known'])} known differences, {len(data['ambiguity'])} ambiguities."]
    if idle:
        lines.append("Listed but not seen: " + ", ".join(markdown_code(k) for k in sorted(idle)) + ".")
    return [*lines, ""]
