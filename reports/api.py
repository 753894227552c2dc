"""The five calls of this package; the command line and CI use nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from reports.compare import compare
from reports.html import page
from reports.junit import junit
from reports.markdown import markdown
from reports.records import PathLike, expand, read
from reports.summary import Summary, summarise
from reports.tables import export

__all__ = ["RenderResult", "diff", "export", "merge", "render", "summarise"]


@dataclass
class RenderResult:
    """Where the pages are, and the summary they were made from."""

    html: Path
    json: Path
    markdown: Path
    junit: Path
    summary: Summary
    diff: dict[str, Any] | None


def render(
    records: PathLike | list[PathLike], out_dir: PathLike, baseline: PathLike | list[PathLike] | None = None
) -> RenderResult:
    """Write report.html, report.json, summary.md and junit.xml into ``out_dir`` (made when missing).

    records, baseline: record files, or folders of them (shards are merged).  Raises FormatError for what is
    no record file, UsageError where a page cannot be written.
    """
    summary = summarise(records)
    changes = compare(summary, summarise(baseline)) if baseline else None
    data = summary.to_json() | {"diff": changes}
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    result = RenderResult(
        out / "report.html", out / "report.json", out / "summary.md", out / "junit.xml", summary, changes
    )
    for path, text in (
        (result.html, page(data)),
        (result.json, json.dumps(data, indent=1)),
        (result.markdown, markdown(data)),
        (result.junit, junit(data)),
    ):
        try:
            path.write_text(text, encoding="utf-8", errors="backslashreplace")  # a path may be no text at all
        except OSError as e:
            raise UsageError(f"cannot write {path}: {e.strerror}; the records are whole") from None
    return result


def diff(a: PathLike | list[PathLike], b: PathLike | list[PathLike]) -> dict[str, Any]:
    """What is new and what is gone in run ``b`` against run ``a`` (see ``reports.compare``)."""
    return compare(summarise(b), summarise(a))


def merge(records: list[PathLike], out: PathLike) -> int:
    """Write all records of several files into one file, cut-off last lines left out; returns the number of
    records.

    Repeats are kept: reading a record file counts each batch once anyway.  Raises FormatError, and UsageError
    where ``out`` is there and no file.
    """
    target, n = Path(out), 0
    if target.exists() and not target.is_file():
        raise UsageError(f"{target}: expected the name of a file, which is written anew")
    notes: list[str] = []
    sources = [p for p in expand(records) if p != target.resolve()]
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with open(part, "w", encoding="utf-8") as f:
        for path in sources:
            for record in read(path, notes):
                f.write(json.dumps(record, separators=(",", ":")) + "\n")
                n += 1
    part.replace(target)
    return n
