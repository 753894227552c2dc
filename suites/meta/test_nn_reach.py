"""What the layers' texts allow is drawn, what they leave open is not judged, and what they settle is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case
from harness.compare import judge
from harness.core.errors import RuleError
from harness.core.instance import Instance, Node
from harness.core.outcome import Outcome, Status, Verdict
from harness.declare import Underspecified, open_at, registry
from harness.engine.verdict import judge_case
from harness.generate.draw_engines import Prng, case_seed
from harness.generate.recipes import arrays_of
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.nn import dialect

DRAWS = 300


def drawn(op: str, count: int = DRAWS) -> list[Instance]:
    v = dialect.versions[f"nn/{op}/1"]
    return [v.draw(Prng(case_seed(31, op, i))) for i in range(count)]


def rank(inst: Instance, slot: str = "x") -> int:
    return len(inst.tensor(slot).shape)


def numbers(inst: Instance, slot: str) -> np.ndarray:
    return np.asarray(arrays_of(inst)[slot])


def lanes_differ(inst: Instance) -> bool:
    """Whether indices along the axis are not the same everywhere."""
    i = np.moveaxis(numbers(inst, "indices"), inst.attrs["axis"], -1)
    rows = i.reshape(-1, i.shape[-1])
    return bool((rows != rows[:1]).any())


def below(inst: Instance) -> bool:
    """Whether the size asked for is below the extent on some axis."""
    if not inst.attrs.get("padToGivenOutputSizeMode"):
        return False
    a = inst.attrs.get("padAmounts") or numbers(inst, "pads_in").tolist()
    return any(0 < v < inst.tensor("x").shape[k // 2] for k, v in enumerate(a))


def asked_at_the_end(inst: Instance) -> bool:
    """Whether a loop ends by its count, so that the condition is asked once more without being heeded."""
    if "conditionNetwork" not in inst.attrs or not inst.attrs.get("maxLoopIterations"):
        return False
    *_, ran, asked = (float(np.ravel(e.value)[0]) for e in dialect.evaluate(inst, arrays_of(inst)))
    assert asked == ran, "the condition network runs after the last iteration, too"
    return ran == inst.attrs["maxLoopIterations"]


def inner_loops(inst: Instance) -> list[Node]:
    """The loops inside of the loop."""
    body = inst.attrs.get("bodyNetwork") or inst.attrs["@bodyNetwork"]
    return [n for n in body.nodes if n.op == "loop"]


def leaves(node: Node, how: str) -> bool:
    """Whether a branch in the body of a loop ends the loop, or a turn of it."""
    networks = [n.attrs["ifBranch"] for n in node.attrs["bodyNetwork"].nodes if n.op == "branch"]
    return any(n.op == how for net in networks for n in net.nodes)


INNER = [
    lambda i: any(n.attrs.get("maxLoopIterations") for n in inner_loops(i)),
    lambda i: any("count" in n.inputs for n in inner_loops(i)),
    lambda i: any(n.attrs.get("conditionVar") for n in inner_loops(i)),
    lambda i: any(leaves(n, "loopBreak") for n in inner_loops(i)),
    lambda i: any(leaves(n, "loopContinue") for n in inner_loops(i)),
]


REACHED: dict[str, list[Callable[[Instance], Any]]] = {
    "loop": [asked_at_the_end, lambda i: "count" in i.args and i.attrs.get("conditionVar"), *INNER],
    "loopBreak": INNER,
    "loopContinue": INNER,
    "branch": [lambda i: 0 < abs(numbers(i, "condition").item()) < 1e-6],
    # parameters that the text says are ignored
    "reduceSum": [lambda i: i.attrs.get("reduceAll") and i.attrs.get("axes")],
    "cumSum": [lambda i: "axis_in" in i.args and "axis" in i.attrs],
    "topK": [lambda i: "k" in i.args and "K" in i.attrs],
    "tile": [lambda i: "reps_in" in i.args and "reps" in i.attrs],
    "splitND": [lambda i: i.attrs.get("splitSizes") and i.attrs.get("numSplits")],
    "batchedMatmul": [
        lambda i: "weights" in i.args and i.attrs.get("transposeA"),
        lambda i: "b" in i.args and i.attrs.get("weightMatrixFirstDimension"),
    ],
    "add": [lambda i: len(i.args["xs"]) > 1 and i.attrs.get("alpha")],
    "greaterThan": [lambda i: "b" in i.args and i.attrs.get("alpha")],
    "crop": [
        lambda i: "like" in i.args and any(i.attrs.get("cropAmounts", ())),
        lambda i: "like" not in i.args and any(i.attrs.get("offset", ())),
    ],
    "rangeDynamic": [lambda i: "start" in i.args and "startValue" in i.attrs],
    "sliceDynamic": [
        lambda i: "end" in i.args and "endIds" in i.attrs,
        lambda i: "squeeze_mask" in i.args and any(i.attrs.get("squeezeMasks", ())),
    ],
    "NonMaximumSuppression": [
        lambda i: "iou_threshold" in i.args and "iouThreshold" in i.attrs,
        lambda i: "max_boxes" in i.args and "maxBoxes" in i.attrs,
    ],
    "pooling.AVERAGE": [lambda i: i.attrs.get("globalPooling") and i.attrs.get("kernelSize")],
    "pooling.L2": [lambda i: i.attrs.get("avgPoolExcludePadding")],
    "gru": [lambda i: "resetGateBiasVector" in i.args and not i.attrs.get("hasBiasVectors")],
    "reduce.SUM": [lambda i: i.attrs.get("epsilon")],
    "oneHot": [
        lambda i: "size_in" in i.args and "oneHotVectorSize" in i.attrs,
        lambda i: (numbers(i, "x") < 0).any(),
        lambda i: (numbers(i, "x") >= i.attrs.get("oneHotVectorSize", 99)).any(),
    ],
    "scatter": [lambda i: rank(i, "indices") == 2, lambda i: rank(i, "indices") > 2],
    "scatterND": [lambda i: rank(i, "indices") == 3, lambda i: rank(i, "indices") > 3],
    "scatterAlongAxis": [lanes_differ],
    "gather": [lambda i: rank(i, "data") == 5, lambda i: rank(i, "indices") > 2],
    "gatherND": [lambda i: rank(i, "data") == 5],
    "constantPad": [below],
    "padding": [lambda i: rank(i) == 2],
    "squeeze": [lambda i: rank(i) == 1 and i.attrs.get("axes"), lambda i: rank(i) == 1 and i.attrs.get("squeezeAll")],
    "slice": [lambda i: rank(i) == 1, lambda i: rank(i) == 2],
    "upsample.NN": [lambda i: i.attrs.get("fractionalScalingFactor")],
    "upsample.BILINEAR": [lambda i: any(f % 1 for f in i.attrs.get("fractionalScalingFactor", ()))],
    "batchnorm": [lambda i: i.attrs.get("computeMeanVar") and "mean" in i.args],
    "pooling.MAX": [
        lambda i: i.attrs.get("@mapping") == "rank5",
        lambda i: (
            i.attrs["PoolingPaddingType"] == "same" and i.args["x"].shape[-1] < i.attrs.get("kernelSize", [3, 3])[1]
        ),
        lambda i: (  # ceil((H + 2 p - k) / stride) + 1 is 1 there
            i.attrs["PoolingPaddingType"] == "includeLastPixel"
            and not any(i.attrs.get("includeLastPixel.paddingAmounts", ()))
            and i.args["x"].shape[-1] < i.attrs.get("kernelSize", [3, 3])[1]
        ),
    ],
    "convolution": [lambda i: i.attrs.get("@mapping") == "rank5", lambda i: i.attrs.get("outputShape")],
    "convolution.isDeconvolution": [
        lambda i: max(i.attrs.get("dilationFactor", [1])) > 1,
        lambda i: i.attrs.get("outputShape") and any(i.attrs.get("valid.paddingAmounts", ())),
        lambda i: len((i.args["weights"].quant or {}).get("scale", ())) > 1 and i.attrs.get("nGroups", 1) > 1,
    ],
    "innerProduct": [
        lambda i: i.attrs.get("@mapping") == "rank5" and rank(i) == 1,
        lambda i: "bias" in i.args and not i.attrs.get("hasBias"),
    ],
    "softmax": [lambda i: i.attrs.get("@mapping") == "rank5"],
    "uniDirectionalLSTM": [
        lambda i: (i.args["weightParams.inputGateWeightMatrix"].quant or {}).get("bits") == 3,
        lambda i: len((i.args["weightParams.outputGateRecursionMatrix"].quant or {}).get("scale", ())) > 1,
        lambda i: "linear(1.0,0.0)" in i.attrs["activations"],
        lambda i: "weightParams.inputGatePeepholeVector" in i.args and not i.attrs.get("params.hasPeepholeVectors"),
    ],
    "scale": [lambda i: i.args["scale"].quant],
}


@pytest.mark.parametrize("op", REACHED)
def test_what_the_text_allows_is_drawn(op: str) -> None:
    instances = drawn(op)
    for k, reached in enumerate(REACHED[op]):
        assert any(reached(i) for i in instances), f"{op}: what condition {k} asks for is never drawn"


NEVER: dict[str, Callable[[Instance], Any]] = {
    # reps shorter than the rank are described for the parameter alone
    "tile": lambda i: "reps_in" in i.args and i.args["reps_in"].shape[0] < rank(i),
    # alpha x + beta is 0 then, and the linear activation of the tools that write it
    "simpleRecurrent": lambda i: i.attrs.get("activation", "").startswith("linear(0"),
}


@pytest.mark.parametrize("op", NEVER)
def test_what_the_text_does_not_describe_is_not_drawn(op: str) -> None:
    assert not any(NEVER[op](i) for i in drawn(op))


def unclear(inst: Instance) -> str | None:
    return Case(dialect.versions[inst.key], inst, 0).ambiguous


@pytest.mark.parametrize("op", ["gatherND", "scatterND"])
def test_negative_entries_of_a_tuple_are_not_compared(op: str) -> None:
    """Of these the text does not say that negative indices count from the end."""
    negative = [i for i in drawn(op) if (numbers(i, "indices") < 0).any()]
    assert negative
    assert all(unclear(i) is not None for i in negative)


def made(op: str, args: dict[str, Any], outs: int = 1, **attrs: Any) -> Instance:
    return Instance.from_json(
        {
            "format": 1,
            "dialect": "nn",
            "op": op,
            "version": 1,
            "opset": 1,
            "attrs": attrs,
            "args": {n: {"dtype": "f32", **a} for n, a in args.items()},
            "outs": outs,
        }
    )


CHANNELS = {"x": {"shape": [4, 1, 1], "recipe": "unit", "seed": 3}}
FIRST = {"shape": [1], "values": [0.0]}
NAN = {"shape": [1], "values": ["nan"]}
THREE = {"shape": [1], "values": [3.0]}
TIES = {"x": {"shape": [3], "values": [1.0, 2.0, 2.0]}}
ROWS = {"x": {"shape": [1, 1, 2, 8], "recipe": "uniform:-1024:1024", "seed": 3}}
FLAT = {"x": {"shape": [1, 1, 2, 8], "recipe": "unit", "seed": 3}}
VOLUME = {"x": {"shape": [1, 1, 4, 4, 4], "recipe": "uniform:1:4", "seed": 3}}
CUBE = {f"{w}{n}": 2 for w in ("kernel", "stride") for n in ("Depth", "Height", "Width")}
SIX = {"shape": [6], "recipe": "unit", "seed": 3}
TO_ONE = {
    "x": {"shape": [1, 1, 3, 3], "recipe": "unit", "seed": 3},
    "weights": {"shape": [1, 1, 2, 2], "recipe": "unit", "seed": 4, "const": True},
}
FILTER = {"kernelSize": [2, 2], "kernelChannels": 1, "outputChannels": 1}


GIVEN = {
    "x": {"shape": [1, 1, 3, 3, 3], "recipe": "unit", "seed": 3},
    "weights": {"shape": [1, 1, 2, 2, 2], "recipe": "unit", "seed": 4, "const": True},
}
ODD = {
    "inputChannels": 1,
    "outputChannels": 1,
    "outputShape": [3, 4, 4],
    **{f"{w}{n}": 1 + (w == "kernel") for w in ("kernel", "stride", "dilation") for n in ("Depth", "Height", "Width")},
}


def lstm(**attrs: Any) -> Instance:
    gates = [
        f"weightParams.{g}{w}Matrix"
        for g in ("inputGate", "forgetGate", "blockInput", "outputGate")
        for w in ("Weight", "Recursion")
    ]
    args = {n: {"shape": [1, 1], "recipe": "unit", "seed": k, "const": True} for k, n in enumerate(gates)}
    return made(
        "uniDirectionalLSTM",
        {"x": {"shape": [1, 1, 1, 1, 1], "values": [1.0]}, **args},
        inputVectorSize=1,
        outputVectorSize=1,
        activations=["sigmoid", "tanh", "tanh"],
        **attrs,
    )


BELOW = {"x": {"shape": [1, 1, 4, 4], "recipe": "uniform:-4:-1", "seed": 3}}
ABOVE = {"x": {"shape": [1, 1, 4, 4], "recipe": "uniform:1:4", "seed": 3}}
DEEP = {"x": {"shape": [1, 1, 4, 4, 4], "recipe": "uniform:-4:-1", "seed": 3}}
PADDED = {"kernelSize": [2, 2], "PoolingPaddingType": "valid", "valid.paddingAmounts": [1, 0, 0, 0]}
LAST = {"kernelSize": [3, 3], "stride": [2, 2], "PoolingPaddingType": "includeLastPixel"}
SEVEN = {"x": {"shape": [1, 1, 7, 7], "recipe": "uniform:1:4", "seed": 3}}
SKIP = {"kernelSize": [2, 2], "stride": [3, 3], "PoolingPaddingType": "same"}


@pytest.mark.parametrize(
    ("inst", "judged"),
    [
        # the window, not the channels, divides alpha
        (made("lrn", CHANNELS, localSize=3, alpha=1.0, beta=0.5), True),
        (made("mvn", ROWS, normalizeVariance=True, epsilon=1e-6), True),
        (made("mvn", FLAT, normalizeVariance=False), True),
        # max(0, ...) is the padding of a stride above the kernel
        (made("pooling.MAX", SEVEN, **SKIP), True),
        # whether the zeros of a padding are elements of a maximum: seen where all others are negative
        (made("pooling.MAX", BELOW, **PADDED), False),
        (made("pooling.MAX", ABOVE, **PADDED), True),
        (made("pooling.MAX", BELOW, **{**PADDED, "valid.paddingAmounts": [0, 0, 0, 0]}), True),
        (made("pooling3d.MAX", DEEP, paddingType="CUSTOM", customPaddingFront=1, **CUBE), False),
        (made("pooling3d.MAX", DEEP, paddingType="VALID", **CUBE), True),
        # whether the cells that includeLastPixel brings in behind the padding are padded values
        (made("pooling.AVERAGE", BELOW, **LAST), False),
        (made("pooling.AVERAGE", BELOW, avgPoolExcludePadding=True, **LAST), True),
        (made("pooling.AVERAGE", BELOW, **{**LAST, "stride": [1, 1]}), True),
        (made("pooling.L2", BELOW, **LAST), True),
        # whether a flag transposes the matrix that a vector "is converted to"
        (made("batchedMatmul", {"a": SIX, "b": SIX}, transposeA=True), False),
        (made("batchedMatmul", {"a": SIX, "b": SIX}, transposeB=True), False),
        (made("batchedMatmul", {"a": SIX, "b": SIX}), True),
        # where the rows go that no kernel reaches: H_out = H_in * stride
        (made("convolution.isDeconvolution", TO_ONE, **FILTER, ConvolutionPaddingType="same", stride=[3, 3]), False),
        (made("convolution.isDeconvolution", TO_ONE, **FILTER, ConvolutionPaddingType="same"), True),
        # a shape that the padding leaves, and one beside it
        (made("convolution3d.isDeconvolution", GIVEN, paddingType="CUSTOM", customPaddingFront=1, **ODD), True),
        (made("convolution3d.isDeconvolution", GIVEN, paddingType="CUSTOM", **ODD), False),
        (made("convolution3d.isDeconvolution", GIVEN, paddingType="VALID", **ODD), False),
        # whether forgetBias counts where "no biases are added"
        (lstm(**{"params.forgetBias": True}), False),
        (lstm(**{"params.forgetBias": False}), True),
        # whether NaN is larger than a number
        (made("scatter", {"container": NAN, "indices": FIRST, "updates": THREE}, mode="SCATTER_MAX"), False),
        (made("scatter", {"container": NAN, "indices": FIRST, "updates": THREE}, mode="SCATTER_ADD"), True),
        # the nearest integer, of two equally near ones
        (made("round", {"x": {"shape": [2], "values": [1.5, 1.0]}}), False),
        (made("round", {"x": {"shape": [2], "values": [1.75, -1.25]}}), True),
        # the remainder of operands of different signs
        (made("modBroadcastable", {"a": {"shape": [1], "values": [-5.0]}, "b": THREE}), False),
        (made("modBroadcastable", {"a": {"shape": [1], "values": [-6.0]}, "b": THREE}), True),
        (made("modBroadcastable", {"a": {"shape": [1], "values": [5.0]}, "b": THREE}), True),
        # "uniformly split", or by given sizes
        (made("splitND", TIES, 2, axis=0, numSplits=2), False),
        (made("splitND", TIES, 2, axis=0, splitSizes=[2, 1]), True),
        # "the same spatial dimensions as the input"
        (made("pooling3d.MAX", VOLUME, paddingType="SAME", **CUBE), False),
        (made("pooling3d.MAX", VOLUME, paddingType="SAME", **{**CUBE, **dict.fromkeys(list(CUBE)[3:], 1)}), True),
    ],
    ids=lambda v: v.op if isinstance(v, Instance) else str(v),
)
def test_what_is_open_is_not_judged_and_what_is_settled_is(inst: Instance, judged: bool) -> None:
    assert (unclear(inst) is None) == judged


def test_any_of_equals_is_right() -> None:
    """Neither topK nor argMax says which of two equal elements it means."""
    row = {"x": {"shape": [1, 3], "values": [2.0, 1.0, 2.0]}}
    for inst, got, right in (
        (made("topK", row, 2, K=2, axis=1), [[2.0, 0.0]], True),
        (made("topK", row, 2, K=2, axis=1), [[2.0, 2.0]], False),
        (made("argMax", row, axis=1, removeDim=True), [2.0], True),
        (made("argMax", row, axis=1, removeDim=True), [1.0], False),
        (made("argMin", row, axis=1), [[1.0]], True),
        (made("reduce.ARGMAX", row, axis="W"), [[2.0]], True),
    ):
        expected = dialect.evaluate(inst, arrays_of(inst))
        outputs = [*(e.value for e in expected[:-1]), np.array(got, np.float32)]
        seen = judge(expected, Outcome(Status.VALUE, outputs)).verdict
        assert (seen != Verdict.MISMATCH) == right, f"{inst.op} {got}: {seen}"


def test_a_branch_is_taken_above_a_millionth() -> None:
    """BranchLayerParams: the if branch where the absolute value is greater than 1e-6."""
    for inst in drawn("branch"):
        taken = inst.attrs["ifBranch" if abs(numbers(inst, "condition").item()) > 1e-6 else "elseBranch"]
        certain = Instance.from_json(inst.to_json())
        certain.attrs["ifBranch"] = certain.attrs["elseBranch"] = taken
        for a, b in zip(dialect.evaluate(inst, arrays_of(inst)), dialect.evaluate(certain, arrays_of(certain))):
            np.testing.assert_array_equal(a.value, b.value)


def value(inst: Instance) -> list[Any]:
    return np.asarray(dialect.evaluate(inst, arrays_of(inst))[0].value).tolist()


def test_examples_of_the_text() -> None:
    """Of OneHotLayerParams, ConstantPaddingLayerParams, UpsampleLayerParams, LRNLayerParams."""
    hot = made(
        "oneHot", {"x": {"shape": [2], "values": [2.0, -1.0]}}, oneHotVectorSize=4, axis=-1, onValue=5.0, offValue=-1.0
    )
    assert value(hot) == [[-1, -1, 5, -1], [-1, -1, -1, -1]]
    row = {"x": {"shape": [2], "values": [1.0, 2.0]}}
    assert value(made("constantPad", row, value=9.0, padAmounts=[1, 0], padToGivenOutputSizeMode=True)) == [1, 2]
    up = {"x": {"shape": [1, 1, 4], "values": [0.0, 1.0, 2.0, 3.0]}}
    grid = [min(3.0, max(0.0, i * 4 / 6 + 2 / 6 - 0.5)) for i in range(6)]
    wide = made("upsample.BILINEAR", up, fractionalScalingFactor=[1.0, 1.5], linearUpsampleMode="ALIGN_CORNERS_FALSE")
    np.testing.assert_allclose(value(wide)[0][0], grid, rtol=1e-6)
    lrn = made("lrn", {"x": {"shape": [4, 1, 1], "values": [1.0, 2.0, 3.0, 4.0]}}, localSize=3, alpha=3.0, beta=1.0)
    np.testing.assert_allclose(np.ravel(value(lrn)), [1 / 6, 2 / 15, 3 / 30, 4 / 26], rtol=1e-6)


def test_a_maximum_at_the_border_is_one_of_the_readings() -> None:
    """Without the zeros of the padding, or with them; nothing else."""
    v, inst = dialect.versions["nn/pooling.MAX/1"], made("pooling.MAX", BELOW, **PADDED)
    call = dialect.call_of(inst, arrays_of(inst), v)
    why, want = v.underspecified(call), np.asarray(v.evaluate(call)[0].value)
    assert isinstance(why, Underspecified)
    for top, open_ in ((0.0, True), (-0.5, False)):
        got = want.copy()
        got[..., 0, :] = top
        at = np.zeros(want.shape, bool)
        at[..., 0, :] = open_
        np.testing.assert_array_equal(open_at(call, why, 0, got) & (got != want), at)


def test_includeLastPixel_has_a_window_for_a_kernel_above_the_image() -> None:
    """H_out = ceil(float(H_in + 2 * paddingAmounts[0] - kernelSize[0]) / float(Stride[0])) + 1."""
    two = {"x": {"shape": [1, 1, 2, 2], "values": [1.0, 2.0, 3.0, 4.0]}}
    for kind, y in (("MAX", 4.0), ("L2", 30.0**0.5), ("AVERAGE", 2.5)):
        np.testing.assert_allclose(value(made(f"pooling.{kind}", two, **LAST)), [[[[y]]]], rtol=1e-6)
    with pytest.raises(RuleError, match="window-fits"):
        value(made("pooling.MAX", two, **{**LAST, "stride": [1, 1]}))


def test_a_product_of_two_inputs_ignores_what_is_stored() -> None:
    """BatchedMatMulLayerParams: "Following parameters are ignored when there are two inputs.\""""
    two = {"a": {"shape": [1, 2], "values": [1.0, 2.0]}, "b": {"shape": [2, 1], "values": [3.0, 4.0]}}
    held = {"bias": {"shape": [1], "values": [5.0], "const": True}}
    assert value(made("batchedMatmul", {**two, **held}, hasBias=True, weightMatrixSecondDimension=1)) == [[11.0]]


@pytest.mark.parametrize(
    ("key", "mode"), [("nn/categoricalDistribution/1", "isLogits"), ("mil/random_categorical/ios15", "mode")]
)
def test_probabilities_are_drawn_where_they_are_requested(key: str, mode: str) -> None:
    """ "false if the inputs are probabilities", "probs": rows that sum to 1."""
    v, seen = registry.dialect(key.split("/")[0]).versions[key], 0
    for i in range(40):
        inst = v.draw(Prng(case_seed(32, key, i)))
        if inst.attrs.get(mode, "logits") in (False, "probs"):
            x = np.asarray(arrays_of(inst)["x"], np.float64)
            assert (x > 0).all()
            assert (x.sum(-1) == 1).all()
            seen += 1
    assert seen > 10


# -- one reading or the other, and nothing else


def other_reading(case: Case) -> np.ndarray:
    """What the first output is in the reading that is not expected, by a formula."""
    a, x = case.inst.attrs, next(iter(case.draws[0].values())).astype(np.float64)
    y: np.ndarray = case.expected[0][0].value
    if case.inst.op == "mvn":
        axes = (-3, -2, -1) if a.get("acrossChannels") else (-2, -1)
        away = x - x.mean(axes, keepdims=True)
        return (away / (away.std(axes, keepdims=True) + (a.get("epsilon") or 1e-6))).reshape(y.shape)
    if case.inst.op == "lrn":
        size, z = a["localSize"], np.zeros(x.shape)
        for c in range(x.shape[-3]):
            near = x[..., max(0, c - size // 2) : c + (size - 1) // 2 + 1, :, :]
            z[..., c, :, :] = x[..., c, :, :] / (
                (near * near).sum(-3) * a.get("alpha", 0.0) / size + (a.get("k") or 1.0)
            ) ** a.get("beta", 0.0)
        return z.reshape(y.shape)
    return y[::-1]


def _plain(case: Case) -> bool:
    """Are all numbers finite and of common size?  Beyond that an answer may be open, or its bound without use."""
    values = [*case.draws[0].values(), *(e.value for e in case.expected[0])]
    return all(bool(np.all(np.abs(x) < 1e4)) for x in values)


@pytest.mark.parametrize("op", ["mvn", "lrn", "simpleRecurrent", "gru", "uniDirectionalLSTM"])
def test_what_is_open_is_one_of_two_readings(op: str) -> None:
    v, seen, ledger = dialect.versions[f"nn/{op}/1"], 0, load_ledger()
    for i in range(80):
        case = draw_case(v, 1, 6, i, 1, invalid=False)
        assert case.expected is not None, case.problem
        first, *rest = case.expected[0]
        other = other_reading(case)
        if case.ambiguous is not None or np.allclose(other, first.value, 1e-3) or not _plain(case):
            continue

        def told(y: np.ndarray, rest: list[Any] = rest, case: Case = case) -> Verdict:
            outputs = [np.asarray(y, np.float32), *(e.value for e in rest)]
            return judge_case(case, BackendInfo("somebody"), [Outcome(Status.VALUE, outputs, "run")], ledger).verdict

        a = case.inst.attrs
        asked = {"mvn": "normalizeVariance" in a and a["normalizeVariance"], "lrn": a.get("localSize", 1) % 2 == 0}
        turned = a.get("reverseInput") and (a.get("sequenceOutput") or a.get("params.sequenceOutput"))
        if asked.get(op, turned):
            seen += 1
            assert told(other) is Verdict.AMBIGUOUS, case.inst.dumps()
        else:
            assert told(other) is Verdict.MISMATCH
        assert told(other * 1.5 + 1) is told(-first.value - 1) is Verdict.MISMATCH
    assert seen > 3
