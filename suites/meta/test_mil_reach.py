"""What the operator pages allow is drawn, what they leave open is not judged, and what they settle is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case
from harness.compare import judge
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.mil import dialect

DRAWS = 300


def drawn(key: str) -> list[Instance]:
    v = dialect.versions[f"mil/{key}"]
    return [v.draw(Prng(case_seed(33, key, i))) for i in range(DRAWS)]


def unclear(inst: Instance) -> str | None:
    return Case(dialect.versions[inst.key], inst, 0).ambiguous


def lanes_differ(inst: Instance) -> bool:
    """Whether an update goes to other places in every lane along the axis."""
    at = np.asarray(arrays_of(inst)["indices"])
    if inst.attrs.get("mode") != "update":
        return False
    axis = inst.attrs.get("axis", 0)
    at = np.moveaxis(np.where(at < 0, at + inst.tensor("data").shape[axis], at), axis, -1)
    rows = at.reshape(-1, at.shape[-1])
    return bool((rows != rows[:1]).any())


def reads_padding(inst: Instance) -> bool:
    """Whether a crop that is judged is made of the padding alone at some point."""
    value = inst.attrs.get("pad_value", 0.0)
    if value not in (-7.75, 5.25) and not value:
        return False
    with np.errstate(all="ignore"):
        y = np.asarray(dialect.evaluate(inst, arrays_of(inst))[0].value)
    return bool((y == value).any()) and unclear(inst) is None


REACHED: dict[str, list[Callable[[Instance], Any]]] = {
    "crop_resize/ios15": [lambda i: i.attrs.get("spatial_scale", 1.0) < 1],
    "crop_resize/ios16": [lambda i: i.attrs.get("spatial_scale", 1.0) < 1, reads_padding],
    "crop_resize/ios17": [lambda i: i.attrs.get("spatial_scale", 1.0) < 1, reads_padding],
    "scatter_along_axis/ios15": [lanes_differ],
    "scatter_along_axis/ios17": [lanes_differ],
    "topk/ios16": [lambda i: i.attrs.get("return_indices") is True, lambda i: i.attrs.get("return_indices") is False],
    "gru/ios15": [lambda i: i.args["x"].shape[0] > 2 and i.attrs.get("output_sequence") and unclear(i) is None],
    "gru/ios18": [lambda i: i.args["x"].shape[0] > 2 and "input_bias" in i.args and unclear(i) is None],
    "scaled_dot_product_attention/ios18": [
        lambda i: "attn_mask" in i.args and len(i.args["attn_mask"].shape) == 1,
        lambda i: "attn_mask" in i.args and i.args["attn_mask"].shape[-2:-1] == (1,) != i.args["query"].shape[-2:-1],
    ],
    "complex_fftn/ios15": [
        lambda i: i.attrs.get("shapes") and not i.attrs.get("dims"),
        lambda i: -1 in (i.attrs.get("shapes") or ()),
    ],
    "complex_stft/ios15": [
        lambda i: "window" in i.args and i.args["window"].shape[0] < i.attrs["n_fft"],
        lambda i: "window" not in i.args and i.attrs.get("win_length", 99) < i.attrs["n_fft"],
    ],
    "select/ios15": [
        lambda i: len(i.args["cond"].shape) == 0 < len(i.args["a"].shape),
        lambda i: len(i.args["a"].shape) == len(i.args["b"].shape) == 0 < len(i.args["cond"].shape),
    ],
    "cond/ios15": [
        lambda i: any(n.op == "cond" for n in i.attrs["_true_fn"].nodes),
        lambda i: {"x", "n", "b"} <= set(i.args),
        lambda i: len(i.attrs["_true_fn"].nodes) > len(i.attrs["_false_fn"].nodes) + 2,
    ],
    "while_loop/ios15": [
        lambda i: len({a.dtype for a in i.args["loop_vars"]}) > 2,
        lambda i: len({a.shape for a in i.args["loop_vars"]}) > 2,
        lambda i: any(slot.startswith("far") for slot in i.args),
        lambda i: any(o == n for (n, _), o in zip(i.attrs["_body"].inputs, i.attrs["_body"].outputs)),
        lambda i: "acc" in i.attrs["_body"].outputs,
        lambda i: arrays_of(i)["loop_vars"][0][0] >= i.attrs["_cond"].consts["limit"],
    ],
    "expand_dims/ios15": [
        lambda i: len(i.args["x"].shape) == 4,
        lambda i: len(i.args["x"].shape) == 0 and len(i.attrs["axes"]) == 3,
    ],
    "lstm/ios15": [
        lambda i: "bias_back" in i.args and "peephole_back" in i.args and i.attrs.get("direction") != "bidirectional",
        lambda i: "bias" in i.args and "bias_back" not in i.args and i.attrs.get("direction") == "bidirectional",
        lambda i: "peephole" not in i.args and "peephole_back" in i.args,
    ],
    "layer_norm/ios15": [
        lambda i: (
            "gamma" in i.args
            and i.attrs.get("axes")
            and max(a % len(i.args["x"].shape) for a in i.attrs["axes"]) < len(i.args["x"].shape) - 1
        )
    ],
    "einsum/ios15": [
        lambda i: 1 == i.args["values"][0].shape[-2] < i.args["values"][1].shape[-2],
        lambda i: i.args["values"][0].shape[0] > i.args["values"][1].shape[0] == 1 and "n" in i.attrs["equation"],
    ],
    "quantize/ios17": [lambda i: "zero_point" in i.args and (np.asarray(arrays_of(i)["zero_point"]) < 0).any()],
    "slice_by_index/ios15": [
        lambda i: any(
            m and e not in (b + 1, i.args["x"].shape[k])
            for k, (m, b, e) in enumerate(
                zip(i.attrs.get("squeeze_mask", ()), *(np.ravel(arrays_of(i)[n]).tolist() for n in ("begin", "end")))
            )
        )
    ],
}


@pytest.mark.parametrize("key", REACHED)
def test_what_the_page_allows_is_drawn(key: str) -> None:
    instances = drawn(key)
    for k, reached in enumerate(REACHED[key]):
        assert any(reached(i) for i in instances), f"{key}: what condition {k} asks for is never drawn"


FIVE = ["gather/ios15", "gather/ios17", "gather_nd/ios16", "gather_nd/ios17", "scatter_nd/ios15"]


@pytest.mark.parametrize("key", FIVE)
def test_no_tensor_has_more_than_five_axes(key: str) -> None:
    for i in drawn(key):
        shapes = [a.shape for a in i.args.values()]
        shapes += [np.shape(e.value) for e in dialect.evaluate(i, arrays_of(i))]
        assert max(map(len, shapes)) <= 5


@pytest.mark.parametrize(
    "key", ["slice_by_index/ios15", "slice_update/ios18", "crop_resize/ios17", "non_maximum_suppression/ios15"]
)
def test_most_of_what_is_drawn_is_judged(key: str) -> None:
    """Half of it at least: the pages leave something open for each of these."""
    assert sum(unclear(i) is None for i in drawn(key)) > DRAWS / 2


ledger = cache(load_ledger)


def told(case: Case, *values: Any) -> Verdict:
    """Of an answer, with the ledger at hand."""
    outputs = [np.asarray(v, e.value.dtype) for v, e in zip(values, case.expected[0])]
    return judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, outputs, "run")], ledger()).verdict


@pytest.mark.parametrize("key", ["lstm/ios15", "lstm/ios17", "rnn/ios17", "gru/ios18"])
def test_a_reversed_sequence_has_one_order_or_the_other(key: str) -> None:
    """The pages say reverse, and nothing of the order in which the steps come out."""
    seen = 0
    for i in drawn(key):
        if i.attrs.get("direction") != "reverse" or i.args["x"].shape[0] == 1 or not i.attrs.get("output_sequence"):
            continue
        if max(n for a in i.args.values() if isinstance(a, Arg) for n in (*a.shape, 0)) > 32:
            continue  # long sums have wide bounds
        case = Case(dialect.versions[i.key], i, 0)
        y, *ends = (e.value for e in case.expected[0])
        if not all(np.isfinite(e.error.bound(e.context())).all() for e in case.expected[0]):
            continue
        if (
            case.ambiguous is not None
            or not y.size
            or not np.abs(y.astype(float)).max() < 100
            or np.abs(y - y[::-1]).max() < 0.1
        ):
            continue
        seen += 1
        assert told(case, y[::-1], *ends) is Verdict.AMBIGUOUS
        assert told(case, y[::-1] + y.dtype.type(0.5), *ends) is Verdict.MISMATCH
        assert told(case, y[::-1], *(-e - e.dtype.type(1) for e in ends)) is Verdict.MISMATCH
    assert seen > 5


def test_integers_between_two_elements_are_not_judged() -> None:
    """resize iOS17: OFFSET_CORNERS samples between the elements at the same extent, too; no rounding is stated."""

    def size(mode: str) -> str | None:
        attrs = {"resized_dims": 1, "sampling_mode": mode}
        args = {
            "x": {"dtype": "i32", "shape": [1, 1, 3], "values": [0, 5, 7]},
            "shape": {"dtype": "i32", "shape": [1], "values": [3]},
        }
        fields = {"format": 1, "dialect": "mil", "op": "resize", "version": "ios17", "opset": "ios17", "outs": 1}
        return unclear(Instance.from_json({**fields, "attrs": attrs, "args": args}))

    assert size("OFFSET_CORNERS") is not None
    assert size("DEFAULT") is None
    assert size("ALIGN_CORNERS") is None


@pytest.mark.parametrize("key", ["scatter/ios17", "scatter_along_axis/ios15", "scatter_nd/ios15"])
def test_nan_among_extremes_is_not_judged(key: str) -> None:
    """As of maximum and minimum: no page says whether it wins."""
    seen = 0
    for i in drawn(key):
        if i.attrs.get("mode") in ("max", "min"):
            a = arrays_of(i)
            if any(np.isnan(np.asarray(a[n], np.float64)).any() for n in ("data", "updates")):
                seen += 1
                assert unclear(i) is not None
    assert seen


def gru(version: str, **attrs: Any) -> Case:
    """Two units, one step: r is sigmoid([1, 3]), z is sigmoid(0), the recurrent product swaps the units."""
    args = {
        "x": ("f32", [1, 1, 1], [0.0]),
        "initial_h": ("f32", [1, 2], [1.0, 2.0]),
        "weight_ih": ("f32", [6, 1], [0.0] * 6),
        "weight_hh": ("f32", [6, 2], [1.0, 0.0, 0.0, 1.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        "bias": ("f32", [6], [0.0, 0.0, 1.0, 3.0, 0.0, 0.0]),
    }
    fields = {
        "format": 1,
        "dialect": "mil",
        "op": "gru",
        "version": version,
        "opset": version,
        "outs": 2,
        "attrs": {"activation": "linear", **attrs},
    }
    fields["args"] = {k: dict(zip(("dtype", "shape", "values"), a)) for k, a in args.items()}
    inst = Instance.from_json(fields)
    return Case(dialect.version_of(inst), inst, 0)


@pytest.mark.parametrize(
    ("version", "attrs", "open_to"),
    [
        ("ios15", {}, {"state", "product"}),
        ("ios18", {}, {"state", "product"}),
        ("ios18", {"reset_after": True}, {"state", "product", "bias"}),
    ],
)
def test_the_reset_gate_has_the_listed_readings_only(version: str, attrs: Any, open_to: set[str]) -> None:
    """In the formula b_ho stands outside of what r_t multiplies; the text of iOS 18 puts the gate in front."""
    h, u, b = np.array([1.0, 2.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 3.0])
    r = 1 / (1 + np.exp(-np.array([1.0, 3.0])))
    ways = {"state": u @ (r * h) + b, "product": r * (u @ h) + b, "bias": r * (u @ h + b), "none": u @ h + b}
    case = gru(version, **attrs)
    for way, inner in ways.items():
        y = 0.5 * inner + 0.5 * h
        found = told(case, y.reshape(1, 1, 2), y.reshape(1, 2))
        assert (found in (Verdict.AGREE, Verdict.AMBIGUOUS)) == (way in open_to), (way, found)


@pytest.mark.parametrize("key", ["lstm/ios17", "gru/ios17", "rnn/ios17"])
def test_a_state_beyond_the_type_is_not_judged(key: str) -> None:
    """What infinities meet depends on how the equations are grouped; the meaning says so, in all systems.  Operands
    that are infinite or NaN are another matter."""
    for i in drawn(key):
        given = [np.asarray(a, np.float64) for a in arrays_of(i).values()]
        if all(np.isfinite(a).all() for a in given) and unclear(i) is None:
            assert all(np.isfinite(np.asarray(e.value, np.float64)).all() for e in dialect.evaluate(i, arrays_of(i)))


def test_same_padding_has_the_listed_readings_only() -> None:
    """conv: ceil(d_in / stride) elements, as same of other systems, or the amounts that the page prints."""
    fields = {"format": 1, "dialect": "mil", "op": "conv", "version": "ios15", "opset": "ios16", "outs": 1}
    args = {
        "x": {"dtype": "f32", "shape": [1, 1, 4], "values": [1, 2, 4, 8]},
        "weight": {"dtype": "f32", "shape": [1, 1, 3], "values": [1, 10, 100]},
    }
    attrs = {"pad_type": "same", "strides": [2]}
    inst = Instance.from_json({**fields, "attrs": attrs, "args": args})
    case = Case(dialect.version_of(inst), inst, 0)
    assert told(case, [[[421.0, 84.0]]]) is Verdict.AGREE  # (0, 1)
    assert told(case, [[[210.0, 842.0]]]) is Verdict.AMBIGUOUS  # (1, 1), as printed
    assert told(case, [[[210.0, 84.0]]]) is Verdict.MISMATCH
    assert told(case, [[[210.0, 421.0]]]) is Verdict.MISMATCH


def test_boxes_beyond_the_image_read_the_pad_value() -> None:
    """crop_resize iOS16: pad_value, as extrapolation_value of tf.image.crop_and_resize."""

    def crop(box: list[float], version: str = "ios16") -> tuple[list[float], str | None]:
        inst = Instance.from_json(
            {
                "format": 1,
                "dialect": "mil",
                "op": "crop_resize",
                "version": version,
                "opset": version,
                "attrs": {
                    "target_height": 1,
                    "target_width": 3,
                    "sampling_mode": "ALIGN_CORNERS",
                    **({} if version == "ios15" else {"pad_value": 9.0}),
                },
                "args": {
                    "x": {"dtype": "f32", "shape": [1, 1, 1, 3], "values": [1.0, 2.0, 3.0]},
                    "roi": {"dtype": "f32", "shape": [1, 1, 4, 1, 1], "values": box},
                },
                "outs": 1,
            }
        )
        return np.ravel(dialect.evaluate(inst, arrays_of(inst))[0].value).tolist(), unclear(inst)

    assert crop([0.0, 1.0, 0.0, 3.0]) == ([2.0, 3.0, 9.0], None)
    assert crop([0.0, -2.0, 0.0, 0.0]) == ([9.0, 9.0, 1.0], None)
    assert crop([0.0, 1.0, 0.0, 4.0])[1] is not None  # a point at 2.5: pad value, or half of it
    assert crop([0.0, 1.0, 0.0, 3.0], "ios15")[1] is not None


@pytest.mark.parametrize("version", ["ios15", "ios17"])
def test_only_the_boxes_that_survive_are_judged(version: str) -> None:
    """The pages do not say what the outputs are padded with."""
    old, padded, removed = version == "ios15", 0, 0
    for inst in drawn(f"non_maximum_suppression/{version}"):
        expected = dialect.evaluate(inst, arrays_of(inst))
        index = np.asarray(expected[2].value)
        if not (index < 0).any() or not (index >= 0).any() or unclear(inst) is not None:
            continue
        padded += 1

        def seen(k: int, at: tuple[Any, ...], value: float) -> Verdict:
            outputs = [np.array(e.value) for e in expected]  # noqa: B023
            outputs[k][at] = value
            return judge(expected, Outcome(Status.VALUE, outputs)).verdict  # noqa: B023

        free, kept = tuple(np.argwhere(index < 0)[0]), tuple(np.argwhere(index >= 0)[0])
        box = (lambda b, m: (b, m, 0)) if old else (lambda b, m: (b, 0, m))
        assert seen(2, free, 77) != Verdict.MISMATCH
        assert seen(0, box(*free), 77.0) != Verdict.MISMATCH
        gone = set(range(1, inst.tensor("boxes").shape[1 if old else 2])) - set(index[free[0]].tolist())
        for box_index in gone:  # removed for another, and selected all the same
            removed += 1
            assert seen(2, free, box_index) == Verdict.MISMATCH
        assert seen(2, free, 0) != Verdict.MISMATCH
        assert seen(2, kept, 77) == Verdict.MISMATCH
        assert seen(0, box(*kept), 77.0) == Verdict.MISMATCH
    assert padded > 5 < removed
