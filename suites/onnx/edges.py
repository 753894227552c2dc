"""What is not moved to an edge (``harness.declare.op_version.nearby``): operands and attributes with a domain
of which no annotation tells; "shapes", "outputs"; "data:NAME" for the elements alone of an operand, "same:NAME"
for one tensor given to it twice.

Each line has the sentence that states the domain.  Elements stand here too where the text gives no value for what is
not finite; the ledger of reach goals counts those as open.
"""

from __future__ import annotations

KEEPS: dict[str, tuple[str, ...]] = {
    # "(N x C x D1 x D2 ... Dn), where N is the batch size": at least one axis behind the channels
    "InstanceNormalization": ("rank:input",),
    # "(Output case #1: Y, mean, var, saved_mean, saved_var (training mode); Output case #2: Y (test mode)"
    "BatchNormalization": ("outputs", "training_mode"),
    "SpatialBN": ("outputs",),
    # "xs: Input tensor names of the differentiated sub-graph": by two names two tensors
    "Gradient": ("same:Inputs",),
    # "present_key, present_value, past_key and past_value should all be present or none"
    "Attention": ("outputs",),
    # "if the input type is floating point, then the fmod attribute must be set to 1"
    "Mod": ("fmod",),
    # "with value in [0, 1)"; before version 12 nothing says what the mask holds outside of training
    "Dropout": ("ratio", "training_mode", "outputs"),
    # "a single positive value"
    "TopK": ("K", "k"),
    # "it takes value greater than 0"; "RoIs' coordinates are normalized"
    "Resize": ("scales", "roi", "mode", "exclude_outside", "antialias", "coordinate_transformation_mode"),
    "Upsample": ("scales", "width_scale", "height_scale"),
    # "in case 'indices' is of non-integer type, the values will be casted to int64 before use"
    "OneHot": ("indices", "depth", "values"),
    # "Scale and zero point must have same shape"; 0 for float8
    "QuantizeLinear": ("rank:y_scale", "y_zero_point"),
    "DequantizeLinear": ("rank:x_scale", "x_zero_point"),
    "QLinearMatMul": ("rank:y_scale", "a_zero_point", "b_zero_point", "y_zero_point"),
    # "the update count of X. It should be a scalar"
    **dict.fromkeys(("Adagrad", "Adam", "Momentum"), ("rank:R", "rank:T")),
    "QLinearConv": (
        *("x_zero_point", "y_zero_point", "auto_pad", "pads", "rank:x_scale", "rank:w_scale", "rank:y_scale"),
    ),
    # "auto_pad ... pads attribute cannot be used simultaneously with auto_pad attribute"
    **dict.fromkeys(
        ("Conv", "ConvInteger", "ConvTranspose", "Caffe2ConvTranspose"),
        ("auto_pad", "pads", "x_zero_point"),
    ),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), ("auto_pad",)),
    # "encoded stream": its one axis holds the bytes of an image
    "ImageDecoder": ("shapes", "encoded_stream"),
    # either an input or the type
    "Optional": ("input", "type"),
    # "a permutation": no text counts axes of it from the back
    "Transpose": ("perm",),
    # "must be positive" (type and shape inference of the onnx package)
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), ("size",)),
    # "All values in input have to be in the range:[0, 1]"
    "Bernoulli": ("data:input",),
    "Multinomial": ("sample_size", "data:*"),
    # one number an axis; the extents that come of them are positive
    "MaxUnpool": ("kernel_shape", "strides", "pads", "shapes"),
    # what one tree asks of a row that has no features
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"), ("shapes",)),
    # the number of features of a row is that of the coefficients
    **dict.fromkeys(("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"), ("shapes",)),
    # "If Slope is of size 1, the value is shared", else one a channel
    "PRelu": ("shapes",),
}

# "all inputs and outputs must have the same shape": until version 6
_ALIKE = ("Sum", "Max", "Min", "Mean")


def keeps(op: str, version: int) -> tuple[str, ...]:
    """Of an op version."""
    if op in _ALIKE and version < 8:
        return ("shapes",)
    if op == "Tile" and version == 1:
        return ("axis",)  # no text before opset 11 counts axes from the back
    if op in ("Softmax", "LogSoftmax", "Hardmax") and version < 13:
        return ("shapes", "axis")  # "axis: ... accepted range is [-r, r-1]", and 1 where nothing is said
    return KEEPS.get(op, ())
