"""The pages of the documentation say what the code says: tables, names of files and functions, fields, links."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.cases.case import draw_case
from harness.core import forms
from harness.declare import registry
from harness.ledger.facts import PREDICATES
from harness.ledger.predicate import PLAIN
from harness.ledger.tables import KEYS
from harness.workers.protocol import Backend
from harness.workers.worker import arrays
from harness.workers.worker.backend import Backend as WorkerBackend

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / p for p in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))
LONGEST = 30  # words of a sentence
REQUIRED = ("name", "formats", "version", "load", "run")
FOLDERS = "harness|suites|reports|native_ref|scripts|docs|opconform"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """scripts/reference.py as a module."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=PAGES, ids=lambda p: p.name)
def page(request: pytest.FixtureRequest) -> Path:
    return request.param


def first_cells(text: str) -> set[str]:
    """The names in backticks in the first column of all tables."""
    return {n for row in re.findall(r"^\| (`[^|]+) \|", text, re.M) for n in re.findall(r"`(\w+)[`(]", row)}


@pytest.mark.parametrize("name", ["README.md", "docs/verdicts.md", "docs/records.md"])
def test_generated_tables_are_current(reference: ModuleType, name: str) -> None:
    assert reference.current(name) == (ROOT / name).read_text("utf-8"), "run python scripts/reference.py"


def test_a_verdict_without_a_sentence_is_an_error(reference: ModuleType) -> None:
    class New(Enum):
        """x.

        one: A sentence."""

        ONE = "one"
        TWO = "two"

    with pytest.raises(ValueError, match="no line for two"):
        reference.sentences(New)


@pytest.mark.parametrize("told", [{"_": "x"}, {"_": "x", "elapsed": "x", "odd": "x"}])
def test_a_field_without_a_sentence_is_an_error(reference: ModuleType, told: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="missing or superfluous"):
        reference.field_rows("end", forms.RECORDS["end"], told)


def test_known_differences_page_lists_every_field() -> None:
    text = (ROOT / "docs/known-differences.md").read_text("utf-8").split("## The condition")[0]
    assert first_cells(text) - {"when"} == set().union(*KEYS.values()) - {"when"}


def test_known_differences_page_lists_every_name_of_a_condition() -> None:
    text = (ROOT / "docs/known-differences.md").read_text("utf-8")
    table = text.split("## The condition")[1].split("\n\n")[2]
    assert set(re.findall(r"`(\w+)[`(]", table)) == PREDICATES | set(PLAIN)


def test_backends_page_lists_every_attribute() -> None:
    text = (ROOT / "docs/backends.md").read_text("utf-8")
    table = text.split("## Optional attributes")[1].split("\n\n")[1]
    stated = set(re.findall(r"^    (\w+)(?:\(\))?: ", Backend.__doc__ or "", re.M))
    assert first_cells(table) == stated
    own = {n for n in vars(WorkerBackend) if not n.startswith("_")} - {
        *REQUIRED,
        "script",
        "platforms",
    }  # these two of built-in ones alone
    assert own <= stated


def test_backends_page_lists_every_element_type() -> None:
    text = (ROOT / "docs/backends.md").read_text("utf-8").split("## Element types")[1].split("### Return bf16")[0]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    named = {n for cells in rows for c in cells[::2] for n in re.findall(r"`(\w+)`", c)}
    assert named == {*arrays.BY_NAME, "str"}


def test_every_path_on_a_page_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./*-]*)`", text):
        assert list(ROOT.glob(path.rstrip("/"))), f"{page.name}: {path}"


def test_every_file_of_a_command_on_a_page_exists() -> None:
    """Commands such as ``node examples/runners/ort_web.mjs``; the README of the runners names its files alone."""
    for page in PAGES:
        for path in re.findall(r"(?<![\w/.])(?:examples|scripts|benchmarks)/[\w./-]*\w", page.read_text("utf-8")):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
    runners = ROOT / "examples/runners"
    for name in re.findall(r"^\| `([\w./]+)", (runners / "README.md").read_text("utf-8"), re.M):
        assert (runners / name).exists(), f"examples/runners/README.md: {name}"


def test_every_local_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[\w-]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_function_on_a_page_is_defined_in_the_stated_file(page: Path) -> None:
    for name, path in re.findall(r"`([\w.]+)` in `([\w/]+\.py)`", page.read_text("utf-8")):
        source = (ROOT / path).read_text("utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(?:(?:def|class) {part}\b|{part}\b.*=)", source, re.M), (
                f"{page.name}: {name} in {path}"
            )


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page; code, headings and rows of tables aside, cells of tables included."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.S)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.)\s)|\n(?=\|)", text):
        if block.lstrip().startswith("#"):
            continue
        for cell in block.split("|") if block.lstrip().startswith("|") else [block]:
            yield from re.split(r"(?<=[.!?:;])\s+", " ".join(cell.split()))


def test_no_sentence_is_longer_than_a_reader_can_hold(page: Path) -> None:
    long = [s for s in sentences(page.read_text("utf-8")) if len(s.split()) > LONGEST]
    assert not long, long[0]


def test_the_life_of_an_instance_shows_what_is_drawn() -> None:
    text = (ROOT / "docs/life-of-an-instance.md").read_text("utf-8")
    key, opset, seed, index = re.search(r"`(\S+)@(\d+)#(\d+)\.(\d+)`", text).groups()
    case = draw_case(registry.dialect("onnx").versions[key], int(opset), int(seed), int(index))
    blocks = re.findall(r"```(?:json)?\n([\[{].*?)```", text, re.S)
    shown: list[Any] = [json.loads(b) for b in blocks]
    assert shown == [case.inst.to_json(), case.draws[0]["data"].tolist()]
    assert case.expected is not None
    assert f"`{case.expected[0][0].value.tolist()}`" in text
