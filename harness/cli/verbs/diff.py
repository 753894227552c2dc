"""``opconform diff``: what is new and what is gone between two runs; 1 when something is new."""

from __future__ import annotations

import argparse
import json

from harness.cli.output import MISMATCH, OK, note, say

HELP = "what is new and what is gone between two runs; 1 when something is new"
_CHANGES = {
    "new": "new",
    "first_run": "new, not run before",
    "seldom": "seen only now, too rare to call new",
    "gone": "gone",
    "not_run": "not run now",
}
_LISTED = {"listed_new": "listed differences that occur only now", "listed_gone": "that no longer occur"}
_TAKEN = {"taken": "types that are taken only now", "dropped": "that are no longer taken"}


def arguments(v: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    v.add_argument("old", metavar="OLD", help="record file or folder")
    v.add_argument("new", metavar="NEW", help="record file or folder")
    v.add_argument("--json", action="store_true", help="print the whole comparison as JSON")


def run(args: argparse.Namespace) -> int:
    """Does what the verb says; returns the exit code."""
    import reports
    from reports.compare import processors

    d = reports.diff(args.old, args.new)
    for side, notes in d["notes"].items():
        for text in notes:
            note(f"note: {side}: {text}")
    if args.json:
        say(*json.dumps(d, indent=1).split("\n"))
        return MISMATCH if d["new"] or d["first_run"] else OK
    now, before = d["versions"]["now"], d["versions"]["before"]
    for backend in sorted(now.keys() | before.keys()):
        was, is_ = before.get(backend), now.get(backend)
        say(f"{backend} {is_}" if was == is_ else f"{backend} {was or '(absent)'} -> {is_ or '(absent)'}")
    moved = processors(d)
    if moved:
        say(f"the processors differ: {moved}")
    for kind, title in _CHANGES.items():
        _table(
            title,
            [
                ["", e["key"], e["backend"], e["verdict"], f"{e['was']} of {e['was_of']} -> {e['n']} of {e['of']}"]
                for e in d[kind]
            ],
        )
    say(f"still there: {len(d['still'])}")
    for kind, title in _LISTED.items():
        _table(title, [["", e["id"], e["backend"], _some(e["keys"]), e["reason"]] for e in d[kind]])
    for kind, title in _TAKEN.items():
        _table(title, [["", e["key"], e["backend"], " ".join(e["dtypes"])] for e in d[kind]])
    return MISMATCH if d["new"] or d["first_run"] else OK


def _table(title: str, rows: list[list[str]]) -> None:
    from harness.session import terminal

    say(f"{title}: {len(rows)}")
    say(*terminal.columns(rows))


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:2]) + (f" and {len(keys) - 2} more" if len(keys) > 2 else "")
