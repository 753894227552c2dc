"""Records: append-only JSON lines, one writer, tolerant readers."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError, UsageError
from harness.core.forms import wrong_record
from harness.core.record_format import FORMAT, Upgrade

# Records are trees.  To look for cycles takes as long as to write them.
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str, check_circular=False)


class RecordWriter:
    """Appends records to a file; a line is written whole or not at all.  One writer at a time.  Raises UsageError when
    the disk is full, or another is writing there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if not _lock(self._fd):
            os.close(self._fd)
            raise UsageError(f"records: another run is writing {path}; --out takes another folder")
        repair(path)
        self._buffer: list[bytes] = []
        self._size = 0
        self._flushed = time.monotonic()

    def write(self, record: dict[str, Any]) -> None:
        line = _ENCODER.encode(record).encode() + b"\n"
        self._buffer.append(line)
        self._size += len(line)
        late = time.monotonic() - self._flushed > 1.0  # a killed run loses a second of work, not more
        if self._size > 1 << 16 or late or record["t"] != "batch":
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._size = 0
        self._flushed = time.monotonic()
        view = memoryview(data)
        try:
            while view:
                n = os.write(self._fd, view)
                view = view[n:]
        except OSError as e:
            raise UsageError(f"records: cannot write {self.path}: {e.strerror}; what was judged before is kept") from e

    def close(self) -> None:
        if self._fd >= 0:
            try:
                self.flush()
            finally:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lock(fd: int) -> bool:
    """Take the file for this writer, which gives it back when it ends in whatever way; False where another has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that has no locks
        pass
    return True


def in_use(path: Path) -> bool:
    """Is a writer at work on that file?"""
    fd = os.open(path, os.O_RDONLY)
    try:
        return not _lock(fd)
    finally:
        os.close(fd)


def repair(path: Path) -> None:
    """Cut a half-written last line off, as a crash or a full disk leaves it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with open(path, "rb+") as f:
        f.seek(0, os.SEEK_END)
        end = f.tell()
        at = end
        while at > 0:
            step = min(1 << 16, at)
            f.seek(at - step)
            block = f.read(step)
            cut = block.rfind(b"\n")
            if cut >= 0:
                if at - step + cut + 1 < end:
                    f.truncate(at - step + cut + 1)
                return
            at -= step
        f.truncate(0)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Records of a file.  A truncated last line is left out; anything else that does not parse raises FormatError, as
    does another format."""
    try:
        f = open(path, "rb")  # noqa: SIM115 - closed below; only opening may be a usage error
    except OSError as e:
        raise UsageError(f"records: cannot read {path}: {e.strerror}") from None
    upgrade = Upgrade()
    with f:
        for i, line in enumerate(f, 1):
            if not line.endswith(b"\n"):
                return
            try:
                o = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise FormatError(f"{path}:{i}: not a record: {e}") from None
            yield checked(o, f"{path}:{i}", upgrade)


def checked(record: Any, where: str, upgrade: Upgrade | None = None) -> dict[str, Any]:
    """The record itself, in the current format.  upgrade: of the file that the record is from; None where an older
    format is refused.  Raises FormatError where it has not the form that ``harness.core.forms`` states."""
    if isinstance(record, dict) and upgrade is not None:
        try:
            record = upgrade(record)
        except FormatError as e:
            raise FormatError(f"{where}: {e}") from None
    elif isinstance(record, dict) and record.get("t") == "run" and record.get("format") != FORMAT:
        raise FormatError(f"{where}: expected record format {FORMAT}, got {record.get('format')!r}")
    wrong = wrong_record(record)
    if wrong is not None:
        raise FormatError(f"{where}: {wrong}")
    out: dict[str, Any] = record
    return out


def has(path: Path, kind: str) -> bool:
    """Is there a record of that kind in the file already?"""
    mark = f'"t":"{kind}"'.encode()
    with open(path, "rb") as f:
        return any(mark in line for line in f)
