"""int8DynamicQuantize: what the text decides is checked, and of the steps of the input every reading is accepted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from harness.cases.case import fill
from harness.core.errors import RuleError
from harness.core.instance import Arg, Instance
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare.invalid import draw_invalid
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.workers.info import BackendInfo
from suites.nn import dialect, wire

LAYERS = {"nn/innerProduct/1": "x", "nn/batchedMatmul/1": "a"}


def drawn(key: str) -> Iterator[Instance]:
    for i in range(400):
        inst = dialect.versions[key].draw(Prng(case_seed(5, key, i)))
        if inst.attrs.get("int8DynamicQuantize"):
            yield inst


def symmetric(x: np.ndarray) -> np.ndarray:
    step = np.abs(x).max() / 127
    return np.rint(x / step).clip(-127, 127) * step if step else x


def affine(x: np.ndarray) -> np.ndarray:
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    step = (high - low) / 255
    if not step:
        return x
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step


@pytest.mark.parametrize("key", LAYERS)
def test_every_reading_of_the_steps_is_accepted_and_nothing_else(key: str) -> None:
    seen = 0
    for inst in drawn(key):
        case = fill(dialect.versions[key], inst)
        x = case.draws[0][LAYERS[key]].astype(np.float64)
        if not np.isfinite(x).all() or not x.any() or inst.attrs.get("@mapping"):
            continue
        w = inst.args["weights"]
        assert isinstance(w, Arg)
        assert w.dtype.name == "i8"
        assert w.quant is not None
        matrix = case.draws[0]["weights"] * np.float64(w.quant["scale"][0])
        rows = x.reshape(*x.shape[:-3], -1) if key == "nn/innerProduct/1" and x.ndim > 3 else x
        shape = case.expected[0][0].value.shape
        for reading in (symmetric, affine):
            y = (reading(rows) @ matrix.T).reshape(shape).astype(np.float32)
            verdict = judge_case(case, BackendInfo("x"), [Outcome(Status.VALUE, [y])]).verdict
            assert verdict in (Verdict.AGREE, Verdict.AMBIGUOUS), (inst.dumps(), verdict)
        off = 4 * np.abs(x).max() / 127 * np.abs(matrix).sum(-1).max()
        if off > 0:
            y = ((rows @ matrix.T).reshape(shape) + off).astype(np.float32)
            assert judge_case(case, BackendInfo("x"), [Outcome(Status.VALUE, [y])]).verdict is Verdict.MISMATCH
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("key", LAYERS)
def test_a_model_has_int8_weights_with_one_scale(key: str) -> None:
    inst = next(i for i in drawn(key) if not i.args[LAYERS[key]].const)
    arrays = fill(dialect.versions[key], inst).draws[0]
    model = dialect.build([inst], [arrays])
    layers = wire.decode("Model", model.data)["neuralNetwork"]["layers"]
    body = next(m for m in (layer.get(key.split("/")[1]) for layer in layers) if m)
    assert body["int8DynamicQuantize"]
    assert not body.get("hasBias")
    held = body["weights"]
    assert held["int8RawValue"] == arrays["weights"].tobytes()
    assert "rawValue" not in held
    assert held["quantization"]["numberOfBits"] == 8
    assert len(held["quantization"]["linearQuantization"]["scale"]) == 1
    assert not len(held["quantization"]["linearQuantization"].get("bias", ()))
    (name, _, _), *_ = model.inputs[0]
    (got,) = dialect.run_model(model.data, {name: arrays[LAYERS[key]]})
    np.testing.assert_array_equal(got, dialect.evaluate(inst, arrays)[0].value)


@pytest.mark.parametrize("rule", ["int8-bias", "int8-weights"])
@pytest.mark.parametrize("key", LAYERS)
def test_what_the_text_requires_is_a_rule(key: str, rule: str) -> None:
    v = dialect.versions[key]
    drawn = [draw_invalid(v, rule, Prng(case_seed(5, key, i))) for i in range(12)]
    found = [inst for inst in drawn if inst is not None]
    assert len(found) > 4
    for inst in found:
        with pytest.raises(RuleError, match=rule):
            dialect.evaluate(inst, arrays_of(inst))
