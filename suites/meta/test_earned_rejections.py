"""A rejection is earned: it comes of the runtime, or of a check, and not of a mistake in the code around it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from harness.cases.case import draw_case
from harness.core.errors import Unsupported
from harness.workers.worker import backend as worker
from harness.workers.worker.backend import error_form
from suites.nn import dialect
from suites.nn.definition import Definition
from suites.nn.definition.common import LAYERS, Forbidden


def raised(body: str, file: str) -> BaseException:
    try:
        exec(compile(body, file, "exec"), {})
    except Exception as e:
        return e
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("body", "file", "kind"),
    [
        ("{}['x']", worker.ADAPTERS + "toy.py", "harness_error"),
        ("None.shape", worker.ADAPTERS + "toy.py", "harness_error"),
        ("raise ValueError('no')", worker.ADAPTERS + "toy.py", "rejected"),
        ("{}['x']", "/site-packages/runtime/ops.py", "rejected"),
        ("None.shape", "/home/somebody/my_backend.py", "rejected"),
    ],
)
def test_a_mistake_in_an_adapter_is_no_rejection(body: str, file: str, kind: str) -> None:
    assert error_form(raised(body, file), "run")["kind"] == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Forbidden("axis 3 of rank 2"), "rejected"),
        (TypeError("'numpy.ndarray' object is not callable"), "harness_error"),
        (ValueError("cannot reshape"), "harness_error"),
        (Unsupported("no definition"), "unsupported"),
        (MemoryError(), "crashed"),
    ],
)
def test_a_backend_may_name_the_exceptions_by_which_it_rejects(error: Exception, kind: str) -> None:
    assert error_form(error, "run", Definition.rejects)["kind"] == kind
    assert error_form(error, "run")["kind"] in (kind, "rejected")


@pytest.mark.parametrize(("name", "inputs"), [("floor", 2), ("floor", 0), ("equal", 3), ("gelu", 2), ("add", 0)])
def test_a_layer_rejects_another_number_of_inputs_in_words(name: str, inputs: int) -> None:
    with pytest.raises(Forbidden, match=f"^{name}: expected .* inputs, got {inputs}$"):
        LAYERS[name](None, *[np.zeros(2)] * inputs)


def test_the_second_reading_rejects_by_its_checks_alone() -> None:
    """Every op version, each rule that its generator breaks once: no TypeError, IndexError or NumPy message is left."""
    second, met = Definition(), Counter[str]()
    odd: list[Any] = []
    for v in dialect.versions.values():
        for i in range(7, 64, 8):
            case = draw_case(v, 1, 31, i)
            if case.inst.rule is None:
                continue
            try:
                model = dialect.build([case.inst], [case.draws[0]])
                feeds = {n: case.draws[0][s] if j is None else case.draws[0][s][j] for n, s, j in model.inputs[0]}
                second.run(second.load(model.data, "nn"), feeds)
                met["accepted"] += 1
            except Forbidden:
                met["rejected"] += 1
            except Exception as e:
                if type(e).__name__ != "Unsupported":
                    odd.append((v.key, case.inst.rule, type(e).__name__, str(e)))
    assert not odd
    assert met["rejected"] > 500
