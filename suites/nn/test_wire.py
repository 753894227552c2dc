"""The codec of specification messages, against the official classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.core.errors import FormatError, OpconformError, RuleError
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.nn import dialect, wire


@pytest.fixture(scope="module")
def model_class() -> Any:
    from coremltools.proto import Model_pb2

    return Model_pb2.Model


def models(count: int) -> Iterator[Any]:
    for key, v in dialect.versions.items():
        for i in range(count):
            inst = v.draw(Prng(case_seed(11, key, i)))
            yield key, dialect.build([inst], [arrays_of(inst)]).data


def test_the_official_classes_read_every_layer_the_same(model_class: Any) -> None:
    """Parsing and writing again with the official classes gives bytes that we read as the same message."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    for key, data in models(3):
        official = model_class()
        official.ParseFromString(data)
        assert len(UnknownFieldSet(official.neuralNetwork.layers[-1])) == 0, key
        again = wire.decode("Model", official.SerializeToString(deterministic=True))
        assert _plain(again) == _plain(wire.decode("Model", data)), key
        layer = official.neuralNetwork.layers[-1]
        assert layer.WhichOneof("layer") is not None, key


def _plain(v: Any) -> Any:
    if isinstance(v, dict):
        return {k: _plain(x) for k, x in v.items()}
    if isinstance(v, np.ndarray):
        return [float(x) if x == x else "nan" for x in v]
    return [_plain(x) for x in v] if isinstance(v, list) else v


def test_our_own_round_trip_is_stable() -> None:
    for key, data in models(2):
        once = wire.encode("Model", wire.decode("Model", data))
        assert once == wire.encode("Model", wire.decode("Model", once)), key


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**31 - 1, -1, -(2**31), 2**63 - 1, -(2**63)])
def test_integers(model_class: Any, value: int) -> None:
    data = wire.encode("GatherLayerParams", {"axis": value})
    assert wire.decode("GatherLayerParams", data) == ({"axis": value} if value else {})


def test_negative_zero_and_nan_are_written() -> None:
    data = wire.encode("AddLayerParams", {"alpha": -0.0})
    assert np.signbit(wire.decode("AddLayerParams", data)["alpha"])
    assert np.isnan(wire.decode("AddLayerParams", wire.encode("AddLayerParams", {"alpha": float("nan")}))["alpha"])


def test_unpacked_repeated_fields_are_read() -> None:
    """Writers of proto2 days put every element under its own tag."""
    assert wire.decode("TileLayerParams", b"\x08\x02\x08\x03") == {"reps": [2, 3]}


def test_unknown_fields_are_passed_over() -> None:
    data = wire.encode("AddLayerParams", {"alpha": 2.0})
    assert wire.decode("AddLayerParams", data + b"\xfa\x3f\x03abc\xf8\x3f\x07") == {"alpha": 2.0}


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_truncated_bytes_are_a_format_error(cut: int) -> None:
    inst = dialect.versions["nn/innerProduct/1"].draw(Prng(3))
    data = dialect.build([inst], [arrays_of(inst)]).data
    with pytest.raises(FormatError):
        dialect.parse(data[:-cut])


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"not a model at all", 7, None])
def test_what_is_no_model_is_a_format_error(data: Any) -> None:
    with pytest.raises(FormatError):
        dialect.parse(data)


def test_unknown_names_are_named() -> None:
    with pytest.raises(FormatError, match="no field 'alhpa', expected one of alpha"):
        wire.encode("AddLayerParams", {"alhpa": 1.0})
    with pytest.raises(FormatError, match="no member 'NEAREST', expected one of NN, BILINEAR"):
        wire.encode("UpsampleLayerParams", {"mode": "NEAREST"})


def test_damaged_bytes_are_refused_or_read_but_never_raise_anything_else() -> None:
    """Bytes changed or lost at random places of every kind of layer."""
    import random

    r = random.Random(4)
    outcomes = {"read": 0, "refused": 0}
    for _, data in models(1):
        for _ in range(12):
            b = bytearray(data)
            for _ in range(r.randint(1, 3)):
                at = r.randrange(len(b))
                if r.random() < 0.5:
                    b[at] = r.randrange(256)
                else:
                    del b[at]
            try:
                dialect.parse(bytes(b))
                outcomes["read"] += 1
            except OpconformError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 100


def _drawn(key: str, want: dict[str, str | bool]) -> Any:
    v = dialect.versions[key]
    for i in range(400):
        inst = v.draw(Prng(case_seed(31, key, i)))
        if all(inst.attrs.get(n) == x for n, x in want.items()):
            return inst
    raise AssertionError(f"{key}: never drawn: {want}")


@pytest.mark.parametrize("said", ["ranks", "shapes", "unknown"])
def test_a_layer_may_say_ranks_and_shapes_of_its_inputs(said: str) -> None:
    """NeuralNetworkLayer.inputTensor: as many as inputs; Tensor.dimValue: rank numbers, -1 for unknown ones."""
    inst = _drawn("nn/convolution3d/1", {"@tensors": said})
    model = wire.decode("Model", dialect.build([inst], [arrays_of(inst)]).data)
    layer = model["neuralNetwork"]["layers"][-1]
    (tensor,) = layer["inputTensor"]
    shape = list(inst.tensor("x").shape)
    assert tensor["rank"] == 5
    assert list(tensor.get("dimValue", ())) == {"ranks": [], "shapes": shape, "unknown": [-1] * 5}[said]
    for wrong, rule in (([tensor, tensor], "tensor-per-input"), ([{**tensor, "dimValue": [1]}], "dims-per-rank")):
        layer["inputTensor"] = wrong
        with pytest.raises(RuleError, match=rule):
            dialect.parse(wire.encode("Model", model))


def test_updatable_weights_of_a_layer_that_is_not_are_weights() -> None:
    """ "If false, the value of the isUpdatable parameter within the layer's weights are ignored"."""
    inst = _drawn("nn/innerProduct/1", {"@updatable": True})
    arrays = arrays_of(inst)
    model = dialect.build([inst], [arrays])
    layer = wire.decode("Model", model.data)["neuralNetwork"]["layers"][-1]
    assert layer["innerProduct"]["weights"]["isUpdatable"]
    assert not layer.get("isUpdatable")
    want = dialect.evaluate(inst, arrays)[0].value
    got = dialect.run_model(model.data, [arrays["x"]])[0]
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("key", ["nn/convolution3d/1", "nn/convolution3d.isDeconvolution/1"])
def test_weights_of_three_dimensional_convolutions_are_quantised_too(key: str) -> None:
    """A scale for each output channel, which the stored weights of a deconvolution have second."""
    v, seen = dialect.versions[key], set()
    for i in range(200):
        inst = v.draw(Prng(case_seed(31, key, i)))
        q = inst.tensor("weights").quant
        if q and "scale" in q:
            assert len(q["scale"]) in (1, inst.attrs["outputChannels"])
            seen.add(len(q["scale"]) > 1)
    assert seen == {False, True}
