"""Facts: the committed schema is what the package says, and what the published page said; everything is declared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suites.nn import dialect, extract, wire

HERE = Path(__file__).parent
# Fields that the package has and the published page lacks.
ADDED = {
    "ConcatNDLayerParams.interleave": "iOS 14",
    "Convolution3DLayerParams.isDeconvolution": "iOS 14",
    "Convolution3DLayerParams.outputShape": "iOS 14",
}
# Layers without an entry, and why.
UNDECLARED = {"custom": "its meaning is code that the application brings along"}


@pytest.fixture(scope="module")
def page() -> list[tuple[Any, ...]]:
    """(kind, name, number, message, minimum specification, fields) of every line of the digest."""
    out = []
    for line in (HERE / "catalogue.txt").read_text().splitlines():
        if not line.startswith("#"):
            head, _, rest = line.partition(":")
            out.append((*head.split(), rest.split()))
    return out


def test_the_files_equal_the_installed_package() -> None:
    stored = json.loads((HERE / "schema.json").read_text())
    fresh = extract.schema()
    assert {o["op"]: o for o in stored["ops"]} == {o["op"]: o for o in fresh["ops"]}
    assert json.loads((HERE / "messages.json").read_text()) == extract.messages()


def _field(text: str) -> tuple[str, int, str, bool, str | None]:
    name, rest = text.split("=")
    number, kind = rest.split(":")
    kind, _, oneof = kind.partition("@")
    return name, int(number), kind.rstrip("*"), kind.endswith("*"), oneof or None


def test_every_message_of_the_page_has_the_same_fields(page: Any) -> None:
    bad, seen = [], 0
    for kind, _, _, message, _, fields in page:
        if kind == "enum" or message in ("-",):
            continue
        known = wire.fields(message)
        for name, number, type_, repeated, oneof in map(_field, fields):
            seen += 1
            if type_.startswith("map<"):
                continue
            have = known.get(name)
            want = [number, type_, repeated, oneof]
            if have is None:
                bad.append(f"{message}.{name} is missing")
            elif have[0] != number or have[2] != repeated or have[3] != oneof:
                bad.append(f"{message}.{name} is {have}, the page says {want}")
            elif have[1].lstrip("@#").split(".")[-1] != type_.split(".")[-1]:
                bad.append(f"{message}.{name} is a {have[1]}, the page says {type_}")
    assert seen > 400
    assert bad == []


def test_fields_that_the_page_lacks_are_known(page: Any) -> None:
    listed = {(m, _field(f)[0]) for kind, _, _, m, _, fields in page if kind != "enum" for f in fields}
    messages = {m for kind, _, _, m, *_ in page if kind != "enum"}
    assert {f"{m}.{f}" for m in messages for f in wire.fields(m) if (m, f) not in listed} == set(ADDED)


def test_every_layer_and_activation_of_the_page_is_in_the_schema(page: Any) -> None:
    layers = {(s.extra["layer"], str(s.extra["field"]), s.extra["message"]) for s in dialect.schemas}
    assert {(n, number, m) for kind, n, number, m, *_ in page if kind == "layer"} == layers
    assert len(layers) == 158
    ops = {s.op for s in dialect.schemas}
    assert {f"activation.{n}" for kind, n, *_ in page if kind == "activation"} <= ops


def test_specification_versions_are_those_of_the_page(page: Any) -> None:
    spec = {s.extra["layer"]: s.extra["min_spec"] for s in dialect.schemas}
    for kind, name, _, _, least, _ in page:
        if kind == "layer":
            assert spec[name] == (1 if least == "-" else int(least)), name


def test_enums_are_those_of_the_page(page: Any) -> None:
    enums = {k.split(".")[-1]: v for k, v in json.loads((HERE / "messages.json").read_text())["enums"].items()}
    for kind, name, _, _, _, members in page:
        if kind == "enum" and name.split(".")[-1] in enums:
            want = {k: int(v) for k, v in (m.split("=") for m in members)}
            assert want.items() <= enums[name.split(".")[-1]].items(), name


def test_every_layer_is_declared_or_listed_with_a_reason() -> None:
    ops = {s.op for s in dialect.schemas}
    declared = {v.op for v in dialect.versions.values()}
    assert ops - declared == set(UNDECLARED)
    assert all(len(why) > 20 for why in UNDECLARED.values())


def test_slots_cover_the_schema() -> None:
    assert set(extract.slots()) == {s.extra["layer"] for s in dialect.schemas}
