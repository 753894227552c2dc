"""What single sentences of the operator pages ask for, and what no page says: one case each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case, fill
from harness.core.dtypes import BY_NAME, F32, I32, int_range
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import registry
from harness.declare.invalid import draw_invalid, invalid_generators_of
from harness.declare.op_version.nearby import beside, takes
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import literal
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.mil import dialect
from suites.mil.builder import letter_types
from suites.semantics.fourier import fft

SOMEBODY = BackendInfo("somebody")
ledger = cache(load_ledger)


def case(op: str, version: str, args: dict[str, Any], opset: str = "ios18", outs: int = 1, **attrs: Any) -> Case:
    """args: slot -> (type, shape, values)."""
    inst = Instance.from_json(
        {
            "format": 1,
            "dialect": "mil",
            "op": op,
            "version": version,
            "opset": opset,
            "outs": outs,
            "attrs": attrs,
            "args": {k: dict(zip(("dtype", "shape", "values"), a)) for k, a in args.items()},
        }
    )
    return fill(dialect.version_of(inst), inst)


def verdict(c: Case, *values: Any) -> Verdict:
    """On an answer of these elements, each in the type and shape of what is expected."""
    assert c.expected is not None, c.problem
    outputs = [np.array(v, e.value.dtype).reshape(e.value.shape) for v, e in zip(values, c.expected[0])]
    return judge_case(c, SOMEBODY, [Outcome(Status.VALUE, outputs, "run")], ledger()).verdict


def drawn(key: str, count: int = 300) -> list[Instance]:
    v = dialect.versions[f"mil/{key}"]
    return [v.draw(Prng(case_seed(41, key, i))) for i in range(count)]


def answer(c: Case) -> list[Any]:
    assert c.expected is not None, c.problem
    return c.expected[0][0].value.tolist()


# -- integers


def test_a_power_of_two_that_an_integer_holds_is_judged():
    c = case("exp2", "ios15", {"x": ("i32", [4], [-1, 3, 30, 31])})
    assert verdict(c, [0, 8, 2**30, -(2**31)]) is Verdict.AGREE
    assert verdict(c, [1, 8, 2**30, 2**31 - 1]) is Verdict.AMBIGUOUS
    assert verdict(c, [0, 9, 2**30, -(2**31)]) is Verdict.MISMATCH


@pytest.mark.parametrize(
    ("op", "values", "right", "other"),
    [
        ("add", ([2**31 - 1, 1], [1, 1]), [-(2**31), 2], [2**31 - 1, 2]),
        ("sub", ([-(2**31), 1], [1, 1]), [2**31 - 1, 0], [-(2**31), 0]),
        ("mul", ([2**16, 3], [2**16, 3]), [0, 9], [2**31 - 1, 9]),
        ("square", ([2**16, 3],), [0, 9], [2**31 - 1, 9]),
        ("abs", ([-(2**31), -3],), [-(2**31), 3], [2**31 - 1, 3]),
    ],
)
def test_what_overflows_is_open_and_nothing_else(op: str, values: Any, right: list[int], other: list[int]) -> None:
    c = case(op, "ios15", {n: ("i32", [2], v) for n, v in zip("xy", values)})
    assert verdict(c, right) is Verdict.AGREE
    assert verdict(c, other) is Verdict.AMBIGUOUS
    assert verdict(c, [other[0], 7]) is Verdict.MISMATCH


def test_the_limit_of_integers_is_an_integer() -> None:
    for inst in drawn("threshold/ios15"):
        if inst.tensor("x").dtype.kind == "i":
            assert inst.attrs["alpha"] == int(inst.attrs["alpha"])


def test_a_tie_of_the_quotient_is_open_whatever_the_zero_point() -> None:
    """round(input / scale) + zero_point: -15.078125 / 0.217041015625 is -69.47, and -69.5 in f16."""
    c = case(
        "quantize",
        "ios17",
        {
            "input": ("f16", [2], [-15.078125, 3.0]),
            "scale": ("f16", [], [0.217041015625]),
            "zero_point": ("i8", [], [70]),
        },
        output_dtype={"dtype": "i8"},
    )
    assert verdict(c, [1, 84]) is Verdict.AGREE
    assert verdict(c, [0, 84]) is Verdict.AMBIGUOUS
    assert verdict(c, [2, 84]) is verdict(c, [0, 85]) is Verdict.MISMATCH


# -- limits, masks, blocks


def test_limits_may_meet_before_ios17_only() -> None:
    """clip iOS17: "it uses strict validation to ensure that alpha < beta"."""
    x = {"x": ("f32", [3], [-5.0, 0.0, 5.0])}
    assert answer(case("clip", "ios15", x, "ios15", alpha=1.0, beta=1.0)) == [1.0, 1.0, 1.0]
    assert answer(case("clip", "ios17", x, alpha=-3.0, beta=-1.0)) == [-3.0, -1.0, -1.0]
    for beta in (1.0, 0.5):
        c = case("clip", "ios17", x, alpha=1.0, beta=beta)
        assert c.expected is None
        assert "limits-in-order" in c.problem
    old, new = ([(i.attrs["alpha"], i.attrs["beta"]) for i in drawn(f"clip/{v}")] for v in ("ios15", "ios17"))
    for limits in (old, new):
        assert any(low > 0 for low, _ in limits)
        assert any(high < 0 for _, high in limits)
    assert any(low == high for low, high in old)
    assert all(low < high for low, high in new)


def test_a_float_mask_has_the_type_of_the_query() -> None:
    """scaled_dot_product_attention: "either be bool or float matching query, key, or value"."""
    seen = [(i, i.args["attn_mask"]) for i in drawn("scaled_dot_product_attention/ios18") if "attn_mask" in i.args]
    kinds = [m.dtype.kind for _, m in seen]
    assert min(kinds.count("b"), kinds.count("f")) > len(seen) / 4
    assert all(m.dtype.kind == "b" or m.dtype is i.args["query"].dtype for i, m in seen)
    assert any(m.dtype.kind == "f" and -np.inf in (m.values or ()) for _, m in seen)
    one = ("f32", [1, 1, 1], [1.0])
    c = case(
        "scaled_dot_product_attention",
        "ios18",
        {"query": one, "key": one, "value": one, "attn_mask": ("f16", [1, 1, 1], [1.0])},
    )
    assert c.expected is None
    assert "mask-kind" in c.problem


@pytest.mark.parametrize("op", ["depth_to_space", "space_to_depth"])
def test_a_block_is_greater_than_one(op: str) -> None:
    """ "Must be greater than 1": pixel_shuffle and pixel_unshuffle do not say so."""
    blocks = {i.attrs["block_size"] for i in drawn(f"{op}/ios15")}
    assert blocks >= {2, 3, 4}
    assert min(blocks) == 2
    c = case(op, "ios15", {"x": ("f32", [1, 1, 1, 1], [1.0])}, block_size=1)
    assert c.expected is None
    assert "block-above-one" in c.problem
    assert answer(case("pixel_shuffle", "ios15", {"x": ("f32", [1, 1, 1, 1], [1.0])}, upscale_factor=1)) == [[[[1.0]]]]


def test_slopes_have_either_sign() -> None:
    for key, slot in (("prelu/ios15", "alpha"), ("softplus_parametric/ios17", "beta")):
        recipes = {(i.args[slot].recipe, *(i.args[slot].values or ())[:1]) for i in drawn(key)}
        assert {("uniform:-2:2",), ("uniform:0.125:2",)} <= recipes
    assert any((i.args["alpha"].values or [1])[0] < 0 for i in drawn("prelu/ios17"))


# -- shapes


def test_gamma_follows_the_axes_as_they_are_named() -> None:
    """layer_norm: "the shape must be x.shape[axes]"; the package wants the order of x where axes do not rise."""
    x = ("f32", [1, 2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    gamma = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    c = case("layer_norm", "ios15", {"x": x, "gamma": ("f32", [3, 2], gamma.ravel().tolist())}, axes=[2, 1])
    plain = np.array(answer(case("layer_norm", "ios15", {"x": x}, axes=[2, 1])))
    assert np.allclose(answer(c), plain * gamma.T)
    assert c.ambiguous is not None
    seen = [
        ([a % len(i.args["x"].shape) for a in i.attrs["axes"]], i)
        for i in drawn("layer_norm/ios15")
        if i.attrs.get("axes")
    ]
    assert any(axes != sorted(axes) for axes, _ in seen)
    assert any(min(i.attrs["axes"]) < 0 <= max(i.attrs["axes"]) for _, i in seen)
    assert all(axes == sorted(axes) or not {"gamma", "beta"} & set(i.args) for axes, i in seen)


@pytest.mark.parametrize("version", ["ios15", "ios17"])
def test_a_scalar_is_reshaped(version: str) -> None:
    """reshape: x is "an n-D tensor or a scalar"."""
    assert any(i.args["x"].shape == () for i in drawn(f"reshape/{version}"))


def test_any_number_of_axes_is_resized() -> None:
    """resize: x is a tensor of any rank, resized_dims at most as many as shape has entries."""
    seen = drawn("resize/ios17")
    assert {i.attrs["resized_dims"] for i in seen} == {0, 1, 2, 3}
    assert {len(i.args["x"].shape) for i in seen} == {0, 1, 2, 3, 4, 5}
    assert all(i.args["shape"].shape[0] >= i.attrs["resized_dims"] for i in seen)


def test_what_an_image_is_padded_with_bounds_the_error_too() -> None:
    """resample: weights of a position that is rounded, of a padding value beside an image of zeros."""
    at = {"coordinates": ("f32", [1, 1, 1, 2], [5.3, 0.0])}
    c = case(
        "resample",
        "ios15",
        {"x": ("f32", [1, 1, 1, 6], [0.0] * 6), **at},
        sampling_mode="bilinear",
        padding_mode="constant",
        padding_value=2.0,
        coordinates_mode="unnormalized",
        align_corners=True,
    )
    (y,) = np.ravel(answer(c))
    assert abs(y - 0.6) < 1e-6
    assert verdict(c, [y + 1e-6]) is Verdict.AGREE
    assert verdict(c, [y + 1e-3]) is Verdict.MISMATCH


def test_infinities_of_a_retyped_instance_are_whole_numbers() -> None:
    assert literal([0.0, -np.inf, np.inf, np.nan], I32, (4,)).tolist() == [0, -1, 1, 0]


def test_scalars_are_concatenated_to_a_vector() -> None:
    """concat: type inference of the package makes [n] of scalars; an axis there is none of is refused as elsewhere."""
    scalars = [{"dtype": "i32", "shape": [], "values": [v]} for v in (4, 7, 9)]

    def made(axis: int, **attrs: Any) -> Case:
        fields = {"format": 1, "dialect": "mil", "op": "concat", "version": "ios15", "opset": "ios18", "outs": 1}
        inst = Instance.from_json({**fields, "attrs": {"axis": axis, **attrs}, "args": {"values": scalars}})
        return fill(dialect.version_of(inst), inst)

    assert answer(made(0)) == answer(made(-1)) == answer(made(0, interleave=True)) == [4, 7, 9]
    assert "axis-in-range" in made(1).problem
    assert any(a.shape == () for i in drawn("concat/ios15") for a in i.args["values"])


@pytest.mark.parametrize(
    ("x", "y", "const"),
    [
        ("i32", "f32", "y"),
        ("i32", "f16", "y"),
        ("f32", "i32", "y"),
        ("f32", "i32", "x"),
        ("i32", "f32", "x"),
        ("f16", "i32", "y"),
    ],
)
@pytest.mark.parametrize("op", ["matmul", "linear"])
def test_a_constant_may_have_any_of_the_types(op: str, x: str, y: str, const: str) -> None:
    """matmul, linear iOS17: T and U are each fp16, fp32 or i32; the result has the type of what is no constant."""
    if op == "linear" and const == "x":
        return  # its constant is the weight

    def made(values: list[float]) -> Case:
        w = "weight" if op == "linear" else "y"
        args = {
            "x": {"dtype": x, "shape": [1, 2], "values": [2, 3]},
            w: {"dtype": y, "shape": [1, 2] if op == "linear" else [2, 1], "values": values},
        }
        args["x" if const == "x" else w]["const"] = True
        attrs = {"@const": const} if op == "matmul" else {}
        inst = Instance.from_json(
            {
                "format": 1,
                "dialect": "mil",
                "op": op,
                "version": "ios17",
                "opset": "ios17",
                "outs": 1,
                "attrs": attrs,
                "args": args,
            }
        )
        return fill(dialect.version_of(inst), inst)

    c = made([-4, 5])
    assert c.ambiguous is None
    assert answer(c) == [[7]]
    assert str(c.expected[0][0].value.dtype)[0] == (y if const == "x" else x)[0]
    assert verdict(c, [8]) is Verdict.MISMATCH
    if y[0] == "f" and const == "y":
        assert "fractions" in made([0.5, 0.25]).ambiguous


def test_integers_next_to_floats_are_drawn_and_mostly_judged() -> None:
    for key in ("matmul/ios17", "linear/ios17"):
        v = dialect.versions[f"mil/{key}"]
        cases = [draw_case(v, None, 41, i, 1, invalid=False) for i in range(300)]
        mixed = [c for c in cases if len({a.dtype.kind for a in c.inst.args.values()}) > 1]
        assert len(mixed) > 30
        assert not any(c.problem for c in mixed)
        assert sum(c.ambiguous is None for c in mixed) > len(mixed) / 2


# -- what has several readings is one of them


@pytest.mark.parametrize(
    ("op", "version", "attrs", "more"),
    [
        ("resize_nearest_neighbor", "ios15", {"target_size_height": 1, "target_size_width": 3}, {}),
        ("upsample_nearest_neighbor", "ios15", {"scale_factor_width": 1.5, "@U": "f32"}, {}),
        (
            "resize",
            "ios17",
            {"resized_dims": 1, "interpolation_mode": "NEAREST_NEIGHBOR"},
            {"shape": ("i32", [1], [3])},
        ),
    ],
)
def test_the_nearest_element_is_one_next_to_the_place(op: str, version: str, attrs: Any, more: Any) -> None:
    """Of two elements the middle one of three may be either, but no third, and nothing of another place."""
    c = case(op, version, {"x": ("f32", [1, 1, 2], [1.0, 2.0]), **more}, **attrs)
    assert {verdict(c, [1.0, middle, 2.0]) for middle in (1.0, 2.0)} <= {Verdict.AGREE, Verdict.AMBIGUOUS}
    assert verdict(c, [1.0, 1.5, 2.0]) is Verdict.MISMATCH
    assert verdict(c, [2.0, 1.0, 2.0]) is Verdict.MISMATCH


def test_an_even_neighbourhood_is_longer_on_one_side() -> None:
    c = case("local_response_norm", "ios15", {"x": ("f32", [1, 3, 1], [1.0, 2.0, 3.0])}, size=2, alpha=2.0, beta=1.0)
    assert verdict(c, [1 / 6, 2 / 14, 3 / 10]) is Verdict.AGREE
    assert verdict(c, [1 / 2, 2 / 6, 3 / 14]) is Verdict.AMBIGUOUS
    assert verdict(c, [1 / 2, 2 / 14, 3 / 10]) is verdict(c, [1 / 2, 2 / 5, 3 / 10]) is Verdict.MISMATCH


def test_an_image_without_a_box_above_the_threshold_has_its_best_one_or_none() -> None:
    boxes = [0.0, 0.0, 2.0, 2.0, 9.0, 9.0, 2.0, 2.0] * 2
    c = case(
        "non_maximum_suppression",
        "ios15",
        {"boxes": ("f32", [2, 2, 4], boxes), "scores": ("f32", [2, 2, 1], [0.25, 0.125, 0.75, 0.875])},
        "ios16",
        4,
        iou_threshold=0.5,
        score_threshold=0.5,
        max_boxes=2,
    )
    best, none = [boxes[:4] + [0.0] * 4, [0.25, 0.0], [0, -1], [1]], [[0.0] * 8, [0.0] * 2, [-1, -1], [0]]
    both = [boxes[4:8] + boxes[:4], [0.875, 0.75], [1, 0], [2]]

    def of(first: list[Any], second: list[Any]) -> Verdict:
        return verdict(c, *(a + b for a, b in zip(first, second)))

    assert of(best, both) is Verdict.AGREE
    assert of(none, both) is Verdict.AMBIGUOUS
    assert of(none, [*both[:2], [0, 1], [2]]) is Verdict.MISMATCH
    assert of([*none[:3], [2]], both) is Verdict.MISMATCH


def test_points_beyond_the_box_are_read_or_brought_back() -> None:
    """DEFAULT samples four points of a box of two pixels at 0, 0.5, 1 and 1.5."""
    box = {"roi": ("f32", [1, 1, 4, 1, 1], [0.0, 0.0, 0.0, 1.0])}
    c = case("crop_resize", "ios16", {"x": ("f32", [1, 1, 1, 3], [1.0, 2.0, 4.0]), **box}, target_width=4)
    assert verdict(c, [1.0, 1.5, 2.0, 3.0]) is Verdict.AGREE
    assert verdict(c, [1.0, 1.5, 2.0, 2.0]) is Verdict.AMBIGUOUS
    assert verdict(c, [1.0, 1.5, 2.0, 2.5]) is verdict(c, [1.0, 2.0, 2.0, 2.0]) is Verdict.MISMATCH


def test_a_negative_index_is_beyond_from_ios17_on() -> None:
    def indices(version: str) -> set[int]:
        v = dialect.versions[f"mil/scatter_along_axis/{version}"]
        made = [draw_invalid(v, "index-in-range", Prng(case_seed(3, v.key, i))) for i in range(60)]
        return {int(n) for inst in made if inst is not None for n in inst.tensor("indices").values or ()}

    assert -1 in indices("ios17")
    assert -1 not in indices("ios15")


def test_nan_has_no_sign_and_is_not_above_a_threshold() -> None:
    """sign: "either -1 or 1, or zero"; thresholded_relu: "x if x >= alpha, otherwise 0", which the package turns."""
    x = {"x": ("f32", [2], [{"f": "nan"}, 2.0])}
    signs, kept = case("sign", "ios15", x), case("thresholded_relu", "ios15", x, alpha=1.0, opset="ios15")
    assert {verdict(signs, [v, 1.0]) for v in (0.0, 1.0, np.nan)} <= {Verdict.AGREE, Verdict.AMBIGUOUS}
    assert verdict(signs, [1.0, 0.0]) is Verdict.MISMATCH
    assert {verdict(kept, [v, 2.0]) for v in (0.0, np.nan)} == {Verdict.AGREE, Verdict.AMBIGUOUS}
    assert verdict(kept, [1.0, 2.0]) is verdict(kept, [0.0, 0.0]) is Verdict.MISMATCH


@pytest.mark.parametrize(("pad_type", "printed"), [("same", [1.5, 1.5, 1.0]), ("same_lower", [0.5, 1.5, 1.5])])
def test_the_padding_that_pages_of_pools_print_is_another_reading(pad_type: str, printed: list[float]) -> None:
    """kernel_size cells in all, three here: floor(2 / 1) + 1 elements."""
    c = case("avg_pool", "ios15", {"x": ("f32", [1, 1, 2], [1.5, 3.0])}, "ios16", pad_type=pad_type, kernel_sizes=[3])

    def given(values: list[float]) -> Verdict:
        return judge_case(c, SOMEBODY, [Outcome(Status.VALUE, [np.array([[values]], "f4")], "run")], ledger()).verdict

    assert given([1.5, 1.5]) is Verdict.AGREE
    assert given(printed) is Verdict.AMBIGUOUS
    assert given([2.0, *printed[1:]]) is Verdict.MISMATCH


@pytest.mark.parametrize("op", ["conv", "avg_pool", "max_pool", "l2_pool"])
def test_no_padding_is_negative(op: str) -> None:
    """same with a stride above the window: max(0, ...) in the package's shape inference, and of SamePadding."""
    one = {"weight": ("f32", [1, 1, 1], [1.0])} if op == "conv" else {}
    kernel = {} if op == "conv" else {"kernel_sizes": [1]}
    c = case(
        op,
        "ios15",
        {"x": ("f32", [1, 1, 5], [1.0, 2.0, 3.0, 4.0, 5.0]), **one},
        "ios16",
        pad_type="same",
        strides=[3],
        **kernel,
    )
    assert c.ambiguous is None
    assert answer(c) == [[[1.0, 4.0]]]


@pytest.mark.parametrize(
    ("key", "rules"),
    [
        ("depth_to_space/ios15", {"block-divides-channels"}),
        ("space_to_depth/ios15", {"block-divides-space"}),
        ("scaled_dot_product_attention/ios18", {"shapes-agree", "mask-broadcasts"}),
        ("lstm/ios15", {"back-weights-given"}),
        ("lstm/ios17", {"back-weights-given"}),
        ("crop_resize/ios17", {"image-in-range", "normalized-floats"}),
        ("reshape/ios15", {"zero-needs-equal-rank"}),
        ("quantize/ios17", {"zero-point-type"}),
        ("topk/ios17", {"type-of-what-is-returned"}),
        ("clip/ios17", {"limits-in-order"}),
        ("constexpr_blockwise_shift_scale/ios18", {"offset-like-scale", "offset-type"}),
        ("constexpr_lut_to_sparse/ios18", {"mask-counts-data", "vector-needs-axis"}),
        ("constexpr_sparse_blockwise_shift_scale/ios18", {"blocks-divide", "mask-counts-data"}),
    ],
)
def test_what_a_page_forbids_is_drawn_and_refused(key: str, rules: set[str]) -> None:
    """Of the sentences with "must", "only" and "invalid": these were broken by no draw."""
    v = dialect.versions[f"mil/{key}"]
    assert rules <= set(invalid_generators_of(v))
    for rule in rules:
        inst = draw_invalid(v, rule, Prng(case_seed(4, v.key, 1)))
        assert inst is not None
        inst.rule = None
        c = fill(v, inst)
        assert c.expected is None, rule
        assert rule in c.problem or rule == "shapes-agree"


def test_a_pad_at_run_time_names_all_axes() -> None:
    """MIL iOS15 pad: "If pad is not a constant, it must be a vector of length 2 * rank(x)"."""
    pad = {"dtype": "i32", "shape": [2], "values": [1, 1]}
    form: dict[str, Any] = {"format": 1, "dialect": "mil", "op": "pad", "version": "ios15", "opset": "ios15"}

    def drawn(rank: int, const: bool) -> Instance:
        x = {"dtype": "f32", "shape": [2] * rank, "recipe": "small", "seed": 1}
        return Instance.from_json({**form, "attrs": {}, "args": {"x": x, "pad": {**pad, "const": const}}, "outs": 1})

    for rank, const in ((1, False), (1, True), (2, True)):
        inst = drawn(rank, const)
        assert takes(registry.version_of(inst), inst)
    assert not takes(registry.version_of(drawn(2, False)), drawn(2, False))


def test_an_axis_that_squeeze_names_twice_is_not_drawn() -> None:
    """MIL iOS15 squeeze: "Axes to squeeze out" says nothing of one that is named twice, and longer than 1."""
    x = {"dtype": "f32", "shape": [3, 1], "recipe": "small", "seed": 1}
    form: dict[str, Any] = {"format": 1, "dialect": "mil", "op": "squeeze", "version": "ios17", "opset": "ios17"}
    for axes, valid in (([0], True), ([0, 1], True), ([0, 0], False), ([0, -2], False)):
        inst = Instance.from_json({**form, "attrs": {"axes": axes}, "args": {"x": x}, "outs": 1})
        assert takes(registry.version_of(inst), inst) == valid


def test_an_output_shape_decides_the_padding_of_same() -> None:
    """MIL iOS15 conv_transpose: "Dout = output_shape", and "conv_out = ceil(conv_in / stride)" for SAME."""
    one = {"x": ("f32", [1, 1, 2], [1.0, 1.0]), "weight": ("f32", [1, 1, 3], [1.0, 2.0, 4.0])}
    for shape, due in ((None, [1, 2, 5, 2]), ([1, 1, 4], [1, 2, 5, 2]), ([1, 1, 3], [2, 5, 2])):
        extra = {} if shape is None else {"output_shape": shape}
        c = case("conv_transpose", "ios15", one, pad_type="same", strides=[2], **extra)
        assert c.expected, c.problem
        assert c.expected[0][0].value.ravel().tolist() == due
    c = case("conv_transpose", "ios15", one, pad_type="same", strides=[2], output_shape=[1, 1, 5])
    assert c.expected is None
    assert "output-shape-agrees" in c.problem


def test_a_signal_or_a_batch_of_signals_is_transformed() -> None:
    """torch.stft, to which complex_stft refers: "either a 1-D time sequence or a 2-D batch of time sequences"."""
    for shape, fits in (([6], True), ([2, 6], True), ([1, 2, 6], False), ([1, 1, 2, 6], False)):
        c = case("complex_stft", "ios15", {"input": ("f32", shape, [1.0] * int(np.prod(shape)))}, n_fft=4)
        assert (c.expected is not None) == fits
        assert fits or "signal-or-batch" in c.problem


def test_the_sizes_of_an_image_are_a_vector() -> None:
    """resize: "shape: tensor<[K], U>"."""
    x = ("f32", [2, 2], [1.0, 2.0, 3.0, 4.0])
    for shape, fits in (([1], True), ([1, 1, 1], False), ([], False)):
        c = case("resize", "ios17", {"x": x, "shape": ("i32", shape, [3])}, resized_dims=1)
        assert (c.expected is not None) == fits
        assert fits or "rank-of-list" in c.problem


def test_a_list_that_is_an_operand_has_a_fixed_length() -> None:
    """make_list: "If dynamic_length is False, init_length is the fixed length", as the models of the suite state it."""
    item = {"dtype": "f32", "shape": [1], "values": [1.0]}
    fields = {"format": 1, "dialect": "mil", "op": "list_write", "version": "ios15", "opset": "ios18", "outs": 1}

    def made(at: int) -> Case:
        ls = {"dtype": "f32", "shape": [1], "kind": "list", "items": [item, item]}
        index = {"dtype": "i32", "shape": [], "values": [at]}
        args = {"ls": ls, "index": index, "value": {**item, "values": [2.0]}}
        inst = Instance.from_json({**fields, "attrs": {"@read": "list"}, "args": args})
        return fill(dialect.version_of(inst), inst)

    assert answer(made(1)) == [[1.0], [2.0]]
    assert "index-in-list" in made(2).problem


def test_a_number_has_a_type_that_holds_it() -> None:
    """topk iOS17, k: const<K>, K of i8, i16 and i32."""
    for inst in drawn("topk/ios17", 4000):
        lo, hi = int_range(BY_NAME[inst.attrs.get("@K", "i32")])
        assert lo <= inst.attrs.get("k", 1) <= hi, inst.dumps()


def test_a_result_has_five_axes_at_most() -> None:
    """Program, check for an invalid program: "Core ML only supports tensors with rank <= 5"."""
    for rank, fits in ((4, True), (5, False)):
        c = case("expand_dims", "ios15", {"x": ("f32", [1] * rank, [1.0])}, axes=[0])
        assert takes(dialect.version_of(c.inst), c.inst) == fits


def test_a_split_has_as_many_results_as_parts() -> None:
    """split: "num_splits must be supplied to determine the number of outputs", or the length of split_sizes does."""
    x = ("f32", [6], [1.0] * 6)
    for attrs, n in (({"num_splits": 6}, 6), ({"split_sizes": [6]}, 1), ({"split_sizes": [1, 2, 3]}, 3)):
        for outs in (1, 2, 3, 6):
            c = case("split", "ios15", {"x": x}, outs=outs, axis=0, **attrs)
            assert (c.expected is not None) == (outs == n)
            assert outs == n or "result-of-each-part" in c.problem


def test_what_is_counted_with_an_extent_is_not_moved_where_it_has_a_type_of_its_own() -> None:
    """topk iOS17, k: const<K>; 128 is no number of i8."""
    v = dialect.versions["mil/topk/ios17"]
    for seed in range(400):
        engine = Prng(case_seed(seed, v.key, 0))
        inst = v.draw(engine, "ios18", edges=False)
        moved = beside(v, v.begin(engine, "ios18"), inst)
        assert moved.attrs.get("k") == inst.attrs.get("k")


def test_an_epsilon_whose_type_nothing_states_has_that_of_x() -> None:
    """Without gamma and beta no operand tells the type U of epsilon; f16 would round 0.01 to 0.010002."""
    inst = Instance("mil", "instance_norm", "ios17", "ios17", {"epsilon": 0.01}, {"x": Arg(F32, (1, 1, 2))}, 1)
    assert letter_types(dialect.versions["mil/instance_norm/ios17"].schema, inst)["U"] is F32


def test_a_transform_along_one_axis_twice_is_open() -> None:
    """torch.fft, to which the page refers, refuses it; the page gives the axis two extents."""
    x = np.ones((2, 4), np.complex64)
    assert fft.underspecified({"x": x}, {"shapes": [2, 3], "dims": [1, -1]}) is not None
    assert fft.underspecified({"x": x}, {"shapes": [2, 3], "dims": [0, -1]}) is None


@pytest.mark.parametrize(
    ("dilations", "const", "valid"), [([1, 1], False, True), ([1, 3], True, True), ([1, 3], False, False)]
)
def test_a_dilated_convolution_takes_its_weight_as_a_constant(dilations: list[int], const: bool, valid: bool) -> None:
    """MIL iOS15 conv: "When dilations is not all 1, weight has to be const at compile time"."""
    version = dialect.versions["mil/conv/ios17"]
    args = {"x": Arg(F32, (1, 1, 4, 8)), "weight": Arg(F32, (1, 1, 2, 2), const=const)}
    inst = Instance("mil", "conv", "ios17", "ios17", {"pad_type": "valid", "dilations": dilations}, args)
    assert takes(version, inst) is valid


def test_a_weight_that_must_be_a_constant_is_asked_for_at_run_time() -> None:
    drawn = [
        draw_invalid(dialect.versions["mil/conv/ios15"], "weight-constant", Prng(case_seed(1, "conv", k)))
        for k in range(60)
    ]
    found = [i for i in drawn if i is not None]
    assert found
    assert all(not i.args["weight"].const and any(k != 1 for k in i.attrs["dilations"]) for i in found)


@pytest.mark.parametrize(("opset", "valid"), [("ios15", False), ("ios16", True)])
def test_same_lower_is_no_padding_of_ios15(opset: str, valid: bool) -> None:
    """The package: "iOS15 version of conv does not support pad_type = `same_lower`"; iOS 16 has the same op version."""
    version = dialect.versions["mil/conv/ios15"]
    args = {"x": Arg(F32, (1, 1, 4)), "weight": Arg(F32, (1, 1, 2), const=True)}
    assert takes(version, Instance("mil", "conv", "ios15", opset, {"pad_type": "same_lower"}, args)) is valid
