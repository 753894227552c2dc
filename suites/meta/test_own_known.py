"""Lists of known differences of one's own: named, drafted, held, stale."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.features import pattern_of
from harness.core.instance import Instance
from harness.evidence.draft import condition_of
from harness.ledger.predicate import condition
from suites.meta.test_cli import Cli, env, one_line, opconform  # noqa: F401 - fixtures

ENTRY = """
[[known]]
id = "{id}"
backend = "*"
op = "toy/Flip"
when = "{when}"
reason = "it flips the first axis"
clause = "toy Flip"
{more}
"""


def entry(id: str = "mine", when: str = "rank('x') > 1", more: str = "wide = 'not looked at'") -> str:
    return ENTRY.format(id=id, when=when, more=more)


def test_a_drafted_list_explains_the_run_that_it_was_drafted_from(opconform: Cli) -> None:  # noqa: F811
    assert opconform.run("SwappedAxis", "--cases", "48").returncode == 1
    done = opconform("known", "--write", "mine.toml")
    assert done.returncode == 0, done.stderr
    text = (opconform.folder / "mine.toml").read_text()
    assert 'op = "toy/Flip"' in text
    assert "instance = " in text
    again = opconform.run("SwappedAxis", "--cases", "48", "--known", "mine.toml")
    assert again.returncode == 0, again.stdout
    assert "0 unexplained" in again.stdout
    one_line(opconform("known", "--write", "mine.toml"), "--write", "new file")


def test_what_is_mended_makes_a_list_stale(opconform: Cli) -> None:  # noqa: F811
    opconform.run("SwappedAxis", "--cases", "48")
    opconform("known", "--write", "mine.toml")
    text = (opconform.folder / "mine.toml").read_text()
    (opconform.folder / "mine.toml").write_text(re.sub(r'backend = "[^"]*"', 'backend = "*"', text))
    done = opconform.run("Right", "--known", "mine.toml", "--out", "other")
    assert done.returncode == 1
    assert "known differences that did not occur" in done.stdout


def test_an_entry_without_an_instance_is_stale_once_it_was_drawn(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "mine.toml").write_text(entry())
    done = opconform.run("Right", "--known", "mine.toml", "--cases", "64")
    assert done.returncode == 1
    assert "did not occur: mine" in done.stdout
    done = opconform.run("Right", "--known", "mine.toml", "--op", "Add", "--out", "other")
    assert done.returncode == 0, "nothing that it describes was drawn"
    done = opconform.run("SwappedAxis", "--known", "mine.toml", "--cases", "64", "--out", "third")
    assert done.returncode == 0, done.stdout


def test_the_project_names_its_lists(opconform: Cli) -> None:  # noqa: F811
    (opconform.folder / "lists").mkdir()
    (opconform.folder / "lists" / "mine.toml").write_text(entry())
    (opconform.folder / "pyproject.toml").write_text('[tool.opconform]\nknown = ["lists/mine.toml"]\n')
    assert opconform.run("SwappedAxis", "--cases", "64").returncode == 0
    (opconform.folder / "pyproject.toml").write_text('[tool.opconform]\nknown = ["lists/other.toml"]\n')
    one_line(opconform.run("SwappedAxis"), "pyproject.toml: tool.opconform: known", "other.toml")
    (opconform.folder / "pyproject.toml").write_text('[tool.opconform]\nlists = ["lists/mine.toml"]\n')
    one_line(opconform.run("SwappedAxis"), "tool.opconform: expected a table with the field known")


def test_an_installed_package_brings_its_list(opconform: Cli, tmp_path: Path) -> None:  # noqa: F811
    site = tmp_path / "site"
    (site / "mine" / "differences").mkdir(parents=True)
    (site / "mine" / "__init__.py").write_text("")
    (site / "mine" / "differences" / "__init__.py").write_text("")
    (site / "mine" / "differences" / "flip.toml").write_text(entry())
    info = site / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opconform.known]\nmine = mine.differences\n")
    opconform.env = {**opconform.env, "PYTHONPATH": f"{opconform.env['PYTHONPATH']}:{site}"}
    assert opconform.run("SwappedAxis", "--cases", "64").returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (entry(when="rank('x'"), ("mine.toml:2", "known mine", "when")),
        (entry(more="reasons = 'x'"), ("unknown field 'reasons'",)),
        (entry(id="a b"), ("an id is made of letters",)),
        (entry(when="ulp <= 4", more=""), ("needs the instance",)),
        ("[[known", ("mine.toml:1",)),
        ("[[knwon]]\nid = 'x'", ("expected [[known]] or [[ambiguous]]",)),
    ],
)
def test_a_list_that_is_none_is_one_line(opconform: Cli, text: str, words: tuple[str, ...]) -> None:  # noqa: F811
    (opconform.folder / "mine.toml").write_text(text)
    one_line(opconform.run("Right", "--known", "mine.toml"), *words)


def test_a_file_that_is_not_there(opconform: Cli) -> None:  # noqa: F811
    one_line(opconform.run("Right", "--known", "none.toml"), "--known", "none.toml")


def test_replay_takes_the_list_too(opconform: Cli) -> None:  # noqa: F811
    opconform.run("SwappedAxis", "--cases", "48")
    opconform("known", "--write", "mine.toml")
    folder = next((opconform.folder / ".opconform/run/failures").iterdir())
    args = ("replay", folder, "--backend", "suites.meta.toy_backends:SwappedAxis")
    assert opconform(*args).returncode == 1
    assert opconform(*args, "--known", "mine.toml").returncode == 0


INSTANCE = {
    "format": 1,
    "dialect": "toy",
    "op": "Sum",
    "version": 1,
    "opset": 1,
    "attrs": {"axes": [0, -1], "keepdims": True, "to": {"dtype": "f16"}, "alpha": 0.5},
    "args": {"x": {"dtype": "f32", "shape": [2, 0, 1], "const": True, "encoding": "raw", "recipe": "special:1"}},
}


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("x: rank 3", "has('x') and rank('x') == 3"),
        ("x: empty axis", "0 in shape('x')"),
        ("x: axis of 1", "1 in shape('x')"),
        ("x: constant", "const('x')"),
        ("x: constant in raw", "encoding('x') == 'raw'"),
        ("x: data special", "str(recipe('x'))[:7] == 'special'"),
        ("y: absent", "not has('y')"),
        ("axes: length 2", "len(attr('axes', [])) == 2"),
        ("axes: has negative", "min(attr('axes', [0])) < 0"),
        ("keepdims=True", "attr('keepdims') == True"),
        ("alpha=0.5", "attr('alpha') == 0.5"),
        ("to=f16", "str(attr('to')) == 'f16'"),
        ("scale omitted", "attr('scale') is None"),
        ("shapes differ", "len(set([str(shape(s, i)) for s, i in slots])) > 1"),
        ("run again at other extents", ""),
    ],
)
def test_a_fact_becomes_a_condition(fact: str, told: str) -> None:
    said, when = condition_of(fact, INSTANCE)
    assert (said, when) == ({}, told)
    if when:
        condition(when)
    Instance.from_json(INSTANCE)


def test_a_type_and_an_opset_have_fields_of_their_own() -> None:
    assert condition_of("dtype=f16", INSTANCE) == ({"dtypes": ["f16"]}, "")
    assert condition_of("opset=1", INSTANCE) == ({"opsets": [1]}, "")


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("Can't create layer \"IsInf\" of type 'IsInf'", "Can't create layer * of type *"),
        ("/a/b/file.cpp:110: error: (-215) x.dims == 2", "file.cpp:*: error: (*) x.dims == *"),
        ("no kernel for int64, got float16 [3, 4]", "no kernel for int64, got float16 *"),
        ("out of   memory", "out of memory"),
    ],
)
def test_a_message_has_a_pattern(message: str, pattern: str) -> None:
    assert pattern_of(message) == pattern


@pytest.mark.parametrize(("when", "code"), [("rank('X') > 0", 1), ("rank('X') > 90", 0)])
def test_pytest_names_what_is_stale(tmp_path: Path, when: str, code: int) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "mine.toml").write_text(entry(when=when).replace("toy/Flip", "onnx/Relu"))
    ask = ["--pyargs", "suites", "-m", "opset_onnx17 and activation", "-k", "Relu/14", "--backend", "onnxruntime"]
    more = ["--known", "mine.toml", "--cases", "24", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *ask, *more], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("known differences that did not occur: mine" in done.stdout) is bool(code)
