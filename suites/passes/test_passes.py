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
from suites.passes.validity import _complex
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
