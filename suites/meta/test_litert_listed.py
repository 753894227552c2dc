"""Listed differences of LiteRT: which answers of an instance they excuse, and which they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.cases.result import Result
from harness.core.dtypes import of
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.core.quiet import quiet
from harness.declare import registry
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo

LEDGER = load_ledger(backends=[BackendInfo("litert-ref", "2.3.0")])


def arg(values: Any, const: bool = False, dtype: Any = np.float32) -> Arg:
    x = np.asarray(values, dtype)
    return Arg(of(x), x.shape, const, values=x.ravel().tolist())


def instance(op: str, version: Any, args: dict[str, Arg], attrs: dict[str, Any], outs: int = 1) -> Instance:
    return Instance("tflite", op, version, 1, attrs, args, outs)


def verdict(inst: Instance, backend: str, *outputs: Any) -> tuple[Verdict, str | None]:
    """The verdict on an answer, and the entry that excuses it."""
    case = fill(registry.version_of(inst), inst)
    assert case.expected, case.problem
    row = [np.asarray(o, e.value.dtype) for o, e in zip(outputs, case.expected[0], strict=True)]
    with quiet:
        result = judge_case(case, BackendInfo(backend, "2.3.0"), [Outcome(Status.VALUE, row)], LEDGER)
    return result.verdict, result.known


def test_sparse_weights_read_as_dense_ones_meet_subnormals() -> None:
    layout = {"order": [0, 1], "block_map": [], "block": [], "csr": [False, True], "width": 8}
    x, w = [[1.1754942e-38, 1.0, 0.0], [1.0, 1.0, 1.0]], [[-2.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    inst = instance("FULLY_CONNECTED", 10, {"input": arg(x), "filter": arg(w, True)}, {"@sparsity": {"filter": layout}})
    dense, entry = np.array([-2.0, 1.0, 1.0]), "xnnpack-sparse-weights-as-dense"
    product = np.asarray(x, np.float32) @ dense
    assert verdict(inst, "litert-xnnpack", np.stack([product, [7, 7]], 1)) == (Verdict.KNOWN, entry)
    flushed = np.array([1.0, 0.0])
    small = instance(
        "FULLY_CONNECTED", 10, {"input": arg([[1.1754942e-38, 0.0, 0.0], x[1]]), "filter": arg(w, True)}, inst.attrs
    )
    for first, found in ((flushed[1], Verdict.KNOWN), (1e-38, Verdict.MISMATCH)):
        assert verdict(small, "litert-xnnpack", [[first, 7], [0, 7]])[0] is found
    assert verdict(small, "litert-xnnpack", [[0, 7], [0.5, 7]])[0] is Verdict.MISMATCH


def test_a_running_sum_of_squares_gives_what_single_precision_leaves_of_it() -> None:
    x = np.array([[[[1e4, 1.0, 1.0, 2.0]]]])
    inst = instance(
        "LOCAL_RESPONSE_NORMALIZATION", 1, {"input": arg(x)}, {"radius": 0, "bias": 1.0, "alpha": 1.0, "beta": 1.0}
    )
    nan = instance("LOCAL_RESPONSE_NORMALIZATION", 1, {"input": arg([[[[np.nan, 1.0, 2.0]]]])}, inst.attrs)
    known = (Verdict.KNOWN, "litert-opt-lrn-running-sum")
    assert verdict(nan, "litert-opt", np.full((1, 1, 1, 3), np.nan)) == known
    assert verdict(nan, "litert-opt", [[[[np.nan, np.nan, 0.3]]]])[0] is Verdict.MISMATCH
    wide = instance("LOCAL_RESPONSE_NORMALIZATION", 1, {"input": arg(x)}, {**inst.attrs, "radius": 1})
    left = np.float32(1e8) + np.float32(1) + np.float32(1) - np.float32(1e8)  # of the two small squares
    sums = 1 + np.array([1e8, 1e8, left + np.float32(4), left + np.float32(4) - np.float32(1)])
    assert verdict(wide, "litert-opt", x / sums) == known
    assert verdict(wide, "litert-opt", x / [1e8, 1e8, 7.0, 7.0])[0] is Verdict.MISMATCH


@pytest.mark.parametrize("absent", ["input", "begin", "end", "strides"])
def test_a_listed_condition_of_strided_slice_holds_without_an_operand(absent: str) -> None:
    entry, info = LEDGER.by_id["litert-strided-slice-offset"], BackendInfo("litert-opt", "2.3.0")
    given = {s: arg([2], s != "input", np.int32) for s in ("input", "begin", "end", "strides") if s != absent}
    inst = replace(instance("STRIDED_SLICE", 8, given, {"offset": True}), rule=f"required-input:{absent}")
    case = Case(registry.version_of(inst), inst, 0)
    assert not entry.matches(Result(case, info.name, Verdict.CRASHED, Outcome(Status.CRASHED)), info)


def test_a_hybrid_cell_that_runs_once_per_step_is_distinguished_from_others_where_it_overflows_too() -> None:
    steps, known = 24, (Verdict.KNOWN, "litert-hybrid-bidirectional-rnn-runs-once-per-step")
    quant = {"scale": [0.0117], "zero_point": [0], "axis": 0}
    args = {"input": arg(np.ones((steps, 1, 1)))}
    for p, weight in (("fw_", 127), ("bw_", 1)):
        for slot, value in (("input_to_input_weights", 10), ("recurrent_weights", weight)):
            args[p + slot] = replace(arg([[value]], True, np.int8), quant=quant)
        args |= {p + "bias": arg([0.0], True), p + "hidden_state": arg([[0.0]])}
    attrs = {"fused_activation_function": "NONE", "time_major": True, "merge_outputs": False}
    inst = instance("BIDIRECTIONAL_SEQUENCE_RNN", "2h", args, attrs, 2)

    def run(x: float) -> np.ndarray:
        """All forward steps from a state."""
        rows = []
        for _ in range(steps):
            x = 0.117 + 127 * 0.0117 * x
            rows.append(x)
        return np.array(rows).reshape(-1, 1, 1)

    backward = np.full((steps, 1, 1), 0.117 / (1 - 0.0117))  # what all runs but the first give
    assert verdict(inst, "litert-ref", run(178.0), backward) == known
    assert verdict(inst, "litert-ref", np.full((steps, 1, 1), np.nan), backward) == known
    broken = run(178.0)
    broken[5] *= 1.2
    assert verdict(inst, "litert-ref", broken, backward)[0] is Verdict.MISMATCH
    assert verdict(inst, "litert-ref", run(178.0), 1.2 * backward)[0] is Verdict.MISMATCH
