"""Reading record files: one JSON object a line, appended by the engine while it runs.

A run that was killed may leave half a line at the end; that is expected, so it is skipped and said.  Anything else that
does not parse means the file is not what the caller thinks it is, and is an error that names the line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import FormatError
from harness.core.forms import wrong_record
from harness.core.record_format import Upgrade

SET_ASIDE = "previous"  # folder in that of a run, with the run before it
PathLike = str | os.PathLike[str]


def expand(paths: PathLike | list[PathLike] | tuple[PathLike, ...]) -> list[Path]:
    """Record files behind ``paths``: files as they are, folders by their ``*.jsonl`` and ``*.jsonl.gz``,
    sorted; what a run set aside in them is another run's.

    Raises FormatError when something is not there or a folder holds no records.
    """
    out: list[Path] = []
    for p in [paths] if isinstance(paths, (str, os.PathLike)) else list(paths):
        path = Path(p)
        if path.is_dir():
            found = [
                p
                for p in sorted([*path.rglob("*.jsonl"), *path.rglob("*.jsonl.gz")])
                if SET_ASIDE not in p.relative_to(path).parts[:-1]
            ]
            if not found:
                raise FormatError(f"{path}: no record files (*.jsonl) in this folder")
            out += found
        elif path.is_char_device() or path.is_block_device():
            raise FormatError(f"{path}: expected a record file, got a device")
        elif path.exists():
            out.append(path)
        else:
            raise FormatError(f"{path}: no such record file")
    if not out:
        raise FormatError("no record file given")
    return list(dict.fromkeys(p.resolve() for p in out))


def held(paths: PathLike | list[PathLike] | tuple[PathLike, ...]) -> None:
    """Raises FormatError unless these are record files, as far as their beginning tells."""
    for path in expand(paths):
        next(read(path, []), None)


def _open(path: Path) -> io.BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def read(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The records of one file in order.  Memory use does not grow with the file.

    notes: gets a sentence when the last line is cut short.  Raises FormatError (naming file and line) for a line that
    is no record, a file that does not begin with a ``run`` record, and a format that this reader does not know.
    """
    number, upgrade = 0, Upgrade()
    try:
        with _open(path) as f:
            for number, line in enumerate(f, 1):
                whole = line.endswith(b"\n")
                if not line.strip():
                    continue
                try:
                    record = json.loads(line, parse_constant=str)  # NaN and Infinity as words
                except (ValueError, RecursionError) as e:
                    if whole or number == 1:
                        raise FormatError(f"{path}:{number}: not a record: {_short(e)}") from None
                    notes.append(
                        f"{path.name}: the last line ({number}) is cut short, {len(line)} bytes ignored; "
                        "the run that wrote it was stopped or its disk was full"
                    )
                    return
                yield _checked(record, path, number, upgrade)
    except (EOFError, gzip.BadGzipFile) as e:
        if number == 0:
            raise FormatError(f"{path}: not a readable gzip file: {e}") from None
        notes.append(f"{path.name}: the compressed file ends early after line {number}; what follows is lost")
    if number == 0:
        raise FormatError(f"{path}: empty, expected a record file beginning with a 'run' record")


def _short(e: Exception) -> str:
    return str(e).split("\n")[0][:120]


def _checked(record: Any, path: Path, number: int, upgrade: Upgrade) -> dict[str, Any]:
    where = f"{path}:{number}"
    if not isinstance(record, dict) or not isinstance(record.get("t"), str):
        raise FormatError(f"{where}: not a record: expected an object with a field 't'")
    kind = record["t"]
    if number == 1 and kind != "run":
        raise FormatError(f"{where}: expected the file to begin with a 'run' record, got {kind!r}")
    try:
        record = upgrade(record)
    except FormatError as e:
        raise FormatError(f"{where}: {e}") from None
    wrong = wrong_record(record)
    if wrong is not None:
        raise FormatError(f"{where}: {wrong}")
    return record
