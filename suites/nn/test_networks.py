"""Whole networks: mappings, images, classifiers, control flow, quantised weights, wrong models."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.errors import FormatError, RuleError, Unsupported, UsageError
from suites.nn import dialect, layers, run_model, schemas, weights, wire


def feature(name: str, shape: Any, kind: Any = "FLOAT32") -> dict[str, Any]:
    return {"name": name, "type": {"multiArrayType": {"shape": list(shape), "dataType": kind}}}


def layer(kind: Any, ins: Any, outs: Any, **params: Any) -> dict[str, Any]:
    return {"name": outs[0] if outs else kind, "input": ins, "output": outs, kind: params}


def model(
    layers: Any,
    inputs: Any,
    outputs: Any,
    version: int = 5,
    mapping: str = "EXACT_ARRAY_MAPPING",
    **network: Any,
) -> Any:
    return wire.encode(
        "Model",
        {
            "specificationVersion": version,
            "description": {"input": inputs, "output": outputs},
            "neuralNetwork": {"layers": layers, "arrayInputShapeMapping": mapping, **network},
        },
    )


def x(*shape: Any) -> Any:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("given", "seen"), [((4,), (1, 1, 4, 1, 1)), ((2, 3, 4), (1, 1, 2, 3, 4)), ((5, 2, 2, 3, 4), (5, 2, 2, 3, 4))]
)
def test_rank5_mapping(given: Any, seen: Any) -> None:
    declared = given[-3:] if len(given) == 5 else given
    m = model(
        [layer("copy", ["x"], ["y"])], [feature("x", declared)], [feature("y", ())], mapping="RANK5_ARRAY_MAPPING"
    )
    assert run_model(m, {"x": x(*given)})[0].shape == seen


def test_rank5_mapping_forbids_other_ranks() -> None:
    m = model([layer("copy", ["x"], ["y"])], [feature("x", (2, 3))], [feature("y", ())], mapping="RANK5_ARRAY_MAPPING")
    with pytest.raises(RuleError, match="rank-1-or-3"):
        run_model(m, {"x": x(2, 3)})


def test_inputs_by_order_and_a_missing_one() -> None:
    m = model(
        [layer("subtractBroadcastable", ["a", "b"], ["y"])],
        [feature("a", (2,)), feature("b", (2,))],
        [feature("y", ())],
    )
    assert run_model(m, [np.array([5, 7]), np.array([1, 2])])[0].tolist() == [4, 5]
    with pytest.raises(UsageError, match="input 'b' is missing"):
        run_model(m, {"a": x(2)})


def image(name: str, color: Any, h: Any, w: Any) -> dict[str, Any]:
    return {"name": name, "type": {"imageType": {"height": h, "width": w, "colorSpace": color}}}


@pytest.mark.parametrize(("color", "order"), [("RGB", (10, 20, 30)), ("BGR", (30, 20, 10))])
@pytest.mark.parametrize(("mapping", "lead"), [("RANK5_IMAGE_MAPPING", 2), ("RANK4_IMAGE_MAPPING", 1)])
def test_images_are_scaled_by_colour(color: Any, order: Any, mapping: Any, lead: Any) -> None:
    scaler = {"channelScale": 2.0, "redBias": 10.0, "greenBias": 20.0, "blueBias": 30.0}
    m = model(
        [layer("copy", ["x"], ["y"])],
        [image("x", color, 2, 2)],
        [feature("y", ())],
        imageInputShapeMapping=mapping,
        preprocessing=[{"featureName": "x", "scaler": scaler}],
    )
    (y,) = run_model(m, {"x": x(3, 2, 2)})
    assert y.shape == (1,) * lead + (3, 2, 2)
    np.testing.assert_array_equal(y.reshape(3, 4), 2 * x(3, 4) + np.array(order)[:, None])


def test_mean_image_and_gray() -> None:
    mean = np.array([1, 2, 3, 4], np.float32)
    m = model(
        [layer("copy", ["x"], ["y"])],
        [image("x", "GRAYSCALE", 2, 2)],
        [feature("y", ())],
        preprocessing=[{"featureName": "x", "meanImage": {"meanImage": mean}}],
    )
    (y,) = run_model(m, {"x": x(2, 2)})
    np.testing.assert_array_equal(y.ravel(), x(4) - mean)
    with pytest.raises(RuleError, match="image-channels"):
        run_model(m, {"x": x(3, 2, 2)})


def test_a_classifier_names_the_largest() -> None:
    spec = {
        "specificationVersion": 4,
        "description": {
            "input": [feature("x", (3,))],
            "output": [{"name": "label"}, {"name": "all"}],
            "predictedFeatureName": "label",
            "predictedProbabilitiesName": "all",
        },
        "neuralNetworkClassifier": {
            "layers": [layer("softmaxND", ["x"], ["p"])],
            "labelProbabilityLayerName": "p",
            "arrayInputShapeMapping": "EXACT_ARRAY_MAPPING",
            "stringClassLabels": {"vector": ["cat", "dog", "cow"]},
        },
    }
    label, p = run_model(wire.encode("Model", spec), {"x": np.array([0.0, 3.0, 1.0])})
    assert label == "dog"
    assert p["dog"] == max(p.values())
    assert sum(p.values()) == pytest.approx(1, abs=1e-6)


def test_declared_output_types() -> None:
    m = model([layer("copy", ["x"], ["y"])], [feature("x", (3,))], [feature("y", (), "INT32")])
    assert run_model(m, {"x": x(3)})[0].dtype == np.int32


def net(*layers: Any) -> dict[str, Any]:
    return {"layers": list(layers)}


def loop(**params: Any) -> Any:
    return layer("loop", params.pop("ins", []), [], **params)


COUNT = [layer("loadConstantND", [], ["i"], shape=[1], data={"floatValue": [0.0]})]
NEXT = (layer("add", ["i"], ["n"], alpha=1.0), layer("copy", ["n"], ["i"]))


def run_loop(one: Any, out: str = "i") -> Any:
    m = model(
        [*COUNT, layer("loadConstantND", [], ["k"], shape=[1], data={"floatValue": [3.0]}), one],
        [feature("x", (1,))],
        [feature(out, ())],
    )
    return run_model(m, {"x": x(1)})[0].item()


def test_loop_by_parameter_by_input_and_by_condition() -> None:
    below = net(layer("lessThan", ["i"], ["go"], alpha=5.0))
    assert run_loop(loop(maxLoopIterations=4, bodyNetwork=net(*NEXT))) == 4
    assert run_loop(loop(maxLoopIterations=9, ins=["k"], bodyNetwork=net(*NEXT))) == 3
    assert run_loop(loop(conditionVar="go", conditionNetwork=below, bodyNetwork=net(*NEXT))) == 5
    assert run_loop(loop(maxLoopIterations=2, conditionVar="go", conditionNetwork=below, bodyNetwork=net(*NEXT))) == 2
    assert run_loop(loop(bodyNetwork=net(*NEXT))) == 0


def test_break_and_continue_act_on_the_innermost_loop() -> None:
    stop = layer("branch", ["s"], [], ifBranch=net(layer("loopBreak", [], [])))
    inner = loop(maxLoopIterations=10, bodyNetwork=net(*NEXT, layer("greaterEqual", ["i"], ["s"], alpha=2.0), stop))
    assert run_loop(loop(maxLoopIterations=3, bodyNetwork=net(inner))) == 4  # 2, then one more each time
    skip = layer("branch", ["t"], [], ifBranch=net(layer("loopContinue", [], [])))
    twice = [
        *NEXT,
        layer("equal", ["i"], ["t"], alpha=2.0),
        skip,
        layer("add", ["i"], ["m"], alpha=10.0),
        layer("copy", ["m"], ["i"]),
    ]
    assert run_loop(loop(maxLoopIterations=2, bodyNetwork=net(*twice))) == 22


def test_a_loop_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suites.nn.interpret.LIMIT", 1000)
    forever = net(layer("lessThan", ["i"], ["go"], alpha=5.0))
    with pytest.raises(Exception, match="still running"):
        run_loop(loop(conditionVar="go", conditionNetwork=forever, bodyNetwork=net()))


def test_only_copy_makes_a_blob_again() -> None:
    twice = [layer("add", ["x"], ["y"], alpha=1.0), layer("add", ["x"], ["y"], alpha=2.0)]
    with pytest.raises(RuleError, match="blobs-made-once"):
        run_model(model(twice, [feature("x", (1,))], [feature("y", ())]), {"x": x(1)})
    again = [layer("add", ["x"], ["y"], alpha=1.0), layer("copy", ["x"], ["y"])]
    assert run_model(model(again, [feature("x", (1,))], [feature("y", ())]), {"x": x(1)})[0].item() == 0


def test_a_break_outside_a_loop_and_a_missing_blob() -> None:
    with pytest.raises(RuleError, match="inside-a-loop"):
        run_model(model([layer("loopBreak", [], [])], [feature("x", (1,))], []), {"x": x(1)})
    with pytest.raises(UsageError, match="'z' is used before it is made"):
        run_model(model([layer("copy", ["z"], ["y"])], [feature("x", (1,))], [feature("y", ())]), {"x": x(1)})


@pytest.mark.parametrize("bits", range(1, 9))
def test_bit_packing_is_that_of_coremltools(bits: int) -> None:
    from coremltools.models.neural_network import quantization_utils as q

    codes = np.random.Generator(np.random.PCG64(bits)).integers(0, 2**bits, 37).astype(np.uint8)
    packed = weights.pack_bits(codes, bits)
    theirs = q._convert_array_to_nbit_quantized_bytes(codes, bits)
    assert packed == bytes(theirs)
    np.testing.assert_array_equal(weights.unpack_bits(packed, bits, 37), codes)


def test_weights_that_do_not_fit_are_named() -> None:
    short = layer("innerProduct", ["x"], ["y"], inputChannels=3, outputChannels=2, weights={"floatValue": [1.0] * 5})
    with pytest.raises(FormatError, match="5 values for shape"):
        run_model(model([short], [feature("x", (3,))], [feature("y", ())]), {"x": x(3)})


def _product(**more: Any) -> Any:
    body = {"inputChannels": 2, "outputChannels": 1, "weights": {"floatValue": [1.0, 2.0]}, **more}
    return model([layer("innerProduct", ["x"], ["y"], **body)], [feature("x", (1, 2))], [feature("y", ())])


def test_a_bias_has_as_many_numbers_as_there_are_outputs_and_none_where_it_is_off() -> None:
    assert run_model(_product(bias={}), [x(1, 2)])[0].tolist() == [[2.0]]
    assert run_model(_product(hasBias=True, bias={"floatValue": [3.0]}), [x(1, 2)])[0].tolist() == [[5.0]]
    with pytest.raises(FormatError, match=r"bias: 2 values for shape \[1\]"):
        run_model(_product(hasBias=True, bias={"floatValue": [3.0, 4.0]}), [x(1, 2)])


def test_a_layer_without_units_has_a_bias_without_numbers() -> None:
    body = {"inputVectorSize": 2, "weightMatrix": {}, "recursionMatrix": {}, "hasBiasVector": True, "biasVector": {}}
    cell = layer("simpleRecurrent", ["x"], ["y"], **body, activation={"tanh": {}}, sequenceOutput=True)
    x5 = x(3, 1, 2, 1, 1)
    assert run_model(model([cell], [feature("x", x5.shape)], [feature("y", ())]), [x5])[0].shape == (3, 1, 0, 1, 1)


def test_what_a_layer_of_a_network_may_not_say() -> None:
    def run(kind: Any, given: Any, **params: Any) -> Any:
        return run_model(
            model([layer(kind, ["x"], ["y"], **params)], [feature("x", given)], [feature("y", ())]), [x(*given)]
        )

    with pytest.raises(RuleError, match="list-length:targetSize"):
        run("resizeBilinear", (1, 2, 2), targetSize=[2, 2, 2])
    with pytest.raises(RuleError, match="shapes-stated: x"):
        run("bias", (2, 2), shape=[1], bias={"floatValue": [1.0]})
    with pytest.raises(RuleError, match="nOutputs-agrees"):
        run("split", (2, 2, 2), nOutputs=2)


@pytest.mark.parametrize(("choice", "refused"), [("includeLastPixel", True), ("same", False)])
def test_a_list_of_a_member_that_is_not_chosen_is_in_no_model(choice: str, refused: bool) -> None:
    s = next(s for s in schemas.schemas() if s.op == "pooling.MAX")
    attrs = {"PoolingPaddingType": choice, "includeLastPixel.paddingAmounts": [0, 0, 1]}
    with pytest.raises(RuleError) if refused else nullcontext():
        layers.check_lists(s, attrs)


def test_a_network_made_by_the_official_builder(tmp_path: Path) -> None:
    """Convolution, activation, pooling, flatten, inner product: against NumPy, from a file."""
    import coremltools as ct
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder

    rng = np.random.Generator(np.random.PCG64(5))
    w, b = rng.standard_normal((3, 3, 2, 4)), rng.standard_normal(4)
    m, c = rng.standard_normal((5, 16)), rng.standard_normal(5)
    builder = NeuralNetworkBuilder([("x", datatypes.Array(2, 6, 6))], [("y", None)], disable_rank5_shape_mapping=False)
    builder.add_convolution("c", 2, 4, 3, 3, 1, 1, "valid", 1, w, b, True, input_name="x", output_name="c")
    builder.add_activation("r", "RELU", "c", "r")
    builder.add_pooling("p", 2, 2, 2, 2, "MAX", "VALID", "r", "p")
    builder.add_flatten("f", 0, "p", "f")
    builder.add_inner_product("i", m, c, 16, 5, True, "f", "y")
    path = tmp_path / "net.mlmodel"
    ct.models.utils.save_spec(builder.spec, str(path))
    v = x(2, 6, 6) / 10 - 3
    conv = np.zeros((4, 4, 4))
    for i in range(4):
        for j in range(4):
            conv[:, i, j] = np.einsum("chw,hwco->o", v[:, i : i + 3, j : j + 3], w) + b
    pooled = np.maximum(conv, 0).reshape(4, 2, 2, 2, 2).max((2, 4))
    want = m @ pooled.ravel() + c
    for source in (str(path), path, path.read_bytes(), builder.spec):
        (y,) = run_model(source, {"x": v})
        np.testing.assert_allclose(y.ravel(), want, rtol=1e-5, atol=1e-5)
    seen = []
    dialect.run_model(path, {"x": v}, watch=lambda node, outs: seen.append(node.op))
    assert seen == ["convolution", "activation.ReLU", "pooling.MAX", "flatten", "innerProduct"]


def converted(program: Any) -> Any:
    """The specification that coremltools lowers a program to."""
    import coremltools as ct

    return ct.convert(program, convert_to="neuralnetwork").get_spec()


def test_control_flow_that_coremltools_lowered() -> None:
    """A loop that doubles and adds one, then a branch on the largest element."""
    from coremltools.converters.mil import Builder as mb

    @mb.program(input_specs=[mb.TensorSpec(shape=(2, 3)), mb.TensorSpec(shape=(1,))])
    def program(x: Any, n: int) -> Any:
        _, a = mb.while_loop(
            _cond=lambda i, a: mb.squeeze(x=mb.less(x=i, y=n)),
            _body=lambda i, a: (mb.add(x=i, y=1.0), mb.add(x=mb.mul(x=a, y=2.0), y=1.0)),
            loop_vars=(np.array([0.0], np.float32), x),
        )
        large = mb.greater(x=mb.reduce_max(x=a, axes=[0, 1]), y=100.0)
        return mb.cond(pred=large, _true_fn=lambda: mb.relu(x=mb.sub(x=a, y=100.0)), _false_fn=lambda: mb.sigmoid(x=a))

    spec = converted(program)
    v = x(2, 3)
    for times in (0, 3, 6):
        a = v * 2.0**times + (2.0**times - 1)
        want = np.maximum(a - 100, 0) if a.max() > 100 else 1 / (1 + np.exp(-a))
        (y,) = run_model(spec, {"x": v, "n": np.array([times], np.float32)})
        np.testing.assert_allclose(y, want, rtol=1e-6)


def test_a_small_network_that_coremltools_lowered() -> None:
    """Convolution with padding and stride, batch normalisation, pooling, attention over positions: against NumPy."""
    from coremltools.converters.mil import Builder as mb

    rng = np.random.Generator(np.random.PCG64(8))
    w, b = rng.standard_normal((4, 3, 3, 3)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    mean, var = rng.standard_normal(4).astype(np.float32), rng.uniform(0.5, 2, 4).astype(np.float32)
    q, one = rng.standard_normal((4, 4)).astype(np.float32), np.ones(4, np.float32)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3, 9, 9))])
    def program(x: Any) -> Any:
        y = mb.conv(x=x, weight=w, bias=b, strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1])
        y = mb.relu(x=mb.batch_norm(x=y, mean=mean, variance=var, gamma=one, beta=0 * one, epsilon=1e-3))
        y = mb.avg_pool(x=y, kernel_sizes=[2, 2], strides=[1, 1], pad_type="valid")
        t = mb.transpose(x=mb.reshape(x=y, shape=[1, 4, 16]), perm=[0, 2, 1])
        s = mb.softmax(x=mb.matmul(x=mb.linear(x=t, weight=q), y=t, transpose_y=True), axis=-1)
        return mb.reduce_mean(x=mb.matmul(x=s, y=t), axes=[1], keep_dims=False)

    v = rng.standard_normal((1, 3, 9, 9)).astype(np.float32)
    padded = np.pad(v[0], ((0, 0), (1, 1), (1, 1)))
    conv = np.array(
        [[[(padded[:, i : i + 3, j : j + 3] * k).sum() for j in range(0, 9, 2)] for i in range(0, 9, 2)] for k in w]
    )
    y = np.maximum((conv + (b - mean)[:, None, None]) / np.sqrt(var + 1e-3)[:, None, None], 0)
    y = (y[:, :-1, :-1] + y[:, 1:, :-1] + y[:, :-1, 1:] + y[:, 1:, 1:]) / 4
    t = y.reshape(4, 16).T
    scores = np.exp((t @ q.T) @ t.T - ((t @ q.T) @ t.T).max(1, keepdims=True))
    want = (scores / scores.sum(1, keepdims=True) @ t).mean(0)
    (got,) = run_model(converted(program), {"x": v})
    np.testing.assert_allclose(got.ravel(), want, rtol=2e-4, atol=1e-5)


def test_an_empty_condition_network_is_none() -> None:
    """coremltools touches the field of a counted loop."""
    assert run_loop(loop(maxLoopIterations=3, conditionNetwork=net(), bodyNetwork=net(*NEXT))) == 3


def test_a_scale_of_a_deconvolution_is_that_of_an_output_channel() -> None:
    """LinearQuantizationParams: "an array of C elements, where C is number of output channels", which
    ConvolutionLayerParams stores second; as the quantisation of coremltools has it."""
    from coremltools.models.neural_network.quantization_utils import _dequantize_linear

    codes, scale, bias = np.arange(12, dtype=np.uint8).reshape(2, 3, 2, 1), [1.0, 10.0, 100.0], [0.5, 0.25, 0.0]
    quant = {"bits": 8, "scale": scale, "bias": bias}
    want = _dequantize_linear(codes, np.array(scale), np.array(bias), 1)
    np.testing.assert_array_equal(weights.dequantise(codes, quant, 1), want.astype(np.float32))
    params = {
        "outputChannels": 3,
        "kernelChannels": 2,
        "kernelSize": [2, 1],
        "isDeconvolution": True,
        "valid": {},
        "weights": weights.message(codes, quant),
    }
    m = model([layer("convolution", ["x"], ["y"], **params)], [feature("x", (1, 2, 1, 1))], [feature("y", ())])
    (y,) = run_model(m, {"x": np.array([[[[1.0]], [[2.0]]]], np.float32)})
    np.testing.assert_array_equal(y[0, :, :, 0], (want[0] + 2 * want[1])[..., 0])
    # two groups: output channels 0, 1, 2 of the first input channel, 3, 4, 5 of the second
    six = weights.dequantise(codes, {"bits": 8, "scale": [1, 2, 3, 4, 5, 6], "bias": [0.0]}, 2)
    np.testing.assert_array_equal(six, codes * np.array([[1, 2, 3], [4, 5, 6]], np.float32)[..., None, None])
    with pytest.raises(RuleError, match="scale-per-channel"):
        weights.dequantise(codes, {"bits": 8, "scale": [1, 2], "bias": [0.0]}, 1)


def test_a_transposed_convolution_of_volumes_that_coremltools_lowered() -> None:
    """It writes both the custom padding and the shape that this leaves; the weights as [in, out / groups, ...]."""
    from coremltools.converters.mil import Builder as mb

    rng = np.random.Generator(np.random.PCG64(9))
    w = rng.standard_normal((4, 3, 3, 2, 2)).astype(np.float32)  # two groups of 2 -> 3 channels
    v = rng.standard_normal((1, 4, 3, 4, 2)).astype(np.float32)

    @mb.program(input_specs=[mb.TensorSpec(shape=v.shape)])
    def program(x: Any) -> Any:
        return mb.conv_transpose(
            x=x, weight=w, pad=[2, 0, 0, 1, 1, 0], pad_type="custom", strides=[2, 1, 1], dilations=[1, 1, 1], groups=2
        )

    full = np.zeros((1, 6, 7, 5, 3))
    for c, o, (i, j, k) in ((c, o, at) for c in range(4) for o in range(3) for at in np.ndindex(3, 2, 2)):
        full[:, c // 2 * 3 + o, i : i + 5 : 2, j : j + 4, k : k + 2] += v[:, c] * w[c, o, i, j, k]
    spec = converted(program)
    assert list(spec.neuralNetwork.layers[0].convolution3d.outputShape) == [5, 4, 2]
    (y,) = run_model(spec, {"x": v})
    np.testing.assert_allclose(y, full[:, :, 2:, :4, 1:], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (layer("branch", ["k"], [], elseBranch=net(*NEXT)), "if-branch-given"),
        (loop(maxLoopIterations=2), "body-given"),
        (layer("copy", ["i"], ["i"]), "names-distinct"),
    ],
)
def test_what_must_be_present_is_missed_by_name(one: Any, rule: str) -> None:
    """BranchLayerParams.ifBranch "must be present", LoopLayerParams.bodyNetwork too; a copy has two distinct names."""
    with pytest.raises(RuleError, match=rule):
        run_loop(one)


def test_a_custom_layer_is_read_and_refused_by_name() -> None:
    parameters = [{"key": "a", "value": {"doubleValue": 0.5}}]
    custom = layer("custom", ["x"], ["y"], className="MyClass", parameters=parameters)
    m = model([custom], [feature("x", (3,))], [feature("y", (3,))])
    (node,) = dialect.parse(m).nodes
    assert node.attrs == {"className": "MyClass", "parameters": {"a": 0.5}}
    with pytest.raises(Unsupported, match="custom layer of class 'MyClass'"):
        run_model(m, {"x": x(3)})


@pytest.mark.parametrize("kind", ["innerProduct", "batchedMatmul"])
def test_int8_weights_are_multiplied_by_their_scale(kind: Any) -> None:
    """Of a layer that quantises its input dynamically; 8 bits, one scale and no bias, as coremltools wants them."""
    codes, quantization = np.array([[1, -3, 5], [100, 2, -128]], np.int8), {"numberOfBits": 8}
    sizes = {
        "innerProduct": {"inputChannels": 3, "outputChannels": 2},
        "batchedMatmul": {"weightMatrixFirstDimension": 3, "weightMatrixSecondDimension": 2},
    }[kind]

    def network(**linear: Any) -> Any:
        w = {"int8RawValue": codes.tobytes(), "quantization": {**quantization, "linearQuantization": linear}}
        ip = layer(kind, ["x"], ["y"], weights=w, int8DynamicQuantize=True, **sizes)
        return model([ip], [feature("x", (3,))], [feature("y", (2,))])

    given = np.array([2.0, 0.5, -1.0], np.float32)
    (y,) = run_model(network(scale=[0.25]), {"x": given})
    assert y.tolist() == (codes @ given * 0.25).tolist()
    for wrong in ({"scale": [0.25, 0.5]}, {"scale": [0.25], "bias": [1.0]}):
        with pytest.raises(RuleError, match="int8-weights"):
            run_model(network(**wrong), {"x": given})
