"""The folders of known differences: the backends and releases of the entries in each.

``known/folders.toml`` names them in the order in which their entries are tried::

    [onnxruntime-old]
    backend = "onnxruntime*"
    versions = "<1.32"

* ``backend``: a name or pattern, or a list; every entry in the folder has such backends only
* ``versions``: releases before one, or a list of such ranges; every entry in the folder ends before it.  Without it the
  folder holds for every release
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.specifiers import InvalidSpecifier

from harness.core.errors import FormatError
from harness.core.instance import Instance
from harness.ledger.entry import LedgerEntry
from harness.ledger.files import FOLDERS, beside, files, read
from harness.ledger.releases import Range, below, releases, within
from harness.ledger.tables import parsed, texts
from harness.workers.info import BackendInfo

_FIELDS = {"backend", "versions"}


@dataclass(frozen=True)
class Folder:
    """One folder: the patterns of its backends, and the ranges of releases before whose ends its entries end."""

    path: Path
    backends: tuple[str, ...]
    versions: tuple[Range, ...] = ()

    def concerns(self, info: BackendInfo) -> bool:
        """Can an entry of the folder speak of this backend, or of the runtime that loads its models?"""
        names = (info.name, *info.known_as, info.front_end or info.name)
        return any(fnmatchcase(n, b) for n in names for b in self.backends) and within(info.version, self.versions)

    def holds(self, backends: tuple[str, ...], versions: tuple[Range, ...]) -> bool:
        """Does an entry of these backends and releases belong into the folder?  A pattern matches itself."""
        return all(any(fnmatchcase(b, mine) for mine in self.backends) for b in backends) and (
            not self.versions
            or (bool(versions) and all(any(below(v, mine) for mine in self.versions) for v in versions))
        )

    def read(self) -> list[LedgerEntry]:
        """Its entries, in the order in which they are tried.  Raises FormatError, also for an entry that would not be
        read in a run of its backends."""
        entries = [e for path in files(self.path) for e in read(path, self.path.parent)]
        for e in entries:
            if not self.holds(e.backends, e.versions):
                raise FormatError(
                    f"{e.source}: {e.kind_of} {e.id}: backend {' '.join(e.backends)} or its versions are not those of "
                    f"the folder {self.path.name} in {FOLDERS}"
                )
        return entries

    def instances(self, ops: Container[str] | None = None) -> Iterator[Instance]:
        """The minimal instances of its entries, read without them; ops: only those of these, as dialect/op.  Raises
        FormatError naming file and line."""
        for path in files(self.path):
            for shown in beside(path.with_suffix(".jsonl"), self.path.parent, ops).values():
                yield shown.instance


def listed(place: Path) -> list[Folder]:
    """The folders of a place, in their order.  Raises FormatError where a folder with tables is not listed."""
    path = place / FOLDERS
    tables = parsed(path, path.read_text("utf-8"), FOLDERS) if path.is_file() else {}
    found = []
    for name, t in tables.items():
        where = f"{FOLDERS}: {name}"
        if not isinstance(t, dict) or not set(t) <= _FIELDS or "backend" not in t:
            raise FormatError(f"{where}: expected a table with backend, and perhaps versions")
        if not (place / name).is_dir():
            raise FormatError(f"{where}: there is no such folder beside the file")
        try:
            found.append(Folder(place / name, texts(t, "backend"), tuple(map(releases, texts(t, "versions")))))
        except InvalidSpecifier as e:
            raise FormatError(f"{where}: versions: {e}") from None
        except FormatError as e:
            raise FormatError(f"{where}: {e}") from None
    missing = sorted({p.parent.name for p in place.glob("*/*.toml")} - set(tables))
    if missing:
        raise FormatError(f"{missing[0]}: the folder holds tables, but {FOLDERS} does not list it")
    return found
