"""Strings that were chosen to break a language go through every writer, and come out as text."""

from __future__ import annotations

import ast
import base64
import dataclasses
import gzip
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import reports
from harness import cli
from harness.cases.case import draw_case
from harness.cases.result import Result
from harness.compare import Judgement
from harness.core.escape import file_name, markdown, markdown_code, one_line, shell, utf8, visible, xml, xml_attribute
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.case_record import paragraph, record
from harness.evidence import known_report
from harness.evidence.repro_folder import write_folder
from harness.evidence.repro_script import script
from harness.ledger.entry import LedgerEntry
from harness.session.terminal import columns, failures, table, undecided
from suites.meta import golden
from suites.meta.hostile import NASTY, rows, words
from suites.meta.hostile_backends import WORDS
from suites.meta.test_cli import Cli, env, opconform  # noqa: F401 - fixtures
from suites.meta.toy import toy

several = settings(max_examples=60, deadline=None)
few = settings(max_examples=20, deadline=None)


# One language at a time


@several
@given(words)
def test_visible_text_is_printable_and_printable_text_is_itself(s: str) -> None:
    assert visible(s).isprintable()
    assert (visible(s) == s) == s.isprintable()
    assert "\n" not in one_line(s)
    utf8(s).encode()


def inline(text: str) -> list[Any]:
    """The inline parts of a page with one block of text."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"], (text, tokens)
    return list(tokens[1].children)


@several
@given(words)
def test_markdown_shows_the_words(s: str) -> None:
    if not markdown(s):
        return
    parts = inline(markdown(s))
    assert {t.type for t in parts} <= {"text", "text_special"}, parts
    assert "".join(t.content for t in parts) == one_line(s)


@several
@given(words)
def test_markdown_code_is_one_span(s: str) -> None:
    if not s.strip():
        return
    (part,) = inline(markdown_code(s))
    assert part.type == "code_inline"
    assert part.content == visible(s)
    row = f"| a | b |\n| --- | --- |\n| {markdown_code(s, cell=True)} | {markdown(s)} |\n\nend"
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(row)
    cells = [t for t in tokens if t.type == "inline"]
    assert len(cells) == 5
    assert cells[-1].content == "end"
    assert [(t.type, t.content) for t in cells[2].children] == [("code_inline", visible(s))]
    assert "".join(t.content for t in cells[3].children) == one_line(s)


@several
@given(words)
def test_xml_gives_back_the_words(s: str) -> None:
    e = ET.fromstring(f"<a b={xml_attribute(s)}>{xml(s)}</a>")
    assert (e.text or "") == visible(s, keep="\n\t") == e.get("b")


@several
@given(words)
def test_a_file_name_suits_every_store(s: str) -> None:
    name = file_name(s)
    assert re.fullmatch(r"[A-Za-z0-9_+][A-Za-z0-9._+-]{0,180}", name)
    assert not name.endswith(".")
    assert file_name(name) == name
    assert (name == s) or name[-8:] != file_name(s + "x")[-8:]


def test_a_shell_gives_back_the_words() -> None:
    tried = [w.replace("\0", "") for w in [*NASTY, "a\x1b'b", "\n", "é\n"]]
    line = "printf '%s\\0' " + " ".join(map(shell, tried))
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True)
    assert done.returncode == 0
    assert not done.stderr
    want = [w.encode("utf-8", "surrogateescape" if "\ud800" not in w else "surrogatepass") for w in tried]
    assert done.stdout.split(b"\0")[:-1] == want


# The writers


def result(s: str, verdict: Verdict = Verdict.MISMATCH) -> Result:
    """A verdict on a toy instance in which every word is ``s``."""
    case = draw_case(toy.versions["toy/Add/1"], 1, 0, 0)
    case.inst.rule = s if verdict is Verdict.WRONGLY_ACCEPTED else None
    outcome = Outcome(Status.VALUE, tuple(e.value for e in (case.expected or [[]])[0]), s, s)
    judgement = Judgement(Verdict.MISMATCH, 0, s, s, s)
    return Result(case, s, verdict, outcome, judgement, known=s, ambiguity=s)


def blanked(source: str) -> str:
    """The structure of a program, without the values of its literals at the top."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            try:
                ast.literal_eval(node.value)
            except ValueError:
                continue
            node.value = ast.Constant(None)
    return ast.dump(tree)


@several
@given(words, st.sampled_from([Verdict.MISMATCH, Verdict.WRONGLY_ACCEPTED]))
def test_a_repro_script_has_the_words_as_values_only(s: str, verdict: Verdict) -> None:
    def text(w: str) -> str:
        return script(result(w, verdict), w, w, [w], [(w, [w], [w])], [w], w)

    assert text(s).isascii()
    assert blanked(text(s)) == blanked(text("x"))
    values: dict[str, Any] = {}
    for node in ast.parse(text(s)).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, node.value)
    given_ = {
        name: ast.literal_eval(values[name]) for name in ("BACKEND", "MODEL", "OUTPUTS", "EARLIER", "SEEN_ON", "RULE")
    }
    assert given_ == {"BACKEND": s, "MODEL": s, "OUTPUTS": [s], "EARLIER": [[s, [s], [s]]], "SEEN_ON": s, "RULE": s}


@few
@given(s=words)
def test_the_folder_of_a_failure_can_be_written(tmp_path_factory: pytest.TempPathFactory, s: str) -> None:
    root = tmp_path_factory.mktemp("folders")
    folder = write_folder(root, result(s), s, s)
    assert [folder] == list(root.iterdir())
    assert re.fullmatch(r"[\w.+-]+", folder.name, re.ASCII)
    for name in ("notation.txt", "repro.py", "instance.json"):
        (folder / name).read_bytes().decode("utf-8")


@several
@given(words)
def test_the_terminal_shows_lines_of_ours_only(s: str) -> None:
    def lines(w: str) -> list[str]:
        told = record(result(w), {w: "agree"}, folder=Path(w.replace("\0", "") or "x"), replay=w)
        told |= {
            "notation": one_line(w),
            "neighbours": [one_line(w)],
            "prior_models": [[one_line(w)]],
            "cluster_index": 0,
        }
        cluster = {"separates": True, "predicate": w, "failed": 1, "passed": 1}
        cube = {(f"{w}/a/1", 1, w, "f32", "agree"): 1}
        text = [
            paragraph(told, w),
            *failures([told], [cluster], {w: {"version": w}}),
            *columns([[w, w], ["a", "b"]]),
            *undecided([told | {"verdict": "unknown", "message": w}]),
            *table(cube, {w: {"version": w}}),
        ]
        return "\n".join(text).split("\n")

    got = lines(f"x{s}")
    assert all(x.isprintable() for x in got), got
    assert len(got) == len(lines("x"))


def blocks(text: str) -> Iterator[str]:
    """The structure of a Markdown page: its blocks, and the parts of each that are not text."""
    for t in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text):
        yield t.type
        yield from (c.type for c in t.children or () if c.type not in ("text", "text_special"))


@few
@given(s=words.filter(lambda s: s.replace("/", "").strip() not in ("", "x")))
def test_every_page_keeps_its_form(tmp_path_factory: pytest.TempPathFactory, s: str) -> None:
    out = tmp_path_factory.mktemp("pages")

    def pages(w: str, name: str) -> reports.RenderResult:
        return reports.render(
            golden.write(out / f"{name}.jsonl", rows(w)), out / name, golden.write(out / f"{name}-old.jsonl", rows("y"))
        )

    got, plain = pages(s, "hostile"), pages("x", "plain")
    assert list(blocks(got.markdown.read_text("utf-8"))) == list(blocks(plain.markdown.read_text("utf-8")))
    xmls = [ET.parse(p.junit).getroot() for p in (got, plain)]
    assert [e.tag for e in xmls[0].iter()] == [e.tag for e in xmls[1].iter()]
    assert visible(s, keep="\n\t") in {t.get("name") for t in xmls[0].iter("testsuite")}
    html = got.html.read_text("utf-8")
    assert html.count("<script") == 2
    assert html.replace("\n", "").isprintable()
    packed = re.search(r'id="data">([^<]*)<', html)
    assert packed
    assert s in json.loads(gzip.decompress(base64.b64decode(packed[1])))["backends"]
    assert s in json.loads(got.json.read_text("utf-8"))["backends"]


@few
@given(s=words)
def test_parquet_holds_every_row(tmp_path_factory: pytest.TempPathFactory, s: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path_factory.mktemp("tables")
    path = golden.write(out / "r.jsonl", rows(s))
    outcomes, cases = (parquet.read_table(p).to_pylist() for p in reports.export(path, out))
    assert len(outcomes) == 5
    assert len(cases) == 4
    assert {c["message"] for c in cases} == {utf8(s)} == {o["backend"] for o in outcomes}


@few
@given(s=words)
def test_the_index_of_known_differences_keeps_its_form(s: str) -> None:
    def text(w: str) -> str:
        entry = dataclasses.replace(ENTRY, id=w, reason=w, clause=w)
        stands = known_report.KnownReportRow(entry, w, "toy/Add/1", "mismatch", Path("out/a|b`c"))
        gone = known_report.KnownReportRow(entry, w, "toy/Add/1", "agree", None)
        return known_report.index([stands, gone], Path("out"))

    assert list(blocks(text(f"a{s}"))) == list(blocks(text("a")))


ENTRY = LedgerEntry(id="a", source="x.toml", kind_of="known", backends=("b",), ops=("toy/Add",), reason="r", clause="c")


@pytest.mark.parametrize("verb", ["report", "diff", "report with a bad name"])
def test_the_command_line_prints_lines_of_ours_only(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = golden.write(tmp_path / "new.jsonl", rows(WORDS)), golden.write(tmp_path / "old.jsonl", rows("x"))
    args = {
        "report": ["report", str(new), "--out", str(tmp_path / "out")],
        "diff": ["diff", str(old), str(new)],
        "report with a bad name": ["report", "no\x1b[2J\nsuch"],
    }[verb]
    assert cli.main(args) in (1, 2)
    said = capsys.readouterr()
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable(), line
        assert not line.startswith(("# forged", "| a | b |", "::")), line


def test_a_run_on_a_hostile_backend_leaves_nothing_but_text(opconform: Cli) -> None:  # noqa: F811
    for name, verdict in (("Wrong", "mismatch"), ("Refuses", "wrongly rejected")):
        done = opconform.run(f"suites.meta.hostile_backends:{name}", "--cases", "8", "--out", f"out-{name}")
        assert done.returncode == 1, done.stdout + done.stderr
        assert verdict in done.stdout, done.stdout + done.stderr
        assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n"))
        out = opconform.folder / f"out-{name}"
        folders = list((out / "failures").iterdir())
        assert folders
        assert all(re.fullmatch(r"[\w.+-]+", f.name, re.ASCII) for f in folders)
        command = [sys.executable, folders[0] / "repro.py"]
        again = subprocess.run(command, cwd=opconform.folder, env=opconform.env, capture_output=True, text=True)
        assert again.returncode == 1, again.stdout + again.stderr
        assert not again.stderr, again.stdout + again.stderr
        assert all(line.isprintable() for line in again.stdout.split("\n"))
        assert opconform("export", f"out-{name}", "--out", "tables").returncode == 0
    assert not list(opconform.folder.rglob("PWNED"))
