"""What options and operands mean that few models use, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import F32, I16
from harness.core.errors import RuleError
from harness.core.instance import Instance, encode_value
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.tflite import dialect
from suites.tflite.ops.quantised_linear import _Weights
from suites.tflite.ops.stablehlo import body


def evaluated(op: str, version: Any, args: Any, outs: int = 1, **attrs: Any) -> list[Any]:
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": op,
            "version": version,
            "opset": 1,
            "outs": outs,
            "attrs": attrs,
            "args": {n: {"dtype": t, "shape": s, "values": v} for n, (t, s, v) in args.items()},
        }
    )
    return [e.value for e in dialect.evaluate(inst, arrays_of(inst))]


def rnn(aux: Any = None, weights: bool = False) -> tuple[Any, Any]:
    """Two steps, one unit each way: h = x + h / 2 forward, 2 x + h backward; auxiliary weights 10 and 100."""
    args: dict[str, Any] = {"input": ("f32", [1, 2, 1], [1, 3])}
    for prefix, w, r in (("fw_", 1, 0.5), ("bw_", 2, 1)):
        args |= {
            f"{prefix}input_to_input_weights": ("f32", [1, 1], [w]),
            f"{prefix}bias": ("f32", [1], [0]),
            f"{prefix}recurrent_weights": ("f32", [1, 1], [r]),
            f"{prefix}hidden_state": ("f32", [1, 1], [0]),
        }
    if aux is not None:
        args["aux_input"] = ("f32", [1, 2, 1], aux)
    if weights:
        args |= {"fw_aux_weights": ("f32", [1, 1], [10]), "bw_aux_weights": ("f32", [1, 1], [100])}
    fw, bw = evaluated("BIDIRECTIONAL_SEQUENCE_RNN", 1, args, 2, fused_activation_function="NONE")
    return fw.ravel().tolist(), bw.ravel().tolist()


def test_an_auxiliary_input_is_added_with_weights_and_takes_the_backward_place_without() -> None:
    assert rnn() == ([1, 3.5], [8, 6])
    assert rnn([5, 7]) == ([1, 3.5], [24, 14])  # parallel linking
    assert rnn([5, 7], True) == ([51, 98.5], [502 + 706, 706])  # cross-linking


@pytest.mark.parametrize(
    ("values", "to", "want"),
    [
        ([1.5, -2.75], "c64", [1.5, -2.75]),
        ([3, 4], "i32", [3, 4]),
    ],
)
def test_a_cast_from_complex_numbers_keeps_the_real_part(values: Any, to: Any, want: Any) -> None:
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": "CAST",
            "version": 9,
            "opset": 1,
            "outs": 1,
            "attrs": {"@outputs": [{"dict": {"dtype": to}}]},
            "args": {"input": {"dtype": "c64", "shape": [2], "values": [{"c": [v, 9.0]} for v in values]}},
        }
    )
    (e,) = dialect.evaluate(inst, arrays_of(inst))
    assert e.value.real.tolist() == want
    assert e.value.imag.tolist() == ([9, 9] if to == "c64" else [0, 0])


def test_a_cast_to_complex_numbers_has_no_imaginary_part() -> None:
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "tflite",
            "op": "CAST",
            "version": 9,
            "opset": 1,
            "outs": 1,
            "attrs": {"@outputs": [{"dict": {"dtype": "c64"}}]},
            "args": {"input": {"dtype": "i32", "shape": [2], "values": [-3, 7]}},
        }
    )
    (e,) = dialect.evaluate(inst, arrays_of(inst))
    assert e.value.dtype == np.complex64
    assert e.value.tolist() == [-3, 7]


def scatter(index_dim: Any, shape: Any, values: Any) -> Any:
    """Rows 10, 20, 30 kept where the index tuples say, in a matrix of [2, 2]."""
    attrs = {
        "update_window_dims": [],
        "inserted_window_dims": [0, 1],
        "scatter_dims_to_operand_dims": [0, 1],
        "index_vector_dim": index_dim,
        "update_computation_subgraph_index": encode_value(body("update", F32)),
    }
    args = {
        "input": ("f32", [2, 2], [1, 2, 3, 4]),
        "scatter_indices": ("i32", shape, values),
        "updates": ("f32", [3], [10, 20, 30]),
    }
    return evaluated("STABLEHLO_SCATTER", 1, args, **attrs)[0].ravel().tolist()


def test_scatter_takes_index_tuples_along_any_axis_and_leaves_out_what_lies_outside() -> None:
    assert scatter(1, [3, 2], [0, 1, 1, 0, 2, 0]) == [1, 10, 20, 4]
    assert scatter(0, [2, 3], [0, 1, -1, 1, 0, 1]) == [1, 10, 20, 4]


@pytest.mark.parametrize(
    ("op", "slot", "shape"),
    [
        ("RNN", "bias", (1, 1)),
        ("RNN", "input_weights", (7, 7)),
        ("SVDF", "input_gate_bias", (9,)),
        ("SVDF", "time_weights", (1, 1, 1)),
        ("BIDIRECTIONAL_SEQUENCE_RNN", "bw_bias", (1, 1)),
        ("LSTM", "cell_bias", (9,)),
        ("LSTM", "recurrent_to_cell_weights", (9, 9)),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "projection_bias", (9,)),
    ],
)
def test_an_operand_of_a_cell_has_the_shape_that_its_products_ask_for(op: str, slot: str, shape: Any) -> None:
    v = dialect.versions[f"tflite/{op}/1"]
    refused = 0
    for i in range(40):
        inst = v.draw(Prng(case_seed(5, v.key, i)), 1)
        if slot in inst.args:
            inst.tensor(slot).shape, inst.tensor(slot).values = shape, None
            with pytest.raises(RuleError, match="shapes-stated: "):
                dialect.evaluate(inst, arrays_of(inst))
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("rule", "op", "slot", "shape"),
    [
        ("shapes-stated", "STABLEHLO_SHIFT_LEFT", "rhs", ()),
        ("one-per-axis", "STABLEHLO_PAD", "operand", (2, 1, 1, 1, 1, 1, 1, 1, 1)),
    ],
)
def test_an_operand_that_stablehlo_rules_out_is_refused(rule: str, op: str, slot: str, shape: Any) -> None:
    v = dialect.versions[f"tflite/{op}/1"]
    for i in range(20):
        inst = v.draw(Prng(case_seed(5, v.key, i)), 1)
        if inst.tensor(slot).shape == shape:
            continue  # what the others are beside it
        inst.tensor(slot).shape, inst.tensor(slot).values = shape, None
        with pytest.raises(RuleError, match=f"{rule}: "):
            dialect.evaluate(inst, arrays_of(inst))


def test_shuffled_weights_are_those_of_the_blocks() -> None:
    """The loops of toco's shuffle_fc_weights.cc, from a matrix to what a file holds; the codec goes back."""
    w = np.arange(8 * 32, dtype=np.uint8).reshape(8, 32)
    stored = [
        w[r + i, c + j] ^ np.uint8(0x80)
        for r in range(0, 8, 4)
        for c in range(0, 32, 16)
        for i in range(4)
        for j in range(16)
    ]

    call: Any = SimpleNamespace(
        inputs={"input": np.zeros((4, 32), np.uint8), "filter": np.array(stored, np.uint8).reshape(8, 32)},
        quant={"input": {"zero_point": [128]}, "filter": {"zero_point": [128]}},
        attr=lambda name, default: "SHUFFLED4x16INT8",
        declared=lambda i: {"dtype": I16, "quant": {"zero_point": [0]}},
    )
    assert (_Weights().decode(call) == w).all()
