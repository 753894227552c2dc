"""Records -> two Parquet tables, for questions that no page answers.

``outcomes.parquet``: a row for each count of a batch.  ``cases.parquet``: a row for each outcome that did not agree;
nested parts (instance, diff, votes) are JSON text.  Written in pieces, so that memory does not grow with the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError, reading
from harness.core.escape import utf8
from reports.records import PathLike, expand, read

PIECE = 50_000  # rows held before they are written
OUTCOMES = (
    "started:str seed:int dialect:str op:str version:str key:str opset:str backend:str backend_version:str "
    "dtype:str verdict:str n:int first:int count:int"
)
CASES = (
    "started:str seed:int dialect:str op:str version:str key:str opset:str backend:str backend_version:str "
    "dtype:str verdict:str status:str phase:str message:str rule:str kind:str class:str formula:str "
    "known:str ambiguity:str blame:str notation:str replay:str folder:str id:str "
    "instance:json minimal:json diff:json votes:json"
)


def export(records: PathLike | list[PathLike], out: PathLike) -> tuple[Path, Path]:
    """Write both tables into ``out`` (made when missing) and return their paths; rows as they stand in the records,
    repeats of a batch included.  Raises FormatError, and UsageError when pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("export needs pyarrow: pip install 'opconform[scale]'") from None
    root = Path(out)
    root.mkdir(parents=True, exist_ok=True)
    paths = root / "outcomes.parquet", root / "cases.parquet"
    with (
        reading("the records"),
        _Table(pa, pq, paths[0], OUTCOMES) as outcomes,
        _Table(pa, pq, paths[1], CASES) as cases,
    ):
        for path in expand(records):
            run: dict[str, Any] = {}
            for r in read(path, []):
                if r["t"] == "run":
                    run = r
                elif r["t"] == "batch":
                    outcomes.add(_outcomes(r, run))
                elif r["t"] == "case":
                    cases.add(iter([{**_place(r, run, r["backend"]), **r}]))
    return paths


def _place(r: dict[str, Any], run: dict[str, Any], backend: str) -> dict[str, Any]:
    dialect, op, version = r["key"].split("/")
    release = run.get("backends", {}).get(backend, {}).get("version")
    return {
        "started": run.get("started"),
        "seed": run.get("seed"),
        "dialect": dialect,
        "op": op,
        "version": version,
        "key": r["key"],
        "opset": r["opset"],
        "backend": backend,
        "backend_version": release,
    }


def _outcomes(r: dict[str, Any], run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for backend, dtype, verdict, n in r["tally"]:
        yield {
            **_place(r, run, backend),
            "dtype": dtype,
            "verdict": verdict,
            "n": n,
            "first": r["first"],
            "count": r["count"],
        }


class _Table:
    """A Parquet file written in pieces; columns as ``name:kind``."""

    def __init__(self, pa: Any, pq: Any, path: Path, columns: str) -> None:
        self.kinds = dict(c.split(":") for c in columns.split())
        self.schema = pa.schema([(n, pa.int64() if k == "int" else pa.string()) for n, k in self.kinds.items()])
        self.pa, self.writer = pa, pq.ParquetWriter(path, self.schema)
        self.rows: list[dict[str, Any]] = []

    def add(self, rows: Iterator[dict[str, Any]]) -> None:
        for row in rows:
            self.rows.append({n: _cell(row.get(n), kind) for n, kind in self.kinds.items()})
        if len(self.rows) >= PIECE:
            self.flush()

    def flush(self) -> None:
        self.writer.write_table(self.pa.Table.from_pylist(self.rows, self.schema))
        self.rows = []

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        self.writer.close()


def _cell(value: Any, kind: str) -> Any:
    if value is None or kind == "int":
        return value
    return json.dumps(value, separators=(",", ":")) if kind == "json" else utf8(value)
