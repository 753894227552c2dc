"""The declaration notation: dims, draws, codecs, entries, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core import dims
from harness.core.errors import FormatError, RuleError, UsageError
from harness.core.instance import Arg, Instance
from harness.declare import Array, Checks, Sampling, Spelling, registry
from harness.declare.invalid import draw_invalid
from harness.declare.semantics import semantics
from harness.generate.draw_engines import PlainPrng, Prng, Replay, case_seed
from harness.generate.recipes import arrays_of, literal
from suites.meta.toy import toy


def bind(pattern: str, shape: tuple[int, ...], **env):
    dims.bind(dims.parse(pattern), shape, env)
    return env


def test_patterns_bind_names() -> None:
    assert bind("n c *s", (2, 3, 4, 5)) == {"n": 2, "c": 3, "s": (4, 5)}
    assert bind("*d", ()) == {"d": ()}
    assert bind("m c//g *k", (8, 3, 3, 3), c=6, g=2)["k"] == (3, 3)
    assert bind("*#d", (1, 3), d=(2, 1))["d"] == (2, 3)
    assert bind("*_x n", (7, 8, 2), n=2) == {"n": 2}


@pytest.mark.parametrize(
    ("pattern", "shape", "env", "message"),
    [
        ("n c", (2,), {}, "rank"),
        ("n n", (2, 3), {}, "expected 2"),
        ("m c//g", (8, 4), {"c": 6, "g": 2}, "expected 3"),
        ("*#d", (2,), {"d": (3,)}, "broadcast"),
        ("a b *s", (1,), {}, "too low"),
    ],
)
def test_a_shape_that_does_not_fit_states_what_was_expected(pattern, shape, env, message) -> None:
    with pytest.raises(dims.ShapeMismatch, match=message):
        bind(pattern, shape, **env)


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=3))
def test_broadcast_is_numpys(shapes) -> None:
    shapes = [tuple(s) for s in shapes]
    try:
        want = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(dims.ShapeMismatch):
            dims.broadcast(*shapes)
    else:
        assert dims.broadcast(*shapes) == want


@given(st.lists(st.integers(1, 5), max_size=4), st.data())
def test_reduced_is_numpys(d, data) -> None:
    axes = data.draw(st.one_of(st.none(), st.sets(st.integers(0, max(len(d) - 1, 0))) if d else st.none()))
    keep = data.draw(st.booleans())
    want = np.zeros(d).sum(None if axes is None else tuple(axes), keepdims=keep).shape
    assert dims.reduced(tuple(d), None if axes is None else tuple(axes), keep) == want


def test_a_parameter_without_annotation_is_an_error() -> None:
    with pytest.raises(TypeError, match="annotation"):

        @semantics(source="none")
        def f(x, *, axis) -> Array:
            return x


def test_an_entry_that_fits_no_schema_is_an_error() -> None:
    other = type(toy)("suites.meta")
    other.op("Nothing", next(iter(toy.versions.values())).meaning)
    with pytest.raises(UsageError, match="Nothing"):
        _ = other.versions


def test_a_misspelt_hook_is_an_error_when_the_dialect_is_made() -> None:
    def made(**members):
        return type("Odd", (type(toy),), members)("suites.meta")

    with pytest.raises(TypeError, match=r"dialect toy: Odd.const_chanse is no hook .*did you mean const_chance\?"):
        made(const_chanse=3)
    with pytest.raises(TypeError, match=r"Odd.finnish is no hook of Dialect \(did you mean finish\?\)"):
        made(finnish=lambda self, version, d, inst: inst)
    with pytest.raises(TypeError, match=r"Odd.max_rank: expected int, got '5'"):
        made(max_rank="5")
    with pytest.raises(TypeError, match=r"Odd.unsayable_rules: expected a method, got \('type:',\)"):
        made(unsayable_rules=("type:",))
    assert made(max_rank=5, at=1, own=frozenset({"at"}), _mine=2).max_rank == 5


@pytest.mark.parametrize(
    ("groups", "names", "message"),
    [
        ((), {"axes": "axis"}, "op Flip: unknown name axes, flip takes axis x"),
        ((Spelling(fixed={"axes": 1}),), {}, "op Flip: unknown name axes"),
        ((), {"draw": 1}, r"op Flip: draw belongs in Sampling\(...\)"),
        ((), {"only": {}}, r"op Flip: only belongs in Checks\(...\)"),
        ((Sampling(ranks=(1, 2)), Sampling(ranks=(2, 2))), {}, "op Flip: Sampling gives ranks twice"),
        ((Spelling(x="x"),), {"x": "y"}, r"op Flip: Spelling gives names\['x'\] twice"),
        ((Checks(stated={"x": "a"}), Checks(stated={"x": "b"})), {}, r"op Flip: Checks gives stated\['x'\] twice"),
    ],
)
def test_a_wrong_declaration_is_an_error_at_once(groups, names, message) -> None:
    with pytest.raises(UsageError, match=message):
        type(toy)("suites.meta").op("Flip", toy.versions["toy/Flip/1"].meaning, *groups, **names)


def test_groups_of_one_kind_are_joined() -> None:
    meaning = toy.versions["toy/Flip/1"].meaning
    groups = Sampling(ranks=(1, 2)), Sampling(tags=("t",)), Checks(only={"a": 1}), Checks(only={"b": 2}, source="s")
    e = type(toy)("suites.meta").op("Flip", meaning, *groups, since=2, x="y")
    assert (e.sampling.ranks, e.sampling.tags, e.since) == ((1, 2), ("t",), 2)
    assert (e.checks.only, e.source, e.spelling.names) == ({"a": 1, "b": 2}, "s", {"x": "y"})


def test_what_a_body_stumbles_over_has_the_name_of_its_rule() -> None:
    v = toy.versions["toy/Add/1"]
    arrays = {"x": np.ones((2, 3), np.float32), "y": np.ones((2,), np.float32)}
    with pytest.raises(RuleError, match=r"shapes-agree: .*\(2, 3\).*do not broadcast"):
        v.evaluate(v.call({}, arrays, 1))


@pytest.mark.parametrize(("pattern", "rank"), [("a b", 3), ("*_lead a b", 1)])
def test_a_stated_shape_is_held_and_broken(pattern: str, rank: int) -> None:
    other = type(toy)("suites.meta")
    other.entries[:] = [e for e in other.entries if e.op != "Flip"]
    other.op(
        "Flip", toy.versions["toy/Flip/1"].meaning, Sampling(ranks=(2, 2)), Checks(stated={"x": pattern})
    ).family = "toy"
    v = other.versions["toy/Flip/1"]
    v.check(v.call({"axis": 0}, {"x": np.ones((2, 3), np.float32)}, 1))
    broken = [i for n in range(9) if (i := draw_invalid(v, "shapes-stated", Prng(n))) is not None]
    assert broken
    assert {len(i.args["x"].shape) for i in broken} == {rank}
    for i in broken:
        with pytest.raises(RuleError, match=r"shapes-stated: x: .*rank"):
            v.evaluate(v.call(i.attrs, arrays_of(i), 1))


@settings(max_examples=50)
@given(st.integers(0, 2**64 - 1), st.sampled_from(sorted(toy.versions)))
def test_a_draw_is_a_function_of_its_choices(seed: int, key: str) -> None:
    engine = Prng(seed)
    inst = toy.versions[key].draw(engine)
    assert toy.versions[key].draw(Replay(engine.choices)).dumps() == inst.dumps()


@given(st.integers(0, 2**64 - 1), st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2**31)), max_size=40))
def test_the_compiled_engine_draws_what_its_definition_draws(seed: int, spans) -> None:
    a, b = Prng(seed), PlainPrng(seed)
    assert [a.int(lo, lo + n) for lo, n in spans] == [b.int(lo, lo + n) for lo, n in spans]
    assert a.choices == b.choices


def test_seeds_of_cases_differ_and_do_not_depend_on_the_process() -> None:
    seeds = {case_seed(s, k, i) for s in range(4) for k in ("a/b/1", "a/b/2") for i in range(50)}
    assert len(seeds) == 400
    assert case_seed(0, "onnx/Add/7", 0) == case_seed(0, "onnx/Add/7", 0)


def test_literal_values_that_do_not_fit_are_reported() -> None:
    from harness.core.dtypes import F32

    with pytest.raises(FormatError, match="3 elements"):
        literal([1, 2, 3], F32, (2,))


_BAD_DTYPE = (
    '{"format":1,"dialect":"onnx","op":"A","version":1,"opset":1,"attrs":{},"args":{"x":{"dtype":"f33","shape":[]}}}'
)


@pytest.mark.parametrize("text", ["[]", '{"format": 99}', '{"format": 1}', _BAD_DTYPE])
def test_a_bad_case_file_states_what_was_expected(text: str) -> None:
    import json

    with pytest.raises(FormatError):
        Instance.from_json(json.loads(text))


def test_unknown_dialects_and_ops_are_named() -> None:
    with pytest.raises(UsageError, match="onxx"):
        registry.dialect("onxx")
    with pytest.raises(UsageError, match="toy/No/1"):
        toy.version_of(Instance("toy", "No", 1, 1))


def test_data_draws_change_run_time_inputs_and_repeat_exactly() -> None:
    from harness.core.dtypes import F32

    inst = Instance("toy", "Add", 1, 1, {}, {"x": Arg(F32, (8,), recipe="unit", seed=5)})
    assert arrays_of(inst)["x"].tobytes() == arrays_of(inst)["x"].tobytes()
    from harness.generate.recipes import materialize

    assert materialize(inst.args["x"], 1).tobytes() != materialize(inst.args["x"], 0).tobytes()


def test_the_hypothesis_front_end_draws_the_same_instances() -> None:
    from harness.cases.strategies import instances

    seen = []

    @settings(max_examples=20, database=None)
    @given(instances("onnx", "Transpose", opset=17))
    def check(inst: Instance) -> None:
        seen.append(inst)
        assert inst.opset == 17

    check()
    assert seen


@pytest.mark.parametrize(
    ("op", "version", "least", "most"), [("RMSNormalization", 23, 0.55, 0.85), ("CastLike", 19, 0.0, 0.25)]
)
def test_types_that_may_agree_do_in_half_of_the_instances(op: str, version: int, least: float, most: float) -> None:
    """Besides those that agree by chance; not where a change of type is the point."""
    v = registry.dialect("onnx").versions[f"onnx/{op}/{version}"]
    drawn = [v.draw(Prng(case_seed(4, v.key, i)), v.opsets[-1]) for i in range(200)]
    alike = sum(len({a.dtype for a in inst.args.values() if isinstance(a, Arg)}) == 1 for inst in drawn) / len(drawn)
    assert least < alike < most


def test_a_default_of_a_file_of_floats_is_left_out() -> None:
    """0.9 and the f32 number that the schema holds for it are one default: half of the instances do not spell it."""
    v = registry.dialect("onnx").versions["onnx/BatchNormalization/15"]
    drawn = [v.draw(Prng(case_seed(0, v.key, i))).attrs for i in range(200)]
    for name, default in (("momentum", 0.9), ("epsilon", 1e-5)):
        assert any(name not in a for a in drawn)
        assert any(a.get(name) == float(np.float32(default)) for a in drawn)
