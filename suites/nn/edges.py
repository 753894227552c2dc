"""What is not moved to an edge (``harness.declare.op_version.nearby``): operands and parameters with a domain of which
no annotation tells; "shapes", "outputs"; "data:NAME" for the elements alone of an operand, "rank:NAME" for its rank.

Each line has the sentence of NeuralNetwork.proto that states the domain.  Elements stand here too where the text gives
no value for what is not finite; the ledger of reach goals counts those as open.
"""

from __future__ import annotations

from harness.declare.schema import OpSchema

# "repeated string output": a layer names all its outputs, in order
_OUTPUTS = "outputs"

_RANDOM = ("Normal", "Uniform", "Bernoulli")

KEEPS: dict[str, tuple[str, ...]] = {
    # "output shape, for both outputs = (45, K, 10, 5)", and a blob has elements
    "topK": ("K", "k"),
    # indices, sizes and truth values are blobs of floats: "Each input is a scalar, or rank 1 and shape (1,)"; "Input
    # values must be in the range"
    **dict.fromkeys(("gather", "gatherND", "gatherAlongAxis"), ("data:indices",)),
    **dict.fromkeys(("scatter", "scatterND", "scatterAlongAxis"), ("data:indices",)),
    **dict.fromkeys(("embedding", "embeddingND"), ("data:x",)),
    "oneHot": ("data:x", "size_in"),
    "NonMaximumSuppression": (
        *("iou_threshold", "score_threshold", "max_boxes", "data:boxes", "data:scores"),
        "maxBoxes",  # an extent of the results: they have elements
    ),
    "sliceBySize": ("begin", "size"),  # "Invalid size value. Must be positive" (NeuralNetworkBuilder of coremltools)
    "reverseSeq": ("lengths",),
    "cumSum": ("axis_in",),
    "rangeDynamic": ("end", "start", "step"),
    # "Length of the reps must be same as rank of the input" where it is an input: the rank stays, too
    "tile": ("reps_in", "rank:x"),
    "constantPad": ("pads_in",),
    # "The number of kernels", as many as the weights have: one that is left out would be 0
    **dict.fromkeys(("convolution", "convolution.isDeconvolution"), ("outputChannels",)),
    # "nOutputs blobs": the layer names them
    "split": ("nOutputs",),
    "splitND": ("numSplits", "splitSizes"),
    # one vector with an entry an axis
    **dict.fromkeys(
        ("fillDynamic", "broadcastToDynamic", "reshapeDynamic", *(f"random{x}Dynamic" for x in _RANDOM)),
        ("rank:shape",),
    ),
    "sliceDynamic": tuple(f"rank:{x}" for x in ("begin", "end", "stride", "begin_mask", "end_mask", "squeeze_mask")),
    # weights of an interpolation may be 0, beside elements that are not finite
    "cropResize": ("data:x", "data:roi"),
    "loadConstantND": ("shape",),  # "A blob whose rank is between 1 to 4"
    "loadConstant": ("shape",),  # "must be [C, H, W], that is length 3"
    "scale": ("shapeScale", "shapeBias"),  # "Must be one of the following: [1], [C], [1, H, W] or [C, H, W]"
    "bias": ("shape",),
    # "true if the inputs are logits, false if the inputs are probabilities"
    "categoricalDistribution": ("data:x", "isLogits"),
    # "shape of the ouput tensor", of "N rank ... where N >= 1"
    **dict.fromkeys((f"random{x}Static" for x in _RANDOM), ("outputShape",)),
    **dict.fromkeys(("fillStatic", "broadcastToStatic", "reshapeStatic"), ("targetShape",)),
}


def keeps(s: OpSchema) -> tuple[str, ...]:
    """Of a layer.  Weights have no rank of their own: their numbers stand in row-major order."""
    return (_OUTPUTS, *(f"rank:{x.name}" for x in s.inputs if x.const), *KEEPS.get(s.op, ()))
