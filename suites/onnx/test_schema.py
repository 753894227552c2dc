"""``schema.json`` against the catalogue, and every op version either declared or listed with a reason."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

from suites.onnx import dialect, extract, schemas
from suites.onnx.facts import line_of_schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CATALOGUE = json.loads((HERE / "catalogue.json").read_text())
SCHEMA = json.loads((HERE / "schema.json").read_text())
UNDECLARED = tomllib.loads((HERE / "undeclared.toml").read_text())


def name(row: dict) -> str:
    return f"{row['domain']}.{row['op']}" if row["domain"] else row["op"]


def test_every_version_of_the_catalogue_is_there_with_the_same_facts() -> None:
    ours: dict[str, dict[str, str]] = {}
    for row in SCHEMA["ops"]:
        ours.setdefault(name(row), {})[str(row["version"])] = line_of_schema(row)
    assert ours == CATALOGUE["ops"]


def test_counts() -> None:
    by_domain: dict[str, list[set]] = {}
    for row in SCHEMA["ops"]:
        ops, versions = by_domain.setdefault(row["domain"] or "ai.onnx", [set(), set()])
        ops.add(row["op"])
        versions.add((row["op"], row["version"]))
    assert {k: [len(a), len(b)] for k, (a, b) in by_domain.items()} == CATALOGUE["domains"]
    assert len(SCHEMA["ops"]) == 659


def test_op_names_are_unique_across_domains() -> None:
    domains: dict[str, set[str]] = {}
    for row in SCHEMA["ops"]:
        domains.setdefault(row["op"], set()).add(row["domain"])
    assert all(len(d) == 1 for d in domains.values())


def test_schema_equals_the_installed_package() -> None:
    import onnx

    if SCHEMA["source"] != f"onnx {onnx.__version__}":
        pytest.skip(f"schema.json is of {SCHEMA['source']}, installed is {onnx.__version__}")
    assert (HERE / "schema.json").read_text() == extract.dumps(extract.extract())


def test_every_version_is_declared_or_listed() -> None:
    listed = {v for group in UNDECLARED.values() for v in group["versions"]}
    assert all(group["reason"] for group in UNDECLARED.values())
    declared = {f"{v.op}/{v.version}" for v in dialect.versions.values()}
    every = {f"{s.op}/{s.version}" for s in dialect.schemas}
    assert declared | listed == every, sorted(every - declared - listed)
    assert not declared & listed


def test_versions_cover_the_opsets_without_gap_or_overlap() -> None:
    by_op: dict[str, list] = {}
    for s in schemas.schemas():
        by_op.setdefault(s.op, []).append(s)
    for op, rows in by_op.items():
        rows.sort(key=lambda s: s.version)
        for a, b in itertools.pairwise(rows):
            assert a.last_opset + 1 == b.first_opset, op
        assert "left" in rows[-1].extra or rows[-1].last_opset == dialect.opsets[-1], op


def test_the_first_list_of_operators() -> None:
    """The 68 operators of 2017: what is current has a version from then on; what was removed is in no released schema,
    and declared all the same or listed with its reason (``test_every_version_is_declared_or_listed``)."""
    known = {row["op"]: {r["version"] for r in SCHEMA["ops"] if r["op"] == row["op"]} for row in SCHEMA["ops"]}
    first = CATALOGUE["first_list"]
    assert len(first) == 68
    for op, fact in first.items():
        if fact["status"] == "current":
            assert known[op] == set(fact["versions"]), op
        else:
            assert op not in known, op
    gone = {op for op, f in first.items() if f["status"] != "current"}
    assert len(gone) == 10
    assert gone == {s.op for s in dialect.schemas if "left" in s.extra}
