"""Records and instance files that somebody has edited or damaged are read, or told in words without a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness import cli
from harness.cases.case import draw_case
from harness.cases.selection import Selection
from harness.core.errors import OpconformError
from harness.core.forms import wrong_instance, wrong_record
from harness.core.instance import Instance
from harness.core.record_format import FORMAT
from harness.declare import registry
from harness.evidence.failure import kind_of
from harness.session import run_folder, session
from harness.session.replay import checked, usable
from harness.session.resume import resumed
from suites.meta import golden

WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    7,
    1 << 70,
    1.5,
    "",
    "x",
    "a/b/c",
    [],
    [1],
    [[]],
    ["x"],
    [None],
    {},
    {"x": 1},
    {"x": {}},
    {"f": "nan"},
    {"c": [1]},
    {"array": "f32"},
    {"dtype": "no"},
    {"graph": {}},
)
DEEP = json.loads("[" * 400 + "]" * 400)


def places(form: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each value inside a JSON value."""
    for k, v in form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ():
        yield (*path, k)
        yield from places(v, (*path, k))


def damaged(form: Any, r: Random) -> Any:
    """A copy with one value deleted or replaced."""
    out = copy.deepcopy(form)
    *path, last = r.choice(list(places(form)))
    inner = out
    for k in path:
        inner = inner[k]
    if r.random() < 0.3:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(r.choice((*WRONG, DEEP)))
    return out


def whole() -> list[dict[str, Any]]:
    """One record of each kind, and cases of each verdict."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for rec in golden.records(seed=2):
        first.setdefault((rec["t"], rec.get("verdict", "")), rec)
    batch = {
        "t": "batch",
        "key": "toy/Add/1",
        "opset": 1,
        "first": 0,
        "count": 2,
        "tally": [["b", "f32", "known", 2]],
        "cover": {"dtype": {"f32": 2}, "choices": {"x: rank 1": 2, "a=1": 1}, "sets": [[0, 1]], "valid": 2},
        "learnt": [[["b"], {"types": [["toy/Add/1", "f32,f32", 1, 2, 0, 2, 0]], "rules": {"r": [1, 1]}}]],
        "explained": [["b", "x", 2]],
        "listed": [{"id": "x", "reason": "r"}],
    }
    return [*list(first.values())[:-1], batch, list(first.values())[-1]]


ROWS = whole()


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    """Runs a verb: the exit code, after a look at what it said."""

    def run(*args: object) -> int:
        code = cli.main([str(a) for a in args])
        said = capsys.readouterr()
        assert code in (0, 1, 2)
        assert "Traceback" not in said.err
        if code == 2 and "opconform: note" not in said.err:
            assert said.err.count("\n") == 1, said.err
        return code

    return run


@pytest.mark.parametrize("seed", range(6))
def test_damaged_records_are_read_or_reported(seed: int, tmp_path: Path, told: Callable[..., int]) -> None:
    r = Random(seed)
    good = golden.write(tmp_path / "good.jsonl", ROWS)
    codes = set()
    for _ in range(12):
        rows = copy.deepcopy(ROWS)
        i = r.randrange(len(rows))
        rows[i] = damaged(rows[i], r)
        bad = golden.write(tmp_path / "bad.jsonl", rows)
        codes.add(told("report", bad, "--out", tmp_path / "out"))
        codes |= {told("diff", bad, good), told("diff", good, bad), told("export", bad, "--out", tmp_path / "tables")}
        told("merge", bad, "--out", tmp_path / "merged.jsonl")
    assert 2 in codes
    assert codes & {0, 1}


def plan(out: Path) -> session.Plan:
    return session.Plan(Selection(["toy"]), ["a"], out=out)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_run_is_resumed_or_reported(seed: int, tmp_path: Path) -> None:
    r = Random(seed)
    backends = {"b": {"version": "1", "formats": ["toy"]}}
    head = {"t": "run", "format": FORMAT, "backends": backends, **session.identity(plan(tmp_path))}
    rows = [head, *(row for row in ROWS if row["t"] not in ("run", "end")), {"t": "end", "interrupted": True}]
    kept = 0
    for _ in range(150):
        i = r.choice((0, len(rows) - 1, r.randrange(len(rows))))
        path = golden.write(tmp_path / "records.jsonl", [damaged(x, r) if i == j else x for j, x in enumerate(rows)])
        said = ""
        try:
            if run_folder.prepare(plan(tmp_path)).resumed:
                kept += 1
                resumed(path, lambda dialect: {"b": "1"}, kind_of)
        except OpconformError as e:
            said = str(e)
        assert "\n" not in said
    assert kept


@pytest.mark.parametrize("dialect", registry.names())
def test_a_damaged_instance_is_evaluated_or_reported(dialect: str) -> None:
    r = Random(dialect)
    every = list(registry.dialect(dialect).versions.values())
    for n in range(120):
        v = r.choice(every)
        form = json.loads(json.dumps(draw_case(v, v.opsets[-1], 3, n, lazy=True).inst.to_json()))
        bad = damaged(form, r)
        try:
            usable(checked(Instance.from_json(bad)))
        except OpconformError:
            continue
        except Exception as e:
            pytest.fail(f"{v.key}: {type(e).__name__}: {e}: {json.dumps(bad)}")


def test_what_is_nested_too_deeply_is_reported(tmp_path: Path, told: Callable[..., int]) -> None:
    for levels in (600, 100_000):
        deep = "[" * levels + "]" * levels
        inst = f'{{"format":1,"dialect":"onnx","op":"Abs","version":13,"opset":13,"attrs":{{"a":{deep}}},"args":{{}}}}'
        (tmp_path / "instance.json").write_text(inst)
        assert told("replay", tmp_path / "instance.json") == 2
        (tmp_path / "r.jsonl").write_text(f'{{"t":"run","format":1}}\n{{"t":"case","instance":{inst},"id":{deep}}}\n')
        assert told("report", tmp_path / "r.jsonl", "--out", tmp_path) == 2


def test_forms_take_what_is_written(tmp_path: Path) -> None:
    """The law behind the others: what the generators draw and what a run records has the stated form."""
    for name in registry.names():
        for v in list(registry.dialect(name).versions.values())[::7]:
            form = draw_case(v, v.opsets[0], 8, 7, lazy=True).inst.to_json()
            assert wrong_instance(json.loads(json.dumps(form))) is None, v.key
    for rec in golden.records(seed=3):
        assert wrong_record(rec) is None
