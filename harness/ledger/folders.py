"""The folders of known differences, and of which backends and releases each of them speaks.

``known/folders.toml`` names them in the order in which their entries are tried::

    [onnxruntime-old]
    backend = "onnxruntime*"
    versions = "<1.32"

* ``backend``: a name or pattern, or a list; every entry in the folder speaks of such backends alone
* ``versions``: releases before one, or a list of such ranges; every entry in the folder ends before it.  Without it the
  folder holds for every release
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.specifiers import InvalidSpecifier

from harness.core.errors import FormatError
from harness.ledger.entry import LedgerEntry
from harness.ledger.releases import Range, below, releases, within
from harness.ledger.tables import parsed, texts
from harness.workers.info import BackendInfo

FILE = "folders.toml"
_FIELDS = {"backend", "versions"}


@dataclass(frozen=True)
class Folder:
    """One folder: the patterns of its backends, and the ranges of releases before whose ends its entries end."""

    path: Path
    backends: tuple[str, ...]
    versions: tuple[Range, ...] = ()

    def concerns(self, info: BackendInfo) -> bool:
        """Can an entry of the folder speak of this backend?"""
        return any(fnmatchcase(info.name, b) for b in self.backends) and within(info.version, self.versions)

    def holds(self, backends: tuple[str, ...], versions: tuple[Range, ...]) -> bool:
        """Does an entry of these backends and releases belong into the folder?  A pattern matches itself."""
        return all(any(fnmatchcase(b, mine) for mine in self.backends) for b in backends) and (
            not self.versions
            or (bool(versions) and all(any(below(v, mine) for mine in self.versions) for v in versions))
        )

    def check(self, entry: LedgerEntry) -> None:
        """Raises FormatError for an entry that would not be loaded where it speaks of a backend."""
        if not self.holds(entry.backends, entry.versions):
            raise FormatError(
                f"{entry.source}: {entry.kind_of} {entry.id}: backend {' '.join(entry.backends)} or its versions are "
                f"not those of the folder {self.path.name} in {FILE}"
            )


def listed(place: Path) -> list[Folder]:
    """The folders of a place, in their order.  Raises FormatError where a folder with tables is not listed."""
    path = place / FILE
    tables = parsed(path, path.read_text("utf-8"), FILE) if path.is_file() else {}
    found = []
    for name, t in tables.items():
        where = f"{FILE}: {name}"
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
        raise FormatError(f"{missing[0]}: the folder holds tables, but {FILE} does not list it")
    return found
