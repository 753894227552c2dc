"""What is not moved to an edge (``harness.declare.op_version.nearby``): operands and options with a domain of which no
annotation tells; "shapes", "outputs"; "operands", where none may be left out alone; "data:NAME" for the elements alone
of an operand, "rank:NAME" for its rank.

Each line has the sentence that states the domain.
"""

from __future__ import annotations

from harness.declare import OpVersion

# Options that state an element type: their default in the schema is FLOAT32, number 0, which is none of those that the
# tfl dialect admits ("TFL_I32OrI64Tensor" for the results of arg_max, arg_min, shape and unique).
_TYPES = ("output_type", "out_type", "idx_out_type", "in_data_type", "out_data_type", "quantized_bias_type", "storage")

# NNAPI LSTM: "the input-to-input weights ..., the recurrent-to-input weights ... and the input gate bias ... either all
# have values or none"; so with peephole weights, layer normalisation, and what is projected
_CELLS = ("LSTM", "BASIC_LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM")

KEEPS: dict[str, tuple[str, ...]] = {
    # TF AddN: "Must all be the same size and shape"
    "ADD_N": ("shapes",),
    # MediaPipe MaxUnpooling2D: the positions that MaxPoolingWithArgmax2D gives, in the window of each element
    "MaxUnpooling2D": ("data:indices",),
    # TF OneHot: "Expected axis to be -1 or between [0, ...)"
    "ONE_HOT": ("axis",),
    # schema, SparsityParameters: the order and the blocks are those of the dimensions
    "DENSIFY": ("shapes",),
    **dict.fromkeys(_CELLS, ("operands", "outputs", "merge_outputs", "kernel_type", "diagonal_recurrent_tensors")),
    # NNAPI: "If set to true, the outputs from forward and backward cells are merged": one result, or two
    "BIDIRECTIONAL_SEQUENCE_RNN": ("operands", "outputs", "merge_outputs"),
    # NNAPI LSH_PROJECTION: at most 32 bits, a weight for each row of the input, and SPARSE or DENSE, 0 being no type
    "LSH_PROJECTION": ("shapes", "input", "type"),
    # NNAPI HASHTABLE_LOOKUP: "Keys ... in ascending order"
    "HASHTABLE_LOOKUP": ("key", "data:key"),
    # which the program of the instance says too
    "HASHTABLE": ("table_id", "key_dtype", "value_dtype"),
    # TF ReverseSequence: a dimension of the input, below its rank
    "REVERSE_SEQUENCE": ("seq_dim", "batch_dim"),
    # ngram_size counts the words of a gram, and none is no gram; a dense shape has an entry for each axis of indices
    "SKIP_GRAM": ("ngram_size",),
    # and tf.SparseTensor: "in canonical ordering"
    "EMBEDDING_LOOKUP_SPARSE": ("shapes", "indices"),
    # fixed-point arithmetic without a multiplier needs the larger scale for the result (``_SumQ``)
    **dict.fromkeys(("ADD", "SUB"), ("pot_scale_int16",)),
    # TF ResizeNearestNeighbor: "If half_pixel_centers is True, align_corners must be False."
    # and of either: "output dimensions must be positive"
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), ("align_corners", "half_pixel_centers", "size")),
    # TF Range: "Requires delta != 0", and a limit that the steps lead to
    "RANGE": ("start", "limit", "delta"),
    # "indices rise and do not repeat" where they are validated; TF SparseToDense: "1-D. Values ..., or a scalar"
    "SPARSE_TO_DENSE": ("sparse_indices", "output_shape", "rank:default_value"),
    # TF NonMaxSuppressionV5: "iou_threshold must be in [0, 1]", "soft_nms_sigma ... must be >= 0"
    **dict.fromkeys(
        ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), ("data:iou_threshold", "data:soft_nms_sigma")
    ),
}


def recurrent(op: str) -> bool:
    """Is the operator one with a state?"""
    return op == "SVDF" or op.endswith(("RNN", "LSTM"))


def keeps(version: OpVersion) -> tuple[str, ...]:
    """What is kept of an op version."""
    later = tuple(version.schema.extra["later"])  # options that only later versions of the operator have
    # TF Div: "division by zero" of integers is an error
    divisor = ("data:rhs",) if version.op == "DIV" and version.schema.domain == "quantised" else ()
    # op_version.cc: a hybrid form with the option has a later version
    known = version.schema.domain != "hybrid" or "hybrid_asymmetric" not in later
    asymmetric = () if known else ("asymmetric_quantize_inputs",)
    # op_version.cc: blocks of an input of another rank than 4 come with version 3
    rank = ("rank:input",) if "rank3" in later else ()
    return (*_TYPES, *later, *rank, *asymmetric, *divisor, *KEEPS.get(version.op, ()))
