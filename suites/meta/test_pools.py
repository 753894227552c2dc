"""What all draws of a random op say together is told like any other mismatch, and fails the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import reports
from harness.cases.case import draw_case
from harness.compare.statistics import ENOUGH
from harness.core.outcome import Verdict
from harness.core.record_format import FORMAT
from harness.declare import registry
from harness.engine.engine import Engine
from harness.ledger.ledger import Ledger
from harness.ledger.loader import load_ledger
from suites.meta.runtimes import running

KEY = "onnx/RandomUniform/22"


def pooled(power: float, out: list[dict[str, Any]], ledger: Ledger | None = None) -> Engine:
    """An engine that has seen draws of u ** power, each sample of which passes for uniform."""
    v = registry.dialect("onnx").versions[KEY]
    with running("onnx-reference") as h:
        engine = Engine([h], seed=3, sink=out.append, ledger=ledger)
        for i in range(300):
            case = draw_case(v, v.opsets[-1], 3, i, invalid=False)
            engine.records.cover[case.version.key].meet([case])
            draws = np.random.default_rng(i).random(100) ** power
            engine.records.pool.add((KEY, "f32", "onnx-reference"), draws, case)
        engine.records.pooled()
    return engine


def test_a_bias_that_no_case_shows_fails_the_run(tmp_path: Path) -> None:
    out: list[dict[str, Any]] = []
    engine = pooled(1.1, out)
    assert engine.summary.failures == 1
    head = {"t": "run", "format": FORMAT, "seed": 3, "backends": {"onnx-reference": {"version": "1"}}}
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (head, *out)))
    s = reports.summarise(path)
    assert s.bad == 1
    assert s.totals == {"mismatch": 1}
    (case,) = s.cases
    assert case["kind"] == "distribution"
    assert "30000 pooled draws" in case["formula"]
    line = "opconform run --op onnx/RandomUniform --backend onnx-reference --cases 300 --seed 3"
    assert case["replay"] == line


def test_a_listed_bias_is_known(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        '[[known]]\nid = "skewed"\nbackend = "onnx-reference"\nop = "onnx/RandomUniform"\nkind = "distribution"\n'
        'reason = "r"\nclause = "c"\n'
    )
    out: list[dict[str, Any]] = []
    engine = pooled(1.1, out, load_ledger([tmp_path]))
    assert not engine.summary.failures
    (case,) = (r for r in out if r["t"] == "case")
    assert (case["verdict"], case["known"]) == ("known", "skewed")


def test_fair_draws_are_no_failure() -> None:
    out: list[dict[str, Any]] = []
    engine = pooled(1.0, out)
    assert not engine.summary.failures
    assert not any(r.get("verdict") == Verdict.MISMATCH.value for r in out)


def test_a_pool_takes_no_more_than_it_needs() -> None:
    pool = Engine([]).records.pool
    for i in range(3 * ENOUGH // 1000):
        pool.add(("op",), np.random.default_rng(i).random(1000), i)
    assert sum(p.size for p in pool.samples["op",]) == ENOUGH
    assert pool.examples["op",] == 0
