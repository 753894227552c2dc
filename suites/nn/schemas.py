"""The ops of the schema, by name and by the layer that stands in a model."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from harness.core.errors import UsageError
from harness.declare.schema import OpSchema, load
from suites.nn.wire import Message

_CELL = ("inputVectorSize", "outputVectorSize")
_CONVOLUTION = ("kernelChannels", "kernelSize", "nGroups", "outputChannels")
_CONVOLUTION3D = ("inputChannels", "nGroups", "outputChannels", "kernelDepth", "kernelHeight", "kernelWidth")
# Parameters that are the extent of a blob or of a weight, or divide or multiply one, by the text of their message.  All
# have elements: "CoreML does not allow such empty tensor" (coremltools 9.0, PyTorch front end, cat).
SIZES: dict[str, tuple[str, ...]] = {
    "NonMaximumSuppression": ("maxBoxes",),
    "batchnorm": ("channels",),
    "bias": ("shape",),
    "broadcastToStatic": ("targetShape",),
    "categoricalDistribution": ("numSamples",),
    "constantPad": ("padAmounts",),
    "convolution": _CONVOLUTION,
    "convolution.isDeconvolution": (*_CONVOLUTION, "outputShape"),
    "convolution3d": _CONVOLUTION3D,
    "convolution3d.isDeconvolution": (*_CONVOLUTION3D, "outputShape"),
    "cropResize": ("targetSize",),
    "embedding": ("inputDim", "outputChannels"),
    "embeddingND": ("vocabSize", "embeddingSize"),
    "fillStatic": ("targetShape",),
    "innerProduct": ("inputChannels", "outputChannels"),
    "layerNormalization": ("normalizedShape",),
    "loadConstant": ("shape",),
    "loadConstantND": ("shape",),
    "oneHot": ("oneHotVectorSize",),
    "padding": ("paddingAmounts",),
    **{f"random{x}Static": ("outputShape",) for x in ("Normal", "Uniform", "Bernoulli")},
    "rankPreservingReshape": ("targetShape",),
    "reorganizeData": ("blockSize",),
    "reshape": ("targetShape",),
    "reshapeStatic": ("targetShape",),
    "resizeBilinear": ("targetSize",),
    "scale": ("shapeScale", "shapeBias"),
    "sequenceRepeat": ("nRepetitions",),
    **dict.fromkeys(("simpleRecurrent", "gru", "uniDirectionalLSTM", "biDirectionalLSTM"), _CELL),
    "sliceBySize": ("size",),
    "slidingWindows": ("windowSize",),
    "split": ("nOutputs",),
    "splitND": ("splitSizes",),
    "tile": ("reps",),
    "topK": ("K",),
    "upsample.NN": ("scalingFactor",),
    "upsample.BILINEAR": ("scalingFactor",),
}


@cache
def schemas() -> tuple[OpSchema, ...]:
    out = tuple(load(Path(__file__).with_name("schema.json")))
    for s in out:
        s.extra["sizes"] = SIZES.get(s.op, ())
    return out


@cache
def _by_op() -> dict[str, OpSchema]:
    return {s.op: s for s in schemas()}


@cache
def _by_layer() -> dict[str, list[OpSchema]]:
    out: dict[str, list[OpSchema]] = {}
    for s in schemas():
        out.setdefault(s.extra["layer"], []).append(s)
    return out


def named(op: str) -> OpSchema:
    """Raises UsageError for an op that the schema does not have."""
    try:
        return _by_op()[op]
    except KeyError:
        raise UsageError(f"nn: no layer {op}") from None


def of_layer(layer: str, body: Message) -> OpSchema:
    """The op that a layer with these parameters is: of a layer that chooses a function, that function's."""
    options = _by_layer()[layer]
    if len(options) == 1:
        return options[0]
    if options[0].extra["select"] is None:  # a flag: the second op is for when it is set
        return options[bool(body.get(options[1].extra["select"][0]))]
    field = options[0].extra["select"][0]
    for x in options:
        if body.get(field) == x.extra["select"][1] or x.extra["select"][1] in body:
            return x
    return options[0]  # proto3: the first member of an enum is not written
