"""What versions of an op leave open and what they state: counts of shifts, signs of zero remainders, broken factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.cases.case import Case, fill
from harness.core.dtypes import BOOL, F32, I64
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.onnx import dialect


def _shifted(x: int, y: int, bits: int, signed: bool, left: bool) -> int:
    if not 0 <= y < bits:
        return -1 if x < 0 and not left else 0
    if not left:
        return x >> y
    kept = (x << y) & (2**bits - 1)
    return kept - 2**bits if signed and kept >= 2 ** (bits - 1) else kept


def test_every_count_has_a_result() -> None:
    v, beyond = dialect.versions["onnx/BitShift/28"], 0
    for i in range(150):
        inst = v.draw(Prng(case_seed(8, v.key, i)))
        arrays = arrays_of(inst)
        x, y = np.broadcast_arrays(arrays["X"], arrays["Y"])
        bits, left = x.dtype.itemsize * 8, inst.attrs["direction"] == "LEFT"
        want = [_shifted(a, b, bits, x.dtype.kind == "i", left) for a, b in zip(x.ravel().tolist(), y.ravel().tolist())]
        call = dialect.call_of(inst, arrays)
        assert np.ravel(v.evaluate(call)[0].value).tolist() == want, inst.dumps()
        outside = any(not 0 <= b < bits for b in y.ravel().tolist())
        beyond += outside
        assert v.underspecified(call) is None
    assert beyond > 20


@pytest.mark.parametrize(
    ("a", "b", "fmod", "other"),
    [
        (0.0, -3.0, 0, Verdict.MISMATCH),  # "if x is 0 and y is nonzero, 0 with the sign of y"
        (-0.0, 3.0, 0, Verdict.MISMATCH),
        (6.0, -3.0, 0, Verdict.AMBIGUOUS),  # "the same sign as B", but 6 - -2 * -3 is +0
        (0.0, -3.0, 1, Verdict.MISMATCH),
        (-6.0, 3.0, 1, Verdict.MISMATCH),  # "the same sign as A"
        (-0.0, -3.0, 1, Verdict.MISMATCH),
        (-0.0, 3.0, 1, Verdict.AMBIGUOUS),  # "either +0 or -0 may be returned"
    ],
)
def test_the_sign_of_a_zero_remainder(a: float, b: float, fmod: int, other: Verdict) -> None:
    tensors = {n: {"dtype": "f32", "shape": [1], "values": [v]} for n, v in (("A", a), ("B", b))}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": "Mod",
            "version": 28,
            "opset": 28,
            "outs": 1,
            "attrs": {"fmod": fmod},
            "args": tensors,
        }
    )
    case = fill(dialect.version_of(inst), inst)
    assert case.expected is not None
    want = case.expected[0][0].value
    assert want[0] == 0
    for got, verdict in ((want, Verdict.AGREE), (-want, other)):
        assert judge_case(case, BackendInfo("x"), [Outcome(Status.VALUE, [got], "run")]).verdict is verdict


def test_a_broken_factor_is_open_in_the_first_upsample_too() -> None:
    """It gives the extents alone; versions 7 and 9 are as silent on the coordinates."""
    v, seen = dialect.versions["onnx/Upsample/1"], set()
    for i in range(60):
        inst = v.draw(Prng(case_seed(8, v.key, i)))
        broken = any(inst.attrs[n] % 1 for n in ("height_scale", "width_scale"))
        why = v.underspecified(dialect.call_of(inst, arrays_of(inst)))
        assert not broken or why is not None
        seen.add(broken)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ([1.0, 1.0, 2.0], Verdict.AGREE),  # asymmetric, rounded down: 0, 0.67, 1.33
        ([1.0, 2.0, 2.0], Verdict.AMBIGUOUS),  # half a pixel: -0.17, 0.5, 1.17
        ([2.0, 1.0, 2.0], Verdict.MISMATCH),  # no rule gives the second element first
        ([1.0, 1.0], Verdict.MISMATCH),  # every rule gives floor(2 * 1.5) elements
    ],
)
def test_a_broken_factor_is_open_to_the_rules_of_resize_11_alone(answer: list[float], verdict: Verdict) -> None:
    args = {
        "X": Arg(F32, (2,), values=[1.0, 2.0]),
        "scales": Arg(F32, (1,), True, values=[1.5]),
    }
    case = fill(dialect.versions["onnx/Resize/10"], Instance("onnx", "Resize", 10, 10, {"mode": "nearest"}, args))
    got = Outcome(Status.VALUE, [np.array(answer, np.float32)], "run")
    assert judge_case(case, BackendInfo("x"), [got]).verdict is verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (0.7 / 1.25, Verdict.AGREE),  # 2.25 elements: the last lies at 1.6, the filter is stretched by 1 / 0.75
        (4 / 5, Verdict.AMBIGUOUS),  # 2 elements: it lies at 2, the filter is stretched by 3 / 2
        (5 / 6, Verdict.AMBIGUOUS),  # it lies at 2, the filter is stretched by 1 / 0.75
        (1.0, Verdict.MISMATCH),  # not stretched
    ],
)
def test_antialias_may_take_a_broken_factor_where_coordinates_take_the_extents(answer: float, verdict: Verdict) -> None:
    args = {"X": Arg(F32, (1, 3), values=[0.0, 0.0, 1.0]), "scales": Arg(F32, (1,), True, values=[0.75])}
    attrs = {"axes": [-1], "mode": "linear", "coordinate_transformation_mode": "align_corners", "antialias": 1}
    case = fill(dialect.versions["onnx/Resize/18"], Instance("onnx", "Resize", 18, 18, attrs, args))
    got = Outcome(Status.VALUE, [np.array([[0.0, answer]], np.float32)], "run")
    assert judge_case(case, BackendInfo("x"), [got]).verdict is verdict


def test_infinity_in_a_filter_opens_elements_that_touch_the_padding_alone() -> None:
    args = {
        "X": Arg(F32, (1, 1, 3), values=[1.0, 2.0, 3.0]),
        "W": Arg(F32, (1, 1, 2), values=[float("inf"), 1.0]),
    }
    case = fill(dialect.versions["onnx/Conv/11"], Instance("onnx", "Conv", 11, 11, {"pads": [1, 0]}, args))
    inf, nan = np.inf, np.nan
    for answer, verdict in (
        ([nan, inf, inf], Verdict.AGREE),  # 0 * inf
        ([1.0, inf, inf], Verdict.AMBIGUOUS),
        ([5.0, inf, inf], Verdict.MISMATCH),
        ([nan, nan, inf], Verdict.MISMATCH),
    ):
        got = Outcome(Status.VALUE, [np.array([[answer]], np.float32)], "run")
        assert judge_case(case, BackendInfo("x"), [got]).verdict is verdict, answer


@pytest.mark.parametrize("fmod", [0, 1])
def test_the_lowest_integer_modulo_minus_one_is_0(fmod: int) -> None:
    """A - floor(A / B) * B, whatever becomes of the quotient: a wrong remainder is told."""
    tensors = {n: {"dtype": "i8", "shape": [1], "values": [v]} for n, v in (("A", -128), ("B", -1))}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": "Mod",
            "version": 28,
            "opset": 28,
            "outs": 1,
            "attrs": {"fmod": fmod},
            "args": tensors,
        }
    )
    case = fill(dialect.version_of(inst), inst)
    for got, verdict in ((0, Verdict.AGREE), (-1, Verdict.MISMATCH)):
        outcome = Outcome(Status.VALUE, [np.array([got], np.int8)], "run")
        assert judge_case(case, BackendInfo("x"), [outcome]).verdict is verdict


Operand = tuple[str, list[int], list[float]]


def _verdict(op: str, version: int, attrs: dict, args: dict[str, Operand], *outs: np.ndarray) -> Verdict:
    tensors = {n: {"dtype": d, "shape": s, "values": v} for n, (d, s, v) in args.items()}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": op,
            "version": version,
            "opset": version,
            "outs": len(outs),
            "attrs": attrs,
            "args": tensors,
        }
    )
    case = fill(dialect.version_of(inst), inst)
    assert case.expected is not None
    return judge_case(case, BackendInfo("any"), [Outcome(Status.VALUE, list(outs))]).verdict


def test_a_score_beyond_the_type_opens_its_row_alone() -> None:
    """The first query makes a score of 108000, beyond f16; the second does not."""
    args = {
        "Q": ("f16", [1, 1, 2, 1], [-2000.0, 1.0]),
        "K": ("f16", [1, 1, 2, 1], [0.0, -54.0]),
        "V": ("f16", [1, 1, 2, 1], [0.0, 0.0]),
    }
    y, k, v = np.zeros((1, 1, 2, 1), np.float16), np.float16([[[[0], [-54]]]]), np.zeros((1, 1, 2, 1), np.float16)
    rows = (((0, 1), (1, 0)), ([np.nan] * 2, (1, 0)), ((0, 1), (0, 1)))
    right, lost, wrong = (np.float16([[list(pair)]]) for pair in rows)
    attrs = {"qk_matmul_output_mode": 3}
    assert _verdict("Attention", 23, attrs, args, y, k, v, right) is Verdict.AGREE
    assert _verdict("Attention", 23, attrs, args, y, k, v, lost) is Verdict.AMBIGUOUS
    assert _verdict("Attention", 23, attrs, args, y, k, v, wrong) is Verdict.MISMATCH


def test_a_state_beyond_the_type_opens_its_sequence_alone() -> None:
    """Of two sequences the first starts where its product with the weight is beyond f16."""
    args = {
        "X": ("f16", [1, 2, 1], [0.0, 0.0]),
        "W": ("f16", [1, 1, 1], [0.0]),
        "R": ("f16", [1, 1, 1], [512.0]),
        "initial_h": ("f16", [1, 2, 1], [512.0, 0.0]),
    }
    right, lost, wrong = (np.float16([[[[a], [b]]]]) for a, b in ((1, 0), (np.nan, 0), (1, np.nan)))
    attrs = {"hidden_size": 1}
    assert _verdict("RNN", 14, attrs, args, right) is not Verdict.MISMATCH
    assert _verdict("RNN", 14, attrs, args, lost) is Verdict.AMBIGUOUS
    assert _verdict("RNN", 14, attrs, args, wrong) is Verdict.MISMATCH


def test_statistics_of_f16_do_not_overflow() -> None:
    """ "The computation of ReduceMean and ReduceVar uses float": of 0 and -600 the variance is 90000."""
    one = ("f16", [1], [1.0])
    args = {
        "X": ("f16", [2, 1], [0.0, -600.0]),
        "scale": one,
        "B": ("f16", [1], [0.0]),
        "input_mean": ("f16", [1], [0.0]),
        "input_var": one,
    }
    attrs = {"training_mode": 1, "momentum": 0.5}
    outs = np.float16([[1], [-1]]), np.float16([-150]), np.float16([45000.5])
    assert _verdict("BatchNormalization", 15, attrs, args, *outs) is Verdict.AGREE
    assert _verdict("BatchNormalization", 15, attrs, args, *outs[:2], np.float16([np.inf])) is Verdict.MISMATCH


def test_a_normalised_number_overflows_where_the_result_does() -> None:
    """The largest number over a deviation below 1, times as small a scale, is one of f64."""
    args = {
        "X": ("f64", [1, 1], [-1.7976931348623157e308]),
        "scale": ("f64", [1], [0.25]),
        "B": ("f64", [1], [0.0]),
        "input_mean": ("f64", [1], [0.0]),
        "input_var": ("f64", [1], [0.25]),
    }
    due = np.array([[-1.7976931348623157e308 * 0.25 / np.sqrt(0.25 + float(np.float32(1e-5)))]])
    assert _verdict("BatchNormalization", 15, {}, args, due) is Verdict.AGREE


@pytest.mark.parametrize(("op", "version"), [("ReduceLogSum", 13), ("ReduceLogSumExp", 18)])
def test_a_logarithm_over_nothing_is_minus_infinity(op: str, version: int) -> None:
    """ReduceLogSum-13: "Reduction over an empty set of values yields minus infinity"."""
    inst = Instance("onnx", op, version, version, {"keepdims": 0}, {"data": Arg(F32, (0, 2), values=[])})
    attrs, args = ({"axes": [0]}, {}) if version < 18 else ({}, {"axes": Arg(I64, (1,), True, values=[0])})
    case = fill(dialect.version_of(inst), replace(inst, attrs={**inst.attrs, **attrs}, args={**inst.args, **args}))
    for answer, verdict in ((-np.inf, Verdict.AGREE), (np.nan, Verdict.MISMATCH), (0, Verdict.MISMATCH)):
        assert answered(case, [np.full(2, answer, np.float32)]) is verdict


@pytest.mark.parametrize(
    ("version", "attrs", "args"),
    [
        (23, {}, {"attn_mask": Arg(BOOL, (1, 2), values=[False, True])}),
        (23, {"is_causal": 1}, {}),
        (25, {"is_causal": 1}, {}),
        (24, {}, {"nonpad_kv_seqlen": Arg(I64, (1,), values=[1])}),
    ],
)
def test_a_masked_score_is_minus_infinity(version: int, attrs: dict, args: dict) -> None:
    """Attention-23: "its disallowed positions contribute -inf to the bias"; a row is fully masked where "every key's
    combined additive bias is -inf"."""
    one = Arg(F32, (1, 1, 2, 1), values=[1.0, 2.0])
    inst = Instance(
        "onnx",
        "Attention",
        version,
        version,
        {"qk_matmul_output_mode": 2, "@skipped": [1, 2], **attrs},
        {"Q": one, "K": one, "V": one, **args},
        4,
    )
    case = fill(dialect.version_of(inst), inst)
    assert case.expected
    y, *_, scores = (e.value for e in case.expected[0])
    assert np.isneginf(scores).any()
    assert np.isfinite(y).all()
    assert answered(case, [y, None, None, scores]) is Verdict.AGREE
    lowest = np.where(np.isneginf(scores), np.finfo(np.float32).min, scores)
    assert answered(case, [y, None, None, lowest]) is Verdict.MISMATCH


def _of_four_axes(**heads: int) -> Instance:
    one = Arg(F32, (1, 2, 3, 4))
    return Instance("onnx", "Attention", 23, 23, heads, {"Q": one, "K": one, "V": one}, 1)


def test_heads_that_are_stated_of_four_axes_are_those_of_the_axis() -> None:
    """Attention-23, Q: "4D tensor with shape (batch_size, q_num_heads, q_sequence_length, head_size)"."""
    for heads in ({"q_num_heads": 4, "kv_num_heads": 2}, {"q_num_heads": 2, "kv_num_heads": 1}):
        inst = _of_four_axes(**heads)
        case = fill(dialect.version_of(inst), inst)
        assert not case.expected
        assert "heads-agree" in str(case.problem)
    inst = _of_four_axes(q_num_heads=2, kv_num_heads=2)
    case = fill(dialect.version_of(inst), inst)
    plain = fill(case.version, _of_four_axes())
    assert case.expected
    assert plain.expected
    assert np.array_equal(case.expected[0][0].value, plain.expected[0][0].value)
    refused = [
        Outcome(Status.REJECTED, None, "load", "q_num_heads and kv_num_heads must not be specified for 4D inputs")
    ]
    judged = judge_case(case, BackendInfo("somebody's", "1"), refused, load_ledger())
    assert (judged.verdict, judged.ambiguity) == (Verdict.AMBIGUOUS, "onnx-attention-heads-of-four-axes")
    plainly = judge_case(plain, BackendInfo("somebody's", "1"), refused, load_ledger())
    assert plainly.verdict is Verdict.WRONGLY_REJECTED


def answered(case: Case, outputs: list) -> Verdict:
    """On outputs of a backend that no known difference names."""
    told = [Outcome(Status.VALUE, outputs)]
    return judge_case(case, BackendInfo("somebody's", "1"), told, load_ledger()).verdict


@pytest.mark.parametrize("version", [11, 12, 13])
def test_a_min_above_max_is_open_until_clip_13_states_an_order(version: int) -> None:
    """Version 13 alone says what a min above max gives; the absent max of a float is its largest finite value."""
    scalars = {"input": 0.0, "min": 3.0, "max": 2.0}
    tensors = {n: {"dtype": "f32", "shape": [], "values": [v]} for n, v in scalars.items()}
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "onnx",
            "op": "Clip",
            "version": version,
            "opset": version,
            "outs": 1,
            "attrs": {},
            "args": tensors,
        }
    )
    stated = Verdict.MISMATCH if version == 13 else Verdict.AMBIGUOUS
    case = fill(dialect.version_of(inst), inst)
    for got, verdict in ((2.0, Verdict.AGREE), (3.0, stated), (0.0, Verdict.MISMATCH)):
        outcome = Outcome(Status.VALUE, [np.array(got, np.float32)], "run")
        assert judge_case(case, BackendInfo("x"), [outcome]).verdict is verdict
    upto_inf = replace(case.inst, args={n: a for n, a in case.inst.args.items() if n != "max"})
    upto_inf.args["min"] = Arg(F32, (), values=(np.inf,))
    case = fill(dialect.version_of(upto_inf), upto_inf)
    for got in (np.float32(np.inf), np.finfo(np.float32).max):
        outcome = Outcome(Status.VALUE, [np.array(got, np.float32)], "run")
        assert judge_case(case, BackendInfo("x"), [outcome]).verdict in (
            Verdict.AGREE,
            Verdict.AMBIGUOUS,
            Verdict.UNINFORMATIVE,
        )


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (np.nan, Verdict.AGREE),  # 0 * inf of the pixel beyond
        (np.inf, Verdict.AMBIGUOUS),  # a position that is rounded
        (3.0, Verdict.AMBIGUOUS),  # a pixel of weight 0 is left out
        (2.0, Verdict.MISMATCH),
    ],
)
def test_infinity_beside_a_grid_position_on_a_pixel_is_open(answer: float, verdict: Verdict) -> None:
    args = {
        "X": Arg(F32, (1, 1, 1, 3), values=[2.0, 3.0, float("inf")]),
        "grid": Arg(F32, (1, 1, 2, 2), values=[0.0, 0.0, -1.0, 0.0]),
    }
    inst = Instance("onnx", "GridSample", 20, 20, {"align_corners": 1}, args)
    case = fill(dialect.versions["onnx/GridSample/20"], inst)
    got = Outcome(Status.VALUE, [np.array([[[[answer, 2.0]]]], np.float32)], "run")
    assert judge_case(case, BackendInfo("x"), [got]).verdict is verdict


@pytest.mark.parametrize(("version", "fits"), [(23, False), (24, True)])
def test_a_mask_ends_before_the_keys_from_version_24_on(version: int, fits: bool) -> None:
    """Attention-24: "the last dimension can also be shorter than total_sequence_length"; 23 has it broadcast alone."""
    args = {n: Arg(F32, (1, 1, 3, 1), values=[1.0, 2.0, 3.0]) for n in "QKV"}
    args["attn_mask"] = Arg(BOOL, (3, 2), values=[True] * 6)
    case = fill(dialect.versions[f"onnx/Attention/{version}"], Instance("onnx", "Attention", version, 24, {}, args))
    assert bool(case.expected) is fits


@pytest.mark.parametrize(("version", "first"), [(23, 2.0), (24, 1.0)])
def test_a_mask_of_one_column_is_broadcast_before_version_24(version: int, first: float) -> None:
    """Three keys that weigh the same; from 24 on the mask ends before the second one."""
    args = {"Q": Arg(F32, (1, 1, 1, 1), values=[0.0]), "K": Arg(F32, (1, 1, 3, 1), values=[1.0, 2.0, 3.0])}
    args |= {"V": args["K"], "attn_mask": Arg(F32, (1, 1), values=[0.5])}
    case = fill(dialect.versions[f"onnx/Attention/{version}"], Instance("onnx", "Attention", version, 24, {}, args))
    assert case.expected is not None
    assert np.allclose(case.expected[0][0].value, first)


def test_a_range_without_end_has_a_reference() -> None:
    args = {"x": Arg(F32, (2,), values=[float("-inf"), 1.0])}
    inst = Instance("onnx", "DynamicQuantizeLinear", 11, 11, {}, args, 3)
    case = fill(dialect.versions["onnx/DynamicQuantizeLinear/11"], inst)
    answers = [np.array([7, 9], np.uint8), np.float32(5), np.uint8(3)]
    got = Outcome(Status.VALUE, [np.asarray(a) for a in answers], "run")
    assert judge_case(case, BackendInfo("x"), [got]).verdict is Verdict.AMBIGUOUS


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ([2.0, 0.0], Verdict.AGREE),  # the beginning is cut
        ([3e38, 2.0], Verdict.AMBIGUOUS),  # the end is cut, and 3e38 + 3e38 - 3e38 is summed exactly
        ([np.inf, 2.0], Verdict.AMBIGUOUS),
        ([np.nan, 2.0], Verdict.AMBIGUOUS),
        ([3e38, np.inf], Verdict.MISMATCH),  # no reading overflows there
        ([3e38, 1.0], Verdict.MISMATCH),
    ],
)
def test_a_sum_that_overflows_in_one_reading_of_convtranspose_1_is_open(answer: list[float], verdict: Verdict) -> None:
    """All sums of the first image are [3e38, 2, 0], of which SAME cuts one; the second has an infinity."""
    big, inf = 3e38, np.inf
    args: dict[str, Operand] = {
        "X": ("f32", [2, 3, 2], [big, 2.0, big, 0.0, -big, 0.0, inf, 1.0, 0.0, 0.0, 0.0, 0.0]),
        "W": ("f32", [3, 1, 2], [1.0, 0.0] * 3),
    }
    got = np.array([[answer], [[np.nan, 0.0]]], np.float32)
    assert _verdict("ConvTranspose", 1, {"auto_pad": "SAME_UPPER"}, args, got) is verdict


@pytest.mark.parametrize("version", [1, 11])
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ([0.0, 5.0, 0.0, 0.0, 7.0, 0.0], Verdict.AGREE),  # -2 cells of padding: one more on either side
        ([5.0, 0.0, 0.0, 7.0], Verdict.AMBIGUOUS),  # none
        ([5.0, 0.0, 0.0, 7.0, 0.0, 0.0], Verdict.MISMATCH),  # none, but as many elements
        ([7.0, 0.0, 0.0, 5.0], Verdict.MISMATCH),
        ([5.0, 0.0, 0.0], Verdict.MISMATCH),
    ],
)
def test_a_stride_above_the_window_of_convtranspose_pads_or_not(
    version: int, answer: list[float], verdict: Verdict
) -> None:
    """3 * (2 - 1) + 1 elements are 2 fewer than 2 * 3: what SAME wants is no padding."""
    args: dict[str, Operand] = {"X": ("f32", [1, 1, 2], [5.0, 7.0]), "W": ("f32", [1, 1, 1], [1.0])}
    got = np.array([[answer]], np.float32)
    assert _verdict("ConvTranspose", version, {"auto_pad": "SAME_LOWER", "strides": [3]}, args, got) is verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ([0.0, 5.0, 0.0, 7.0, 0.0, 0.0], Verdict.AGREE),  # -3 cells, halved downwards: 1 and 2 more
        ([0.0, 0.0, 5.0, 0.0, 7.0, 0.0], Verdict.AMBIGUOUS),  # halved towards 0
        ([5.0, 0.0, 7.0, 0.0, 0.0, 0.0], Verdict.AMBIGUOUS),  # none
        ([0.0, 0.0, 0.0, 5.0, 0.0, 7.0], Verdict.MISMATCH),
        ([5.0, 0.0, 7.0], Verdict.MISMATCH),  # output_shape states the extent
    ],
)
def test_an_output_shape_beyond_all_sums_is_padded_on_either_side_or_at_the_end(
    answer: list[float], verdict: Verdict
) -> None:
    args: dict[str, Operand] = {"X": ("f32", [1, 1, 2], [5.0, 7.0]), "W": ("f32", [1, 1, 1], [1.0])}
    got = np.array([[answer]], np.float32)
    assert _verdict("ConvTranspose", 11, {"output_shape": [6], "strides": [2]}, args, got) is verdict
