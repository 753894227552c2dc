"""Instances beside a drawn one (``op_version.nearby``): what is moved, what is not, and what is given up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.dtypes import F32
from harness.core.instance import Arg, Instance
from harness.declare import OpVersion, registry
from harness.declare.op_version import moves, nearby, two_places
from harness.generate.draw_engines import Prng

ONNX = registry.dialect("onnx")
OPS = [
    "onnx/Add/14",
    "onnx/TopK/11",
    "onnx/Conv/11",
    "onnx/ReduceSum/13",
    "onnx/Pad/19",
    "onnx/LSTM/14",
    "onnx/Slice/13",
]


def _moved(
    v: OpVersion, seed: int, change: Callable[[OpVersion, Any, Instance], Instance]
) -> tuple[Instance, Instance]:
    engine = Prng(seed)
    inst = v.draw(engine, v.opsets[-1], edges=False)
    return inst, change(v, v.begin(engine, v.opsets[-1]), inst)


@pytest.mark.parametrize("key", OPS)
def test_what_is_moved_is_an_instance_that_the_reference_takes(key: str) -> None:
    v = ONNX.versions[key]
    others = 0
    for seed in range(60):
        inst, moved = _moved(v, seed, nearby.beside)
        others += moved is not inst
        case = fill(v, moved)
        assert case.expected is not None, (case.problem, moved.dumps())
    assert others > 20


def test_places_reach_no_element_other_ranks_far_integers_and_other_options() -> None:
    conv, topk, shape = (ONNX.versions[k] for k in ("onnx/Conv/11", "onnx/ReduceSum/13", "onnx/Shape/15"))
    extents = {n for s in range(300) for n in _moved(conv, s, nearby.beside)[1].tensor("X").shape}
    ranks = {len(_moved(topk, s, nearby.beside)[1].tensor("data").shape) for s in range(200)}
    starts = {_moved(shape, s, nearby.beside)[1].attrs.get("start") for s in range(400)}
    assert 0 in extents
    assert {0, 7, 8} & ranks
    assert {2**31 - 1, -(2**31)} & starts


def test_an_instance_that_the_reference_refuses_is_given_up() -> None:
    v = ONNX.versions["onnx/MatMul/13"]
    for seed in range(80):
        moved = _moved(v, seed, nearby.beside)[1]
        a, b = moved.tensor("A").shape, moved.tensor("B").shape
        assert a[-1] == (b[-2] if len(b) > 1 else b[0]), moved.dumps()


def test_elements_become_special_in_one_operand() -> None:
    v = ONNX.versions["onnx/InstanceNormalization/6"]
    seen: dict[str, set[str]] = {}
    for seed in range(60):
        inst, moved = _moved(v, seed, nearby.special)
        changed = [s for s in inst.args if inst.args[s] != moved.args[s]]
        assert len(changed) <= 1
        for s in changed:
            found = np.asarray(fill(v, moved).draws[0][s], np.float64)
            seen.setdefault(s, set()).update({"nan"} if np.isnan(found).any() else ())
    assert {s for s, words in seen.items() if "nan" in words} >= {"input", "scale", "B"}


def test_half_of_very_many_operands_become_special_together() -> None:
    v = registry.dialect("nn").versions["nn/uniDirectionalLSTM/1"]
    counts = []
    for seed in range(60):
        inst, moved = _moved(v, seed, nearby.special)
        counts.append(sum(inst.args[s] != moved.args[s] for s in inst.args))
    assert max(counts) > 5
    assert 1 in counts


@pytest.mark.parametrize("key", ["mil/concat/ios15", "nn/concatND/1"])
def test_one_tensor_is_given_twice_to_a_variadic_operand(key: str) -> None:
    v = registry.dialect(key.partition("/")[0]).versions[key]
    shared = [m for m in (_moved(v, s, nearby.beside)[1] for s in range(400)) if m.shared()]
    assert shared
    for inst in shared:
        ((copy, first),) = inst.shared().items()
        assert copy.partition("#")[0] == first.partition("#")[0]
        made = fill(v, inst)
        assert made.expected is not None
        model = v.dialect.build([inst], [made.draws[0]])
        assert len(model.inputs[0]) <= len(inst.tensors(copy.partition("#")[0])) - 1


def test_what_a_dialect_keeps_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    v = ONNX.versions["onnx/Flatten/13"]
    monkeypatch.setattr(type(ONNX), "keeps", lambda self, version: ("axis", "shapes", "data:*"))
    for seed in range(60):
        for change in (nearby.beside, nearby.special):
            inst, moved = _moved(v, seed, change)
            assert moved.attrs.get("axis", 1) == inst.attrs.get("axis", 1)
            assert moved.args == inst.args


def test_logits_are_not_taken_for_probabilities() -> None:
    v = registry.dialect("nn").versions["nn/categoricalDistribution/1"]
    for seed in range(300):
        inst, moved = _moved(v, seed, nearby.beside)
        assert moved.attrs.get("isLogits") == inst.attrs.get("isLogits"), moved.dumps()


def test_a_target_of_no_elements_is_none() -> None:
    v = registry.dialect("nn").versions["nn/cropResize/1"]
    targets = [_moved(v, seed, nearby.beside)[1].attrs.get("targetSize", [1]) for seed in range(300)]
    assert all(n > 0 for target in targets for n in target)


def test_a_long_evaluation_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    v = ONNX.versions["onnx/Relu/14"]

    def slow(call: Any) -> Any:
        while True:
            time.sleep(0)

    monkeypatch.setattr(v, "evaluate", slow)
    assert not nearby.takes(v, Instance("onnx", "Relu", 14, 14, {}, {"X": Arg(F32, (2,))}))


def test_dialects_without_the_hook_draw_as_before() -> None:
    v = next(iter(registry.dialect("passes").versions.values()))
    assert v.draw(Prng(3), v.opsets[-1]).dumps() == v.draw(Prng(3), v.opsets[-1], edges=False).dumps()


def test_one_tensor_is_given_to_two_operands_of_other_shapes() -> None:
    v = ONNX.versions["onnx/Add/14"]
    shared = [m for m in (_moved(v, s, nearby.beside)[1] for s in range(400)) if m.shared()]
    assert shared
    for inst in shared:
        assert inst.shared() == {"B": "A"}
        assert fill(v, inst).expected is not None


@pytest.mark.parametrize("key", ["tflite/DEQUANTIZE/2q", "tflite/QUANTIZE/1"])
def test_scales_stay_as_many_as_the_positions_of_their_axis(key: str) -> None:
    tflite = registry.dialect("tflite")
    v = tflite.versions[key]
    for seed in range(300):
        moved = _moved(v, seed, nearby.beside)[1]
        q = moved.tensor("input").quant or moved.attrs["@outputs"][0].get("quant")
        if q is not None and len(q["scale"]) > 1:
            assert moved.tensor("input").shape[q.get("axis", 0)] == len(q["scale"]), moved.dumps()


@pytest.mark.parametrize(
    ("key", "slot", "shape"),
    [
        ("tflite/LSTM/1", "input_cell_state", (1, 1, 1)),
        ("tflite/RNN/1", "hidden_state", (0, 1)),
        ("tflite/FILL/1", "input", (1,)),
        ("tflite/DEPTHWISE_CONV_2D/1", "filter", (2, 1, 1, 1)),
        ("tflite/MULTINOMIAL/1", "logits", (1, 1, 1)),
    ],
)
def test_what_the_mover_made_known_is_stated(key: str, slot: str, shape: tuple[int, ...]) -> None:
    v = registry.dialect("tflite").versions[key]
    inst = v.draw(Prng(3), v.opsets[-1], edges=False)
    a = inst.tensor(slot)
    inst.args[slot] = Arg(
        a.dtype, shape, a.const, a.recipe, a.seed, None if a.values is None else [0] * int(np.prod(shape))
    )
    assert not nearby.takes(v, inst)


def test_an_option_for_each_axis_is_moved_and_an_operand_loses_an_axis() -> None:
    tflite = registry.dialect("tflite")
    pool, reduce = tflite.versions["tflite/MAX_POOL_2D/2"], ONNX.versions["onnx/ReduceSum/13"]
    strides = {
        m.attrs["stride_h"]
        for s in range(600)
        for i, m in [_moved(pool, s, nearby.beside)]
        if m.attrs["stride_h"] != i.attrs["stride_h"]
    }
    assert max(strides) == 2**31 - 1
    fewer = [
        len(m.tensor("data").shape) < len(i.tensor("data").shape)
        for s in range(400)
        for i, m in [_moved(reduce, s, nearby.beside)]
    ]
    assert any(fewer)


def test_scales_follow_an_extent_that_is_moved() -> None:
    q = {"scale": [0.1, 0.2, 0.3], "zero_point": [0, 0, 0], "axis": 1}
    a = Arg(F32, (2, 3), quant=q)
    for n in (1, 2, 7):
        moved = moves.reshaped(a, (2, n)).quant
        assert len(moved["scale"]) == len(moved["zero_point"]) == n
        assert moved["scale"] == [q["scale"][i % 3] for i in range(n)]
    assert moves.reshaped(a, (5, 3)).quant is q


def test_a_position_far_away_has_an_axis_of_so_many_elements() -> None:
    v = ONNX.versions["onnx/Gather/13"]
    found = set()
    for seed in range(200):
        moved = _moved(v, seed, two_places.far)[1]
        if moved is not None and nearby.takes(v, moved):
            x, at = moved.tensor("data"), moved.tensor("indices")
            if at.values and max(map(abs, at.values)) >= 2**24:
                assert 0 in x.shape
                assert -max(x.shape) <= min(at.values) <= max(at.values) < max(x.shape)
                found.update(at.values)
    assert {2**24, 2**31 - 1} <= found


def test_what_is_too_large_may_be_had_of_nothing() -> None:
    v = ONNX.versions["onnx/Pad/2"]
    inst = _moved(v, 0, nearby.beside)[0]
    rank = len(inst.tensor("data").shape)
    large = replace(inst, attrs={**inst.attrs, "mode": "constant", "pads": [2**31 - 1] + [0] * (2 * rank - 1)})
    assert rank > 1
    assert not nearby.takes(v, large)
    engine = Prng(1)
    some = [two_places.emptied(v, v.begin(engine, v.opsets[-1]), large) for _ in range(20)]
    assert any(m is not None and nearby.takes(v, m) for m in some)
