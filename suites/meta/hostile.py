"""Strings that break what is written without its language's escaping, and records that are made of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from suites.meta.hostile_backends import WORDS

NASTY = [
    WORDS, '"""', "'''", '\\"', "\\", "\\\n", "\n# forged heading\n", "\n\n---\n", "a\n===", "1. a", "- a",
    "> a", "`", "``", "`x` ", "|", "\\|", "| a | b |\n| --- | --- |", "<b>",
    "</script><script>alert(1)</script>", "<!--", "]]>", "<![CDATA[", "&lt;", "&#x1b;", "[a](javascript:x)",
    "![a](b)", "[^1]", "**a**", "__a__", "a_b_", "~~a~~", "$x$", ":tada:", "@here", "\0", "\x1b[2J\x1b]0;t\x07",
    "\r", "\x85", "\u2028", "\u202e", "\u2066", "\ufeff", "\udcff", "\ud800", "\ufffe", "\U0010ffff", "../../x",
    "a/b", "a:b", "a\\b", "CON", "$(touch PWNED)", "`touch PWNED`", "'; touch PWNED; '", "{}", "%s",
    "{0!r:{1}}", "@WHAT@", "\\g<0>", "", " ", "é", "日本語",
]  # fmt: skip
words = st.lists(st.sampled_from(NASTY) | st.text(st.characters(codec=None), max_size=8), max_size=3).map("".join)


def rows(s: str) -> list[dict[str, Any]]:
    """Records in which every word that somebody else chooses is ``s``."""
    key = f"onnx/{s.replace('/', '')}/1"
    case = {
        "t": "case",
        "id": s,
        "key": key,
        "opset": 1,
        "backend": s,
        "dtype": "f32",
        "status": "value",
        "phase": s,
        "message": s,
        "rule": s,
        "notation": s,
        "class": s,
        "formula": s,
        "kind": s,
        "blame": s,
        "replay": s,
        "folder": s,
        "votes": {s: s},
        "company": [s],
        "before": [[s]],
        "known": None,
        "ambiguity": None,
        "minimal": None,
        "output": 0,
        "diff": None,
        "cluster": None,
        "instance": {
            "format": 1,
            "dialect": "onnx",
            "op": s,
            "version": 1,
            "opset": 1,
            "attrs": {s: s},
            "args": {},
            "outs": 1,
            "rule": s,
        },
    }
    other = key.replace("/1", "/2")
    return [
        {
            "t": "run",
            "format": 1,
            "command": s,
            "started": s,
            "opconform": s,
            "isa": s,
            "platform": s,
            "python": s,
            "cpu": s,
            "seed": 0,
            "backends": {s: {"version": s}},
            "dialects": {"onnx": s},
            "op_versions": {"onnx": 2},
            "missing": {s: s},
            "place": {"python": s, "cpu": None},
            "asked": [s],
        },
        {
            "t": "batch",
            "key": key,
            "opset": 1,
            "first": 0,
            "count": 4,
            "tally": [[s, "f32", "mismatch", 1], [s, "f32", "wrongly_rejected", 1], [s, "f32", "agree", 2]],
        },
        {
            "t": "batch",
            "key": other,
            "opset": 1,
            "first": 0,
            "count": 2,
            "tally": [[s, "f32", "unknown", 1], [s, "f32", "known", 1]],
        },
        case | {"verdict": "mismatch"},
        case | {"verdict": "wrongly_rejected", "status": "rejected"},
        case | {"verdict": "unknown", "key": other},
        case | {"verdict": "known", "key": other, "known": s},
        {
            "t": "sensitivity",
            "key": key,
            "dtype": "f32",
            "planted": 3,
            "caught": 2,
            "missed": [s],
            "hidden": {s: [1, 2]},
        },
        {"t": "known", "id": s, "hits": 1, "kind": "known", "reason": s, "clause": s, "link": s},
        {"t": "known", "id": s + "2", "hits": 0, "kind": "known", "reason": s, "clause": s, "link": s},
        {"t": "end", "elapsed": 1.0, "cases": 6, "interrupted": False, "unused": [s], "beside": {s: s}},
    ]
