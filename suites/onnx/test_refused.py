"""Rules that the texts of newer operators state: an instance that breaks one is refused by the reference, by name."""

from __future__ import annotations

import pytest

from harness.core.errors import RuleError
from harness.gen.data import arrays_of
from harness.gen.engine import Prng, case_seed
from harness.spec.breaking import draw_invalid
from suites.onnx import dialect

STATED = {
    "SwiGLU/28": ("same-shape",),
    "BitCast/26": ("same-width",),
    "CausalConvWithState/27": ("kernel-fits",),
    "RotaryEmbedding/23": ("heads-given", "table-fits"),
    "LinearAttention/27": ("decay-given", "beta-given", "heads-multiply"),
    "FlexAttention/1": ("heads-divide",),
    "Attention/23": ("heads-given", "past-together", "heads-divide"),
    "Attention/24": ("heads-given", "past-together", "heads-divide"),
    "Attention/25": ("heads-given", "past-together", "heads-divide"),
    "GroupNormalization/18": ("groups-divide",),
    "GroupNormalization/21": ("groups-divide",),
}


@pytest.mark.parametrize(("op", "rule"), [(op, rule) for op, rules in STATED.items() for rule in rules])
def test_a_stated_rule_is_broken_and_noticed(op: str, rule: str) -> None:
    v = dialect.versions[f"onnx/{op}"]
    broken = [draw_invalid(v, rule, Prng(case_seed(3, v.key, i))) for i in range(40)]
    instances = [x for x in broken if x is not None]
    assert instances
    for inst in instances:
        with pytest.raises(RuleError, match=f"^{rule}"):
            dialect.evaluate(inst, arrays_of(inst))
