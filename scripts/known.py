"""Put every known difference and ambiguity of suites/known into its file, its fields into their order.

    python scripts/known.py          # rewrites the files
    python scripts/known.py --check  # 1 if a file would change

A new table may be written anywhere, for example into ``suites/known/new.toml``, with its minimal instance in the field
``instance``.  This script moves it:

* the folder is the first of ``folders.toml`` that holds its backends and releases,
* the file is the family of the op version of its minimal instance, or ``several`` if a pattern of ``op`` matches ops of
  several families; an ambiguity goes into the file of its dialect,
* the minimal instance becomes a line of the file of the same name with the ending ``.jsonl``.

What a field says stays as it is written, comments too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from harness.core.errors import OpconformError
from harness.core.instance import Instance
from harness.declare import registry
from harness.ledger.entry import LedgerEntry
from harness.ledger.files import SEVERAL, files, read
from harness.ledger.folders import Folder, listed
from harness.ledger.tables import ORDER, tomllib

PLACE = Path(__file__).resolve().parent.parent / "suites/known"
_BESIDE = ("instance", "neighbours")


@dataclass
class Table:
    """One entry and how it is written.  above: comments before its header; fields: the text of each field."""

    entry: LedgerEntry
    above: str
    fields: dict[str, str]

    def toml(self) -> str:
        rows = (self.fields[k] for k in ORDER if k in self.fields and k not in _BESIDE)
        return f"{self.above}[[{self.entry.kind_of}]]\n{''.join(rows)}"

    def line(self) -> str:
        """Its minimal instance as a line of JSON, or nothing."""
        e = self.entry
        if e.instance is None:
            return ""
        parts = [f'"id":{json.dumps(e.id)}', f'"instance":{e.instance.dumps()}']
        if e.neighbours:
            parts.append(f'"neighbours":[{",".join(n.dumps() for n in e.neighbours)}]')
        return "{" + ",".join(parts) + "}\n"


@cache
def families() -> dict[str, set[str]]:
    """Op, as dialect/op -> the families of its versions."""
    found: dict[str, set[str]] = {}
    for name in registry.names():
        for v in registry.dialect(name).versions.values():
            found.setdefault(f"{name}/{v.op}", set()).add(v.family)
    return found


def family(ops: Iterable[str], instance: Instance | None) -> str:
    """The family of ops that an entry belongs to: that of its minimal instance, or of its first op if it has none."""
    named = [[op for op in families() if fnmatchcase(op, pattern)] for pattern in ops]
    for some in named:
        if len(some) > 1 and len(set().union(*(families()[op] for op in some))) > 1:
            return SEVERAL
    return registry.version_of(instance).family if instance is not None else min(families()[named[0][0]])


def file_of(e: LedgerEntry, folders: Iterable[Folder]) -> str:
    """The file that an entry belongs to.  Raises ValueError where no folder holds its backends."""
    if e.kind_of == "ambiguous":
        return f"ambiguous-{e.ops[0].partition('/')[0]}.toml"
    for f in folders:
        if f.holds(e.backends, e.versions):
            return f"{f.path.name}/{family(e.ops, e.instance)}.toml"
    raise ValueError(f"{e.source}: {e.id}: no folder of folders.toml holds the backends {' '.join(e.backends)}")


def split(text: str) -> tuple[str, list[tuple[str, dict[str, str]]]]:
    """The comments at the head of a file, then of every table the comments above it and the texts of its fields."""
    head, *rest = re.split(r"^\[\[\w+\]\][ \t]*\n", text, flags=re.M)
    head, above = _last_paragraph(head)
    tables = []
    for body in rest:
        fields, left = _fields(body)
        tables.append((above, fields))
        above = left
    if above:
        raise ValueError(f"a comment stands behind the last table: {above!r}")
    return head, tables


def _last_paragraph(text: str) -> tuple[str, str]:
    head, gap, last = text.rpartition("\n\n")
    return head + gap, last


def _fields(body: str) -> tuple[dict[str, str], str]:
    """The texts of the fields of a table, each with the comments above it, and what is left behind the last one."""
    fields: dict[str, str] = {}
    text = ""
    for line in body.splitlines(keepends=True):
        if not line.strip() and not text.strip():
            continue
        text += line
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if said:
            fields[next(iter(said))] = text
            text = ""
    return fields, text


def sources(folders: Iterable[Folder]) -> Iterator[Path]:
    yield from files(PLACE)
    for f in folders:
        yield from files(f.path)


def written() -> dict[str, str]:
    """The text that every file should have.  Raises FormatError and ValueError."""
    folders = listed(PLACE)
    heads: dict[str, str] = {}
    found: dict[str, list[Table]] = {}
    for path in sources(folders):
        head, texts = split(path.read_text("utf-8"))
        heads[path.relative_to(PLACE).as_posix()] = head
        entries = {e.id: e for e in read(path, PLACE)}
        for above, fields in texts:
            e = entries[tomllib.loads(fields["id"])["id"]]
            found.setdefault(file_of(e, folders), []).append(Table(e, above, fields))
    for name in sorted(heads.keys() - found.keys()):
        if heads[name].strip():
            raise ValueError(f"{name}: every entry belongs elsewhere; move the comment at its head first")
    out = {}
    for name, tables in found.items():
        out[name] = heads.get(name, "") + "\n".join(t.toml() for t in tables)
        lines = "".join(t.line() for t in tables)
        if lines:
            out[name.removesuffix(".toml") + ".jsonl"] = lines
    return out


def changes(texts: Mapping[str, str]) -> dict[Path, str | None]:
    """The files that are to change: what they should say, None where they should go."""
    folders = listed(PLACE)
    there = {p for q in sources(folders) for p in (q, q.with_suffix(".jsonl")) if p.is_file()}
    due: dict[Path, str | None] = {PLACE / name: text for name, text in texts.items()}
    due |= dict.fromkeys(there - due.keys())
    return {p: t for p, t in due.items() if (p.read_text("utf-8") if p in there else None) != t}


def main(args: list[str]) -> int:
    try:
        found = changes(written())
    except (OpconformError, ValueError) as e:
        print(e, file=sys.stderr)
        return 2
    for path, text in sorted(found.items()):
        print(f"{path.relative_to(PLACE)}: {'changed' if text is not None else 'removed'}")
        if "--check" in args:
            continue
        if text is None:
            path.unlink()
        else:
            path.write_text(text, "utf-8")
    return 1 if found and "--check" in args else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
