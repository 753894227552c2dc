"""The page: one HTML file with its data, style and script, which loads nothing from a network.

The data is gzipped JSON in base64 (5,000 mismatches are some 20 MB of JSON, 1 MB packed).  The content security policy
forbids every request.  It also forbids every script and style except the two in the file, which it names by their
hashes.  The script sets text as text only, so no message of a backend can become markup.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from harness.core.escape import html as escaped
from harness.core.outcome import Verdict

# Order matters: they run as one script, later files use what earlier ones define.
SCRIPTS = (
    "dom.js",
    "data.js",
    "state.js",
    "charts.js",
    "overview.js",
    "matrix.js",
    "cases.js",
    "detail.js",
    "coverage.js",
    "ledger.js",
    "main.js",
)


def page(data: dict[str, Any]) -> str:
    """data: ``Summary.to_json()`` with ``diff``; returns the file's text."""
    style, script = assets()
    raw = json.dumps(data, separators=(",", ":"), allow_nan=False, default=str).encode()
    packed = base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "data": packed,
        "title": escaped(_title(data)),
    }
    template = files("reports").joinpath("templates/report.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], template)


@cache
def assets() -> tuple[str, str]:
    """Style and script of the page, joined from ``static/``."""
    static = files("reports").joinpath("static")
    colours = "".join(f".v-{v.value} {{ --c: var(--v-{v.value}); }}\n" for v in Verdict)
    style = static.joinpath("style.css").read_text("utf-8") + colours
    body = "\n".join(static.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}\n}})();\n'
    if "</script" in script or "</style" in style:
        raise AssertionError("a static file closes its own element")
    return style, script


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(data: dict[str, Any]) -> str:
    return f"opconform: {data['bad']:,} unexplained of {data['judged']:,}"
