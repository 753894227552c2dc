"""The files of known differences and of the ambiguity ledger, found and read.

A folder ``known`` next to the dialects holds

* files ``*.toml``, which are all read, such as the ambiguities of each dialect,
* folders that ``folders.toml`` lists (``harness.ledger.folders``), with a file for each family of ops,
* next to each file its minimal instances, ``*.jsonl``,
* the folder ``defects`` with the functions that ``defect_model`` names.

``docs/known-differences.md`` lists the fields of an entry.

A user keeps lists of his own in files of the same form.  There are three ways to name them:

* ``--known FILE``,
* ``known = ["FILE"]`` in the table ``[tool.opconform]`` of the nearest ``pyproject.toml``, with paths from its folder,
* a package in the entry point group ``opconform.known`` that holds files ``*.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError, UsageError
from harness.ledger.entry import LedgerEntry
from harness.ledger.files import files, read
from harness.ledger.folders import listed
from harness.ledger.ledger import Ledger
from harness.ledger.tables import parsed, texts
from harness.workers.info import BackendInfo

GROUP = "opconform.known"
PROJECT = "pyproject.toml"


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


def load_ledger(
    places: Iterable[Path] | None = None,
    backends: Iterable[BackendInfo] | None = None,
    own: Iterable[Path] = (),
) -> Ledger:
    """The list in ``places``, those beside the dialects by default.  backends: of the folders in ``folders.toml``,
    only those that speak of these are read, and others once the ledger is asked about their backends.  own: files of a
    user's lists, tried after ours.  Raises FormatError naming file, line, entry and field."""
    ledger = Ledger()
    for place in places if places is not None else folders():
        for path in files(place):
            ledger.add(read(path, place))
        ledger.unread += listed(place)
    if backends is None:
        ledger.read_all()
    for info in backends or ():
        ledger.read_for(info)
    ledger.add(own_entries(own))
    return ledger


def own_files(given: Iterable[str | Path] = (), folder: Path | None = None) -> list[Path]:
    """The files of a user's lists, each once: those given, those of his project, those of installed packages.

    folder: where the search for ``pyproject.toml`` begins; the current one by default.  Raises UsageError for a file
    that is not there, FormatError for a project file whose field is none of that form."""
    found = [_there(Path(p), "--known") for p in given]
    found += _of_project((folder or Path.cwd()).resolve())
    for e in metadata.entry_points(group=GROUP):
        found += _of_package(e.name, e.value)
    return list(dict.fromkeys(p.resolve() for p in found))


def own_entries(paths: Iterable[Path]) -> list[LedgerEntry]:
    """The entries of such files.  Raises FormatError naming file, line, entry and field."""
    out = []
    for path in paths:
        for e in read(path):
            if e.instance is None and e.of_outcome:
                raise FormatError(
                    f"{e.source}: {e.kind_of} {e.id}: a condition on the answer needs the instance that shows it, "
                    "since a run could not tell otherwise that the entry is stale"
                )
            out.append(replace(e, own=True))
    return out


def _there(path: Path, where: str) -> Path:
    if not path.is_file():
        raise UsageError(f"{where}: expected a TOML file with [[known]] tables, got {path}, which is no file")
    return path


def _of_project(folder: Path) -> list[Path]:
    """The files that the nearest project file names."""
    path = next((p for f in (folder, *folder.parents) if (p := f / PROJECT).is_file()), None)
    if path is None:
        return []
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise FormatError(f"{path}: {e}") from None
    if "opconform" not in text:
        return []
    told: Any = parsed(path, text, str(path)).get("tool", {}).get("opconform", {})
    if not isinstance(told, dict) or set(told) - {"known"}:
        raise FormatError(f"{path}: tool.opconform: expected a table with the field known, got {told!r:.100}")
    try:
        named = texts(told, "known")
    except FormatError as e:
        raise FormatError(f"{path}: tool.opconform: {e}") from None
    return [_there(path.parent / n, f"{path}: tool.opconform: known") for n in named]


def _of_package(name: str, value: str) -> list[Path]:
    """The files of a package, which is not imported."""
    try:
        spec = find_spec(value)
    except (ImportError, ValueError):
        spec = None
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    found = [p for f in folders for p in files(f)]
    if not found:
        raise UsageError(f"entry point {GROUP}: {name}: expected a package with files *.toml, got {value}")
    return found
