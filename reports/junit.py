"""JUnit XML for CI systems: one test case per op version and backend, as pytest names them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from harness.core.escape import one_line, xml, xml_attribute

SHOWN = 5  # cases told per failed test; the page has them all


def junit(data: dict[str, Any]) -> str:
    """data: ``Summary.to_json()``.  A suite per backend; failed tests carry their first cases and replay
    lines.
    """
    cube, bad = data["cube"], set(data["bad_verdicts"])
    tests: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for k, _, b, _, v, n in cube["rows"]:
        tests[cube["backends"][b]][cube["keys"][k]][cube["verdicts"][v]] += n
    cases: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for c in data["cases"]:
        if c["verdict"] in bad or c["verdict"] == "unknown":
            cases[c["backend"], c["key"]].append(c)
    suites, sums = [], Counter[str]()
    for backend, keys in sorted(tests.items()):
        body, failures, errors, skipped = [], 0, 0, 0
        for key, verdicts in keys.items():
            failed = sum(n for v, n in verdicts.items() if v in bad)
            judged = sum(n for v, n in verdicts.items() if v in data["judged_verdicts"])
            inner = ""
            if failed:
                failures += 1
                inner = _failure(verdicts, failed, judged, cases[backend, key], bad)
            elif verdicts["unknown"]:
                errors += 1
                inner = _error(verdicts["unknown"], judged + verdicts["unknown"], cases[backend, key])
            elif not judged:
                skipped += 1
                why = f"declared unsupported by {backend}"
                if verdicts["uninformative"]:
                    why = f"nothing judged: {verdicts['uninformative']} answers of {backend} say too little to count"
                inner = f"<skipped message={xml_attribute(why)}/>"
            dialect = key.partition("/")[0]
            body.append(
                f"<testcase classname={xml_attribute(f'{dialect}.{backend}')} name={xml_attribute(f'{key}/{backend}')} "
                f'assertions="{judged}">{inner}</testcase>'
            )
        sums.update(tests=len(keys), failures=failures, errors=errors, skipped=skipped)
        suites.append(
            f'<testsuite name={xml_attribute(backend)} tests="{len(keys)}" failures="{failures}" errors="{errors}" '
            f'skipped="{skipped}">' + "\n".join(["", *body, ""]) + "</testsuite>"
        )
    whole = _whole(data)
    if whole:
        suites.append(whole)
        sums.update(tests=1, errors=1)
    head = f'<testsuites name="opconform" tests="{sums["tests"]}" failures="{sums["failures"]}"'
    head += f' errors="{sums["errors"]}"'
    head += f' skipped="{sums["skipped"]}" time="{data["elapsed"]:.1f}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>", ""])


def _whole(data: dict[str, Any]) -> str:
    """A suite for what fails a run as a whole, empty where nothing does."""
    why = ["it did not come to its end"] if data["interrupted"] else []
    if data["unused"]:
        why.append(f"listed differences that did not occur: {' '.join(data['unused'])}")
    if not why:
        return ""
    return (
        '<testsuite name="opconform" tests="1" failures="0" errors="1" skipped="0">\n'
        '<testcase classname="opconform" name="the whole run">'
        f'<error message={xml_attribute("; ".join(why))} type="run"/></testcase>\n</testsuite>'
    )


def _error(undecided: int, of: int, cases: list[dict[str, Any]]) -> str:
    """Instances without a verdict, and why."""
    told = dict.fromkeys(f"{c.get('phase') or ''}: {one_line(c.get('message') or '')}" for c in cases[:SHOWN])
    text = "\n".join(told)
    message = f"{undecided} of {of} instances without verdict"
    return f'<error message={xml_attribute(message)} type="unknown">{xml(text)}</error>'


def _failure(verdicts: Counter[str], failed: int, judged: int, cases: list[dict[str, Any]], bad: set[str]) -> str:
    kinds = ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items()) if v in bad)
    text = []
    cases = [c for c in cases if c["verdict"] in bad]
    for c in cases[:SHOWN]:
        text += [
            c.get("notation") or c["key"],
            one_line(c.get("message") or ""),
            f"replay: {one_line(c.get('replay') or c['id'])}",
            "",
        ]
    if failed > SHOWN:
        text.append(f"... and {failed - min(SHOWN, len(cases))} more, see report.html")
    message = f"{failed} of {judged} instances: {kinds}"
    first = next(v for v in verdicts if v in bad)
    body = xml("\n".join(t for t in text if t))
    return f"<failure message={xml_attribute(message)} type={xml_attribute(first)}>{body}</failure>"
