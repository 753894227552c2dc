"""Every layer: a model means what its instance means, and what is invalid is refused by both readings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.errors import OpconformError
from harness.declare.invalid import draw_invalid, invalid_generators_of
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.nn import dialect
from suites.nn.definition import Definition

CASES = 4
KEYS = sorted(dialect.versions)


def fed(model: Any, arrays: Any) -> dict[str, Any]:
    return {n: arrays[s] if j is None else arrays[s][j] for n, s, j in model.inputs[0]}


@pytest.fixture(scope="module")
def second() -> Definition:
    return Definition()


@pytest.mark.parametrize("key", KEYS)
def test_a_model_means_what_its_instance_means(key: str) -> None:
    v = dialect.versions[key]
    for i in range(CASES):
        inst = v.draw(Prng(case_seed(21, key, i)))
        arrays = arrays_of(inst)
        with np.errstate(all="ignore"):
            want = [e.value for e in dialect.evaluate(inst, arrays)]
            model = dialect.build([inst], [arrays])
            got = dialect.run_model(model.data, fed(model, arrays))
        assert len(got) == len(want) == inst.outs
        for g, w in zip(got, want):
            assert g.dtype == w.dtype == np.float32
            assert 1 <= g.ndim <= 5
            np.testing.assert_array_equal(g, w)
        assert v.schema.extra["layer"] in dialect.notation(inst)


@pytest.mark.parametrize("key", KEYS)
def test_what_breaks_a_rule_is_refused_by_both_readings(key: str, second: Definition) -> None:
    v = dialect.versions[key]
    for rule in invalid_generators_of(v):
        drawn = [draw_invalid(v, rule, Prng(case_seed(23, key + rule, i))) for i in range(12)]
        broken = [i for i in drawn if i is not None]
        assert broken, f"{key}: {rule} was never broken"
        for inst in broken:
            arrays = arrays_of(inst)
            with pytest.raises((OpconformError, ValueError)):
                dialect.evaluate(inst, arrays)
            model = dialect.build([inst], [arrays])
            with pytest.raises((ValueError, TypeError, IndexError)):
                second.run(second.load(model.data, "nn"), fed(model, arrays))


def test_layers_side_by_side() -> None:
    """One network of many layers gives what each gives alone."""
    keys = [k for k in KEYS if "random" not in k and "categorical" not in k]
    instances = [dialect.versions[k].draw(Prng(case_seed(24, k, 0))) for k in keys]
    arrays = [arrays_of(i) for i in instances]
    model = dialect.build(instances, arrays)
    feed = {n: a[s] if j is None else a[s][j] for ins, a in zip(model.inputs, arrays) for n, s, j in ins}
    with np.errstate(all="ignore"):
        got = iter(dialect.run_model(model.data, feed))
        for inst, a in zip(instances, arrays):
            for e in dialect.evaluate(inst, a):
                np.testing.assert_array_equal(next(got), e.value, err_msg=inst.op)


def _floor(spec: Any) -> int:
    """Specification version that Model.proto and coremltools ask for the use that a model makes of its layers."""
    from coremltools.converters.mil._deployment_compatibility import iOS14Features

    least = 5 if iOS14Features(spec) else 1
    for one in spec.neuralNetwork.layers:
        kind = one.WhichOneof("layer")
        if kind in ("sliceStatic", "sliceDynamic") and getattr(one, kind).squeezeMasks:
            least = 5
        fields = _set_fields(one)
        old = kind in ("cropResize", "resizeBilinear") or "quantization" in fields
        least = max(least, 3 if old else 2 if "float16Value" in fields else 1)
    return least


def _set_fields(message: Any) -> set[str]:
    """Names of the fields that a message and what it holds set."""
    out = set()
    for field, value in message.ListFields():
        out.add(field.name)
        for v in [value] if hasattr(value, "ListFields") else value if field.message_type else []:
            out |= _set_fields(v)
    return out


OLD = [k for k in KEYS if dialect.versions[k].schema.extra["min_spec"] < 5]


def test_a_model_states_the_specification_that_its_layers_need(second: Definition) -> None:
    """Model.proto: float16 weights since 2, crop and resize layers since 3; coremltools: quantised weights since 3,
    what iOS 14 added to older layers since 5."""
    seen = set()
    for key in OLD:
        v = dialect.versions[key]
        for i in range(30):
            inst = v.draw(Prng(case_seed(25, key, i)))
            if i % 3 or inst.attrs.get("@mapping") == "rank5":
                data = dialect.build([inst], [arrays_of(inst)]).data
                spec = second.load(data, "nn")
                assert spec.specificationVersion >= _floor(spec), (inst.op, inst.attrs)
                seen.add((spec.neuralNetwork.arrayInputShapeMapping, _floor(spec)))
    assert seen >= {(0, 1), (0, 2), (0, 3), (0, 5), (1, 1), (1, 5)}
