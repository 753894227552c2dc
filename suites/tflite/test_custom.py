"""Custom operators: their meanings against loops written from the kernels, their options, and models of them.

No wheel registers MaxPoolingWithArgmax2D, MaxUnpooling2D and Convolution2DTransposeBias, so the loops here are the
second reading.  The XNNPACK delegate computes all three, with an index of its own making between the first two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.core.dtypes import F32
from harness.core.errors import FormatError, RuleError
from harness.core.instance import Arg, Graph, Instance, Node
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from suites.tflite import builder, custom, dialect
from suites.tflite import flatbuffers as fb

DRAWS = 60
POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}


def instances(op: str) -> Iterator[Any]:
    for i in range(DRAWS):
        inst = dialect.versions[f"tflite/{op}/1"].draw(Prng(case_seed(3, op, i)))
        arrays = arrays_of(inst)
        yield (
            inst,
            arrays,
            dialect.evaluate(inst, arrays),
            dialect.version_of(inst).underspecified(dialect.call_of(inst, arrays)),
        )


def padding(out: Any, n: int, k: int, stride: Any) -> Any:
    return max(0, ((out - 1) * stride + k - n) // 2)


def activated(a: Any, x: Any) -> Any:
    if a == "TANH":
        return np.float32(np.tanh(np.float64(x)))
    if a == "SIGN_BIT":
        return float(np.signbit(x))
    low, high = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}[a]
    return min(max(x, low), high)


def test_pooling_names_the_first_maximum_row_after_row() -> None:
    seen = 0
    for inst, arrays, (y, at), why in instances("MaxPoolingWithArgmax2D"):
        if why is not None:
            continue
        x, a = arrays["input"], {**inst.attrs}
        n, h, w, c = x.shape
        fh, fw, sh, sw = (a[k] for k in ("filter_height", "filter_width", "stride_h", "stride_w"))
        same = a["padding"] == "SAME"
        oh, ow = ((m + s - 1) // s if same else (m - f + s) // s for m, f, s in ((h, fh, sh), (w, fw, sw)))
        top, left = padding(oh, h, fh, sh), padding(ow, w, fw, sw)
        assert y.value.shape == at.value.shape == (n, oh, ow, c)
        for b, i, j, d in np.ndindex(n, oh, ow, c):
            most, place = -np.inf, 0
            for r in range(fh):
                for q in range(fw):
                    row, column = i * sh - top + r, j * sw - left + q
                    if 0 <= row < h and 0 <= column < w and x[b, row, column, d] > most:
                        most, place = x[b, row, column, d], r * fw + q
            assert y.value[b, i, j, d] == activated(a.get("fused_activation_function", "NONE"), most)
            assert at.value[b, i, j, d] == np.float32(place) + np.float32(0.1)
            seen += 1
    assert seen > 1000


def test_unpooling_puts_each_element_at_its_index() -> None:
    seen = 0
    for inst, arrays, (y,), why in instances("MaxUnpooling2D"):
        x, at, a = arrays["input"], arrays["indices"], inst.attrs
        n, h, w, c = x.shape
        fh, fw, sh, sw = (a[k] for k in ("filter_height", "filter_width", "stride_h", "stride_w"))
        out = np.zeros((n, h * fh, w * fw, c), np.float32)
        top, left = padding(h, h * fh, fh, sh), padding(w, w * fw, fw, sw)
        for b, i, j, d in np.ndindex(n, h, w, c):
            k = int(at[b, i, j, d])
            row, column = i * sh - top + k // fw, j * sw - left + k % fw
            if 0 <= row < h * fh and 0 <= column < w * fw:
                out[b, row, column, d] = x[b, i, j, d]
        assert y.value.shape == out.shape
        np.testing.assert_array_equal(y.value, out)
        assert (why is None) or sh < fh or sw < fw
        seen += 1
    assert seen == DRAWS


def test_where_two_elements_meet_every_order_of_writing_is_a_reading() -> None:
    inst = Instance(
        "tflite",
        "MaxUnpooling2D",
        1,
        1,
        {**POOL, "stride_h": 1, "filter_width": 1, "stride_w": 1},
        {
            "input": Arg(F32, (1, 2, 1, 1), values=[5.0, 7.0]),
            "indices": Arg(F32, (1, 2, 1, 1), values=[1.1, 0.1]),
        },
    )
    why = dialect.version_of(inst).underspecified(dialect.call_of(inst, arrays_of(inst)))
    ((mask, part),) = why.masks(0)
    assert mask.ravel().tolist() == [False, True, False, False]
    assert sorted(float(r.ravel()[1]) for r in part.readings) == [5.0, 7.0]


def test_transposed_convolution_adds_a_filter_for_each_element() -> None:
    seen = 0
    for inst, arrays, (y,), why in instances("Convolution2DTransposeBias"):
        x, w, bias = (arrays[k].astype(np.float64) for k in ("input", "weights", "bias"))
        if why is not None or not all(np.isfinite(v).all() for v in (x, w, bias)):
            continue
        n, h, wide, _ = x.shape
        m, fh, fw, _ = w.shape
        sh, sw = inst.attrs["stride_h"], inst.attrs["stride_w"]
        ph = pw = 0
        if inst.attrs["padding"] == "SAME":
            ph, pw = max(0, fh - (h - 1) % sh - 1), max(0, fw - (wide - 1) % sw - 1)
        out = np.zeros((n, sh * (h - 1) + fh - ph, sw * (wide - 1) + fw - pw, m)) + bias
        size = np.abs(out)
        for b, i, j in np.ndindex(n, h, wide):
            for r, q in np.ndindex(fh, fw):
                row, column = i * sh - ph // 2 + r, j * sw - pw // 2 + q
                if 0 <= row < out.shape[1] and 0 <= column < out.shape[2]:
                    out[b, row, column] += w[:, r, q] @ x[b, i, j]
                    size[b, row, column] += np.abs(w[:, r, q]) @ np.abs(x[b, i, j])
        assert y.value.shape == out.shape
        with np.errstate(over="ignore"):
            want = out.astype(np.float32)
        near = np.abs(y.value.astype(np.float64) - out) <= 2.0**-22 * size + 1e-44
        assert (near | (y.value == want)).all()
        seen += 1
    assert seen > DRAWS / 2


def test_verification_gives_the_difference_and_refuses_one_above_the_tolerance() -> None:
    quant = {"scale": [0.5], "zero_point": [1], "axis": 0}
    args = {
        "input": Arg(
            dialect.versions["tflite/NumericVerify/1q"].schema.dtypes("T")[1], (3,), values=[1, 2, 3], quant=quant
        ),
        "ref": Arg(F32, (3,), values=[0.25, 0.5, 3.5]),
    }
    attrs = {"tolerance": 4.0, "log_if_failed": True}
    inst = Instance("tflite", "NumericVerify", "1q", 1, attrs, args)
    with pytest.raises(RuleError, match=r"within-tolerance: expected differences of at most 2, got 2\.5"):
        dialect.evaluate(inst, arrays_of(inst))
    for other in ({"tolerance": 5.0}, {"log_if_failed": False}, {"tolerance": 0.05}):
        inst = Instance("tflite", "NumericVerify", "1q", 1, {**attrs, **other}, args)
        assert dialect.evaluate(inst, arrays_of(inst))[0].value.tolist() == [-0.25, 0.0, -2.5]


def test_options_are_the_bytes_of_the_converter() -> None:
    """The custom options that stand in tensorflow/compiler/mlir/lite/tests/ops.mlir."""
    same = {**POOL, "padding": "SAME"}
    assert custom.pack("MaxPoolingWithArgmax2D", same) == bytes.fromhex("01000000" + "02000000" * 4 + "00000000" * 5)
    transposed = {"padding": "SAME", "stride_w": 2, "stride_h": 2}
    assert custom.pack("Convolution2DTransposeBias", transposed) == bytes.fromhex("010000000200000002000000")
    verify = {"tolerance": 5.0, "log_if_failed": True}
    assert custom.unpack("NumericVerify", custom.pack("NumericVerify", verify)) == verify


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"custom_code": "Nobody"}, r"operator_codes\[0\]\.custom_code: expected Max.* or NumericVerify, got 'Nobody'"),
        ({"custom_options": b"\1\0\0\0"}, r"custom_options: expected at least 24 bytes of TfLitePoolParams, got 4"),
        ({"custom_options": b"\7" + bytes(39)}, r"custom_options\.padding: expected SAME or VALID, got number 7"),
    ],
)
def test_a_malformed_custom_operator_is_reported(change: Any, words: Any) -> None:
    inst = Instance("tflite", "MaxPoolingWithArgmax2D", 1, 1, POOL, {"input": Arg(F32, (1, 4, 4, 1))}, 2)
    model = fb.decode("Model", dialect.build([inst], [arrays_of(inst)]).data)
    place = model["operator_codes"][0] if "custom_code" in change else model["subgraphs"][0]["operators"][0]
    place.update(change)
    with pytest.raises(FormatError, match=words):
        dialect.parse(fb.encode("Model", model))


def test_options_that_are_no_map_are_reported() -> None:
    with pytest.raises(FormatError, match="custom_options: expected a FlexBuffer map, got"):
        custom.unpack("NumericVerify", b"\xff\xff\xff")


def pooled_and_back(shape: Any, kernel: Any) -> Any:
    """What the pooling operator gives goes to its inverse, as in a network."""
    options = {**POOL, **dict(zip(("filter_height", "filter_width", "stride_h", "stride_w"), kernel * 2))}
    small = (shape[0], shape[1] // kernel[0], shape[2] // kernel[1], shape[3])
    nodes = [
        Node("MaxPoolingWithArgmax2D", {"input": "x"}, ["most", "where"], options, 1),
        Node("MaxUnpooling2D", {"input": "most", "indices": "where"}, ["y"], options, 1),
    ]
    g = Graph([("x", Arg(F32, shape))], nodes, ["y"])
    held = {"most": small, "where": small, "y": shape}
    g.meta = {"opset": 1, "tensors": {k: {"dtype": F32, "shape": e} for k, e in held.items()}}
    return builder.build_graph(g)


@pytest.mark.parametrize(("shape", "kernel"), [((1, 4, 6, 2), (2, 3)), ((2, 9, 2, 3), (3, 1)), ((1, 2, 2, 1), (2, 2))])
def test_xnnpack_puts_back_what_it_has_pooled(shape: Any, kernel: Any) -> None:
    """Whatever its index is, the pair is what the definition says; no two elements are equal."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    model = pooled_and_back(shape, kernel)
    x = np.random.default_rng(1).permutation(np.arange(np.prod(shape)) + 1.0).astype(np.float32).reshape(shape)
    (want,) = dialect.run_model(model, {"x": x})
    assert np.count_nonzero(want) == x.size // np.prod(kernel)
    assert set(want.ravel()) <= {0.0, *x.ravel()}
    it = litert.Interpreter(model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN)
    it.allocate_tensors()
    it.set_tensor(it.get_input_details()[0]["index"], x)
    it.invoke()
    np.testing.assert_array_equal(it.get_tensor(it.get_output_details()[0]["index"]), want)
