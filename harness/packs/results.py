"""Outputs that were computed elsewhere: reads a results folder as outcomes.

``results.json`` names the backend, its claims, and the instances without outputs.  Tensors are in ``*.npz`` and
``*.safetensors`` under ``ID/RUN/OUTPUT``, or in ``ID/test_data_set_RUN/output_K.pb``.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.backends.exporting import onnx_files
from harness.core.dtypes import BY_NAME
from harness.core.errors import FormatError, OpconformError, UsageError
from harness.core.outcome import Outcome, Status
from harness.core.quiet import quiet
from harness.declare import Expected
from harness.packs import tensors
from harness.packs.files import Entry, Pack
from harness.workers.info import ATTRIBUTES, BackendInfo, declared

FORMAT = "opconform-results-1"
INDEX = "results.json"
STATUSES = {s.value: s for s in (Status.VALUE, Status.REJECTED, Status.UNSUPPORTED, Status.CRASHED, Status.TIMED_OUT)}
STATED = ("opsets", "dtypes", "validates", "acc", "flushes", "family")  # what ``backend`` may say beside its name
ELSEWHERE = "elsewhere"  # the phase of an outcome


class Results:
    """A results folder.  info: what its backend declares.  Raises UsageError and FormatError, one line each."""

    def __init__(self, path: Path, pack: Pack, partial: bool = False) -> None:
        self.path, self.pack = path, pack
        if not path.is_dir():
            raise UsageError(f"results: cannot read {path}: expected a folder with {INDEX}")
        self.index = _index(path / INDEX, pack)
        self.info = _info(self.index["backend"], str(pack.manifest["dialect"]), path / INDEX)
        self.statuses: dict[str, tuple[Status, str]] = {
            id: _status(s, f"{path / INDEX}: statuses: {id}") for id, s in self.index.get("statuses", {}).items()
        }
        self.found = _tensors(path)
        self._known()
        self.entries = [e for e in pack.entries if e.id in self.statuses or e.id in self.found]
        missing = len(pack.entries) - len(self.entries)
        if missing and not partial:
            first = next(e.id for e in pack.entries if e.id not in self.statuses and e.id not in self.found)
            raise UsageError(
                f"{path}: neither outputs nor a status of {missing} of {len(pack.entries)} instances, such as {first}; "
                "--partial judges the others"
            )
        if not self.entries:
            raise UsageError(f"{path}: no outputs and no statuses")

    def _known(self) -> None:
        """Raises FormatError for an instance that the pack does not hold."""
        strange = sorted((set(self.statuses) | set(self.found)) - {e.id for e in self.pack.entries})
        if strange:
            raise FormatError(f"{self.path}: {strange[0]} is no instance of the pack ({len(strange)} such)")

    def outcomes(self, entry: Entry, expected: list[list[Expected]] | None, skipped: Iterable[int]) -> list[Outcome]:
        """What the backend did with an instance, one outcome a run.  Raises FormatError where outputs of a run are
        missing and no status says why."""
        runs = self.found.get(entry.id, {})
        strange = [r for r in runs if not 0 <= r < entry.runs]
        if strange:
            raise FormatError(f"{self.path}: {entry.id}: expected runs 0 to {entry.runs - 1}, got run {strange[0]}")
        out = []
        for r in range(entry.runs):
            if r not in runs:
                if entry.id not in self.statuses:
                    raise FormatError(f"{self.path}: {entry.id}: no outputs of run {r} of {entry.runs}, and no status")
                status, message = self.statuses[entry.id]
                if status is Status.VALUE:  # all of its outputs are empty sequences or optionals
                    runs = {**runs, r: {}}
            if r not in runs:
                out += [Outcome(status, None, ELSEWHERE, message)] * (entry.runs - r)
                break
            row = None if expected is None else expected[min(r, len(expected) - 1)]
            out.append(Outcome(Status.VALUE, self._row(entry, runs[r], row, set(skipped)), ELSEWHERE))
        return out

    def _row(self, entry: Entry, given: Mapping[str, Any], row: list[Expected] | None, skipped: set[int]) -> list[Any]:
        """The outputs of a run in their order, named by name or by number; None where one did not come."""
        names = entry.outputs
        strange = {k.split("/")[0] for k in given} - set(names) - {str(i) for i in range(len(names))}
        if strange:
            known = " ".join(n for n in names if n)
            raise FormatError(f"{self.path}: {entry.id}: no output {min(strange)}; expected {known}")
        values: list[Any] = []
        for i, name in enumerate(names):
            if not name or i in skipped:
                values.append(None)
                continue
            want = None if row is None or i >= len(row) else row[i]
            own = {k[len(p) + 1 :]: v for p in (name, str(i)) for k, v in given.items() if k.startswith(p + "/")}
            whole = given.get(name, given.get(str(i)))
            values.append(_converted(_value(whole, own, want), entry.more.get("given", {}).get(name), want))
        return values


def _value(whole: Any, parts: dict[str, Any], want: Expected | None) -> Any:
    """A tensor, or the container that the parts make."""
    value = None if want is None else want.value
    if isinstance(value, (list, tuple)) and whole is None:
        order = sorted(parts, key=lambda k: (len(k), k))
        return [_typed(parts[k], value[j] if j < len(value) else None) for j, k in enumerate(order)]
    if isinstance(value, dict) and parts:
        return {k: v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for k, v in parts.items()}
    return _typed(whole, value)


def _converted(a: Any, given: dict[str, Any] | None, want: Expected | None) -> Any:
    """An output that the model gives in another form than the operator's, in the form of the operator."""
    if given is None or want is None or not isinstance(a, np.ndarray) or not isinstance(want.value, np.ndarray):
        return a
    if a.dtype == BY_NAME[given["dtype"]].np:
        with quiet:
            a = a.astype(want.value.dtype)
    return a.reshape(want.value.shape) if list(a.shape) == given.get("shape") else a


def _typed(a: Any, want: Any) -> Any:
    """Raw elements of a type that the file has no name for, in the type that is expected."""
    if not isinstance(a, np.ndarray) or not isinstance(want, np.ndarray) or a.dtype == want.dtype:
        return a
    d = want.dtype
    if d in tensors.STORED and a.dtype.kind != "V":
        return a
    if a.dtype.kind == "V" and a.dtype.itemsize == d.itemsize:
        return a.view(d)
    if a.dtype == np.uint8 and a.ndim == want.ndim + 1 and a.shape[-1] == d.itemsize:
        return np.array(a, order="C").reshape(-1).view(d).reshape(a.shape[:-1])
    return a


def _index(path: Path, pack: Pack) -> dict[str, Any]:
    try:
        index = json.loads(path.read_bytes())
    except OSError as e:
        raise UsageError(f"results: cannot read {path}: {e.strerror}") from None
    except ValueError as e:
        raise FormatError(f"{path}: not JSON: {e}") from None
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        got = index.get("format") if isinstance(index, dict) else type(index).__name__
        raise FormatError(f"{path}: expected format {FORMAT}, got {got!r}")
    strange = set(index) - {"format", "pack", "backend", "statuses"}
    if strange:
        raise FormatError(f"{path}: no field {min(strange)}; expected format, pack, backend, statuses")
    if index.get("pack", pack.sum) != pack.sum:
        raise FormatError(f"{path}: these are results of the pack {index['pack']}, this one is {pack.sum}")
    if not isinstance(index.get("backend"), dict) or not isinstance(index.get("statuses", {}), dict):
        raise FormatError(f"{path}: expected objects in backend and statuses")
    return index


def _info(told: dict[str, Any], dialect: str, path: Path) -> BackendInfo:
    """What the backend declares."""
    from harness.declare import registry

    name, version = told.get("name"), told.get("version", "")
    if not isinstance(name, str) or not name or not isinstance(version, str):
        raise FormatError(f"{path}: backend: expected a name and a version")
    strange = set(told) - {"name", "version", *STATED}
    if strange:
        raise FormatError(f"{path}: backend: no field {min(strange)}; expected name, version, {', '.join(STATED)}")
    assert set(STATED) <= set(ATTRIBUTES)
    stated = {k: v for k, v in told.items() if k != "version"} | {"formats": [registry.dialect(dialect).format]}
    try:
        return declared(name, {"attributes": stated, "version": version})
    except OpconformError as e:
        raise FormatError(f"{path}: backend: {e}") from None


def _status(told: Any, where: str) -> tuple[Status, str]:
    """ "crashed", or {"status": "crashed", "message": "..."}."""
    if isinstance(told, str):
        told = {"status": told}
    status = told.get("status") if isinstance(told, dict) else None
    if status not in STATUSES:
        raise FormatError(f"{where}: expected one of {' '.join(STATUSES)}, got {status!r}")
    return STATUSES[status], str(told.get("message", ""))


def _tensors(path: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """Instance -> run -> output -> tensor, of all files of the folder."""
    out: dict[str, dict[int, dict[str, Any]]] = {}
    for file in sorted(path.rglob("*")):
        if file.suffix == ".npz":
            found: Iterable[tuple[str, Any]] = _npz(file).items()
        elif file.suffix == ".safetensors":
            found = tensors.read(_bytes(file), str(file)).items()
        elif file.suffix == ".pb":
            found = [_pb(path, file)]
        else:
            continue
        for key, value in found:
            id, _, rest = key.partition("/")
            run, _, output = rest.partition("/")
            if not run.isdecimal() or not output:
                raise FormatError(f"{file}: {key!r}: expected ID/RUN/OUTPUT, such as Softmax-13-000/0/0")
            row = out.setdefault(id, {}).setdefault(int(run), {})
            if output in row:
                raise FormatError(f"{file}: {key} is given twice")
            row[output] = value
    return out


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as e:
        raise FormatError(f"{file}: cannot read: {e.strerror}") from None


def _npz(file: Path) -> dict[str, Any]:
    try:
        with np.load(file, allow_pickle=False) as data:
            return {k: data[k] for k in data.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError) as e:
        raise FormatError(f"{file}: not an .npz of plain arrays: {' '.join(str(e).split())[:200]}") from None


def _pb(root: Path, file: Path) -> tuple[str, Any]:
    """``ID/test_data_set_RUN/output_K.pb``."""
    parts = file.relative_to(root).parts
    run, k = parts[-2].removeprefix("test_data_set_") if len(parts) > 2 else "", file.stem.removeprefix("output_")
    if not run.isdecimal() or not k.isdecimal():
        raise FormatError(f"{file}: expected ID/test_data_set_RUN/output_K.pb")
    try:
        return f"{parts[-3]}/{run}/{k}", onnx_files.decoded(_bytes(file))
    except FormatError:
        raise
    except Exception as e:
        raise FormatError(f"{file}: not a TensorProto: {' '.join(str(e).split())[:200]}") from None
