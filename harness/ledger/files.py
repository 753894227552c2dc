"""One file of a list, and the minimal instances beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError
from harness.core.instance import Instance
from harness.ledger.entry import LedgerEntry
from harness.ledger.tables import KEYS, Shown, entry, parsed

FOLDERS = "folders.toml"  # the list of folders is no file with tables
SEVERAL = "several"  # the file of entries whose patterns match ops of several families


def files(folder: Path) -> list[Path]:
    """The files with tables in a folder, in the order in which their entries are tried: those of several families of
    ops last.  Raises FormatError where instances stand beside no such file."""
    found = sorted((p for p in folder.glob("*.toml") if p.name != FOLDERS), key=lambda p: (p.stem == SEVERAL, p.name))
    lonely = sorted({p.stem for p in folder.glob("*.jsonl")} - {p.stem for p in found})
    if lonely:
        raise FormatError(f"{lonely[0]}.jsonl: there is no {lonely[0]}.toml beside it")
    return found


def read(path: Path, place: Path | None = None) -> list[LedgerEntry]:
    """The entries of one file.  place: the folder ``known`` that it belongs to; that of the file where it stands
    alone.  Raises FormatError naming file, line, entry and field."""
    place = place or path.parent
    source = path.relative_to(place).as_posix()
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as e:
        raise FormatError(f"{source}: {e}") from None
    data = parsed(path, text, source)
    shown = beside(path.with_suffix(".jsonl"), place)
    out = []
    for kind, tables in data.items():
        if kind not in KEYS or not isinstance(tables, list):
            raise FormatError(f"{source}: expected [[known]] or [[ambiguous]] tables, got {kind!r}")
        for i, t in enumerate(tables):
            try:
                out.append(entry(kind, t, source, place, shown.pop(str(t.get("id")), None)))
            except FormatError as e:
                name = f"{kind} {t.get('id') or f'number {i + 1}'}"
                raise FormatError(f"{source}:{_line(text, kind, i)}: {name}: {e}") from None
    for id, lonely in shown.items():
        instances = path.with_suffix(".jsonl").relative_to(place).as_posix()
        raise FormatError(f"{instances}:{lonely.line}: {id!r} is no entry of {path.name}")
    return out


def _line(text: str, kind: str, i: int) -> int:
    """The line of the header of a table: the i-th of its kind."""
    heads = [n for n, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*\[\[\s*{kind}\s*\]\]", line)]
    return heads[i] if i < len(heads) else 1


def beside(path: Path, place: Path, ops: Container[str] | None = None) -> dict[str, Shown]:
    """The minimal instances beside a file, by the entry's id; none where there is no such file.  ops: only those of
    these, as dialect/op; the other lines are not checked.  Raises FormatError naming file and line."""
    found: dict[str, Shown] = {}
    if not path.is_file():
        return found
    for n, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        where = f"{path.relative_to(place).as_posix()}:{n}"
        try:
            o = json.loads(line)
            if ops is not None and _op(o) not in ops:
                continue
            id, shown = _shown(n, o)
        except json.JSONDecodeError as e:
            raise FormatError(f"{where}: expected JSON: {e}") from None
        except FormatError as e:
            raise FormatError(f"{where}: {e}") from None
        if id in found:
            raise FormatError(f"{where}: id {id!r} stands in line {found[id].line} already")
        found[id] = shown
    return found


def _op(o: Any) -> str:
    inst = o.get("instance") if isinstance(o, dict) else None
    return f"{inst.get('dialect')}/{inst.get('op')}" if isinstance(inst, dict) else ""


def _shown(n: int, o: Any) -> tuple[str, Shown]:
    known = isinstance(o, dict) and {"id", "instance"} <= set(o) <= {"id", "instance", "neighbours"}
    if not known or not isinstance(o["id"], str) or not isinstance(o.get("neighbours", []), list):
        told = " ".join(sorted(o)) if isinstance(o, dict) else type(o).__name__
        raise FormatError(f"expected an object with id, instance and perhaps a list of neighbours, got {told}")
    others = tuple(map(Instance.from_json, o.get("neighbours", ())))
    return o["id"], Shown(n, Instance.from_json(o["instance"]), others)
