"""Laws over the passes: each has programs that it acts on and programs that only look so, or a reason to have none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from harness.backends import registry as backends
from harness.core.dtypes import F32
from harness.core.instance import Graph, Instance, Node
from harness.declare import T
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.passes import ABSENT, dialect
from suites.passes.validity import _any_weights, _complex, _prelu
from suites.programs.respell import View

PASSES = sorted({v.op for v in dialect.versions.values()})


def drawn(name: str, count: int = 24) -> list[Instance]:
    """Programs as their generators write them: of one that is respelt nothing is promised."""
    v = dialect.versions[f"passes/{name}/1"]
    every = (v.draw(Prng(case_seed(5, v.key, i)), v.opsets[i % len(v.opsets)]) for i in range(4 * count))
    return [inst for inst in every if "respelt" not in inst.attrs["program"].meta][:count]


def test_every_pass_is_declared_or_left_out_with_a_reason() -> None:
    assert {s.op for s in dialect.schemas} - set(PASSES) == set(ABSENT)
    assert all(len(reason) > 20 for reason in ABSENT.values())


@pytest.mark.parametrize("name", [n for n in PASSES if not n.endswith("_pipeline")])
def test_a_pass_has_programs_with_its_pattern_and_near_misses(name: str) -> None:
    fires = [inst.attrs["program"].meta["fires"] for inst in drawn(name)]
    assert any(fires)
    if name != "add_conv_transpose_output_shape":
        assert len({bool(f) for f in fires}) == 2 or len({i.attrs["pattern"] for i in drawn(name)}) > 1


def test_the_pattern_agrees_with_the_promise() -> None:
    for name in PASSES:
        for inst in drawn(name, 8):
            said = str(inst.attrs["pattern"])
            assert said.startswith("near miss") != inst.attrs["program"].meta["fires"], f"{name}: {said}"


def test_noop_elimination_acts_where_it_is_to_and_keeps_the_values() -> None:
    from harness.cases.case import fill
    from harness.core.outcome import Verdict
    from harness.engine.engine import Engine

    handle = backends.create("coremltools-passes")
    if why := handle.missing():
        pytest.skip(why)
    with handle:
        cases = [fill(dialect.version_of(inst), inst) for inst in drawn("noop_elimination", 8)]
        verdicts = [judged.verdict for judged in Engine([handle]).judge(cases)]
    assert verdicts == [Verdict.AGREE] * len(cases)


@pytest.mark.parametrize("pairs", [False, True])
def test_every_value_is_moved_both_ways(pairs: bool) -> None:
    """One that lies on a bend, as the 0 of a relu, shows its error on one side alone."""
    import numpy as np

    from suites.programs.bounds import _signs

    patterns = np.stack(list(_signs((40,), pairs, np.random.default_rng(1))))
    assert (patterns.max(0) == 1).all()
    assert (patterns.min(0) == -1).all()


@pytest.mark.parametrize(
    ("name", "option", "patterns"),
    [
        ("const_elimination", "skip_const_by_size", {"match at the limit", "near miss large"}),
        ("add_fp16_cast", "skip_ops_by_type", {"match some", "near miss skipped"}),
        ("const_deduplication", "const_threshold", {"match", "near miss few"}),
        ("scaled_dot_product_attention_sliced_q", "min_seq_length", {"near miss short"}),
        ("scaled_dot_product_attention_sliced_q", "seq_length_divider", {"match none"}),
        ("materialize_symbolic_shape_program", "function_name_to_materialization_map", {"match shape"}),
    ],
)
def test_options_are_given_and_decide(name: str, option: str, patterns: set[str]) -> None:
    """Those of the published page, without the flag for debugging and what only a constructor takes."""
    told = [(i.attrs["pattern"], i.attrs["program"].meta.get("options", {}).get(name, ())) for i in drawn(name, 200)]
    assert patterns <= {pattern for pattern, options in told if option in options}


def test_an_image_keeps_its_axes_and_an_input_has_one() -> None:
    """An input has one axis or more; an image is [1, C, H, W] or [1, H, W, C]."""
    for name, least in (("image_input_preprocess", 4), ("materialize_symbolic_shape_program", 1)):
        v = dialect.versions[f"passes/{name}/1"]
        for index in range(80):
            inst = v.draw(Prng(case_seed(11, v.key, index)), v.opsets[-1])
            images = inst.attrs["program"].meta.get("images") or {}
            for i, a in enumerate(inst.tensors("inputs")):
                assert len(a.shape) >= (least if not images or f"p{i}" in images else 1), inst.dumps()


def test_a_scaled_constant_is_rounded_once_more() -> None:
    v = dialect.versions["passes/fuse_conv_scale/1"]
    inst = v.draw(Prng(case_seed(11, v.key, 1)), v.opsets[-1])
    call = dialect.call_of(inst, arrays_of(inst), v)
    plain, merged = (dialect.language.bounds(call, merges=m) for m in (False, True))
    assert all(np.all(m >= p) for p, m in zip(plain, merged))
    assert any(np.any(m > p) for p, m in zip(plain, merged))


@pytest.mark.parametrize(
    ("symbols", "right"), [({}, True), ({"p0": ["n2"]}, False), ({"p0": ["n2"], "p1": ["n2"]}, False)]
)
def test_a_constant_part_of_a_complex_number_has_no_open_extent_beside_it(
    symbols: dict[str, list[str]], right: bool
) -> None:
    node = Node("complex", {"real_data": "k", "imag_data": "p0"}, ["c"], {})
    g = Graph([], [node], ["c"], {"k": np.zeros(2, np.float32)}, {"symbols": symbols})
    inputs = [T((2,), dtype=F32) for _ in ("p0", *([] if "p1" not in symbols else ["p1"]))]
    assert _complex(cast(View, SimpleNamespace(g=g, inputs=inputs)), node) is right


def _view(inputs: list[T], nodes: list[Node], consts: dict[str, np.ndarray], meta: dict[str, object]) -> View:
    from suites.passes.program import LANGUAGE
    from suites.programs.values import values

    g = Graph([], nodes, [nodes[-1].outputs[0]], consts, meta)
    found = values(LANGUAGE, g, inputs, "ios15")
    return cast(View, SimpleNamespace(g=g, inputs=inputs, opset="ios15", values=found))


@pytest.mark.parametrize(
    ("symbols", "right"),
    [({}, True), ({"p0": ["n2", "", "", ""]}, False), ({"p0": ["", "", "", "n3"]}, True)],
    ids=["no symbol", "symbol for the channels", "symbol for another axis"],
)
def test_prelu_takes_no_channels_whose_number_is_left_open(symbols: dict[str, list[str]], right: bool) -> None:
    """The sum has one axis more than the input, whose first axis is that of the channels then."""
    nodes = [
        Node("add", {"x": "p0", "y": "one"}, ["s"], {}),
        Node("prelu", {"x": "s", "alpha": "alpha"}, ["y"], {}),
    ]
    consts = {"one": np.ones((1, 1, 1, 1, 1), np.float32), "alpha": np.array([0.25, 0.5], np.float32)}
    v = _view([T((2, 2, 1, 3), dtype=F32)], nodes, consts, {"symbols": symbols})
    assert _prelu(v, nodes[1]) is right


@pytest.mark.parametrize(("axes", "right"), [(3, True), (5, True), (6, False)])
def test_prelu_takes_three_to_five_axes(axes: int, right: bool) -> None:
    nodes = [Node("prelu", {"x": "p0", "alpha": "alpha"}, ["y"], {})]
    v = _view([T((2,) * axes, dtype=F32)], nodes, {"alpha": np.array([0.25, 0.5], np.float32)}, {})
    assert _prelu(v, nodes[0]) is right


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_no_weight_may_show_in_an_output_for_some_data_alone(op: str) -> None:
    """A maximum of 0 and an input is 0 for inputs below it, and a factor behind it shows for others."""
    nodes = [
        Node("sub", {"x": "p0", "y": "p0"}, ["zero"], {}),
        Node(op, {"x": "zero", "y": "p0"}, ["some"], {}),
        Node("mul", {"x": "some", "y": "w"}, ["y"], {}),
    ]
    weight = np.linspace(1, 2, 12, dtype=np.float32)
    alike = "uniform:1:2" if op == "minimum" else "uniform:-2:-1"
    for x in (T((12,), dtype=F32, recipe=alike), T((12,), dtype=F32, values=[np.nan] * 12)):
        assert not _any_weights(_view([x], nodes, {"w": weight}, {"any_weights": True}))
    nodes[1] = Node(op, {"x": "zero", "y": "zero"}, ["some"], {})
    assert _any_weights(_view([x], nodes, {"w": weight}, {"any_weights": True}))
