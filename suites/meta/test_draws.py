"""How cases are drawn: combinations in turn, rules that are truly broken, instances that can be kept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from harness.cases.case import draw_case
from harness.core.instance import Graph, Instance, Node
from harness.declare import registry
from harness.declare.invalid import draw_invalid
from harness.generate.draw_engines import InTurn, Prng, case_seed


@pytest.mark.parametrize("n", [1, 2, 7, 196, 625])
def test_a_walk_comes_by_each_choice_once(n: int) -> None:
    first = [InTurn(Prng(k), 5, k).int(3, 2 + n) for k in range(n)]
    assert sorted(first) == list(range(3, 3 + n))


def test_a_walk_is_kept_among_the_choices_and_leaves_the_others_alone() -> None:
    plain, walk = Prng(9), InTurn(Prng(9), 5, 3)
    drawn = [(plain.int(0, 99), walk.int(0, 99)) for _ in range(3)]
    assert walk.choices == [b for _, b in drawn]
    assert [a for a, _ in drawn[1:]] == [b for _, b in drawn[1:]]


def test_the_cases_of_a_conversion_go_through_all_pairs_of_types() -> None:
    v = registry.dialect("onnx").versions["onnx/CastLike/24"]
    pairs = {(a, b) for a in v.candidates["T1"] for b in v.candidates["T2"]}
    met = set()
    for i in range(len(pairs) * 8 // 7 + 8):
        case = draw_case(v, 24, 0, i, lazy=True)
        if case.inst.rule is None:
            met.add((case.inst.tensor("input").dtype, case.inst.tensor("target_type").dtype))
    assert met == pairs


def test_what_the_reference_takes_breaks_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator of negative extents that draws 0 instead."""
    v = registry.dialect("onnx").versions["onnx/RandomUniform/1"]
    engine = Prng(case_seed(1, v.key, 0))
    assert draw_invalid(v, "extents-positive", engine) is not None

    def empty(d: Any) -> Instance:
        return Instance("onnx", "RandomUniform", 1, 1, {"shape": [4, 0]})

    monkeypatch.setitem(v.__dict__["_invalid_generators"], "extents-positive", empty)
    assert draw_invalid(v, "extents-positive", engine) is None


def test_a_constant_of_no_axis_is_an_array_in_a_saved_program() -> None:
    g = Graph([], [Node("f", {"x": "c"}, ["y"], {})], ["y"], {"c": np.float32(2)})  # type: ignore[dict-item]
    kept = Graph.from_json(json.loads(json.dumps(g.to_json()))).consts["c"]
    assert isinstance(kept, np.ndarray)
    assert (kept.dtype, kept.shape, float(kept)) == (np.float32, (), 2.0)
