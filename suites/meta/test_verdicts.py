"""Verdicts stand in one table, ``Verdict``: a new one is a row there and its colour."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from harness.core.outcome import WORST_FIRST, Verdict

ROOT = Path(__file__).resolve().parents[2]
STYLE = ROOT / "reports/static/style.css"
# Adds a verdict to the table before anything else of the harness is imported, and prints what shows it.
ADDS_ONE = r"""
import importlib.util, json, sys, types
from collections import Counter

spec = importlib.util.find_spec("harness.core.outcome")
text = open(spec.origin, encoding="utf-8").read()
row = '    PAUSED = "paused_here", Kind.FLAKY, 12, "P", "The backend took a rest."\n\n    kind: Kind\n'
assert text.count("\n    kind: Kind\n") == 1
sys.modules[spec.name] = module = types.ModuleType(spec.name)
exec(compile(text.replace("\n    kind: Kind\n", "\n" + row), spec.origin, "exec"), module.__dict__)

from harness.core.forms import wrong_record
from harness.plugin.summary import table
from reports import html
from reports.summary import summarise

batch = {"t": "batch", "key": "onnx/Relu/14", "opset": 14, "first": 0, "count": 1}
batch["tally"] = [["b", "f32", "paused_here", 1]]
head = {"t": "run", "format": 2, "backends": {"b": {"version": "1"}}}
sys.path.insert(0, "scripts")
import reference

with open(sys.argv[1], "w") as f:
    f.writelines(json.dumps(r) + "\n" for r in (head, batch))
page = summarise(sys.argv[1]).to_json()
print(json.dumps({
    "record": wrong_record(batch),
    "terminal": table({("onnx", "b"): Counter(paused_here=1)}),
    "tables": [sum("paused_here" in line for line in reference.verdict_table(marks)) for marks in (True, False)],
    "style": ".v-paused_here { --c: var(--v-paused_here); }" in html.assets()[0],
    "worst": page["verdicts"][0],
    "totals": page["totals"],
    "judged": page["judged"],
}))
"""


def test_a_verdict_that_is_added_to_the_table_is_seen_everywhere(tmp_path: Path) -> None:
    path = str(tmp_path / "records.jsonl")
    got = subprocess.run([sys.executable, "-c", ADDS_ONE, path], cwd=ROOT, capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    shown = json.loads(got.stdout)
    assert shown["record"] is None
    assert "paused_here" in shown["terminal"][0].split()
    assert shown["tables"] == [1, 1]
    assert shown["style"]
    row = {"name": "paused_here", "label": "paused here", "sign": "P", "kind": "flaky"}
    assert shown["worst"] == {**row, "sentence": "The backend took a rest."}
    assert shown["totals"] == {"paused_here": 1}
    assert shown["judged"] == 1


def test_there_is_no_second_list_of_verdicts() -> None:
    """No other file names most of them; the engine decides some, the page words some."""
    names = [v.value for v in Verdict]
    lists = {}
    for path in [p for top in ("harness", "reports", "scripts") for p in (ROOT / top).rglob("*.[pj][ys]")]:
        text = path.read_text(encoding="utf-8")
        found = [n for n in names if re.search(rf"\b{n}\b\"?'?\s*[:,\])]", text)]
        if len(found) > len(names) / 2:
            lists[str(path.relative_to(ROOT))] = found
    assert set(lists) == {"harness/core/outcome.py"}


def test_every_verdict_has_a_colour_and_a_place() -> None:
    colours = set(re.findall(r"--v-(\w+):", STYLE.read_text(encoding="utf-8")))
    assert colours == {v.value for v in Verdict}
    assert len({v.severity for v in Verdict}) == len(Verdict) == len({v.sign for v in Verdict})
    assert WORST_FIRST[0] is Verdict.CRASHED
    assert WORST_FIRST[-1] is Verdict.UNSUPPORTED
