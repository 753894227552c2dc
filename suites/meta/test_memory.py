"""What a long run keeps in memory has an end."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from harness.backends import registry
from harness.cases.selection import Selection, units, versions
from harness.engine.engine import Engine
from harness.engine.learning_stages import Answers, Count, Knowledge
from harness.workers import worker
from suites.onnx import proto

MANY = 10_000  # with 8,192 of each kept, as before, 3 to 7 MiB


def grown(fill: Callable[[], object]) -> float:
    """MiB that a call leaves behind."""
    tracemalloc.start()
    try:
        fill()
        return tracemalloc.get_traced_memory()[0] / 2**20
    finally:
        tracemalloc.stop()


def test_shapes_met_once_do_not_stay() -> None:
    def travel() -> None:
        for n in range(MANY):
            out = worker.Writer()
            form = out.put(np.zeros((0, n, 1), np.float32))
            worker.Reader(b"").get(form)

    assert grown(travel) < 2


def test_types_of_a_model_met_once_do_not_stay() -> None:
    assert grown(lambda: [proto.tensor_type(1, (n, 1, 3)) and None for n in range(MANY)]) < 1


def test_units_of_a_stage_are_kept_as_one_sum() -> None:
    known, kind = Knowledge(), ("", ("f32",), 17)

    def learn() -> None:
        for _ in range(20_000):
            known.note(5, Answers(types={("", ("f32",), 17): Count(passed=1, asked=1)}))

    assert grown(learn) < 1
    assert known.of(kind, True) is None  # counts from the next stage on
    known.reach(6)
    assert known.of(kind, True) == Count(passed=20_000, asked=20_000)


@pytest.mark.parametrize("name", [n for n in registry.BUILTIN if n.startswith("coremltools-")])
def test_coremltools_processes_give_way(name: str) -> None:
    with registry.create(name) as handle:
        assert 0 < (handle.start().recycle or 0) <= 5000


def test_a_remembered_model_does_not_keep_the_pack_that_it_was_of() -> None:
    """The history of processes holds models of single cases; each had a pack of 64 behind it, with all outcomes."""
    chosen = list(versions(Selection(["onnx"], ops=["Acos"])))
    with registry.create("onnxruntime") as handle:
        Engine([handle], seed=0).run(islice(units(chosen, 0, None, endless=True), 60))
        remembered = [task.root for _, task in handle._parts.history._served]
        assert remembered
        for root in remembered:
            pack, _, chunk = root.job.tag
            assert not pack.cases
            assert not pack.outcomes
            assert not root.outcomes
            assert chunk.cases, "a later failure may name them"
