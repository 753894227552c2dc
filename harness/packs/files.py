"""A pack on disk: a folder, or a compressed archive of one, with a manifest that holds the hash of every file."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.core.errors import FormatError, UsageError

FORMAT = "opconform-pack-1"
MANIFEST = "manifest.json"
SUM = "manifest.sha256"  # as sha256sum writes it
ARCHIVE = ".tar.xz"


def sha256(data: bytes) -> str:
    """Hex digits."""
    return hashlib.sha256(data).hexdigest()


class Folder:
    """Writes files below a folder, which must be new or empty."""

    def __init__(self, path: Path) -> None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"--out {path}: expected a new or empty folder, or a file *{ARCHIVE}")
        self.path = path

    def put(self, name: str, data: bytes) -> None:
        """Write one file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def close(self, whole: bool) -> None:
        """whole: is all that belongs to it written?"""


class Archive:
    """Writes files into a compressed archive, the same bytes for the same files."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise UsageError(f"--out {path}: expected a new file")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.root = path, path.name.removesuffix(ARCHIVE)
        self._tar = tarfile.open(path, "w:xz", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by ``close``

    def put(self, name: str, data: bytes) -> None:
        """Write one file."""
        info = tarfile.TarInfo(f"{self.root}/{name}")
        info.size = len(data)
        self._tar.addfile(info, io.BytesIO(data))

    def close(self, whole: bool) -> None:
        """A part of an archive is removed."""
        self._tar.close()
        if not whole:
            self.path.unlink()


def sink(path: Path) -> Folder | Archive:
    """What writes a pack to ``path``.  Raises UsageError where something is in the way."""
    return Archive(path) if path.name.endswith(ARCHIVE) else Folder(path)


@dataclass
class Entry:
    """An instance of a pack, as the manifest tells it.  files: path below the pack -> sha256.  runs: how often the
    model is run.  outputs: names in the model, "" of one that is skipped.  inputs, expected: digests."""

    id: str
    key: str
    opset: Any
    index: int
    rule: str | None
    model: str
    outputs: list[str]
    runs: int
    instance: str
    inputs: str
    expected: str
    files: dict[str, str]
    more: dict[str, Any]


@dataclass
class Pack:
    """A pack that was read: its manifest, and where its files lie.  sum: the hash of the manifest."""

    path: Path
    manifest: dict[str, Any]
    entries: list[Entry]
    sum: str

    def json(self, name: str) -> Any:
        """The content of a JSON file.  Raises FormatError."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (OSError, ValueError) as e:
            raise FormatError(f"{self.path / name}: not JSON: {e}") from None


@contextmanager
def opened(path: Path) -> Iterator[Pack]:
    """A pack with every file checked against its hash.  Raises FormatError that names the first file that is wrong."""
    if path.is_dir():
        yield _read(path)
        return
    if not path.exists():
        raise UsageError(f"pack: cannot read {path}: no such file or folder")
    with tempfile.TemporaryDirectory(prefix="opconform-pack-") as tmp:
        try:
            with tarfile.open(path, "r:xz") as tar:
                _extract(tar, Path(tmp))
        except (tarfile.TarError, OSError, EOFError) as e:
            raise FormatError(f"{path}: not a pack: expected a folder or *{ARCHIVE}: {e}") from None
        except Exception as e:  # lzma has errors of its own
            raise FormatError(f"{path}: not a pack: {type(e).__name__}: {e}") from None
        inside = [p for p in Path(tmp).iterdir() if p.is_dir()]
        if len(inside) != 1:
            raise FormatError(f"{path}: not a pack: expected one folder in it, got {len(inside)}")
        yield _read(inside[0])


def _extract(tar: tarfile.TarFile, to: Path) -> None:
    """Plain files alone, below the folder."""
    for info in tar:
        name = PurePosixPath(info.name)
        if not info.isreg() or name.is_absolute() or ".." in name.parts:
            raise FormatError(f"{info.name}: expected plain files below one folder")
        data = tar.extractfile(info)
        assert data is not None
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.read())


def _read(path: Path) -> Pack:
    try:
        data = (path / MANIFEST).read_bytes()
    except OSError as e:
        raise FormatError(f"{path}: not a pack: {MANIFEST}: {e.strerror}") from None
    try:
        stated = (path / SUM).read_text().split()[0]
    except (OSError, IndexError, ValueError):
        raise FormatError(f"{path}: damaged: {SUM} cannot be read") from None
    if sha256(data) != stated:
        raise FormatError(f"{path}: damaged: {MANIFEST} has not the hash that {SUM} states")
    try:
        manifest = json.loads(data)
        if manifest["format"] != FORMAT:
            raise FormatError(f"{path}: expected format {FORMAT}, got {manifest['format']!r}")
        entries = [Entry(**e) for e in manifest["instances"]]
    except (ValueError, KeyError, TypeError) as e:
        raise FormatError(f"{path}: {MANIFEST}: {type(e).__name__}: {e}") from None
    for entry in entries:
        for name, sum in entry.files.items():
            _check(path, name, sum)
    for name, sum in manifest["files"].items():
        _check(path, name, sum)
    return Pack(path, manifest, entries, stated)


def _check(path: Path, name: str, sum: str) -> None:
    if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
        raise FormatError(f"{path}: {MANIFEST}: {name} is not below the pack")
    try:
        found = sha256((path / name).read_bytes())
    except OSError as e:
        raise FormatError(f"{path}: damaged: {name}: {e.strerror}") from None
    if found != sum:
        raise FormatError(f"{path}: damaged: {name} has not the hash that {MANIFEST} states")
