"""A smaller instance is as valid as what was drawn: its parts agree, whatever the reference lets pass."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.cases.case import draw_case, fill
from harness.core.instance import Instance
from harness.core.outcome import Status
from harness.declare import registry
from harness.engine.engine import Engine
from harness.evidence.budget import Budget
from harness.evidence.failure import complete
from harness.evidence.invariants import Invariants
from harness.evidence.minimize import minimize
from harness.ledger.loader import load_ledger
from suites.meta.toy import toy

KNOWN = Path(__file__).parents[1] / "known"


def drawn(key: str, i: int, opset=None):
    v = registry.dialect(key.split("/")[0]).versions[key]
    case = draw_case(v, opset or v.opsets[-1], 77, i, invalid=False)
    assert not case.problem
    return v, case.inst


def takes(case) -> bool:
    """What is asked of the reference when a failure is made smaller."""
    return not case.problem and complete(case)


def smallest(v, inst: Instance, wanted=lambda inst: True, evaluations=1500, seconds=20.0) -> Instance:
    """What is left of an instance of which everything that the reference takes is said to fail."""

    def fails(candidate: Instance) -> bool:
        return takes(fill(v, candidate)) and wanted(candidate)

    small = minimize(v, inst, fails, Budget(evaluations=evaluations, seconds=seconds))
    assert elements(small) <= elements(inst)
    return small


def elements(inst: Instance) -> int:
    return sum(int(np.prod(x.shape)) for a in inst.args.values() for x in (a if isinstance(a, list) else [a]))


def without_choices(inst: Instance) -> Instance:
    """As it comes from a file: nothing of it can be drawn again."""
    return Instance.from_json(inst.to_json())


@pytest.mark.parametrize("i", range(3))
def test_the_output_shape_of_a_transposed_convolution_keeps_its_four_extents(i):
    v, inst = drawn("tflite/TRANSPOSE_CONV/3", i)
    small = smallest(v, without_choices(inst))
    shape, x, w = small.args["output_shape"], small.tensor("input").shape, small.tensor("weights").shape
    assert shape.shape == (4,)
    assert len(x) == len(w) == 4
    assert (shape.values[0], shape.values[3]) == (x[0], w[0])
    assert min(shape.values) > 0


@pytest.mark.parametrize("key", ["onnx/Loop/16", "onnx/Loop/11", "onnx/Scan/16", "onnx/Scan/9", "tflite/WHILE/1"])
@pytest.mark.parametrize("i", range(3))
def test_the_operands_of_a_block_stay_what_the_block_declares(key, i):
    """Cutting the operands alone would leave a body whose parameters have other shapes."""
    v, inst = drawn(key, i)
    small = smallest(v, without_choices(inst), evaluations=300)
    shapes = {n: [x.shape for x in (a if isinstance(a, list) else [a])] for n, a in inst.args.items()}
    assert {n: [x.shape for x in (a if isinstance(a, list) else [a])] for n, a in small.args.items()} == shapes


def test_a_vector_operand_stays_a_vector():
    """A shape, pads, a permutation: the axis that holds them is not the tensor's to lose."""
    for key, slot, rank in (
        ("onnx/ConstantOfShape/20", "input", 1),
        ("tflite/FILL/2", "dims", 1),
        ("tflite/PAD/2", "padding", 2),
        ("tflite/SCATTER_ND/1", "shape", 1),
    ):
        for i in range(4):
            v, inst = drawn(key, i)
            assert len(smallest(v, without_choices(inst), evaluations=200).args[slot].shape) == rank, key


def test_a_mode_keeps_the_extent_that_it_asks_for():
    """An inverse one-sided DFT takes complex numbers, which the last axis holds; others take real ones too."""
    seen = 0
    for i in range(60):
        v, inst = drawn("onnx/DFT/17", i)
        if inst.attrs.get("inverse") and inst.attrs.get("onesided") and seen < 3:
            small = smallest(v, without_choices(inst), evaluations=200)
            assert small.tensor("input").shape[-1] == 2
            seen += 1
    assert seen == 3


def test_states_and_divisors_keep_their_range():
    """What is always zero stays zero (a state at the start), what is never zero does not become it."""
    v, inst = drawn("tflite/UNIDIRECTIONAL_SEQUENCE_RNN/1", 1)
    small = smallest(v, without_choices(inst), evaluations=200)
    assert not any(small.tensor("hidden_state").values)
    assert small.tensor("hidden_state").shape[0] == small.tensor("input").shape[1 if small.attrs["time_major"] else 0]
    v, inst = drawn("tflite/DIV/1q", 1)
    small = smallest(v, without_choices(inst), evaluations=200)
    divisor = small.tensor("rhs")
    assert divisor.values
    assert all(x != divisor.quantised["zero_point"][0] for x in divisor.values)


def test_tied_extents_are_cut_together_and_the_rest_still_shrinks():
    """What is learnt is not more than what the generator does: a product of matrices comes down to one element."""
    v = toy.versions["toy/MatMul/1"]
    inst = next(
        c.inst for i in range(50) if min((c := draw_case(v, 1, 3, i, invalid=False)).inst.tensor("x").shape) > 2
    )
    small = smallest(v, without_choices(inst))
    assert (small.tensor("x").shape, small.tensor("y").shape) == ((1, 1), (1, 1))
    known = Invariants(v, inst)
    cut = without_choices(inst)
    cut.args["x"].shape = (cut.args["x"].shape[0], cut.args["x"].shape[1] - 1)
    assert any("extent x[1]" in why and "y[0]" in why for why in known.broken(cut)), list(known.broken(cut))


AUDITED = {
    "litert-ref": (
        "tflite",
        """TRANSPOSE_CONV/5h SPACE_TO_BATCH_ND/1 UNIDIRECTIONAL_SEQUENCE_RNN/3h SVDF/2 MIRROR_PAD/1
        BATCH_MATMUL/2 UNPACK/5 UNIDIRECTIONAL_SEQUENCE_LSTM/2 CONV_2D/6 ONE_HOT/1 SPLIT_V/2 STRIDED_SLICE/2
        GATHER_ND/2 TILE/1""",
    ),
    "onnx-shape-inference": (
        "onnx",
        """Scan/9 DFT/20 Conv/11 LSTM/14 Pad/19 Slice/13 Split/18 OneHot/11 ScatterND/18
        GatherND/13 NonMaxSuppression/11 ConvTranspose/11 MaxPool/12""",
    ),
}


@pytest.mark.parametrize("backend", AUDITED)
def test_a_second_opinion_finds_no_fault_with_what_was_accepted_on_the_way(backend):
    """Shrinking along random paths: what is accepted as valid, the runtime that took the original takes too."""
    pytest.importorskip("ai_edge_litert" if backend == "litert-ref" else "onnx")
    dialect, names = AUDITED[backend]
    ledger = load_ledger([KNOWN]).unmarked()
    asked, refused = 0, []
    with backends.create(backend) as handle:
        for name in names.split():
            v, inst = drawn(f"{dialect}/{name}", 1)
            rng = random.Random(name)
            accepted: list[Any] = []

            def fails(candidate, v=v, rng=rng, accepted=accepted):
                case = fill(v, candidate)
                if not takes(case) or rng.random() < 0.5:
                    return False
                accepted.append(case)
                return True

            if not judged(handle, ledger, fill(v, inst)):
                continue
            minimize(v, inst, fails, Budget(evaluations=100, seconds=10.0))
            for case in rng.sample(accepted, min(8, len(accepted))):
                asked += 1
                if not judged(handle, ledger, case):
                    refused.append(case.inst.dumps())
    assert asked > 60
    assert refused == []


def judged(handle, ledger, case) -> bool:
    """Does the backend take the case (or has a listed reason not to)?"""
    (got,) = Engine([handle], ledger=ledger).judge([case])
    return got.outcome.status is Status.VALUE or not got.verdict.bad


def test_facts_are_learnt_fast_enough_for_wide_operators():
    """Hundreds of numbers, as of an LSTM with forty operands: a small part of the seconds that shrinking has."""
    import time

    v, inst = drawn("tflite/BIDIRECTIONAL_SEQUENCE_LSTM/1", 0)
    Invariants(v, inst)
    start = time.process_time()
    known = Invariants(v, inst)
    assert time.process_time() - start < 3.0
    assert known.kept(inst)
    assert np.isfinite(len(known.tied))


@pytest.mark.parametrize("key", ["onnx/LabelEncoder/2", "onnx/LabelEncoder/4", "onnx/CategoryMapper/1"])
def test_lists_that_go_together_get_short_together(key):
    """Keys and values, also of what came from a file, of which nothing can be drawn again."""
    for i in range(4):
        v, inst = drawn(key, i)
        small = smallest(v, without_choices(inst), evaluations=400)
        keys = [len(x) for n, x in small.attrs.items() if n.startswith(("keys_", "values_", "cats_"))]
        assert keys == [1, 1]


def test_a_list_keeps_the_length_that_the_rank_asks_for():
    for key, slot, lists in (
        ("onnx/Conv/11", "X", ("kernel_shape", "strides", "dilations")),
        ("onnx/Transpose/13", "data", ("perm",)),
    ):
        for i in range(6):
            v, inst = drawn(key, i)
            small = smallest(v, without_choices(inst), evaluations=200)
            rank = len(small.tensor(slot).shape) - 2 * (slot == "X")
            assert {len(small.attrs[n]) for n in lists if n in small.attrs} <= {rank}


def test_a_failure_around_a_weight_that_is_a_table_gets_smaller():
    """Tables have no scales to count."""
    v = registry.dialect("nn").versions["nn/innerProduct/1"]
    drawings = (draw_case(v, v.opsets[0], 77, i, invalid=False).inst for i in range(200))
    inst = next(x for x in drawings if "lut" in (x.args["weights"].quant or ()))
    smallest(v, without_choices(inst), evaluations=100)


def test_a_constant_is_written_in_the_usual_way_unless_the_failure_takes_another():
    def encodings(inst):
        return [a.encoding for a in inst.args.values()]

    v = registry.dialect("onnx").versions["onnx/Add/14"]
    cases = (draw_case(v, 14, 77, i, invalid=False) for i in range(600))
    inst = next(c.inst for c in cases if all(encodings(c.inst)))
    assert encodings(smallest(v, inst)) == ["", ""]
    assert encodings(smallest(v, without_choices(inst))) == ["", ""]
    for start in (inst, without_choices(inst)):
        small = smallest(v, start, lambda c: c.args["A"].encoding != "")
        assert small.tensor("A").encoding
        assert not small.tensor("B").encoding
