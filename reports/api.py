"""The five calls of this package; the command line and CI use nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from harness.core.errors import UsageError, reading
from reports.compare import compare
from reports.html import page
from reports.junit import junit
from reports.markdown import markdown
from reports.records import PathLike, expand, held, read
from reports.summary import Summary, summarise
from reports.tables import export

__all__ = ["RenderResult", "diff", "export", "held", "merge", "render", "summarise"]


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
    with reading("the records"):
        summary, changes, pages = _pages(records, baseline)
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    result = RenderResult(
        out / "report.html", out / "report.json", out / "summary.md", out / "junit.xml", summary, changes
    )
    for path, text in zip((result.html, result.json, result.markdown, result.junit), pages):
        try:
            with _anew(path) as f:
                f.write(text)
        except OSError as e:
            raise UsageError(f"cannot write {path}: {e.strerror}; the records are whole") from None
    return result


@contextmanager
def _anew(path: Path) -> Iterator[TextIO]:
    """A file that takes the place of what is there once it is whole; where it cannot be written, that stays."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "w", encoding="utf-8", errors="backslashreplace") as f:  # a path may be no text at all
            yield f
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _pages(records: Any, baseline: Any) -> tuple[Summary, dict[str, Any] | None, tuple[str, ...]]:
    """The summary, what changed, and the four files."""
    summary = summarise(records)
    changes = compare(summary, summarise(baseline)) if baseline else None
    data = summary.to_json() | {"diff": changes}
    return summary, changes, (page(data), json.dumps(data, indent=1), markdown(data), junit(data))


def diff(a: PathLike | list[PathLike], b: PathLike | list[PathLike]) -> dict[str, Any]:
    """What is new and what is gone in run ``b`` against run ``a`` (see ``reports.compare``)."""
    with reading("the records"):
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
    if any(Path(p).resolve() == target.resolve() for p in records):
        raise UsageError(f"{target}: expected another file than those that are read, whose records would be lost")
    notes: list[str] = []
    sources = [p for p in expand(records) if p != target.resolve()]
    if not sources:
        raise UsageError(f"{target}: no records but its own, which would be lost")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _anew(target) as f:
        for path in sources:
            for record in read(path, notes):
                f.write(json.dumps(record, separators=(",", ":")) + "\n")
                n += 1
    return n
