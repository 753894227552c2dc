"""The base of program dialects: values, users, and evaluation node by node, over the programs that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import F32, of
from harness.core.errors import Unsupported
from harness.core.instance import Instance
from harness.declare import Draw, OpVersion, T, registry
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites import programs
from suites.onnx import dialect as onnx
from suites.programs import Language, ProgramDialect, operands, program_schema, values
from suites.programs.bounds import _signs

VERSIONS = [v for name in ("passes", "rewrites") for v in registry.dialect(name).versions.values()]


def drawn(v: OpVersion, count: int = 4) -> list[Instance]:
    return [v.draw(Prng(case_seed(3, v.key, i)), v.opsets[-1]) for i in range(count)]


@pytest.mark.parametrize("v", VERSIONS, ids=lambda v: f"{v.dialect.name}/{v.op}")
def test_values_are_those_of_the_run(v: OpVersion) -> None:
    for inst in drawn(v):
        g, args = inst.attrs["program"], inst.args.get("inputs", [])
        language = v.dialect.language
        found = values(language, g, args, inst.opset)
        scope = language.run(g, arrays_of(inst).get("inputs", []), inst.opset)
        assert set(found) == set(scope) | set(g.consts)
        for name, value in found.items():
            real = getattr(scope[name], "value", scope[name])
            assert (value.dtype, value.shape) == (of(np.asarray(real)), np.shape(real)), name
            assert value.output == (name in g.outputs)
            assert value.const == (name in g.consts)
            assert value.producer is None or name in g.nodes[value.producer].outputs


@pytest.mark.parametrize("name", ["passes", "rewrites"])
def test_users_are_the_operands_of_all_nodes(name: str) -> None:
    d = registry.dialect(name)
    for v in d.versions.values():
        for inst in drawn(v, 2):
            g = inst.attrs["program"]
            found = values(d.language, g, inst.args.get("inputs", []), inst.opset)
            used = [(u.node, u.slot, u.position, x.name) for x in found.values() for u in x.users]
            assert sorted(used, key=str) == sorted(
                ((i, *operand) for i, n in enumerate(g.nodes) for operand in operands(n)), key=str
            )
            for node, slot, position, operand in used:
                given = g.nodes[node].inputs[slot]
                assert (given if position is None else given[position]) == operand


class _Program(programs.Program):
    def literal(self, value: Any) -> np.ndarray:
        return np.asarray(value, self.dtype.np)


class _Small(ProgramDialect):
    """A third dialect of programs: all that one has to say."""

    name, title, format, opsets = "small", "Small programs", "none", (17,)
    schemas = [program_schema("negated_sum", 17, 17, {"T": ("f32",)})]


def _negated_sum(d: Draw) -> dict[str, Any]:
    p = _Program(d)
    x = p.input(d.shape(1, 2))
    y = p.node("Add", {"A": x, "B": p.const(0.5)}, {})
    return p.finished([p.node("Neg", {"X": y}, {}), y], "match")


@pytest.fixture
def small() -> _Small:
    d = _Small("suites.meta", Language(onnx))
    d._loaded = True
    error = tuple(d.language.tolerance(k) for k in range(2))
    d.programs("negated_sum", [_negated_sum], error, "a test").family = "small"
    return d


def test_a_third_dialect_needs_a_language_and_an_entry(small: _Small) -> None:
    v = small.versions["small/negated_sum/1"]
    inst = v.draw(Prng(1))
    (x,) = arrays_of(inst)["inputs"]
    neg, total = small.evaluate(inst, {"inputs": [x]})
    assert np.array_equal(total.value, x + np.float32(0.5))
    assert np.array_equal(neg.value, -total.value)
    bound = neg.error.bound(neg.context())
    ulp = np.spacing(np.abs(total.value))
    assert (bound >= ulp).all()  # that of the result, and twice what half an ulp of the sum moves it by
    assert (bound > ulp).any()
    assert (bound <= 4 * ulp).all()


def test_types_follow_from_the_nodes(small: _Small) -> None:
    inst = small.versions["small/negated_sum/1"].draw(Prng(1))
    found = values(small.language, inst.attrs["program"], [T((3, 2), dtype=F32)], 17)
    assert {n: (x.dtype.name, x.shape) for n, x in found.items()} == {
        "p0": ("f32", (3, 2)),
        "c0": ("f32", ()),
        "add_0": ("f32", (3, 2)),
        "neg_1": ("f32", (3, 2)),
    }
    assert found["add_0"].output
    assert [u.node for u in found["add_0"].users] == [1]


def test_a_program_has_a_model_of_its_own(small: _Small) -> None:
    inst = small.versions["small/negated_sum/1"].draw(Prng(1))
    assert small.alone([inst]) is inst
    with pytest.raises(Unsupported, match="small: a program has a model of its own, got 2"):
        small.alone([inst, inst])


@pytest.mark.parametrize("pairs", [False, True])
def test_a_complex_value_moves_to_each_of_its_four_corners(pairs: bool) -> None:
    """Else a real function of it, such as the magnitude of its imaginary part, is seen to move to one side alone."""
    patterns = list(_signs(np.zeros(64, np.complex64), pairs, np.random.Generator(np.random.PCG64(7))))
    for k in range(64):
        assert {complex(s[k]) for s in patterns} == {1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j}
