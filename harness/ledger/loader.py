"""The files of known differences and of the ambiguity ledger, found and read.

In a folder ``known`` beside the dialects stand

* files ``*.toml``, of which all are read, such as the ambiguities of each dialect,
* folders that ``folders.toml`` lists (``harness.ledger.folders``), with a file for each family of ops,
* beside each file its minimal instances, ``*.jsonl``,
* the folder ``defects`` with the functions that ``defect_model`` names.

``harness.ledger.tables`` tells the fields of an entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError
from harness.core.instance import Instance
from harness.ledger.entry import LedgerEntry
from harness.ledger.folders import FILE, listed
from harness.ledger.ledger import Ledger
from harness.ledger.tables import KEYS, Shown, entry, parsed


def folders() -> list[Path]:
    """The ``known`` folders beside the dialects (entry points ``opconform.dialects``)."""
    roots = {e.value.split(":")[0].split(".")[0] for e in metadata.entry_points(group="opconform.dialects")}
    out = []
    for root in sorted(roots):
        spec = find_spec(root)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / "known").is_dir():
                out.append(Path(place) / "known")
    return list(dict.fromkeys(out))


def load_ledger(places: Iterable[Path] | None = None) -> Ledger:
    """Read all files.  Raises FormatError naming file, line, entry and field."""
    entries: list[LedgerEntry] = []
    for place in places if places is not None else folders():
        for path in files(place):
            entries += read(path, place)
        for folder in listed(place):
            for path in files(folder.path):
                found = read(path, place)
                for e in found:
                    folder.check(e)
                entries += found
    seen: dict[str, str] = {}
    for e in entries:
        if e.id in seen:
            raise FormatError(f"{e.source}: id {e.id!r} is already taken in {seen[e.id]}")
        seen[e.id] = e.source
    return Ledger(entries)


def files(folder: Path) -> list[Path]:
    """The files with tables in a folder, in the order in which their entries are tried: those of several families of
    ops last.  Raises FormatError where instances stand beside no such file."""
    found = sorted((p for p in folder.glob("*.toml") if p.name != FILE), key=lambda p: (p.stem == SEVERAL, p.name))
    lonely = sorted({p.stem for p in folder.glob("*.jsonl")} - {p.stem for p in found})
    if lonely:
        raise FormatError(f"{lonely[0]}.jsonl: there is no {lonely[0]}.toml beside it")
    return found


SEVERAL = "several"  # the file of entries whose patterns match ops of several families


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


def beside(path: Path, place: Path) -> dict[str, Shown]:
    """The minimal instances beside a file, by the entry's id; none where there is no such file.  Raises FormatError
    naming file and line."""
    found: dict[str, Shown] = {}
    if not path.is_file():
        return found
    for n, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        where = f"{path.relative_to(place).as_posix()}:{n}"
        try:
            id, shown = _shown(n, json.loads(line))
        except json.JSONDecodeError as e:
            raise FormatError(f"{where}: expected JSON: {e}") from None
        except FormatError as e:
            raise FormatError(f"{where}: {e}") from None
        if id in found:
            raise FormatError(f"{where}: id {id!r} stands in line {found[id].line} already")
        found[id] = shown
    return found


def _shown(n: int, o: Any) -> tuple[str, Shown]:
    known = isinstance(o, dict) and {"id", "instance"} <= set(o) <= {"id", "instance", "neighbours"}
    if not known or not isinstance(o["id"], str) or not isinstance(o.get("neighbours", []), list):
        told = " ".join(sorted(o)) if isinstance(o, dict) else type(o).__name__
        raise FormatError(f"expected an object with id, instance and perhaps a list of neighbours, got {told}")
    others = tuple(map(Instance.from_json, o.get("neighbours", ())))
    return o["id"], Shown(n, Instance.from_json(o["instance"]), others)
