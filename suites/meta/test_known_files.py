"""Where the known differences stand: folders, files, order of fields, minimal instances beside them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.core.dtypes import F32
from harness.core.errors import FormatError
from harness.core.instance import Arg, Instance
from harness.declare import registry
from harness.declare.validation import validation_error
from harness.ledger.files import FOLDERS, read
from harness.ledger.loader import load_ledger
from harness.ledger.releases import below, releases
from harness.ledger.tables import ORDER, tomllib

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ROOT / "suites/known"
RELU = Instance("onnx", "Relu", 14, 17, {}, {"X": Arg(F32, (2,))})
ABS = Instance("onnx", "Abs", 13, 17, {}, {"X": Arg(F32, (2,))})
TABLE = """[[known]]
id = "{id}"
backend = "{backend}"
op = "onnx/Relu"
reason = "NaN becomes 0"
clause = "y = max(0, x), NaN propagates"
"""
ONE = TABLE.format(id="one", backend="mine-opt")


def line(id: str, inst: Instance = RELU, **more: object) -> str:
    return json.dumps({"id": id, "instance": inst.to_json(), **more}) + "\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """scripts/known.py as a module."""
    spec = importlib.util.spec_from_file_location("known_files", ROOT / "scripts/known.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_saved_instance_is_one_of_its_op_version() -> None:
    """What it says of operands and attributes has the types that the schema states, as `opconform replay` demands."""
    wrong = {
        e.id: why
        for e in load_ledger().entries
        for inst in (e.instance, *e.neighbours)
        if inst is not None and inst.rule is None
        if (why := validation_error(registry.version_of(inst), inst))
    }
    assert not wrong


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A list with one folder, ``mine``, which has no entry yet."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "folders.toml").write_text('[mine]\nbackend = "mine*"\n')
    return tmp_path


def test_every_entry_is_in_its_file_with_its_fields_in_order(script: ModuleType) -> None:
    changed = script.changes(script.written())
    assert not changed, f"run scripts/known.py: {sorted(p.name for p in changed)}"


def test_no_instance_of_the_tree_is_in_a_table() -> None:
    paths = [p for p in sorted(KNOWN.rglob("*.toml")) if p.name != FOLDERS]
    assert len(paths) > 100
    for path in paths:
        for table in (t for tables in tomllib.loads(path.read_text("utf-8")).values() for t in tables):
            assert not {"instance", "neighbours"} & set(table), f"{path.name}: {table['id']}"
            assert list(table) == sorted(table, key=ORDER.index), f"{path.name}: {table['id']}"


def test_the_page_shows_the_order_of_the_fields() -> None:
    page = (ROOT / "docs/known-differences.md").read_text("utf-8")
    assert tuple(page.split("```text\n")[1].split("```")[0].split()) == ORDER


def test_an_instance_next_to_the_file_belongs_to_its_entry(place: Path) -> None:
    (place / "mine/relu.toml").write_text(ONE + "\n" + TABLE.format(id="two", backend="mine"))
    (place / "mine/relu.jsonl").write_text(line("two", ABS, neighbours=[RELU.to_json()]) + line("one"))
    one, two = load_ledger([place]).entries
    assert (one.id, one.instance.id, one.neighbours) == ("one", RELU.id, ())
    assert (two.id, two.instance.id, [n.id for n in two.neighbours]) == ("two", ABS.id, [RELU.id])
    assert one.source == "mine/relu.toml"
    assert one.folder == "mine"


def test_a_single_file_has_the_instance_in_its_table(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(ONE + f"instance = '{RELU.dumps()}'\n")
    (entry,) = read(tmp_path / "mine.toml")
    assert entry.instance.id == RELU.id
    assert entry.folder == "mine.toml"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (line("one") + "{\n", "mine/relu.jsonl:2: expected JSON: "),
        ("\n", "mine/relu.jsonl:1: expected JSON: "),
        ("7\n", "mine/relu.jsonl:1: expected an object with id, instance and perhaps a list of neighbours, got int"),
        (line("one", colour=1), "mine/relu.jsonl:1: expected an object with id, instance"),
        (line("one") + line("one"), "mine/relu.jsonl:2: id 'one' stands in line 1 already"),
        (line("one") + line("two"), "mine/relu.jsonl:2: 'two' is no entry of relu.toml"),
        ('{"id": "one", "instance": {"format": 1}}\n', "mine/relu.jsonl:1: instance: "),
        (line("one", neighbours=[{}]), "mine/relu.jsonl:1: instance: expected format"),
    ],
)
def test_a_bad_line_of_instances_is_one_error_with_its_place(place: Path, lines: str, words: str) -> None:
    (place / "mine/relu.toml").write_text(ONE)
    (place / "mine/relu.jsonl").write_text(lines)
    with pytest.raises(FormatError) as e:
        load_ledger([place])
    assert str(e.value).startswith(words)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("\n" + ONE + 'colour = "red"\n', "mine/relu.toml:2: known one: unknown field 'colour'"),
        (ONE + ONE.replace('op = "onnx/Relu"\n', ""), "mine/relu.toml:7: known one: field 'op' is missing"),
        (ONE + "x = [\n\n", "mine/relu.toml:8: "),
        (ONE + "instance = '{}'\n", "mine/relu.toml:1: known one: instance stands beside the file too, in line 1"),
        (ONE.replace("mine-opt", "other"), "mine/relu.toml: known one: backend other or its versions are not those of"),
    ],
)
def test_a_bad_table_is_one_error_with_its_place(place: Path, table: str, words: str) -> None:
    (place / "mine/relu.toml").write_text(table)
    (place / "mine/relu.jsonl").write_text(line("one"))
    with pytest.raises(FormatError) as e:
        load_ledger([place])
    assert str(e.value).startswith(words)
    assert "\n" not in str(e.value)


def test_a_folder_that_is_not_listed_is_an_error(place: Path) -> None:
    (place / "other").mkdir()
    (place / "other/relu.toml").write_text(ONE)
    with pytest.raises(FormatError, match=r"^other: the folder holds tables, but folders\.toml does not list it$"):
        load_ledger([place])
    (place / "other/relu.toml").rename(place / "mine/relu.toml")
    (place / "mine/abs.jsonl").write_text(line("one"))
    with pytest.raises(FormatError, match=r"^abs\.jsonl: there is no abs\.toml beside it$"):
        load_ledger([place])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mine\n", r"^folders\.toml:1: "),
        ("[mine]\nbackends = 'mine'\n", r"^folders\.toml: mine: expected a table with backend, and perhaps versions$"),
        ("[mine]\nbackend = 3\n", r"^folders\.toml: mine: backend must be a text or a list of texts, got 3$"),
        ("[mine]\nbackend = 'mine'\nversions = 'old'\n", r"^folders\.toml: mine: versions: "),
        ("[theirs]\nbackend = 'theirs'\n", r"^folders\.toml: theirs: there is no such folder beside the file$"),
    ],
)
def test_a_bad_list_of_folders_is_one_error(place: Path, text: str, words: str) -> None:
    (place / "folders.toml").write_text(text)
    with pytest.raises(FormatError, match=words):
        load_ledger([place])


@pytest.mark.parametrize(
    ("inner", "outer", "inside"),
    [
        ("<1.24", "<1.32", True),
        (">=1.23,<1.32", "<1.32", True),
        ("<=1.31", "<1.32", True),
        ("<=1.32", "<1.32", False),
        ("==1.31.1", "<1.32", True),
        (">=1.23", "<1.32", False),
        ("<1.33", "<1.32", False),
        ("!=2.14.0", "<2.15", False),
        ("tool <2.15", "tool <2.15", True),
        ("<2.15", "tool <2.15", False),
        ("tool <2.15", "<2.3", False),
    ],
)
def test_a_range_ends_before_another(inner: str, outer: str, inside: bool) -> None:
    assert below(releases(inner), releases(outer)) is inside


def test_the_script_moves_a_new_table_to_its_place(place: Path, script: ModuleType) -> None:
    old = script.PLACE
    script.PLACE = place
    try:
        shown = f"# why it is here\ninstance = '{RELU.dumps()}'\n"
        (place / "new.toml").write_text(
            "# said of one\n" + ONE.replace('op = "onnx/Relu"\n', shown + 'op = "onnx/Relu"\n')
        )
        (place / "mine/several.toml").write_text(TABLE.format(id="two", backend="mine").replace("Relu", "*"))
        assert script.main(["--check"]) == 1
        assert (place / "new.toml").is_file()
        assert script.main([]) == 0
        assert script.main(["--check"]) == 0
    finally:
        script.PLACE = old
    assert not (place / "new.toml").exists()
    assert (place / "mine/several.toml").is_file()
    assert (place / "mine/activation.toml").read_text() == "# said of one\n" + ONE
    assert (place / "mine/activation.jsonl").read_text() == f'{{"id":"one","instance":{RELU.dumps()}}}\n'
    assert [e.id for e in load_ledger([place]).entries] == ["one", "two"], "patterns over several families last"
