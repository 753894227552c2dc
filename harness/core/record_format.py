"""The format of record files, and the reader of older formats.

Format 2 (November 2026) renamed some verdicts, fields and backends of format 1, and changed nothing else.
``Upgrade`` takes the records of one file in order, and gives each in the current format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.errors import FormatError

FORMAT = 2  # written into each ``run`` record
READ = (1, 2)

_VERDICTS = {"unsteady": "flaky", "mistrusted": "uninformative"}
_BACKENDS = {"onnxruntime-crossed": "onnxruntime-cross-dialect", "litert-crossed": "litert-cross-dialect"}
_FIELDS = {"company": "neighbours", "before": "prior_models"}  # of a ``case`` record
_COVER = ("dtype", "choices", "rules", "valid", "counted", "sets")  # what is read of a ``coverage`` record
_COVERAGE = -(1 << 31)  # first case, as it were, of the batch that stands for one
_INFO = {"asks": "target_dialect"}  # of what a backend says of itself


def unknown_format(got: Any) -> str:
    """What to tell of a format that is not read."""
    newer = isinstance(got, int) and got > FORMAT
    way = "read it with that version" if newer else "run again to get current records"
    return f"record format {got!r} is {'newer' if newer else 'older'} than {FORMAT}, which this version reads; {way}"


class Upgrade:
    """Records of one file, in order, each as the current format has it.

    The ``run`` records of a file say which format follows them.  Raises FormatError for a format that is not read.
    """

    def __init__(self) -> None:
        self.format: Any = FORMAT

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        if record.get("t") == "run":
            self.format = record.get("format")
            if self.format not in READ or isinstance(self.format, bool):
                raise FormatError(unknown_format(self.format))
        return record if self.format == FORMAT else from_1(record)


def from_1(record: dict[str, Any]) -> dict[str, Any]:
    """A record of format 1 in the words of format 2; what has no such form is left as it is, for the reader to
    refuse."""
    out = dict(record)
    kind = out.get("t")
    if kind == "run":
        out["format"] = FORMAT
        if isinstance(out.get("backends"), dict):
            out["backends"] = {k: _info(v) for k, v in _keys(out["backends"]).items()}
        if "missing" in out:
            out["missing"] = _keys(out["missing"])
        if isinstance(out.get("asked"), list):
            out["asked"] = [_name(n, _BACKENDS) for n in out["asked"]]
    elif kind == "batch" and isinstance(out.get("tally"), list):
        out["tally"] = [_row(r) for r in out["tally"]]
    elif kind == "case":
        out = {_FIELDS.get(k, k): v for k, v in out.items()}
        out["verdict"] = _name(out.get("verdict"), _VERDICTS)
        out["backend"] = _name(out.get("backend"), _BACKENDS)
        if isinstance(out.get("votes"), dict):
            out["votes"] = {k: _name(v, _VERDICTS) for k, v in _keys(out["votes"]).items()}
        if isinstance(out.get("replay"), str):
            for old, new in _BACKENDS.items():
                out["replay"] = out["replay"].replace(f"--backend {old}", f"--backend {new}")
    elif kind == "coverage":  # a record of its own in the oldest files, part of a batch since
        where: dict[str, Any] = {"key": out.get("key"), "opset": None, "first": _COVERAGE, "count": 0, "tally": []}
        out = {"t": "batch", **where, "cover": {k: v for k, v in out.items() if k in _COVER}}
    elif kind == "end" and "beside" in out:
        out["beside"] = _keys(out["beside"])
    return out


def _name(value: Any, table: Mapping[str, str]) -> Any:
    return table.get(value, value) if isinstance(value, str) else value


def _keys(value: Any) -> Any:
    return {_BACKENDS.get(k, k): v for k, v in value.items()} if isinstance(value, dict) else value


def _info(backend: Any) -> Any:
    if not isinstance(backend, dict) or not isinstance(backend.get("info"), dict):
        return backend
    return {**backend, "info": {_INFO.get(k, k): v for k, v in backend["info"].items()}}


def _row(row: Any) -> Any:
    if not isinstance(row, list) or len(row) != 4:
        return row
    return [_name(row[0], _BACKENDS), row[1], _name(row[2], _VERDICTS), row[3]]
